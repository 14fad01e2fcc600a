"""others_test.py FORKSIGHT: `why NAME` for a process of another user says what to do.

The test runs as root, and runs forksight as the user nobody.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FORKSIGHT = sys.argv.pop()
NOBODY = 65534
NAME = "forksight-other"  # 15 bytes, which is the most that the kernel keeps
LIMIT_S = 40


def why_as_nobody(*words):
    return subprocess.run([FORKSIGHT, "why", *words], capture_output=True, text=True, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
                          timeout=LIMIT_S, check=False)


def may_run():
    try:
        return os.geteuid() == 0 and why_as_nobody("--help").returncode == 0
    except OSError:  # the user nobody cannot reach the folder of the build
        return False


@unittest.skipUnless(may_run(), "this needs root, and a folder that the user nobody can read")
class Others(unittest.TestCase):
    def test_a_program_of_another_user_is_named_with_the_remedy(self):
        with tempfile.TemporaryDirectory(prefix="forksight-why-") as folder:
            program = Path(folder, NAME)
            shutil.copy(shutil.which("sleep"), program)
            with subprocess.Popen([program, "1000"]) as process:
                try:
                    done = why_as_nobody(NAME)
                    self.assertEqual((done.returncode, done.stdout), (3, ""))
                    begin = f"forksight: error: {NAME}: only a process of another user has that name; process {process.pid}: belongs to another user (uid 0)"
                    self.assertTrue(done.stderr.startswith(begin), done.stderr)
                    # The remedy depends on the place.
                    self.assertRegex(done.stderr, r"sudo forksight why|forksight why \d+|--cap-add|kubectl debug|bounding set")
                finally:
                    process.kill()
        done = why_as_nobody(NAME)
        self.assertEqual(done.stderr, f"forksight: error: {NAME}: no process of yours has that name; `ps -e` lists the names\n")


if __name__ == "__main__":
    unittest.main()
