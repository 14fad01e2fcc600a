"""late_test.py FORKSIGHT PROGRAM: a process still runs when `why` begins, and hangs a moment later. `why` must prove the hang.

On a busy machine, even a process that hangs already may look as if it still runs. For example, an earlier command of
forksight has stopped and released the threads of the process. These threads may still be runnable when `why` begins.
"""
import os
import select
import sys
import unittest

from observed import Command, Program

PROGRAM, FORKSIGHT = sys.argv.pop(), Command(sys.argv.pop())


class Late(unittest.TestCase):
    def test_a_process_that_hangs_only_after_why_has_begun_is_proven_to_hang(self):
        """The program hangs while `why` sleeps between two looks. If the machine is so busy that the program misses all of these
        sleeps, the test starts `why` again."""
        with Program([PROGRAM, "late"]) as program:
            while True:  # the time limit of the test ends this loop
                with FORKSIGHT.start(program.pid, "--format", "json") as why:
                    program.popen.stdin.write(f"{why.pid}\n".encode())
                    program.popen.stdin.flush()
                    out, err = why.communicate()
                if select.select([program.popen.stdout], [], [], 0)[0]:
                    break
            self.assertEqual(os.read(program.popen.stdout.fileno(), 1), b"x")
            self.assertEqual(why.returncode, 1, out + err)
            self.assertIn('"pipe-held-open"', out)
            self.assertIn('"hang": "proven"', out)


if __name__ == "__main__":
    unittest.main()
