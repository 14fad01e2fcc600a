"""full_disk_test.py FORKSIGHT HAZARD: `forksight run` and `forksight ci` on a full disk or under `ulimit -f` report the hang, name no
file that they could not write, and destroy no earlier report.

The test mounts a small file system in a mount namespace of its own. HAZARD is run_hazard.
"""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HAZARD, FORKSIGHT = sys.argv.pop(), sys.argv.pop()
LIMIT_S = 60
# If the limit passes, timeout(1) kills the whole process group. So no process of the hang is left.
LIMITED = ["timeout", "--signal=KILL", str(LIMIT_S)]
IN_NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]
MAY_MOUNT = shutil.which("unshare") and subprocess.run(
    [*IN_NAMESPACE, "sh", "-c", "mount -t tmpfs none /mnt"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S,
    check=False).returncode == 0
OLD = "the earlier report"
LACK = "processes of this run may lack traces: "
# The first part makes the file system, and fills it. The last part lists the files that forksight left.
SCRIPT = """
mount -t tmpfs -o size=64k none "$1" && cd "$1" || exit 99
[ -z "$2" ] || printf %s "$2" > report.txt
head -c 1000000 /dev/zero > fill 2> /dev/null
shift 2
"$@" 1>&2
echo "status $?"
[ ! -e report.txt ] || echo "report.txt: $(cat report.txt)"
find . -mindepth 1 ! -name fill
"""


@unittest.skipUnless(MAY_MOUNT, "this needs a user namespace in which a file system can be mounted")
class FullDisk(unittest.TestCase):
    def start_there(self, *words, old=""):
        with tempfile.TemporaryDirectory(prefix="forksight-full-") as folder:
            done = subprocess.run([*LIMITED, *IN_NAMESPACE, "sh", "-c", SCRIPT, "sh", folder, old, FORKSIGHT, *words],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, -9, f"did not end in {LIMIT_S} s: {done.stderr}")
            return done.stdout, done.stderr

    def run_there(self, *options, old=""):
        return self.start_there("run", "--on-hang", "kill", *options, "--", HAZARD, "wait", old=old)

    def test_the_hang_is_reported_and_no_folder_is_named(self):
        left, said = self.run_there()
        self.assertEqual(left, "status 137\n", said)
        self.assertIn("orphaned-mutex", said)
        self.assertEqual(said.count("run.json: cannot be written: No space left on device\n"), 1, said)
        self.assertIn("\nforksight: 1 finding (1 certain) in 2 processes\n", said)
        self.assertNotIn("traces in", said)
        self.assertNotIn("name the folder that", said)
        self.assertEqual(said.count("not seen: " + LACK), 1, said)
        self.assertIn(" takes no more data (No space left on device)\n", said)

    def test_a_document_says_that_traces_may_be_missing(self):
        with tempfile.TemporaryDirectory(prefix="forksight-full-") as folder:
            report = Path(folder, "report.json")
            left, said = self.start_there("run", "--format", "json", "--report", str(report), "--", "true")
            self.assertEqual(left, "status 0\n", said)
            limits = json.loads(report.read_text())["limits"]
        self.assertEqual([limit.startswith(LACK) for limit in limits], [True], limits)

    def test_a_report_that_cannot_be_written_is_an_error(self):
        left, said = self.run_there("--report", "report.txt")
        self.assertIn("status 125\n", left, said)
        self.assertIn("forksight: error: report.txt: cannot be written: No space left on device\n", said)
        self.assertNotIn("report in", said)
        self.assertNotIn("report.txt", left, "an empty file was left")

    def test_the_earlier_report_stays_and_standard_error_gets_the_new_one(self):
        for options in ([], ["--format", "json"]):
            with self.subTest(options=options):
                left, said = self.run_there("--report", "report.txt", *options, old=OLD)
                self.assertEqual(left, f"status 125\nreport.txt: {OLD}\n./report.txt\n", said)
                self.assertEqual(said.count("CERTAIN HANG: orphaned-mutex"), 1, said)
                self.assertIn("not seen: " + LACK, said)

    def test_a_job_runs_although_its_junit_document_cannot_be_written(self):
        for words, status in ((("true",), 125), (("sh", "-c", "exit 7"), 7), ((HAZARD, "hang"), 124)):
            with self.subTest(words=words):
                left, said = self.start_there("ci", "--timeout", "6s", "--junit", "report.txt", "--", *words)
                self.assertTrue(left.startswith(f"status {status}\n"), left + said)
                self.assertNotIn("report.txt", left)
                self.assertEqual(said.count("forksight: error: report.txt: cannot be written: No space left on device\n"), 1, said)


@unittest.skipIf(os.environ.get("FORKSIGHT_SANITIZED") == "thread", "ThreadSanitizer itself writes a file")
class LimitOfFileSizes(unittest.TestCase):
    """Under `ulimit -f 0`, the kernel would end a process that writes to a file by SIGXFSZ."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-size-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, *words, ignores=False):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN if ignores else signal.SIG_DFL)
        with open(self.folder / "err", "w") as err:  # a file, so that each line of forksight exceeds the limit
            done = subprocess.run(list(words), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, text=True,
                                  timeout=LIMIT_S, check=False, preexec_fn=limit, restore_signals=False)
        return done.returncode, done.stdout

    def test_the_job_is_ended_and_its_status_is_kept(self):
        for words, status in ((("run", "--on-hang", "kill", "--report", "report.txt", "--", HAZARD, "wait"), 125),
                              (("run", "--on-hang", "kill", "--", HAZARD, "wait"), 137),
                              (("ci", "--timeout", "6s", "--junit", "junit.xml", "--", HAZARD, "hang"), 124),
                              (("run", "--", "sh", "-c", "exit 7"), 7),
                              (("run", "--no-such-option"), 2)):
            with self.subTest(words=words):
                self.assertEqual(self.start(FORKSIGHT, *words)[0], status)
        self.assertEqual([path.name for path in self.folder.iterdir() if path.name != "forksight-out"], ["err"])

    def test_the_command_gets_the_signal_as_the_caller_has_it(self):
        show = ("grep", "^Sig[BI]", "/proc/self/status")
        for ignores in (False, True):
            with self.subTest(ignores=ignores):
                self.assertEqual(self.start(FORKSIGHT, "run", "--", *show, ignores=ignores), self.start(*show, ignores=ignores))

    def test_the_report_says_that_traces_may_be_missing(self):
        done = subprocess.run([FORKSIGHT, "run", "--", "true"], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(" takes no more data (File too large; see ulimit -f)\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
