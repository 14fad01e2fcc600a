"""Observes a program from outside: the states of its threads, and its end. Signals only descendants of this process."""
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
QUIET_S = 1.0  # A program counts as hung if all its threads sleep for this time, and none of them runs meanwhile.
SPIN_S = 1.0   # A program counts as spinning if one thread uses this much CPU time, and no sleeping thread wakes up meanwhile.


def become_reaper():
    """Makes this process the parent of descendants whose parent ends. So this process can find and reap all its
    descendants."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def read_or_empty(path):
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def stat_fields(path):
    """Returns the fields of a stat file from field 3 (state) on, or an empty list if the task has ended."""
    return read_or_empty(path).rpartition(")")[2].split()


def descendants():
    """Returns the pids of all descendants of this process, including zombies."""
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
    """Returns True if a thread waits in vfork() (system call 58 of x86-64) until the child calls exec or ends.

    Such a thread is in state D, and may stay in this state for ever. In other calls a thread soon leaves state D by itself.
    """
    return read_or_empty(f"/proc/{pid}/task/{tid}/syscall").startswith("58 ")


def look(pids):
    """Returns {(pid, tid): Task} of all threads that are not zombies."""
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
    """Returns a text for people that says where each thread is. The text comes from gdb, or from /proc if gdb is not
    installed."""
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
    """Returns True if the process has got SIGKILL and has not ended yet. On a busy machine the process must wait for a
    processor before it can end."""
    for line in read_or_empty(Path(f"/proc/{pid}/status")).splitlines():
        name, _, value = line.partition(":")
        if name in ("SigPnd", "ShdPnd") and int(value, 16) >> (signal.SIGKILL - 1) & 1:
            return True
    return False


class Program:
    """One program and its descendants, in a session of their own. Their output goes into files in `folder`."""

    def __init__(self, argv, folder):
        self.stdout_path, self.stderr_path = Path(folder, "stdout"), Path(folder, "stderr")
        with open(self.stdout_path, "wb") as out, open(self.stderr_path, "wb") as err:
            self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)

    def stdout(self):
        return read_or_empty(self.stdout_path)

    def stderr(self):
        return read_or_empty(self.stderr_path)

    def status(self):
        """Returns the exit status as a shell gives it (128 + number of the signal that ended the program), or None while the program
        runs."""
        code = self.popen.poll()
        return 128 - code if code is not None and code < 0 else code

    def watch(self, limit_s):
        """Waits until the program ends, hangs or spins. Returns "ok", "error", "hang" or "spin". After `limit_s` seconds it
        returns "undecided"."""
        deadline = time.monotonic() + limit_s
        before, since, first = {}, time.monotonic(), {}
        while time.monotonic() < deadline:
            if self.status() is not None:
                return "ok" if self.status() == 0 else "error"
            tasks = look(descendants())
            asleep = {key: task for key, task in tasks.items() if task.state == "S"}
            # If a sleeping thread has run, or if a thread has begun or ended, the measurement starts again. `first`
            # then gets the CPU time that each thread has used so far.
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
        """Returns the exit status, or None if the program runs for longer than `limit_s` seconds."""
        try:
            self.popen.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        return self.status()

    def end(self):
        """Kills and reaps all descendants of this process.

        Returns True if a descendant was alive and had not got SIGKILL before this call.
        """
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
