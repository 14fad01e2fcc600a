"""Plays a scenario alone, or under `forksight run`. Asks `why` and `core` about a play. Ends all processes of each play."""
import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
HARD_LIMIT_S = 60
SETTLE_S = 20
HANG_AFTER_S = 0.5
FINDING_TAKES_S = 2.5                  # if something hangs: on an idle machine a finding comes within this time after HANG_AFTER_S
NOTHING_TAKES_S = 1.2                  # if nothing hangs: after this time and HANG_AFTER_S no false finding comes any more
GROWS_FOR_S = 0.5                      # after its first finding a report may get more findings for this time
LOOK_EVERY_S = 0.03
SETTLED_LOOKS, SETTLED_EVERY_S = 4, 0.015  # this many looks in a row must find each thread asleep in its final step
HEAD, SLOT = 32, 32
CORE_PATTERN, CORE_USES_PID = Path("/proc/sys/kernel/core_pattern"), Path("/proc/sys/kernel/core_uses_pid")
BEFORE, IN_STEP, ENDED = 1, 2, 3


class Disagrees(Exception):
    """The program did not do what the oracle says. The player or the oracle is wrong, so the findings are not judged."""


def become_reaper():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def thread_names(scenario):
    """Returns the names of the threads, in the order in which the player numbers them."""
    names = ["main"]
    for step in scenario.steps:
        for name in (step.thread, *(step.arguments[:1] if step.operation in ("create", "fork") else ())):
            if name not in names:
                names.append(name)
    return names


def task_state(pid, tid, groups):
    """Returns the state of the task; "" if the task has ended. The kernel may have given its number to a new
    task. So a task that is not in one of these process groups counts as ended."""
    try:
        state, _, its_group = Path(f"/proc/{pid}/task/{tid}/stat").read_text().rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return ""
    return state if int(its_group) in groups else ""


class Performance:
    """One play of a scenario, from its start to the end of its last process."""

    def __init__(self, scenario, truth, player, prefix=()):
        self.scenario, self.truth = scenario, truth
        self.names = thread_names(scenario)
        self.leaders = [step.arguments[0] for step in scenario.steps if step.operation == "fork" and step.arguments[1:] in (("daemon",), ("forkpty",))]
        self.folder = Path(tempfile.mkdtemp(prefix="truth-"))
        self.control = self.folder / "control"
        (self.folder / "scenario").write_text(str(scenario))
        with open(self.folder / "stdout", "wb") as out, open(self.folder / "stderr", "wb") as errors:
            prefix = [word.replace("FOLDER", str(self.folder)) for word in prefix]
            self.process = subprocess.Popen(["timeout", "-s", "KILL", str(HARD_LIMIT_S), *prefix, str(player), str(self.folder / "scenario"),
                                             str(self.control)], stdin=subprocess.PIPE, stdout=out, stderr=errors, cwd=self.folder,
                                            start_new_session=True)  # `why` examines a whole session: it must not examine other plays

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def end(self):
        """Kills the play. `timeout` leads a process group, which contains all processes of the play except those that made their own session."""
        pids, groups = self.pids(), self.groups(self.slots())
        self.end_sessions()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()
        self.process.stdin.close()
        deadline = time.monotonic() + 5
        for pid in pids:
            self.reap(pid, groups, deadline)
        self.reap_group(deadline)

    def pids(self):
        return {slot["pid"] for slot in self.slots().values() if slot["pid"] > 0}

    def groups(self, slots):
        """Returns the process groups of the play: the first group, and one group for each session that a process of the
        play made. A group has the pid of its leader."""
        return {self.process.pid, *(slots[name]["pid"] for name in self.leaders if name in slots)}

    def end_sessions(self):
        for name in self.leaders:
            leader = self.slots().get(name, {"pid": 0})["pid"]
            if leader > 0 and task_state(leader, leader, {leader}) not in ("", "Z"):
                os.killpg(leader, signal.SIGKILL)

    def state_of(self, slot):
        return task_state(slot["pid"], slot["tid"], self.groups(self.slots()))

    def reap(self, pid, groups, deadline):
        """Reaps the process, or waits until it is gone. The process becomes our child when its parent ends. Until then
        only the parent can reap the process."""
        while time.monotonic() < deadline:
            try:
                if os.waitpid(pid, os.WNOHANG)[0] == pid:
                    return
            except ChildProcessError:
                if task_state(pid, pid, groups) == "":
                    return
            time.sleep(0.002)

    def reap_group(self, deadline):
        """Reaps the helper processes of `run`, which became our children when `run` was killed. Thousands of zombies would use
        up all pids."""
        try:
            while time.monotonic() < deadline:
                if os.waitpid(-self.process.pid, os.WNOHANG)[0] == 0:
                    time.sleep(0.002)
        except ChildProcessError:
            return

    def slots(self):
        """Maps the name of each thread to the fields of its slot in the control file."""
        try:
            data = self.control.read_bytes()
        except OSError:
            return {}
        found = {}
        for index, name in enumerate(self.names):
            raw = data[HEAD + index * SLOT:HEAD + (index + 1) * SLOT]
            if len(raw) == SLOT:
                pid, tid, step, phase, process, _, _, result = struct.unpack("<8i", raw)
                found[name] = {"pid": pid, "tid": tid, "step": step, "phase": phase, "process": process, "result": result}
        return found

    def objects_at(self):
        """Returns (address of the private objects, address of the shared objects, size of one object)."""
        _, _, private, shared, size = struct.unpack("<IIQQQ", self.control.read_bytes()[:HEAD])
        return private, shared, size

    def is_settled(self):
        """True if each thread sleeps or is stopped in the step that the oracle computed, or has ended if the oracle says so."""
        slots = self.slots()
        for thread, wait in self.truth.waits.items():
            slot = slots.get(thread)
            if slot is None or wait.step >= 0 and (slot["phase"] != IN_STEP or slot["step"] != wait.step):
                return False
            if task_state(slot["pid"], slot["tid"], self.groups(slots)) not in ("S", "T"):
                return False
        for process in self.truth.ended:
            slot = slots.get(process)
            if slot is None or slot["pid"] == 0 or task_state(slot["pid"], slot["pid"], self.groups(slots)) not in ("", "Z"):
                return False
        return all(slots[key[1]]["phase"] == ENDED for key, value in self.truth.state.items()
                   if key[0] == "t" and value[3] == "ended" and value[0] not in self.truth.ended)

    def settle(self):
        deadline = time.monotonic() + SETTLE_S
        looks = 0
        while looks < SETTLED_LOOKS:
            if time.monotonic() > deadline:
                raise Disagrees(self.describe())
            looks = looks + 1 if self.is_settled() else 0
            time.sleep(SETTLED_EVERY_S)

    def describe(self):
        lines = [f"{name}: {slot} {self.state_of(slot)}" for name, slot in self.slots().items()]
        return "\n".join([*lines, (self.folder / "stderr").read_text(errors="replace")[-500:]])

    def await_end(self):
        try:
            status = self.process.wait(SETTLE_S)
        except subprocess.TimeoutExpired:
            raise Disagrees("does not end\n" + self.describe()) from None
        self.settle()  # children may end after the first process
        return 128 - status if status < 0 else status

    def output(self):
        return (self.folder / "stdout").read_text(errors="replace")


def read_report(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def slowness(most):
    """Returns how many times longer a play takes than on an idle machine, estimated from the load; at most `most`."""
    return min(max(os.getloadavg()[0] / (2 * (os.cpu_count() or 1)), 1), most)


def await_report(path, hangs):
    """Waits until no more findings are expected, and returns the report; None if there is none."""
    window = HANG_AFTER_S + (FINDING_TAKES_S * slowness(4) if hangs else NOTHING_TAKES_S * slowness(2))
    begin = time.monotonic()
    found_at = None
    while True:
        now = time.monotonic()
        report = read_report(path)
        if report and report["findings"] and found_at is None:
            found_at = now
        if found_at is not None and now - found_at > GROWS_FOR_S:
            return report
        if found_at is None and now - begin > window:
            return report
        time.sleep(LOOK_EVERY_S)


def result_of(performance, report, status):
    return {"report": report, "status": status, "output": performance.output(), "slots": performance.slots(),
            "scenario": performance.scenario, "at": performance.objects_at()}


def play_bare(scenario, truth, tools, modes=()):
    """Returns (what the scenario does alone, {mode: the report of `why` or `core` about it}). A scenario that ends by itself
    has no such reports. `core` is asked last, because making a core may end the processes."""
    with Performance(scenario, truth, tools.player) as performance:
        if truth.is_over():
            return result_of(performance, None, performance.await_end()), {}
        performance.settle()
        alone = result_of(performance, None, None)
        return alone, {mode: LOOKS[mode](performance, tools.forksight) for mode in sorted(modes, reverse=True) if mode in LOOKS}


def play_run(scenario, truth, tools):
    prefix = (str(tools.forksight), "run", "--format", "json", "--report", "FOLDER/report.json", "--out", "FOLDER/out", "--hang-after",
              str(HANG_AFTER_S), "--on-hang", "report", "--omp=observe", "--")
    with Performance(scenario, truth, tools.player, prefix) as performance:
        report = performance.folder / "report.json"
        if truth.is_over():
            status = performance.await_end()
            return result_of(performance, read_report(report), status)
        performance.settle()
        found = await_report(report, not truth.is_healthy())
        status = performance.process.poll()
        return result_of(performance, found, status)


def ask(command, folder):
    asked = subprocess.run(["timeout", "-s", "KILL", "30", *command], capture_output=True, cwd=folder, stdin=subprocess.DEVNULL, check=False)
    try:
        return json.loads(asked.stdout)
    except ValueError:
        return None


def ask_why(performance, forksight):
    report = ask([str(forksight), "why", str(performance.slots()["main"]["pid"]), "--format", "json"], performance.folder)
    return result_of(performance, report, performance.process.poll())


def leaves_core_files():
    """True if the kernel writes a core into the folder of its process, with the name `core`. Otherwise gdb makes the cores."""
    return CORE_PATTERN.read_text().strip() == "core" and CORE_USES_PID.read_text().strip() == "0"


def core_by_kernel(performance, pid):
    """Makes a core by SIGABRT. This is quick, but it ends the process. The caller has stopped all processes, so the
    other processes do not notice the end of this process."""
    path = performance.folder / "core"
    resource.prlimit(pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    os.kill(pid, signal.SIGABRT)
    with contextlib.suppress(ProcessLookupError):  # the process may have ended, because a process that it waited for has ended
        os.kill(pid, signal.SIGCONT)
    deadline = time.monotonic() + SETTLE_S
    while task_state(pid, pid, performance.groups(performance.slots())) not in ("", "Z") and time.monotonic() < deadline:
        time.sleep(0.005)
    return path.rename(performance.folder / f"core.{pid}") if path.exists() else path


def core_by_gdb(performance, pid):
    subprocess.run(["timeout", "-s", "KILL", "30", "gcore", "-o", str(performance.folder / "core"), str(pid)], capture_output=True,
                   stdin=subprocess.DEVNULL, check=False)
    return performance.folder / f"core.{pid}"


def cores_of(performance, pids):
    """Makes a core of each process in turn. If the kernel makes the cores, it ends the processes."""
    if not leaves_core_files():
        return [core_by_gdb(performance, pid) for pid in pids]
    live = [slot["pid"] for slot in performance.slots().values() if slot["pid"] > 0 and performance.state_of(slot) not in ("", "Z")]
    for pid in set(live):
        os.kill(pid, signal.SIGSTOP)
    return [core_by_kernel(performance, pid) for pid in pids]


def youngest_first(truth, processes):
    """Sorts each child before its parent. If the parent ended first, the child's core would show another parent."""
    def age(process):
        parent = truth.state["p", process][0]
        return 1 + age(parent) if parent else 0

    return sorted(processes, key=age, reverse=True)


def ask_core(performance, forksight):
    """Asks `core` about each process that hangs and is not a victim. In a healthy scenario, asks about each process that
    waits."""
    result = result_of(performance, None, performance.process.poll())
    truth, slots, findings = performance.truth, performance.slots(), []
    processes = sorted({wait.process for wait in truth.waits.values() if truth.is_healthy() or wait.cause not in ("", "victim")})
    for path in cores_of(performance, [slots[process]["pid"] for process in youngest_first(truth, processes)]):
        report = ask([str(forksight), "core", str(path), "--format", "json"], performance.folder)
        findings += report["findings"] if report else []
    return result | {"report": {"findings": findings, "processes": []}}


LOOKS = {"why": ask_why, "core": ask_core}
