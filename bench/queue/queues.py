#!/usr/bin/python3
"""Measures the queue of ipc/ and other transports in one run. All transports do the same work. One table shows the
results.

Other work on the machine disturbs the times, so only ratios within one run mean anything. In each round, each measure is
taken for all transports, one right after the other. The figures are medians of the rounds. The ratio to the bare ring is
the median of the rounds' ratios. The bare ring is a ring buffer that does not survive the death of a process (bare.cpp).
Transports that are not installed are left out, and a line under the table names them.

  queues.py --program build/release/bin/bench_queue [--rounds N] [--realtime] [--update docs/queue-performance.md]
"""
import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import growth
import peers
import roudi
import tables

FLOOR, OURS = "bare", "forksight"
# `arguments` are passed to bench_queue, which prints the seconds that a message takes. The table shows this time in
# `unit`.
Measure = namedtuple("Measure", "key text unit arguments bytes")
_TWO = ["--cpu-first", "0", "--cpu-second", "1"]
_STREAM = ["--measure", "stream", *_TWO, "--spin-us", "20"]


def _touched(key, text, size):
    return Measure(key, text, "GiB/s", [*_STREAM, "--bytes", str(size), "--touch", "1"], size)


MEASURES = [
    Measure("one", "round trip, one CPU", "us", ["--cpu-first", "0", "--cpu-second", "0"], 64),
    Measure("two", "two CPUs, sleeping", "us", _TWO, 64),
    Measure("spin", "two CPUs, spinning", "us", [*_TWO, "--spin-us", "ever"], 64),
    _touched("64k", "64 KiB touched", 64 << 10),
    _touched("1m", "1 MiB touched", 1 << 20),
    _touched("64m", "64 MiB touched", 64 << 20),
    Measure("handoff", "64 MiB hand-off", "us", [*_STREAM, "--bytes", str(64 << 20)], 64 << 20),
    Measure("small", "64 B one way", "1/s", [*_STREAM, "--depth", "64"], 64),
]


def output_of(command, timeout):
    """Returns what the command writes to stdout and stderr. If the command does not end in time, ends it and its children,
    and raises TimeoutExpired."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as program:
        try:
            return program.communicate(timeout=timeout)
        except BaseException:
            os.killpg(program.pid, signal.SIGKILL)
            raise


class Bench:
    def __init__(self, options):
        self.options, self.serial = options, 0
        self.kinds = {kind["name"]: kind for kind in json.loads(subprocess.check_output([options.program, "--list"]))}
        self.left_out = []

    def run(self, name, arguments, seconds=None, timeout=60):
        """Runs the program once. Returns what it prints, or None after an error message if it fails."""
        self.serial += 1
        of_peers = ["/usr/bin/python3", "-B", Path(__file__).with_name("peers.py")]
        command = of_peers if name in peers.NAMES else [self.options.program]
        realtime = ["chrt", "-f", "10"] if self.options.realtime else []
        command = [*realtime, *command, "--transport", name, "--name", f"forksight-bench-{os.getpid()}-{self.serial}",
                   "--seconds", str(seconds or self.options.seconds), *arguments]
        try:
            out, err = output_of(command, timeout)
        except subprocess.TimeoutExpired:
            print(f"queues.py: {name} {' '.join(arguments)}: did not end within {timeout} s", file=sys.stderr)
            return None
        for line in out.splitlines():
            if line.startswith("{"):
                return json.loads(line)
        why = (err.strip() or "ended without a figure").splitlines()[-1]
        print(f"queues.py: {name} {' '.join(arguments)}: {why}", file=sys.stderr)
        return None

    def transports(self, with_iceoryx):
        """Returns the names of the transports that can be measured here, in the order of the table."""
        wanted = [FLOOR, "bare, timed", OURS, "pipe", "AF_UNIX", "memfd by SCM_RIGHTS", "Boost message_queue", "Boost, with a pool",
                  "iceoryx, waitset", "iceoryx, polling", "ZeroMQ ipc"]
        found = [name for name in wanted if name in self.kinds and (with_iceoryx or not name.startswith("iceoryx"))]
        self.left_out = [name for name in wanted if name not in found]
        for name in peers.NAMES:
            module = "torch.multiprocessing" if name.startswith("torch") else "numpy"
            has = subprocess.run(["/usr/bin/python3", "-c", f"import {module}"], stderr=subprocess.DEVNULL, check=False)
            (found if has.returncode == 0 else self.left_out).append(name)
        chosen = re.split(",(?! )", self.options.transports) if self.options.transports else None
        return [name for name in found if chosen is None or name in chosen or name == FLOOR]

    def applies(self, name, measure, number):
        spins = self.kinds.get(name, {}).get("spins", False)
        if measure.key == "spin":
            return spins
        if name == "iceoryx, polling" and measure.key in ("one", "two"):
            # This transport polls. In the measure "one", two processes that poll would share one CPU, and be slow. The
            # measure "two" is for processes that sleep.
            return False
        # The slow queues of CPython and torch are measured in few rounds.
        return number < self.options.slow_rounds if name in peers.NAMES else True

    def measure(self, names, measures):
        """Returns {(name, key): [seconds for a message in each round, or None if the program failed]}."""
        taken = {}
        for number in range(self.options.rounds):
            for measure in measures:
                for name in names if number % 2 == 0 else reversed(names):
                    if not self.applies(name, measure, number):
                        continue
                    got = self.run(name, measure.arguments)
                    taken.setdefault((name, measure.key), []).append(got["value"] if got else None)
            self.options.progress(f"round {number + 1} of {self.options.rounds}")
        return taken


def ratio(taken, name, key, against=FLOOR):
    """Returns the median of the rounds' ratios of time, or None if no round has both times."""
    pairs = [(mine, other) for mine, other in zip(taken.get((name, key), []), taken.get((against, key), [])) if mine and other]
    return statistics.median(mine / other for mine, other in pairs) if pairs else None


def gates(taken):
    """Returns (what, figure, limit, whether the limit is met) for each gate that was measured. A gate is a limit for a figure."""
    rows = []

    def add(what, figure, limit, unit, at_most=True):
        if figure is not None:
            rows.append((what, f"{figure:.3g}{unit}", f"{'at most' if at_most else 'at least'} {limit:g}{unit}",
                         figure <= limit if at_most else figure >= limit))

    add("round trip on one CPU, times the bare ring", ratio(taken, OURS, "one"), 1.2, "")
    add("round trip spinning on two CPUs, times the bare ring", ratio(taken, OURS, "spin"), 2, "")
    for key, text in (("64k", "64 KiB"), ("1m", "1 MiB"), ("64m", "64 MiB")):
        slower = ratio(taken, OURS, key)
        add(f"{text} touched, part of the bare ring's throughput", 1 / slower if slower else None, 0.9, "", at_most=False)
    handed = [value for value in taken.get((OURS, "handoff"), []) if value]
    add("hand-off of 64 MiB", statistics.median(handed) * 1e6 if handed else None, 5, " us")
    for name in ("torch SimpleQueue", "torch Queue"):
        faster = ratio(taken, name, "small", OURS)
        add(f"64 B one way, times {name}", faster, 20, "", at_most=False)
    return rows


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True, help="bench_queue")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--slow-rounds", type=int, default=3, help="in how many rounds to measure queues of CPython and torch")
    parser.add_argument("--seconds", type=float, default=0.3, help="how many seconds each measure of a transport takes in a round")
    parser.add_argument("--transports", help="the transports to measure, separated by commas without blanks; the bare ring is always measured")
    keys = ",".join(measure.key for measure in MEASURES)
    parser.add_argument("--measures", help=f"the measures to take, separated by commas; default: {keys}")
    parser.add_argument("--no-growth", action="store_true", help="do not measure how participants and slots change the time")
    parser.add_argument("--realtime", action="store_true", help="run under chrt -f 10, so that other work does not interrupt; needs root")
    parser.add_argument("--update", type=Path, help="the page in which the new tables replace the old ones")
    options = parser.parse_args()
    options.progress = lambda text: print(f"queues.py: {text}", file=sys.stderr, flush=True)
    if not options.program.exists():
        parser.error(f"{options.program} does not exist; build the target bench_queue first")
    return options


def main():
    options = parse()
    bench = Bench(options)
    measures = [measure for measure in MEASURES if not options.measures or measure.key in options.measures.split(",")]
    with roudi.running() as with_iceoryx:
        names = bench.transports(with_iceoryx)
        taken = bench.measure(names, measures)
    parts = {"table": tables.of_transports(names, measures, taken, ratio), "gates": tables.of_gates(gates(taken))}
    if not options.no_growth:
        parts["growth"] = growth.measure(bench)
    if bench.left_out:
        parts["table"] += f"\nNot installed, and left out: {', '.join(bench.left_out)}.\n"
    print("\n".join(parts.values()))
    if options.update:
        tables.update(options.update, parts)
    if any(not taken.get((name, measure.key), [None])[0] for name in (FLOOR, OURS) for measure in measures):
        sys.exit("queues.py: the bare ring or the queue could not be measured")


if __name__ == "__main__":
    main()
