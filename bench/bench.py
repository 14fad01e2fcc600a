#!/usr/bin/python3
"""Measures what the shim costs, in one run, and prints one table of ratios to bare.

Machines are shared and noisy, so only ratios within one run mean anything. Bare and shimmed runs alternate in short
rounds; of each the minimum over the rounds is taken, the time that nothing else disturbed. The same programs run under
ThreadSanitizer (rebuilt), Helgrind and DRD.

  bench.py --bin DIR --shim libforksight.so [--rounds N] [--groups locks,forks] [--update docs/performance.md]
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import commands
import page
from measures import COMPARED, COMPARED_FORKS, GROUPS

VALGRIND = {"helgrind": ["valgrind", "-q", "--tool=helgrind"], "drd": ["valgrind", "-q", "--tool=drd"]}


def environment_of(library, folder):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("FORKSIGHT_", "LD_PRELOAD"))}
    # A spinning team measures the machine's load, not the library.
    environment["OMP_WAIT_POLICY"] = "passive"
    environment["TSAN_OPTIONS"] = "report_bugs=0"
    if library:
        environment.update(LD_PRELOAD=library, FORKSIGHT_OUT=folder, FORKSIGHT_OMP="auto")
    return environment


def run_program(command, names, min_time, environment):
    """{benchmark: nanoseconds} of the named benchmarks."""
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    pattern = "|".join(re.sub(r"(/real_time|/manual_time).*$", "", name) for name in names)
    done = subprocess.run([*command, "--benchmark_format=json", f"--benchmark_min_time={min_time}",
                           f"--benchmark_filter=^({pattern})(/|$)"], env=environment, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    rows = json.loads(done.stdout)["benchmarks"]
    failed = [row["name"] for row in rows if row.get("error_occurred")]
    if failed:
        sys.exit(f"bench.py: {' '.join(failed)} failed")
    return {row["name"]: row["real_time"] * scale[row["time_unit"]] for row in rows if row["name"] in names}


class Results:
    """The least time of each measure and variant."""

    def __init__(self):
        self.times = {}

    def add(self, variant, found):
        for name, time in found.items():
            best = self.times.setdefault(name, {})
            best[variant] = min(time, best.get(variant, time))


def by_program(measures):
    programs = {}
    for measure in measures:
        programs.setdefault(measure.program, []).append(measure.benchmark)
    return programs


def measure_programs(options, measures, results):
    for number in range(options.rounds):
        for program, names in by_program(measures).items():
            variants = [("bare", None), ("shim", options.shim)]
            if any(name.startswith("start/") for name in names):
                variants.append(("empty", options.empty))
            for variant, library in variants if number % 2 == 0 else reversed(variants):
                with tempfile.TemporaryDirectory() as folder:
                    found = run_program([options.bin / f"bench_{program}"], names, options.min_time,
                                        environment_of(library, folder))
                results.add(variant, found)
        options.progress(f"round {number + 1} of {options.rounds}")


def measure_others(options, measures, results):
    """ThreadSanitizer, Helgrind and DRD: orders of magnitude need fewer rounds."""
    for variant in options.others:
        for program, names in by_program(measures).items():
            command = [*VALGRIND.get(variant, []), options.bin / f"bench_{program}{'_tsan' if variant == 'tsan' else ''}"]
            results.add(variant, run_program(command, names, options.min_time / 2, environment_of(None, "")))
        options.progress(variant)


def measure_commands(options, measures, results):
    if not measures:
        return
    with tempfile.TemporaryDirectory() as scratch:
        wanted = [commands.prepare(measure.benchmark, Path(scratch), options.source) for measure in measures]
        for number in range(options.command_rounds):
            for measure, command in zip(measures, wanted):
                variants = [("bare", None), ("empty", options.empty), ("shim", options.shim)]
                for variant, library in variants if number % 2 == 0 else reversed(variants):
                    with tempfile.TemporaryDirectory() as folder:
                        time = command(environment_of(library, folder))
                    results.add(variant, {measure.benchmark: time})
            options.progress(f"commands, round {number + 1} of {options.command_rounds}")


def selected(names, options):
    measures = [measure for name in names for measure in GROUPS[name]]
    available = [measure for measure in measures
                 if measure.program == "command" or (options.bin / f"bench_{measure.program}").exists()]
    for measure in measures:
        if measure not in available:
            print(f"bench.py: {measure.text}: bench_{measure.program} is not built", file=sys.stderr)
    return available


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, help="where the benchmarks are")
    parser.add_argument("--shim", required=True, help="libforksight.so")
    parser.add_argument("--empty", required=True, help="a library that does nothing")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--command-rounds", type=int, default=5)
    parser.add_argument("--min-time", type=float, default=0.05, help="seconds a benchmark and round")
    parser.add_argument("--groups", default=",".join(GROUPS), help=f"some of {','.join(GROUPS)}")
    parser.add_argument("--others", default="tsan,helgrind,drd", help="what to compare with, or none")
    parser.add_argument("--update", type=Path, help="the page whose table is replaced by this one")
    parser.add_argument("--check", action="store_true", help="exit with 1 if anything costs more than it may")
    options = parser.parse_args()
    options.source = Path(__file__).resolve().parent.parent
    options.shim, options.empty = os.path.abspath(options.shim), os.path.abspath(options.empty)
    options.others = [] if options.others == "none" else options.others.split(",")
    options.progress = lambda text: print(f"bench.py: {text}", file=sys.stderr, flush=True)
    unknown = set(options.groups.split(",")) - set(GROUPS)
    if unknown:
        parser.error(f"no group {' '.join(sorted(unknown))}")
    for path in (options.bin, Path(options.shim), Path(options.empty)):
        if not path.exists():
            parser.error(f"{path} does not exist; build the target bench_programs first")
    return options


def main():
    options = parse()
    groups = options.groups.split(",")
    results = Results()
    measures = selected(groups, options)
    programs = [measure for measure in measures if measure.program != "command"]
    measure_programs(options, programs, results)
    compared = [measure for measure in programs if measure in sum((GROUPS[name] for name in COMPARED), [])
                or measure.benchmark in COMPARED_FORKS]
    measure_others(options, compared, results)
    measure_commands(options, [measure for measure in measures if measure.program == "command"], results)
    print(page.table(measures, results.times))
    if options.update:
        page.update(options.update, measures, results.times)
    over = page.over(measures, results.times)
    for line in over:
        print(line)
    sys.exit(1 if over and options.check else 0)


if __name__ == "__main__":
    main()
