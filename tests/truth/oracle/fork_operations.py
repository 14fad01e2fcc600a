"""The ways to make a process, and the handlers that fork() calls. memory_operations.py describes the arguments and results of the
functions.

`fork P WAY`: WAY is fork (the default), _Fork, forkpty, daemon, vfork or spawn. vfork and spawn start this program again in the child,
because a child of vfork() may only call exec or _exit(). `atfork keep M`: the prepare handler locks M, and the parent and child handlers
unlock it. `atfork renew M`: the same, but the child handler initialises M. `atfork child M`: only the child handler does something: it
locks and unlocks M."""
from memory_operations import begun, lock, on_through, place, unlock
from scenario import Step
from undefined import Undefined

WITHOUT_HANDLERS = ("_Fork", "vfork", "spawn")
ANOTHER_PROGRAM = ("vfork", "spawn")


def way_of(step):
    return step.arguments[1] if len(step.arguments) > 1 else "fork"


def atfork(machine, state, thread, step, _stage):
    kind, name = step.arguments
    place(machine, state, thread, step, 1)
    process = state["t", thread][0]
    if machine.objects[name].shared:
        raise Undefined("an atfork handler for a mutex in shared memory")
    if any(is_in_prepare(state, other) for other in machine.live_threads(state, process)):
        raise Undefined("a handler is registered while handlers run")
    state["atfork", process] = state.get(("atfork", process), ()) + ((kind, name),)
    return on_through(machine, state, thread)


def is_in_prepare(state, thread):
    """True if the thread is in a prepare handler of its fork()."""
    stage = state["t", thread][2]
    return isinstance(stage, tuple) and stage[0] == "prepare"


def handlers_of(state, thread, step):
    return () if way_of(step) in WITHOUT_HANDLERS else state.get(("atfork", state["t", thread][0]), ())


def prepare(machine, state, thread, step, at):
    """Returns the states after the next prepare handler; None if all have returned. Prepare handlers run in reverse order."""
    names = [name for kind, name in reversed(handlers_of(state, thread, step)) if kind != "child"]
    if at == len(names):
        return None
    key = place(machine, state, thread, Step(thread, "lock", (names[at],)))
    owner, count, _ = state[key]
    if owner is None or owner == thread and "recursive" in machine.objects[names[at]].attributes:
        state[key] = (thread, count + 1, False)
        return begun(machine, state, thread, ("prepare", at + 1))
    if owner == thread and "errorcheck" in machine.objects[names[at]].attributes:
        raise Undefined("a handler unlocks a mutex that it did not lock")
    if state["t", thread][2] is None:
        return begun(machine, state, thread, ("prepare", at))
    return []


def handler_mutex(state, thread, step):
    """Returns the mutex for which an atfork handler waits: a prepare handler in the forking thread, or a child handler in the child."""
    stage, process = state["t", thread][2], state["t", thread][0]
    if stage[0] == "prepare":
        return [name for kind, name in reversed(handlers_of(state, thread, step)) if kind != "child"][stage[1]]
    return state["atfork", process][stage[1]][1]


def fork(machine, state, thread, step, stage):
    at = stage[1] if isinstance(stage, tuple) else 0
    waiting = prepare(machine, state, thread, step, at)
    if waiting is not None:
        return waiting
    parent, child, way = state["t", thread][0], step.arguments[0], way_of(step)
    if ("pool ended", parent) in state:
        raise Undefined("workers of libgomp that may have ended")
    if way == "daemon" and parent in state.get(("pty", parent), ())[1::2]:
        raise Undefined("the end of its session's leader may send SIGHUP to the daemon before it has a session of its own")
    others = tuple(name for name in machine.live_threads(state, parent) if name != thread)
    state["p", child] = (parent, "live", 0, False, child)
    state["t", child] = (child, 0, None, "live")
    if ("parent alarm", parent) in state or ("alarm", parent) in state:
        state["parent alarm", child] = True
    copy_descriptors(machine, state, parent, child)
    handlers = handlers_of(state, thread, step)
    if way in ANOTHER_PROGRAM:
        become_anew(machine, state, child)
        if ("noshared", parent) in state or any(entry.shared for entry in machine.scenario.objects):
            state["noshared", child] = True
        return on_through(machine, state, thread)
    copy_memory(machine, state, thread, child, others)
    if way != "_Fork":
        state["forks", child] = state.get(("forks", parent), 0) + 1
    if way == "forkpty":
        state["pty", child] = state.get(("pty", parent), ()) + (parent, child)
    if way == "daemon":
        state.pop(("pty", child), None)
    if machine.ghosts:
        raise_ghosts(machine, state, child, thread, others)
    for kind, name in handlers:
        if kind != "child":
            unlock_in_handler(machine, state, thread, name)
    machine.advance(state, thread)
    if handlers:
        machine.set_stage(state, child, ("handler", 0))
        state = run_all_child_handlers(machine, state, child)
    if way == "daemon":
        if parent == "main":
            raise Undefined("children outlive the program")
        machine.end_process(state, parent, 0)
    return [state]


def unlock_in_handler(machine, state, thread, name):
    count = state["t", thread][1:3]
    unlock(machine, state, thread, Step(thread, "unlock", (name,)), None)
    state["t", thread] = (state["t", thread][0], *count, "live")


def run_all_child_handlers(machine, state, child):
    """Runs the child handlers until one waits. The child has no other thread at that time."""
    while machine.is_in_handler(state, child):
        following = run_child_handlers(machine, dict(state), child)
        if not following:
            break
        state = following[0]
    return state


def run_child_handlers(machine, state, child):
    process, _, (_, at), _ = state["t", child]
    handlers = state["atfork", process]
    if at == len(handlers):
        machine.set_stage(state, child, None)
        return [state]
    kind, name = handlers[at]
    if kind == "renew":
        state["m", process, name] = machine.fresh_value(machine.objects[name])
    elif kind == "keep":
        unlock_in_handler(machine, state, child, name)
    else:
        if not lock(machine, state, child, Step(child, "lock", (name,)), None):
            return []
        state["t", child] = (process, 0, None, "live")
        if state["m", process, name][0] == child:
            unlock_in_handler(machine, state, child, name)
    state["t", child] = (process, 0, ("handler", at + 1), "live")
    return [state]


def copy_descriptors(machine, state, parent, child):
    state["fd", child] = state["fd", parent] - machine.opening(state, parent)
    if ("pty", parent) in state:
        state["pty", child] = state["pty", parent]


def copy_memory(machine, state, forker, child, others):
    parent = state["t", forker][0]
    lost = tuple((name, *state["t", name][1:3]) for name in others)
    state["fork", child] = (parent, forker, lost)
    state["workers", child] = machine.workers(state, parent)
    state["way", child] = (*state.get(("way", parent), ()), (parent, forker, lost, state["workers", child]))
    for key, value in list(state.items()):
        if key[0] in ("m", "h", "desc", "took", "stuck", "atfork") and key[1] == parent:
            state[key[0], child, *key[2:]] = value
    for kind in ("once", "pool"):
        if (kind, forker) in state:
            state[kind, child] = state[kind, forker] if kind == "once" else "lost"
    if ("noshared", parent) in state:
        state["noshared", child] = True


def raise_ghosts(machine, state, child, forker, others):
    """Makes ghosts. A ghost is a copy of a thread that the fork loses, or of a ghost of an earlier fork. A ghost owns
    what the lost thread owned."""
    new_name = {name: f"{machine.ghost_of(name)}@{child}" for name in others}
    for name, ghost in new_name.items():
        state["t", ghost] = (child, *state["t", name][1:])
        if ("once", name) in state:
            state["once", ghost] = state["once", name]
    new_name[forker] = child
    for key, value in list(state.items()):
        if key[:2] == ("m", child):
            state[key] = rename(value, new_name)
    for key in [key for key in state if key[0] == "join" and key[1] in new_name]:
        state["join", new_name[key[1]]] = new_name.get(state[key], state[key])
    if state.get(("pool", child)) == "lost":
        state["pool", child] = "live"


def rename(value, new_name):
    if isinstance(value, tuple):
        return tuple(rename(part, new_name) for part in value)
    return new_name.get(value, value) if isinstance(value, str) else value


def become_anew(machine, state, process):
    """Makes the process a program that has just started. Its old memory, its handlers and the files that it had opened for locks
    are gone."""
    machine.drop_file(state, process)
    machine.drop_process_locks(state, process)
    for key in [key for key in state if key[0] in ("m", "h", "took", "stuck") and key[1] == process]:
        del state[key]
    for kind in ("fork", "way", "parent alarm", "atfork", "forks", "workers", "pool ended"):
        state.pop((kind, process), None)
    for key in [key for key in state if key[0] in ("once", "pool") and state["t", key[1]][0] == process]:
        del state[key]
    machine.fresh_memory(state, process)


def owns(value, thread):
    """True if the value is that of a mutex or rwlock that this thread owns. The first field of a mutex names the owner, the
    second field of a rwlock the writer."""
    return isinstance(value, tuple) and thread in value[:2]


def exec_again(machine, state, thread, _step, _stage):
    process = state["t", thread][0]
    # exec gives the calling thread the thread id of the first thread. Shared locks that the calling thread holds still
    # record its old id.
    has_shared = any(key[0] == "m" and key[1] == "" and owns(value, thread) for key, value in state.items())
    if has_shared and state["p", process][4] != thread:
        raise Undefined("exec changes the thread id of a thread that holds a shared lock")
    state["fd", process] -= machine.opening(state, process, thread)
    for other in machine.live_threads(state, process):
        if other != thread:
            state["t", other] = (process, *state["t", other][1:3], "gone")
    machine.robust_death(state, process, [key[1] for key, value in state.items() if key[0] == "t" and value[0] == process])
    become_anew(machine, state, process)
    state["noshared", process] = True
    state["p", process] = (*state["p", process][:4], thread)
    return on_through(machine, state, thread)


FORK_OPERATIONS = {"atfork": atfork, "fork": fork, "exec": exec_again}
