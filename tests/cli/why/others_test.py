"""others_test.py FORKSIGHT: tests `why` beside processes of another user.

If only a process of another user has the name NAME, the error of `why NAME` says what to do. If a shell of another user
has started process PID, `why PID` does not mention the shell. The test runs as root, and runs forksight as the user
nobody.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
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


def wait_for_child(pid):
    """Waits until the only child of the process runs sleep, and sleeps. Returns its pid."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children and Path(f"/proc/{children[0]}/comm").read_text() == "sleep\n" and Path(f"/proc/{children[0]}/stat").read_text().split()[2] == "S":
            return int(children[0])
        time.sleep(0.01)
    raise AssertionError(f"process {pid} has no child that sleeps")


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
                    # The remedy depends on where the test runs, for example in a container.
                    self.assertRegex(done.stderr, r"sudo forksight why|forksight why \d+|--cap-add|kubectl debug|bounding set")
                finally:
                    process.kill()
        done = why_as_nobody(NAME)
        self.assertEqual(done.stderr, f"forksight: error: {NAME}: no process of yours has that name; `ps -e` lists the names\n")

    def test_nobody_asked_about_the_shell_of_another_user(self):
        with subprocess.Popen(["sh", "-c", f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups sleep 1000; :"]) as shell:
            try:
                sleep = wait_for_child(shell.pid)
                done = why_as_nobody(str(sleep))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue(done.stdout.startswith("forksight: nothing found in 1 process\n"), done.stdout)
                self.assertNotIn("could not be watched", done.stdout)
            finally:
                os.kill(sleep, signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
