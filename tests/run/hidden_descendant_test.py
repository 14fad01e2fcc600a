"""hidden_descendant_test.py FORKSIGHT PROGRAM: a process that has left the job by a double fork, and hides its descriptors from its own user,
may still end a wait of the job.

ssh-agent is such a process. The process of the test has inherited a pipe, or shared memory without a name. `run` must not end the job,
and `why` must name the process and prove nothing. The test runs forksight as a user without privileges, because root sees all descriptors.
PROGRAM is run_hidden_descendant.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM, FORKSIGHT = sys.argv.pop(), sys.argv.pop()
LIMIT_S = 60
PYTHON = "/usr/bin/python3"
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
# The hidden process prints its pid. It waits until the test writes a line to FIFO, and then lets the job go on.
HIDDEN = """
import ctypes, mmap, os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # the handler of Python is a way out
libc = ctypes.CDLL(None)
PR_SET_DUMPABLE = 4
fifo, how, ends_first = sys.argv[1], sys.argv[2], sys.argv[3] == "ends-first"
reader, writer = os.pipe()
memory = mmap.mmap(-1, 4096)
semaphore = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc.sem_init(ctypes.c_void_p(semaphore), 1, 0)

def hide():
    os.setsid()
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    print(os.getpid(), flush=True)
    os.close(1)
    if how == "memory":
        os.close(writer)
    with open(fifo) as opened:
        opened.readline()
    if not ends_first:
        os.write(writer, b"x") if how == "pipe" else libc.sem_post(ctypes.c_void_p(semaphore))
    os._exit(0)

if os.fork() == 0:
    if os.fork() == 0:
        hide()
    os._exit(0)
os.wait()
if how == "pipe":
    os.read(reader, 1)
else:
    libc.sem_wait(ctypes.c_void_p(semaphore))
"""


def may_run():
    try:
        return subprocess.run([FORKSIGHT, "--help"], stdout=subprocess.DEVNULL, cwd="/", timeout=LIMIT_S, check=False, **NOBODY).returncode == 0
    except OSError:  # the user nobody cannot reach the folder of the build
        return False


def wait_until_asleep(pid, call):
    """Waits until the process sleeps in the system call."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if Path(f"/proc/{pid}/syscall").read_text().split()[0] == call:
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} does not wait in the system call {call}")


@unittest.skipUnless(may_run(), "this needs a folder that the user nobody can read")
class HiddenDescendant(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-hidden-")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o777)
        self.out = f"{folder.name}/out"
        self.fifo = f"{folder.name}/fifo"
        os.mkfifo(self.fifo)
        os.chmod(self.fifo, 0o666)

    def start(self, command, how, end="lets-go-on"):
        """Starts the Python program. Returns it and the pid of the hidden process."""
        return self.start_words([*command, PYTHON, "-c", HIDDEN, self.fifo, how, end])

    def start_words(self, words):
        program = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, cwd="/", start_new_session=True, **NOBODY)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.wait)
        hidden = int(program.stdout.readline())

        def end_all():
            for pid in (hidden, program.pid):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.addCleanup(end_all)
        return program, hidden

    def let_go_on(self):
        with open(self.fifo, "w", encoding="ascii") as opened:
            opened.write("\n")

    def why(self, pid):
        done = subprocess.run([FORKSIGHT, "why", str(pid)], capture_output=True, text=True, cwd="/", timeout=LIMIT_S, check=False, **NOBODY)
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def run_hidden(self, *program):
        job, _ = self.start_words([FORKSIGHT, "run", "--out", self.out, "--on-hang", "kill", "--", *program])
        time.sleep(4)  # forksight would report a hang after 2 s
        self.assertIsNone(job.poll(), "forksight has ended a job that a hidden process could continue")
        self.let_go_on()
        _, said = job.communicate(timeout=LIMIT_S)
        self.assertEqual(job.returncode, 0, said)
        self.assertNotIn("CERTAIN", said)

    def test_run_does_not_end_a_job_whose_pipe_a_hidden_process_has(self):
        self.run_hidden(PYTHON, "-c", HIDDEN, self.fifo, "pipe", "lets-go-on")

    def test_run_does_not_end_a_job_whose_memory_a_hidden_process_has(self):
        self.run_hidden(PYTHON, "-c", HIDDEN, self.fifo, "memory", "lets-go-on")

    def test_unusual_processes(self):
        for mode in ("leader-ends", "job-leader-ends", "clone-parent"):
            with self.subTest(mode):
                self.run_hidden(PROGRAM, self.fifo, mode)

    def test_why_names_the_hidden_process(self):
        for how, call in (("pipe", "0"), ("memory", "202")):
            with self.subTest(how):
                program, hidden = self.start([], how)
                wait_until_asleep(program.pid, call)
                status, said = self.why(program.pid)
                self.assertEqual(status, 0, said)
                self.assertRegex(said, f"list the descriptors of process(|es .*) {hidden} \\(python3\\)")

    def test_the_end_of_the_hidden_process_lets_run_report_the_hang(self):
        """The job itself still has the writing end of its pipe, so the read never ends."""
        job, _ = self.start([FORKSIGHT, "run", "--out", self.out, "--on-hang", "kill", "--"], "pipe", "ends-first")
        time.sleep(4)
        self.assertIsNone(job.poll())
        self.let_go_on()
        _, said = job.communicate(timeout=LIMIT_S)
        self.assertEqual(job.returncode, 137, said)
        self.assertIn("CERTAIN HANG: pipe-held-open", said)

    def test_a_younger_process_of_an_older_parent_is_no_descendant(self):
        """The hidden process is younger than the program that waits. Its parent is older than the program, and no ancestor of it."""
        hides = "import ctypes, signal; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print(flush=True); signal.pause()"
        makes = f"import subprocess, sys; print(flush=True); input(); subprocess.run([sys.executable, '-c', {hides!r}])"
        waits = "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); reader, writer = os.pipe(); print(flush=True); os.read(reader, 1)"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True, "text": True}
        with subprocess.Popen([PYTHON, "-c", makes], **pipes, **NOBODY) as maker:
            maker.stdout.readline()
            time.sleep(0.02)  # the kernel counts start times in units of 10 ms
            with subprocess.Popen([PYTHON, "-c", waits], **pipes, **NOBODY) as waiting:
                try:
                    waiting.stdout.readline()
                    wait_until_asleep(waiting.pid, "0")
                    print(file=maker.stdin, flush=True)
                    maker.stdout.readline()
                    status, said = self.why(waiting.pid)
                    self.assertEqual(status, 1, said)
                    self.assertIn("CERTAIN HANG: pipe-held-open", said)
                    self.assertNotIn("list the descriptors", said)
                finally:
                    waiting.kill()
                    os.killpg(maker.pid, signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
