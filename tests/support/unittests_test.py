"""Tests that unittests.py does not count a skipped test as passed, and when it runs costly methods."""
import os
import subprocess
import sys
import tempfile
import unittest

UNITTESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unittests.py")
HEAD = "import sys, unittest\nclass T(unittest.TestCase):\n  def test_a(self): self.assertEqual(sys.argv[1:], ['x'] if len(sys.argv) > 1 else [])\n"
MAIN = "if __name__ == '__main__':\n  unittest.main()\n"


class Unittests(unittest.TestCase):
    def run_file(self, text, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "some_test.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run([sys.executable, "-B", UNITTESTS, path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True, check=False)
        return done.returncode, done.stdout

    def test_all_pass(self):
        self.assertEqual(self.run_file(HEAD + MAIN), (0, ""))
        self.assertEqual(self.run_file(HEAD + "ARGUMENT = sys.argv.pop()\n" + MAIN, "y"), (0, ""))

    def test_one_is_skipped(self):
        skipped = HEAD + "  def test_b(self): self.skipTest('no gcore')\n"
        self.assertEqual(self.run_file(skipped + MAIN), (77, "skipped: T.test_b: no gcore\n"))
        whole = HEAD.replace("class", "@unittest.skip('no numpy')\nclass") + MAIN
        self.assertEqual(self.run_file(whole), (77, "skipped: T.test_a: no numpy\n"))

    def test_one_fails_and_one_is_skipped(self):
        text = HEAD + "  def test_b(self): self.skipTest('no gcore')\n  def test_c(self): self.fail()\n" + MAIN
        self.assertEqual(self.run_file(text)[0], 1)

    def test_costly_methods_run_only_under_stress(self):
        text = HEAD + "  def stress_b(self): self.fail()\n" + MAIN
        self.assertEqual(self.run_file(text)[0], 0)
        os.environ["FORKSIGHT_STRESS"] = "1"
        self.addCleanup(os.environ.pop, "FORKSIGHT_STRESS")
        self.assertEqual(self.run_file(text)[0], 1)

    def test_none(self):
        self.assertEqual(self.run_file("import unittest\n" + MAIN), (1, "there are no tests\n"))


if __name__ == "__main__":
    unittest.main()
