"""Computes the truth of a scenario: which threads are blocked for ever, in which waits, and why, and which waits may still end."""
from dataclasses import dataclass, field

from explore import after_forced, check_one_end, freed_by, moves_of_ghosts, outside_events, terminals
from fork_operations import handler_mutex
from machine import Machine
from undefined import Undefined

EVENTS = ("alarm", "signal", "continue", "timer", "input")
LOCKS = ("mutex", "rwlock")


@dataclass
class Wait:
    thread: str
    process: str
    step: int                                   # index into the scenario's steps
    operation: str
    kind: str                                   # kind of the object: "mutex", ..., "thread", "child"
    name: str                                   # name of the object
    shared: bool = False                        # whether it lies in shared memory
    open_by: tuple = ()                         # events from outside that could still end it; empty: the thread is blocked for ever
    cause: str = ""                             # why the thread is blocked for ever; causes.py lists the causes
    lost: tuple = ()                            # lost threads that are part of the cause
    peers: tuple = ()                           # live threads that could end the wait if they were not blocked themselves
    ring_kinds: frozenset = frozenset()         # the kinds of the waits in its ring


@dataclass
class Truth:
    waits: dict = field(default_factory=dict)   # thread -> Wait, of all threads that have not ended
    ended: dict = field(default_factory=dict)   # process -> exit code, of all processes that have ended
    state: dict = field(default_factory=dict)   # the state of the machine when no thread can move any more
    attributes: dict = field(default_factory=dict)  # object -> the words after its name in the scenario

    def stuck(self):
        return [wait for wait in self.waits.values() if not wait.open_by]

    def is_healthy(self):
        return not self.stuck()

    def is_over(self):
        return not self.waits


def object_of(step, machine):
    if step.operation == "join":
        return "thread", step.arguments[0]
    if step.operation == "wait":
        return "child", step.arguments[0]
    if step.operation in ("pause", "nap"):
        return step.operation, ""
    if step.operation == "region":
        return "pool", ""
    if step.arguments[0] == "stdin":
        return "input", "stdin"
    return machine.objects[step.arguments[0]].kind, step.arguments[0]


def wait_of(machine, state, thread):
    step = machine.step_of(state, thread)
    process = state["t", thread][0]
    if state["p", process][3]:
        return Wait(thread, process, -1, step.operation if step else "end", "stopped", "", open_by=("continue",))
    if isinstance(state["t", thread][2], tuple):
        return wait_in_handler(machine, state, thread)
    kind, name = object_of(step, machine)
    if step.operation == "cwait" and state["t", thread][2] == "signalled":
        kind, name = "mutex", step.arguments[1]
    return Wait(thread, process, machine.index_of(state, thread), step.operation, kind, name, name in machine.objects and machine.objects[name].shared)


def wait_in_handler(machine, state, thread):
    """Returns the wait of a thread in an atfork handler: a prepare handler waits in the parent, a child handler waits in the child."""
    step = machine.step_of(state, thread)
    name = handler_mutex(state, thread, step)
    if machine.is_in_handler(state, thread):
        index = next(index for index, entry in enumerate(machine.scenario.steps) if entry.operation == "fork" and entry.arguments[0] == thread)
        return Wait(thread, state["t", thread][0], index, "atfork child", "mutex", name)
    return Wait(thread, state["t", thread][0], machine.index_of(state, thread), "fork", "mutex", name)


def judge(scenario, is_wanted=lambda truth: True):
    """Returns the truth of a scenario. Raises Undefined if the scenario has no single truth. If is_wanted() returns False, does
    not compute the causes, because the causes take the most time."""
    from causes import find_causes  # causes.py uses the classes above

    machine = Machine(scenario)
    end = terminals(machine, after_forced(machine), check_one_end)[0]
    truth = Truth(state=end, attributes={entry.name: entry.attributes for entry in scenario.objects})
    truth.ended = {key[1]: value[2] for key, value in end.items() if key[0] == "p" and value[1] != "live"}
    if "main" in truth.ended and len(truth.ended) < sum(1 for key in end if key[0] == "p"):
        raise Undefined("children outlive the program")
    for thread in machine.live_threads(end):
        truth.waits[thread] = wait_of(machine, end, thread)
    names = {name for name, _ in outside_events(machine, end)}
    freed = freed_by(machine, end, EVENTS)
    for event in EVENTS:
        alone = freed_by(machine, end, (event,)) if names else ()
        for thread in alone:
            if event not in truth.waits[thread].open_by:
                truth.waits[thread].open_by += (event,)
    if any(wait.kind == "stopped" and wait.operation != "end" and thread not in freed for thread, wait in truth.waits.items()):
        raise Undefined("a thread is stopped, and also blocked for ever")
    for thread in freed:
        truth.waits[thread].open_by = truth.waits[thread].open_by or ("several",)
    if truth.stuck() and is_wanted(truth):
        find_causes(machine, truth, moves_of_ghosts(scenario))
    return truth
