"""The processes of whose memory a process has a copy, and what became of the threads of these processes."""


def ancestry(state, process):
    """The processes of whose memory this process has a copy, the eldest first; the last one is the process itself."""
    return [*(parent for parent, _, _, _ in state.get(("way", process), ())), process]


def copy_of(state, process, holder):
    """What became of an ancestor's thread in this process: ("copy", the thread that is its copy), ("lost", ...) or ("ended", ...)."""
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
