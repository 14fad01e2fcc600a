"""Compares the reports about one hang from three sources.

  sources_agree.py FORKSIGHT PROGRAM START CASES

The sources are the trace that the shim wrote, the living processes, and a core of the child. All three reports must contain
the same facts, except for facts that a source does not have.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_S = 40


def stack_of(finding, program):
    """Returns the frames of the stack that belong to the program."""
    return [(frame["function"], os.path.basename(frame["file"]), frame["line"]) for frame in finding["stack"]
            if os.path.basename(frame["module"] or "") == program]


def story(report, program):
    """Returns the facts of a report that the test compares."""
    findings = report["findings"]
    assert len(findings) == 1, [finding["summary"] for finding in findings]
    finding = findings[0]
    holder = finding["culprit"]["holder"]
    return {
        "rule": finding["rule"],
        "hang": finding.get("hang", finding.get("harm")),
        "cause": finding["cause"],
        "outcome": finding["outcome"],
        "pid": finding["process"]["pid"],
        "tid": finding["thread"]["tid"],
        "lock": finding["culprit"]["name"],
        "address": finding["culprit"]["address"],
        "holder": (holder["pid"], holder["tid"]),
        "start": (holder["start_routine"], os.path.basename(holder["library"])),
        "holder_name": holder["name"],
        "stack": stack_of(finding, program),
        "fork": (finding["fork"]["pid"], finding["fork"]["child"]),
        # The trace counts every held lock. The other sources count only locks for which a thread waits.
        "forks": [tuple(fork[key] for key in ("pid", "child", "tid", "threads_before", "lost_threads", "error")) for fork in report["forks"]],
        "held": report["forks"][0]["held_locks"] > 0,
        "lineage": [(process["pid"], process["ppid"]) for process in report["processes"] if process["pid"] == finding["process"]["pid"]],
    }


def explain(argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise AssertionError(f"{argv}: exit status {done.returncode}: {done.stderr}") from None


def children(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def wait_for_hang(runner, folder):
    """Waits until two looks find the child at the same place in a futex wait. Returns the pids of parent and child."""
    deadline = time.monotonic() + LIMIT_S / 2
    before = ""
    while time.monotonic() < deadline and runner.poll() is None:
        for parent in children(runner.pid):
            for child in children(parent):
                call = Path(f"/proc/{child}/syscall").read_text()
                if call.startswith("202 ") and call == before and list(Path(folder, "out").glob("**/*.fstrace")):
                    return parent, child
                before = call
        time.sleep(0.1)
    raise AssertionError("the program did not hang")


def main():
    forksight, program, start, cases = sys.argv[1:5]
    if not shutil.which("gcore"):
        print("gcore (package gdb) is not installed, so no core can be made")
        return 1
    sys.path.insert(0, cases)
    import processes
    processes.become_reaper()
    with tempfile.TemporaryDirectory(prefix="forksight-agree-") as folder:
        out = str(Path(folder, "out"))
        runner = processes.Program([forksight, "run", "--omp=observe", "--on-hang", "report", "--out", out, "--",
                                     "setsid", program], folder)  # the program leads a process group, as in a shell
        try:
            parent, child = wait_for_hang(runner.popen, folder)
            live = explain([forksight, "why", str(parent), "--format", "json"])
            subprocess.run(["gcore", "-o", str(Path(folder, "core")), str(child)], capture_output=True, timeout=LIMIT_S, check=False)
            core = explain([forksight, "core", str(Path(folder, f"core.{child}")), "--format", "json"])
        finally:
            runner.end()
        trace = explain([forksight, "report", out, "--format", "json"])
    name = os.path.basename(program)
    stories = {"trace": story(trace, name), "why": story(live, name), "core": story(core, name)}
    assert stories["trace"]["pid"] == child and stories["trace"]["stack"], stories["trace"]
    # A core does not contain the names of threads, because only the kernel has these names. The report from the core
    # does not have the start routine either: under the shim, the routine that the core contains is a function of the
    # shim.
    assert stories["core"].pop("holder_name") == ""
    assert stories["core"].pop("start") == ("", "")
    assert stories["why"].pop("start") == stories["trace"].pop("start") == (start, name)
    assert stories["why"].pop("holder_name") == stories["trace"].pop("holder_name") != ""
    differences = [f"{key}: {source} has {stories[source][key]}, the trace {value}"
                   for key, value in stories["trace"].items() for source in ("why", "core") if stories[source][key] != value]
    print("\n".join(differences))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
