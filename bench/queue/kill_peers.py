#!/usr/bin/python3
"""Kills a producer or a consumer of a queue that is in use, at a random instant, and checks whether the others go on.

In each trial, two producers and two consumers move messages of 64 bytes. When each of them has moved some messages, the
first producer or the first consumer gets SIGKILL within 20 ms. If each other process then moves two more messages
within two seconds, the trial has succeeded. Otherwise the trial counts as hung. The daemon of iceoryx takes up to 1.5 s
to notice a death. The daemon is started anew for each trial. The library cpp-ipc is not measured, because this library
is not in Debian.

  kill_peers.py --program build/release/bin/bench_queue [--trials N] [--update docs/queue-performance.md]
"""
import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import peers
import roudi
import tables

WHOM = ("consumer", "producer")
# The name in the table, the transport, and further options of the program.
QUEUES = [("forksight, at most once", "forksight", []), ("forksight, at least once", "forksight", ["--redeliver", "1"]),
          ("Boost message_queue", "Boost message_queue", []), ("Boost, with a pool", "Boost, with a pool", []),
          ("CPython SimpleQueue", "CPython SimpleQueue", []), ("CPython Queue", "CPython Queue", []),
          ("iceoryx, waitset", "iceoryx, waitset", [])]


def trial(options, transport, more, victim, seed):
    """Runs one trial. Returns {"hung": ..., "ms": ...}, or None if the processes did not begin."""
    program = (["/usr/bin/python3", "-B", Path(__file__).with_name("peers.py")] if transport in peers.NAMES
               else [options.program])
    command = [*program, "--transport", transport, "--measure", "crowd", "--producers", "2", "--consumers", "2",
               "--depth", "16", "--name", f"forksight-kill-{os.getpid()}-{victim}-{seed}", "--kill", victim,
               "--seed", str(seed), *more]
    daemon = roudi.running([(128, 1024)]) if transport.startswith("iceoryx") else contextlib.nullcontext()
    with daemon:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            return json.loads(line)
    print(f"kill_peers.py: {transport}: {(done.stderr.strip() or 'no verdict').splitlines()[-1]}", file=sys.stderr)
    return None


def row(options, name, transport, more):
    cells = [name]
    for victim in WHOM:
        taken = [trial(options, transport, more, victim, seed) for seed in range(1, options.trials + 1)]
        ended = [one for one in taken if one]
        recovered = [one["ms"] for one in ended if not one["hung"]]
        cells += [f"{len(ended) - len(recovered)} of {len(ended)}",
                  f"{tables.three_digits(max(recovered))} ms" if recovered else ""]
        print(f"kill_peers.py: {name}, {victim}: {cells[-2]}", file=sys.stderr, flush=True)
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True, help="bench_queue")
    parser.add_argument("--trials", type=int, default=50, help="how many trials of each queue and each kind of victim")
    parser.add_argument("--queues", help="the transports to measure, separated by commas without blanks; default: all")
    parser.add_argument("--update", type=Path, help="the page in which the new table replaces the old one")
    options = parser.parse_args()
    built = {kind["name"] for kind in json.loads(subprocess.check_output([options.program, "--list"]))} | set(peers.NAMES)
    wanted = re.split(",(?! )", options.queues) if options.queues else [transport for _, transport, _ in QUEUES]
    rows = [row(options, name, transport, more) for name, transport, more in QUEUES
            if transport in built and transport in wanted]
    table = tables.grid(["", "consumer killed: hangs", "else longest", "producer killed: hangs", "else longest"], rows)
    print(table)
    if options.update:
        tables.update(options.update, {"kills": table})
    if any(name.startswith("forksight") and cell.endswith(f" of {options.trials}") and not cell.startswith("0 ")
           for name, *cells in rows for cell in cells):
        sys.exit("kill_peers.py: the queue hung")


if __name__ == "__main__":
    main()
