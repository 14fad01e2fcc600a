"""Steps that use descriptors, threads and processes. memory_operations.py describes the arguments and results of the functions."""
from condition_operations import CONDITION_OPERATIONS
from fork_operations import FORK_OPERATIONS
from memory_operations import MEMORY_OPERATIONS, begun, on_through
from scenario import COUNTERS, STDIN
from undefined import Undefined

MORE_THAN_A_PIPE_HOLDS = 1 << 20


def read(machine, state, thread, step, _stage):
    name = step.arguments[0]
    if name == STDIN:
        return []
    process = state["t", thread][0]
    if (name, "r") not in state["fd", process] - machine.opening(state, process):
        raise Undefined("read from a closed end")
    if state["k", name] > 0:
        state["k", name] = 0 if machine.objects[name].kind in COUNTERS else state["k", name] - 1
        return on_through(machine, state, thread)
    if machine.objects[name].kind not in COUNTERS and not machine.openers(state, name, "w") and not machine.carriers(state, (name, "w")):
        return on_through(machine, state, thread)  # the read returns 0: end of file
    return []


def write(machine, state, thread, step, _stage):
    if state["k", step.arguments[0]] >= 1000:
        raise Undefined("a pipe that may be full")
    if machine.objects[step.arguments[0]].kind == "timerfd":
        raise Undefined("write to a timer")
    machine.put(state, state["t", thread][0], step.arguments[0], 1)
    return on_through(machine, state, thread)


def fill(machine, state, thread, step, stage):
    """Writes so many bytes that they do not fit into a pipe, even after all reads of a scenario. So the step never returns."""
    if not machine.openers(state, step.arguments[0], "r") and not machine.carriers(state, (step.arguments[0], "r")):
        raise Undefined("write to a pipe without readers")
    if stage is not None:
        return []
    machine.put(state, state["t", thread][0], step.arguments[0], MORE_THAN_A_PIPE_HOLDS)
    return begun(machine, state, thread, "begun")


def open_end(machine, state, thread, step, stage):
    """Opens an end of a FIFO. The step waits until a thread opens the other end. The end that the step opens counts as
    open from the start of the step."""
    name, end = step.arguments
    process = state["t", thread][0]
    if stage == "go":
        return on_through(machine, state, thread)
    if stage is not None:
        return []
    if (name, end) in state["fd", process]:
        raise Undefined("an end that is open already")
    other = (name, "w" if end == "r" else "r")
    meets = bool(machine.openers(state, *other))
    state["fd", process] |= {(name, end)}
    for waiting in machine.live_threads(state):
        theirs = machine.step_of(state, waiting)
        if theirs and theirs.operation == "open" and theirs.arguments == other and state["t", waiting][2] == "begun":
            machine.set_stage(state, waiting, "go")
    return on_through(machine, state, thread) if meets else begun(machine, state, thread, "begun")


def close(machine, state, thread, step, _stage):
    process = state["t", thread][0]
    end = (step.arguments[0], step.arguments[1])
    if end not in state["fd", process]:
        raise Undefined("close of a closed end")
    for other in machine.live_threads(state, process):
        theirs = machine.step_of(state, other)
        if other != thread and theirs and theirs.arguments[:1] == end[:1] and state["t", other][2] is not None:
            raise Undefined("close of an end that another thread uses")
    state["fd", process] -= {end}
    machine.drop_unreachable(state)
    return on_through(machine, state, thread)


def send(machine, state, thread, step, _stage):
    """Sends a copy of an end of a pipe through a channel (SCM_RIGHTS). Until a process receives this copy, the copy is open, but
    belongs to no process."""
    channel, end, process = step.arguments[0], tuple(step.arguments[1:3]), state["t", thread][0]
    if machine.objects[end[0]].kind not in ("pipe", "socket") or not {(channel, "w"), end} <= state["fd", process]:
        raise Undefined("a closed end is sent, or the channel is closed")
    if not machine.openers(state, channel, "r") or len(state["k", channel]) > 8:
        raise Undefined("no process can receive the end")
    state["k", channel] += (end,)
    return on_through(machine, state, thread)


def receive(machine, state, thread, step, _stage):
    channel, process = step.arguments[0], state["t", thread][0]
    if (channel, "r") not in state["fd", process]:
        raise Undefined("receive from a closed channel")
    queue = state["k", channel]
    if queue:
        if queue[0] in state["fd", process]:
            raise Undefined("receive of an end that is already open")
        state["k", channel] = queue[1:]
        state["fd", process] |= {queue[0]}
        return on_through(machine, state, thread)
    return [] if machine.openers(state, channel, "w") else on_through(machine, state, thread)


def description(state, process, name):
    if ("desc", process, name) not in state:
        state["desc", process, name] = f"{name} of {process}"
    return state["desc", process, name]


def flock(machine, state, thread, step, _stage):
    name = step.arguments[0]
    mine = description(state, state["t", thread][0], name)
    if state.get(("flock", name), mine) != mine:
        return []
    state["flock", name] = mine
    return on_through(machine, state, thread)


def funlock(machine, state, thread, step, _stage):
    name = step.arguments[0]
    mine = description(state, state["t", thread][0], name)
    if state.get(("flock", name)) == mine:
        del state["flock", name]
    return on_through(machine, state, thread)


def fcntl_lock(machine, state, thread, step, _stage):
    """Takes an fcntl() lock. `plock` takes a lock of the process, which a child does not inherit. `olock` takes a lock
    of the open file, which children share."""
    name, process = step.arguments[0], state["t", thread][0]
    of_file = ("file", description(state, process, name))
    mine = ("process", process) if step.operation == "plock" else of_file
    held = state.get(("fcntl", name), mine)
    if held != mine:
        if step.operation == "plock" and is_awaited_by(machine, state, held, process):
            raise Undefined("a ring of fcntl() locks is refused by the kernel")
        return []
    state["fcntl", name] = mine
    return on_through(machine, state, thread)


def is_awaited_by(machine, state, held, process):
    """True if the kernel would find a ring: the holder waits for a lock of another process, and so on, until a process waits for
    this process."""
    found, frontier = set(), [held]
    while frontier:
        owner = frontier.pop()
        if owner == ("process", process):
            return True
        if owner in found or owner[0] != "process" or ("p", owner[1]) not in state:
            continue
        found.add(owner)
        for other in machine.live_threads(state, owner[1]):
            step = machine.step_of(state, other)
            if step and step.operation == "plock":  # the thread waits for this lock, or will soon
                frontier.append(state.get(("fcntl", step.arguments[0])))
        frontier = [entry for entry in frontier if entry is not None]
    return False


def fcntl_unlock(machine, state, thread, step, _stage):
    name, process = step.arguments[0], state["t", thread][0]
    mine = ("process", process) if step.operation == "punlock" else ("file", description(state, process, name))
    if state.get(("fcntl", name)) == mine:
        del state["fcntl", name]
    return on_through(machine, state, thread)


def own_name(thread, name):
    """Returns the name in the state of the thread that a step of `thread` calls `name`. A ghost is a copy of a thread that a fork
    lost. In the state, a ghost has the name of the lost thread, "@", and the name of the process. In a step of a ghost, `name`
    means the ghost of that name in the same process."""
    _, at, process = thread.partition("@")
    return f"{name}{at}{process}"


def create(machine, state, thread, step, _stage):
    if state.get(("pool", state["p", state["t", thread][0]][4])) == "lost":
        state["stacks", state["t", thread][0]] = True
    state["t", own_name(thread, step.arguments[0])] = (state["t", thread][0], 0, None, "live")
    return on_through(machine, state, thread)


def join(machine, state, thread, step, _stage):
    other = own_name(thread, step.arguments[0])
    if "@" in thread and state["fork", state["t", thread][0]][1] == step.arguments[0]:
        # The ghost joins the thread that forked. The child's copy of that thread is the first thread of the child.
        other = state["t", thread][0]
    if ("t", other) not in state or state["t", other][0] != state["t", thread][0] or other == thread or state["t", other][3] == "gone":
        raise Undefined("join of a thread that does not exist")
    if state.setdefault(("join", other), thread) != thread:
        raise Undefined("two threads join the same thread")
    if state.get(("join", thread)) == other:
        raise Undefined("mutual joins are refused by libc")
    if state["t", other][3] != "ended":
        if state["t", thread][2] is None:
            return begun(machine, state, thread, "begun")
        return []
    return on_through(machine, state, thread)


def wait(machine, state, thread, step, _stage):
    child, process = step.arguments[0], state["t", thread][0]
    if ("p", child) not in state or state["p", child][0] != process or state["p", child][1] == "reaped":
        raise Undefined("wait for a process that is not a child")
    if state["p", child][1] == "live":
        return []
    _, _, code, stopped, first = state["p", child]
    state["p", child] = (process, "reaped", code, stopped, first)
    del machine
    state["t", thread] = (process, state["t", thread][1] + 1, None, "live")
    return [state]


def handle(machine, state, thread, step, _stage):
    signal_name, action, *rest = step.arguments
    state["h", state["t", thread][0], signal_name] = (action, rest[0] if rest else None)
    return on_through(machine, state, thread)


def kill(machine, state, thread, step, _stage):
    process, signal_name = step.arguments
    if ("p", process) not in state or state["p", process][1] != "live" or state["p", process][3]:
        raise Undefined("signal to a process that does not run")
    if process == state["t", thread][0] and ("h", process, signal_name) not in state:
        raise Undefined("a process that kills itself")  # a dead process cannot report that its step is done
    machine.advance(state, thread)
    machine.deliver(state, process, signal_name)
    return [state]


def stop(machine, state, thread, step, _stage):
    process = step.arguments[0]
    if ("p", process) not in state or state["p", process][1] != "live" or process == state["t", thread][0]:
        raise Undefined("stop of a process that does not run")
    state["p", process] = (*state["p", process][:3], True, state["p", process][4])
    return on_through(machine, state, thread)


def pause(machine, state, thread, _step, stage):
    if stage == "go":
        return on_through(machine, state, thread)
    if stage is not None:
        return []
    if state["p", state["t", thread][0]][4] != thread:
        raise Undefined("the thread that takes a signal depends on luck")
    return begun(machine, state, thread, "begun")


def alarm(machine, state, thread, _step, _stage):
    state["alarm", state["t", thread][0]] = True
    return on_through(machine, state, thread)


def arm(_machine, state, thread, step, _stage):
    state["armed", step.arguments[0]] = True
    return on_through(_machine, state, thread)


def never_by_itself(_machine, _state, _thread, _step, _stage):
    return []


def leave(machine, state, thread, step, _stage):
    machine.end_process(state, state["t", thread][0], int(step.arguments[0]) if step.arguments else 0)
    return [state]


def end(machine, state, thread, _step, _stage):
    machine.end_thread(state, thread)
    return [state]


OPERATIONS = MEMORY_OPERATIONS | CONDITION_OPERATIONS | FORK_OPERATIONS | {
    "send": send, "receive": receive, "plock": fcntl_lock, "olock": fcntl_lock, "punlock": fcntl_unlock, "ounlock": fcntl_unlock,
    "read": read, "write": write, "fill": fill, "open": open_end, "close": close, "flock": flock, "funlock": funlock, "create": create,
    "join": join, "wait": wait, "handle": handle, "kill": kill, "stop": stop, "pause": pause, "alarm": alarm,
    "itimer": alarm, "arm": arm,
    "nap": never_by_itself, "exit": leave, "_exit": leave, "end": end,
}
