"""Tests must_fail.py: it accepts no check that passes, fails for another reason, breaks down, or is killed."""
import signal
import subprocess
import sys
import unittest
from pathlib import Path

MUST_FAIL = Path(__file__).resolve().parent / "must_fail.py"


def run(program, pattern="^lost$"):
    """Returns the exit status of must_fail.py and its last line, for a check that is this Python program."""
    done = subprocess.run([sys.executable, MUST_FAIL, pattern, sys.executable, "-c", program], timeout=20, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout.splitlines()[-1]


class MustFail(unittest.TestCase):
    def test_accepts_a_check_that_finds_the_fault(self):
        self.assertEqual(run("print('found:'); print('lost'); raise SystemExit(1)"), (0, "lost"))

    def test_passes_on_that_the_check_was_skipped(self):
        self.assertEqual(run("print('skipped: no gdb'); raise SystemExit(77)"), (77, "skipped: no gdb"))

    def test_refuses_the_rest(self):
        for program, problem in (
                ("print('lost')", "passed, although it must fail"),
                ("raise SystemExit('is lost')", "failed, but no line of its output matches '^lost$'"),
                ("print('lost', flush=True); unknown", "broke down"),
                (f"import os; print('lost', flush=True); os.kill(os.getpid(), {int(signal.SIGKILL)})", "ended with status -9"),
                ("print('lost'); raise SystemExit(127)", "ended with status 127")):
            status, line = run(program)
            self.assertEqual(status, 1, program)
            self.assertTrue(line.startswith(f"must_fail: the check {problem}"), line)


if __name__ == "__main__":
    unittest.main()
