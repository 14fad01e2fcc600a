"""cpython_runner.py MODULE: runs a module of CPython's tests.

The runner prints a line `@@ TEST began` before each test, and a line `@@ TEST RESULT` after the test.
"""
import os
import sys
import unittest

from test import support

OUTPUT = os.dup(1)
PROCESS = os.getpid()


def say(test, result):
    # A child that a test forked may also call this function. The results of the child do not count.
    if os.getpid() == PROCESS:
        os.write(OUTPUT, f"\n@@ {test.id().replace(' ', '_')} {result}\n".encode())


class Result(unittest.TextTestResult):
    def startTest(self, test):
        say(test, "began")
        super().startTest(test)

    def addSuccess(self, test):
        say(test, "ok")
        super().addSuccess(test)

    def addError(self, test, err):
        say(test, "error")
        super().addError(test, err)

    def addFailure(self, test, err):
        say(test, "failed")
        super().addFailure(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            say(test, "failed")
        super().addSubTest(test, subtest, err)

    def addSkip(self, test, reason):
        say(test, "skipped")
        super().addSkip(test, reason)

    def addExpectedFailure(self, test, err):
        say(test, "ok")
        super().addExpectedFailure(test, err)

    def addUnexpectedSuccess(self, test):
        say(test, "failed")
        super().addUnexpectedSuccess(test)


# Tests of VSOCK need another virtual machine as the peer. Without a peer they would wait for ever, so they are left out.
WITHOUT = "VSOCK"


def tests_in(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_in(test)
        else:
            yield test


def without(suite, part):
    """Returns the suite without the tests whose id contains `part`.

    Fixtures of classes and modules still run, because unittest finds them by the class of each test.
    """
    return unittest.TestSuite(test for test in tests_in(suite) if part not in test.id())


def main():
    support.use_resources = []
    os.chdir(os.environ["TMPDIR"])
    suite = unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])
    if WITHOUT in str(suite):
        suite = without(suite, WITHOUT)
    result = unittest.TextTestRunner(resultclass=Result, verbosity=1).run(suite)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
