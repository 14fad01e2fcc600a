"""descriptors_test.py FORKSIGHT HANGING: `forksight why` on processes with two million descriptors. No other test may run beside
this one: a look at any process reads the descriptors of all processes of the machine, as far as its time suffices."""
import resource
import sys
import unittest

from bounded import SECONDS, Program, run, settle

HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop()


class Descriptors(unittest.TestCase):
    def test_if_descriptors_are_left_out_nothing_is_proven(self):
        """A fast machine can read all descriptors."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        program = Program([HANGING, "crowd", "100", str(min(20_000, most - 64))])
        self.addCleanup(program.end)
        settle(program.pid)
        done = run([FORKSIGHT, "why", program.pid])
        is_cut = "the processes have so many descriptors" in " ".join(done.out.split())
        self.assertEqual(done.status, 0 if is_cut else 1, done.text)
        self.assertIn(str(program.pid), done.out)
        self.assertLess(done.peak_mb, 300)
        self.assertLess(done.seconds, SECONDS)


if __name__ == "__main__":
    unittest.main()
