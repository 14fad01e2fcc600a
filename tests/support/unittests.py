"""Runs a file with unittest tests, and reports by its exit status whether tests were skipped.

  unittests.py FILE [ARGUMENT...]

unittest itself ends with status 0 if tests were skipped. This program ends with status 0 if all tests passed, with 77 if no test
failed but some were skipped, and with 1 if a test failed or the file has no tests.

Methods whose names begin with `stress_` are costly tests. Only the tests with the label `stress` run them: these tests set the
environment variable FORKSIGHT_STRESS to 1.
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


class Loader(unittest.TestLoader):
    def getTestCaseNames(self, case):
        names = list(super().getTestCaseNames(case))
        if os.environ.get("FORKSIGHT_STRESS") == "1":
            names += [name for name in dir(case) if name.startswith("stress_")]
        return names


class Program(unittest.TestProgram):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **{"testLoader": Loader(), **options})

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
