"""python_lock_test.py FORKSIGHT: a forked child of a Python program waits for a lock that it took itself. The parent has
another thread, which never touches the lock. A lock of Python does not record its holder, so forksight must not state
that the other thread held it.

In other scenes the child waits for a lock or a queue, and its own signal handler ends the wait. --on-orphan must let
such a child wait.
"""
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

FORKSIGHT = sys.argv.pop()
LIMIT_S = 100
IS_SEEN_BY_SHIM = sys.version_info < (3, 13)  # up to CPython 3.12 a lock is a semaphore
START = """
import os, sys, threading, time
lock = threading.Lock()
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
"""
# The child takes the lock twice.
TAKES_TWICE = START + """
child = os.fork()
if child == 0:
    lock.acquire()
    lock.acquire()
os.waitpid(child, 0)
"""
# The child makes a lock and waits until SIGINT ends its wait. The parent has no such lock. The program is healthy.
WAITS_FOR_CTRL_C = START + """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
child = os.fork()
if child == 0:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
os.waitpid(child, 0)
"""
# Two threads of the child take two locks in opposite order.
OPPOSITE = START + """
other, both = threading.Lock(), threading.Barrier(2)
def take(first, second):
    with first:
        both.wait()
        second.acquire()
child = os.fork()
if child == 0:
    threading.Thread(target=take, args=(other, lock)).start()
    take(lock, other)
os.waitpid(child, 0)
"""
# The thread that forks holds the lock.
FORKS_WITH_LOCK = START + """
with lock:
    child = os.fork()
    if child == 0:
        lock.acquire()
    os.waitpid(child, 0)
"""
# Another thread holds the lock at the fork, and for ever.
IS_ORPHANED = START + """
is_held = threading.Event()
def hold():
    with lock:
        is_held.set()
        time.sleep(1000)
threading.Thread(target=hold, daemon=True).start()
is_held.wait()
child = os.fork()
if child == 0:
    lock.acquire()
os.waitpid(child, 0)
"""
# Another thread holds the lock at the fork. A handler in the child releases the lock after a moment.
HANDLER_RELEASES = START.replace("import os", "import os, signal") + """
is_held = threading.Event()
def hold():
    lock.acquire()
    is_held.set()
    time.sleep(1000)
threading.Thread(target=hold, daemon=True).start()
is_held.wait()
child = os.fork()
if child == 0:
    signal.signal(signal.SIGALRM, lambda *unused: lock.release())
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    lock.acquire()
    os._exit(0)
os._exit(os.waitpid(child, 0)[1] != 0)
"""
# The child waits for an item of an empty queue until it gets SIGINT, and a thread of the parent waits there, too. The
# lock of the queue is taken as long as the queue is empty. The program is healthy.
WAITS_FOR_ITEM = """
import os, queue, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
items = queue.SimpleQueue()
threading.Thread(target=items.get, daemon=True).start()
time.sleep(0.3)
child = os.fork()
if child == 0:
    try:
        items.get()
    except KeyboardInterrupt:
        os._exit(7)
time.sleep(WAIT_S)
os.kill(child, signal.SIGINT)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class PythonLocks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-python-lock-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_until_hang(self, script):
        """Returns what `forksight run` reports about the script."""
        done = subprocess.run([FORKSIGHT, "run", "--hang-after", "0.3", "--on-hang", "kill", "--kill-on", "likely", "--out", "out", "--",
                               sys.executable, "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 137, done.stderr)
        return " ".join(done.stderr.split())

    def test_run_does_not_blame_a_lost_thread_that_did_not_hold_the_lock(self):
        for name, script in (("twice", TAKES_TWICE), ("opposite", OPPOSITE), ("forks", FORKS_WITH_LOCK)):
            with self.subTest(name):
                said = self.run_until_hang(script)
                self.assertNotIn("python-lock-orphaned" if IS_SEEN_BY_SHIM else "the lock was held", said)
                self.assertIn("HANG", said)

    def test_run_names_the_thread_that_held_the_lock(self):
        said = self.run_until_hang(IS_ORPHANED)
        if IS_SEEN_BY_SHIM:
            self.assertIn("CERTAIN HANG: python-lock-orphaned", said)
            self.assertRegex(said, r"the lock was held by thread \d+")
        else:
            self.assertIn("the lock was probably held by another thread", said)

    def run_with_policy(self, policy, script):
        """Returns the exit status of a run with --on-orphan=POLICY, and what was reported."""
        done = subprocess.run([FORKSIGHT, "run", "--on-orphan", policy, "--hang-after", "30", "--out", f"out-{policy}", "--", sys.executable,
                               "-X", "faulthandler", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        return done.returncode, " ".join(done.stderr.split())

    def test_on_orphan_lets_a_child_wait_that_its_own_handler_wakes(self):
        for name, script, status in (("lock", HANDLER_RELEASES, 0), ("queue", WAITS_FOR_ITEM.replace("WAIT_S", "0.7"), 7)):
            for policy in ("abort", "recover"):
                with self.subTest(name, policy=policy):
                    ended, said = self.run_with_policy(policy, script)
                    self.assertEqual(ended, status, said)
                    self.assertNotIn("CURED", said)
                    self.assertNotIn("aborted", said)

    def test_on_orphan_acts_on_a_lock_that_nothing_in_the_child_can_release(self):
        """The child has the handlers of faulthandler, and Python's own handler of SIGINT."""
        if IS_SEEN_BY_SHIM:
            status, said = self.run_with_policy("recover", IS_ORPHANED)
            self.assertEqual(status, 0, said)
            self.assertIn("CURED: python-lock-orphaned", said)
            _, said = self.run_with_policy("abort", IS_ORPHANED)
            self.assertIn("was aborted by --on-orphan=abort", said)

    def test_run_does_not_end_a_program_that_waits_for_an_item(self):
        script = WAITS_FOR_ITEM.replace("WAIT_S", "4")
        done = subprocess.run([FORKSIGHT, "run", "--hang-after", "0.3", "--on-hang", "kill", "--out", "out", "--",
                               sys.executable, "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertNotIn("python-lock-orphaned", done.stderr)
        self.assertNotIn("CERTAIN", done.stderr)

    def test_why_does_not_call_a_wait_for_an_item_a_lost_lock(self):
        said = self.ask_why(WAITS_FOR_ITEM.replace("WAIT_S", "60"))
        self.assertIn("LIKELY HANG, possible cause: lost-wakeup", said)
        self.assertNotIn("python-lock-orphaned", said)

    def ask_why(self, script):
        """Starts the script without the shim. Returns what `forksight why` says about it when its child hangs."""
        with subprocess.Popen([sys.executable, "-c", script], process_group=0) as program:
            try:
                until = time.monotonic() + LIMIT_S
                while time.monotonic() < until:
                    done = subprocess.run([FORKSIGHT, "why", str(program.pid)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
                    if done.returncode == 1:
                        return " ".join(done.stdout.split())
                    time.sleep(0.1)
                self.fail(f"`why` reports no hang: {done.stdout}{done.stderr}")
            finally:
                os.killpg(program.pid, 9)

    def test_why_says_that_the_child_may_have_taken_the_lock_itself(self):
        said = self.ask_why(TAKES_TWICE)
        self.assertIn("possible cause: python-lock-orphaned", said)
        self.assertIn("perhaps another thread held it", said)
        self.assertIn("Look whether the child took the lock itself", said)
        self.assertNotIn("the lock was held", said)

    def test_why_does_not_prove_a_wait_that_ctrl_c_ends(self):
        said = self.ask_why(WAITS_FOR_CTRL_C)
        self.assertIn("LIKELY HANG", said)
        self.assertNotIn("CERTAIN", said)
        if IS_SEEN_BY_SHIM:
            self.assertIn("possible cause: python-lock-orphaned", said)

    def test_run_does_not_blame_a_lock_that_the_child_made(self):
        said = self.run_until_hang(WAITS_FOR_CTRL_C)
        self.assertNotIn("CERTAIN", said)
        if IS_SEEN_BY_SHIM:
            self.assertNotIn("python-lock-orphaned", said)

    def test_why_names_another_thread_as_the_likely_holder(self):
        said = self.ask_why(IS_ORPHANED)
        self.assertRegex(said, r"(LIKELY HANG|CERTAIN HANG, likely cause): python-lock-orphaned")
        self.assertIn("the lock was probably held by another thread", said)


if __name__ == "__main__":
    unittest.main()
