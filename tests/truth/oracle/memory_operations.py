"""Steps that use objects in memory: one function for each step.

A function gets the machine, a copy of the state that it may change, the thread, the step, and the stage of the step. It returns the
states that may follow. If it returns an empty list, the step blocks the thread."""
from ancestry import copy_of
from undefined import Undefined


def on_through(machine, state, thread):
    machine.advance(state, thread)
    return [state]


def begun(machine, state, thread, stage):
    machine.set_stage(state, thread, stage)
    return [state]


def place(machine, state, thread, step, argument=0):
    name = step.arguments[argument]
    key = "m", machine.store(state, thread, name), name
    if key not in state:
        raise Undefined("an object that does not exist is used")
    return key


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
            raise Undefined("pthread_cond_wait() locks a mutex that its thread already holds")
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
    """True if the owner called fork(), and the thread is the owner's copy in the child. Such a copy may unlock a mutex,
    unless the mutex checks its owner."""
    process = state["t", thread][0]
    record = state.get(("fork", process))
    return key[1] != "" and record is not None and state["p", process][4] == thread and record[1] == owner


def check_waiters_live(machine, state, store, names):
    for name in names:
        process, _, _, status = state["t", name]
        if status != "live" or (store != "" and process != store):
            raise Undefined("the object counts a waiter that does not exist")
    del machine


def rdlock(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    readers, writer, pending = state[key]
    check_waiters_live(machine, state, key[1], pending)
    if writer == thread:
        return on_through(machine, state, thread)  # the call fails with EDEADLK
    if writer is not None or (pending and readers and "writer" in machine.objects[key[2]].attributes):
        return []
    state[key] = (tuple(sorted(readers + (thread,))), None, pending)
    return on_through(machine, state, thread)


def wrlock(machine, state, thread, step, stage):
    key = place(machine, state, thread, step)
    readers, writer, pending = state[key]
    check_waiters_live(machine, state, key[1], pending)
    if writer == thread:
        return on_through(machine, state, thread)  # the call fails with EDEADLK
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
    """Calls __cxa_guard_acquire() for a static variable in a function. The first thread initialises the variable. Others wait for it."""
    key = place(machine, state, thread, step)
    status, owner = state[key]
    if status == "busy" and (owner == thread or copy_of(state, state["t", thread][0], owner) == ("copy", thread)):
        # libstdc++ throws an exception. If the process has ever had a second thread, libstdc++ hangs instead.
        raise Undefined("the initialiser of a static needs the same static")
    if status == "busy":
        return []
    if status == "free":
        state[key] = ("busy", thread)
    return on_through(machine, state, thread)


def gend(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    status, owner = state[key]
    if status != "busy" or owner != thread and not is_own_copy(machine, state, thread, key, owner):
        raise Undefined("the end of an initialisation that another thread began")
    state[key] = ("done", None)
    return on_through(machine, state, thread)


def obegin(machine, state, thread, step, _stage):
    """Calls pthread_once(). The steps up to `oend` are its routine. If the routine was in progress at a fork(), a thread of the child
    starts it again."""
    key = place(machine, state, thread, step)
    status, _, forks = state[key]
    mine = state.get(("forks", state["t", thread][0]), 0)
    if status == "busy" and forks == mine:
        return []
    if status != "done":
        state[key] = ("busy", thread, mine)
        state["once", thread] = state.get(("once", thread), ()) + (key[2],)
    return on_through(machine, state, thread)


def oend(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    status, owner, _ = state[key]
    within = state.get(("once", thread), ())
    if not within or within[-1] != key[2]:
        raise Undefined("the end of a routine that the thread is not in")
    if status != "busy" or owner != thread and not is_own_copy(machine, state, thread, key, owner):
        raise Undefined("the end of a routine that another thread began again")
    state["once", thread] = within[:-1]
    state[key] = ("done", None, 0)
    return on_through(machine, state, thread)


def region(machine, state, thread, _step, stage):
    """Runs a parallel region of two threads in libgomp. After the region, the second thread sleeps in the pool of this thread."""
    if state.get(("pool", thread)) == "lost":
        if ("stacks", state["t", thread][0]) in state:
            raise Undefined("libgomp writes into the stack of a lost worker, which another thread has now")
        return [] if stage is not None else begun(machine, state, thread, "begun")
    if "@" in thread:
        return on_through(machine, state, thread)
    state["pool", thread] = "live"
    return on_through(machine, state, thread)


def destroy(machine, state, thread, step, stage):
    """Frees the memory of the object. `drop` frees it without the call that destroys the object."""
    key = place(machine, state, thread, step)
    entry = machine.objects[key[2]]
    process = state["t", thread][0]
    if key[1] == "":
        raise Undefined("an object in shared memory is destroyed")
    if entry.kind == "mutex" and "robust" in entry.attributes and state[key][0] is not None:
        raise Undefined("a robust mutex is destroyed while it is in a list of libc")
    if any(is_live_in(state, process, name) for name in names_in(state[key])):
        raise Undefined("a live thread uses the object that is destroyed")
    for other in machine.live_threads(state, process):
        theirs = machine.step_of(state, other)
        if other != thread and theirs and key[2] in theirs.arguments and state["t", other][2] is not None:
            raise Undefined("a thread waits at the object that is destroyed")
    if entry.kind == "cond" and step.operation == "destroy" and names_in(state[key]):
        return begun(machine, state, thread, "stuck") if stage is None else []  # pthread_cond_destroy() waits for the lost waiters
    if key[2] in state.get(("once", thread), ()):
        raise Undefined("a pthread_once_t is destroyed while its routine runs")
    del state[key]
    state.pop(("took", key[1], key[2]), None)
    return on_through(machine, state, thread)


def names_in(value):
    """Returns the threads that an object in memory names."""
    if isinstance(value, tuple):
        return {name for part in value for name in names_in(part)}
    return {value} - {"busy", "free", "done"} if isinstance(value, str) else set()


def is_live_in(state, process, thread):
    return state["t", thread][0] == process and state["t", thread][3] == "live"


def make(machine, state, thread, step, _stage):
    """Makes an object at the address of a destroyed object."""
    entry, process = machine.objects[step.arguments[0]], state["t", thread][0]
    if not entry.at or entry.shared:
        raise Undefined("`make` of an object that is not declared `at` another object, or is shared")
    there = [other.name for other in machine.scenario.objects if entry.at in (other.name, other.at)]
    if any(("m", process, name) in state for name in there):
        raise Undefined("the object at that place still exists")
    state["m", process, entry.name] = machine.fresh_value(entry)
    return on_through(machine, state, thread)


def await_future(machine, state, thread, step, _stage):
    return on_through(machine, state, thread) if state[place(machine, state, thread, step)] else []


def fulfil(machine, state, thread, step, _stage):
    key = place(machine, state, thread, step)
    if state[key]:
        raise Undefined("a promise that is fulfilled twice")
    state[key] = 1
    return on_through(machine, state, thread)


def init(machine, state, thread, step, _stage):
    """Initialises the object again, as a child handler of pthread_atfork() does. The process may have no other thread at that
    moment."""
    key = place(machine, state, thread, step)
    if key[1] == "" or len(machine.live_threads(state, key[1])) != 1:
        raise Undefined("an object that other threads may use is initialised again")
    state[key] = machine.fresh_value(machine.objects[key[2]])
    state.pop(("took", key[1], key[2]), None)
    return on_through(machine, state, thread)


def say(machine, state, thread, step, _stage):
    state["said", step.arguments[0]] = state.get(("said", step.arguments[0]), 0) + 1
    return on_through(machine, state, thread)


def nothing(machine, state, thread, _step, _stage):
    return on_through(machine, state, thread)


MEMORY_OPERATIONS = {
    "lock": lock, "unlock": unlock, "rdlock": rdlock, "wrlock": wrlock, "rwunlock": rwunlock, "swait": swait, "post": post,
    "arrive": arrive, "fwait": fwait, "fset": fset, "init": init,
    "gbegin": gbegin, "gend": gend, "await": await_future, "fulfil": fulfil,
    "obegin": obegin, "oend": oend, "region": region, "destroy": destroy, "drop": destroy, "make": make,
    "say": say, "done": nothing,
}
