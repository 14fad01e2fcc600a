"""full_disk_test.py FORKSIGHT HAZARD: `forksight run` on a full disk reports the hang, and names no file that it could not write.

The test mounts a small file system in a mount namespace of its own. HAZARD is run_hazard.
"""
import shutil
import subprocess
import sys
import tempfile
import unittest

HAZARD, FORKSIGHT = sys.argv.pop(), sys.argv.pop()
LIMIT_S = 60
IN_NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]
MAY_MOUNT = shutil.which("unshare") and subprocess.run(
    [*IN_NAMESPACE, "sh", "-c", "mount -t tmpfs none /mnt"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S,
    check=False).returncode == 0
# The first part makes the file system, and fills it. The last part lists the files that forksight left.
SCRIPT = """
mount -t tmpfs -o size=64k none "$1" && cd "$1" || exit 99
head -c 1000000 /dev/zero > fill 2> /dev/null
shift
"$@" 1>&2
echo "status $?"
find . -mindepth 1 ! -name fill
"""


@unittest.skipUnless(MAY_MOUNT, "this needs a user namespace in which a file system can be mounted")
class FullDisk(unittest.TestCase):
    def run_there(self, *options):
        with tempfile.TemporaryDirectory(prefix="forksight-full-") as folder:
            command = [FORKSIGHT, "run", "--on-hang", "kill", *options, "--", HAZARD, "wait"]
            done = subprocess.run([*IN_NAMESPACE, "sh", "-c", SCRIPT, "sh", folder, *command], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=LIMIT_S, check=False)
            return done.stdout, done.stderr

    def test_the_hang_is_reported_and_no_folder_is_named(self):
        left, said = self.run_there()
        self.assertEqual(left, "status 137\n", said)
        self.assertIn("orphaned-mutex", said)
        self.assertIn("No space left on device\n", said)
        self.assertIn("\nforksight: 1 finding (1 certain) in 2 processes\n", said)
        self.assertNotIn("traces in", said)
        self.assertNotIn("name the folder that", said)

    def test_a_report_that_cannot_be_written_is_an_error(self):
        left, said = self.run_there("--report", "report.txt")
        self.assertIn("status 125\n", left, said)
        self.assertIn("forksight: error: report.txt: cannot be written: No space left on device\n", said)
        self.assertNotIn("report in", said)


if __name__ == "__main__":
    unittest.main()
