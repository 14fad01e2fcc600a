"""Tests of Lock, Event, Value and Barrier. Some tests kill or interrupt a process between two instructions of a call."""
import ctypes
import errno
import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time
import unittest

import support
from support import RECOVERY, Case, Child, OpcodeTrace, Stop, wait_until

from forksight.queue import Barrier, BrokenBarrierError, Condition, Event, Lock, Semaphore, Value, _barrier

MOST_INSTRUCTIONS = 1000


def spawned_add(value, rounds):
    for _ in range(rounds):
        with value.get_lock():
            value.value += 1


def hold(lock, line):
    lock.acquire()
    line.tell()
    signal.pause()


def raise_stop(*_):
    raise Stop


class Refused(Case):
    """The kernel refuses the locks on which all of these objects rely. Each call must fail, and must not wait for a holder that does
    not exist."""

    def refused(self, number, use):
        """Runs use() in a child whose locks are refused. use() must raise OSError with that number."""
        def work(line):
            support.refuse_kernel_locks(number)
            try:
                use()
            except OSError as error:
                line.tell(str(error.errno).encode())
        line = self.line()
        child = Child(work, line)
        try:
            self.assertEqual(line.hear(20), str(number).encode())
        finally:
            child.kill()
            child.end()

    def test_each_object(self):
        lock, semaphore, condition, barrier, value = Lock(), Semaphore(2), Condition(threading.Lock()), Barrier(2), Value("i", 0)
        # The condition uses a lock of `threading`, which needs no lock of the kernel. Here, the condition does not
        # check who holds that lock. So condition.wait() first fails when it takes the kernel's lock on which the waiter sleeps.
        condition._check_lock = lambda what: None
        for number in (errno.EPERM, errno.ENOSYS, errno.EACCES, errno.EINVAL):
            for use in (lock.acquire, lambda: lock.acquire(False), lambda: lock.acquire(timeout=60), semaphore.acquire, barrier.wait,
                        value.get_lock().acquire, lambda: value.value, condition.wait, lambda: barrier.n_waiting):
                self.refused(number, use)

    def test_the_places_of_a_barrier(self):
        barrier = Barrier(1)
        def arrive():
            barrier._lock = self.taken()  # so the kernel refuses only the lock of this party's own entry
            barrier.wait()
        self.refused(errno.EPERM, arrive)

    @staticmethod
    def taken():
        """A lock that behaves as if it had been acquired already."""
        class Taken:
            acquire = staticmethod(lambda *_, **__: True)
            release = staticmethod(lambda: None)
            held_here = staticmethod(lambda: False)
        return Taken()


class Locks(Case):
    def test_the_lock_of_a_killed_holder_is_free_and_names_it(self):
        lock, line = Lock(), self.line()
        child = Child(hold, lock, line)
        line.hear()
        self.assertEqual(lock.owner, child.pid)
        self.assertFalse(lock.acquire(timeout=0.1))
        self.assertFalse(lock.acquire(False))
        child.kill()
        began = time.monotonic()
        self.assertTrue(lock.acquire(timeout=10))
        self.assertQuick(began, RECOVERY)
        self.assertEqual(child.end(), -signal.SIGKILL)
        self.assertEqual(lock.abandoned, child.pid)
        lock.release()
        self.assertTrue(lock.acquire())
        self.assertIsNone(lock.abandoned)
        lock.release()

    def test_the_lock_of_a_holder_that_ends_normally_is_free(self):
        for end in (lambda lock: None, lambda lock: os._exit(0), lambda lock: gc.collect()):
            lock = Lock()

            def work():
                lock.acquire()
                end(lock)

            child = Child(work)
            self.assertEqual(child.end(), 0)
            self.assertTrue(lock.acquire(timeout=RECOVERY))
            self.assertEqual(lock.abandoned, child.pid)
            lock.release()

    def test_the_lock_is_free_after_its_holders_interpreter_ends_normally(self):
        lock = Lock()
        process = multiprocessing.get_context("spawn").Process(target=lock.acquire)
        process.start()
        process.join(support.LIMIT)
        self.assertEqual(process.exitcode, 0)
        self.assertTrue(lock.acquire(timeout=RECOVERY))
        self.assertEqual(lock.abandoned, process.pid)
        lock.release()

    def test_a_child_of_the_holder_does_not_keep_the_lock(self):
        lock, line, going = Lock(), self.line(), self.line()

        def work():
            lock.acquire()
            if os.fork() == 0:
                support.prctl(support.PR_SET_PDEATHSIG, 0)
                line.tell(b"held" if lock.held or lock.acquire(False) else b"free")
                going.hear()
                os._exit(0)
            signal.pause()

        child = Child(work)
        self.assertEqual(line.hear(), b"free")
        child.kill()
        child.end()
        self.assertTrue(lock.acquire(timeout=RECOVERY))  # the child of the killed holder still lives
        self.assertEqual(lock.abandoned, child.pid)
        lock.release()
        going.tell()

    def test_release_of_a_lock_that_is_not_held(self):
        lock = Lock()
        with self.assertRaises(ValueError):
            lock.release()
        lock.acquire()
        lock.release()
        with self.assertRaises(ValueError):
            lock.release()

    def test_threads_of_one_process_exclude_each_other(self):
        lock, counts = Lock(), [0]

        def work():
            for _ in range(300):
                with lock:
                    seen = counts[0]
                    time.sleep(0)
                    counts[0] = seen + 1

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(counts[0], 1200)

    def test_release_wakes_a_waiter_before_its_slice_ends(self):
        lock, asked, rounds = Lock(), self.line(), 20
        waits = []

        def work():
            for _ in range(rounds):
                lock.acquire()
                asked.tell()
                time.sleep(0.005)
                lock.release()
                time.sleep(0.02)

        child = Child(work)
        for _ in range(rounds):
            asked.hear(most=1)  # reads one byte only, because the child may have sent several
            began = time.monotonic()
            with lock:
                waits.append(time.monotonic() - began)
        child.end()
        # The holder keeps the lock for 5 ms. If a wake-up is lost, the waiter sleeps for 20 to 40 ms.
        self.assertLess(sorted(waits)[rounds // 4], 0.015)

    def test_killed_at_each_instruction_of_acquire_and_release(self):
        lock = Lock()

        def work(at):
            with OpcodeTrace("_locks.py", at, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                lock.acquire()
                lock.release()

        for at in range(MOST_INSTRUCTIONS):
            child = Child(work, at)
            status = child.end()
            self.assertTrue(lock.acquire(timeout=RECOVERY), at)
            self.assertIn(lock.abandoned, (None, child.pid))
            lock.release()
            if status == 0:
                break
            self.assertEqual(status, -signal.SIGKILL)
        self.assertGreater(at, 50)
        self.assertLess(at, MOST_INSTRUCTIONS - 1)

    def test_a_handler_raises_at_each_instruction_of_acquire(self):
        lock, kept = Lock(), 0
        others = pickle.loads(pickle.dumps(lock))  # a second object for the same lock, as another process would have
        for at in range(MOST_INSTRUCTIONS):
            with OpcodeTrace("_locks.py", at, raise_stop) as trace:
                try:
                    lock.acquire()
                except Stop:
                    pass
            if not trace.has_acted:
                lock.release()
                break
            if lock.held:
                kept += 1  # `held` tells the caller that acquire() got the lock
                lock.release()
            self.assertTrue(others.acquire(False), at)
            others.release()
            self.assertTrue(lock.acquire(timeout=RECOVERY), at)
            lock.release()
        self.assertGreater(at, 50)
        # The lock may stay taken only if the handler interrupts acquire() at its last instructions, just before it returns.
        self.assertLessEqual(kept, 3)

    def test_a_handler_raises_at_each_instruction_of_a_with_block(self):
        lock, kept = Lock(), 0
        for at in range(MOST_INSTRUCTIONS):
            with OpcodeTrace("_locks.py", at, raise_stop) as trace:
                try:
                    with lock:
                        pass
                except Stop:
                    pass
            if not trace.has_acted:
                break
            if lock.held:
                kept += 1
                lock.release()
            self.assertTrue(lock.acquire(timeout=RECOVERY), at)
            lock.release()
        self.assertGreater(at, 100)
        # The lock may stay taken only if the handler raises just before __enter__() returns, or before __exit__() begins.
        self.assertLessEqual(kept, 6)

    def test_ctrl_c_ends_a_wait(self):
        lock = Lock()

        def work(line):
            signal.signal(signal.SIGINT, raise_stop)
            try:
                line.tell()
                lock.acquire()
            except Stop:
                line.tell(b"held" if lock.held else b"interrupted")

        with lock:
            self.assertInterrupted(work)

    def test_descriptors(self):
        gc.collect()
        before = support.descriptors()
        for _ in range(20):
            made = [Lock(), Event(), Value("i"), Barrier(2)]
            with made[0]:
                pass
        del made
        gc.collect()
        self.assertEqual(support.descriptors(), before)

    def test_a_value_passed_to_spawn_and_forkserver(self):
        value = Value("i", 0)
        for method in ("spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            processes = [context.Process(target=spawned_add, args=(value, 200)) for _ in range(2)]
            for process in processes:
                process.start()
            for process in processes:
                process.join(support.LIMIT)
                self.assertEqual(process.exitcode, 0)
        self.assertEqual(value.value, 800)


class Events(Case):
    def test_set_and_clear_at_once_wakes_all(self):
        event, line, count = Event(), self.line(), 4

        def work():
            line.tell()
            os._exit(0 if event.wait(10) else 2)

        for _ in range(25):
            children = [Child(work) for _ in range(count)]
            told = 0
            while told < count:
                told += len(line.hear())
            wait_until(lambda: all(state(child.pid) == "S" for child in children))
            event.set()
            event.clear()
            began = time.monotonic()
            self.assertEqual([child.end() for child in children], [0] * count)
            self.assertQuick(began, RECOVERY)
            self.assertFalse(event.is_set())

    def test_timeout(self):
        event = Event()
        began = time.monotonic()
        self.assertFalse(event.wait(0.1))
        self.assertGreaterEqual(time.monotonic() - began, 0.09)
        event.set()
        self.assertTrue(event.wait(0))
        self.assertTrue(event.is_set())
        event.clear()
        self.assertFalse(event.wait(0))

    def test_killed_at_each_instruction_of_set(self):
        for at in range(MOST_INSTRUCTIONS):
            event = Event()

            def work():
                with OpcodeTrace("_locks.py", at, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                    event.set()

            status = Child(work).end()
            event.set()
            self.assertTrue(event.wait(RECOVERY))
            if status == 0:
                break
        self.assertGreater(at, 5)

    def test_a_handler_sets_the_event_that_its_thread_sets(self):
        event = Event()
        for at in range(MOST_INSTRUCTIONS):
            event.clear()
            with OpcodeTrace("_locks.py", at, event.set) as trace:
                event.set()
            self.assertTrue(event.is_set())
            if not trace.has_acted:
                break


def state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


class Values(Case):
    def test_types(self):
        self.assertEqual(Value("d", 2.5).value, 2.5)
        self.assertEqual(Value(ctypes.c_int, 7, lock=False).value, 7)
        array = Value(ctypes.c_double * 1000)
        array.get_obj()[999] = 4.5
        self.assertEqual(Child(lambda: os._exit(0 if array.get_obj()[999] == 4.5 else 1)).end(), 0)
        with self.assertRaises(AttributeError):
            Value("i", lock=False).get_lock()

    def test_the_object_outlives_its_value(self):
        made = Value("i", 3).get_obj()
        gc.collect()
        self.assertEqual(made.value, 3)

    def test_killed_in_the_middle_of_a_change(self):
        value, line = Value("i", 1), self.line()

        def work():
            value.get_lock().acquire()
            value.value = 100
            line.tell()
            signal.pause()

        child = Child(work)
        line.hear()
        child.kill()
        child.end()
        with value.get_lock() as lock:
            self.assertEqual((lock.abandoned, value.value), (child.pid, 100))
            value.value = 1
        self.assertEqual(value.value, 1)

    def test_counting_in_processes(self):
        value = Value("i", 0)
        children = [Child(spawned_add, value, 500) for _ in range(3)]
        self.assertEqual([child.end() for child in children], [0, 0, 0])
        self.assertEqual(value.value, 1500)


class Barriers(Case):
    def test_indices_of_each_round(self):
        barrier, line, rounds = Barrier(3), self.line(), 100

        def work():
            indices = [barrier.wait(10) for _ in range(rounds)]
            line.tell(bytes(indices))

        children = [Child(work) for _ in range(3)]
        self.assertEqual([child.end() for child in children], [0, 0, 0])
        told = os.read(line.reader, 3 * rounds)
        parts = [told[i * rounds:(i + 1) * rounds] for i in range(3)]
        self.assertEqual([sorted(round_) for round_ in zip(*parts)], [[0, 1, 2]] * rounds)

    def test_a_killed_party_breaks_the_barrier(self):
        barrier, line = Barrier(3), self.line()
        victim = Child(barrier.wait)
        wait_until(lambda: barrier.n_waiting == 1)

        def work():
            try:
                barrier.wait()
            except BrokenBarrierError:
                line.tell(b"broken")

        other = Child(work)
        wait_until(lambda: barrier.n_waiting == 2)
        victim.kill()
        began = time.monotonic()
        self.assertEqual(line.hear(), b"broken")
        self.assertQuick(began, RECOVERY)
        self.assertEqual((victim.end(), other.end()), (-signal.SIGKILL, 0))
        with self.assertRaises(BrokenBarrierError):
            barrier.wait(5)
        barrier.reset()
        self.assertEqual((barrier.broken, barrier.n_waiting), (False, 0))

    def test_a_party_that_was_let_through_is_not_affected_by_a_later_reset_or_abort(self):
        """A party was let through, but has not noticed it yet. A reset() or an abort() at that time must not affect the
        party."""
        for later in ("reset", "abort"):
            barrier, line, going = Barrier(2), self.line(), self.line()

            def work():
                wait = barrier._sleep
                barrier._sleep = lambda *about: (line.tell(), going.hear(), wait(*about))[2]
                line.tell(str(barrier.wait(10)).encode())

            child = Child(work)
            line.hear()
            self.assertEqual(barrier.wait(10), 1)
            getattr(barrier, later)()
            going.tell()
            self.assertEqual(line.hear(), b"0")
            self.assertEqual(child.end(), 0)
            self.assertEqual(barrier.broken, later == "abort")

    def test_reset_breaks_the_waits_and_the_barrier_can_be_used_again(self):
        barrier, line = Barrier(2), self.line()

        def work():
            try:
                barrier.wait(10)
            except BrokenBarrierError:
                line.tell(b"broken")
            line.tell(str(barrier.wait(10)).encode())

        child = Child(work)
        wait_until(lambda: barrier.n_waiting == 1)
        barrier.reset()
        self.assertEqual(line.hear(), b"broken")
        wait_until(lambda: barrier.n_waiting == 1)
        self.assertEqual(barrier.wait(10), 1)
        self.assertEqual(line.hear(), b"0")
        self.assertEqual(child.end(), 0)

    def test_a_timeout_breaks_the_barrier_for_the_others(self):
        barrier, line = Barrier(3), self.line()

        def work():
            try:
                barrier.wait()
            except BrokenBarrierError:
                line.tell(b"broken")

        child = Child(work)
        wait_until(lambda: barrier.n_waiting == 1)
        with self.assertRaises(BrokenBarrierError):
            barrier.wait(0.1)
        self.assertEqual(line.hear(), b"broken")
        self.assertEqual(child.end(), 0)
        self.assertTrue(barrier.broken)

    def test_a_wait_times_out_although_the_holder_of_its_lock_is_stopped(self):
        barrier, line = Barrier(2), self.line()

        def hold_it():
            barrier._lock.acquire()
            line.tell()
            signal.pause()

        def wait():
            try:
                barrier.wait(0.5)
            except BrokenBarrierError:
                line.tell(b"broken")

        waiter = Child(wait)
        wait_until(lambda: barrier.n_waiting == 1)
        holder = Child(hold_it)
        line.hear()
        holder.kill(signal.SIGSTOP)
        with self.assertRaises(BrokenBarrierError):
            barrier.wait(0.1)
        self.assertEqual(line.hear(), b"broken")
        holder.kill()
        self.assertEqual((holder.end(), waiter.end()), (-signal.SIGKILL, 0))
        self.assertEqual(barrier.n_waiting, 0)
        self.assertTrue(barrier.broken)

    def test_action(self):
        counter = Value("i", 0)

        def count():
            counter.value += 1

        barrier = Barrier(2, count)
        child = Child(lambda: [barrier.wait(10) for _ in range(5)])
        for _ in range(5):
            barrier.wait(10)
        self.assertEqual((child.end(), counter.value), (0, 5))

        def fail():
            raise KeyError("action")

        barrier = Barrier(1, fail)
        with self.assertRaises(KeyError):
            barrier.wait(1)
        self.assertTrue(barrier.broken)

    def test_killed_at_every_seventh_instruction_of_the_last_arrival(self):
        """The last party to arrive is killed at every seventh instruction. The other party must get through, or get
        BrokenBarrierError."""
        last = None
        for at in range(0, MOST_INSTRUCTIONS, 7):
            barrier, line = Barrier(2), self.line()

            def wait():
                try:
                    line.tell(str(barrier.wait()).encode())
                except BrokenBarrierError:
                    line.tell(b"broken")

            def arrive():
                wait_until(lambda: barrier.n_waiting == 1)
                with OpcodeTrace("_barrier.py", at, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                    barrier.wait()

            other, victim = Child(wait), Child(arrive)
            status = victim.end()
            if status != 0 and barrier._words[_barrier.STATE] == 0 and barrier.n_waiting == 1:
                # The victim was killed before it had a place in the barrier. So the other party rightly waits for ever, and is
                # ended here.
                other.kill()
                other.end()
                continue
            last = line.hear(RECOVERY)
            self.assertIn(last, (b"0", b"broken"))
            self.assertEqual(other.end(), 0)
            if status == 0:
                break
        self.assertEqual(last, b"0")

    def test_a_handler_raises_at_each_instruction_of_wait(self):
        """A signal handler raises at each instruction of wait(). The lock of the barrier must never stay taken. One place may
        stay taken, if the handler raises before wait() has given it back."""
        barrier = Barrier(1)
        for at in range(MOST_INSTRUCTIONS):
            with OpcodeTrace("_barrier.py", at, raise_stop) as trace:
                try:
                    barrier.wait(RECOVERY)
                except Stop:
                    pass
            self.assertFalse(barrier._lock.held, at)
            if not trace.has_acted:
                break
            barrier.reset()
            self.assertEqual(barrier.wait(RECOVERY), 0)
            self.assertLessEqual(len(barrier._mine), 1)
            barrier._mine.clear()
        self.assertGreater(at, 50)
        self.assertLess(at, MOST_INSTRUCTIONS - 1)

    def test_killed_while_it_lets_the_others_through(self):
        """A process lets one of the two other parties through, and is killed before it lets the second one through. The second
        one must get through nevertheless."""
        barrier, line = Barrier(3), self.line()

        def wait():
            try:
                line.tell(str(barrier.wait()).encode())
            except BrokenBarrierError:
                line.tell(b"broken")

        class Words:
            def __init__(self, words):
                self.words, self.told = words, 0

            def __getitem__(self, at):
                return self.words[at]

            def __setitem__(self, at, value):
                if at >= _barrier.PLACES and value == _barrier.THROUGH:
                    self.told += 1
                    if self.told == 2:
                        os.kill(os.getpid(), signal.SIGKILL)
                self.words[at] = value

        def arrive():
            barrier._words = Words(barrier._words)
            barrier.wait()

        others = []
        for count in (1, 2):
            others.append(Child(wait))
            wait_until(lambda: barrier.n_waiting == count)
        victim = Child(arrive)
        self.assertEqual([child.end() for child in (victim, *others)], [-signal.SIGKILL, 0, 0])
        self.assertEqual(sorted(os.read(line.reader, 100)), sorted(b"01"))

    def test_ctrl_c_breaks_the_barrier(self):
        barrier = Barrier(2)

        def work():
            signal.signal(signal.SIGINT, raise_stop)
            try:
                barrier.wait()
            except Stop:
                pass

        child = Child(work)
        wait_until(lambda: barrier.n_waiting == 1)
        child.kill(signal.SIGINT)
        self.assertEqual(child.end(), 0)
        self.assertTrue(barrier.broken)
        self.assertEqual(barrier.n_waiting, 0)


if __name__ == "__main__":
    unittest.main()
