"""Steps over memory: one function for each.

It gets the machine, a copy of the state to change, the thread, the step, and its stage so far, and gives the states that
may follow; none means that the thread is blocked there."""
from causes import copy_of
from undefined import Undefined


def on_through(machine, state, thread):
    machine.advance(state, thread)
    return [state]


def begun(machine, state, thread, stage):
    machine.set_stage(state, thread, stage)
    return [state]


def place(machine, state, thread, step, argument=0):
    name = step.arguments[argument]
    return "m", machine.store(state, thread, name), name


def lock(machine, state, thread, step, _stage, argument=0):
    key = place(machine, state, thread, step, argument)
    owner, count, _ = state[key]
    attributes = machine.objects[key[2]].attributes
    if owner is None:
        state[key] = (thread, 1, False)
        return on_through(machine, state, thread)
    if owner == thread and "recursive" in attributes:
        state[key] = (owner, count + 1, False)
        return on_through(machine, state, thread)
    if owner == thread and "errorcheck" in attributes:
        if step.operation != "lock":
            raise Undefined("relock of a mutex that was given back")
        return on_through(machine, state, thread)
    return []


def unlock(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    owner, count, _ = state[key]
    attributes = machine.objects[key[2]].attributes
    checked = any(kind in attributes for kind in ("recursive", "errorcheck", "robust"))
    if owner is None:
        raise Undefined("unlock of a free mutex")
    if owner == thread and count > 1:
        state[key] = (owner, count - 1, False)
    elif owner == thread or (not checked and is_own_copy(machine, state, thread, key, owner)):
        state[key] = (None, 0, False)
    elif not checked:
        raise Undefined("unlock of another thread's mutex")
    return on_through(machine, state, thread)


def is_own_copy(_machine, state, thread, key, owner):
    """The thread held it when it forked itself: a mutex without a check may be given back."""
    process = state["t", thread][0]
    record = state.get(("fork", process))
    return key[1] != "" and record is not None and state["p", process][4] == thread and record[1] == owner


def check_waiters_live(machine, state, store, names):
    for name in names:
        process, _, _, status = state["t", name]
        if status != "live" or (store != "" and process != store):
            raise Undefined("somebody waits there that does not exist")
    del machine


def rdlock(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    readers, writer, pending = state[key]
    check_waiters_live(machine, state, key[1], pending)
    if writer == thread:
        return on_through(machine, state, thread)  # EDEADLK
    if writer is not None or (pending and readers and "writer" in machine.objects[key[2]].attributes):
        return []
    state[key] = (tuple(sorted(readers + (thread,))), None, pending)
    return on_through(machine, state, thread)


def wrlock(machine, state, thread, step, stage):
    key = place(machine, state, thread, step)
    readers, writer, pending = state[key]
    check_waiters_live(machine, state, key[1], pending)
    if writer == thread:
        return on_through(machine, state, thread)  # EDEADLK
    if readers or writer is not None:
        if stage is None:
            state[key] = (readers, writer, tuple(sorted(pending + (thread,))))
            return begun(machine, state, thread, "begun")
        return []
    state[key] = ((), thread, tuple(name for name in pending if name != thread))
    return on_through(machine, state, thread)


def rwunlock(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    readers, writer, pending = state[key]
    check_waiters_live(machine, state, key[1], pending)
    if writer == thread:
        state[key] = (readers, None, pending)
    elif writer is None and thread in readers:
        at = readers.index(thread)
        state[key] = (readers[:at] + readers[at + 1:], None, pending)
    else:
        raise Undefined("unlock of another thread's rwlock")
    return on_through(machine, state, thread)


def swait(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    if state[key] == 0:
        return []
    state[key] -= 1
    state["took", key[1], key[2]] = state.get(("took", key[1], key[2]), ()) + (thread,)
    return on_through(machine, state, thread)


def post(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    machine.post(state, key[1], key[2], thread)
    return on_through(machine, state, thread)


def cwait(machine, state, thread, step, stage):
    key = place(machine, state, thread, step)
    if stage == "signalled":
        return lock(machine, state, thread, step, stage, argument=1)
    if stage is not None:
        return []
    mutex = place(machine, state, thread, step, 1)
    check_waiters_live(machine, state, key[1], state[key])
    owner, count, _ = state[mutex]
    if owner != thread or count != 1:
        raise Undefined("wait without the mutex")
    state[mutex] = (None, 0, False)
    state[key] = state[key] + (thread,)
    return begun(machine, state, thread, "waits")


def signal(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    waiters = state[key]
    check_waiters_live(machine, state, key[1], waiters)
    machine.advance(state, thread)
    following = []
    for waiter in waiters:
        new = dict(state)
        new[key] = tuple(name for name in waiters if name != waiter)
        machine.set_stage(new, waiter, "signalled")
        following.append(new)
    return following or [state]


def broadcast(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    check_waiters_live(machine, state, key[1], state[key])
    for waiter in state[key]:
        machine.set_stage(state, waiter, "signalled")
    state[key] = ()
    return on_through(machine, state, thread)


def arrive(machine, state, thread, step, stage):
    key = place(machine, state, thread, step)
    if stage == "go":
        return on_through(machine, state, thread)
    if stage is not None:
        return []
    arrived, complete = state[key]
    if complete:
        raise Undefined("a second round of a barrier")
    arrived += (thread,)
    if len(arrived) < machine.objects[key[2]].number:
        state[key] = (arrived, False)
        return begun(machine, state, thread, "waits")
    state[key] = (arrived, True)
    for other in arrived[:-1]:
        process, _, _, status = state["t", other]
        if status == "live" and key[1] in ("", process):
            machine.set_stage(state, other, "go")
    return on_through(machine, state, thread)


def fwait(machine, state, thread, step, _stage):
    if state[place(machine, state, thread, step)] == int(step.arguments[1]):
        return []
    return on_through(machine, state, thread)


def fset(machine, state, thread, step, _stage):
    state[place(machine, state, thread, step)] = int(step.arguments[1])
    return on_through(machine, state, thread)


def gbegin(machine, state, thread, step, _stage):
    """The guard of a static inside of a function: the first one initialises it, all others wait for that one."""
    key = place(machine, state, thread, step)
    status, owner = state[key]
    if status == "busy" and (owner == thread or copy_of(state, state["t", thread][0], owner) == ("copy", thread)):
        raise Undefined("a static that needs itself")  # libstdc++ throws, or hangs once there were two threads
    if status == "busy":
        return []
    if status == "free":
        state[key] = ("busy", thread)
    return on_through(machine, state, thread)


def gend(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    status, owner = state[key]
    if status != "busy" or owner != thread and not is_own_copy(machine, state, thread, key, owner):
        raise Undefined("the end of what another thread initialises")
    state[key] = ("done", None)
    return on_through(machine, state, thread)


def await_future(machine, state, thread, step, _stage):
    return on_through(machine, state, thread) if state[place(machine, state, thread, step)] else []


def fulfil(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    if state[key]:
        raise Undefined("a promise that is kept twice")
    state[key] = 1
    return on_through(machine, state, thread)


def init(machine, state, thread, step, _stage):
    """Made anew, as a child handler of pthread_atfork() does. Nobody may use it at that moment."""
    key = place(machine, state, thread, step)
    if key[1] == "" or len(machine.live_threads(state, key[1])) != 1:
        raise Undefined("a lock that others may use is made anew")
    fresh = {}
    machine.fresh_memory(fresh, key[1])
    state[key] = fresh[key]
    state.pop(("took", key[1], key[2]), None)
    return on_through(machine, state, thread)


def say(machine, state, thread, step, _stage):
    state["said", step.arguments[0]] = state.get(("said", step.arguments[0]), 0) + 1
    return on_through(machine, state, thread)


def nothing(machine, state, thread, _step, _stage):
    return on_through(machine, state, thread)


MEMORY_OPERATIONS = {
    "lock": lock, "unlock": unlock, "rdlock": rdlock, "wrlock": wrlock, "rwunlock": rwunlock, "swait": swait, "post": post,
    "cwait": cwait, "signal": signal, "broadcast": broadcast, "arrive": arrive, "fwait": fwait, "fset": fset, "init": init,
    "gbegin": gbegin, "gend": gend, "await": await_future, "fulfil": fulfil,
    "say": say, "done": nothing,
}
