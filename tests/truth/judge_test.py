"""Tests the judge and the shrinker with made-up findings. The judge must reject each false claim, and accept each true one."""
import io
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "oracle"), str(HERE / "judge")]

from campaign import Results, stream, verdicts_of  # noqa: E402
from oracle import judge as find_truth  # noqa: E402
from page import write_part  # noqa: E402
from scenario import parse  # noqa: E402
from shrink import shrink  # noqa: E402
from stage import thread_names  # noqa: E402
from verdict import judge  # noqa: E402

ORPHAN = "mutex m\n--\nmain create t\nt lock m\nmain fork p\nfree\nt unlock m\np lock m\nmain wait p\nmain join t\n"
IDLE = "sem s 0\n--\nmain handle usr1 post s\nfree\nmain swait s\n"
TWO = "sem s 0\nmutex m\n--\nmain lock m\nmain fork p\nmain fork q\nfree\np swait s\nq lock m\nmain wait p\nmain wait q\n"


class Scene:
    """A scenario with made-up tids: its threads have the tids 100, 101, ... in order. The pid of a process is the tid of its first thread."""

    def __init__(self, text):
        self.scenario = parse(text)
        self.truth = find_truth(self.scenario)
        names = thread_names(self.scenario)
        self.slots = {}
        for index, name in enumerate(names):
            if ("t", name) not in self.truth.state:
                continue  # the thread does not exist, because the fork that makes it has not returned
            process = self.truth.state["t", name][0]
            self.slots[name] = {"pid": 100 + names.index(process), "tid": 100 + index, "process": names.index(process)}

    def finding(self, rule, thread, hang="proven", outcome="hang", cause=None, **more):
        slot = self.slots[thread]
        return {"rule": rule, "hang": hang, "cause": cause or hang, "outcome": outcome, "process": {"pid": slot["pid"]}, "thread": {"tid": slot["tid"]},
                "processes": [], "victims": []} | more

    def verdict(self, *findings, mode="run"):
        return judge(self.truth, {"report": {"findings": list(findings)}, "slots": self.slots}, mode)[0]


class Judge(unittest.TestCase):
    def test_the_true_cause_is_right(self):
        scene = Scene(ORPHAN)
        self.assertEqual(scene.verdict(scene.finding("orphaned-mutex", "p")), "right")

    def test_less_than_the_cause_is_weaker(self):
        scene = Scene(ORPHAN)
        self.assertEqual(scene.verdict(scene.finding("lost-wakeup", "p")), "weaker")
        self.assertEqual(scene.verdict(scene.finding("deadlock", "p")), "weaker")

    def test_another_cause_is_wrong(self):
        scene = Scene(ORPHAN)
        for rule in ("self-held-lock", "self-deadlock", "orphaned-semaphore", "abandoned-shared-lock", "pipe-deadlock", "join-cycle"):
            self.assertEqual(scene.verdict(scene.finding(rule, "p")), "wrong", rule)

    def test_a_candidate_is_no_false_claim(self):
        scene = Scene(ORPHAN)
        self.assertEqual(scene.verdict(scene.finding("self-held-lock", "p", "possible", "may-hang")), "silent")

    def test_only_run_knows_the_readers_of_a_rwlock(self):
        scene = Scene("rwlock r\n--\nmain create t\nmain fork p\np rdlock r\nfree\np wrlock r\nmain wait p\n")
        candidate = scene.finding("orphaned-rwlock", "p", cause="possible")
        self.assertEqual(scene.verdict(candidate, mode="why"), "right")
        self.assertEqual(scene.verdict(candidate), "weaker")
        self.assertEqual(scene.verdict(scene.finding("orphaned-rwlock", "p", cause="likely"), mode="why"), "wrong")
        alone = Scene("rwlock r\n--\nmain fork p\np rdlock r\nfree\np wrlock r\nmain wait p\n")  # no thread was lost
        self.assertEqual(alone.verdict(alone.finding("orphaned-rwlock", "p", cause="possible"), mode="why"), "weaker")

    def test_a_hang_without_a_finding_is_silent(self):
        self.assertEqual(Scene(ORPHAN).verdict(), "silent")

    def test_each_cause_must_be_reported(self):
        scene = Scene(TWO)
        reported = scene.finding("deadlock", "p")
        self.assertEqual(scene.verdict(reported), "silent")
        self.assertEqual(scene.verdict(reported, scene.finding("self-deadlock", "q")), "right")

    def test_a_hang_that_nobody_could_know_is_hidden(self):
        text = "sem s 0{}\nmutex m\n--\nmain fork p\np create t\nfree\np {}\nt {}\nmain {}\n"
        for shared, waits, other, mains, expected in (
                ("", "swait s", "nap", "nap", "hidden"), ("", "swait s", "end", "wait p", "silent"), ("", "swait s", "end", "nap", "silent"),
                (" shared", "swait s", "end", "nap", "hidden"), ("", "lock m\np lock m", "nap", "nap", "hidden"),
                ("", "handle usr1 nop\np swait s", "end", "nap", "hidden")):
            self.assertEqual(Scene(text.format(shared, waits, other, mains)).verdict(), expected, (shared, waits, other, mains))

    def test_a_wait_for_a_file_lock_is_hidden_if_its_holder_may_release_it(self):
        text = "file f\n--\nmain fork p\n{}\nmain flock f\nfree\np flock f\nmain {}\n"
        for handler, mains, expected in (("p say 1", "wait p", "silent"), ("main handle usr1 nop", "wait p", "hidden"),
                                         ("p handle usr1 nop", "wait p", "silent")):
            self.assertEqual(Scene(text.format(handler, mains)).verdict(), expected, (handler, mains))

    def test_a_thread_that_opens_a_fifo_may_go_on(self):
        text = "barrier b 2\nfifo i\n--\nmain create t\nfree\nt {}\nmain arrive b\n"
        self.assertEqual(Scene(text.format("open i r")).verdict(), "hidden")
        self.assertEqual(Scene(text.format("lock m").replace("fifo i", "mutex m")).verdict(), "silent")

    def test_a_wait_is_hidden_if_the_other_end_is_in_the_queue_of_a_socket(self):
        text = "pipe q\nchannel x\nsem s 0\n--\n{}main create t\nfree\nt swait s\nmain read q\nmain join t\n"
        self.assertEqual(Scene(text.format("main send x q w\nmain close q w\n")).verdict(), "hidden")
        self.assertEqual(Scene(text.format("")).verdict(), "silent")

    def test_a_process_that_shares_memory_with_a_hung_process_may_be_its_victim(self):
        scene = Scene("sem s 0 shared\nsem r 0\n--\nmain fork p\nfree\np swait r\nmain swait s\n")
        with_victim = scene.finding("deadlock", "p", victims=[{"pid": 100}])
        self.assertEqual(scene.verdict(with_victim), "right")
        self.assertEqual(scene.verdict(scene.finding("deadlock", "p")), "silent")

    def test_equal_findings_that_were_merged(self):
        scene = Scene("sem s 0\n--\nmain fork p\nmain fork q\nfree\np swait s\nq swait s\nmain wait p\nmain wait q\n")
        both = scene.finding("deadlock", "p", processes=[{"pid": 101}, {"pid": 102}], count=2)
        self.assertEqual(scene.verdict(both), "right")
        self.assertEqual(scene.verdict(both | {"count": 1}), "silent")
        idle = Scene("sem s 0\n--\nmain fork p\nmain fork q\nfree\np swait s\nq nap\nmain wait p\nmain wait q\n")
        self.assertEqual(idle.verdict(both), "wrong")

    def test_a_hang_where_there_is_none_is_wrong(self):
        scene = Scene(IDLE)
        self.assertEqual(scene.verdict(), "right")
        for certainty in ("proven", "likely", "possible"):
            self.assertEqual(scene.verdict(scene.finding("deadlock", "main", certainty)), "wrong", certainty)

    def test_why_may_report_an_idle_program_as_possible(self):
        scene = Scene(IDLE)
        self.assertEqual(scene.verdict(scene.finding("deadlock", "main", "possible", "may-hang"), mode="why"), "weaker")
        self.assertEqual(scene.verdict(scene.finding("deadlock", "main", "likely"), mode="why"), "wrong")

    def test_a_hang_that_an_unseen_alarm_may_end_must_state_that_condition(self):
        text = "sem s 0\n--\nmain fork p\n{}p alarm\nfree\nmain wait p\np swait s\n"
        scene = Scene(text.format(""))
        child = scene.finding("deadlock", "p")
        plain = scene.finding("deadlock", "main")
        stated = plain | {"chain": ["For 1.1 s it has slept: this proves that the process never goes on, unless a signal ends process 101."]}
        self.assertEqual(scene.verdict(child, plain), "wrong")
        self.assertEqual(scene.verdict(child, stated), "right")
        self.assertEqual(Scene(text.format("p handle alrm post s\n")).verdict(stated), "wrong")

    def test_two_certainties_are_judged_separately(self):
        scene = Scene(TWO)
        unknown = scene.finding("lost-wakeup", "p", hang="proven", cause="unknown")
        self.assertEqual(scene.verdict(unknown, scene.finding("self-deadlock", "q")), "right")
        self.assertEqual(scene.verdict(scene.finding("lost-wakeup", "p", hang="proven", cause="likely")), "wrong")

    def test_a_waiting_atfork_handler_has_its_own_rules(self):
        scene = Scene("mutex m\nsem s 0\n--\nmain atfork child m\nmain create t\nt lock m\nfree\nmain fork p\nt swait s\nmain wait p\n")
        self.assertEqual(scene.verdict(scene.finding("atfork-child-stuck", "p"), scene.finding("deadlock", "t")), "right")
        self.assertEqual(scene.verdict(scene.finding("atfork-handler-stuck", "p")), "wrong")

    def test_a_lost_pool_of_libgomp(self):
        scene = Scene("--\nmain region\nmain fork p\nfree\np region\nmain wait p\n")
        self.assertEqual(scene.verdict(scene.finding("lost-openmp-pool", "p")), "right")
        self.assertEqual(scene.verdict(scene.finding("orphaned-mutex", "p")), "wrong")

    def test_a_finding_that_gives_a_victim_its_own_cause_is_wrong(self):
        scene = Scene(ORPHAN)
        self.assertEqual(scene.verdict(scene.finding("orphaned-mutex", "p"), scene.finding("orphaned-mutex", "main")), "wrong")


RING = "mutex a recursive\nmutex b\n--\nmain create t\nmain lock a\nt lock b\nfree\nmain lock b\nt lock a\n"
READER = "pipe q\n--\nmain fork p\nmain fork r\nr close q w\nfree\nmain read q\nr read q\np read q\n"
RW = "rwlock r writer\n--\nmain rdlock r\nfree\nmain wrlock r\n"
NAME = "truth::(anonymous namespace)::g_private"


class Sentences(unittest.TestCase):
    """The tids are 100, 101, .... Private objects lie at 0x1000, shared objects at 0x2000. Each has 64 bytes. Descriptors start at 100."""

    def answer(self, text, thread, *sentences, scene=None):
        scene = scene or Scene(text)
        found = judge(scene.truth, {"report": {"findings": [scene.finding("deadlock", thread, chain=list(sentences))]}, "slots": scene.slots,
                                    "scenario": scene.scenario, "at": (0x1000, 0x2000, 64)}, "run")
        answers = [answer for answer, _, _ in found[1][0].sentences]
        self.assertEqual(found[0] == "wrong", "false" in answers or found[1][0].worth == "wrong")
        return answers[-1]

    def holds(self, text, thread, true, false):
        """Checks that the judge calls the first sentence true and the second one false."""
        for sentence, expected in ((true, "true"), (false, "false")):
            sentences = sentence if isinstance(sentence, tuple) else (sentence,)
            self.assertEqual(self.answer(text, thread, *sentences), expected, sentences[-1])

    def test_who_waits_for_what(self):
        self.holds(ORPHAN, "p", f"Thread 102 of child 102 is at steps.cpp:30 (truth::(anonymous namespace)::lock_mutex), locking {NAME}.",
                   f"Thread 102 of child 102 is at steps.cpp:30 (truth::(anonymous namespace)::lock_mutex), locking {NAME}+0x40.")
        self.holds(RING, "main", f'Thread 100 "x" waits for {NAME}+0x40, which thread 101 "x" holds.', f"Thread 100 waits for {NAME}, which thread 101 holds.")
        self.holds(RING, "main", f"Thread 100 waits for {NAME}+0x40, which thread 101 holds.", f"Thread 100 waits for {NAME}+0x40, which it itself holds.")
        self.holds(RING, "main", "Thread 101 waits for the mutex at 0x1000.", "Thread 101 waits for the mutex at 0x1040.")
        self.holds(ORPHAN, "main", "Thread 100 waits for process 102 to end.", "Thread 100 waits for process 100 to end.")
        self.holds(RW, "main", f"Thread 100 waits to lock {NAME} for writing, and it is locked for reading.",
                   f"Thread 100 waits to lock {NAME} for writing, and it is locked for reading 2 times.")

    def test_whose_thread_it_is(self):
        self.holds(ORPHAN, "p", f"Thread 102 of child 102 waits for {NAME}.", f"Thread 102 of process 100 waits for {NAME}.")

    def test_what_was_held_or_lost_at_the_fork(self):
        first = f"Thread 102 of child 102 waits for {NAME}."
        self.holds(ORPHAN, "p", (first, 'At the fork the lock was held by thread 101 "x" of process 100, which took it at steps.cpp:30.'),
                   (first, 'At the fork the lock was held by thread 100 "x" of process 100.'))
        self.holds(ORPHAN, "p", "It was forked from process 100, which had 1 more thread: thread 101.",
                   "It was forked from process 100, which had 2 more threads: thread 101, thread 100.")

    def test_a_lost_thread_without_a_number(self):
        self.holds(ORPHAN, "p", "It was forked from process 100, which had 1 more thread: another thread started with truth::(anonymous namespace)::f.",
                   "It was forked from process 100, which had 2 more threads: another thread, another thread.")

    def test_who_had_arrived_at_a_barrier(self):
        text = "barrier b 3\n--\nmain create t\nt ! arrive b\nmain fork p\nfree\np arrive b\nmain wait p\n"
        first = f"Thread 102 of child 102 is at steps.cpp:43 (truth::(anonymous namespace)::arrive), waiting at {NAME}."
        fork = "At the fork thread {} of process 100 had arrived there and waited for the others."
        self.holds(text, "p", (first, fork.format(101)), (first, fork.format(100)))

    def test_an_unlock_that_was_refused(self):
        text = "mutex m {}\n--\nmain lock m\nmain fork p\nfree\np lock m\nmain unlock m\nmain wait p\n"
        sentence = f"Thread 101 of child 101 had tried to unlock {NAME}, which was refused (EPERM) and left it locked."
        self.assertEqual(self.answer(text.format("recursive"), "p", sentence), "true")
        self.assertEqual(self.answer(text.format(""), "p", sentence), "false")

    def test_who_has_a_pipe_open(self):
        head = "Thread 100 reads from pipe:[7] (its descriptor 100), which process"
        self.holds(READER, "main", f"{head} 101 has open for writing (descriptor 101 there).", f"{head} 102 has open for writing (descriptor 101 there).")
        head = "A reader gets end of file when the last writing end is closed. These are open:"
        about = "Thread 100 reads from pipe:[7] (its descriptor 100), which its own process has open for writing (descriptor 101 there)."
        self.holds(READER, "main", (about, f"{head} the reader itself (descriptor 101), process 101 (descriptor 101)."),
                   (about, f"{head} the reader itself (descriptor 101), process 101 (descriptor 101), process 102 (descriptor 101)."))
        self.assertEqual(self.answer(READER, "main", about, f"{head} the reader itself (descriptor 101)."), "false")  # the sentence leaves out a descriptor

    def test_who_has_a_lock_of_a_file(self):
        text = "file f\n--\nmain fork p\nmain fork r\nmain {0} f\nfree\np {0} f\nmain wait p\nmain wait r\nr nap\n"
        for operation in ("flock", "olock", "plock"):
            head = "Process 101 waits for a lock of /tmp/f (its descriptor 3), which process"
            self.holds(text.format(operation), "p", f"{head} 100 holds (descriptor 3 there).", f"{head} 102 holds (descriptor 3 there).")
            self.assertEqual(self.answer(text.format(operation), "p", f"{head} 101 holds (descriptor 3 there)."), "false")  # 101 itself is the waiting process

    def test_an_object_in_the_memory_of_a_destroyed_object(self):
        text = "mutex m\nmutex n recursive at m\nsem s 0\n--\nmain drop m\nmain make n\nmain create t\nt lock n\nfree\nt swait s\nmain lock n\n"
        self.holds(text, "main", f"Thread 100 waits for {NAME}, which thread 101 holds.", f"Thread 100 waits for {NAME}, which it itself holds.")
        self.assertEqual(self.answer(text, "main", f"Thread 100 waits for {NAME}.", "The mutex is not recursive: even its owner must wait."), "false")

    def test_workers_of_libgomp_are_counted(self):
        text = "sem s 0\n--\nmain region\nmain create t\nmain fork p\nfree\nmain swait s\nt swait s\np region\n"
        self.holds(text, "p", "It was forked from process 100, which had 2 more threads: thread 101, another thread.",
                   "It was forked from process 100, which had 1 more thread: thread 101.")
        ends = "threads have slept without a timeout, and no thread of any process can wake it: this proves that the process never goes on."
        self.holds(text, "main", f"For 1.1 s all its 3 {ends}", f"For 1.1 s all its 2 {ends}")

    def test_whether_the_process_may_go_on(self):
        proven = "without a timeout, and no thread of any process can wake it: this proves that the process never goes on."
        self.holds(RING, "main", f"For 1.1 s all its 2 threads have slept in a futex {proven}", f"For 1.1 s its only thread has slept in a futex {proven}")
        self.assertEqual(self.answer(IDLE, "main", f"For 500 ms its only thread has slept in a futex {proven}"), "false")
        parent = "sem s 0\n--\nmain fork p\np alarm\nfree\nmain wait p\np swait s\n"
        sleeps = "For 500 ms its only thread has slept without a timeout, and no thread of any process can wake it: this proves that the process never goes on"
        self.holds(parent, "main", f"{sleeps}, unless a signal ends process 101.", f"{sleeps}.")
        only = "For 500 ms its only thread has slept in a futex without a timeout: no thread of any process can wake it, only a handler of SIG{} could."
        self.holds(IDLE, "main", only.format("USR1"), only.format("TERM"))
        other = "sem s 0\n--\nmain fork p\np handle usr1 nop\nfree\nmain swait s\np pause\n"
        self.holds(other, "main", only.format("USR1 in process 101 (x)"), only.format("USR1"))

    def test_the_kind_of_a_lock(self):
        first = f"Thread 101 waits for {NAME}."
        self.assertEqual(self.answer(RING, "t", first, "The mutex is not recursive: even its owner must wait."), "false")
        self.assertEqual(self.answer(ORPHAN, "p", f"Thread 102 waits for {NAME}.", "The mutex is not recursive: even its owner must wait."), "true")

    def test_who_waited_at_the_fork_for_a_condition(self):
        text = "mutex m\ncond c\n--\nmain create t\nt lock m\nt ! cwait c m\nmain create u\nmain fork p\nfree\np destroy c\nmain wait p\n"
        first = f"Thread 103 of child 103 is at steps.cpp:30, destroying {NAME}+0x40."
        fork = "At the fork {} waited on it at steps.cpp:62 (truth::(anonymous namespace)::f): {} of process 100."
        self.holds(text, "p", (first, fork.format("1 thread", 'thread 101 "x"')), (first, fork.format("1 thread", "thread 102")))
        self.assertEqual(self.answer(text, "p", first, fork.format("2 threads", "thread 101 and 1 more")), "false")
        self.holds(text, "p", (first, fork.format("1 thread", "another thread")), (first, fork.format("2 threads", "another thread")))
        self.assertEqual(self.answer(text, "p", f"Thread 103 of child 103 signalled {NAME}+0x40, where a thread of the child waited."), "true")
        self.assertEqual(self.answer(text, "p", f"Thread 103 of child 103 signalled {NAME}, where a thread of the child waited."), "false")

    def test_whose_pool_it_was(self):
        text = "--\nmain create t\nt region\nt fork p\nfree\np region\nt wait p\nmain join t\n"
        head = "The others were to come from the libgomp pool of the thread that forked,"
        self.holds(text, "p", f"{head} another thread of process 100: 1 worker, made at steps.cpp:9.", f"{head} another thread of process 100: 2 workers.")
        self.holds(text, "p", f"{head} thread 101 of process 100: 1 worker, made at steps.cpp:9.", f"{head} thread 100 of process 100: 1 worker.")
        self.holds(text, "p", f"{head} another thread of an ancestor: 1 worker.", f"{head} another thread of process 102: 1 worker.")
        region = "Thread 102 of child 102 entered a parallel region for {} threads at steps.cpp:9 and has not come out: it waits for 1 other thread."
        self.holds(text, "p", region.format(2), region.format(3))

    def test_the_routine_of_pthread_once(self):
        text = "once o\nonce n\n--\nmain obegin o\nmain create t\n{}free\nmain obegin o\nt nap\n"
        first = "Thread 100 of process 100 is at steps.cpp:30, in pthread_once(), until the routine has returned."
        inside = "The same thread is inside of a routine of pthread_once(), which it entered at steps.cpp:31. No other thread of the process is inside of one."
        self.assertEqual(self.answer(text.format(""), "main", first, inside), "true")
        self.assertEqual(self.answer(text.format("t obegin n\n"), "main", first, inside), "false")
        self.assertEqual(self.answer(RING, "main", first), "false")

    def test_a_worker_of_libgomp_waits_in_a_futex(self):
        text = "sem s 0\n--\n{}free\nmain swait s\n"
        waits = "Thread 999 waits in {} for a thread that wakes it."
        self.holds(text.format("main region\n"), "main", waits.format("a futex"), waits.format("a std::future"))
        self.assertEqual(self.answer(text.format(""), "main", waits.format("a futex")), "unknown")

    def test_a_timer_that_is_not_armed(self):
        text = "timerfd d\ntimerfd e\n--\n{}free\nmain read d\n"
        first, not_armed = "Thread 100 of process 100 reads descriptor {} at file_steps.cpp:9, a timerfd.", "The timer is not armed: it has no time at which it expires."
        self.holds(text.format(""), "main", (first.format(100), not_armed), first.format(102))
        self.assertEqual(self.answer(text.format("main arm d\n"), "main", first.format(100), not_armed), "false")

    def test_the_other_end_of_a_fifo(self):
        text = "fifo i\nsem s 0\n--\nmain fork p\n{}main fork r\nr exit 0\nfree\nmain open i r\np nap\n"
        first = "Thread 100 of process 100 has waited for 1.1 s in open() at file_steps.cpp:9: it returns once somebody opens the other end."
        self.assertEqual(self.answer(text.format(""), "main", first, "No process has the other end open."), "true")
        self.assertEqual(self.answer(text.format("").replace("p nap", "p open i r"), "p", first, "No process has the other end open."), "true")
        self.holds(text.format(""), "main", "Process 102 (x) has ended, and nobody has waited for its end yet.",
                   "Process 101 (x) has ended, and nobody has waited for its end yet.")
        self.assertEqual(self.answer(RING, "main", first), "false")

    def test_which_handler_of_fork_waits(self):
        text = "mutex m\nmutex n\n--\nmain atfork keep n\nmain atfork keep m\nmain atfork child n\nmain lock m\nfree\nmain fork p\n"
        called = "Thread 100 of process 100 called fork() at fork_steps.cpp:9, and fork() returns only after it has called the handlers that pthread_atfork() registered."
        number = "The prepare handlers are called last registered first; this handler is number {} of {}, registered by truth_play."
        self.holds(text, "main", (called, number.format(2, 3)), (called, number.format(3, 3)))
        self.assertEqual(self.answer(text, "main", called, number.format(1, 2)), "false")
        self.assertEqual(self.answer(text, "main", called, "The child handlers are called first registered first; this handler is number 1 of 3."), "false")
        self.assertEqual(self.answer(text, "main", called, "fork() calls the prepare handlers before it makes the child, so there is no child yet."), "true")
        locks = "The handler locks {} (fork_steps.cpp:8), which the forking thread itself took at steps.cpp:30."
        self.holds(text, "main", (called, locks.format(NAME)), (called, locks.format(NAME + "+0x40")))
        self.assertEqual(self.answer(RING, "main", called), "false")
        child = "mutex m\n--\nmain atfork child m\nmain create t\nt lock m\nfree\nmain fork p\nt nap\nmain wait p\n"
        called = "Thread 102 of child 102 called fork() at fork_steps.cpp:9, and fork() returns only after it has called the handlers that pthread_atfork() registered."
        locks = "The handler locks " + NAME + " (fork_steps.cpp:8), which {} took at steps.cpp:30 and which no thread of the child holds."
        self.holds(child, "p", (called, locks.format('thread 101 "x"')), (called, locks.format("the forking thread itself")))
        self.assertEqual(self.answer(child, "p", called, "fork() calls the prepare handlers before it makes the child, so there is no child yet."), "false")

    def test_an_eventfd_that_a_process_has_open(self):
        text = "eventfd e 0\neventfd f 0\n--\nfree\nmain read e\n"
        waits = "Thread 100 at file_steps.cpp:9 waits for eventfd:7 (its descriptor {}), which its own process has open (descriptor {} there)."
        self.holds(text, "main", waits.format(100, 101), waits.format(102, 103))
        self.assertEqual(self.answer(text, "main", waits.format(100, 103)), "false")

    def test_a_handler_that_may_jump(self):
        sentence = ("It is not proven that this never ends: a signal may come from a timer, from the end of a child or from another thread, "
                    "and end the process or run a handler that jumps out of the wait.")
        self.assertEqual(self.answer(IDLE, "main", sentence), "true")
        self.assertEqual(self.answer(RING, "main", sentence), "false")

    def test_a_lock_that_a_thread_of_an_ancestor_held(self):
        first = f"Thread 102 of child 102 waits for {NAME}."
        self.holds(ORPHAN, "p", (first, "At the fork the lock was held by thread 101 of an ancestor."), (first, "At the fork the lock was held by thread 100 of an ancestor."))

    def test_an_unknown_sentence_is_not_called_false(self):
        self.assertEqual(self.answer(ORPHAN, "p", "Thread 102 eats 5 sandwiches."), "unknown")
        self.assertEqual(self.answer(ORPHAN, "p", f"Thread 999 waits for {NAME}."), "unknown")
        self.assertEqual(self.answer(ORPHAN, "p", "A semaphore has no owner, but no task is left that could post it."), "plain")

    def test_a_tid_that_an_exec_gave_to_another_thread(self):
        scene = Scene(ORPHAN)
        scene.slots["p"]["tid"] = 101  # the tid of thread t, so two threads have this tid
        sentences = (f"Thread 101 waits for {NAME}.", "At the fork the lock was held by thread 101 of its parent.")
        self.assertEqual([self.answer("", "p", *sentences[:count], scene=scene) for count in (1, 2)], ["true", "true"])


class Shrinker(unittest.TestCase):
    def test_steps_that_do_not_matter_are_removed(self):
        more = ORPHAN.replace("--\n", "sem s 1\n--\nmain swait s\nmain say a\n").replace("free\n", "p say b\nfree\n")
        small = shrink(parse(more), lambda _, truth: any(wait.cause == "orphan" for wait in truth.stuck()))
        self.assertLess(len(small.steps), len(parse(ORPHAN).steps) + 1)
        self.assertEqual({step.operation for step in small.steps} & {"say", "swait"}, set())
        self.assertTrue(any(wait.cause == "orphan" for wait in find_truth(small).stuck()))


class Campaign(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.binary, self.file = self.folder / "forksight", self.folder / "results"
        self.binary.write_text("one")
        self.scene = Scene(ORPHAN)

    def results(self, modes=("why",)):
        return Results(self.file, self.binary, list(modes))

    def test_results_that_were_written_are_read_again(self):
        judged = judge(self.scene.truth, {"report": {"findings": [self.scene.finding("orphaned-mutex", "p")]}, "slots": self.scene.slots}, "why")
        self.results().add(7, self.scene.truth, {"why": (*judged, "")})
        with open(self.file, "a", encoding="utf-8") as file:
            file.write('{"seed": 8, "hea')  # as if the campaign was killed while it wrote this line
        again = self.results()
        self.assertEqual(list(again.entries), [7])
        self.assertEqual(verdicts_of(again.entries[7]), {"why": (*judged, "")})
        again.add(8, self.scene.truth, {})
        self.assertEqual(list(self.results().entries), [7, 8])

    def test_results_of_two_commands_are_not_mixed(self):
        self.results()
        self.binary.write_text("another")
        with self.assertRaises(SystemExit):
            self.results()
        self.binary.write_text("one")
        with self.assertRaises(SystemExit):
            self.results(("run",))

    def test_each_seed_is_played_once_until_it_is_enough(self):
        played = []
        stream(range(5), 2, lambda seed, word: played.append((seed, word)), str_of)
        self.assertEqual(sorted(played), [(seed, str(seed)) for seed in range(5)])
        stream(range(100), 1, lambda seed, word: played.append(seed), str_of, lambda: len(played) > 10)
        self.assertLess(len(played), 20)

    def test_plays_that_have_started_finish_after_an_interruption(self):
        played = []

        def interrupt():
            raise KeyboardInterrupt

        with redirect_stdout(io.StringIO()):
            stream(range(100), 2, lambda seed, word: played.append(seed), str_of, interrupt)
        self.assertEqual(played, [0])

    def test_a_part_of_a_page_leaves_the_others_alone(self):
        page = self.folder / "page.md"
        page.write_text("# Head\n")
        write_part(page, "a", ["one"])
        write_part(page, "b", ["two"])
        write_part(page, "a", ["three"])
        self.assertEqual(page.read_text(), "# Head\n\n<!-- a: begin -->\nthree\n<!-- a: end -->\n\n<!-- b: begin -->\ntwo\n<!-- b: end -->\n")


def str_of(seed):
    return (str(seed),)


if __name__ == "__main__":
    unittest.main()
