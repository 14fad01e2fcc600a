"""Code that the tests of hostile files share. run() runs a command with a time limit, and measures its memory. Program starts a
program that a test examines. Opened observes whether a file is opened. Mount mounts a file system. All of these signal
only processes that they started, by pid."""
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "cases"))
import processes  # noqa: E402

LIMIT_S = 120  # far more than any command takes on an idle machine, so only a command that hangs exceeds it
NAMED = "forksight: error: "
# A Python program that forks while it has a second thread, and waits for the child.
FORKS = """
import os, sys, threading
gate = threading.Event()
thread = threading.Thread(target=gate.wait)
thread.start()
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
gate.set()
thread.join()
"""
MEMORY_FACTOR = 1
SECONDS = 10  # the most processor time that a command may take
SANITIZED = bool(os.environ.get("FORKSIGHT_SANITIZED"))
if SANITIZED:
    SECONDS = 40
    # AddressSanitizer needs more memory: shadow memory, zones around each object, and the memory of freed objects.
    MEMORY_FACTOR = 4
    # LeakSanitizer ends a program with an error if strace traces it, or if the program may not make a thread. If a program
    # asks for more memory than its limit allows, AddressSanitizer ends it, unless it may refuse the request.
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0:allocator_may_return_null=1"
IN_OPEN = 0x20
libc = ctypes.CDLL(None, use_errno=True)


class Done:
    """What run() returns about a command: its exit status, its output, the CPU time that it used, and its peak memory in MB. With
    AddressSanitizer, the peak memory is divided by MEMORY_FACTOR."""

    def __init__(self, status, out, err, seconds, peak_mb):
        self.status, self.out, self.err, self.seconds, self.peak_mb = status, out, err, seconds, peak_mb

    @property
    def text(self):
        return self.out + self.err


def peak_of(pid):
    """Returns the most memory that a process or one of its descendants has used, in MB.

    Returns 0 for a process that has ended, or that has not called exec and so is still a copy of this Python process. The peak that
    wait4() returns is of no use here, because this peak includes the memory that the process used before exec.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    name = text.partition("\n")[0].split()[1]
    if "VmHWM:" not in text or name.startswith("python"):
        return 0
    return max([int(text.partition("VmHWM:")[2].split()[0]) / 1024, *map(peak_of, children)])


def run(argv, limit_s=LIMIT_S, **options):
    """Runs a command to its end. Fails the test if the command takes longer than `limit_s`. `seconds` of the result is CPU time,
    which hardly depends on other load of the machine."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=err, **options)
        deadline = time.monotonic() + limit_s
        peak_mb = 0
        while True:
            peak_mb = max(peak_mb, peak_of(child.pid))
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid != 0:
                break
            if time.monotonic() > deadline:
                child.kill()
                os.wait4(child.pid, 0)
                child.returncode = -signal.SIGKILL
                raise AssertionError(f"{argv}: still running after {limit_s} s")
            time.sleep(0.005)
        child.returncode = os.waitstatus_to_exitcode(status)
        read = lambda file: (file.seek(0), file.read().decode(errors="replace"))[1]
        return Done(child.returncode, read(out), read(err), usage.ru_utime + usage.ru_stime, peak_mb / MEMORY_FACTOR)


class Program:
    """A program that a test examines, in a session of its own. The constructor returns when the program has written its first
    byte."""

    def __init__(self, argv, **options):
        self.popen = subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      start_new_session=True, **options)
        if self.popen.stdout.read(1) != b"x":
            self.end()
            raise RuntimeError(f"{argv} did not start")

    @property
    def pid(self):
        return self.popen.pid

    def end(self):
        self.popen.kill()
        self.popen.wait()
        self.popen.stdin.close()
        self.popen.stdout.close()


class Mount:
    """A mounted FUSE file system (dead_mount.py). `arguments`: the files, perhaps with "--private" before them."""

    def __init__(self, folder, arguments):
        self.server = subprocess.Popen([sys.executable, "-B", Path(__file__).with_name("dead_mount.py"), folder, *arguments],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.server.stdout.read(1) != b"x":
            error = self.server.stderr.read().decode()
            self.end()
            raise unittest.SkipTest(f"no FUSE file system can be mounted here: {error.strip().splitlines()[-1]}")

    def die(self):
        self.server.stdin.write(b"d")
        self.server.stdin.flush()
        assert self.server.stdout.read(1) == b"d"

    def end(self):
        """Makes the kernel abort all requests to the file system. Until then, a process that has a file of the mount
        open cannot end."""
        if self.server.stdin.closed:
            return
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()
        self.server.stderr.close()


class Opened:
    """Observes whether any process opens a file. A call of stat() does not count, because it opens no file."""

    def __init__(self, path):
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if libc.inotify_add_watch(self.fd, os.fsencode(path), IN_OPEN) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")

    def was_opened(self):
        try:
            return bool(os.read(self.fd, 4096))
        except BlockingIOError:
            return False

    def close(self):
        os.close(self.fd)


def settle(pid, limit_s=LIMIT_S):
    """Waits until the first thread of a process sleeps, and has not run for half a second."""
    def ran():
        text = Path(f"/proc/{pid}/status").read_text()
        return text.partition("State:\t")[2][0], [line for line in text.splitlines() if "ctxt" in line]

    deadline = time.monotonic() + limit_s
    before, since = None, time.monotonic()
    while time.monotonic() < deadline:
        now = ran()
        if now != before or now[0] != "S":
            before, since = now, time.monotonic()
        elif time.monotonic() - since > 0.5:
            return
        time.sleep(0.02)
    raise RuntimeError(f"process {pid} does not come to rest")
