"""Whose memory a process' memory is a copy of, and what became of the threads that were there."""


def ancestry(state, process):
    """The processes whose memory this one's is a copy of, the eldest first, and itself."""
    found = [process]
    while ("fork", found[0]) in state:
        found.insert(0, state["fork", found[0]][0])
    return found


def copy_of(state, process, holder):
    """What became of a thread of an ancestor, as the process' memory knows it: ("copy", thread of it), or lost, or ended."""
    elders = ancestry(state, process)
    at, now = state["t", holder][0], holder
    if at not in elders:
        return "ended", None
    for child in elders[elders.index(at) + 1:]:
        _, forker, lost = state["fork", child]
        if now in [name for name, _, _ in lost]:
            return "lost", now
        if now != forker:
            return "ended", None
        now = child
    return "copy", now
