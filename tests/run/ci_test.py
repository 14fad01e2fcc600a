"""ci_test.py FORKSIGHT FIXTURE HAZARD JUNIT_XSD: calls `forksight ci` as a CI system does. Tests which hangs `forksight
ci` reports before the time limit, which processes it ends, and its exit status."""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from xml.etree import ElementTree

FORKSIGHT, FIXTURE, HAZARD, XSD = sys.argv[1:5]
LIMIT_S = 50
# The environment without GitHub's variables: a test that needs them sets them.
BARE = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
DEADLOCK = """import threading
one, other, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
def take(first, second):
    with first:
        both.wait()
        with second:
            pass
threading.Thread(target=take, args=(other, one)).start()
take(one, other)
"""

# A child that waits for a lock of Python, which a thread held at the fork. The argument says how the script handles SIGINT.
LOCK = """import multiprocessing, signal, sys, threading
lock, is_held = threading.Lock(), threading.Event()
def hold():
    with lock:
        is_held.set()
        threading.Event().wait()
def take():
    with lock:
        pass
if sys.argv[1] == "own":
    signal.signal(signal.SIGINT, lambda *_: lock.release())
threading.Thread(target=hold, daemon=True).start()
is_held.wait()
child = multiprocessing.get_context("fork").Process(target=take)
child.start()
child.join()
"""


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Job(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-ci-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, *words, github=False):
        variables = dict(BARE)
        if github:
            variables |= {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
                          "GITHUB_WORKSPACE": str(self.folder)}
        # The output goes to files. With a pipe, the test would wait for the end of a left-behind process that has the pipe open.
        with open(self.folder / "out", "wb") as out, open(self.folder / "err", "wb") as err:
            return subprocess.Popen([FORKSIGHT, "ci", *words], cwd=self.folder, stdout=out, stderr=err, env=variables)

    def wait(self, job, status):
        try:
            code = job.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
            code = "none"
        self.assertEqual(code, status, self.err())
        return self.err()

    def ci(self, *words, status, github=False):
        return self.wait(self.start(*words, github=github), status)

    def err(self):
        return (self.folder / "err").read_text()

    def out(self):
        return (self.folder / "out").read_text()

    def read_junit(self, name="junit.xml"):
        """Returns the element that says how the only test case failed, or None if the test case passed."""
        checked = subprocess.run(["xmllint", "--noout", "--schema", XSD, str(self.folder / name)], capture_output=True,
                                 text=True, check=False, timeout=LIMIT_S)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        cases = ElementTree.parse(self.folder / name).getroot().findall("testsuite/testcase")
        self.assertEqual(len(cases), 1)
        self.assertEqual(cases[0].get("classname"), "forksight.ci")
        return next(iter(cases[0]), None)

    def read_report(self):
        reports = list((self.folder / "forksight-out").glob("*/report.json"))
        self.assertEqual(len(reports), 1)
        return json.loads(reports[0].read_text())

    def assert_gone(self, pids):
        for pid in pids:
            self.assertFalse(lives(int(pid)), f"process {pid} is left behind")

    def test_a_hang_is_reported_and_ended_before_the_limit(self):
        err = self.ci("--timeout", "6s", "--junit", "junit.xml", "--", HAZARD, "hang", status=124, github=True)
        # forksight ends the child when a quarter of the time limit is left. Then the parent ends with status 0, before the limit.
        self.assertNotIn("at the limit", err)
        self.assertIn("CERTAIN HANG: orphaned-mutex", err)
        child = re.search(r"these processes can never go on; forksight ends them: (\d+) \(run_hazard\)\n", err)
        self.assertTrue(child, err)
        self.assert_gone(child.groups())
        findings = self.read_report()["findings"]
        self.assertEqual([finding["rule"] for finding in findings], ["orphaned-mutex"])
        self.assertRegex(err, r"::error (file=\S+,line=\d+,)?title=forksight orphaned-mutex::child \d+ hangs locking table_mutex")
        summary = (self.folder / "summary.md").read_text()
        self.assertTrue(summary.startswith("### forksight: the job hangs\n\n    forksight: 1 finding in 2 processes"), summary)
        failure = self.read_junit()
        self.assertEqual(failure.tag, "failure")
        self.assertIn("hangs locking table_mutex", failure.get("message"))
        self.assertIn("CERTAIN HANG: orphaned-mutex", failure.text)

    def test_all_frames_are_shown_in_each_document_if_asked_for(self):
        for options, is_full in (([], False), (["--full"], True)):
            err = self.ci("--timeout", "6s", "--junit", "junit.xml", *options, "--", HAZARD, "hang", status=124, github=True)
            summary = (self.folder / "summary.md").read_text()
            for text in (err, summary, self.read_junit().text):
                (self.assertRegex if is_full else self.assertNotRegex)(text, r"\n +pthread_mutex_lock +libc")
            (self.folder / "summary.md").unlink()

    def test_a_check_target_of_make(self):
        (self.folder / "Makefile").write_text(f"check:\n\t{shlex.quote(HAZARD)} hang\n\t@echo the next test\n")
        err = self.ci("--timeout", "6s", "--", "make", "check", status=124)
        self.assertNotIn("at the limit", err)
        self.assertIn("CERTAIN HANG: orphaned-mutex", err)
        child = re.search(r"these processes can never go on; forksight ends them: (\d+) \(run_hazard\)\n", err)
        self.assertTrue(child, err)
        self.assert_gone(child.groups())
        self.assertIn("the next test\n", self.out(), "make continues when the hung process has ended")

    def test_a_check_target_of_make_with_python(self):
        """Ctrl-C could end the wait of the child. In a job of a CI system nobody presses it, so forksight ends the child."""
        (self.folder / "lock.py").write_text(LOCK)
        python = shlex.quote(sys.executable)
        (self.folder / "Makefile").write_text(f"check:\n\t{python} lock.py default\n\t@echo the next test\n")
        err = self.ci("--timeout", "6s", "--", "make", "check", status=124)
        self.assertNotIn("at the limit", err)
        self.assertIn("CERTAIN HANG: python-lock-orphaned", err)
        child = re.search(r"these processes can never go on; forksight ends them: (\d+) \(python\S*\)\n", err)
        self.assertTrue(child, err)
        self.assert_gone(child.groups())
        self.assertIn("the next test\n", self.out(), "make goes on when the hung process has ended")

    def test_a_script_whose_handler_may_release_the_lock_is_not_ended_early(self):
        (self.folder / "lock.py").write_text(LOCK)
        err = self.ci("--timeout", "6s", "--", sys.executable, "lock.py", "own", status=124)
        self.assertIn("at the limit", err)
        self.assertNotIn("can never go on", err)

    def test_a_command_that_notices_the_hang_keeps_its_own_status(self):
        err = self.ci("--timeout", "5s", "--", "sh", "-c", f"{shlex.quote(HAZARD)} hang; exit 7", status=7)
        self.assertIn("these processes can never go on; forksight ends them", err)

    def test_a_hang_that_follows_another_is_reported_too(self):
        (self.folder / "deadlock.py").write_text(DEADLOCK)
        script = f"{shlex.quote(HAZARD)} hang; exec {shlex.quote(sys.executable)} deadlock.py"
        err = self.ci("--timeout", "8s", "--junit", "junit.xml", "--", "sh", "-c", script, status=124)
        self.assertLess(err.index("CERTAIN HANG: orphaned-mutex"), err.index("LIKELY HANG, cause unknown: deadlock"))
        self.assertNotIn("withdrawn", err)
        self.assertEqual({finding["rule"] for finding in self.read_report()["findings"]}, {"orphaned-mutex", "deadlock"})
        failure = self.read_junit()
        self.assertIn("table_mutex", failure.get("message"))
        self.assertIn("deadlock.py:6", failure.text)

    def test_a_command_that_leaves_a_hung_child_behind_did_not_succeed(self):
        for status, told in ((0, 124), (4, 4)):
            err = self.ci("--timeout", "50s", "--", "sh", "-c", f"{shlex.quote(HAZARD)} orphan; exit {status}", status=told)
            self.assertIn("CERTAIN HANG: orphaned-mutex", err)
            child = re.search(r"these processes can never go on; forksight ends them: (\d+) \(run_hazard\)\n", err)
            self.assertTrue(child, err)
            self.assertLess(err.index("CERTAIN HANG"), child.start(), "forksight must report the hang before it ends the process")
            self.assert_gone(child.groups())

    def test_the_document_is_complete_at_any_time(self):
        self.ci("--timeout", "20s", "--junit", "junit.xml", "--", "cp", "junit.xml", "during.xml", status=0)
        during = self.read_junit("during.xml")
        self.assertEqual((during.tag, during.get("message")), ("error", "forksight did not see the end of the command"))
        self.assertIsNone(self.read_junit())

    def test_annotations_name_the_line(self):
        (self.folder / "checks").mkdir()
        (self.folder / "checks" / "deadlock.py").write_text(DEADLOCK)
        # Python has a handler for SIGINT, so the hang is not proven. forksight ends nothing before the limit.
        err = self.ci("--timeout", "5s", "--", sys.executable, "checks/deadlock.py", status=124, github=True)
        self.assertRegex(err, r"::error file=checks/deadlock.py,line=6,title=forksight deadlock::process \d+ hangs")
        self.assertIn("the job was ended at the limit; the hangs are reported above", err)
        self.assertNotIn("can never go on", err)

    def test_the_job_is_ended_although_standard_error_cannot_be_written(self):
        script = "import os\nprint(os.getpid(), flush=True)\n" + DEADLOCK
        with open(self.folder / "out", "wb") as out, open("/dev/full", "wb") as full:
            job = subprocess.Popen([FORKSIGHT, "ci", "--timeout", "5s", "--junit", "junit.xml", "--", sys.executable, "-c", script],
                                   cwd=self.folder, stdout=out, stderr=full, env=BARE)
        (self.folder / "err").touch()
        self.wait(job, 124)
        self.assert_gone([self.out()])
        self.assertEqual(self.read_junit().tag, "failure")

    def test_a_finding_that_may_hang_is_not_called_a_running_process(self):
        # The child writes more than a pipe holds, and Python has a handler for SIGINT.
        script = "import subprocess\nsubprocess.Popen(['python3', '-c', 'print(\"x\" * 99999)'], stdout=-1).wait()"
        err = self.ci("--timeout", "5s", "--junit", "junit.xml", "--", sys.executable, "-c", script, status=124)
        self.assertIn("LIKELY HANG: pipe-deadlock", err)
        self.assertNotIn("processes ran", err)
        self.assertRegex(" ".join(err.split()), "the job was ended at the limit; (no process was proven to hang; the report above says what may be "
                                                "wrong|the hangs are reported above)")

    def test_a_summary_that_cannot_be_written_is_reported_with_the_reason(self):
        (self.folder / "summary.md").symlink_to("/dev/full")
        err = self.ci("--timeout", "2s", "--", "sleep", "100", status=124, github=True)
        self.assertIn("summary.md: cannot be written: No space left on device\n", err)

    def test_without_the_shim(self):
        (self.folder / "deadlock.py").write_text("import os\nprint(os.environ.get('LD_PRELOAD', 'none'), flush=True)\n" + DEADLOCK)
        err = self.ci("--timeout", "5s", "--no-preload", "--", sys.executable, "deadlock.py", status=124)
        self.assertEqual(self.out(), BARE.get("LD_PRELOAD", "none") + "\n")
        self.assertIn("LIKELY HANG, cause unknown: deadlock", err)
        self.assertIn("deadlock.py:8", err)

    def test_a_healthy_command_passes_its_status_and_prints_nothing(self):
        for status in (0, 3):
            err = self.ci("--timeout", "20s", "--junit", "junit.xml", "--", "sh", "-c", f"echo out; exit {status}",
                          status=status, github=True)
            self.assertEqual((err, self.out()), ("", "out\n"))
            self.assertFalse((self.folder / "summary.md").exists())
            self.assertFalse((self.folder / "forksight-out").exists())
            end = self.read_junit()
            self.assertEqual(end if status == 0 else end.get("message"), None if status == 0 else "the command ended with status 3")
        self.assertEqual(self.ci("--timeout", "20s", "--", "sh", "-c", "kill -9 $$", status=137), "")

    def test_a_slow_command_is_not_called_hung(self):
        err = self.ci("--timeout", "3s", "--junit", "junit.xml", "--", "sh", "-c", "while :; do :; done", status=124, github=True)
        sentence = "the job was ended at the limit; no process was proven to hang"
        lines = err.splitlines()
        self.assertEqual(lines[:2], [f"forksight: {sentence}", f"::error title=forksight::{sentence}"])
        self.assertRegex(lines[2], r"^forksight: these processes had not ended at the limit: \d+ \(sh\)$")
        self.assertEqual(len(lines), 3, err)
        self.assertEqual((self.folder / "summary.md").read_text(), f"### forksight: {sentence}\n\n")
        self.assertEqual(self.read_junit().get("message"), sentence)
        self.assertFalse(list(self.folder.glob("forksight-out/*/report.json")))

    def test_the_wait_of_a_sleeping_command_is_reported(self):
        err = self.ci("--timeout", "3s", "--", "sleep", "600", status=124)
        self.assertTrue(err.startswith("forksight: the job was ended at the limit; no process was proven to hang\n"), err)
        self.assertIn("could be ended by: its time limit", err)

    def test_nothing_is_left_behind(self):
        # The daemon has its own session and no parent in the job. It ignores SIGTERM.
        daemon = "setsid sh -c 'trap \"\" TERM; echo $$ >&3; while :; do sleep 1; done' &"
        script = f"( {daemon} ) 3>pids; while ! [ -s pids ]; do sleep 0.1; done; "
        err = self.ci("--timeout", "30s", "--grace", "1s", "--", "sh", "-c", script + "exit 4", status=4)
        pid = (self.folder / "pids").read_text().strip()
        self.assertRegex(err, rf"^forksight: CMD left these processes behind; forksight ends them: [^\n]*\b{pid} \(sh\)")
        self.assert_gone([pid])
        (self.folder / "pids").unlink()
        start = time.monotonic()
        self.ci("--timeout", "3s", "--grace", "1s", "--", "sh", "-c", script + "sleep 600", status=124)
        self.assertLess(time.monotonic() - start, 3 + 1 + 10)
        self.assert_gone([(self.folder / "pids").read_text().strip()])

    def test_an_orphan_that_hangs_is_explained(self):
        # The shell that started the fixture has ended, and the environment of the fixture is empty. So neither the
        # parent nor the environment of the fixture shows that the fixture belongs to the job.
        script = f"( env -i {shlex.quote(FIXTURE)} dead >/dev/null & ); sleep 600"
        err = self.ci("--timeout", "6s", "--no-preload", "--", "sh", "-c", script, status=124)
        self.assertIn("CERTAIN HANG, cause unknown: deadlock", err)
        dead = re.search(r"can never go on; forksight ends them: (\d+) \(run_fixture\)\n", err)
        self.assertTrue(dead, err)
        self.assert_gone(dead.groups())

    def test_sigterm_of_the_ci_system_before_the_limit(self):
        job = self.start("--timeout", "10m", "--", HAZARD, "hang")
        end = time.monotonic() + LIMIT_S
        while self.out() != "r" and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(2)  # the job hangs now; forksight examines it twice to prove the hang
        job.send_signal(signal.SIGTERM)
        self.assertIn("CERTAIN HANG: orphaned-mutex", self.wait(job, 128 + signal.SIGTERM))
        self.assertEqual(self.read_report()["findings"][0]["rule"], "orphaned-mutex")

    def test_earlier_children_of_the_process_are_left_alone(self):
        script = "sleep 600 & echo $! >stranger; exec \"$@\""
        with open(self.folder / "err", "wb") as err:
            job = subprocess.Popen(["sh", "-c", script, "sh", FORKSIGHT, "ci", "--timeout", "20s", "--", "sh", "-c", "exit 5"],
                                   cwd=self.folder, stderr=err, env=BARE)
        try:
            self.assertEqual(self.wait(job, 5), "")
            pid = int((self.folder / "stranger").read_text())
            self.assertTrue(lives(pid), "forksight ended a process that does not belong to the job")
        finally:
            os.kill(int((self.folder / "stranger").read_text()), signal.SIGKILL)

    def test_errors_are_one_line(self):
        good = ("--", "true")
        for words, status, text in (
                (("--timeout", "20", *good), 2, '"20" is not a duration; give a number and s, m or h, for example 90s, 20m or 1h'),
                (("--timeout", "0s", *good), 2, '"0s" is not a duration'),
                (("--timeout", "-5m", *good), 2, '"-5m" is not a duration'),
                (("--timeout", "1d", *good), 2, '"1d" is not a duration'),
                (("--timeout", "1m30s", *good), 2, '"1m30s" is not a duration'),
                (("--timeout", "99999999999999999999h", *good), 2, "is not a duration"),
                (("--timeout", "169h", *good), 2, '"169h" is longer than a week, which is 168h'),
                (("--timeout", "5s", "--grace", "soon", *good), 2, '"soon" is not a duration'),
                (good, 2, "--timeout is required"),
                (("--timeout", "5s"), 2, "no command"),
                (("--timeout", "5s", "--junit", "none/junit.xml", *good), 2, "none/junit.xml: cannot be written: No such file"),
                (("--timeout", "5s", "--", "no-such-command"), 127, "no-such-command: command not found")):
            with self.subTest(words=words):
                err = self.ci(*words, status=status)
                self.assertTrue(err.startswith("forksight: error: ") and err.count("\n") == 1, err)
                self.assertIn(text, err)
        self.ci("--timeout", "5s", "--junit", "junit.xml", "--", "no-such-command", status=127)
        self.assertEqual(self.read_junit().tag, "error")
        self.assertFalse((self.folder / "forksight-out").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
