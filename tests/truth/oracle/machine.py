"""The machine that a scenario runs on: a model of POSIX and glibc for the steps of the language. Each move takes one step.

A state is a plain dictionary. A move changes a copy of the state. In this list of the keys, "it" is the process or
thread in the key:
  ("t", thread)        (process, index of the next step in its list, stage, status): status live, ended, gone (with its process)
  ("p", process)       (parent, status, exit code, stopped, first thread): status live, zombie, reaped
  ("fork", process)    (parent, thread that forked, threads that were lost) of the fork that made it. An exec removes this key
  ("way", process)     (parent, thread that forked, threads that were lost, workers that were lost) of each fork that led to it, the
                       earliest fork first. An exec removes this key; a later exec of an ancestor does not change it
  ("m", store, object) the value of a lock, a semaphore or another object in memory. store is a process, or "" for shared memory
  ("fd", process)      the descriptors that it has open: (object, end)
  ("k", object)        the number of bytes in a pipe, the count of an eventfd, the ends of pipes that are in the queue of a channel
  ("atfork", process)  its handlers: (kind, mutex)
  ("once", thread)     the routines of pthread_once() that it is in
  ("pool", thread)     its pool of libgomp: "live", or "lost" if a fork lost the workers
  ("workers", process) how many workers of libgomp its fork lost
  ("h", process, signal) what the process does when the signal comes: (action, object)
  ("alarm", process)   present if the process has an armed alarm
  ("desc", process, file)  the open file by which the process locks this file
  ("flock", file)      the open file that has the flock() lock
  ("fcntl", file)      the owner of the fcntl() lock: ("process", process) or ("file", open file)
  ("took", store, sem) the threads that have taken the semaphore; a post removes one of them
  ("forks", process)   how many forks led to it, without those by _Fork()
  ("pty", process)     the parent and the child of each forkpty() that led to it
  ("said", word)       how often the word was said
Some moves add further keys.
A stage says how far the next step of a thread is. None: the step has not begun. "begun": the step waits; some steps use
other words for this. ("prepare", N): the fork() of the thread is in prepare handlers. ("handler", N): in a child, the
first thread has not returned from fork(), because child handlers run. The machine raises Undefined if the behaviour of
a scenario is undefined, or depends on luck that the machine does not model.
"""
from fork_operations import run_child_handlers
from operations import OPERATIONS
from scenario import DESCRIPTORS
from undefined import Undefined

# A ghost stops at a step that would change other processes or end its own process. Ghosts may only change the memory of their process.
NOT_FOR_GHOSTS = ("fork", "wait", "kill", "stop", "exec", "exit", "_exit")


def fresh_value(entry):
    """Returns the value of a new object; None if the object is not in memory."""
    return {"mutex": (None, 0, False), "rwlock": ((), None, ()), "sem": entry.number, "cond": ((), 0, ()), "barrier": ((), False),
            "word": entry.number, "guard": ("free", None), "once": ("free", None, 0), "future": 0}.get(entry.kind)


class Machine:
    fresh_value = staticmethod(fresh_value)

    def __init__(self, scenario, ghosts=False):
        self.scenario = scenario
        self.ghosts = ghosts  # True: a fork copies all threads. The comparison with False shows whether a lost thread matters
        self.objects = {entry.name: entry for entry in scenario.objects}
        self.lists = {}
        for index, step in enumerate(scenario.steps):
            self.lists.setdefault(step.thread, []).append(index)

    # -- questions about a state

    def initial(self):
        state = {("t", "main"): ("main", 0, None, "live"), ("p", "main"): (None, "live", 0, False, "main")}
        ends = set()
        for entry in self.scenario.objects:
            if entry.kind in DESCRIPTORS:
                state["k", entry.name] = () if entry.kind == "channel" else entry.number
                ends |= {(entry.name, "r"), (entry.name, "w")} if entry.kind != "fifo" else set()
        state["fd", "main"] = frozenset(ends)
        self.fresh_memory(state, "main")
        self.fresh_memory(state, "")
        return state

    def fresh_memory(self, state, store):
        for entry in self.scenario.objects:
            if entry.shared == (store == "") and not entry.at:
                value = fresh_value(entry)
                if value is not None:
                    state["m", store, entry.name] = value

    def ghost_of(self, thread):
        """Returns the name of the thread whose list of steps this thread plays. A ghost plays the list of the thread that it copies."""
        return thread.partition("@")[0]

    def step_of(self, state, thread):
        _, count, _, _ = state["t", thread]
        indices = self.lists.get(self.ghost_of(thread), [])
        return self.scenario.steps[indices[count]] if count < len(indices) else None

    def rest_of(self, state, thread):
        """Returns the operations of a thread's present step and of its later steps."""
        indices = self.lists.get(self.ghost_of(thread), ())
        return {self.scenario.steps[index].operation for index in indices[state["t", thread][1]:]}

    def index_of(self, state, thread):
        indices = self.lists.get(thread, [])
        count = state["t", thread][1]
        return indices[count] if count < len(indices) else None

    def live_threads(self, state, process=None):
        return [key[1] for key, value in state.items()
                if key[0] == "t" and value[3] == "live" and (process is None or value[0] == process)]

    def processes(self, state, status="live"):
        return [key[1] for key, value in state.items() if key[0] == "p" and value[1] == status]

    def store(self, state, thread, name):
        return self.store_of(state, state["t", thread][0], name)

    def store_of(self, state, process, name):
        """Returns the memory in which this process finds the object: the process itself, or "" for shared memory."""
        if not self.objects[name].shared:
            return process
        if ("noshared", process) in state:
            raise Undefined("shared memory after exec")
        return ""

    def openers(self, state, name, end):
        return [process for process in self.processes(state) if (name, end) in state["fd", process]]

    def carriers(self, state, end):
        """Returns the processes that may receive this end of a pipe, if it was sent and not yet received."""
        return [process for key, value in state.items() if key[0] == "k" and isinstance(value, tuple) and end in value
                for process in self.openers(state, key[1], "r")]

    def drop_unreachable(self, state):
        """Empties channels that no process can receive from: the kernel closes the descriptors in them."""
        for key, value in list(state.items()):
            if key[0] == "k" and isinstance(value, tuple) and value and not self.openers(state, key[1], "r"):
                state[key] = ()

    def workers(self, state, process):
        """Returns the number of live workers of libgomp in this process."""
        return sum(1 for key, value in state.items() if key[0] == "pool" and value == "live" and state["t", key[1]][0] == process
                   and state["t", key[1]][3] == "live")

    def is_in_handler(self, state, thread):
        """True if the thread is the first thread of a child whose atfork handlers have not returned."""
        return isinstance(state["t", thread][2], tuple) and state["t", thread][2][0] == "handler"

    def place_of(self, state, thread):
        """Returns the progress of the thread, as a number that never becomes smaller."""
        return 2 * state["t", thread][1] + (0 if self.is_in_handler(state, thread) else 1)

    def opening(self, state, process, but=None):
        """Returns the ends of FIFOs that threads of the process are opening. The kernel counts these ends, but no thread can
        use them yet."""
        steps = [self.step_of(state, thread) for thread in self.live_threads(state, process)
                 if thread != but and state["t", thread][2] is not None and not self.is_in_handler(state, thread)]
        return {step.arguments for step in steps if step and step.operation == "open"}

    # -- changes of a state

    def advance(self, state, thread):
        process, count, _, status = state["t", thread]
        state["t", thread] = (process, count + 1, None, status)

    def set_stage(self, state, thread, stage):
        process, count, _, status = state["t", thread]
        state["t", thread] = (process, count, stage, status)

    def robust_death(self, state, process, threads):
        """Releases the robust mutexes of ended threads, as the kernel does. The copies of these mutexes in children stay locked."""
        for key, value in list(state.items()):
            if key[0] == "m" and key[1] in ("", process) and self.objects[key[2]].kind == "mutex" and value[0] in threads:
                if "robust" in self.objects[key[2]].attributes:
                    state[key] = (None, 0, True)

    def drop_file(self, state, process):
        for key in [key for key in state if key[0] == "desc" and key[1] == process]:
            description = state.pop(key)
            if description not in [value for other, value in state.items() if other[0] == "desc"]:
                for kind, owner in (("flock", description), ("fcntl", ("file", description))):
                    if state.get((kind, key[2])) == owner:
                        del state[kind, key[2]]

    def drop_process_locks(self, state, process):
        for key in [key for key, value in state.items() if key[0] == "fcntl" and value == ("process", process)]:
            del state[key]

    def check_terminals(self, state, process):
        """Refuses the end of a process that owns a terminal or leads the terminal's session, because such an end sends SIGHUP to
        others."""
        for other in self.processes(state):
            if other != process and process in state.get(("pty", other), ()):
                raise Undefined("the end of the process hangs up a terminal")

    def end_process(self, state, process, code):
        parent, _, _, _, first = state["p", process]
        for thread in self.live_threads(state, process):
            owner, count, stage, _ = state["t", thread]
            state["t", thread] = (owner, count, stage, "gone")
        self.robust_death(state, process, [key[1] for key, value in state.items() if key[0] == "t" and value[0] == process])
        for key in [key for key in state if key[0] in ("m", "h", "alarm") and key[1] == process]:
            del state[key]
        self.drop_file(state, process)
        self.drop_process_locks(state, process)
        self.check_terminals(state, process)
        state["fd", process] = frozenset()
        self.drop_unreachable(state)
        orphan = parent is None or state["p", parent][1] != "live"
        state["p", process] = (parent, "reaped" if orphan and process != "main" else "zombie", code, False, first)
        for child in [key[1] for key, value in state.items() if key[0] == "p" and value[0] == process]:
            _, status, child_code, stopped, child_first = state["p", child]
            state["p", child] = (None, "reaped" if status == "zombie" else status, child_code, stopped, child_first)

    def end_thread(self, state, thread):
        process, count, _, _ = state["t", thread]
        if state.get(("pool", thread)) == "lost":
            raise Undefined("libgomp ends the workers of a thread that ends")  # libgomp hangs if a fork lost these workers
        if state.get(("pool", thread)) == "live":
            state["pool ended", process] = True
        for name in state.pop(("once", thread), ()):
            state["m", process, name] = ("free", None, 0)  # after pthread_exit(), pthread_once() starts it again
        state["t", thread] = (process, count, None, "ended")
        self.robust_death(state, process, [thread])
        if not self.live_threads(state, process):
            self.end_process(state, process, 0)

    def deliver(self, state, process, signal):
        """Delivers a signal to a process. Its handler runs at once. Without a handler the process ends."""
        handler = state.get(("h", process, signal))
        if handler is None:
            self.end_process(state, process, 128 + {"usr1": 10, "usr2": 12, "term": 15, "alrm": 14}[signal])
            return
        action, name = handler
        if action == "post":
            self.post(state, self.store_of(state, process, name), name, None)
        elif action == "write":
            self.put(state, process, name, 1)
        elif action == "set":
            store = self.store_of(state, process, name)
            if ("m", store, name) not in state:
                raise Undefined("a destroyed object is used")
            state["m", store, name] = 1
        for thread in self.live_threads(state, process):
            step, stage = self.step_of(state, thread), state["t", thread][2]
            if step and step.operation == "pause" and stage == "begun":  # a thread in a handler of fork() has another stage
                self.set_stage(state, thread, "go")

    def post(self, state, store, name, thread):
        if ("m", store, name) not in state:
            raise Undefined("a destroyed object is used")
        state["m", store, name] += 1
        took = state.get(("took", store, name), ())
        if took:
            gives = thread if thread in took else took[0]
            at = took.index(gives)
            state["took", store, name] = took[:at] + took[at + 1:]

    def put(self, state, process, name, count):
        eventfd = self.objects[name].kind == "eventfd"
        if (name, "w") not in state["fd", process] - self.opening(state, process):
            raise Undefined("write to a closed end")
        if not eventfd and not self.openers(state, name, "r") and not self.carriers(state, (name, "r")):
            raise Undefined("write to a pipe without readers")
        state["k", name] += count

    # -- moves

    def moves(self, state, thread):
        """Returns all states that may follow from one move of this thread; an empty list if it is blocked or stopped, or has ended."""
        process, _, stage, status = state["t", thread]
        if status != "live" or state["p", process][3]:
            return []
        step = self.step_of(state, thread)
        new = dict(state)
        if self.is_in_handler(state, thread):
            return run_child_handlers(self, new, thread)
        if step is None:
            if state["p", process][4] == thread:
                self.end_process(new, process, 0)
            else:
                self.end_thread(new, thread)
            return [new]
        if "@" in thread and step.operation in NOT_FOR_GHOSTS:
            return []
        return OPERATIONS[step.operation](self, new, thread, step, stage)

    def all_moves(self, state):
        return [new for thread in self.live_threads(state) for new in self.moves(state, thread)]

    def is_blocked(self, state, thread):
        return state["t", thread][3] == "live" and not self.moves(state, thread)

