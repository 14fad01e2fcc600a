"""killed_test.py FORKSIGHT HANGING STOP_ALL [--kills N]: `why` is killed at many moments of its work, and at its calls of
ptrace(). No thread of the examined process may stay stopped or traced, and no process of forksight may be left. With
--kills N, the test goes on until N kills have hit the command before its end, and also kills the command at each call
of ptrace(). Without --kills, the test kills the command at a few of these calls."""
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from bounded import LIMIT_S, Program, settle

KILLS = 40  # number of kills that must hit the command before it ends
IS_WHOLE = "--kills" in sys.argv
if IS_WHOLE:
    KILLS = int(sys.argv.pop())
    sys.argv.remove("--kills")
STOP_ALL, HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
STRACE = shutil.which("strace")
THREADS = 24
TRIES = 25 * KILLS
MOMENTS = 20


def states_of(pid):
    """Returns the set of (state letter, pid of the tracer) of all threads of a process."""
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        text = (task / "status").read_text()
        found.add((text.partition("State:\t")[2][0], text.partition("TracerPid:\t")[2].split()[0]))
    return found


def children_of(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Killed(unittest.TestCase):
    def setUp(self):
        self.program = Program([HANGING, "poll", THREADS, 4])
        self.addCleanup(self.program.end)
        settle(self.program.pid)

    def await_no(self, what, is_so):
        deadline = time.monotonic() + LIMIT_S
        while is_so():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.01)

    def kill_at(self, moment_s, number):
        """Starts the command, and kills it after `moment_s`. Returns whether the signal ended the command."""
        command = subprocess.Popen([FORKSIGHT, "why", str(self.program.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moment_s)
        readers = children_of(command.pid)
        command.send_signal(number)
        status = command.wait(LIMIT_S)
        for reader in readers:
            self.await_no(f"the reader {reader} goes on", lambda reader=reader: is_alive(reader))
        self.await_no("a thread stays stopped", lambda: states_of(self.program.pid) != {("S", "0")})
        return status == -number

    def time_command(self):
        began = time.monotonic()
        subprocess.run([FORKSIGHT, "why", str(self.program.pid)], stdout=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
        return time.monotonic() - began

    def test_leaves_no_thread_stopped(self):
        length_s = min(self.time_command() for _ in range(3))
        killed = 0
        for i in range(TRIES):
            number = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[i % 3]
            killed += self.kill_at(length_s * (i % MOMENTS) / MOMENTS, number)
            if killed == KILLS:
                break
        self.assertEqual(killed, KILLS, "too few kills hit the command before its end")
        print(f"{killed} kills of {i + 1} found the command at work", file=sys.stderr)


class KilledInPtrace(unittest.TestCase):
    """strace kills the command when it enters a chosen call of ptrace()."""

    def setUp(self):
        if STRACE is None:
            self.skipTest("this needs strace")

    def hang(self, *words):
        program = Program([HANGING, *words])
        self.addCleanup(program.end)
        settle(program.pid)
        return program

    def look(self, program, *options, command=(FORKSIGHT, "why")):
        with tempfile.NamedTemporaryFile("r") as log:
            subprocess.run([STRACE, "-f", "-qq", "-o", log.name, "-e", "trace=ptrace", *options, *command, str(program.pid)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
            return log.read()

    @staticmethod
    def requests(log):
        return re.findall(r"ptrace\((PTRACE_\w+)", log)

    def kill_at_calls(self, program, spared=(), **options):
        """Kills the command at calls of ptrace() whose request is not in `spared`. Returns {number of the call: its request} for
        the calls at which it killed the command."""
        calls = self.requests(self.look(program, **options))
        self.assertGreater(len(calls), 15 if "command" not in options else 5)
        numbers = range(1, len(calls) + 1) if IS_WHOLE else sorted({calls.index(name) + 1 for name in calls} | {len(calls)})
        hit = {}
        for number in numbers:
            if calls[number - 1] in spared:
                continue
            # strace counts the calls of each thread separately.
            before, killed, after = self.look(program, "-e", f"inject=ptrace:signal=SIGKILL:when={number}", **options).partition("+++ killed by SIGKILL")
            if killed:
                hit[number] = self.requests(before)[-1]
            self.assertLessEqual(len(self.requests(after)), 1, "the command went on after it was killed")
            self.await_at_rest(program)
        print(f"killed at {len(hit)} calls of ptrace(), of {len(set(hit.values()))} kinds", file=sys.stderr)
        return hit

    def await_at_rest(self, program):
        deadline = time.monotonic() + LIMIT_S
        while states_of(program.pid) != {("S", "0")}:
            self.assertLess(time.monotonic(), deadline, "a thread stays stopped")
            time.sleep(0.01)

    def test_leaves_no_thread_stopped(self):
        hit = self.kill_at_calls(self.hang("poll", THREADS, 4))
        self.assertLessEqual({"PTRACE_SEIZE", "PTRACE_INTERRUPT", "PTRACE_GETREGSET", "PTRACE_DETACH"}, set(hit.values()))

    def test_calls_with_a_time_limit_go_on(self):
        """After a stop, recv() with SO_RCVTIMEO fails with EINTR. forksight corrects the result before it lets the thread
        continue. So no thread sees EINTR, unless forksight is killed in the microseconds between the stop and the correction."""
        stopping = {"command": (STOP_ALL,)}
        program = self.hang("receive", 4)
        self.assertIn("PTRACE_POKEUSER", self.requests(self.look(program, **stopping)))
        self.kill_at_calls(program, spared=("PTRACE_GETREGSET", "PTRACE_POKEUSER"), **stopping)
        self.assertIsNone(program.popen.poll(), "a thread has seen EINTR")

    def test_a_kill_before_the_correction_shows_eintr_to_the_thread(self):
        program = self.hang("receive", 1)
        calls = self.requests(self.look(program, command=(STOP_ALL,)))
        self.look(program, "-e", f"inject=ptrace:signal=SIGKILL:when={calls.index('PTRACE_POKEUSER') + 1}", command=(STOP_ALL,))
        self.assertEqual(program.popen.wait(LIMIT_S), 3, "a kill at this moment is harmless now: correct docs/limitations.md")


if __name__ == "__main__":
    unittest.main()
