"""Compares the sentences in the section "Why" of a finding with the oracle's result: the state at the end of the scenario.

FORMS has a pattern and a check for each kind of sentence that can be compared with this state. Such a sentence says, for example, who
waits for what, who holds a lock, which process has which descriptor, or which threads a fork lost. PLAIN has the sentences that are only
recognised by their text. A sentence that matches none of these patterns has the answer "unknown", and the judge counts it."""
import re

from ancestry import ancestry, copy_of
from causes import file_holders
from condition_operations import lost_waiters

# Source lines and functions of the player, the program that plays the scenario. No check compares these places. So they are removed from
# a sentence before it is matched.
PLACE = re.compile(r",? (?:which took it )?(?:at|in) (?:[\w./-]+\+0x[0-9a-f]+|[\w./+-]+:\d+)(?: \((?:[^()]|\([^()]*\))*\))?"
                   r"|,? (?:started|created) (?:with|at) (?:[\w:]|\(anonymous namespace\))+(?:\.\w+:\d+)?")
NAMED = re.compile(r"truth::\(anonymous namespace\)::g_private(?:\+0x([0-9a-f]+))?$")
AT = re.compile(r"(?:the )?(?:[\w-]+ )*at 0x([0-9a-f]+)(?: in anonymous shared memory)?$")
FIRST_DESCRIPTOR = 100  # as in play/objects.hpp
SIGNALS = {"usr1": "SIGUSR1", "usr2": "SIGUSR2", "term": "SIGTERM", "alrm": "SIGALRM"}


class Contradiction(Exception):
    """The sentence is false."""


class NotKnown(Exception):
    """The sentence names something that is not part of the scenario."""


def expect(condition, otherwise):
    if not condition:
        raise Contradiction(otherwise)


class Scene:
    """Maps the numbers in one play (pids, tids, addresses, descriptors) to the names in its scenario."""

    def __init__(self, truth, result, names, process):
        self.truth, self.state, self.scenario = truth, truth.state, result["scenario"]
        self.at = result["at"]  # (address of the private objects, address of the shared ones, size of one object)
        self.objects = [entry.name for entry in self.scenario.objects]  # in the order of their addresses
        self.processes, self.threads = names
        self.memory = process  # the process in whose memory an address is looked up

    def thread(self, number):
        name = self.threads.get(int(number))
        if name is None:
            raise NotKnown(f"thread {number}")
        return name

    def process(self, number):
        name = self.processes.get(int(number))
        if name is None:
            raise NotKnown(f"process {number}")
        return name

    def object(self, text):
        """Returns the name that the scenario has for an object. The report names the object by a variable or an address."""
        private, shared, size = self.at
        named, at = NAMED.match(text), AT.match(text)
        if named:
            index = int(named[1] or "0", 16) // size
        elif at:
            address = int(at[1], 16)
            base = next((base for base in (private, shared) if base and base <= address < base + size * len(self.objects)), None)
            if base is None:
                raise NotKnown(text)
            index = (address - base) // size
        else:
            raise NotKnown(text)
        expect(index < len(self.objects), f"no object is at {text}")
        return self.now_at(self.objects[index])

    def now_at(self, name):
        """Returns the object that is at the address of this object at the end of the scenario. If this object was destroyed,
        another object may have been made there."""
        there = [entry.name for entry in self.scenario.objects if entry.at == name]
        return next((other for other in there if ("m", self.memory, other) in self.state), name)

    def end(self, descriptor):
        """Returns (object, end): what the descriptor with this number refers to."""
        index = (int(descriptor) - FIRST_DESCRIPTOR) // 2
        if not 0 <= index < len(self.objects):
            raise NotKnown(f"descriptor {descriptor}")
        return self.objects[index], "rw"[int(descriptor) % 2]

    # -- what is true at the end of the scenario

    def owners(self, process, name):
        """Returns the threads that hold the lock, according to the memory of this process or to shared memory."""
        value = self.state.get(("m", "", name), self.state.get(("m", process, name)))
        if self.scenario.object(name).kind == "cond":
            return set()
        if self.scenario.object(name).kind in ("guard", "once"):
            return {value[1]} if value[1] else set()
        if isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], tuple):
            return set(value[0]) | ({value[1]} if value[1] else set())
        if isinstance(value, tuple):
            return {value[0]} if len(value) == 3 and value[0] else set()
        return set(self.state.get(("took", "", name), self.state.get(("took", process, name), ())))

    def holds(self, process, name, thread):
        """True if the thread holds the lock, or is the copy that a fork made of the thread that holds it."""
        owners = self.owners(process, name)
        return thread in owners or any(copy_of(self.state, process, owner) == ("copy", thread) for owner in owners)

    def check_holder(self, process, name, thread):
        expect(self.holds(process, name, thread), f"{thread} does not hold {name}: {', '.join(sorted(self.owners(process, name))) or 'nobody'} does")

    def wait_of(self, thread):
        wait = self.truth.waits.get(thread)
        expect(wait is not None, f"{thread} does not wait")
        return wait

    def check_of(self, thread, number):
        if number is not None:
            expect(self.state["t", thread][0] == self.process(number), f"{thread} is of process {self.state['t', thread][0]}")

    def waits_for(self, thread, name):
        wait = self.wait_of(thread)
        expect(name in (wait.name, self.condition_of(thread)), f"{thread} waits for {wait.kind} {wait.name}")

    def condition_of(self, thread):
        """Returns the condition variable on which the thread called pthread_cond_wait(), if the thread is in that call.
        A thread that got the signal and waits for the mutex is still in that call."""
        wait = self.truth.waits[thread]
        return self.scenario.steps[wait.step].arguments[0] if wait.operation == "cwait" and wait.step >= 0 else None

    def attributes(self, name):
        if name is None:
            raise NotKnown("no earlier sentence named the object")
        return self.scenario.object(name).attributes

    def check_open(self, process, descriptor):
        expect(self.end(descriptor) in self.state["fd", process], f"{process} does not have descriptor {descriptor} open")


class Reading:
    """Reads the sentences of one finding in order. `about` is the object that the earlier sentences named last. `who`
    is the waiting thread that the earlier sentences named last."""

    def __init__(self, scene, process):
        self.scene, self.process, self.about, self.who = scene, process, None, None

    def waiter(self, found, *kinds):
        """Returns the wait of the thread that the sentence names. The wait must be of one of these kinds."""
        self.who = self.scene.thread(found["t"])
        self.scene.check_of(self.who, found.get("p"))
        wait = self.scene.wait_of(self.who)
        expect(not kinds or wait.kind in kinds, f"{self.who} waits for {wait.kind} {wait.name}")
        return wait

    def wait_before(self):
        """Returns the wait that the previous sentence described."""
        if self.who is None:
            raise NotKnown("no earlier sentence named the waiting thread")
        return self.scene.wait_of(self.who)

    def waits(self, found, name):
        self.about = name
        thread = self.scene.thread(found["t"])
        self.scene.check_of(thread, found.get("p"))
        self.scene.waits_for(thread, name)

    def waits_for_object(self, found):
        self.waits(found, self.scene.object(found["o"]))

    def writer_goes_first(self, found):
        thread = self.scene.thread(found["h"])
        expect(self.scene.wait_of(thread).operation == "wrlock", f"{thread} does not wait to lock for writing")

    def waits_in(self, found):
        """Checks only that the thread waits, and in which kind of call, because the sentence does not name the object."""
        thread = self.worker_or_thread(found)
        if thread is None:
            return
        self.scene.check_of(thread, found.get("p"))
        wait = self.scene.wait_of(thread)
        kind = {"sem_wait()": "sem", "pthread_cond_wait()": "cond", "pthread_barrier_wait()": "barrier", "pthread_join()": "thread",
                "a std::future": "future"}.get(found["f"])
        expect(kind is None or kind == wait.kind or wait.operation == "cwait", f"{thread} waits for {wait.kind} {wait.name}")

    def worker_or_thread(self, found):
        """Returns the thread that the sentence names; None if no thread of the scenario has the number in the sentence.
        Then the number must belong to a worker of libgomp that waits in a futex."""
        try:
            return self.scene.thread(found["t"])
        except NotKnown:
            workers = [key for key, value in self.scene.state.items() if key[0] == "pool" and value == "live"]
            if not workers:
                raise
        expect(found["f"] == "a futex", f"a worker of libgomp is in {found['f']}")
        return None

    def sleeps_until(self, found):
        """If the thread waits for a future, the sentence names a futex word on the heap. No object of the scenario is there, so
        only the kind of the call is checked."""
        try:
            self.waits_for_object(found)
        except NotKnown:
            if found["f"] != "a std::future":
                raise
            self.waits_in(found)

    def waits_for_held(self, found):
        self.waits_for_object(found)
        holder = self.scene.thread(found["h"]) if found.get("h") else self.scene.thread(found["t"])
        self.scene.check_holder(self.process_of(found), self.about, holder)

    def process_of(self, found):
        return self.scene.state["t", self.scene.thread(found["t"])][0]

    def waits_for_readers(self, found):
        self.waits_for_object(found)
        process = self.process_of(found)
        readers, _, _ = self.scene.state.get(("m", "", self.about), self.scene.state.get(("m", process, self.about)))
        expect(len(readers) == int(found["n"] or 1), f"{self.about} is locked for reading {len(readers)} times")

    def waits_in_once(self, found):
        self.about = self.waiter(found, "once").name

    def is_inside_of_once(self, _found):
        wait = self.wait_before()
        state = self.scene.state
        expect(state.get(("once", wait.thread)), f"{wait.thread} is in no routine of pthread_once()")
        others = [key[1] for key, value in state.items() if key[0] == "once" and value and key[1] != wait.thread
                  and state["t", key[1]][0] == wait.process and state["t", key[1]][3] == "live"]
        expect(not others, f"{others} are also in a routine of pthread_once()")

    def reads_timer(self, found):
        wait = self.waiter(found, "timerfd")
        self.about = wait.name
        expect(self.scene.end(found["d"])[0] == wait.name, f"{wait.thread} reads {wait.name}")

    def is_not_armed(self, _found):
        expect(self.wait_before().kind == "timerfd" and ("armed", self.about) not in self.scene.state, f"{self.about} is armed")

    def opens(self, found):
        wait = self.waiter(found, "fifo")
        expect(wait.operation == "open", f"{wait.thread} is in {wait.operation}")
        self.about = wait.name

    def nobody_has_the_other_end(self, _found):
        wait = self.wait_before()
        end = {"r": "w", "w": "r"}[self.scene.scenario.steps[wait.step].arguments[1]]
        having = [key[1] for key, ends in self.scene.state.items() if key[0] == "fd" and (wait.name, end) in ends]
        expect(not having, f"{having} have the other end of {wait.name} open")

    def is_zombie(self, found):
        process = self.scene.process(found["q"])
        expect(self.scene.state["p", process][1] == "zombie", f"{process} is {self.scene.state['p', process][1]}")

    # -- atfork handlers

    def forks(self, found):
        wait = self.waiter(found)
        expect(wait.operation in ("fork", "atfork child"), f"{wait.thread} is in {wait.operation}")

    def handlers_of(self, phase):
        """Returns (the number of the handler that has not returned, the number of handlers). Prepare handlers run in reverse order."""
        wait = self.wait_before()
        stage = self.scene.state["t", wait.thread][2]
        expect(stage[0] == {"prepare": "prepare", "child": "handler"}[phase], f"{wait.thread} is not in a {phase} handler")
        handlers = self.scene.state["atfork", wait.process]
        if phase == "child":
            return stage[1] + 1, len(handlers)
        # For "atfork child" the player also registers a prepare handler that does nothing. The report numbers this
        # prepare handler like all others.
        places = [place for place, (kind, _) in enumerate(reversed(handlers), 1) if kind != "child"]
        return places[stage[1]], len(handlers)

    def handler_number(self, found):
        number = self.handlers_of(found["k"])
        expect((int(found["i"]), int(found["n"])) == number, f"the handler is number {number[0]} of {number[1]}")
        expect((found["o"] == "last") == (found["k"] == "prepare"), "the sentence names the wrong order of the handlers")

    def is_in_prepare(self, _found):
        self.handlers_of("prepare")

    def handler_locks(self, found):
        wait = self.wait_before()
        self.about = self.scene.object(found["o"])
        expect(self.about == wait.name, f"the handler locks {wait.name}")
        if found["h"] or found["own"]:
            holder = self.scene.thread(found["h"]) if found["h"] else wait.thread
            forker = self.scene.state["fork", wait.process][1] if found["own"] and wait.operation == "atfork child" else holder
            expect(self.scene.holds(wait.process, self.about, holder) or self.scene.holds(wait.process, self.about, forker),
                   f"{sorted(self.scene.owners(wait.process, self.about))} hold {self.about}")

    def joins(self, found):
        wait = self.scene.wait_of(self.scene.thread(found["t"]))
        self.scene.check_of(wait.thread, found.get("p"))
        expect(wait.kind == "thread" and wait.name == self.scene.thread(found["h"]), f"{wait.thread} waits for {wait.kind} {wait.name}")

    def awaits_child(self, found):
        wait = self.scene.wait_of(self.scene.thread(found["t"]))
        self.scene.check_of(wait.thread, found.get("p"))
        expect(wait.kind == "child" and wait.name == self.scene.process(found["q"]), f"{wait.thread} waits for {wait.kind} {wait.name}")

    def uses_descriptor(self, found):
        name, _ = self.scene.end(found["d"])
        self.waits(found, name)
        other = self.process_of(found) if found.get("own") else self.scene.process(found["q"])
        operation = self.scene.wait_of(self.scene.thread(found["t"])).operation
        expect((operation in ("read", "receive")) == (found["verb"] in ("reads", "receives", "waits for")), f"the thread is in {operation}")
        if found.get("e"):
            expect(self.scene.end(found["e"])[0] == name, f"descriptor {found['e']} belongs to {self.scene.end(found['e'])[0]}")
            self.scene.check_open(other, found["e"])

    def writers(self, found):
        expected = {(key[1], "w") for key, ends in self.scene.state.items() if key[0] == "fd" and (self.about, "w") in ends}
        told = set()
        for who, descriptor in re.findall(r"(the reader itself|process \d+) \(descriptor (\d+)\)", found["l"]):
            process = self.process if who.startswith("the") else self.scene.process(who.split()[1])
            name, end = self.scene.end(descriptor)
            expect(name == self.about, f"descriptor {descriptor} belongs to {name}")
            told.add((process, end))
        expect(told <= expected, f"{sorted(expected)} are open for writing, the sentence says {sorted(told)}")
        expect(told >= expected, f"the sentence does not name {sorted(expected - told)}")

    def file_lock(self, found):
        thread = self.scene.thread(found["t"])
        self.scene.check_of(thread, found.get("p"))
        wait = self.scene.wait_of(thread)
        expect(wait.kind == "file", f"{thread} waits for {wait.kind} {wait.name}")
        holders = file_holders(self.scene.state, wait)
        other = self.process_of(found) if found.get("own") else self.scene.process(found["q"])
        expect(other in holders, f"{sorted(holders)} hold the file lock")

    # -- what was true at a fork, or before

    def held_at_fork(self, found):
        holder = self.scene.thread(found["h"])
        self.check_parent_thread(holder, found["p"])
        expect(holder in self.scene.owners(self.process, self.about) or holder in self.original_owners(),
               f"{holder} does not hold {self.about}: {sorted(self.scene.owners(self.process, self.about))}")

    def original_owners(self):
        """Returns the threads of the ancestors that own the lock, or are copies of an owner. An owner is a thread that the
        memory of this process names as an owner of the lock. Each fork between the owner's process and this process may
        have made a copy of the owner."""
        state = self.scene.state
        owners = self.scene.owners(self.process, self.about)
        return {now for owner in owners for elder in ancestry(state, self.process)[:-1] for kind, now in [copy_of(state, elder, owner)] if kind == "copy"}

    def check_parent_thread(self, thread, number):
        if number is None:
            return  # the sentence says only "of its parent" or "of an ancestor"
        expect(self.scene.state["t", thread][0] == self.scene.process(number), f"{thread} is of process {self.scene.state['t', thread][0]}")

    def had_arrived(self, found):
        thread = self.scene.thread(found["h"])
        self.check_parent_thread(thread, found["p"])
        arrived, _ = self.scene.state["m", self.process, self.about]
        expect(thread in arrived, f"{sorted(arrived)} had arrived at {self.about}")

    def waited_on_it(self, found):
        """Checks the lost waiters that the sentence names. The memory of the condition variable still counts them."""
        expect(self.about is not None and self.scene.scenario.object(self.about).kind == "cond", f"{self.about} is no condition variable")
        lost = set(lost_waiters(self.scene.state, ("m", self.process, self.about)))
        told = {self.scene.thread(number) for number in re.findall(r"thread (\d+)", found["l"])}
        for thread in told:
            self.check_parent_thread(thread, found["p"])
        expect(told <= lost, f"the lost waiters are {sorted(lost)}")
        generations = len(ancestry(self.scene.state, self.process)) - 1
        expect(int(found["n"]) == len(lost) or generations > 1 and int(found["n"]) < len(lost), f"{len(lost)} waiters were lost")

    def signalled_for_nothing(self, found):
        self.about = self.scene.object(found["o"])
        self.scene.check_of(self.scene.thread(found["t"]), found.get("p"))
        here = [wait for wait in self.scene.truth.waits.values() if wait.process == self.process
                and self.about in (wait.name, self.scene.condition_of(wait.thread))]
        expect(here, f"nobody in {self.process} waits for {self.about}")

    def refused_unlock(self, found):
        self.about = self.scene.object(found["o"])
        self.scene.check_of(self.scene.thread(found["t"]), found.get("p"))
        attributes = self.scene.attributes(self.about)
        expect({"recursive", "errorcheck", "robust"} & set(attributes), f"{self.about} does not check which thread unlocks it")

    def has_it_still(self, found):
        process = self.scene.process(found["p"])
        expect(self.scene.owners(process, self.about), f"nobody in {process} holds {self.about}")

    def lost_threads(self, found):
        _, _, lost = self.scene.state["fork", self.process]
        parent = self.scene.state["fork", self.process][0]
        expect(found["p"] is None or parent == self.scene.process(found["p"]), f"the parent of {self.process} is {parent}")
        workers = self.scene.state.get(("workers", self.process), 0)
        numbers = [int(number) for number in re.findall(r"(?<!end of )thread (\d+)", found["l"])]
        strangers = [number for number in numbers if number not in self.scene.threads]
        if len(strangers) > workers:  # only workers of libgomp have no name in the scenario
            raise NotKnown(f"threads {strangers}")
        told = {self.scene.thread(number) for number in numbers if number not in strangers}
        names = {name for name, _, _ in lost}
        has_nameless = found["least"] or "another" in found["l"] or "more" in found["l"]
        expect(told <= names if has_nameless else told == names, f"the fork lost {sorted(names)}")
        number = len(lost) + workers
        expect(int(found["n"]) <= number if found["least"] else int(found["n"]) == number, f"the fork lost {number} threads")

    def lost_on_the_way(self, found):
        way = self.scene.state.get(("way", self.process), ())
        names = {name for _, _, lost, _ in way for name, _, _ in lost}
        workers = sum(workers for _, _, _, workers in way)
        numbers = [int(number) for number in re.findall(r"(?<!end of )thread (\d+)", found["l"])]
        told = {self.scene.thread(number) for number in numbers if number in self.scene.threads}
        expect(told <= names, f"the forks lost {sorted(names)}")
        expect(int(found["n"]) <= len(names) + workers, f"the forks lost {len(names) + workers} threads")

    def ended_with_it(self, found):
        holder = self.scene.thread(found["h"])
        expect(self.scene.state["t", holder][3] != "live", f"{holder} lives")
        expect(holder in self.scene.owners(self.process, self.about), f"{holder} does not hold {self.about}")

    def gone_owner(self, found):
        self.ended_with_it(found)

    def forker_held(self, found):
        holder = self.scene.thread(found["h"])
        parent, forker, _ = self.scene.state["fork", self.process]
        self.check_parent_thread(holder, found["p"])
        expect(holder == forker and self.scene.process(found["p"]) == parent, f"{self.process} was forked by {forker} of {parent}")
        owners = self.scene.owners(self.process, self.about)
        expect(holder in owners or holder in self.original_owners(), f"{sorted(owners)} hold {self.about}")

    def remembers(self, found):
        holder = self.scene.thread(found["h"])
        expect(holder in self.scene.owners(self.process, self.about), f"{self.about} records {sorted(self.scene.owners(self.process, self.about))}")
        attributes = self.scene.attributes(self.about)
        kind = {"recursive": "recursive", "error-checking": "errorcheck", "robust": "robust"}.get(found["k"])
        expect(kind is None or kind in attributes, f"{self.about} is {' '.join(attributes) or 'plain'}")

    def not_recursive(self, _found):
        expect("recursive" not in self.scene.attributes(self.about), f"{self.about} is recursive")

    def in_region(self, found):
        wait = self.scene.wait_of(self.scene.thread(found["t"]))
        self.scene.check_of(wait.thread, found.get("p"))
        expect(wait.kind == "pool", f"{wait.thread} waits for {wait.kind} {wait.name}")
        expect(found.get("n") in (None, "2"), "regions are of 2 threads")

    def pool_of(self, found):
        parent, forker, _ = self.scene.state["fork", self.process]
        holder = self.scene.thread(found["h"])
        expect(holder == forker and self.scene.process(found["p"]) == parent, f"{self.process} was forked by {forker} of {parent}")
        expect(found["n"] == "1", "a pool has 1 worker")

    def pool_of_ancestor(self, found):
        self.check_forks(found, self.scene.state.get(("way", self.process), ()))

    def pool_of_another(self, found):
        self.check_forks(found, self.scene.state.get(("way", self.process), ())[-1:])

    def check_forks(self, found, way):
        """Checks that the named thread, or a thread of the named process, made one of these forks."""
        forks = [(parent, forker) for parent, forker, _, _ in way]
        expect(found["n"] in (None, "1"), "a pool has 1 worker")
        owner = self.scene.process(found["p"]) if found["p"] else None
        holder = self.scene.thread(found["h"]) if found.get("h") else None
        expect(any(owner in (None, parent) and holder in (None, forker) for parent, forker in forks), f"the forks were made by {forks}")

    # -- whether the process may continue

    def asleep(self, found):
        threads = [thread for thread, wait in self.scene.truth.waits.items() if wait.process == self.process]
        count = len(threads) + sum(1 for key, value in self.scene.state.items() if key[0] == "pool" and value == "live" and key[1] in threads)
        expect(count == int(found["n"] or 1), f"{self.process} has {count} threads")

    def nobody_can(self, found):
        self.asleep(found)
        # An alarm() without a handler ends its process, and so may end a wait for that process. Nobody can see the alarm from outside, so
        # the sentence states a condition ("unless a signal ends ...").
        unseen = {"alarm"} if found["u"] else set()
        hopeful = [wait.thread for wait in self.scene.truth.waits.values() if wait.process == self.process and set(wait.open_by) - unseen]
        expect(not hopeful, f"something may still end the wait of {hopeful}")

    def a_handler_may_run(self, _found):
        expect(any(key[0] == "h" for key in self.scene.state), "no process has a signal handler")

    def only_a_handler_can(self, found):
        self.asleep(found)
        for names, number in re.findall(r"((?:SIG\w+(?:, | and | or )?)+)(?: in process (\d+))?", found["l"]):
            process = self.scene.process(number) if number else self.process
            handled = {SIGNALS[key[2]] for key in self.scene.state if key[0] == "h" and key[1] == process}
            expect(set(re.findall(r"SIG\w+", names)) <= handled, f"{sorted(handled)} have handlers in {process}")


WHO = r'(?:[Tt]hread|[Pp]rocess) (?P<t>\d+)(?: "[^"]*")?(?: of (?:process|child) (?P<p>\d+))?'
HOLDER = r'(?:thread|process) (?P<h>\d+)(?: "[^"]*")?(?: of process \d+)?'
OBJECT = r"(?P<o>(?:truth::\(anonymous namespace\)::g_private(?:\+0x[0-9a-f]+)?|(?:the )?(?:[\w-]+ )*at 0x[0-9a-f]+(?: in anonymous shared memory)?))"
SLEPT = (r"(?:For [\d.]+ \w+(?: \d+ \w+)?|Seen from outside,|In the core,) "
         r"(?:all its (?P<n>\d+) threads (?:have slept|sleep)|its only thread (?:has slept|sleeps))(?: in a futex)? without a timeout")
ELDER = r"(?:process (?P<p>\d+)|an ancestor|its parent)"
WORKERS = r"(?:(?P<n>\d+) workers?|its size is not known)(?:, made)?"
OTHER = r"(?:process (?P<q>\d+)|(?P<own>its own process))"
FORMS = [(re.compile(pattern + r"\.?$"), check) for pattern, check in (
    (WHO + r" is,? (?:locking|waiting for|waiting at|signalling|broadcasting to|destroying) " + OBJECT, Reading.waits_for_object),
    (WHO + r" waits for " + OBJECT, Reading.waits_for_object),
    (WHO + r" waits for " + OBJECT + r", which (?:it itself|" + HOLDER + r") holds", Reading.waits_for_held),
    (WHO + r" waits to lock " + OBJECT + r" for writing, and it is locked for reading(?: (?P<n>\d+) times)?", Reading.waits_for_readers),
    (WHO + r" locks " + OBJECT + r", which is still locked from before the fork", Reading.waits_for_object),
    (WHO + r" waits in (?:a futex|a std::future|the initialisation of a static variable|[\w:]+\(\)) on " + OBJECT + r" for [\w: ,-]+?(?:, as \d+ more do(?:es)?)?", Reading.waits_for_object),
    (WHO + r" waits in (?P<f>a futex|a std::future|[\w:]+\(\)) for (?:a|the) (?:other threads?|threads?|promise)[\w: ,]+?(?:, as \d+ more do(?:es)?)?", Reading.waits_in),
    (WHO + r" is,? in pthread_once\(\), until the routine has returned", Reading.waits_in_once),
    (r"The same thread is inside of a routine of pthread_once\(\)(?:, which it entered)?\. No other thread of the process is inside of one",
     Reading.is_inside_of_once),
    (WHO + r" reads descriptor (?P<d>\d+), a timerfd", Reading.reads_timer),
    (r"The timer is not armed: it has no time at which it expires", Reading.is_not_armed),
    (WHO + r" has waited(?: for [\d.]+ \w+(?: \d+ \w+)?)? in open\(\): it returns once somebody opens the other end", Reading.opens),
    (r"No process has the other end open", Reading.nobody_has_the_other_end),
    (r"Process (?P<q>\d+) \([^)]*\) has ended, and nobody has waited for its end yet", Reading.is_zombie),
    (WHO + r" called fork\(\), and fork\(\) returns only after it has called the handlers that pthread_atfork\(\) registered", Reading.forks),
    (r"The (?P<k>prepare|child) handlers are called (?P<o>last|first) registered first; this handler is number (?P<i>\d+) of (?P<n>\d+)"
     r"(?:, registered by [\w.-]+)?", Reading.handler_number),
    (r"fork\(\) calls the prepare handlers before it makes the child, so there is no child yet", Reading.is_in_prepare),
    (r"The handler locks " + OBJECT + r"(?: \([^)]*\))?(?:, which (?:(?P<own>the forking thread itself)|" + HOLDER + r") (?:took|holds|held)"
     r"(?: and which no thread of the child holds)?)?", Reading.handler_locks),
    (WHO + r" waits in the wait for " + OBJECT + r"(?:, which " + HOLDER + r" holds)?", Reading.waits_for_held),
    (WHO + r" is,? in (?P<f>[\w :()]+); it sleeps until the word " + OBJECT + r" is no longer 0x[0-9a-f]+", Reading.sleeps_until),
    (WHO + r" is,? waiting until the static behind " + OBJECT + r" is initialised", Reading.waits_for_object),
    (r'At (?:the|an earlier) fork thread (?P<h>\d+)(?: "[^"]*")? of (?:process (?P<p>\d+)|its parent|an ancestor) was in the middle of that'
     r"(?:, which it began)?", Reading.held_at_fork),
    (WHO + r" waits for the end of process (?P<q>\d+)(?:, as \d+ more do(?:es)?)?", Reading.awaits_child),
    (WHO + r" waits (?:in pthread_join\(\) )?for the end of " + HOLDER, Reading.joins),
    (WHO + r" waits for process (?P<q>\d+) to end", Reading.awaits_child),
    (WHO + r" waits to lock " + OBJECT + r" for reading", Reading.waits_for_object),
    (r"This lock prefers writers, and " + HOLDER + r" waits to lock it for writing, so new readers must wait", Reading.writer_goes_first),
    (WHO + r" (?P<verb>reads|receives) from \S+ \(its descriptor (?P<d>\d+)\), (?:which|whose other end) " + OTHER
     + r" has(?: open for writing)?(?: \(descriptor (?P<e>\d+) there\))?", Reading.uses_descriptor),
    (WHO + r" (?P<verb>waits for) eventfd:\d+ \(its descriptor (?P<d>\d+)\), which " + OTHER + r" has open(?: \(descriptor (?P<e>\d+) there\))?",
     Reading.uses_descriptor),
    (WHO + r" (?P<verb>writes) to eventfd:\d+ \(its descriptor (?P<d>\d+)\), whose count has no room for the number, and which " + OTHER
     + r" has open(?: \(descriptor (?P<e>\d+) there\))?", Reading.uses_descriptor),
    (WHO + r" (?P<verb>writes|sends) to \S+ \(its descriptor (?P<d>\d+)\), which is full and (?:which|whose other end) " + OTHER
     + r" has(?: open for reading)?(?: \(descriptor (?P<e>\d+) there\))?", Reading.uses_descriptor),
    (r"A reader gets end of file when the last writing end is closed\. These are open: (?P<l>.+)", Reading.writers),
    (WHO + r" waits for a lock of \S+(?: \(its descriptor \d+\))?, which " + OTHER + r" holds(?: \(descriptor \d+ there\))?", Reading.file_lock),
    (r'At (?:the|an earlier) fork the lock was held by thread (?P<h>\d+)(?: "[^"]*")?(?: \([^)]*\))? of (?:process (?P<p>\d+)|its parent|an ancestor)',
     Reading.held_at_fork),
    (WHO + r" entered a parallel region(?: (?:of|for) (?P<n>\d+) threads)? and has not come out: it waits for (?:its team|1 other thread)", Reading.in_region),
    (r"The others were to come from the libgomp pool of an ancestor's thread, which forked, (?:thread (?P<h>\d+)(?: \"[^\"]*\")?|another thread) of "
     + ELDER + r": " + WORKERS, Reading.pool_of_ancestor),
    (r"The others were to come from the libgomp pool of the thread that forked, another thread of " + ELDER + r": " + WORKERS, Reading.pool_of_another),
    (r'The others were to come from the libgomp pool of the thread that forked, thread (?P<h>\d+)(?: "[^"]*")? of process (?P<p>\d+): '
     + WORKERS, Reading.pool_of),
    (r"At the fork (?P<n>\d+) threads? waited on it: (?P<l>.+?) of " + ELDER, Reading.waited_on_it),
    (WHO + r" signalled " + OBJECT + r", where a thread of the child waited", Reading.signalled_for_nothing),
    (r'At the fork thread (?P<h>\d+)(?: "[^"]*")? of process (?P<p>\d+) had arrived there and waited for the others', Reading.had_arrived),
    (WHO + r" had tried to unlock " + OBJECT + r", which was refused \(EPERM\) and left it locked", Reading.refused_unlock),
    (r"In process (?P<p>\d+) that thread holds it now(?:, and is now)?", Reading.has_it_still),
    (r"It was forked from (?:process (?P<p>\d+)|its parent), which had (?P<least>at least )?(?P<n>\d+) more threads?: (?P<l>.+)", Reading.lost_threads),
    (r"The fork or forks that led to this process left behind (?:at least )?(?P<n>\d+) threads?: (?P<l>.+)", Reading.lost_on_the_way),
    (r'It was taken by thread (?P<h>\d+)(?: "[^"]*")?, which ended with it held; nobody can release it any more', Reading.ended_with_it),
    (r"It is locked, and its memory names task (?P<h>\d+) as the owner: no such task exists", Reading.gone_owner),
    (r'The forking thread, thread (?P<h>\d+)(?: "[^"]*")? of process (?P<p>\d+), had taken it and held it across fork\(\)', Reading.forker_held),
    (r"An? (?P<k>[\w-]+)(?: mutex)? records its owner by thread id, here (?P<h>\d+). In the child .+", Reading.remembers),
    (r"The mutex is not recursive: .+", Reading.not_recursive),
    (SLEPT + r", and no thread of any process can wake it: this proves that the process never goes on(?:, unless a signal ends (?P<u>[^.]+))?", Reading.nobody_can),
    (r"It is not proven that this never ends: a signal may come from a timer, from the end of a child or from another thread, and end the process or run a handler that jumps out of the wait",
     Reading.a_handler_may_run),
    (SLEPT + r": no thread of any process can wake it, only (?P<l>.+) could", Reading.only_a_handler_can),
)]
# These sentences are recognised only by their text. Nothing in them is compared with the oracle: most of them explain the cause, and the
# judge checks the cause itself.
PLAIN = tuple(re.compile(text) for text in (
    r"fork\(\)(?: at \S+)? copied the lock in its locked state", r"The holder is known from the lock's own memory", r"A semaphore has no owner",
    r"The lock does not record which thread that was", r"The lost (?:writer|reader) ", r"What (?:they wait|\d+ of these threads wait|(?:thread|process) .+ waits?) for records no owner", r"No thread is left that could wake it", r"The thread that should have done so", r"Or the program lets it wait", r"While process \d+ waits, it neither uses",
    r"At the fork the lock was held by another thread", r"The child has none of these", r"That thread called fork\(\): ", r"It is not known which lock, condition or future this is", r"Each of them ",
    r"None of (?:these|those|them) ", r"Other threads of the process go on", r"A rwlock does not record who its readers are", r"A rwlock counts its readers", r"A semaphore does not record who took it",
    r"A spinlock does not record which thread locked it", r"A lock of this kind does not record which thread holds it",
    r"The lock names thread \d+ as its owner, which this process does not have", r"The lock names its owner by a number that two threads have had",
    r"If the thread of this process holds the lock", r"Other threads of this process sleep", r"If one of them holds the lock", r"fork\(\)(?: at \S+)? copied the lock as it was",
    r"It is not known who should have woken it", r"The mutex names the id that this thread had", r"The writer waits until \d+ locks? for reading (?:is|are) given back",
    r"There is no other thread that could be its reader", r"A lock for reading cannot be turned", r"Another thread could unlock it in place of its owner",
    r"Before that (?:thread|process) can end, it needs a lock", r"This handler belongs to ", r"The kernel does not look for rings", r"A pipe or socket takes a limited number",
    r"It (?:was ended by|exited with)", r"That thread ended with the lock held", r"The mutex is robust, but that does not help here", r"_Fork\(\) runs no atfork handler",
    r"Nobody is left to set the promise", r"Thread \d+ of (?:process|child) \d+ is in the middle of a task", r"A barrier opens when as many threads have arrived",
    r"Its ancestor, process \d+, was forked", r"An ancestor of it was forked", r"The condition variables that these threads wait for show",
    r"The round still needs at least one more thread", r"libgomp has no atfork handler", r"fork\(\)(?: at \S+)? copied libgomp's list",
    r"fork\(\)(?: at \S+)? copied the count of waiters", r"fork\(\)(?: at \S+)? copied the guard variable", r"A pthread_once_t records no owner", r"A child handler may only do what is async-signal-safe",
    r"The kernel finds a ring that consists of fcntl\(\) locks only", r"The (?:process|thread) that should write waits for something", r"The count of an eventfd has a limit", r"This is not certain: anybody may still open the FIFO",
    r"The signal went to one of these", r"A fork inside of a parallel region looks the same", r"Before a new group of waiters can be woken", r"pthread_cond_destroy\(\) waits until", r"At the fork another thread", r"fork\(\)(?: at \S+)? copied the count of arrivals", r"It is not known which lock the child waits for",
))


def check_sentence(reading, sentence):
    """Returns "true", "plain" or "unknown". Raises Contradiction if the sentence is false."""
    text = PLACE.sub("", sentence)
    for form, check in FORMS:
        found = form.match(text)
        if found:
            try:
                check(reading, found.groupdict())
                return "true"
            except (NotKnown, KeyError):
                return "unknown"
    return "plain" if any(plain.match(sentence) for plain in PLAIN) else "unknown"


def check_by_any(readings, sentence):
    """Returns (answer, why the sentence is false). An id in a sentence may mean one of two threads, and each reading chooses one of
    them (see ways_to_read()). A sentence is true if it is true in at least one reading."""
    why = ""
    answers = []
    for reading in readings:
        try:
            answers.append(check_sentence(reading, sentence))
        except Contradiction as contradiction:
            why = why or str(contradiction)
    if "true" in answers or not why:
        return ("true" if "true" in answers else answers[0]), ""
    return "false", why


def ways_to_read(names, slots):
    """A thread that calls exec gets the thread id of the first thread of its process. So an id in a sentence may mean either thread."""
    processes, threads = names
    others = {slot["tid"]: name for name, slot in slots.items() if threads.get(slot["tid"], name) != name}
    return [names, (processes, threads | others)] if others else [names]


def check_sentences(truth, result, names, process, chain):
    """Returns ((answer, text, why it is false), ...): the answer is true, plain, unknown or false. The text is empty for true
    and plain sentences."""
    readings = [Reading(Scene(truth, result, way, process), process) for way in ways_to_read(names, result["slots"])]
    answers = []
    for sentence in chain:
        answer, why = check_by_any(readings, sentence)
        text = {"false": sentence, "unknown": re.sub(r"\d+", "N", sentence)}.get(answer, "")
        answers.append((answer, text, why))
    return tuple(answers)
