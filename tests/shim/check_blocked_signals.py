#!/usr/bin/python3
"""Checks that the trace records the signals that a forking thread blocks.  check_blocked_signals.py PROGRAM LIBRARY FORKSIGHT"""
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    program, library, forksight = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program], env=dict(os.environ, LD_PRELOAD=library, FORKSIGHT_OUT=folder), check=True, timeout=30)
        [trace] = Path(folder).rglob("*.fstrace")
        dump = subprocess.run([forksight, "trace", "dump", trace, "--format", "jsonl"], stdout=subprocess.PIPE, text=True,
                              check=True, timeout=30).stdout
    records = [json.loads(line) for line in dump.splitlines()]
    forks = [record["offset"] for record in records if record["record"] == "fork"]
    blocked = {record["fields"]["fork"]: int(record["fields"]["signals"], 16) for record in records
               if record["record"] == "blocked_signals"}
    bit = 1 << (signal.SIGTERM - 1)
    wanted = {fork: bit for fork in forks[1:]}
    if len(forks) != 3 or blocked != wanted:
        sys.exit(f"forks at {forks}; blocked signals by fork: {blocked}; wanted: {wanted}")


if __name__ == "__main__":
    main()
