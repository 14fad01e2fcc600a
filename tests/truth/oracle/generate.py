"""Generates a scenario from a seed. A random walk through the machine gives the forced steps. Random free steps follow. The oracle
refuses the scenario if its end depends on luck, or if its behaviour is undefined.

Each attempt draws its own weights for the kinds of steps, and many weights are zero. So a scenario lacks many kinds of steps, and
steps of the remaining kinds interact more often. If 3 divides the seed, the scenario is healthy. All other seeds give scenarios that hang."""
import random
from dataclasses import dataclass

from explore import TooMany, force
from machine import Machine
from oracle import judge
from scenario import Object, Scenario, Step
from undefined import Undefined

MAX_THREADS = 4
MAX_PROCESSES = 4
MAX_HANDLERS = 4  # the player has functions for this many atfork handlers
TRIES = 2000
PATIENCE = 200  # after this many attempts the special subject is no longer required; after twice as many, fork and threads are no longer required
MUTEX_KINDS = ((), (), (), ("recursive",), ("errorcheck",), ("adaptive",), ("robust",))
SIGNALS = ("usr1", "term", "alrm")

# The weight of each step. Each attempt multiplies each weight by a random factor.
WEIGHTS = {
    "lock": 6, "unlock": 4, "rdlock": 2, "wrlock": 2, "rwunlock": 2, "swait": 4, "post": 3, "cwait": 3, "signal": 2, "broadcast": 1,
    "arrive": 1, "fwait": 2, "fset": 1, "init": 0.3, "read": 3, "write": 2, "fill": 0.3, "close": 2, "flock": 1, "funlock": 1,
    "create": 6, "join": 1, "fork": 4, "wait": 1, "handle": 1, "kill": 1, "stop": 0.3, "pause": 0.5, "alarm": 0.5, "nap": 0.5,
    "exec": 0.3, "exit": 0.3, "_exit": 0.3, "end": 0.5, "say": 0.5, "gbegin": 2, "gend": 1, "await": 2, "fulfil": 1,
    "itimer": 0.3, "arm": 1, "open": 3, "plock": 1, "punlock": 0.5, "olock": 1, "ounlock": 0.5, "send": 2, "receive": 2,
    "obegin": 2, "oend": 1, "atfork": 1, "region": 0.7, "destroy": 1, "drop": 1, "make": 4,
}
# Ways to fork; () is fork() itself. Ways that start a new program are rare, because a child that is a copy of its parent reaches more
# unusual states.
WAYS = ((),) * 12 + (("_Fork",),) * 3 + (("forkpty",), ("daemon",), ("vfork",), ("spawn",))
# Only objects of these kinds are destroyed, and only objects of these kinds are made in the memory of a destroyed object.
REUSED = ("mutex", "rwlock", "sem", "cond", "barrier", "word", "guard", "future")
TAKES = {
    "lock": ("mutex",), "unlock": ("mutex",), "rdlock": ("rwlock",), "wrlock": ("rwlock",), "rwunlock": ("rwlock",), "swait": ("sem",),
    "post": ("sem",), "signal": ("cond",), "broadcast": ("cond",), "arrive": ("barrier",), "write": ("pipe", "socket", "eventfd", "fifo"),
    "fill": ("pipe", "socket", "fifo"), "flock": ("file",), "funlock": ("file",), "init": ("mutex", "rwlock", "sem"),
    "gbegin": ("guard",), "gend": ("guard",), "await": ("future",), "fulfil": ("future",), "arm": ("timerfd",),
    "plock": ("file",), "punlock": ("file",), "olock": ("file",), "ounlock": ("file",), "receive": ("channel",), "obegin": ("once",),
    "oend": ("once",), "destroy": REUSED, "drop": REUSED,
}
HANDLERS = ("keep", "keep", "renew", "child")


# What each special subject needs: (kinds of objects, steps). A subject is a cause, an event that may still come, or a group of steps. A
# walk for the subject has these objects, and takes these steps often.
NEEDS = {
    "self-deadlock": ((), ("lock",)), "upgrade": (("rwlock",), ("rdlock", "wrlock")), "self-held": ((), ("lock", "fork")),
    "relock": ((), ("lock", "fork")), "orphan": ((), ("lock", "create", "fork")), "ended-holder": ((), ("lock", "create", "end")),
    "abandoned": (("shared",), ("lock", "fork", "exit")), "lost-waker": ((), ("create", "fork")), "files": (("file", "file"), ("flock", "olock", "plock", "fork")),
    "bytes": (("pipe",), ("read", "fork")), "passing": (("pipe", "channel"), ("send", "fork", "read", "close")), "lost-pool": ((), ("region", "fork")),
    "lost-waiter": (("cond",), ("lock", "cwait", "create", "fork")), "reuse": (("place",), ("destroy", "drop", "make", "lock", "create", "fork")),
    "handler": ((), ("atfork", "lock", "create", "fork")), "once": (("once",), ("obegin", "fork", "create")), "timer": ((), ("nap", "arm")),
    "alarm": ((), ("handle", "alarm")), "signal": ((), ("handle", "pause")), "continue": ((), ("fork", "stop")), "input": ((), ("read",)),
    "condition": (("cond",), ("lock", "cwait", "create", "signal")), "barrier": (("barrier",), ("arrive", "create")),
}


# The first steps of many walks for a subject. "main" is the first thread, "T" the newest thread, "P" the newest process.
# A step that names an object which the walk does not have is left out.
PRELUDES = {
    "lost-waiter": ("main create T", "T lock m0", "T cwait c0 m0", "main fork P", "P signal c0", "P create T", "T lock m0", "T cwait c0 m0"),
    "passing": ("main fork P", "main send x0 q0 w", "main close q0 w", "P close q0 w"),
    "files": ("main fork P", "main flock f0", "P flock f1"),
    "reuse": ("main create T", "T lock m0", "main fork P", "P drop m0", "P make n0"),
    "handler": ("main atfork keep m0", "main create T"),
    "once": ("main create T", "T obegin o0", "main fork P"),
    "abandoned": ("main fork P", "P lock m0"),
    "lost-pool": ("main region", "main fork P"),
}


class Walk:
    def __init__(self, rng, special=""):
        self.rng = rng
        self.weights = {name: weight * rng.choice((0, 0.3, 1, 1, 3)) for name, weight in WEIGHTS.items()}
        self.weights["create"] = max(self.weights["create"], 1)
        kinds, steps = NEEDS.get(special, ((), ()))
        for name in steps:
            self.weights[name] = max(self.weights[name], 3)
        self.ways = WAYS if rng.random() < 0.5 else ((),)
        self.scenario = Scenario(objects=random_objects(rng, kinds))
        self.runner = Machine(self.scenario)
        self.state = self.runner.initial()
        self.count = 0

    def machine(self):
        """Returns the machine for the present scenario."""
        if self.runner.scenario is not self.scenario:
            self.runner = Machine(self.scenario)
        return self.runner

    def names(self, *kinds):
        return [entry.name for entry in self.scenario.objects if entry.kind in kinds]

    def arguments(self, thread, operation):
        """Returns random arguments for a step; None if there is no object that the step can use."""
        rng, process = self.rng, self.state["t", thread][0]
        if operation in TAKES:
            names = self.names(*TAKES[operation])
            return (rng.choice(names),) if names else None
        if operation == "cwait":
            conditions, mutexes = self.names("cond"), self.names("mutex")
            return (rng.choice(conditions), rng.choice(mutexes)) if conditions and mutexes else None
        if operation in ("fwait", "fset"):
            words = self.names("word")
            return (rng.choice(words), "0" if operation == "fwait" else "1") if words else None
        if operation == "read":
            return (rng.choice(self.names("pipe", "socket", "eventfd", "timerfd", "fifo") + ["stdin"]),)
        if operation == "send":
            channels, ends = self.names("channel"), self.names("pipe", "socket")
            return (rng.choice(channels), rng.choice(ends), rng.choice("rww")) if channels and ends else None
        if operation == "atfork":
            names = [entry.name for entry in self.scenario.objects if entry.kind == "mutex" and not entry.shared]
            taken = sum(1 for step in self.scenario.steps if step.operation == "atfork")
            return (rng.choice(HANDLERS), rng.choice(names)) if names and taken < MAX_HANDLERS else None
        if operation == "make":
            names = [entry.name for entry in self.scenario.objects if entry.at]
            return (rng.choice(names),) if names else None
        if operation == "open":
            names = self.names("fifo")
            return (rng.choice(names), rng.choice("rw")) if names else None
        if operation == "close":
            names = self.names("pipe", "socket", "fifo", "channel")
            return (rng.choice(names), rng.choice("rww")) if names else None
        return self.process_arguments(thread, process, operation)

    def process_arguments(self, thread, process, operation):
        rng = self.rng
        machine = self.machine()
        if operation in ("create", "fork"):
            letter, most = ("t", MAX_THREADS) if operation == "create" else ("p", MAX_PROCESSES)
            if sum(1 for key in self.state if key[0] == "t" and key[1][0] == letter) >= most:
                return None
            self.count += 1
            return (f"{letter}{self.count}", *(rng.choice(self.ways) if operation == "fork" else ()))
        if operation == "join":
            others = [key[1] for key, value in self.state.items() if key[0] == "t" and value[0] == process and key[1] != thread]
            return (rng.choice(others),) if others else None
        if operation in ("wait", "stop", "kill"):
            known = [name for name in self.processes_known() if name != "main" or operation == "kill"]
            if not known:
                return None
            return (rng.choice(known),) + ((rng.choice(SIGNALS),) if operation == "kill" else ())
        if operation == "handle":
            actions = [("nop",)] + [("post", name) for name in self.names("sem")] + [("write", name) for name in self.names("pipe", "eventfd")] + [("set", name) for name in self.names("word")]
            return (rng.choice(SIGNALS), *rng.choice(actions))
        if operation in ("exit", "_exit"):
            return (str(rng.choice((0, 3))),) if process != "main" else None
        del machine
        return (f"{thread}.{len(self.scenario.steps)}",) if operation == "say" else ()

    def processes_known(self):
        return [key[1] for key in self.state if key[0] == "p"]

    def draw(self, thread):
        operation = self.rng.choices(list(self.weights), list(self.weights.values()))[0]
        arguments = self.arguments(thread, operation)
        return None if arguments is None else Step(thread, operation, arguments)

    # -- forced steps

    def try_step(self, step):
        """Appends the step. If the step blocks, appends it with "!". If a step wakes a thread, also appends the `done` of that thread. If
        the step is undefined, or its result is not certain, appends nothing, and returns False."""
        scenario, state = self.scenario, self.state
        for begins in (False, True):
            self.scenario = Scenario(scenario.objects, scenario.steps + [Step(step.thread, step.operation, step.arguments, begins)])
            try:
                self.state = self.forced_state(state)
                self.finish_awoken()
                return True
            except (Undefined, KeyError):
                self.scenario, self.state = scenario, state
        return False

    def forced_state(self, state):
        self.scenario.forced = len(self.scenario.steps)
        return force(self.machine(), state, self.scenario.forced - 1)

    def finish_awoken(self):
        for _ in range(6):
            machine = self.machine()
            awoken = [name for name in machine.live_threads(self.state) if self.state["t", name][2] is not None and machine.moves(self.state, name)]
            if not awoken:
                return
            if len(awoken) > 1:
                raise Undefined("several threads are woken")
            self.scenario = Scenario(self.scenario.objects, self.scenario.steps + [Step(awoken[0], "done")])
            self.state = self.forced_state(self.state)
        raise Undefined("too many threads are woken")

    def begin(self, special):
        """Appends the steps of the prelude that are possible."""
        now = {"main": "main"}
        for text in PRELUDES.get(special, ()):
            words = text.split()
            if words[1] in ("create", "fork"):
                self.count += 1
                now[words[2]] = f"{words[2].lower()}{self.count}"
            thread, operation, *arguments = [now.get(word, word) for word in words]
            known = {entry.name for entry in self.scenario.objects}
            if thread in ("T", "P") or any(word[0] in "mcfxno" and word[1:].isdigit() and word not in known for word in arguments):
                continue
            arguments += list(self.rng.choice(self.ways)) if operation == "fork" else []
            self.try_step(Step(thread, operation, tuple(arguments)))

    def walk(self, steps):
        for _ in range(steps * 4):
            ready = [name for name in self.machine().live_threads(self.state)
                     if self.state["t", name][2] is None and not self.state["p", self.state["t", name][0]][3]]
            if not ready or len(self.scenario.steps) >= steps:
                return
            step = self.draw(self.rng.choice(ready))
            if step is not None:
                self.try_step(step)

    # -- free steps

    def held_by(self, thread):
        """Returns steps that release all locks and semaphores of the thread, and end the initialisations and routines that it is in."""
        steps = []
        for key, value in self.state.items():
            if key[0] == "m" and self.scenario.object(key[2]).kind == "mutex" and value[0] == thread:
                steps += [Step(thread, "unlock", (key[2],))] * value[1]
            if key[0] == "m" and value == ("busy", thread):
                steps.append(Step(thread, "gend", (key[2],)))
            if key[0] == "took" and thread in value:
                steps.append(Step(thread, "post", (key[2],)))
            if key[0] in ("flock", "fcntl") and value in self.files_of(thread, key[1]):
                steps.append(Step(thread, {"flock": "funlock", "process": "punlock", "file": "ounlock"}["flock" if key[0] == "flock" else value[0]], (key[1],)))
            if key[0] == "m" and self.scenario.object(key[2]).kind == "rwlock" and (value[1] == thread or thread in value[0]):
                steps.append(Step(thread, "rwunlock", (key[2],)))
        return steps + [Step(thread, "oend", (name,)) for name in reversed(self.state.get(("once", thread), ()))]

    def files_of(self, thread, name):
        """Returns the owners under which the thread's process could hold a lock of this file: the open file for flock(), and the
        process or the open file for fcntl()."""
        process = self.state["t", thread][0]
        description = self.state.get(("desc", process, name), "none")
        return description, ("process", process), ("file", description)

    def wants_of(self, thread):
        """Returns steps that may wait in the present state: for example for a held lock, a semaphore at zero or a barrier."""
        process = self.state["t", thread][0]
        wanted = [("flock", key[1]) for key, value in self.state.items() if key[0] == "flock" and value != self.state.get(("desc", process, key[1]))]
        wanted += [(self.rng.choice(("plock", "olock")), key[1]) for key, value in self.state.items()
                   if key[0] == "fcntl" and value not in self.files_of(thread, key[1])]
        wanted += [("region",)] if self.state.get(("pool", thread)) == "lost" else []
        for key, value in self.state.items():
            kind = self.scenario.object(key[2]).kind if key[0] == "m" else ""
            if key[0] != "m" or key[1] not in ("", self.state["t", thread][0]):
                continue
            if kind == "mutex" and value[0] is not None:
                wanted.append(("lock", key[2]))
            elif kind == "rwlock" and value[1] is not None:
                wanted.append((self.rng.choice(("rdlock", "wrlock")), key[2]))
            elif kind == "rwlock" and value[0]:
                wanted.append(("wrlock", key[2]))
            elif kind == "sem" and value == 0:
                wanted.append(("swait", key[2]))
            elif kind == "word" and value == 0:
                wanted.append(("fwait", key[2], "0"))
            elif kind in ("guard", "once") and value[0] == "busy":
                wanted.append(("gbegin" if kind == "guard" else "obegin", key[2]))
            elif kind == "cond" and value[0] + value[2]:
                wanted.append((self.rng.choice(("signal", "broadcast")), key[2]))
            elif kind == "future" and value == 0:
                wanted.append(("await", key[2]))
            elif kind == "barrier":
                wanted.append(("arrive", key[2]))
        return [Step(thread, words[0], words[1:]) for words in wanted]

    def answers_to(self, thread, asked):
        """Returns steps of this thread that may end waits of other threads. Some of them do not, for example because the
        threads share no memory."""
        asked = [step for step in asked if not (step.operation == "read" and step.arguments[0] in self.names("timerfd"))]
        answer = {"swait": "post", "arrive": "arrive", "read": "write", "cwait": "signal", "await": "fulfil"}
        steps = [Step(thread, "send", (step.arguments[0], *self.rng.choice(ends))) for step in asked
                 for ends in [[(name, end) for name in self.names("pipe", "socket") for end in "rw"]] if step.operation == "receive" and ends and step.thread != thread]
        steps += [Step(thread, answer[step.operation], step.arguments[:1]) for step in asked
                 if step.operation in answer and step.arguments[0] != "stdin" and step.thread != thread]
        steps += [Step(thread, "open", (step.arguments[0], "w" if step.arguments[1] == "r" else "r")) for step in asked
                  if step.operation == "open" and step.thread != thread]
        return steps + [Step(thread, "fset", (step.arguments[0], "1")) for step in asked if step.operation == "fwait" and step.thread != thread]

    def free_steps_of(self, thread, asked):
        rng = self.rng
        steps = [step for step in (self.draw(thread) for _ in range(rng.choice((0, 0, 1, 2)))) if step is not None]
        wants = self.wants_of(thread)
        if wants and rng.random() < (0.6 if thread[0] == "p" else 0.15):
            steps.append(rng.choice(wants))
        answers = self.answers_to(thread, asked)
        if answers and rng.random() < 0.6:
            steps.append(rng.choice(answers))
        if rng.random() < 0.75:
            steps = steps + self.held_by(thread) if rng.random() < 0.5 else self.held_by(thread) + steps
        return steps + self.awaited_by(thread, steps)

    def awaited_by(self, thread, steps):
        """Returns steps in which the first thread of a process waits for its children (in most cases) and for its other threads
        (in half of the cases)."""
        rng = self.rng
        process = self.state["t", thread][0]
        if self.state["p", process][4] != thread:
            return []
        known = [(step.operation, *step.arguments[:1]) for step in steps]
        children = [key[1] for key, value in self.state.items() if key[0] == "p" and value[0] == process and value[1] != "reaped"]
        others = [name for name in self.machine().live_threads(self.state, process) if name != thread and ("join", name) not in self.state]
        awaited = [("wait", child) for child in children] if rng.random() < 0.9 else []
        awaited += [("join", other) for other in others] if rng.random() < 0.5 else []
        return [Step(thread, *words[:1], words[1:]) for words in awaited if words not in known]

    def add_free_steps(self):
        threads = [name for name in self.machine().live_threads(self.state)]
        self.rng.shuffle(threads)
        asked = [step for step in self.scenario.steps if step.begins]
        lists = {}
        # The first threads of children get their steps first. The other threads may then get steps that end the waits of these threads.
        for thread in sorted(threads, key=lambda name: name[0] != "p"):
            lists[thread] = self.free_steps_of(thread, asked)
            asked += lists[thread]
        steps = [step for thread in threads for step in lists[thread] if step.operation not in ("create", "fork")]
        self.scenario = Scenario(self.scenario.objects, self.scenario.steps + steps, len(self.scenario.steps))


def random_objects(rng, needed=()):
    """Returns objects of random kinds, and of all needed kinds."""
    shared = lambda: rng.random() < (0.6 if "shared" in needed else 0.15)  # noqa: E731

    def count(kind, *counts):
        return max(rng.choice(counts), needed.count(kind))

    objects = [Object("mutex", f"m{i}", rng.choice(MUTEX_KINDS), shared()) for i in range(count("mutex", 1, 1, 2, 3))]
    objects += [Object("sem", f"s{i}", (), shared(), rng.choice((0, 0, 1))) for i in range(count("sem", 0, 1, 1, 2))]
    objects += [Object("rwlock", "r0", rng.choice(((), ("writer",))), shared())] * count("rwlock", 0, 0, 1)
    objects += [Object("cond", "c0", (), False)] * count("cond", 0, 1)
    objects += [Object("barrier", "b0", (), shared(), rng.choice((2, 2, 3)))] * count("barrier", 0, 0, 1)
    objects += [Object("word", "w0", (), shared(), 0)] * count("word", 0, 0, 1)
    objects += [Object("guard", "g0")] * count("guard", 0, 0, 1)
    objects += [Object("once", "o0")] * count("once", 0, 0, 1)
    objects += [Object("future", "u0")] * count("future", 0, 0, 1)
    objects += [Object(rng.choice(("pipe", "pipe", "socket")), "q0")] * count("pipe", 0, 1)
    objects += [Object("pipe", "q1")] * rng.choice((0, 0, 1))
    objects += [Object("eventfd", "e0", (), False, 0)] * rng.choice((0, 0, 0, 1))
    objects += [Object("fifo", "i0")] * rng.choice((0, 0, 0, 1))
    objects += [Object("timerfd", "d0")] * rng.choice((0, 0, 0, 1))
    objects += [Object("file", f"f{i}") for i in range(count("file", 0, 0, 0, 1, 2))]
    objects += [Object("channel", "x0")] * count("channel", 0, 0, 0, 1)
    return objects + reusing(rng, objects, "place" in needed)


def reusing(rng, objects, certainly):
    """Returns a list with at most one object. That object gets the memory of another object."""
    places = [entry for entry in objects if entry.kind in REUSED and not entry.shared]
    if not places or not certainly and rng.random() < 0.6:
        return []
    place, kind = rng.choice(places), rng.choice(REUSED)
    number = {"sem": rng.choice((0, 1)), "barrier": 2}.get(kind, 0)
    attributes = {"mutex": rng.choice(MUTEX_KINDS), "rwlock": rng.choice(((), ("writer",)))}.get(kind, ())
    return [Object(kind, "n0", attributes, False, number, place.name)]


def used(scenario):
    """Returns the scenario without the objects that no step uses."""
    names = {word for step in scenario.steps for word in step.arguments}
    names |= {entry.at for entry in scenario.objects if entry.name in names}
    return Scenario([entry for entry in scenario.objects if entry.name in names], scenario.steps, scenario.forced)


CAUSES = ("self-deadlock", "upgrade", "self-held", "relock", "orphan", "orphan", "ended-holder", "abandoned", "lost-waker", "lost-waker",
          "ring", "ring", "no-waker", "no-waker", "lost-pool", "lost-waiter", "files", "bytes", "passing", "reuse", "handler", "once", "condition")
ENDS = ("over", "over", "input", "signal", "timer", "alarm", "continue", "files", "passing", "reuse", "handler", "once", "condition", "lost-pool")
USED = {  # subject -> steps: a scenario with one of these steps is about the subject
    "passing": {"send"}, "reuse": {"make"}, "handler": {"atfork"}, "once": {"obegin"}, "condition": {"cwait"}, "barrier": {"arrive"},
    "lost-pool": {"region"},
}


@dataclass(frozen=True)
class Wish:
    """What the scenario of a seed should have. `healthy` says whether it must be healthy or must hang. `fork` and
    `threads` say whether it must have a fork, and a second thread. `special` is its special subject. After many attempts
    `special` is no longer required. After twice as many, `fork` and `threads` are no longer required."""
    healthy: bool
    fork: bool
    threads: bool
    special: str

    def may_be_granted(self, scenario, attempt):
        """True if the steps of the scenario do not rule out that the scenario fulfils the wish. This check is cheaper
        than computing the truth."""
        operations = {step.operation for step in scenario.steps}
        if len(scenario.steps) < 3 or attempt < 2 * PATIENCE and (self.fork and "fork" not in operations or self.threads and "create" not in operations):
            return False
        return attempt >= PATIENCE or self.special not in USED or bool(USED[self.special] & operations)

    def wants(self, truth):
        return truth.is_healthy() == self.healthy

    def is_granted(self, scenario, truth, attempt):
        if not self.healthy and all(wait.cause == "victim" for wait in truth.stuck()):
            return False
        return attempt >= PATIENCE or self.special in specials(scenario, truth)


def specials(scenario, truth):
    """Returns the special subjects of a scenario: its causes, the events that may still come, and subjects of its steps and objects."""
    found = {wait.cause for wait in truth.stuck()} | {event for wait in truth.waits.values() for event in wait.open_by}
    found |= {special for special, steps in USED.items() if any(step.operation in steps for step in scenario.steps) and special != "lost-pool"}
    kinds = {wait.kind for wait in truth.stuck()}
    found |= {"files"} if "file" in kinds or truth.is_healthy() and scenario.has("flock", "plock", "olock") else set()
    found |= {"bytes"} if kinds & {"pipe", "socket", "channel", "eventfd", "fifo"} else set()
    found |= {"lost-pool"} if truth.is_healthy() and scenario.has("region") else set()
    return found | ({"over"} if truth.is_over() else set())


def wish_of(rng, seed):
    healthy = seed % 3 == 0
    return Wish(healthy, rng.random() < 0.8, rng.random() < 0.7, rng.choice(ENDS if healthy else CAUSES))


def wish_for(seed):
    return wish_of(random.Random(seed), seed)


def scenario_of(seed, attempt, wish):
    """Returns the scenario of one attempt. Its free steps may be undefined. Then truth_of() returns None."""
    rng = random.Random(f"{seed} {attempt}")
    walk = Walk(rng, wish.special if rng.random() < 0.8 else "")
    if rng.random() < 0.5:
        walk.begin(wish.special)
    walk.walk(len(walk.scenario.steps) + rng.choice((3, 5, 7, 9, 12)) - (2 if walk.scenario.steps else 0))
    walk.add_free_steps()
    return used(walk.scenario)


def truth_of(scenario, wish):
    try:
        return judge(scenario, wish.wants)
    except (Undefined, TooMany):
        return None


def find(seed):
    """Returns the first attempt that fulfils the wish of the seed: (its number, scenario, truth)."""
    wish = wish_for(seed)
    for attempt in range(TRIES):
        scenario = scenario_of(seed, attempt, wish)
        truth = truth_of(scenario, wish) if wish.may_be_granted(scenario, attempt) else None
        if truth and wish.wants(truth) and wish.is_granted(scenario, truth, attempt):
            return attempt, scenario, truth
    raise RuntimeError(f"seed {seed}: no scenario")


def generate(seed):
    """Returns (scenario, truth) for "SEED", or for "SEED.ATTEMPT". The second form needs no search. As long as the generator is
    not changed, a seed always gives the same result."""
    seed, _, attempt = str(seed).partition(".")
    if not attempt:
        return find(int(seed))[1:]
    scenario = scenario_of(int(seed), int(attempt), wish_for(int(seed)))
    return scenario, judge(scenario)
