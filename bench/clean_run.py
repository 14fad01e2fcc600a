#!/usr/bin/python3
"""Measures how much wall-clock time `forksight run` adds to a program in which it finds nothing.

Each round runs the program bare and under `run`. Every other round uses the opposite order. The added time is the
median of the differences of the rounds. The added time is given in milliseconds and not as a ratio, because some of the
programs end after a few milliseconds.

For programs that idle, clean_run.py measures the processor time of `run` itself, as a share of the wall-clock time.

  clean_run.py --forksight FORKSIGHT [--rounds 15] [--idle-seconds 10] [--check]
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

AT_MOST_MS = 50

PERL = """
use threads;
use POSIX ();
my @threads = map { threads->create(sub { my $sum = 0; $sum += $_ for 1 .. 1000; 1 }) } 1 .. 4;
for (1 .. 5) { my $child = fork; POSIX::_exit(0) if !$child; waitpid $child, 0 }
$_->join for @threads;
for (1 .. 5) { my $child = fork; POSIX::_exit(0) if !$child; waitpid $child, 0 }
"""
NODE = """
const { spawnSync } = require('child_process');
const { Worker } = require('worker_threads');
for (let i = 0; i < 5; i++) spawnSync('true');
new Worker('1 + 1', { eval: true });
"""
PROGRAMS = [
    ("`true`", ["true"]),
    ("perl, 4 threads and 10 forks", ["perl", "-e", PERL]),
    ("node, a worker and 5 commands", ["node", "-e", NODE]),
]

POOL = """
import multiprocessing, sys
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        pool.map(abs, range(9))
        print("idle", flush=True)
        sys.stdin.readline()
"""
EXECUTOR = """
import concurrent.futures, multiprocessing, sys
if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        list(pool.map(abs, range(9)))
        print("idle", flush=True)
        sys.stdin.readline()
"""
IDLE = [
    ("a shell that reads", ["sh", "-c", "echo idle; read line"]),
    ("Python's `multiprocessing.Pool(3)`", [sys.executable, "-c", POOL]),
    ("Python's `ProcessPoolExecutor(2)`", [sys.executable, "-c", EXECUTOR]),
]


def timed(command):
    """Returns the wall-clock milliseconds of the command. Ends clean_run.py if the command fails, or if `run` found something."""
    begin = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False)
    taken = (time.perf_counter() - begin) * 1000
    if done.returncode != 0 or ("forksight" in command[0] and "nothing found" not in done.stderr):
        sys.exit(f"clean_run.py: {' '.join(command[:6])} ended with {done.returncode}:\n{done.stderr}")
    return taken


def measure(forksight, command, rounds):
    """Returns three medians in milliseconds: of the time bare, of the time under `run`, and of the difference."""
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        variants = [command, [forksight, "run", "--out", folder, "--", *command]]
        for variant in variants:
            timed(variant)
        for number in range(rounds):
            turns = [timed(variant) for variant in (variants if number % 2 == 0 else reversed(variants))]
            bare, run = turns if number % 2 == 0 else reversed(turns)
            taken.append((bare, run, run - bare))
    return [statistics.median(column) for column in zip(*taken)]


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_idle(forksight, command, seconds):
    """Returns the share of one processor that `run` itself takes, after the program has idled for two seconds."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.Popen([forksight, "run", "-q", "--out", folder, "--", *command], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
        if run.stdout.readline() != b"idle\n":
            sys.exit(f"clean_run.py: {command[0]} did not start")
        time.sleep(2)
        before, begin = processor_seconds(run.pid), time.monotonic()
        time.sleep(seconds)
        share = (processor_seconds(run.pid) - before) / (time.monotonic() - begin)
        run.communicate(b"end\n", timeout=60)
    return share


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forksight", required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--idle-seconds", type=float, default=10)
    parser.add_argument("--check", action="store_true", help=f"exit with 1 if `run` adds more than {AT_MOST_MS} ms to a program")
    options = parser.parse_args()
    print(f"{options.rounds} rounds, load average {os.getloadavg()[0]:.1f}\n")
    print("| a program in which nothing is found | bare | under `run` | added |\n|---|---|---|---|")
    over = False
    for text, command in PROGRAMS:
        if shutil.which(command[0]) is None:
            print(f"clean_run.py: {command[0]} is not installed", file=sys.stderr)
            continue
        bare, run, added = measure(options.forksight, command, options.rounds)
        print(f"| {text} | {bare:.0f} ms | {run:.0f} ms | {added:.0f} ms |", flush=True)
        over = over or added > AT_MOST_MS
    print("\n| a program that idles | share of one processor that `run` takes |\n|---|---|")
    for text, command in IDLE:
        print(f"| {text} | {100 * measure_idle(options.forksight, command, options.idle_seconds):.1f} % |", flush=True)
    if over:
        print(f"over: `run` adds more than {AT_MOST_MS} ms to a program")
    return 1 if over and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
