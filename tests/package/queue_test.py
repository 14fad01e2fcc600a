"""queue_test.py PACKAGING PORTABLE OTHER: tests PORTABLE, the libforksight-ipc.so of the packages. It must need only an old
glibc. packaging/old_glibc.cpp replaces functions of newer versions of glibc. PORTABLE must work with these
replacements. OTHER is the library that is built for this system. The checks must find faults in OTHER. This shows that
the checks work."""
import subprocess
import sys
import unittest
from pathlib import Path

PACKAGING, PORTABLE, OTHER = sys.argv[1:]
del sys.argv[1:]
sys.path.insert(0, PACKAGING)
import check_contents  # noqa: E402
from queue_programs import NAMED, THROWN, WAITED  # noqa: E402


class Queue(unittest.TestCase):
    def run_program(self, program):
        ended = subprocess.run([sys.executable, "-c", program, PORTABLE], timeout=30, check=False, capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_needs_only_an_old_glibc(self):
        self.assertEqual(check_contents.check_queue(Path(PORTABLE)), [])

    @unittest.skipIf(PORTABLE == OTHER, "PORTABLE and OTHER are the same library")
    def test_the_checks_find_known_faults(self):
        problems = check_contents.check_queue(Path(OTHER))
        self.assertIn("libforksight-ipc.so needs libstdc++.so.6", problems)
        self.assertTrue([problem for problem in problems if "imports pthread_cond_clockwait of GLIBC_2.3" in problem], problems)

    def test_an_exception_in_it(self):
        self.run_program(THROWN)

    def test_waits_with_a_deadline(self):
        self.run_program(WAITED)

    def test_names(self):
        self.run_program(NAMED)


if __name__ == "__main__":
    unittest.main()
