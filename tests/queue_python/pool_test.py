"""Tests of Pool: workers that are killed, are stopped or end, results that cannot be sent, and calls of close(), terminate()
and join() in different orders."""
import gc
import itertools
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import CancelledError

import support
from support import Case, Child, wait_until

from forksight.queue import Event, Pool, RemoteError, WorkerKilled

QUICK = 10.0  # in seconds; a call that must not wait for a worker may take at most this long
METHODS = ("fork", "spawn", "forkserver")
event = Event()  # workers that fork() makes inherit this object
LARGE = 5 << 20  # bytes: more than fits into a pipe
WRITE = "1" if platform.machine() == "x86_64" else "64"  # the number of the system call write()


def square(x):
    return x * x


def add(x, y, z=0):
    return x + y + z


def kill_at_seven(x):
    if x == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def leave(status):
    os._exit(status)


def raise_key_error(x):
    raise KeyError(x)


def leave_by_exception(x):
    sys.exit(x)


class Local(Exception):
    """An exception that can be pickled but not unpickled."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


def raise_odd(kind):
    if kind == "unpickles not":
        raise Local(1, 2)
    if kind == "pickles not":
        class Inner(Exception):
            pass
        raise Inner("inner")
    error = KeyError("holds a lock")
    error.lock = threading.Lock()
    raise error


def return_odd(_):
    return lambda: 1


def large_when_told(reader):
    os.read(reader, 1)
    return bytes(LARGE)


def stop_self(x):
    os.kill(os.getpid(), signal.SIGSTOP)
    return x


def wait_for_event(x):
    event.wait()
    return x


def close_all(x):
    os.closerange(3, 1000)
    signal.pause()


def fail_to_begin():
    raise ValueError("cannot begin")


def die_at_begin():
    os._exit(7)


def pid_of(_):
    return os.getpid()


def interrupt_handler(_):
    return signal.getsignal(signal.SIGINT) == signal.SIG_IGN


class Pools(Case):
    def setUp(self):
        super().setUp()
        event.clear()

    def pool(self, processes=2, **more):
        pool = Pool(processes, **{"context": "fork", **more})
        self.addCleanup(pool.join)
        self.addCleanup(pool.terminate)
        return pool

    def tearDown(self):
        self.doCleanups()
        super().tearDown()
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def test_calls(self):
        pool = self.pool()
        self.assertEqual(pool.apply(add, (1, 2), {"z": 3}), 6)
        self.assertEqual(pool.map(square, range(100)), [x * x for x in range(100)])
        self.assertEqual(pool.map(square, range(10), 3), [x * x for x in range(10)])
        self.assertEqual(pool.map(square, []), [])
        self.assertEqual(pool.starmap(add, [(1, 2), (3, 4, 5)]), [3, 12])
        self.assertEqual(list(pool.imap(square, range(50), 4)), [x * x for x in range(50)])
        self.assertEqual(sorted(pool.imap_unordered(square, range(50))), [x * x for x in range(50)])
        self.assertEqual(pool.map(str, [None, None]), ["None", "None"])
        got = []
        pool.map_async(square, range(5), callback=got.append).wait()
        wait_until(lambda: got)
        self.assertEqual(got, [[0, 1, 4, 9, 16]])
        pool.apply_async(raise_key_error, (1,), error_callback=got.append).wait()
        wait_until(lambda: len(got) == 2)
        self.assertIsInstance(got[1], KeyError)
        self.assertTrue(pool.apply(interrupt_handler, (0,)))

    def test_a_killed_worker_is_named_with_its_task(self):
        for chunksize in (1, 5, 20):
            pool = self.pool()
            result = pool.map_async(kill_at_seven, range(20), chunksize)
            with self.assertRaises(WorkerKilled) as told:
                result.get(10)
            error = told.exception
            self.assertEqual((error.signal, error.exitcode, error.index, error.function), (signal.SIGKILL, None, 7, "kill_at_seven"))
            self.assertNotIn(error.pid, pool.worker_pids())
            self.assertRegex(str(error), rf"worker process {error.pid} was killed by SIGKILL in task 7 of kill_at_seven")
            # All other tasks were done, and the pool can still be used.
            self.assertEqual([index for index, (worked, _) in sorted(result._job.outcomes.items()) if not worked], [7])
            self.assertEqual(len(result._job.outcomes), 20)
            self.assertEqual(pool.map(square, range(20)), [x * x for x in range(20)])
            self.assertEqual(len(pool.worker_pids()), 2)

    def test_imap_goes_on_after_a_killed_worker(self):
        iterator, got = self.pool().imap(kill_at_seven, range(20), 3), []
        while True:
            try:
                got.append(iterator.next(10))
            except StopIteration:
                break
            except WorkerKilled as error:
                got.append(("killed", error.index))
        self.assertEqual(got, [*range(7), ("killed", 7), *range(8, 20)])

    def test_a_worker_that_leaves(self):
        with self.assertRaises(WorkerKilled) as told:
            self.pool().apply(leave, (3,))
        self.assertEqual((told.exception.signal, told.exception.exitcode), (None, 3))
        with self.assertRaises(RemoteError) as told:
            self.pool().apply(leave_by_exception, (4,))
        self.assertEqual(str(told.exception), "SystemExit: 4")

    def test_each_start_method(self):
        for method in METHODS[1:]:
            pool = Pool(2, context=method)
            try:
                with self.assertRaises(WorkerKilled) as told:
                    pool.map(kill_at_seven, range(10), 1)
                self.assertEqual((told.exception.signal, told.exception.index), (signal.SIGKILL, 7))
                self.assertEqual(pool.map(square, range(10)), [x * x for x in range(10)])
            finally:
                pool.close()
                pool.join(10)
        stop_servers()

    def test_exceptions(self):
        pool = self.pool()
        with self.assertRaises(KeyError) as told:
            pool.apply(raise_key_error, ("x",))
        self.assertIn("in raise_key_error", str(told.exception.__cause__))
        for kind in ("unpickles not", "pickles not", "holds a lock"):
            with self.assertRaises((RemoteError, KeyError)) as told:
                pool.apply(raise_odd, (kind,))
            self.assertIn("in raise_odd", str(told.exception.__cause__))
        with self.assertRaises(RemoteError):
            pool.apply(return_odd, (1,))
        with self.assertRaises(Exception):
            pool.apply(lambda: 1)
        self.assertEqual(pool.apply(square, (3,)), 9)

    def test_a_broken_iterable(self):
        def items():
            yield 1
            yield 2
            raise ZeroDivisionError

        for call in ("imap", "imap_unordered"):
            iterator, got = getattr(self.pool(), call)(square, items()), []
            with self.assertRaises(ZeroDivisionError):
                for one in iterator:
                    got.append(one)
            self.assertEqual(sorted(got + list(iterator)), [1, 4])

    def test_an_iterable_that_blocks_does_not_block_other_calls(self):
        going = threading.Event()
        self.addCleanup(going.set)

        def items():
            yield 5
            going.wait()

        pool = self.pool()
        iterator = pool.imap(square, items())
        self.assertEqual(pool.map(square, [3]), [9])
        self.assertEqual(iterator.next(5), 25)
        began = time.monotonic()
        pool.terminate()
        self.assertQuick(began, QUICK)
        with self.assertRaises(RuntimeError):
            iterator.next(5)

    def test_an_endless_iterable(self):
        iterator = self.pool().imap(square, itertools.count())
        self.assertEqual([next(iterator) for _ in range(30)], [x * x for x in range(30)])
        self.assertTrue(iterator.cancel())

    def test_an_iterable_is_not_read_far_ahead(self):
        numbers = itertools.count()
        self.pool().imap(wait_for_event, numbers)
        time.sleep(0.3)
        self.assertLessEqual(next(numbers), 8)
        event.set()

    def test_a_stopped_worker_delays_only_its_task(self):
        pool = self.pool()
        stopped = pool.apply_async(stop_self, (1,))
        self.assertEqual(pool.map(square, range(20), 1), [x * x for x in range(20)])
        with self.assertRaises(multiprocessing.TimeoutError) as told:
            stopped.get(0.1)
        pid, = {pid for pid in pool.worker_pids() if state(pid) == "T"}
        self.assertIn(f"process {pid} (state T) has task 0 of stop_self", str(told.exception))
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(stopped.get(10), 1)

    def test_terminate_with_a_stopped_worker(self):
        for close in (False, True):
            pool = self.pool()
            stopped = pool.apply_async(stop_self, (1,))
            wait_until(lambda: any(state(pid) == "T" for pid in pool.worker_pids()))
            if close:
                pool.close()
            began = time.monotonic()
            pool.terminate()
            pool.join()
            self.assertQuick(began, QUICK)
            with self.assertRaises(RuntimeError):
                stopped.get(1)

    def hold_in_a_result(self):
        """Makes a pool with a worker that is blocked while it sends a large result. The worker is blocked because the pool's
        thread, which would read the result, is in a callback. Returns the pool, the result, the pid of the worker, and the
        event that ends the callback."""
        line, going = self.line(), threading.Event()
        self.addCleanup(going.set)
        pool = self.pool()
        result = pool.apply_async(large_when_told, (line.reader,))
        wait_until(lambda: any(worker.has_begun and worker.chunk for worker in pool._workers))
        victim, = [worker.pid for worker in pool._workers if worker.chunk]
        in_callback = threading.Event()
        pool.apply_async(square, (1,), callback=lambda _: (in_callback.set(), going.wait(support.LIMIT)))
        in_callback.wait(support.LIMIT)
        line.tell()
        wait_until(lambda: is_in_write(victim))
        return pool, result, victim, going

    def test_a_worker_that_is_killed_while_it_sends_a_large_result(self):
        pool, result, victim, going = self.hold_in_a_result()
        os.kill(victim, signal.SIGKILL)
        going.set()
        with self.assertRaises(WorkerKilled) as told:
            result.get(10)
        self.assertEqual((told.exception.pid, told.exception.signal), (victim, signal.SIGKILL))
        self.assertEqual(pool.map(square, range(4)), [0, 1, 4, 9])

    def test_a_worker_that_is_stopped_while_it_sends_a_large_result(self):
        pool, result, victim, going = self.hold_in_a_result()
        os.kill(victim, signal.SIGSTOP)
        wait_until(lambda: state(victim) == "T")
        going.set()
        self.assertEqual(pool.map_async(square, range(4), 1).get(10), [0, 1, 4, 9])
        self.assertFalse(result.ready())
        began = time.monotonic()
        pool.terminate()
        pool.join()
        self.assertQuick(began, QUICK)
        with self.assertRaises(RuntimeError):
            result.get(0)

    def test_a_worker_that_is_stopped_and_continued_while_it_sends_a_large_result(self):
        _, result, victim, going = self.hold_in_a_result()
        os.kill(victim, signal.SIGSTOP)
        wait_until(lambda: state(victim) == "T")
        going.set()
        with self.assertRaises(multiprocessing.TimeoutError):
            result.get(0.2)
        os.kill(victim, signal.SIGCONT)
        self.assertEqual(result.get(10), bytes(LARGE))

    def test_close_and_join(self):
        pool = self.pool()
        result = pool.map_async(square, range(50), 1)
        pool.close()
        with self.assertRaises(ValueError):
            pool.apply(square, (1,))
        pool.join()
        self.assertEqual(result.get(0), [x * x for x in range(50)])
        pool.terminate()
        pool.join()

    def test_join_does_not_wait_for_a_stopped_idle_worker(self):
        pool = self.pool()
        self.assertEqual(pool.map(square, range(4)), [0, 1, 4, 9])
        from forksight.queue import _pool
        self.addCleanup(setattr, _pool, "GRACE", _pool.GRACE)
        _pool.GRACE = 0.5
        os.kill(pool.worker_pids()[0], signal.SIGSTOP)
        pool.close()
        began = time.monotonic()
        pool.join()
        self.assertQuick(began, QUICK)

    def test_join_with_a_timeout(self):
        pool = self.pool()
        pool.apply_async(wait_for_event, (1,))
        with self.assertRaises(ValueError):
            pool.join()
        pool.close()
        with self.assertRaises(multiprocessing.TimeoutError) as told:
            pool.join(0.2)
        self.assertIn("wait_for_event", str(told.exception))
        event.set()
        pool.join(10)

    def test_cancel(self):
        pool = self.pool()
        blocked = pool.map_async(wait_for_event, range(20), 1)
        wait_until(lambda: sum(worker.has_begun for worker in pool._workers) == 2)
        self.assertTrue(blocked.cancel())
        with self.assertRaises(CancelledError):
            blocked.get(0)
        later = pool.map_async(square, range(4))
        event.set()
        self.assertEqual(later.get(10), [0, 1, 4, 9])
        self.assertFalse(later.cancel())
        self.assertEqual(later.get(), [0, 1, 4, 9])

    def test_other_code_reaps_the_workers(self):
        pool = self.pool()
        for round_ in range(3):
            result = pool.apply_async(wait_for_event, (1,))
            wait_until(lambda: any(worker.has_begun and worker.chunk for worker in pool._workers))
            victim, = [worker for worker in pool._workers if worker.chunk]
            # If a SIGCHLD handler of the program waits for any child, it also reaps workers of the pool. Here a thread reaps
            # the worker before the pool does.
            reaper = threading.Thread(target=os.waitpid, args=(victim.pid, 0))
            victim.reap, reap = lambda: (reaper.join(), reap())[1], victim.reap
            reaper.start()
            os.kill(victim.pid, signal.SIGKILL)
            with self.assertRaises(WorkerKilled) as told:
                result.get(10)
            self.assertEqual(told.exception.pid, victim.pid)
            self.assertIsNone(told.exception.signal)
        self.assertEqual(pool.map(square, range(4)), [0, 1, 4, 9])

    def test_workers_that_cannot_begin(self):
        pool = self.pool(initializer=fail_to_begin)
        with self.assertRaises(ValueError) as told:
            pool.map_async(square, range(4)).get(10)
        self.assertIn("cannot begin", str(told.exception))
        pool = self.pool(initializer=die_at_begin)
        with self.assertRaises(RuntimeError) as told:
            pool.map_async(square, range(4)).get(10)
        self.assertIn("before they began a task", str(told.exception))

    def test_a_worker_that_closes_its_pipes(self):
        with self.assertRaises(WorkerKilled):
            self.pool().apply_async(close_all, (1,)).get(10)

    def test_maxtasksperchild(self):
        pids = self.pool(1, maxtasksperchild=2).map(pid_of, range(6), 1)
        self.assertEqual([len(set(pids[i:i + 2])) for i in (0, 2, 4)], [1, 1, 1])
        self.assertEqual(len(set(pids)), 3)

    def test_a_kernel_without_pidfds(self):
        from forksight.queue import _pool
        self.addCleanup(setattr, _pool, "pidfd_open", _pool.pidfd_open)
        _pool.pidfd_open = lambda pid: None
        pool = self.pool()
        with self.assertRaises(WorkerKilled) as told:
            pool.map_async(kill_at_seven, range(10), 1).get(10)
        self.assertEqual((told.exception.signal, told.exception.index), (signal.SIGKILL, 7))
        stopped = pool.apply_async(stop_self, (1,))
        wait_until(lambda: any(state(pid) == "T" for pid in pool.worker_pids()))
        self.assertEqual(pool.map_async(square, range(4), 1).get(10), [0, 1, 4, 9])
        pool.terminate()
        self.assertTrue(stopped.ready())

    def test_a_forked_child_cannot_use_the_parents_pool(self):
        pool = self.pool()

        def work():
            with self.assertRaises(ValueError):
                pool.apply(square, (1,))
            pool.terminate()
            with Pool(1, context="fork") as own:
                self.assertEqual(own.apply(square, (2,)), 4)

        self.assertEqual(Child(work).end(), 0)
        self.assertEqual(pool.apply(square, (3,)), 9)

    def test_workers_end_with_a_killed_parent(self):
        line = self.line()

        def work():
            pool = Pool(2, context="fork")
            line.tell(" ".join(map(str, pool.worker_pids())).encode())
            signal.pause()

        child = Child(work)
        pids = [int(pid) for pid in line.hear().split()]
        child.kill()
        child.end()
        wait_until(lambda: not any(is_there(pid) for pid in pids), QUICK)

    def test_the_process_ends_with_a_stopped_worker(self):
        program = """
import os, signal, sys
sys.path.insert(0, os.environ["FORKSIGHT_QUEUE_TEST_PACKAGE"])
from forksight.queue import Pool
pool = Pool(2, context="fork")
pool.map(abs, range(4))
for pid in pool.worker_pids():
    os.kill(pid, signal.SIGSTOP)
"""
        began = time.monotonic()
        ended = subprocess.run([sys.executable, "-B", "-c", program], timeout=15, check=False)
        self.assertEqual(ended.returncode, 0)
        self.assertQuick(began, QUICK)

    def test_descriptors(self):
        with self.pool() as pool:
            pool.map(square, range(4))
        del pool
        self.doCleanups()
        gc.collect()
        before = support.descriptors()
        for _ in range(5):
            with Pool(2, context="fork") as pool:
                with self.assertRaises(WorkerKilled):
                    pool.map(kill_at_seven, range(10), 1)
            pool.join()
        del pool
        gc.collect()
        self.assertEqual(support.descriptors(), before)
        self.assertFalse([thread for thread in threading.enumerate() if thread.name.startswith("forksight-pool")])


def is_in_write(pid):
    try:
        with open(f"/proc/{pid}/syscall") as file:
            return file.read().split()[0] == WRITE
    except OSError:
        return False


def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "-"


def is_there(pid):
    return state(pid) not in "-ZX"


def stop_servers():
    """Ends the fork server and the resource tracker. multiprocessing starts these two processes with the first workers, and ends
    them only when this process ends. tearDown() checks that no child process is left."""
    from multiprocessing import forkserver, resource_tracker
    server = forkserver._forkserver
    if server._forkserver_pid is not None:
        os.close(server._forkserver_alive_fd)
        os.waitpid(server._forkserver_pid, 0)
        server._forkserver_pid = server._forkserver_alive_fd = None
    tracker = resource_tracker._resource_tracker
    if tracker._pid is not None:
        os.close(tracker._fd)
        os.waitpid(tracker._pid, 0)
        tracker._pid = tracker._fd = None


if __name__ == "__main__":
    unittest.main()
