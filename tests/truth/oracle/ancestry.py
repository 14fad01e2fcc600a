"""Of which processes' memory a process's memory is a copy, and what became of their threads."""


def ancestry(state, process):
    """The processes whose memory this one's is a copy of, the eldest first, and itself."""
    return [*(parent for parent, _, _, _ in state.get(("way", process), ())), process]


def copy_of(state, process, holder):
    """What became of a thread of an ancestor, as the process' memory knows it: ("copy", thread of it), or lost, or ended."""
    elders = ancestry(state, process)
    at, now = state["t", holder][0], holder
    if at not in elders:
        return "ended", None
    way = state.get(("way", process), ())
    for index in range(elders.index(at), len(way)):
        _, forker, lost, _ = way[index]
        if now in [name for name, _, _ in lost]:
            return "lost", now
        if now != forker:
            return "ended", None
        now = elders[index + 1]
    return "copy", now
