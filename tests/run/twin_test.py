"""twin_test.py FORKSIGHT HAZARD: another process of the same program, which the kernel does not let forksight examine, does not hide
a hang of `forksight run`. `forksight why` says that it cannot exclude that the two processes share their memory.

The examined processes and forksight are in a user namespace of their own, and the other process is not. HAZARD is run_hazard.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HAZARD, FORKSIGHT = sys.argv.pop(), sys.argv.pop()
LIMIT_S = 60
# If the limit passes, timeout(1) kills the whole process group. So no process of the hang is left.
LIMITED = ["timeout", "--signal=KILL", str(LIMIT_S)]
IN_NAMESPACE = ["unshare", "--user", "--map-root-user"]
MAY_UNSHARE = shutil.which("unshare") and subprocess.run([*IN_NAMESPACE, "true"], stderr=subprocess.DEVNULL, timeout=LIMIT_S,
                                                         check=False).returncode == 0
# Waits until the child of the hazard has blocked in a futex.
WHY = """
"$2" wait > /dev/null &
until read child _ < /proc/$!/task/$!/children; grep -q '^202 ' /proc/$child/syscall; do :; done 2> /dev/null
"$1" why $!
echo "status $?"
kill -KILL $child $!
"""


@unittest.skipUnless(MAY_UNSHARE, "this needs a user namespace")
class Twin(unittest.TestCase):
    def start_twin(self, *before):
        """Starts the other process, which hangs as the examined ones do, in a group of its own."""
        twin = subprocess.Popen([*before, HAZARD, "wait"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(twin.stdout.close)
        self.addCleanup(twin.wait)
        self.addCleanup(os.killpg, twin.pid, signal.SIGKILL)
        self.assertEqual(twin.stdout.read(1), b"r")

    def test_the_hang_of_a_run_is_proven(self):
        with tempfile.TemporaryDirectory(prefix="forksight-twin-") as out:
            self.start_twin(FORKSIGHT, "run", "--out", f"{out}/twin", "--")
            done = subprocess.run([*LIMITED, *IN_NAMESPACE, FORKSIGHT, "run", "--out", f"{out}/run", "--on-hang", "kill", "--", HAZARD,
                                   "wait"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.doCleanups()
        self.assertEqual(done.returncode, 137, done.stderr)
        self.assertIn("CERTAIN HANG: orphaned-mutex", done.stderr)
        self.assertNotIn("may share", done.stderr)

    def test_why_says_that_the_memory_may_be_shared(self):
        self.start_twin()
        done = subprocess.run([*LIMITED, *IN_NAMESPACE, "sh", "-c", WHY, "sh", FORKSIGHT, HAZARD], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        self.assertIn("status 0\n", done.stdout, done.stderr)
        said = " ".join((done.stdout + done.stderr).split())
        self.assertRegex(said, r"process (\d+) \(run_hazard\) may share the memory of process (\d+) \(run_hazard\), and could then end "
                               r"its waits: the kernel does not let forksight find out, so forksight does not prove that process \2 hangs")


if __name__ == "__main__":
    unittest.main()
