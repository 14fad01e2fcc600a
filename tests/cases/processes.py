"""A program under observation, from outside: its state and its end. Only processes that were started here are signalled."""
import ctypes
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
LOOK_EVERY_S = 0.02
QUIET_S = 1.0  # all threads asleep and none of them scheduled once, for so long: a hang
SPIN_S = 1.0   # CPU time that one thread takes while all others are quiet: a spin


def become_reaper():
    """Orphans of what we start become our children, so that none is lost."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def read_or_empty(path):
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def stat_fields(path):
    """Fields of a stat file from field 3 (state) on; empty if the task is gone."""
    return read_or_empty(path).rpartition(")")[2].split()


def descendants():
    """Pids of everything below this process, zombies included."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = stat_fields(f"/proc/{entry}/stat")
            if fields:
                parents[int(entry)] = int(fields[1])
    found, frontier = [], [os.getpid()]
    while frontier:
        parent = frontier.pop()
        children = [pid for pid, ppid in parents.items() if ppid == parent]
        found += children
        frontier += children
    return found


@dataclass(frozen=True)
class Task:
    state: str
    switches: str
    ticks: int


def is_in_vfork(pid, tid):
    """State D otherwise is not a sleep to rely on. Here it lasts until the child execs or ends."""
    return read_or_empty(f"/proc/{pid}/task/{tid}/syscall").startswith("58 ")


def look(pids):
    """{(pid, tid): Task} of all threads that are not zombies."""
    tasks = {}
    for pid in pids:
        try:
            tids = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for tid in tids:
            fields = stat_fields(f"/proc/{pid}/task/{tid}/stat")
            if not fields or fields[0] == "Z":
                continue
            status = read_or_empty(f"/proc/{pid}/task/{tid}/status")
            switches = " ".join(line.split()[1] for line in status.splitlines() if "ctxt_switches" in line)
            state = "S" if fields[0] == "D" and is_in_vfork(pid, tid) else fields[0]
            tasks[pid, int(tid)] = Task(state, switches, int(fields[11]) + int(fields[12]))
    return tasks


def stacks(pids):
    """For people: where every thread is, from gdb if it is installed, else from the kernel."""
    text = []
    for pid in pids:
        text.append(f"--- process {pid}: {read_or_empty(f'/proc/{pid}/cmdline').replace(chr(0), ' ')}")
        if shutil.which("gdb"):
            done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "thread apply all bt"],
                                  capture_output=True, text=True, timeout=20, check=False)
            text += [line for line in done.stdout.splitlines() if line.startswith(("Thread", "#"))]
            continue
        for tid in os.listdir(f"/proc/{pid}/task") if os.path.isdir(f"/proc/{pid}/task") else []:
            text.append(f"thread {tid}: syscall {read_or_empty(f'/proc/{pid}/task/{tid}/syscall').strip()}, "
                        f"in {read_or_empty(f'/proc/{pid}/task/{tid}/wchan').strip()}")
    return "\n".join(text)


def is_being_killed(pid):
    """SIGKILL has been sent and has not taken effect yet. On a busy machine that takes until the process gets a processor."""
    for line in read_or_empty(Path(f"/proc/{pid}/status")).splitlines():
        name, _, value = line.partition(":")
        if name in ("SigPnd", "ShdPnd") and int(value, 16) >> (signal.SIGKILL - 1) & 1:
            return True
    return False


class Program:
    """One program and its descendants, in a session of their own. Output goes to files in `folder`."""

    def __init__(self, argv, folder):
        self.stdout_path, self.stderr_path = Path(folder, "stdout"), Path(folder, "stderr")
        with open(self.stdout_path, "wb") as out, open(self.stderr_path, "wb") as err:
            self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)

    def stdout(self):
        return read_or_empty(self.stdout_path)

    def stderr(self):
        return read_or_empty(self.stderr_path)

    def status(self):
        """The exit status as in a shell; None while it runs."""
        code = self.popen.poll()
        return 128 - code if code is not None and code < 0 else code

    def watch(self, limit_s):
        """ok, error, hang or spin; "undecided" after `limit_s`."""
        deadline = time.monotonic() + limit_s
        before, since, first = {}, time.monotonic(), {}
        while time.monotonic() < deadline:
            if self.status() is not None:
                return "ok" if self.status() == 0 else "error"
            tasks = look(descendants())
            asleep = {key: task for key, task in tasks.items() if task.state == "S"}
            # A process that is forked between the listing and the look is missing from `first`.
            if asleep != before or set(tasks) != set(first):
                before, since, first = asleep, time.monotonic(), tasks
            busy = [key for key in tasks if key not in asleep]
            if tasks and not busy and time.monotonic() - since >= QUIET_S:
                return "hang"
            spun = [key for key in busy if key in first and tasks[key].ticks - first[key].ticks >= SPIN_S * TICKS_A_SECOND]
            if spun:
                return "spin"
            time.sleep(LOOK_EVERY_S)
        return "undecided"

    def wait(self, limit_s):
        """The exit status, or None after `limit_s`."""
        try:
            self.popen.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        return self.status()

    def end(self):
        """Kills and reaps all that is left. True if a process was left."""
        left = False
        while True:
            alive = [pid for pid in descendants() if stat_fields(f"/proc/{pid}/stat")[:1] not in ([], ["Z"])]
            for pid in alive:
                left = left or not is_being_killed(pid)
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.popen.poll()
            try:
                while os.waitpid(-1, os.WNOHANG)[0] != 0:
                    pass
            except ChildProcessError:
                return left
            time.sleep(LOOK_EVERY_S)
