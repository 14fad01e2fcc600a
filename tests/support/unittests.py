"""Runs a file with unittest tests, and tells of tests that were skipped.

  unittests.py FILE [ARGUMENT...]

unittest itself ends with 0 if tests were skipped. Exit status: 0 all tests passed, 77 none failed, but some were skipped, 1 otherwise,
also if there are no tests.
"""
import os
import runpy
import sys
import unittest

SKIPPED = 77


def status_of(result):
    for test, reason in result.skipped:
        print(f"skipped: {test.id().removeprefix('__main__.')}: {reason}")
    if result.testsRun == 0:
        print("there are no tests")
    if not result.wasSuccessful() or result.testsRun == 0:
        return 1
    return SKIPPED if result.skipped else 0


class Program(unittest.TestProgram):
    def runTests(self):
        self.exit, exits = False, self.exit
        super().runTests()
        sys.stdout.flush()
        if exits:
            sys.exit(status_of(self.result))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    unittest.main = Program
    runpy.run_path(sys.argv[0], run_name="__main__")
