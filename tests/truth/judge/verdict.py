"""Compares what forksight reported about a scenario with its truth. Each finding makes two claims: that a
process hangs, and why. sentences.py checks each sentence of the finding's "Why"."""
from dataclasses import dataclass, replace

from ancestry import ancestry
from causes import file_holders, lost_of
from sentences import check_sentences

ORDER = ("right", "weaker", "hidden", "silent", "wrong")

ENDED_HOLDER, LOST = "ended-holder", "lost-waker"
IN_MEMORY = ("mutex", "rwlock", "sem", "cond", "barrier", "word", "guard", "once", "future", "thread", "pool")
BYTES = {"pipe", "socket", "eventfd", "fifo", "channel"}


def is_lock_ring(wait):
    return wait.cause == "ring" and wait.ring_kinds <= {"mutex", "rwlock"}


def is_byte_ring(wait):
    return wait.cause == "ring" and bool(wait.ring_kinds & BYTES)


# rule -> function that says whether the rule names the cause of a wait
RIGHT = {
    "orphaned-mutex": lambda wait: wait.kind == "mutex" and wait.cause in ("orphan", ENDED_HOLDER),
    "orphaned-rwlock": lambda wait: wait.kind == "rwlock" and wait.cause in ("orphan", ENDED_HOLDER),
    "orphaned-semaphore": lambda wait: wait.kind == "sem" and wait.cause == "orphan",
    "orphaned-condvar": lambda wait: wait.kind == "cond" and wait.cause in (LOST, "lost-waiter"),
    "lost-openmp-pool": lambda wait: wait.cause == "lost-pool",
    "atfork-handler-stuck": lambda wait: wait.operation == "fork",
    "atfork-child-stuck": lambda wait: wait.operation == "atfork child",
    "atfork-order": lambda wait: wait.operation == "fork" and is_lock_ring(wait),
    "orphaned-barrier": lambda wait: wait.kind == "barrier" and wait.cause == LOST,
    "orphaned-custom-lock": lambda wait: wait.kind == "word" and wait.cause == LOST,
    "interrupted-static-init": lambda wait: wait.kind == "guard" and wait.cause in ("orphan", ENDED_HOLDER),
    "lost-wakeup": lambda wait: wait.cause == LOST or bool(wait.lost) and wait.cause == "ring",
    "lost-thread-pool": lambda wait: wait.cause == LOST,
    "self-held-lock": lambda wait: wait.cause == "self-held",
    "self-deadlock": lambda wait: wait.cause in ("self-deadlock", "relock"),
    "rwlock-upgrade": lambda wait: wait.kind == "rwlock" and wait.cause in ("upgrade", "relock"),
    "rwlock-recursive-read": lambda wait: wait.kind == "rwlock" and wait.cause == "ring" and wait.ring_kinds == {"rwlock"},
    "lock-cycle": is_lock_ring,
    "join-cycle": lambda wait: wait.cause == "ring" and bool({"thread", "child"} & wait.ring_kinds),
    "abandoned-shared-lock": lambda wait: wait.cause == "abandoned" or wait.shared and wait.cause == ENDED_HOLDER,
    "queue-lock-abandoned": lambda wait: wait.kind == "sem" and wait.cause == "no-waker",
    "flock-deadlock": lambda wait: wait.kind == "file" or "file" in wait.ring_kinds,
    "pipe-held-open": lambda wait: is_byte_ring(wait) or wait.kind in BYTES and wait.operation != "open",
    "pipe-deadlock": is_byte_ring,
    "deadlock": lambda wait: wait.cause in ("no-waker", "ring") and not is_lock_ring(wait),
}
# rule -> function that says whether the rule is true about a wait, but says less than could be known
WEAKER = {
    "deadlock": lambda wait: True,
    "lost-wakeup": lambda wait: wait.cause == "orphan",
    "lost-thread-pool": lambda wait: wait.cause == "orphan",
    "orphaned-semaphore": lambda wait: wait.kind == "sem" and wait.cause == LOST,
    "racy-orphan": lambda wait: wait.cause == "orphan",
    "self-deadlock": lambda wait: wait.cause == "upgrade",
    "lock-cycle": lambda wait: wait.cause == "ring",
}
# Rules whose findings are about signals. These findings are right if the parent had an alarm when it forked the
# process: fork() does not copy the alarm, so the signal of the alarm never reaches the child.
ABOUT_SIGNALS = ("timer-lost", "signal-thread-lost")


@dataclass(frozen=True)
class Judged:
    """One finding: what it reports, with which certainty, and whether it is right."""
    rule: str
    hang: str       # certainty that the process hangs
    cause: str      # certainty of the cause
    process: str
    thread: str
    worth: str      # right, weaker, wrong; other: the finding reports no hang
    wrong: str      # which claim is wrong: "" (none), "hang", "cause"
    sentences: tuple = ()  # the sentences of its "Why": (answer, text, why it is false), from sentences.py

    def false_sentences(self):
        return [f"\"{text}\": {why}" for answer, text, why in self.sentences if answer == "false"]

    def __str__(self):
        claim = f" (its {self.wrong} is false)" if self.wrong else ""
        false = "".join(f" FALSE {sentence}" for sentence in self.false_sentences())
        return f"{self.rule} {self.hang}/{self.cause} of {self.process}.{self.thread}: {self.worth}{claim}{false}"


def names_of(slots, truth):
    """Returns ({pid: process}, {tid: thread}). A thread that calls exec gets the tid of the first thread of its process. A tid
    that two threads had is mapped to the thread that still lives."""
    by_number = list(slots)
    processes = {slot["pid"]: by_number[slot["process"]] for slot in slots.values() if slot["pid"] > 0}
    ordered = sorted(slots, key=lambda name: name in truth.waits)
    return processes, {slots[name]["tid"]: name for name in ordered if slots[name]["tid"] > 0}


def certainties(finding):
    return finding.get("hang", finding.get("harm", "?")), finding["cause"]


def is_best_guess(rule, cause, wait, truth, mode):
    """True if the finding names lost threads as a `possible` cause, and forksight could not know more. One case: no thread is left
    that could end the wait, and memory does not show whether a lost thread would have ended it."""
    if cause != "possible" or not lost_of(truth.state, wait.process):
        return False
    if rule == "orphaned-semaphore":  # a lost thread may have taken the semaphore, or may have been about to post it
        return wait.kind == "sem" and wait.cause in ("no-waker", "ring", LOST)
    if rule == "orphaned-rwlock":  # Only the shim knows the readers of a rwlock, so only `run` can name them
        return mode != "run" and wait.kind == "rwlock" and not has_writer(truth.state, wait) and wait.cause in ("relock", "upgrade", ENDED_HOLDER)
    return rule in ("lost-wakeup", "lost-thread-pool") and (wait.cause == "no-waker" or wait.kind in WITHOUT_OWNER)


def worth_of(rule, cause, waits, truth, mode):
    if cause == "unknown" and any(wait.cause == "no-waker" for wait in waits):
        return "right"
    if any(is_best_guess(rule, cause, wait, truth, mode) for wait in waits):
        return "right"
    if any(RIGHT.get(rule, lambda wait: False)(wait) for wait in waits):
        return "right"
    if any(WEAKER.get(rule, lambda wait: False)(wait) for wait in waits):
        return "weaker"
    return "weaker" if cause == "unknown" else "wrong"


def judge_finding(finding, truth, slots, mode):
    processes, threads = names_of(slots, truth)
    pid, tid = finding["process"]["pid"], finding["thread"]["tid"]
    process, thread = processes.get(pid, threads.get(pid, "?")), threads.get(tid, "?")
    hang, cause = certainties(finding)
    rule = finding["rule"]
    stuck = [wait for wait in truth.stuck() if wait.process == process]
    here = [wait for wait in stuck if wait.thread == thread]
    if rule in ABOUT_SIGNALS and ("parent alarm", process) in truth.state:
        return Judged(rule, hang, cause, process, thread, "right", "")
    if finding["outcome"] not in ("hang", "may-hang"):
        return Judged(rule, hang, cause, process, thread, "other", "")
    if not stuck and is_ended_by_unseen_alarm(finding, truth, process):
        return Judged(rule, hang, cause, process, thread, "right", "")
    if not stuck:
        return Judged(rule, hang, cause, process, thread, "wrong", "hang")
    healthy = [name for name in merged(finding, processes) if not any(wait.process == name for wait in truth.stuck())]
    if healthy:
        return Judged(rule, hang, cause, healthy[0], "?", "wrong", "hang")
    worth = worth_of(rule, cause, (here or stuck) + beside_victims(here, stuck), truth, mode)
    if worth == "wrong" and cause == "possible" and hang != "possible":
        return Judged(rule, hang, cause, process, thread, "weaker", "")  # the hang is true, and the cause is only a candidate
    return Judged(rule, hang, cause, process, thread, worth, "cause" if worth == "wrong" else "")


def is_ended_by_unseen_alarm(finding, truth, process):
    """True if the finding says that the hang lasts unless a signal ends another process, and only an alarm() without a handler
    can end the waits of this process. No file of /proc shows such an alarm (docs/proven.md). The finding states its condition,
    so it is true."""
    waits = [wait for wait in truth.waits.values() if wait.process == process]
    states_it = any(", unless a signal ends " in sentence for sentence in finding.get("chain", ()))
    handled = any(key[0] == "h" and key[2] == "alrm" for key in truth.state)
    return states_it and not handled and bool(waits) and all(set(wait.open_by) <= {"alarm"} for wait in waits)


def beside_victims(here, stuck):
    """If the thread that the finding names is a victim, returns the other waits for the same object. All these waits have the same
    cause, so a finding may name any of the waiting threads."""
    objects = {(wait.kind, wait.name) for wait in here if wait.cause == "victim"}
    return [wait for wait in stuck if (wait.kind, wait.name) in objects and wait not in here]


def merged(finding, processes):
    """Returns the processes whose equal findings were merged into this finding; an empty set if the finding is about one process."""
    return {processes[entry["pid"]] for entry in finding.get("processes", []) if entry["pid"] in processes} if finding.get("count", 1) > 1 else set()


def with_sentences(judged, finding, truth, result):
    """Adds the answers about the finding's sentences. Without the scenario in the result, the sentences cannot be compared with anything."""
    if "scenario" not in result or judged.worth == "other":
        return judged
    names = names_of(result["slots"], truth)
    return replace(judged, sentences=check_sentences(truth, result, names, judged.process, finding["chain"]))


def mentioned(finding, slots, truth):
    """Returns all processes that a finding is about: its own, those of merged findings, and the victims."""
    processes, _ = names_of(slots, truth)
    pids = [finding["process"]["pid"], *(entry["pid"] for entry in finding.get("processes", []) + finding.get("victims", []))]
    return {processes[pid] for pid in pids if pid in processes}


def is_in_one_memory(truth, wait):
    """True if the core of this process alone can show why the process hangs, without cores of other processes."""
    ring = [truth.waits[peer].process for peer in wait.peers if peer in truth.waits]
    return wait.kind in IN_MEMORY and not wait.shared and all(process == wait.process for process in ring)


WITHOUT_OWNER = ("once", "guard")  # the memory of such an object does not name the thread that initialises it
OF_ONE_OWNER = ("mutex", "thread", "child", "pool")  # kinds whose object names the one thread or process that could end the wait


def could_go_on(wait):
    """True if, as seen from outside, the thread may continue: it is not blocked for ever, or it is a victim of another hang."""
    return bool(wait.open_by) or wait.cause == "victim"


def is_open_to_anybody(wait):
    """True if any process could end the wait, because any process may open a FIFO by its name."""
    return wait.kind == "fifo" and wait.operation == "open"


def is_end_in_a_queue(truth, wait):
    """True if no live process has the other end of the pipe. Then the last descriptor of that end is in the queue of a socket,
    and nobody can see it from outside."""
    if wait.kind not in ("pipe", "fifo") or wait.operation not in ("read", "fill"):
        return False
    other = (wait.name, "w" if wait.operation == "read" else "r")
    return not any(key[0] == "fd" and other in ends for key, ends in truth.state.items() if truth.state.get(("p", key[1]), ("", ""))[1] == "live")


def may_end_it(truth, wait, process):
    """True if, as seen from outside, a thread or a signal handler of this process could end the wait."""
    state = truth.state
    if wait.kind == "file":
        return process in file_holders(state, wait)
    if wait.kind in BYTES or wait.kind == "timerfd":
        return wait.operation == "open" or any(end[0] == wait.name for end in state["fd", process])
    return process == wait.process or wait.shared and ("noshared", process) not in state


def is_hidden(truth, wait):
    """True if forksight cannot know that the thread hangs, because a signal handler, or a thread that may continue, could end the
    wait. What the handler or the thread will do cannot be seen from outside. A thread in a hidden wait counts as a thread that may continue."""
    hidden = getattr(truth, "hidden", None)
    if hidden is None:
        hidden = truth.hidden = find_hidden(truth)
    return wait.thread in hidden


def find_hidden(truth):
    hidden = set()
    while True:
        more = {wait.thread for wait in truth.waits.values() if wait.thread not in hidden and may_be_ended(truth, wait, hidden)}
        if not more:
            return hidden
        hidden |= more


def may_be_ended(truth, wait, hidden):
    if is_open_to_anybody(wait) or is_end_in_a_queue(truth, wait) or any(peer in hidden for peer in wait.peers):
        return True
    if wait.kind in OF_ONE_OWNER and not is_plain(truth, wait) or wait.kind == "cond" and wait.cause == "lost-waiter" or wait.kind == "rwlock" and has_writer(truth.state, wait):
        return False
    others = [other.process for other in truth.waits.values() if other.thread != wait.thread and (could_go_on(other) or other.thread in hidden)]
    handling = [key[1] for key in truth.state if key[0] == "h" and truth.state["p", key[1]][1] == "live"]
    return any(may_end_it(truth, wait, process) for process in others + handling)


def is_plain(truth, wait):
    """True if the thread waits for a mutex that does not check which thread unlocks it. Some programs use such a mutex like a
    semaphore, and unlock it in another thread."""
    return wait.kind == "mutex" and not {"recursive", "errorcheck", "robust"} & set(truth.attributes.get(wait.name, ()))


def has_writer(state, wait):
    return state["m", "" if wait.shared else wait.process, wait.name][1] is not None


def is_of_orphan(truth, process):
    """True if an ancestor of the process has ended. If so, `why` with the pid of `main` does not find the process."""
    parents = ancestry(truth.state, process)[:-1]
    return any(parent in truth.ended for parent in parents)


def has_hidden_link(truth, wait):
    """True if a wait of the ring is hidden. A command can know a ring only if it can know each wait of the ring."""
    return wait.cause == "ring" and any(is_hidden(truth, truth.waits[peer]) for peer in wait.peers
                                        if peer in truth.waits and truth.waits[peer].cause == "ring")


def root_groups(truth, mode):
    """Returns sets of processes. The processes of a set hang for one cause that this mode can know. A report must have a
    finding about each set."""
    groups = []
    for wait in truth.stuck():
        if mode == "core" and not is_in_one_memory(truth, wait) or is_hidden(truth, wait) or has_hidden_link(truth, wait):
            continue
        if mode == "why" and is_of_orphan(truth, wait.process):
            continue
        if wait.cause == "ring":
            members = {truth.waits[peer].process for peer in wait.peers if peer in truth.waits and truth.waits[peer].cause == "ring"} | {wait.process}
        elif wait.cause == "victim":
            continue
        else:
            members = {wait.process}
        joined = [group for group in groups if group & members]
        groups = [group for group in groups if not group & members] + [members.union(*joined)]
    return groups


def is_about_several(group, finding):
    return len(group) > 1 or finding.get("count", 1) > 1 or finding["rule"] == "abandoned-shared-lock"  # this rule reports all waiting processes


def is_victim_of(truth, process, victims):
    """True if the process hangs, and could end a wait of one of these victims if it did not hang. If the victim could also end
    that wait itself, the oracle calls the cause a ring."""
    return any(wait.process in victims and (may_end_it(truth, wait, process) or any(
        truth.waits[peer].process == process for peer in wait.peers if peer in truth.waits)) for wait in truth.stuck() if wait.process != process)


def is_tolerated(entry, mode):
    """True if a wrong finding is only a candidate, and so makes no claim. `why` and `core` may report the hang of an idle program with the
    certainty `possible`: `why` names what was probably meant to end the wait, and a core does not show the signal handlers. All commands
    may name a `possible` cause that is not the true one."""
    return mode in ("why", "core") and entry.wrong != "" and entry.hang == "possible" or entry.wrong == "cause" and entry.cause == "possible"


def judge(truth, result, mode):
    """Returns (verdict, judged findings). The verdict is right, weaker, hidden, silent or wrong."""
    findings = (result["report"] or {"findings": []})["findings"]
    judged = [with_sentences(judge_finding(finding, truth, result["slots"], mode), finding, truth, result) for finding in findings]
    tolerated = [entry for entry in judged if is_tolerated(entry, mode)]
    wrong = [entry for entry in judged if entry.worth == "wrong" and entry not in tolerated or entry.false_sentences()]
    if wrong:
        return "wrong", judged
    if truth.is_healthy():
        return ("weaker" if tolerated else "right"), judged
    worths = []
    for group in root_groups(truth, mode):
        about = [entry.worth for entry, finding in zip(judged, findings)
                 if entry.process in group or is_about_several(group, finding) and mentioned(finding, result["slots"], truth) & group
                 or is_victim_of(truth, entry.process, mentioned(finding, result["slots"], truth) & group)]
        worths.append(min((worth for worth in about if worth in ORDER), key=ORDER.index, default="silent"))
    if not worths and not any(entry.worth in ORDER for entry in judged):
        return "hidden", judged
    worst = max(worths, key=ORDER.index, default="right")
    return ("silent" if worst == "wrong" else worst), judged
