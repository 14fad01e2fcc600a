"""others_test.py FORKSIGHT: tests `why` beside processes of another user.

If only a process of another user has the name NAME, the error of `why NAME` says what to do. If a shell of another user
has started process PID, `why PID` mentions the shell only if the shell could end a wait of the process. The test runs as
root, and runs forksight as the user nobody.
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
PR_SET_DUMPABLE = 4  # linux/prctl.h
PYTHON_AS_NOBODY = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups /usr/bin/python3"
LOCKS_TWICE = "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"


def why_as_nobody(*words):
    return subprocess.run([FORKSIGHT, "why", *words], capture_output=True, text=True, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
                          timeout=LIMIT_S, check=False)


def ask_again(pid, is_answer):
    """Runs `why` until it gives the answer, or the time is up. Returns the last run."""
    end = time.monotonic() + LIMIT_S
    while True:
        done = why_as_nobody(str(pid))
        if is_answer(done) or time.monotonic() > end:
            return done


def may_run():
    try:
        return os.geteuid() == 0 and why_as_nobody("--help").returncode == 0
    except OSError:  # the user nobody cannot reach the folder of the build
        return False


def wait_for_child(pid, name="sleep"):
    """Waits until the only child of the process has the name, and sleeps. Returns its pid."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children and Path(f"/proc/{children[0]}/comm").read_text() == f"{name}\n" and Path(f"/proc/{children[0]}/stat").read_text().split()[2] == "S":
            return int(children[0])
        time.sleep(0.01)
    raise AssertionError(f"process {pid} has no child {name} that sleeps")


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

    def test_the_shell_of_another_user_gave_no_memory_to_a_hung_program(self):
        """The shell executed the program, so no thread of the shell can hold a lock of the program."""
        with subprocess.Popen(["sh", "-c", f"{PYTHON_AS_NOBODY} -c '{LOCKS_TWICE}'; :"]) as shell:
            hung = wait_for_child(shell.pid, "python3")
            try:
                done = ask_again(hung, lambda done: done.returncode != 0)
                self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
                self.assertNotIn(f"process {shell.pid}", done.stdout)
                self.assertNotIn("belongs to another user", done.stdout)
            finally:
                os.kill(hung, signal.SIGKILL)

    def test_a_parent_of_another_user_gave_its_memory_to_a_hung_child(self):
        """A thread of the parent could hold the lock for which the child waits. So the report says that the parent is missing."""
        child = f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); ctypes.CDLL(None).prctl({PR_SET_DUMPABLE}, 1); {LOCKS_TWICE}"
        program = f"import ctypes, os\nif os.fork() == 0:\n    {child}\nos.wait()"
        with subprocess.Popen(["/usr/bin/python3", "-c", program]) as parent:
            hung = wait_for_child(parent.pid, "python3")
            try:
                done = ask_again(hung, lambda done: done.returncode == 1)
                self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
                self.assertIn(f"process {parent.pid}: belongs to another user", " ".join(done.stdout.split()))
            finally:
                os.kill(hung, signal.SIGKILL)

    def test_one_sentence_names_all_processes_whose_descriptors_are_hidden(self):
        """The program waits for a socket of its own. A shell of another user could have the other end."""
        program = "import socket; ends = socket.socketpair(); ends[0].recv(1)"
        words = f"{PYTHON_AS_NOBODY} -c '{program}'; :"
        with subprocess.Popen(["sh", "-c", f"sh -c \"{words}\"; :"], start_new_session=True) as outer:
            inner = wait_for_child(outer.pid, "sh")
            waiting = wait_for_child(inner, "python3")
            try:
                sentence = f"list the descriptors of processes {outer.pid} (sh), {inner} (sh): so forksight proves no wait for a pipe"
                done = ask_again(waiting, lambda done: sentence in " ".join(done.stdout.split()))
                said = " ".join(done.stdout.split())
                self.assertEqual((done.returncode, done.stderr), (0, ""), said)
                self.assertIn(sentence, said)
                self.assertEqual(said.count("list the descriptors of"), 1, said)
            finally:
                os.kill(waiting, signal.SIGKILL)

    def test_a_process_of_another_user_that_is_no_ancestor_may_write(self):
        """The shell has both ends of a pipe. A process of root has inherited the same pipe, but is not the parent of the shell."""
        program = f"""
import os, signal
ends = os.pipe()
for end in ends:
    os.set_inheritable(end, True)
if os.fork() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
    waiting = os.fork()
    if waiting == 0:
        os.execv("/bin/sh", ["sh", "-c", f"read line <&{{ends[0]}}"])
    print(waiting, flush=True)
    os._exit(0)
os.wait()
signal.pause()
"""
        with subprocess.Popen(["/usr/bin/python3", "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True) as root:
            waiting = int(root.stdout.readline())
            try:
                sentence = f"list the descriptors of process {root.pid} ("
                done = ask_again(waiting, lambda done: sentence in " ".join(done.stdout.split()))
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                self.assertIn(sentence, " ".join(done.stdout.split()))
            finally:
                os.kill(waiting, signal.SIGKILL)
                root.kill()


if __name__ == "__main__":
    unittest.main()
