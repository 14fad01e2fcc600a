#!/usr/bin/python3
"""Measures how much time the shim costs, in one run. Prints one table of ratios to the time without the shim.

Other work on the machine disturbs the times, so only ratios within one run mean anything. There are many short rounds.
Each round measures a program bare (without a preloaded library), with a preloaded library that does nothing, and with
the shim, one right after the other. The ratio in the table is the median of the ratios of the rounds. The figure of a
round is a quantile (bench/samples.hpp). For whole commands, the figure is the time of the shortest of many turns. Some
of the programs also run under ThreadSanitizer (rebuilt), Helgrind and DRD.

  bench.py --bin DIR --shim libforksight.so --empty libbench_empty.so [--rounds N] [--groups locks,forks]
           [--update docs/performance.md]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import commands
import page
from measures import COMPARED, GROUPS, LOCKS
from results import Results

VALGRIND = {"helgrind": ["valgrind", "-q", "--tool=helgrind"], "drd": ["valgrind", "-q", "--tool=drd"]}


def environment_of(library, folder, asks=()):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("FORKSIGHT_", "LD_PRELOAD"))}
    # If the threads of an OpenMP team spun, the figure would depend mainly on the load of the machine.
    environment["OMP_WAIT_POLICY"] = "passive"
    environment["TSAN_OPTIONS"] = "report_bugs=0"
    if library:
        environment.update(LD_PRELOAD=library, FORKSIGHT_OUT=folder, FORKSIGHT_OMP="auto", **{name: "1" for name in asks})
    return environment


def run_program(command, benchmark, min_time, environment):
    """Runs one benchmark for one round. Returns its counters, which are its figures in nanoseconds."""
    pattern = f"^{benchmark}(/iterations:[0-9]+)?(/real_time)?(/threads:[0-9]+)?$"
    done = subprocess.run([*command, "--benchmark_format=json", f"--benchmark_min_time={min_time}",
                           f"--benchmark_filter={pattern}"], env=environment, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    rows = json.loads(done.stdout)["benchmarks"]
    if len(rows) != 1 or rows[0].get("error_occurred"):
        sys.exit(f"bench.py: {benchmark} failed")
    return rows[0]


def by_benchmark(measures):
    """Groups the measures whose figures come from the same run of a program. Returns pairs of (program, benchmark, asks) and
    the measures."""
    benchmarks = {}
    for measure in measures:
        benchmarks.setdefault((measure.program, measure.benchmark, measure.asks), []).append(measure)
    return benchmarks.items()


def add_round(results, measures, rows):
    for measure in measures:
        results.add(measure, {variant: row[measure.figure] for variant, row in rows.items()})


def by_turns(number, options, take, asks=(), portable=None):
    """Returns {variant: result of `take` in the environment of the variant}. Every other round runs the variants in the
    opposite order."""
    variants = [("bare", None), ("empty", options.empty), ("shim", options.shim)]
    if portable:
        variants.append(("portable", portable))
    taken = {}
    for variant, library in variants if number % 2 == 0 else reversed(variants):
        with tempfile.TemporaryDirectory() as folder:
            taken[variant] = take(environment_of(library, folder, asks))
    return taken


def measure_programs(options, measures, results):
    for number in range(options.rounds):
        for (program, benchmark, asks), figures in by_benchmark(measures):
            command = [options.bin / f"bench_{program}"]
            portable = options.portable if set(figures) & set(LOCKS) else None
            add_round(results, figures, by_turns(
                number, options, lambda environment: run_program(command, benchmark, options.min_time, environment), asks,
                portable))
        options.progress(f"round {number + 1} of {options.rounds}")


def measure_others(options, measures, results):
    """Measures the programs under ThreadSanitizer, Helgrind and DRD. A few rounds suffice to show orders of magnitude.
    Each round has a bare run of its own."""
    environment = environment_of(None, "")
    for variant in options.others * min(3, options.rounds):
        for (program, benchmark, _), figures in by_benchmark(measures):
            bare = [options.bin / f"bench_{program}"]
            other = [*VALGRIND.get(variant, []), f"{bare[0]}{'_tsan' if variant == 'tsan' else ''}"]
            add_round(results, figures, {name: run_program(command, benchmark, options.min_time / 2, environment)
                                         for name, command in (("bare", bare), (variant, other))})
        options.progress(variant)


def measure_commands(options, measures, results):
    """Measures the whole commands in one round of many turns. Only the shortest turn counts: other work on the machine can
    make a turn a fifth longer, but cannot make it shorter."""
    if not measures:
        return
    with tempfile.TemporaryDirectory() as scratch:
        wanted = [commands.prepare(measure.benchmark, Path(scratch), options.source) for measure in measures]
        turns = {measure: [] for measure in measures}
        for number in range(options.command_turns):
            for measure, command in zip(measures, wanted):
                turns[measure].append(by_turns(number, options, command))
            options.progress(f"commands, turn {number + 1} of {options.command_turns}")
        for measure, taken in turns.items():
            results.add(measure, {variant: min(times[variant] for times in taken) for variant in taken[0]})


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
    parser.add_argument("--bin", type=Path, required=True, help="the folder of the benchmark programs")
    parser.add_argument("--shim", required=True, help="libforksight.so")
    parser.add_argument("--empty", required=True, help="a library that does nothing")
    parser.add_argument("--portable", type=os.path.abspath, help="the shim without assembly; only the benchmarks of locks use it")
    parser.add_argument("--rounds", type=int, default=15, help="how many rounds of each benchmark; default: %(default)s")
    parser.add_argument("--command-turns", type=int, default=11,
                        help="how many turns of each whole command; default: %(default)s")
    parser.add_argument("--min-time", type=float, default=0.05, help="how many seconds each benchmark runs in each round")
    parser.add_argument("--groups", default=",".join(GROUPS),
                        help="the groups of benchmarks to run, separated by commas; default: %(default)s")
    parser.add_argument("--others", default="tsan,helgrind,drd", help="the tools to compare with, or none")
    parser.add_argument("--update", type=Path, help="the page in which the new table replaces the old one")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a ratio exceeds its limit")
    options = parser.parse_args()
    options.source = Path(__file__).resolve().parent.parent
    options.shim, options.empty = os.path.abspath(options.shim), os.path.abspath(options.empty)
    options.others = [] if options.others == "none" else options.others.split(",")
    options.progress = lambda text: print(f"bench.py: {text}", file=sys.stderr, flush=True)
    unknown = set(options.groups.split(",")) - set(GROUPS)
    if unknown:
        parser.error(f"there is no group {' '.join(sorted(unknown))}")
    for path in (options.bin, Path(options.shim), Path(options.empty)):
        if not path.exists():
            parser.error(f"{path} does not exist; build the target bench_programs first")
    return options


def name_for_preload(path, links):
    """Returns a path that LD_PRELOAD can name. In LD_PRELOAD, a blank and a colon end a path, and the loader replaces
    "$LIB". If `path` has a blank, a colon or "$", makes a link to it in the folder `links`, and returns the path of the
    link. Otherwise returns `path` itself."""
    if path is None or not set(path) & set(" :$"):
        return path
    link = Path(links, f"{len(os.listdir(links))}-{os.path.basename(path)}")
    link.symlink_to(path)
    return str(link)


def main():
    options = parse()
    with tempfile.TemporaryDirectory(prefix="forksight-bench-") as links:
        options.shim, options.empty, options.portable = (name_for_preload(path, links)
                                                         for path in (options.shim, options.empty, options.portable))
        measure(options)


def measure(options):
    groups = options.groups.split(",")
    results = Results()
    measures = selected(groups, options)
    programs = [measure for measure in measures if measure.program != "command"]
    # The commands come first. If one of them cannot run, the program ends before the other measurements, which take minutes.
    measure_commands(options, [measure for measure in measures if measure.program == "command"], results)
    measure_programs(options, programs, results)
    measure_others(options, [measure for measure in programs if measure in COMPARED], results)
    print(page.table(measures, results))
    if options.update:
        page.update(options.update, measures, results)
    over = page.over(measures, results)
    for line in over:
        print(line)
    sys.exit(1 if over and options.check else 0)


if __name__ == "__main__":
    main()
