"""Tests that on_real_driver.py refuses a library that is not a real driver, and prints the reason for the skip."""
import subprocess
import sys
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("on_real_driver.py")
TEST_DRIVER = sys.argv.pop()


def run(*arguments):
    return subprocess.run([sys.executable, "-B", SCRIPT, *arguments], capture_output=True, text=True, timeout=60)


class OnRealDriver(unittest.TestCase):
    def test_refuses_the_test_driver(self):
        result = run("--driver", TEST_DRIVER, "true")
        self.assertEqual((result.returncode, result.stdout), (77, f"skipped: {TEST_DRIVER} is the test driver\n"))

    def test_refuses_a_file_that_is_not_a_library(self):
        result = run("--driver", str(SCRIPT), "true")
        self.assertEqual(result.returncode, 77)
        self.assertIn("cannot be loaded", result.stdout)


if __name__ == "__main__":
    unittest.main()
