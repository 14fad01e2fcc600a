"""Shared code of the tests of `forksight why`. Starts the command, and the programs that a test examines.

Signals only these programs and their descendants, by pid.
"""
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "cases"))
import processes  # noqa: E402

LIMIT_S = 40
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
PTRACE_SEIZE = 0x4206
libc = ctypes.CDLL(None, use_errno=True)


def forbid_ptrace():
    """Runs in a new process before exec. From then on, a call of ptrace() kills the process."""
    class Rule(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.POINTER(Rule))]

    # Load the number of the call. If it is 101 (ptrace on x86-64), SIGSYS kills the process.
    rules = (Rule * 4)(Rule(0x20, 0, 0, 0), Rule(0x15, 0, 1, 101), Rule(0x06, 0, 0, 0x80000000), Rule(0x06, 0, 0, 0x7FFF0000))
    program = Program(4, rules)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)) != 0:
        os._exit(99)
    # If forksight is built with AddressSanitizer, it contains LeakSanitizer, which also calls ptrace(). So switch
    # LeakSanitizer off.
    os.environ["ASAN_OPTIONS"] = "detect_leaks=0"


class Program:
    """A program in a session of its own. Its standard input is a pipe. The constructor returns when the program has written its
    first byte."""

    def __init__(self, argv, **more):
        self.popen = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, **more)
        if self.popen.stdout.read(1) != b"x":
            self.end()
            raise RuntimeError(f"{argv} did not start")

    @property
    def pid(self):
        return self.popen.pid

    def go_on(self):
        self.popen.stdin.write(b"x")
        self.popen.stdin.flush()

    def wait_quiet(self):
        """Waits until no thread of the program and its descendants has run for 0.3 s."""
        deadline = time.monotonic() + LIMIT_S
        before, since = None, time.monotonic()
        while time.monotonic() < deadline:
            now = processes.look(tree_of(self.pid))
            if now != before or any(task.state != "S" for task in now.values()):
                before, since = now, time.monotonic()
            elif time.monotonic() - since > 0.3:
                return
            time.sleep(0.02)
        raise RuntimeError("the threads of the program do not come to rest")

    def kill(self):
        for pid in reversed(tree_of(self.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def close(self):
        self.popen.wait(LIMIT_S)
        self.popen.stdin.close()
        self.popen.stdout.close()

    def end(self):
        end_all([self])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def end_all(programs):
    for program in programs:
        program.kill()
    for program in programs:
        program.close()
    reap_orphans()


def tree_of(pid):
    """Returns `pid`, and the pids of all descendants of the process `pid`."""
    parents = {}
    for entry in os.listdir("/proc"):
        fields = processes.stat_fields(f"/proc/{entry}/stat") if entry.isdigit() else []
        if fields:
            parents[int(entry)] = int(fields[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def reap_orphans():
    """Waits until all children have ended. This process is a subreaper, so the children of killed processes become its
    children."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.005)
        except ChildProcessError:
            return
    raise RuntimeError("a process that was killed does not end")


class Command:
    def __init__(self, forksight):
        self.path = forksight

    def start(self, *words, **more):
        return subprocess.Popen([self.path, "why", *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **more)

    def run(self, *words, before=(), path=None, **more):
        return subprocess.run([*before, path or self.path, "why", *map(str, words)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)

    def report(self, *words, **more):
        done = self.run(*words, "--format", "json", **more)
        try:
            return json.loads(done.stdout), done.returncode
        except ValueError as error:
            raise AssertionError(f"no report (status {done.returncode}): {error}: {done.stderr}") from error

    def copy_for_everybody(self):
        """Copies the command into a folder that any user may read. Returns the folder, and the path of the copy."""
        folder = tempfile.TemporaryDirectory(prefix="forksight-why-")
        os.chmod(folder.name, 0o755)
        path = Path(folder.name, "forksight")
        shutil.copy(self.path, path)
        path.chmod(0o755)
        return folder, path


def rules(report):
    return sorted(finding["rule"] for finding in report["findings"])
