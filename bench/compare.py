#!/usr/bin/python3
"""Runs a benchmark bare and under the shim by turns, and prints both with their ratio.

Machines are shared and noisy: only the ratio within one run means anything. Bare and shimmed runs alternate, and the
median over the rounds is taken of each.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile


def run_once(program, shim, pattern, min_time):
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        if shim:
            environment["LD_PRELOAD"] = shim
            environment["FORKSIGHT_OUT"] = folder
            environment["FORKSIGHT_OMP"] = "auto"
        command = [program, "--benchmark_format=json", f"--benchmark_min_time={min_time}"]
        if pattern:
            command.append(f"--benchmark_filter={pattern}")
        output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return {row["name"]: (row["real_time"], row["time_unit"]) for row in json.loads(output.stdout)["benchmarks"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the benchmark")
    parser.add_argument("shim", help="libforksight.so")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--filter", default="", help="regular expression on the names")
    parser.add_argument("--min-time", default="0.1", help="seconds a benchmark and round")
    options = parser.parse_args()
    shim = os.path.abspath(options.shim)
    if not os.path.exists(shim):
        sys.exit(f"compare.py: {shim} does not exist; build the target forksight_preload first")
    bare, shimmed, units = {}, {}, {}
    for _ in range(options.rounds):
        for into, library in ((bare, None), (shimmed, shim)):
            for name, (time, unit) in run_once(options.program, library, options.filter, options.min_time).items():
                into.setdefault(name, []).append(time)
                units[name] = unit
    print(f"{'benchmark':34} {'bare':>12} {'shim':>12} {'ratio':>7} {'more':>12}")
    for name in bare:
        without, under = statistics.median(bare[name]), statistics.median(shimmed[name])
        unit = units[name]
        print(f"{name:34} {without:9.2f} {unit} {under:9.2f} {unit} {under / without:7.2f} {under - without:9.2f} {unit}")


if __name__ == "__main__":
    main()
