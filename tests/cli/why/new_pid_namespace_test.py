"""new_pid_namespace_test.py FORKSIGHT PROGRAM: a child in a new pid namespace hangs in a mutex.

The mutex names its owner by a number. A thread of the parent and a thread of the child have this number. forksight must
not claim that the thread of the child is the owner.

If namespaces cannot be made, the test prints the reason and exits with status 77.
"""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest

from namespaces import find_right
from observed import LIMIT_S, Command, Program, processes, rules, tree_of

PROGRAM, FORKSIGHT = sys.argv.pop(), Command(sys.argv.pop())


class NewNamespace(unittest.TestCase):
    def ask_why(self, scene):
        with Program([PROGRAM, scene]) as program:
            program.wait_quiet()
            return FORKSIGHT.report(program.pid)[0]["findings"]

    def run_until_hang(self, scene):
        with tempfile.TemporaryDirectory(prefix="forksight-new-ns-") as folder:
            done = subprocess.run([FORKSIGHT.path, "run", "--hang-after", "0.3", "--on-hang", "kill", "--out", folder, "--", PROGRAM, scene],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S,
                                  check=False)
        self.assertEqual(done.returncode, 137, done.stderr)
        return " ".join(done.stderr.split())

    def test_why_names_both_readings_of_the_number(self):
        for scene in ("first", "ring"):
            with self.subTest(scene):
                found, = self.ask_why(scene)
                self.assertEqual((found["rule"], found["hang"], found["cause"]), ("orphaned-mutex", "proven", "possible"))
                self.assertRegex(found["summary"], r"possibly thread \d+ .*held it and was left behind by fork\(\), or a thread of this process")
                self.assertIn("a number that two threads have had", " ".join(found["chain"]))

    def test_why_does_not_claim_that_the_child_itself_holds_the_mutex(self):
        for found in self.ask_why("twice"):
            self.assertIn(found["cause"], ("possible", "unknown"), found)

    def test_core_claims_no_deadlock_of_the_child(self):
        for scene in ("first", "ring") if shutil.which("gcore") else ():
            with self.subTest(scene), tempfile.TemporaryDirectory(prefix="forksight-new-ns-") as folder, Program([PROGRAM, scene]) as program:
                program.wait_quiet()
                child = tree_of(program.pid)[-1]
                subprocess.run(["gcore", "-o", f"{folder}/core", str(child)], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S,
                               check=False)
                done = subprocess.run([FORKSIGHT.path, "core", "--format", "json", f"{folder}/core.{child}"], stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, timeout=LIMIT_S, check=False)
                self.assertIn('"findings"', done.stdout, done.stderr)
                self.assertEqual(rules(json.loads(done.stdout)), [])

    def test_run_claims_no_deadlock_of_the_child(self):
        for scene in ("first", "ring"):
            with self.subTest(scene):
                said = self.run_until_hang(scene)
                self.assertNotIn("self-deadlock", said)
                self.assertNotIn("lock-cycle", said)
                self.assertIn("orphaned-mutex", said)


if __name__ == "__main__":
    if find_right() != []:  # the program needs the right without a user namespace
        sys.exit(77)
    processes.become_reaper()
    unittest.main()
