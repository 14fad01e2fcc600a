"""limits_test.py FORKSIGHT HANGING: the limits of forksight itself are low (`ulimit`). `why` must name the hang, or say in one line why
it cannot."""
import os
import resource
import sys
import unittest

from bounded import NAMED, Program, run, settle

HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop()
KILO = 1 << 10
LIMITS = {
    "RLIMIT_NOFILE": [3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64],
    "RLIMIT_AS": [20_000 * KILO, 60_000 * KILO, 100_000 * KILO, 300_000 * KILO],
    "RLIMIT_DATA": [1_000 * KILO, 2_000 * KILO, 4_000 * KILO, 10_000 * KILO, 30_000 * KILO],
    "RLIMIT_STACK": [64 * KILO, 128 * KILO, 256 * KILO, 16 << 30, resource.RLIM_INFINITY],
    "RLIMIT_FSIZE": [0, KILO],
    "RLIMIT_CORE": [0],
}
LOADER_FAILS = 127


class Limits(unittest.TestCase):
    def setUp(self):
        self.program = Program([HANGING, "hold", 1])
        self.addCleanup(self.program.end)
        settle(self.program.pid)

    def test_the_hang_is_named_or_the_failure_is_told(self):
        found = 0
        for name, values in LIMITS.items():
            number = getattr(resource, name)
            for value in values:
                with self.subTest(limit=name, value=value):
                    done = run([FORKSIGHT, "why", self.program.pid], preexec_fn=lambda number=number, value=value: resource.setrlimit(number, (value, value)))
                    is_found = done.status == 1 and "pipe-held-open" in done.out
                    # Standard output and standard error are files, so RLIMIT_FSIZE may forbid writing to them.
                    is_told = done.status == 3 and (name == "RLIMIT_FSIZE" or (done.err.startswith(NAMED) and done.out == ""))
                    self.assertTrue(is_found or is_told or done.status == LOADER_FAILS, (done.status, done.text))
                    self.assertNotIn("not x86-64", done.text)
                    self.assertNotIn("bad_alloc", done.text)
                    found += is_found
        self.assertGreater(found, 15)

    def test_the_caller_may_have_closed_standard_descriptors(self):
        """A daemon may start forksight without standard input and error. Then files that forksight opens get these free
        numbers."""
        for closed in ([0], [2], [0, 2]):
            with self.subTest(closed=closed):
                done = run([FORKSIGHT, "why", self.program.pid], preexec_fn=lambda closed=closed: [os.close(fd) for fd in closed])
                self.assertEqual(done.status, 1, done.text)
                self.assertIn("pipe-held-open", done.out)

    def test_threads_are_stopped_although_the_limit_of_the_stack_is_large(self):
        done = run([FORKSIGHT, "why", self.program.pid], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (16 << 30, 16 << 30)))
        self.assertEqual(done.status, 1, done.text)
        self.assertNotIn("could not be stopped", done.out)

    def test_more_files_than_the_soft_limit_of_descriptors_can_be_read(self):
        """libdw keeps each file open that the examined process has mapped. The process that this test examines has
        mapped at least five files."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        done = run([FORKSIGHT, "why", self.program.pid], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (8, most)))
        self.assertEqual(done.status, 1, done.text)
        self.assertNotIn("Too many open files", done.text)


if __name__ == "__main__":
    unittest.main()
