"""Finds all states that a scenario can reach: by the forced steps, by all orders of the free steps, and by events from outside."""
from machine import Machine
from scenario import STDIN
from undefined import Undefined

MAX_STATES = 6000
MAX_CLOSURE = 1500
ENOUGH = 3  # limit() reduces larger counts of bytes or posts to this number


class TooMany(Exception):
    """There are more states than the oracle examines."""


def key_of(state):
    return frozenset(state.items())


def finish(machine, state, thread, step):
    """Takes a forced step. The step must have exactly one result."""
    following = machine.moves(state, thread)
    if len(following) != 1:
        raise Undefined(f"{step}: {len(following)} possible results, expected 1")
    return settle_handlers(machine, following[0], thread)


def settle_handlers(machine, state, thread):
    """Runs the prepare handlers of a fork, until one waits or all have returned."""
    while isinstance(state["t", thread][2], tuple) and state["t", thread][2][0] == "prepare":
        following = machine.moves(state, thread)
        if not following:
            break
        state = following[0]
    return state


def begin(machine, state, thread, step):
    following = machine.moves(state, thread)
    if len(following) > 1:
        raise Undefined(f"{step}: several possible results")
    state = settle_handlers(machine, following[0], thread) if following else dict(state)
    if state["t", thread][2] is None:
        if following:
            raise Undefined(f"{step}: does not block")
        machine.set_stage(state, thread, "begun")
    if machine.moves(state, thread):
        raise Undefined(f"{step}: does not block")
    return state


def force(machine, state, index):
    """Returns the state after the forced step with this index."""
    step = machine.scenario.steps[index]
    thread = step.thread
    if ("t", thread) not in state or state["t", thread][3] != "live":
        raise Undefined(f"{step}: there is no such thread")
    if state["p", state["t", thread][0]][3]:
        raise Undefined(f"{step}: its process is stopped")
    if step.operation == "done":
        for _ in range(8):
            state = finish(machine, state, thread, step)
            if machine.index_of(state, thread) == index:
                break
    if machine.index_of(state, thread) != index:
        raise Undefined(f"{step}: an earlier step of the thread is not done")
    state = begin(machine, state, thread, step) if step.begins else finish(machine, state, thread, step)
    if not step.begins and state["t", thread][3] == "live" and state["t", thread][2] is not None:
        raise Undefined(f"{step}: it blocks")
    check_awoken(machine, state, index)
    return state


def check_awoken(machine, state, index):
    """Checks that at most one waiting thread was woken by the step, and that the next line is the `done` of this thread. Otherwise the
    order of the steps would depend on luck. Checks nothing after the last forced step."""
    awoken = [thread for thread in machine.live_threads(state)
              if "@" not in thread and state["t", thread][2] is not None and machine.moves(state, thread)]
    if not awoken or index + 1 == machine.scenario.forced:
        return
    following = machine.scenario.steps[index + 1]
    if len(awoken) > 1 or following.operation != "done" or following.thread != awoken[0]:
        raise Undefined(f"{awoken}: woken, but the next line is not their `done`")


def after_forced(machine):
    state = machine.initial()
    for index in range(machine.scenario.forced):
        state = force(machine, state, index)
    return state


# Operations whose result may depend on whether another thread has ended.
SEE_ENDS = {"fork", "init", "destroy", "drop", "make", "exec", "signal", "broadcast", "close", "open"}


def is_quiet(machine, state, thread):
    """True if the thread's next move is its end, and no remaining step of the other threads depends on when it ends."""
    process, _, stage, _ = state["t", thread]
    first = state["p", process][4]
    if stage is not None or machine.step_of(state, thread) is not None or first == thread or state["p", process][3]:
        return False
    if state["t", first][3] != "live":
        return False  # this thread may be the last thread of its process, and then its end ends the process
    return not any(machine.rest_of(state, other) & SEE_ENDS for other in machine.live_threads(state, process) if other != thread)


def next_states(machine, state):
    """Returns the states that may follow. If the order of some moves makes no difference, only one of their orders is tried."""
    for thread in machine.live_threads(state):
        if is_quiet(machine, state, thread):
            following = machine.moves(state, thread)
            if len(following) == 1:
                return following
    return machine.all_moves(state)


def terminals(machine, start, is_enough=lambda ends: False):
    """Tries all orders of the free steps. Returns the states in which no thread can move. Stops early if is_enough() returns True."""
    seen, frontier, ends = {key_of(start)}, [start], []
    while frontier:
        state = frontier.pop()
        following = next_states(machine, state)
        if not following:
            ends.append(state)
            if is_enough(ends):
                return ends
        for new in following:
            key = key_of(new)
            if key not in seen:
                seen.add(key)
                frontier.append(new)
        if len(seen) > MAX_STATES:
            raise TooMany
    return ends


def check_one_end(ends):
    """Checks that all orders of the free steps have the same end. terminals() calls this function for each new end.
    This function raises Undefined at the first end that differs."""
    if len(ends) > 1 and (projection(ends[0]), woken(ends[0])) != (projection(ends[-1]), woken(ends[-1])):
        raise Undefined("it ends in several ways")
    return False


def projection(state):
    """Returns what can be seen of a state from outside: how far each thread is, which processes ended and with which exit code,
    and which words `say` has written."""
    ended = {key[1] for key, value in state.items() if key[0] == "p" and value[1] != "live"}
    threads = {(key, "gone" if value[3] == "gone" or value[0] in ended else (*value[1::2], isinstance(value[2], tuple)))
               for key, value in state.items() if key[0] == "t"}
    processes = {(key, value[1:3]) for key, value in state.items() if key[0] == "p"}
    return frozenset(threads | processes | {(key, value) for key, value in state.items() if key[0] == "said"})


def woken(state):
    """Returns the waiters of condition variables that got a signal, and now wait for the mutex."""
    return {key[1] for key, value in state.items() if key[0] == "t" and value[2:] == ("signalled", "live")}


def end_paused(machine, state, process, thread):
    """Ends a process that waits in pause() and has no signal handler. The signal that ends the pause also ends the process."""
    machine.advance(state, thread)
    machine.end_process(state, process, 143)


def expire(state, name):
    del state["armed", name]
    state["k", name] += 1


def outside_events(machine, state):
    """Returns all events from outside that may still happen in this state: (name, function that changes a copy of the state)."""
    events = []
    for process in machine.processes(state):
        signals = {key[2] for key in state if key[0] == "h" and key[1] == process}
        paused = [thread for thread in machine.live_threads(state, process) if not machine.is_in_handler(state, thread)
                  and machine.step_of(state, thread) and machine.step_of(state, thread).operation == "pause"]
        if ("alarm", process) in state:
            events.append(("alarm", lambda new, process=process: machine.deliver(new, process, "alrm")))
        for signal in signals:
            events.append(("signal", lambda new, process=process, signal=signal: machine.deliver(new, process, signal)))
        if paused and not signals:
            events.append(("signal", lambda new, process=process, thread=paused[0]: end_paused(machine, new, process, thread)))
        if state["p", process][3]:
            events.append(("continue", lambda new, process=process: new.__setitem__(
                ("p", process), (*new["p", process][:3], False, new["p", process][4]))))
    for name in [key[1] for key in state if key[0] == "armed"]:
        events.append(("timer", lambda new, name=name: expire(new, name)))
    for thread in machine.live_threads(state):
        step = machine.step_of(state, thread) if not machine.is_in_handler(state, thread) else None
        if step and step.operation == "nap":
            events.append(("timer", lambda new, thread=thread: machine.advance(new, thread)))
        if step and step.operation == "read" and step.arguments[0] == STDIN:
            events.append(("input", lambda new, thread=thread: machine.advance(new, thread)))
    return events


def limit(state):
    """Limits counters, because signals may arrive without end. More posts or bytes than ENOUGH make no difference. A count of 1000 or
    more belongs to a pipe that `fill` has filled, and stays as it is."""
    for key, value in list(state.items()):
        if key[0] in ("k", "m") and isinstance(value, int) and ENOUGH < value < 1000:
            state[key] = ENOUGH


def has_gone_on(machine, state, thread, place):
    """True if the thread is past the step at `place`. A thread that was at the end of its list is past the step if the
    thread has ended."""
    _, _, _, status = state["t", thread]
    return machine.place_of(state, thread) > place or status != "live" and machine.step_of(state, thread) is None


def freed_by(machine, end, event_names):
    """Returns the threads that can get past their present step by some sequence of moves and of the given events."""
    waiting = {thread: machine.place_of(end, thread) for thread in machine.live_threads(end)}
    freed, seen, frontier = set(), {key_of(end)}, [end]
    while frontier and len(freed) < len(waiting):
        state = frontier.pop()
        following = machine.all_moves(state)
        for name, event in outside_events(machine, state):
            if name in event_names:
                new = dict(state)
                event(new)
                following.append(new)
        for new in following:
            limit(new)
            key = key_of(new)
            if key in seen:
                continue
            seen.add(key)
            frontier.append(new)
            freed |= {thread for thread, place in waiting.items() if has_gone_on(machine, new, thread, place)}
        if len(seen) > MAX_CLOSURE:
            raise TooMany
    return freed


def moves_of_ghosts(scenario):
    """Returns (machine, final states) of the world in which no fork loses a thread. If that world is undefined or too large,
    there are no states."""
    machine = Machine(scenario, ghosts=True)
    try:
        return machine, terminals(machine, after_forced(machine))
    except (Undefined, TooMany):
        return machine, []
