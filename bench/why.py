#!/usr/bin/python3
"""Measures how long `forksight why` takes to explain a tree of processes with many hung threads. Compares it with eu-stack,
which only prints the stacks of one process after the other. The commands take turns, so that all run under the same
conditions. The figures are medians.

If root runs this program, the examined processes belong to the user "nobody". If another user runs it, they belong to that
user, and the line "root" is missing. The lines are:
  root      root runs `why`. A child of `why` reads the examined processes. This child has given up its user. Another
            process of `why` opens files for the child
  user      the user of the examined processes runs `why`. A child of `why` reads the examined processes
  no child  the same, but fork() fails in `why`. So `why` reads in its own process
  eu-stack  root runs eu-stack, or the other user does

  why.py --forksight FORKSIGHT --program bench_why_tree [--processes 16] [--threads 16] [--rounds 9]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


IS_ROOT = os.geteuid() == 0
AS_USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if IS_ROOT else []


def children_of(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_asleep(pids):
    """Waits until every thread of these processes sleeps. bench_why_tree writes its byte shortly before its threads
    sleep."""
    def is_asleep(path):
        return path.read_text().rpartition(")")[2].split()[0] == "S"

    deadline = time.monotonic() + 60
    while not all(is_asleep(path) for pid in pids for path in Path(f"/proc/{pid}/task").glob("*/stat")):
        if time.monotonic() > deadline:
            sys.exit("why.py: the threads of the program do not sleep after 60 s")
        time.sleep(0.05)


def timed(commands, status):
    """Runs the commands one after the other. Returns the wall-clock seconds and the processor seconds of all of them, and
    the output of the last one. Ends the program if the exit status of a command is not `status`."""
    before, begin = os.times(), time.perf_counter()
    for command in commands:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if done.returncode != status:
            sys.exit(f"why.py: {' '.join(map(str, command))} ended with {done.returncode}")
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begin, used, done.stdout


def make_no_fork(folder):
    """Builds a library that makes fork() fail if it is preloaded."""
    source, library = Path(folder, "no_fork.c"), Path(folder, "no_fork.so")
    source.write_text("int fork(void) { return -1; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def measure(options, top, pids, no_fork):
    why = [options.forksight, "why", str(top), "--format", "json"]
    variants = [("user", [[*AS_USER, *why]], 1), ("no child", [[*AS_USER, "env", f"LD_PRELOAD={no_fork}", *why]], 1),
                ("eu-stack", [["eu-stack", "-p", str(pid)] for pid in pids], 0)]
    if IS_ROOT:
        variants.insert(0, ("root", [["setpriv", "--reuid=0", *why]], 1))
    taken = {name: [] for name, *_ in variants}
    for number in range(options.rounds):
        for name, commands, status in variants[::-1 if number % 2 == 1 else 1]:
            *figures, output = timed(commands, status)
            taken[name].append(figures)
            if name != "eu-stack":
                findings = json.loads(output)["findings"]
                if [finding["rule"] for finding in findings] != ["orphaned-mutex"]:
                    sys.exit(f"why.py: the rules of the findings are {[finding['rule'] for finding in findings]}")
    return {name: [statistics.median(column) for column in zip(*rounds)] for name, rounds in taken.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forksight", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if min(options.processes, options.threads) < 2:
        sys.exit("why.py: at least 2 processes and 2 threads are needed, or nothing hangs")
    program = subprocess.Popen([*AS_USER, options.program, str(options.processes), str(options.threads)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, start_new_session=True)
    try:
        if program.stdout.read(1) != b"x":
            sys.exit("why.py: the program did not start")
        pids = [program.pid, *children_of(program.pid)]
        wait_asleep(pids)
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            figures = measure(options, program.pid, pids, make_no_fork(folder))
    finally:
        program.kill()  # the children of the program end with it
        program.wait()
        program.stdout.close()
    load = os.getloadavg()[0]
    print(f"{options.processes} processes with {options.threads} threads each, {options.rounds} rounds, load average {load:.1f}")
    for name, (clock, processor) in figures.items():
        print(f"  {name:9} {clock * 1000:7.0f} ms by the clock, {processor * 1000:7.0f} ms of the processor")
    for name in [name for name in ("root", "user") if name in figures]:
        print(f"  {name}: {figures[name][0] / figures['eu-stack'][0]:.2f} of the time of eu-stack")
    for name, other in [("user", "no child"), ("root", "user")] if IS_ROOT else [("user", "no child")]:
        print(f"  {name} takes {(figures[name][0] - figures[other][0]) * 1000:.1f} ms more than {other}: "
              f"{(figures[name][0] / figures[other][0] - 1) * 100:.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
