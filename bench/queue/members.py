#!/usr/bin/python3
"""Measures how three figures depend on the number of members of a queue: the time of calls that find nothing, the processor
time of processes that wait, and the time until the others notice a death.

  members.py --program build/release/bin/bench_queue_members [--update docs/queue-performance.md]
"""
import argparse
import json
import subprocess
from pathlib import Path

import tables

HANDLES, PROCESSES = [1, 16, 64, 250], [1, 16, 64, 200]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--update", type=Path)
    options = parser.parse_args()

    def run(measure, count):
        return json.loads(subprocess.check_output([options.program, measure, str(count)], timeout=120))

    rows = []
    for count in HANDLES:
        got = run("misses", count)
        rows.append([str(count), f"{got['receive_ns']:.0f} ns", f"{got['acquire_ns']:.0f} ns"])
    text = tables.grid(["handles attached", "`receive(now)` of an empty queue", "`acquire(now)` without a free buffer"], rows)
    rows = []
    for count in PROCESSES:
        died = run("death", count)
        rows.append([str(count), f"{run('idle', count)['percent']:.2f} %", f"{died['median_ms']:.0f} ms",
                     f"{died['longest_ms']:.0f} ms"])
    text += "\n" + tables.grid(["processes that wait", "of one processor, all together", "until a death is noticed, median",
                                "longest of nine"], rows)
    print(text)
    if options.update:
        tables.update(options.update, {"members": text})


if __name__ == "__main__":
    main()
