"""Finds the ancestors whose memory a process has a copy of, and what became of their threads in the process."""


def ancestry(state, process):
    """Returns the ancestors whose memory this process has a copy of, the eldest first, and then the process itself."""
    return [*(parent for parent, _, _, _ in state.get(("way", process), ())), process]


def copy_of(state, process, holder):
    """Returns what became of an ancestor's thread in this process. ("copy", name): this process has a copy of the
    thread, with this name. ("lost", name): a fork lost the thread or its copy, and `name` is what was lost. ("ended",
    None): the thread had ended before a fork, or belongs to no ancestor."""
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
