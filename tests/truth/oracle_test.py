"""Compares the oracle with scenarios whose truth was worked out by hand: which threads are blocked, and why."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "oracle")]

from generate import generate  # noqa: E402
from oracle import judge  # noqa: E402
from scenario import parse  # noqa: E402
from undefined import Undefined  # noqa: E402


def truth_of(text):
    return judge(parse(text))


def causes(text):
    return {wait.thread: wait.cause or "until " + ",".join(wait.open_by) for wait in truth_of(text).waits.values()}


class Oracle(unittest.TestCase):
    def test_a_lock_of_a_lost_thread(self):
        text = "mutex m\n--\nmain create t\nt lock m\nmain fork p\nfree\nt unlock m\np lock m\nmain wait p\nmain join t\n"
        self.assertEqual(causes(text), {"p": "orphan", "main": "victim"})
        self.assertEqual(truth_of(text).waits["p"].lost, ("t",))

    def test_a_lock_that_the_child_initialised_anew(self):
        self.assertTrue(truth_of("mutex m\n--\nmain create t\nt lock m\nmain fork p\np init m\nfree\nt unlock m\np lock m\nmain wait p\n").is_over())

    def test_a_lost_thread_that_would_have_posted(self):
        head = "sem s 0\n--\nmain create t\nmain fork p\nfree\np swait s\nmain wait p\n"
        self.assertEqual(causes(head + "t post s\n"), {"p": "lost-waker", "main": "victim"})
        self.assertEqual(causes(head), {"p": "no-waker", "main": "victim"})

    def test_a_lost_thread_that_would_have_set_a_word(self):
        text = "word w 0\n--\nmain create t\nt fork p\nmain create u\nfree\np fwait w 0\nu fset w 1\nt wait p\nmain wait p\n"
        with self.assertRaises(Undefined):  # two threads wait for one child
            truth_of(text)
        self.assertEqual(causes(text.replace("main wait p\n", "main join t\n"))["p"], "lost-waker")

    def test_a_lost_thread_that_had_taken_a_semaphore(self):
        text = "sem s 1\n--\nmain create t\nt swait s\nmain fork p\nfree\np swait s\nt nap\nmain wait p\n"
        self.assertEqual(causes(text)["p"], "orphan")

    def test_a_grandchild_lacks_what_its_grandparent_lost(self):
        head = "sem s {}\n--\nmain create t\n{}main fork p\np fork q\nfree\nq swait s\n"
        self.assertEqual(causes(head.format(0, "") + "t post s\np wait q\nmain wait p\n")["q"], "lost-waker")
        self.assertEqual(causes(head.format(0, "") + "p wait q\nmain wait p\n")["q"], "no-waker")
        self.assertEqual(causes(head.format(1, "t swait s\n") + "p wait q\nmain wait p\n")["q"], "orphan")

    def test_a_recursive_mutex_that_the_forking_thread_holds(self):
        rest = "--\nmain lock m\nmain fork p\nfree\np unlock m\np lock m\nmain unlock m\nmain wait p\n"
        self.assertEqual(causes("mutex m recursive\n" + rest), {"p": "self-held", "main": "victim"})
        self.assertTrue(truth_of("mutex m\n" + rest).is_over())

    def test_a_mutex_locked_twice_across_a_fork(self):
        self.assertEqual(causes("mutex m\n--\nmain lock m\nmain fork p\nfree\np lock m\nmain wait p\n")["p"], "relock")

    def test_a_lock_that_is_lost_at_the_second_fork(self):
        text = "mutex m\n--\nmain lock m\nmain fork p\np create t\nt fork q\nfree\nq lock m\np unlock m\np join t\nt wait q\nmain wait p\n"
        self.assertEqual(causes(text)["q"], "orphan")

    def test_a_holder_that_ended(self):
        self.assertEqual(causes("mutex m\n--\nmain create t\nt lock m\nt end\nfree\nmain lock m\n"), {"main": "ended-holder"})

    def test_an_owner_whose_process_ended(self):
        rest = "--\nmain fork p\np lock m\np _exit 0\nfree\nmain wait p\nmain lock m\n"
        self.assertEqual(causes("mutex m shared\n" + rest), {"main": "abandoned"})
        self.assertTrue(truth_of("mutex m robust shared\n" + rest).is_over())

    def test_a_child_copies_no_list_of_robust_mutexes(self):
        text = "mutex m robust\n--\nmain create t\nt lock m\nmain fork p\nt alarm\nfree\np lock m\nmain wait p\n"
        self.assertEqual(causes(text), {"p": "orphan", "main": "victim"})  # the alarm ends the parent, but does not end this wait

    def test_a_ring(self):
        text = "mutex a\nmutex b\n--\nmain create t\nmain lock a\nt lock b\nfree\nmain lock b\nt lock a\n"
        self.assertEqual(causes(text), {"main": "ring", "t": "ring"})

    def test_a_reader_that_wants_to_write(self):
        self.assertEqual(causes("rwlock r\n--\nmain rdlock r\nfree\nmain wrlock r\n"), {"main": "upgrade"})

    def test_a_recursive_reader_behind_a_writer(self):
        rest = "--\nmain create t\nmain rdlock r\nt ! wrlock r\nfree\nmain rdlock r\nmain rwunlock r\nmain rwunlock r\nt rwunlock r\nmain join t\n"
        self.assertEqual(causes("rwlock r writer\n" + rest), {"main": "ring", "t": "ring"})
        self.assertTrue(truth_of("rwlock r\n" + rest).is_over())

    def test_a_static_that_a_lost_thread_was_initialising(self):
        text = "guard g\n--\nmain create t\nt gbegin g\nmain fork p\nfree\nt gend g\np gbegin g\nmain gbegin g\nmain wait p\nmain join t\n"
        self.assertEqual(causes(text), {"p": "orphan", "main": "victim"})
        self.assertTrue(truth_of(text.replace("main fork p\n", "t gend g\nmain fork p\n").replace("free\nt gend g\n", "free\n")).is_over())

    def test_a_static_that_the_forking_thread_was_initialising(self):
        text = "guard g\n--\nmain gbegin g\nmain fork p\nfree\nmain gend g\np {} g\nmain wait p\n"
        self.assertTrue(truth_of(text.format("gend")).is_over())
        with self.assertRaises(Undefined):
            truth_of(text.format("gbegin"))

    def test_a_future(self):
        text = "future u\n--\nmain create t\nmain fork p\nfree\np await u\nmain await u\n{}main wait p\n"
        self.assertEqual(causes(text.format("t fulfil u\n")), {"p": "lost-waker", "main": "victim"})
        self.assertEqual(causes(text.format(""))["p"], "no-waker")
        self.assertEqual(causes("future u\n--\nfree\nmain await u\nmain fulfil u\n"), {"main": "no-waker"})

    def test_events_from_outside_that_may_end_a_wait(self):
        self.assertEqual(causes("--\nfree\nmain read stdin\n"), {"main": "until input"})
        self.assertEqual(causes("--\nfree\nmain nap\n"), {"main": "until timer"})
        self.assertEqual(causes("--\nfree\nmain pause\n"), {"main": "until signal"})
        head = "sem s 0\nsem o 0\n--\nmain handle alrm post s\n"
        self.assertEqual(causes(head + "free\nmain swait s\n"), {"main": "until signal"})
        self.assertEqual(causes(head + "main alarm\nfree\nmain swait s\n"), {"main": "until alarm,signal"})
        self.assertEqual(causes(head + "main itimer\nfree\nmain swait s\n"), {"main": "until alarm,signal"})
        self.assertEqual(causes(head + "free\nmain swait o\n"), {"main": "no-waker"})

    def test_a_fifo_is_opened_by_two(self):
        self.assertEqual(causes("fifo f\n--\nfree\nmain open f r\n"), {"main": "no-waker"})
        both = "fifo f\n--\nmain fork p\nfree\np open f w\nmain open f r\nmain read f\nmain wait p\n"
        self.assertTrue(truth_of(both).is_over())  # the writer ends, so the reader gets end of file
        self.assertEqual(causes(both.replace("p open f w\n", "p open f w\np pause\n")), {"main": "until signal", "p": "until signal"})
        self.assertEqual(causes("fifo f\n--\nmain create t\nfree\nt open f w\nmain open f r\nmain read f\nmain join t\n"), {"main": "ring"})
        lost = "fifo f\n--\nmain create t\nt ! open f r\nmain fork p\nfree\nt nap\np {}\nmain wait p\n"
        self.assertEqual(causes(lost.format("open f r"))["p"], "no-waker")  # the reading end that a thread of the parent is opening does not count
        self.assertEqual(causes(lost.format("open f w")), {})
        with self.assertRaises(Undefined):
            truth_of(lost.format("read f"))  # the child does not have the end that the lost thread was opening

    def test_a_timer_that_is_a_descriptor(self):
        self.assertEqual(causes("timerfd d\n--\nmain arm d\nfree\nmain read d\n"), {"main": "until timer"})
        self.assertEqual(causes("timerfd d\n--\nfree\nmain read d\n"), {"main": "no-waker"})
        shared = "timerfd d\nsem s 0\n--\nmain fork p\nfree\np read d\nmain {}\nmain wait p\n"
        self.assertEqual(causes(shared.format("arm d")), {"p": "until timer", "main": "until timer"})
        self.assertEqual(causes(shared.format("swait s"))["p"], "no-waker")
        twice = "timerfd d\n--\nmain arm d\nmain create t\nfree\nt read d\nmain read d\n"
        self.assertEqual(causes(twice), {"main": "until timer", "t": "until timer"})

    def test_a_stopped_writer(self):
        text = "pipe q\n--\nmain fork p\nmain close q w\nmain stop p\nfree\np write q\nmain read q\nmain wait p\n"
        self.assertEqual(causes(text), {"main": "until continue", "p": "until continue"})

    def test_a_thread_that_is_stopped_and_also_blocked_for_ever(self):
        with self.assertRaises(Undefined):
            truth_of("mutex m\n--\nmain fork p\np lock m\np ! lock m\nmain stop p\nfree\nmain nap\n")

    def test_the_end_of_a_pipe(self):
        rest = "main read q\nmain wait p\n"
        self.assertTrue(truth_of("pipe q\n--\nmain fork p\nmain close q w\nfree\n" + rest).is_over())
        self.assertEqual(causes("pipe q\n--\nmain fork p\nfree\n" + rest), {"main": "ring"})

    def test_an_exec_ends_the_other_threads(self):
        with self.assertRaises(Undefined):
            truth_of("--\nmain create t\nmain exec\nfree\nmain join t\nt nap\n")

    def test_an_exec_with_a_shared_lock(self):
        text = "mutex m shared\n--\nmain create t\n{0} lock m\nmain fork p\np ! lock m\n{1} exec\nfree\n{1} nap\n"
        with self.assertRaises(Undefined):  # the lock records a thread id that its owner no longer has
            truth_of(text.format("t", "t"))
        self.assertEqual(truth_of(text.format("main", "t")).waits["p"].cause, "abandoned")

    def test_which_of_two_waiters_gets_the_signal_is_luck(self):
        one = "main create t\nmain lock m\nmain ! cwait c m\nfree\nt lock m\nt signal c\n"
        two = "main lock m\nmain create t\nt ! lock m\nmain ! cwait c m\nt done\nt create u\nt ! cwait c m\nfree\nu lock m\nu signal c\n"
        self.assertEqual(causes("mutex m\ncond c\n--\n" + one), {"main": "ended-holder"})
        with self.assertRaises(Undefined):
            truth_of("mutex m\ncond c\n--\n" + two)

    def test_a_daemon_of_the_leader_of_a_session(self):
        text = "--\nmain fork p {}\np fork q daemon\nfree\nmain wait p\n"
        with self.assertRaises(Undefined):
            truth_of(text.format("forkpty"))
        self.assertTrue(truth_of(text.format("")).is_over())

    # -- an object in the memory of a destroyed object

    def test_a_lock_in_the_memory_of_a_lost_lock(self):
        text = "mutex m\nmutex n at m\n--\nmain create t\nt lock m\nmain fork p\np {} m\np make n\nfree\nt unlock m\np lock n\n{}main wait p\n"
        self.assertTrue(truth_of(text.format("drop", "p unlock n\n")).is_over())
        self.assertEqual(causes(text.format("drop", "p lock n\n"))["p"], "self-deadlock")
        with self.assertRaises(Undefined):  # the object does not exist any more
            truth_of(text.format("drop", "p lock m\n"))
        with self.assertRaises(Undefined):  # the object at that place still exists
            truth_of(text.replace("p {} m\n", "").format("", ""))

    def test_an_object_that_a_thread_uses_must_not_be_destroyed(self):
        with self.assertRaises(Undefined):
            truth_of("mutex m\n--\nmain create t\nt lock m\nmain destroy m\nfree\n")

    # -- pthread_once()

    def test_a_routine_that_was_in_progress_at_the_fork(self):
        text = "once o\n--\nmain create t\nt obegin o\nmain fork p {}\nfree\nt oend o\np obegin o\np oend o\nmain wait p\n"
        self.assertTrue(truth_of(text.format("fork")).is_over())  # after fork() the child starts the routine again
        self.assertEqual(causes(text.format("_Fork").replace("p oend o\n", "")), {"p": "orphan", "main": "victim"})

    def test_a_routine_that_needs_itself(self):
        self.assertEqual(causes("once o\n--\nmain obegin o\nfree\nmain obegin o\n"), {"main": "self-deadlock"})

    def test_a_routine_that_a_thread_leaves_by_its_end(self):
        text = "once o\n--\nmain create t\nt obegin o\n{}free\nmain obegin o\nmain oend o\nmain join t\n"
        self.assertTrue(truth_of(text.format("t end\n")).is_over())

    # -- descriptors in the queue of a socket

    def test_a_writing_end_in_the_queue_of_a_socket(self):
        head = "pipe q\nchannel x\nsem s 0\n--\nmain fork p\nmain close x r\np close q w\nmain send x q w\nmain close q w\n"
        self.assertEqual(causes(head + "free\np swait s\nmain read q\nmain wait p\n"), {"p": "no-waker", "main": "victim"})
        self.assertTrue(truth_of(head + "p receive x\np write q\np close q w\nfree\nmain read q\nmain wait p\n").is_over())
        self.assertTrue(truth_of(head + "p close x r\nfree\nmain read q\nmain wait p\n").is_over())  # the kernel closes an end that nobody can receive
        self.assertEqual(causes(head + "free\np read stdin\np receive x\nmain read q\nmain wait p\n"), {"p": "until input", "main": "until input"})

    def test_a_channel_through_which_nothing_is_sent(self):
        text = "channel x\n--\nmain fork p\n{}free\np receive x\nmain wait p\n"
        self.assertEqual(causes(text.format("")), {"p": "ring", "main": "ring"})  # the reader itself has an end that could send
        self.assertTrue(truth_of(text.format("main close x w\np close x w\n")).is_over())

    # -- locks of files

    def test_locks_of_files_and_who_inherits_them(self):
        head = "file f\n--\nmain {} f\nmain fork p\nfree\np {} f\nmain wait p\n"
        self.assertTrue(truth_of(head.format("flock", "flock")).is_over())  # parent and child share the open file
        self.assertTrue(truth_of(head.format("olock", "olock")).is_over())
        self.assertEqual(causes(head.format("plock", "plock")), {"p": "ring", "main": "ring"})
        self.assertEqual(causes(head.format("plock", "olock")), {"p": "ring", "main": "ring"})
        self.assertTrue(truth_of(head.format("flock", "plock")).is_over())  # flock() and fcntl() locks do not exclude each other

    def test_a_ring_of_locks_of_files(self):
        text = "file f\nfile g\n--\nmain fork p\nmain {0} f\np {0} g\nfree\nmain {0} g\np {0} f\n"
        self.assertEqual(causes(text.format("flock")), {"p": "ring", "main": "ring"})
        self.assertEqual(causes(text.format("olock")), {"p": "ring", "main": "ring"})
        with self.assertRaises(Undefined):  # the kernel refuses a ring of locks of processes
            truth_of(text.format("plock"))

    def test_a_lock_of_a_process_ends_with_the_process_or_its_exec(self):
        text = "file f\n--\nmain fork p\np plock f\np {}\nfree\nmain plock f\nmain wait p\n"
        self.assertTrue(truth_of(text.format("_exit 0")).is_over())
        self.assertTrue(truth_of(text.format("exec")).is_over())

    # -- ways to fork, and handlers

    def test_handlers_keep_a_mutex(self):
        text = "mutex m{}\n--\nmain create t\nmain atfork {} m\n{}free\nmain fork p{}\np lock m\np unlock m\nmain wait p\nt nap\n"
        self.assertEqual(causes(text.format("", "keep", "", "")), {})
        held = text.replace("t nap", "t read q").replace("mutex", "pipe q\nmutex").format("", "keep", "t lock m\n", "")
        self.assertEqual(causes(held), {"main": "ring", "t": "ring"})  # the prepare handler waits, so there is no child
        self.assertEqual(causes(text.format(" errorcheck", "renew", "", "")), {})
        self.assertEqual(causes(text.format(" recursive", "keep", "", ""))["p"], "self-held")

    def test_a_handler_that_does_not_return(self):
        text = "mutex m\nsem s 0\n--\nmain atfork {} m\nmain create t\nt lock m\nfree\nmain fork p{}\nt swait s\nmain wait p\n"
        self.assertEqual(causes(text.format("keep", "")), {"main": "victim", "t": "no-waker"})
        self.assertEqual(truth_of(text.format("keep", "")).waits["main"].name, "m")
        self.assertEqual(causes(text.format("child", "")), {"main": "victim", "p": "orphan", "t": "no-waker"})
        self.assertTrue(truth_of(text.format("child", " _Fork")).is_over())  # _Fork() calls no handlers
        wait = truth_of(text.format("child", "")).waits["p"]
        self.assertEqual((wait.operation, wait.kind, wait.name), ("atfork child", "mutex", "m"))

    def test_a_forced_fork_that_waits_in_a_handler(self):
        text = "mutex m\n--\nmain atfork keep m\nmain create t\nt lock m\nmain ! fork p\nt unlock m\nmain done\nfree\np lock m\nmain wait p\n"
        self.assertTrue(truth_of(text).is_over())

    def test_a_handler_that_is_registered_while_handlers_run(self):
        text = "mutex m\nmutex n\n--\nmain create t\nmain create u\n{}main lock m\nt lock n\n{}free\nmain unlock m\nt unlock n\nu nap\n"
        before = text.format("u atfork keep n\nu atfork keep m\n", "main ! fork p\n")
        self.assertEqual(causes(before)["main"], "self-deadlock")
        with self.assertRaises(Undefined):
            truth_of(text.format("u atfork keep m\n", "main ! fork p\nu atfork keep n\n"))

    def test_children_that_start_this_program_again(self):
        for way in ("vfork", "spawn"):
            text = f"mutex m\n--\nmain lock m\nmain fork p {way}\nfree\np lock m\nmain wait p\n"
            self.assertTrue(truth_of(text).is_over())

    def test_a_handler_of_a_program_without_the_shared_memory(self):
        text = "sem s 0 shared\n--\nmain fork p{}\np handle usr1 post s\nfree\nmain swait s\np read stdin\n"
        self.assertEqual(causes(text.format(""))["main"], "until signal")
        with self.assertRaises(Undefined):
            truth_of(text.format(" spawn"))

    def test_a_daemon(self):
        text = "mutex m\n--\nmain fork p\np create t\nt lock m\np fork d daemon\nfree\nd lock m\nmain wait p\nmain nap\n"
        self.assertEqual(causes(text), {"d": "orphan", "main": "until timer"})
        self.assertEqual(truth_of(text).ended, {"p": 0})
        with self.assertRaises(Undefined):
            truth_of("--\nmain fork d daemon\nfree\nd nap\n")

    # -- libraries that keep data about threads

    def test_a_pool_of_libgomp(self):
        text = "--\nmain {}\nmain fork p{}\nfree\np region\nmain wait p\n"
        self.assertEqual(causes(text.format("region", "")), {"p": "lost-pool", "main": "victim"})
        self.assertEqual(causes(text.format("region", " _Fork"))["p"], "lost-pool")
        self.assertTrue(truth_of(text.format("say a", "")).is_over())
        self.assertTrue(truth_of(text.format("region", " vfork")).is_over())
        other = "--\nmain create t\nt region\nmain fork p\nfree\np region\nmain wait p\nt nap\n"
        self.assertTrue(truth_of(other).is_over())  # the pool belongs to the other thread

    def test_signals_to_lost_waiters(self):
        head = "mutex m\ncond c\nsem s 0\n--\nmain create t\nt lock m\nt ! cwait c m\nmain fork p\n"
        woken = head + "p create u\nu lock m\nu ! cwait c m\np signal c\nu done\nfree\nu unlock m\np join u\nt nap\n"
        self.assertEqual(causes(woken), {})  # the kernel wakes the live waiter
        self.assertEqual(causes(head + "free\np signal c\np signal c\nmain wait p\n"), {})  # the group of the lost waiter takes the signals
        stuck = head + "p signal c\np create u\nu lock m\nu ! cwait c m\nfree\np signal c\nmain wait p\n"
        self.assertEqual(causes(stuck)["p"], "lost-waiter")
        self.assertEqual(causes(head + "free\np destroy c\nmain wait p\n")["p"], "lost-waiter")
        self.assertEqual(causes(head + "free\np drop c\nmain wait p\n"), {})

    # -- the truth is unique, and does not change

    def test_what_depends_on_luck_has_no_truth(self):
        with self.assertRaises(Undefined):
            truth_of("mutex a\nmutex b\n--\nmain create t\nfree\nmain lock a\nmain lock b\nt lock b\nt lock a\n")

    def test_a_seed_gives_the_same_scenario_each_time(self):
        first = str(generate(4)[0])
        self.assertEqual(str(generate(4)[0]), first)
        self.assertEqual(str(parse(first)), first)
        script = f"import sys; sys.path[:0] = {sys.path[:1]!r}; from generate import generate; print(generate(4)[0], end='')"
        for number in ("1", "2"):  # another hash seed gives another order of sets
            done = subprocess.run([sys.executable, "-B", "-c", script], env={**os.environ, "PYTHONHASHSEED": number}, capture_output=True, text=True,
                                  check=True)
            self.assertEqual(done.stdout, first)

    def test_a_third_of_the_seeds_is_healthy(self):
        healthy = [generate(seed)[1].is_healthy() for seed in range(6)]
        self.assertEqual(healthy, [seed % 3 == 0 for seed in range(6)])


if __name__ == "__main__":
    unittest.main()
