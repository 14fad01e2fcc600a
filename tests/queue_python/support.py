"""Helpers of the tests of forksight.queue. A test program is called as NAME_test.py LIBRARY PACKAGE: the path of
libforksight-ipc.so and the folder of the Python package."""
import ctypes
import faulthandler
import multiprocessing
import os
import platform
import select
import signal
import struct
import sys
import time
import unittest

if "FORKSIGHT_QUEUE_TEST_PACKAGE" not in os.environ:  # processes that multiprocessing starts inherit the variable
    os.environ["FORKSIGHT_QUEUE_LIBRARY"], os.environ["FORKSIGHT_QUEUE_TEST_PACKAGE"] = sys.argv[1:3]
    del sys.argv[1:3]
sys.path.insert(0, os.environ["FORKSIGHT_QUEUE_TEST_PACKAGE"])

LIMIT = 90  # seconds that each test may take, on a busy machine
RECOVERY = 5.0  # seconds to wait for an event that comes within 40 ms on an idle machine, or never if the code is wrong
prctl = ctypes.CDLL(None).prctl
PR_SET_PDEATHSIG = 1


class Child:
    """A forked process that runs a function. Its exit status is 0 if the function returns, and 1 if the function raises
    an exception. The kernel kills the process when its parent ends."""

    def __init__(self, function, *arguments):
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)
                function(*arguments)
                status = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(status)

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)

    def end(self):
        """Waits for the end of the process. Returns its exit status, or minus the number of the signal that killed it."""
        _, status = os.waitpid(self.pid, 0)
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


class Line:
    """A pipe between processes. When a process has reached a certain point, it writes a word into the pipe. Another process waits
    for this word."""

    def __init__(self):
        self.reader, self.writer = os.pipe()

    def tell(self, word=b"."):
        os.write(self.writer, word)

    def hear(self, limit=LIMIT, most=100):
        """Waits until bytes have been written. Returns them, but at most `most` of them."""
        ready, _, _ = select.select([self.reader], [], [], limit)
        if not ready:
            raise AssertionError("no byte was written into the pipe in time")
        return os.read(self.reader, most)

    def close(self):
        os.close(self.reader)
        os.close(self.writer)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def wait_until(condition, limit=LIMIT):
    until = time.monotonic() + limit
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("the condition did not become true")
        time.sleep(0.001)


class Stop(BaseException):
    """The exception that the signal handlers of the tests raise."""


class OpcodeTrace:
    """Counts the executed instructions of the functions of one file. Calls `act` before instruction number `at`. So `act` runs
    between two instructions of Python, as a signal handler does."""

    def __init__(self, file_name, at, act):
        self.file_name, self.left, self.act = file_name, at, act
        self.has_acted = False

    def __enter__(self):
        if sys.version_info >= (3, 12):
            monitoring = sys.monitoring
            monitoring.use_tool_id(monitoring.DEBUGGER_ID, "instructions")
            monitoring.register_callback(monitoring.DEBUGGER_ID, monitoring.events.INSTRUCTION, self.monitor)
            monitoring.set_events(monitoring.DEBUGGER_ID, monitoring.events.INSTRUCTION)
        else:
            sys.settrace(self.enter)
        return self

    def __exit__(self, *_):
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(sys.monitoring.DEBUGGER_ID, 0)
            sys.monitoring.free_tool_id(sys.monitoring.DEBUGGER_ID)
        else:
            sys.settrace(None)

    def enter(self, frame, event, _):
        if not frame.f_code.co_filename.endswith(self.file_name):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.trace

    def trace(self, frame, event, _):
        if event == "opcode":
            self.count()
        return self.trace

    def monitor(self, code, offset):
        if code.co_filename.endswith(self.file_name):
            self.count()

    def count(self):
        if not self.has_acted:
            self.left -= 1
            if self.left < 0:
                self.has_acted = True
                self.act()


def refuse_kernel_locks(number):
    """Installs a seccomp filter, as a sandbox may do. After this call, fcntl() fails in this process with the error `number` if it
    takes or examines a lock of an open file description."""
    load_number, is_fcntl, load_command, from_first, to_last = 0x20, 0x15, 0x20, 0x35, 0x25
    fcntl_number = {"x86_64": 72, "aarch64": 25}[platform.machine()]
    steps = [(load_number, 0, 0, 0), (is_fcntl, 0, 4, fcntl_number), (load_command, 0, 0, 24), (from_first, 0, 2, 36), (to_last, 1, 0, 38),
             (0x06, 0, 0, 0x00050000 | number), (0x06, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
    if prctl(38, 1, 0, 0, 0) != 0 or prctl(22, 2, program, 0, 0) != 0:  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
        raise OSError("a seccomp filter is not permitted here")


class Case(unittest.TestCase):
    def setUp(self):
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def tearDown(self):
        self.assertEqual(multiprocessing.active_children(), [])

    def line(self):
        made = Line()
        self.addCleanup(made.close)
        return made

    def assertQuick(self, began, limit):
        self.assertLess(time.monotonic() - began, limit)

    def assertInterrupted(self, work):
        """Checks that SIGINT ends work(line) in a child within 100 ms. Only the fastest of three attempts counts, because the
        machine may be busy."""
        spans = []
        for _ in range(3):
            line = self.line()
            child = Child(work, line)
            line.hear()
            time.sleep(0.1)  # after this time, the child probably waits; if it does not wait yet, the check is still valid
            sent = time.monotonic()
            child.kill(signal.SIGINT)
            self.assertEqual(line.hear(), b"interrupted")
            spans.append(time.monotonic() - sent)
            self.assertEqual(child.end(), 0)
        self.assertLess(min(spans), 0.1)

    def sharedClosing(self, queue):
        self.addCleanup(queue.close)
        return queue
