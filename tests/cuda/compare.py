#!/usr/bin/python3
"""Runs a program without and with the shim. Exit status and output must be the same.

  compare.py SHIM TRACES PROGRAM [ARGUMENT...]     TRACES: how many trace files the shim must leave
"""
import os
import subprocess
import sys
import tempfile


def run(command, **more):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("FORKSIGHT_", "LD_PRELOAD"))}
    result = subprocess.run(command, env={**environment, **more}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=50)
    return result.returncode, result.stdout.splitlines()


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    shim, traces, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    bare = run(command)
    if bare[0] != 7:
        print(f"the bare program ended with {bare[0]}", *bare[1], sep="\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        under = run(command, LD_PRELOAD=shim, FORKSIGHT_OUT=folder)
        left = sorted(os.listdir(folder))
    problems = []
    if under[0] != bare[0]:
        problems.append(f"exit status: bare {bare[0]}, under the shim {under[0]}")
    if under[1] != bare[1]:
        problems += [f"line {number}:\n  - {one}\n  + {other}" for number, (one, other) in
                     enumerate(zip(bare[1] + [""] * len(under[1]), under[1] + [""] * len(bare[1])), 1) if one != other][:10]
    if len(left) != traces:
        problems.append(f"expected {traces} trace(s), got {left}")
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
