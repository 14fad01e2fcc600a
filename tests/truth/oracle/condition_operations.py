"""Condition variables as in glibc 2.36. memory_operations.py describes the arguments and results of the functions.

A condition variable has two groups of waiters. A new waiter joins the second group. A signal goes to the first group as long as a
waiter of that group lacks a signal. If no waiter of the first group lacks a signal, and the second group has waiters, the caller of
the next signal first waits until all waiters have left the first group. Then the second group becomes the first group. A lost waiter
never leaves its group.

The state has one value for each condition variable. This value is a tuple: the threads in the first group, how many of them lack a
signal, and the threads in the second group."""
from memory_operations import begun, check_waiters_live, lock, on_through, place
from undefined import Undefined


def is_here(state, store, thread):
    """True if a waiter is a live thread that uses this memory. Otherwise the waiter is a lost thread, or has ended."""
    process, _, _, status = state["t", thread]
    return status == "live" and store in ("", process)


def lost_waiters(state, key):
    first, _, second = state[key]
    return tuple(name for name in first + second if not is_here(state, key[1], name))


def check_shared(machine, state, key):
    if key[1] == "":
        check_waiters_live(machine, state, "", lost_waiters(state, key))


def cwait(machine, state, thread, step, stage):
    key = place(machine, state, thread, step)
    if stage == "signalled":
        return lock(machine, state, thread, step, stage, argument=1)
    if stage is not None:
        return []
    check_shared(machine, state, key)
    mutex = place(machine, state, thread, step, 1)
    owner, count, _ = state[mutex]
    if owner != thread or count != 1:
        raise Undefined("wait without the mutex")
    state[mutex] = (None, 0, False)
    first, lacking, second = state[key]
    state[key] = (first, lacking, second + (thread,))
    return begun(machine, state, thread, "waits")


def signalled(machine, state, key, first, lacking, second):
    """Returns the states after a signal to the first group. Each live waiter of the group may get it. If the group has no live
    waiter, the signal is lost."""
    takers = [name for name in first if is_here(state, key[1], name)]
    following = []
    for taker in takers:
        new = dict(state)
        new[key] = (tuple(name for name in first if name != taker), lacking - 1, second)
        machine.set_stage(new, taker, "signalled")
        following.append(new)
    if not takers:
        state[key] = (first, lacking - 1, second)
        following.append(state)
    return following


def is_stuck(state, key):
    """True if a thread is in a signal or broadcast that never returns. Such a thread holds the internal lock of the condition
    variable."""
    return ("stuck", *key[1:]) in state


def stick(machine, state, thread, key):
    state["stuck", key[1], key[2]] = thread
    return begun(machine, state, thread, "stuck")


def signal(machine, state, thread, step, stage):
    key = place(machine, state, thread, step)
    check_shared(machine, state, key)
    if stage == "stuck":
        return []
    first, lacking, second = state[key]
    if not first and not second:
        return on_through(machine, state, thread)
    if is_stuck(state, key):
        return []
    if lacking == 0:
        if not second:
            return on_through(machine, state, thread)
        if first:
            return stick(machine, state, thread, key)
        first, lacking, second = second, len(second), ()
    machine.advance(state, thread)
    return signalled(machine, state, key, first, lacking, second)


def broadcast(machine, state, thread, step, stage):
    key = place(machine, state, thread, step)
    check_shared(machine, state, key)
    if stage == "stuck":
        return []
    first, lacking, second = state[key]
    if not first and not second:
        return on_through(machine, state, thread)
    if is_stuck(state, key):
        return []
    if lacking:
        first = wake(machine, state, key, first)
    state[key] = (first, 0, second)
    if not second:
        return on_through(machine, state, thread)
    if first:
        return stick(machine, state, thread, key)
    state[key] = (wake(machine, state, key, second), 0, ())
    return on_through(machine, state, thread)


def wake(machine, state, key, names):
    """Sends a signal to each live waiter. Returns the lost waiters, which stay in the group."""
    for name in names:
        if is_here(state, key[1], name):
            machine.set_stage(state, name, "signalled")
    return tuple(name for name in names if not is_here(state, key[1], name))


CONDITION_OPERATIONS = {"cwait": cwait, "signal": signal, "broadcast": broadcast}
