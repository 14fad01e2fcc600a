#!/usr/bin/python3
"""Checks that a trace of many forks stays small and within its limit, and that the report says whether records are missing.

  check_growth.py MANY_FORKS SHIM FORKSIGHT FORKS THREADS LOCKS [--bytes-per-fork N] [--room BYTES]

Without --room the trace must be complete. With --room the file must not exceed BYTES, and the report must say that records are missing.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile


def size_of_records(path):
    """Returns the size of the used part of the file, which is the offset at which the chain of records ends."""
    with open(path, "rb") as file:
        data = file.read()
    at = 4096
    while at + 32 <= len(data):
        size = int.from_bytes(data[at:at + 4], "little")
        if size == 0:
            break
        at += size
    return at


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "shim", "forksight"):
        parser.add_argument(name)
    for name in ("forks", "threads", "locks"):
        parser.add_argument(name, type=int)
    parser.add_argument("--bytes-per-fork", type=int)
    parser.add_argument("--room", type=int)
    options = parser.parse_args()

    def limit():
        if options.room:
            resource.setrlimit(resource.RLIMIT_FSIZE, (options.room, options.room))

    problems = []
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_PRELOAD=options.shim, FORKSIGHT_OUT=folder)
        counts = [str(options.forks), str(options.threads), str(options.locks)]
        ended = subprocess.run([options.program, *counts], env=environment, preexec_fn=limit, check=False)
        if ended.returncode != 0:
            sys.exit(f"{options.program} ended with {ended.returncode}")
        traces = [entry.path for entry in os.scandir(folder)]
        if len(traces) != 1:
            sys.exit(f"{len(traces)} traces instead of one")
        used, file_size = size_of_records(traces[0]), os.stat(traces[0]).st_size
        print(f"{options.forks} forks: {used} bytes of records, {used / options.forks:.0f} a fork; file {file_size}")
        if options.bytes_per_fork and used > options.forks * options.bytes_per_fork + (256 << 10):
            problems.append(f"more than {options.bytes_per_fork} bytes a fork")
        if file_size > (options.room or 64 << 20):
            problems.append("the file is larger than its limit")
        told = subprocess.run([options.forksight, "report", folder, "--format", "json"], stdout=subprocess.PIPE,
                              text=True, check=False)
        report = json.loads(told.stdout)
        for limit_said in report["limits"]:
            print(limit_said)
        if report["findings"]:
            problems.append(f"{len(report['findings'])} findings where no child touched anything")
        is_whole = not any("did not fit into the trace" in said for said in report["limits"])
        if is_whole == bool(options.room):
            problems.append("the report does not say what is missing" if options.room else "records are missing")
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
