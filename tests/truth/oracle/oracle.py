"""Who is blocked for ever, on what, because of which loss or ring, and who could still end it."""
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
    kind: str                                   # of the object: "mutex", ..., "thread", "child"
    name: str                                   # of the object
    shared: bool = False                        # whether it lies in shared memory
    open_by: tuple = ()                         # what from outside could still end it; empty: it is blocked for ever
    cause: str = ""                             # of what is blocked for ever; causes.py says which there are
    lost: tuple = ()                            # lost threads that have to do with it
    peers: tuple = ()                           # live threads that could end it, were they not blocked themselves
    ring_kinds: frozenset = frozenset()         # of a ring: the kinds of its waits


@dataclass
class Truth:
    waits: dict = field(default_factory=dict)   # thread -> Wait, of all that are blocked at the end
    ended: dict = field(default_factory=dict)   # process -> exit code, of those that ended
    state: dict = field(default_factory=dict)
    attributes: dict = field(default_factory=dict)  # object -> the words after its name

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
    """A fork() that has not returned in the parent, or in the child; then the child's own steps have not started."""
    step = machine.step_of(state, thread)
    name = handler_mutex(state, thread, step)
    if machine.is_in_handler(state, thread):
        index = next(index for index, entry in enumerate(machine.scenario.steps) if entry.operation == "fork" and entry.arguments[0] == thread)
        return Wait(thread, state["t", thread][0], index, "atfork child", "mutex", name)
    return Wait(thread, state["t", thread][0], machine.index_of(state, thread), "fork", "mutex", name)


def judge(scenario, is_wanted=lambda truth: True):
    """The truth of a scenario. Undefined if the order of the free steps changes the truth. The causes are
    left out if the truth is not wanted, because they cost most."""
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
        raise Undefined("it is stopped, and blocked for ever besides")
    for thread in freed:
        truth.waits[thread].open_by = truth.waits[thread].open_by or ("several",)
    if truth.stuck() and is_wanted(truth):
        find_causes(machine, truth, moves_of_ghosts(scenario))
    return truth
