"""Tests of RLock, Semaphore and Condition. Many tests kill or interrupt the holders and the waiters."""
import multiprocessing
import os
import pickle
import signal
import threading
import time
import unittest

import support
from support import RECOVERY, Case, Child, OpcodeTrace, Stop, wait_until

from forksight.queue import BoundedSemaphore, Condition, Lock, RLock, Semaphore, Value

MOST_INSTRUCTIONS = 2000


def raise_stop(*_):
    raise Stop


def count_waiters(condition):
    return sum(condition._state_of(place) == 1 for place in condition._places)


def spawned_work(lock, semaphore, condition, value):
    with lock, lock, semaphore:
        value.value += 1
    with condition:
        condition.notify()


class RLocks(Case):
    def test_the_same_thread_acquires_it_again(self):
        lock = RLock()
        with lock:
            self.assertTrue(lock.acquire(False))
            lock.release()
            self.assertTrue(lock.held)
            self.assertEqual(Child(lambda: os._exit(0 if not lock.acquire(False) else 1)).end(), 0)
        self.assertFalse(lock.held)
        self.assertEqual(Child(lambda: os._exit(0 if lock.acquire(False) else 1)).end(), 0)

    def test_another_thread_neither_acquires_nor_releases_it(self):
        lock, seen = RLock(), []

        def work():
            seen.append(lock.acquire(False))
            try:
                lock.release()
            except ValueError:
                seen.append("refused")

        with lock:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        self.assertEqual(seen, [False, "refused"])
        with self.assertRaises(ValueError):
            lock.release()

    def test_the_lock_of_a_killed_holder_is_free_although_it_was_acquired_twice(self):
        lock, line = RLock(), self.line()

        def work():
            lock.acquire()
            lock.acquire()
            line.tell()
            signal.pause()

        child = Child(work)
        line.hear()
        self.assertFalse(lock.acquire(timeout=0.1))
        child.kill()
        self.assertTrue(lock.acquire(timeout=RECOVERY))
        child.end()
        self.assertEqual(lock.abandoned, child.pid)
        lock.release()
        self.assertFalse(lock.held)

    def test_a_forked_child_does_not_hold_the_lock_of_its_parent(self):
        lock = RLock()
        lock.acquire()
        lock.acquire()

        def work():
            status = 1 if lock.held or lock.acquire(False) else 0
            os._exit(status)

        self.assertEqual(Child(work).end(), 0)
        lock.release()
        lock.release()
        self.assertEqual(Child(lambda: os._exit(0 if lock.acquire(False) and lock.release() is None and not lock.held else 1)).end(), 0)

    def test_a_handler_raises_at_each_instruction_of_a_with_block(self):
        for depth in (0, 1):
            lock = RLock()
            others = pickle.loads(pickle.dumps(lock))
            kept = 0
            for at in range(MOST_INSTRUCTIONS):
                if depth:
                    lock.acquire()
                with OpcodeTrace("_sync.py", at, raise_stop) as trace:
                    try:
                        with lock:
                            pass
                    except Stop:
                        pass
                if depth:
                    lock.release()
                if lock.held:
                    kept += 1  # the handler raised at the end of __enter__(), or before __exit__() began
                    lock.release()
                self.assertFalse(lock.held, (depth, at))
                self.assertTrue(others.acquire(False), (depth, at))
                others.release()
                if not trace.has_acted:
                    break
            self.assertGreater(at, 30)
            self.assertLessEqual(kept, 6)


class Semaphores(Case):
    def test_no_more_holders_than_units(self):
        for kind in (Semaphore, BoundedSemaphore):
            semaphore = kind(2)
            self.assertTrue(semaphore.acquire())
            self.assertTrue(semaphore.acquire(False))
            self.assertFalse(semaphore.acquire(False))
            self.assertFalse(semaphore.acquire(timeout=0.1))
            self.assertEqual(semaphore.get_value(), 0)
            self.assertEqual(semaphore.owners, [os.getpid()] * 2)
            semaphore.release()
            self.assertEqual(semaphore.get_value(), 1)
            semaphore.release()
            with self.assertRaises(ValueError):
                semaphore.release()
        for value in (0, -1, 10000):
            with self.assertRaises(ValueError):
                Semaphore(value)

    def test_killed_holders_give_their_units_back(self):
        semaphore = Semaphore(3)

        def work():
            semaphore.acquire()
            signal.pause()

        children = [Child(work) for _ in range(3)]
        wait_until(lambda: len(semaphore.owners) == 3)
        self.assertFalse(semaphore.acquire(False))
        self.assertEqual(sorted(semaphore.owners), sorted(child.pid for child in children))
        children[1].kill()
        self.assertTrue(semaphore.acquire(timeout=RECOVERY))
        self.assertEqual(semaphore.abandoned, children[1].pid)
        self.assertFalse(semaphore.acquire(timeout=0.1))
        semaphore.release()
        for child in children:
            child.kill()
            child.end()
        wait_until(lambda: semaphore.get_value() == 3)

    def test_a_waiter_is_woken_by_a_release(self):
        semaphore, line = Semaphore(1), self.line()
        semaphore.acquire()

        def work():
            line.tell()
            if not semaphore.acquire(timeout=support.LIMIT):
                os._exit(1)
            line.tell(b"has it")

        child = Child(work)
        line.hear()
        semaphore.release()
        self.assertEqual(line.hear(), b"has it")
        self.assertEqual(child.end(), 0)

    def test_threads_and_processes_exclude_each_other(self):
        semaphore, inside, most = Semaphore(2), Value("i", 0), Value("i", 0)

        def work():
            for _ in range(30):
                with semaphore:
                    with inside.get_lock():
                        inside.value += 1
                        most.value = max(most.value, inside.value)
                    time.sleep(0)
                    with inside.get_lock():
                        inside.value -= 1

        def run_threads():
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        children = [Child(run_threads) for _ in range(3)]
        for child in children:
            self.assertEqual(child.end(), 0)
        self.assertEqual(inside.value, 0)
        self.assertIn(most.value, (1, 2))

    def test_a_handler_raises_at_each_instruction_of_a_with_block(self):
        semaphore, kept = Semaphore(2), 0
        for at in range(MOST_INSTRUCTIONS):
            with OpcodeTrace("_sync.py", at, raise_stop) as trace:
                try:
                    with semaphore:
                        pass
                except Stop:
                    pass
            while semaphore.get_value() < 2:
                kept += 1  # the handler raised at the end of __enter__(), or before __exit__() began
                semaphore.release()
            if not trace.has_acted:
                break
        self.assertGreater(at, 60)
        self.assertLessEqual(kept, 8)

    def test_killed_at_every_third_instruction_of_a_with_block(self):
        semaphore = Semaphore(2)

        def work(at):
            with OpcodeTrace("_sync.py", at, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                with semaphore:
                    pass

        for at in range(0, MOST_INSTRUCTIONS, 3):
            status = Child(work, at).end()
            self.assertEqual(semaphore.get_value(), 2, at)
            if status == 0:
                break
            self.assertEqual(status, -signal.SIGKILL)
        self.assertGreater(at, 60)


class Conditions(Case):
    def waiter(self, condition, line, timeout=None):
        def work():
            with condition:
                line.tell()
                told = condition.wait(timeout)
                line.tell(b"notified" if told else b"timeout")
        return Child(work)

    def test_notify_wakes_the_given_number_of_waiters(self):
        condition, line = Condition(), self.line()
        children = [self.waiter(condition, line) for _ in range(3)]
        wait_until(lambda: count_waiters(condition) == 3)
        with condition:
            condition.notify(2)
        wait_until(lambda: count_waiters(condition) == 1)
        with condition:
            condition.notify_all()
        for child in children:
            self.assertEqual(child.end(), 0)

    def test_a_killed_waiter_does_not_consume_a_notify(self):
        condition, line = Condition(), self.line()
        killed = self.waiter(condition, line)
        wait_until(lambda: count_waiters(condition) == 1)
        other = self.waiter(condition, line)
        wait_until(lambda: count_waiters(condition) == 2)
        killed.kill()
        killed.end()
        with condition:
            condition.notify()
        self.assertEqual(other.end(), 0)

    def test_the_notify_of_a_waiter_that_is_killed_goes_to_another_waiter(self):
        condition, line = Condition(), self.line()
        killed = self.waiter(condition, line)
        wait_until(lambda: count_waiters(condition) == 1)
        other = self.waiter(condition, line)
        wait_until(lambda: count_waiters(condition) == 2)
        killed.kill(signal.SIGSTOP)
        os.waitpid(killed.pid, os.WUNTRACED)
        with condition:
            condition.notify()  # notifies the waiter whose place has the lowest number: the stopped process
        killed.kill()
        self.assertEqual(killed.end(), -signal.SIGKILL)
        self.assertEqual(other.end(), 0)

    def test_a_new_waiter_in_the_place_of_a_killed_one_does_not_lose_its_notify(self):
        condition, line = Condition(), self.line()
        killed = self.waiter(condition, line)
        wait_until(lambda: count_waiters(condition) == 1)
        other = self.waiter(condition, line)
        wait_until(lambda: count_waiters(condition) == 2)
        with condition:
            pass  # A waiter is counted shortly before it releases the lock. This block waits until `other` has released it.
        for child in (killed, other):
            child.kill(signal.SIGSTOP)
            os.waitpid(child.pid, os.WUNTRACED)
        with condition:
            condition.notify()  # notifies the waiter whose place has the lowest number: `killed`
            killed.kill()
            self.assertEqual(killed.end(), -signal.SIGKILL)
            self.assertFalse(condition.wait(0))  # this waiter gets the place of `killed`, which is free now
            other.kill(signal.SIGCONT)
        self.assertEqual(other.end(), 0)

    def test_the_conditions_lock_is_free_after_its_holder_is_killed(self):
        condition, line = Condition(), self.line()

        def work():
            with condition:
                line.tell()
                signal.pause()

        child = Child(work)
        line.hear()
        child.kill()
        child.end()
        self.assertTrue(condition.acquire(timeout=RECOVERY))
        condition.release()

    def test_timeout_and_wait_for(self):
        condition = Condition(Lock())
        with condition:
            self.assertFalse(condition.wait(0.05))
            self.assertFalse(condition.wait_for(lambda: False, 0.1))
            self.assertEqual(condition.wait_for(lambda: 7), 7)
        for forbidden in (condition.wait, condition.notify, condition.notify_all):
            with self.assertRaises(RuntimeError):
                forbidden()

    def test_wait_releases_a_lock_that_was_acquired_twice(self):
        condition = Condition()

        def work():
            with condition:
                condition.notify()

        with condition, condition:
            child = Child(work)
            self.assertTrue(condition.wait(support.LIMIT))
            self.assertEqual(condition._lock._more, 1)
            self.assertEqual(child.end(), 0)
        self.assertFalse(condition._lock.held)

    def test_ctrl_c_ends_a_wait(self):
        condition = Condition()

        def work(line):
            signal.signal(signal.SIGINT, raise_stop)
            try:
                with condition:
                    line.tell()
                    condition.wait()
            except Stop:
                line.tell(b"interrupted")

        self.assertInterrupted(work)
        with condition:
            self.assertEqual(count_waiters(condition), 0)

    def test_a_handler_raises_at_each_instruction_of_wait(self):
        """A signal handler raises at each instruction of a with block that contains wait(). No waiter may stay counted. The
        lock may stay taken: the handler may raise at the end of __enter__(), or before __exit__() begins. A few places may stay
        taken: the handler may raise after wait() has locked a place, and before wait() has recorded the place or given it
        back."""
        condition, places = Condition(), 0
        for at in range(MOST_INSTRUCTIONS):
            with OpcodeTrace("_sync.py", at, raise_stop) as trace:
                try:
                    with condition:
                        condition.wait(0)
                except Stop:
                    pass
            while condition._lock.held:
                condition.release()
            self.assertEqual(count_waiters(condition), 0, at)
            places = max(places, sum(place.held for place in condition._places))
            if not trace.has_acted:
                break
        self.assertGreater(at, 60)
        self.assertLessEqual(places, 6)

    def test_killed_at_every_23rd_instruction_of_notify(self):
        """A process is killed in notify(). Its notify() or the next notify() must wake the waiter."""
        for at in range(0, MOST_INSTRUCTIONS, 23):
            condition, line = Condition(), self.line()
            waiter = self.waiter(condition, line)
            wait_until(lambda: count_waiters(condition) == 1)

            def work():
                with OpcodeTrace("_sync.py", at, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                    with condition:
                        condition.notify()

            status = Child(work).end()
            if status != 0:
                self.assertEqual(status, -signal.SIGKILL)
                with condition:
                    condition.notify()
            self.assertEqual(waiter.end(), 0)
            line.hear()  # reads the "." that the waiter wrote before its wait, and perhaps also its result
            if status == 0:
                break
        self.assertGreater(at, 60)

    def test_producers_and_consumers_with_one_condition(self):
        """One consumer is killed. The other consumers must still be notified of every item. Each change of a counter is one
        assignment, so the killed consumer leaves no half-finished change."""
        condition, made, taken = Condition(), Value("i", 0, lock=False), Value("i", 0, lock=False)

        def produce():
            for _ in range(50):
                with condition:
                    made.value += 1
                    condition.notify()

        def consume():
            while True:
                with condition:
                    condition.wait_for(lambda: made.value > taken.value)
                    taken.value += 1

        consumers = [Child(consume) for _ in range(3)]
        producers = [Child(produce) for _ in range(2)]
        consumers[0].kill()
        for producer in producers:
            self.assertEqual(producer.end(), 0)
        wait_until(lambda: taken.value >= 99)  # the assignment of the killed consumer may be lost
        for consumer in consumers:
            consumer.kill()
            consumer.end()
        self.assertEqual(made.value, 100)


class Starts(Case):
    def test_synchronisation_objects_are_passed_with_each_start_method(self):
        for method in ("fork", "spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            lock, semaphore, condition, value = RLock(), Semaphore(1), Condition(), Value("i", 0)
            with condition:
                process = context.Process(target=spawned_work, args=(lock, semaphore, condition, value))
                process.start()
                self.assertTrue(condition.wait(support.LIMIT))
            process.join(support.LIMIT)
            self.assertEqual((process.exitcode, value.value), (0, 1), method)


if __name__ == "__main__":
    unittest.main()
