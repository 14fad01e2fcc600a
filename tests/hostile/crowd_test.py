"""crowd_test.py FORKSIGHT HANGING [TEST...]: forksight on thousands of processes. A crowd must not hide the hang of another process. The work must
grow linearly with the number of processes."""
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from bounded import Program, run, settle

FORKSIGHT, HANGING = sys.argv[1:3]
del sys.argv[1:3]  # the rest names the tests
CROWD = 1400  # so many processes at one pipe are more than forksight follows
LIMIT = "proves nothing about further waits that more than 64 processes could end"
# A job with a crowd that is gone when the job ends.
JOB = """
"$1" share "$2" 1 > "$3" & crowd=$!
until [ -s "$3" ]; do sleep 0.1; done
sleep "$4"
kill -9 $crowd
exit 7
"""
JOB_S = 40  # `run` looks at a big tree only now and then


def start(test, *arguments):
    program = Program([HANGING, *arguments])
    test.addCleanup(program.end)
    settle(program.pid)
    return program


def words_of(text):
    return " ".join(text.split())


class Crowd(unittest.TestCase):
    def test_why_finds_the_hang_beside_the_crowd(self):
        crowd, alone = start(self, "share", CROWD, 1), start(self, "hold", 1)
        done = run([FORKSIGHT, "why", alone.pid, crowd.pid])
        self.assertEqual(done.status, 1, done.text)
        self.assertIn("pipe-held-open", done.out)
        self.assertIn(f"process {alone.pid} ", words_of(done.out))
        self.assertIn(LIMIT, words_of(done.out))


class Job(unittest.TestCase):
    def test_run_reports_the_limit_although_the_crowd_has_ended(self):
        with tempfile.TemporaryDirectory(prefix="forksight-crowd-") as folder:
            report = Path(folder) / "report"
            done = run([FORKSIGHT, "run", "--out", Path(folder) / "out", "--report", report, "--",
                        "sh", "-c", JOB, "sh", HANGING, CROWD, Path(folder) / "ready", JOB_S])
            self.assertEqual(done.status, 7, done.text)
            self.assertIn(LIMIT, words_of(report.read_text()))


class Threads(unittest.TestCase):
    @unittest.skipUnless(shutil.which("strace"), "this needs strace")
    def test_the_entry_of_a_process_is_not_read_for_each_thread(self):
        """For the entry of a process, the kernel adds up the times of all its threads. To read it for each thread is quadratic work."""
        process = start(self, "lock", 400)
        with tempfile.TemporaryDirectory(prefix="forksight-crowd-") as folder:
            log = Path(folder) / "calls"
            done = run(["strace", "-f", "-qq", "-e", "trace=openat", "-o", log, FORKSIGHT, "why", process.pid])
            self.assertIn("self-deadlock", done.out)
            self.assertIn(f'"/proc/{process.pid}/stat"', log.read_text())
            self.assertLess(log.read_text().count(f'"/proc/{process.pid}/stat"'), 100)


class Growth(unittest.TestCase):
    """Each test compares the CPU times of two trees, one of which is four times as big. With quadratic work, the greater time would be
    sixteen times the smaller one."""
    FACTOR = 8
    CONSTANT_S = 1

    def seconds(self, *tree):
        program = Program([HANGING, "tree", *tree])
        try:
            settle(program.pid)
            return run([FORKSIGHT, "why", program.pid]).seconds
        finally:
            program.end()

    def check(self, small, big):
        first, second = self.seconds(*small), self.seconds(*big)
        self.assertLess(second, self.FACTOR * first + self.CONSTANT_S, (first, second))

    def test_idle_children(self):
        self.check((1, 1000, 0), (1, 4000, 0))

    def test_a_chain(self):
        self.check((1000, 0, 0), (4000, 0, 0))

    def test_hangs_below_a_chain(self):
        self.check((60, 150, 150), (60, 600, 600))


if __name__ == "__main__":
    unittest.main()
