"""static_test.py FORKSIGHT CASE VERSION: the statically linked command must need no library and no loader, and must work."""
import os
import subprocess
import sys
import tempfile
import time
import unittest

FORKSIGHT, CASE, VERSION = sys.argv[1:]
del sys.argv[1:]
LIMIT_S = 20
MOST_BYTES = 10_000_000


def output_of(*argv):
    return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout


class Static(unittest.TestCase):
    def test_needs_no_library_and_no_loader(self):
        dynamic = output_of("readelf", "--wide", "--dynamic", FORKSIGHT)
        self.assertNotIn("(NEEDED)", dynamic)
        self.assertNotIn("INTERP", output_of("readelf", "--wide", "--program-headers", FORKSIGHT))

    def test_is_small_when_it_is_stripped(self):
        with tempfile.TemporaryDirectory() as folder:
            stripped = os.path.join(folder, "forksight")
            output_of("strip", "--strip-unneeded", "-o", stripped, FORKSIGHT)
            self.assertLess(os.path.getsize(stripped), MOST_BYTES)

    def test_version(self):
        self.assertIn(VERSION, output_of(FORKSIGHT, "--version").split())

    def test_explains_a_hung_program(self):
        program = subprocess.Popen([CASE], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            last = time.monotonic() + LIMIT_S
            while True:  # `why` finds nothing until the threads of the program wait for each other
                asked = subprocess.run([FORKSIGHT, "why", str(program.pid)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
                if asked.returncode != 0 or time.monotonic() > last:
                    break
            self.assertEqual(asked.returncode, 1, asked.stdout + asked.stderr)
            self.assertIn("lock-cycle", asked.stdout)
        finally:
            program.kill()
            program.wait()


if __name__ == "__main__":
    unittest.main()
