"""Runs with the shim and FORKSIGHT_PYTHON_SIGNAL=52: forks while it has threads, and checks that the shim changes nothing.

  python_guest.py TRACE_FOLDER
"""
import ctypes
import errno
import os
import signal
import struct
import sys
import threading
import time
import unittest
from pathlib import Path

FOLDER = Path(sys.argv.pop(1))
SIGNAL = 52
MANY = 300
MOST_BYTES = 100_000  # if each fork recorded all stacks, they would take five times as many bytes


def own_traces():
    return list(FOLDER.glob(f"*.{os.getpid()}.*.fstrace"))


def bytes_of_python():
    """Returns the size of all records kPythonStacks and kPythonAtFork. The first word of a record has its size and its type."""
    trace, at, total = own_traces()[0].read_bytes(), 4096, 0
    while at + 8 <= len(trace):
        size, kind = struct.unpack_from("=IH", trace, at)
        if size == 0:
            break
        total += size if kind in (36, 37) else 0
        at += size
    return total


def end_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Guest(unittest.TestCase):
    def setUp(self):
        """Starts a thread that exists at each fork, and ends after the test."""
        done = threading.Event()
        thread = threading.Thread(target=done.wait)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(done.set)

    def test_1_stacks_are_recorded(self):
        child = os.fork()
        if child == 0:
            os._exit(0)
        self.assertEqual(end_of(child), 0)
        text = own_traces()[0].read_bytes()
        self.assertIn(b"in test_1_stacks_are_recorded", text)
        self.assertIn(b"in wait\n", text)

    def test_no_descriptor_stays_open(self):
        before = sorted(os.listdir("/proc/self/fd"))
        child = os.fork()
        if child == 0:
            os._exit(0 if len(os.listdir("/proc/self/fd")) == len(before) else 1)
        self.assertEqual(end_of(child), 0)
        self.assertEqual(sorted(os.listdir("/proc/self/fd")), before)

    def test_works_without_free_descriptors(self):
        taken = []
        try:
            while True:
                taken.append(os.dup(0))
        except OSError as error:
            self.assertEqual(error.errno, errno.EMFILE)
        try:
            child = os.fork()
            if child == 0:
                os._exit(0)
            self.assertEqual(end_of(child), 0)
        finally:
            for descriptor in taken:
                os.close(descriptor)

    def test_errno_is_left_alone(self):
        libc = ctypes.CDLL(None, use_errno=True)
        ctypes.set_errno(errno.EXDEV)
        child = libc.fork()  # ctypes releases the GIL before it calls fork(), so the shim must not take Python's stacks
        if child == 0:
            libc._exit(0)
        self.assertEqual(end_of(child), 0)
        self.assertEqual(ctypes.get_errno(), errno.EXDEV)

    def test_the_signal_still_ends_a_process(self):
        ready = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(ready[1], b"x")
            while True:
                signal.pause()
        os.read(ready[0], 1)
        os.kill(child, SIGNAL)
        self.assertEqual(end_of(child), -SIGNAL)

    def test_fork_does_not_wait_for_threads_that_start_or_end(self):
        """Threads start and end while another thread forks and the shim takes stacks."""
        stop = threading.Event()

        def churn():
            while not stop.is_set():
                thread = threading.Thread(target=int)
                thread.start()
                thread.join()

        churners = [threading.Thread(target=churn) for _ in range(3)]
        for churner in churners:
            churner.start()
        for _ in range(MANY):
            child = os.fork()
            if child == 0:
                os._exit(0)
            self.assertEqual(end_of(child), 0)
        stop.set()
        for churner in churners:
            churner.join()

    def test_z_many_forks_stay_small(self):
        before = bytes_of_python()
        start = time.monotonic()
        for _ in range(MANY):
            child = os.fork()
            if child == 0:
                os._exit(0)
            self.assertEqual(end_of(child), 0)
        print(f"{(time.monotonic() - start) / MANY * 1e6:.0f} us a fork", file=sys.stderr)
        self.assertLess(bytes_of_python() - before, MOST_BYTES)

    def test_0_a_handler_of_the_program_is_left_alone(self):
        """Runs first, because it must run before the first fork."""
        seen = []
        signal.signal(SIGNAL, lambda *_: seen.append(1))
        try:
            child = os.fork()
            if child == 0:
                os.kill(os.getpid(), SIGNAL)
                os._exit(0 if seen == [1] else 1)
            self.assertEqual(end_of(child), 0)
        finally:
            signal.signal(SIGNAL, signal.SIG_DFL)


if __name__ == "__main__":
    unittest.main()
