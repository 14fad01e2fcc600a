#!/usr/bin/python3
"""Runs small programs in every environment, bare, under the shim and by `forksight run`, and compares what they do.

  matrix.py SHIM FORKSIGHT CONFINE [--page FILE] [-j N] [--only TEXT]

An environment has two parts. The first part is a compiler, with a sanitizer, with an allocator, or with neither. The second part
is a restriction by environment_confine (CONFINE). Two runs are the same if their exit status, standard output and sanitizer's
report are the same. If the restriction changes the results of a bare program, the program cannot run in this environment, and the
script does not compare it. --page writes the table. --only selects the environments whose compiler, sanitizer or allocator has
TEXT in its name. Exit status: 0 all runs are the same, 1 something differs, or nothing was compared.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile

from preloads import ALLOCATORS, find_library
from sanitizers import FOLDER, NEEDS_BUILT_RUNTIME, build, clean_environment, report_kinds

SECONDS = 120
PROGRAMS = ("threads.c", "guards.cpp", "spawn.c", "openmp.c", "memory.c")
SANITIZERS = {"gcc": ("address", "leak", "thread", "undefined"), "clang": ("address", "leak", "memory", "thread", "undefined")}
CONFINED = ("", "no-readv", "no-fallocate", "allow-list", "refuse-list", "vm-limit=256", "mlock", "setuid")

PAGE = """# Environments

`tests/environments/matrix.py --page docs/environments.md` makes this page. The script is also the test
`environments.matrix`, with the label `stress`. It uses {programs} small programs: one with threads and a fork, one with C++
statics, one that starts other programs in four ways, one with OpenMP, and one that allocates memory. Each row is a way
to build these programs. Each column is an environment in which they run: `environment_confine` restricts the program,
and `environment_confine --list` explains how.

Each cell counts the programs that can run there without forksight. "-": none can. Each program runs in three ways:
alone, with the shim preloaded, and by `forksight run`. The results are the same if the exit status, the output and the
sanitizer's report are the same. If the results of a program differ, the cell says so in bold.

{table}
{sum} runs with forksight were compared with runs without it. {verdict}
"""


def run(command, variables):
    try:
        result = subprocess.run(command, env={**clean_environment(), **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "no end", "", []
    return result.returncode, result.stdout, report_kinds(result.stderr)


class Environment:
    """One row of the table: how the programs are built, and which allocator is preloaded."""

    def __init__(self, compiler, sanitizer, allocator, library):
        self.compiler, self.sanitizer, self.library = compiler, sanitizer, library
        self.name = compiler + (f", {sanitizer} sanitizer" if sanitizer else f", {allocator}" if allocator else "")

    def build(self, folder):
        """Builds the programs. Returns {source: path of the program} of those that can be built."""
        built = {}
        for source in PROGRAMS:
            if self.sanitizer in NEEDS_BUILT_RUNTIME.get(source, ()):
                continue
            path = os.path.join(folder, f"{self.compiler}-{self.sanitizer or 'plain'}-{source.split('.')[0]}")
            if os.path.exists(path) or not build(self.compiler, self.sanitizer, source, path):
                built[source] = path
        return built

    def variables(self, shim, out):
        preloads = [library for library in (shim, self.library) if library]
        result = {"LD_PRELOAD": ":".join(preloads)} if preloads else {}
        if shim:
            result["FORKSIGHT_OUT"] = out
            result["ASAN_OPTIONS"] = "verify_asan_link_order=0"
        return result


def environments():
    for compiler, sanitizers in SANITIZERS.items():
        yield Environment(compiler, None, None, None)
        for allocator in ALLOCATORS:
            library = find_library(allocator, None, None)
            if library:
                yield Environment(compiler, None, allocator, library)
        for sanitizer in sanitizers:
            yield Environment(compiler, sanitizer, None, None)


def compare(options, environment, program, confined, folder):
    """Returns None if the bare program cannot run in the environment. Otherwise returns the differences, and the number of runs
    that were compared."""
    command = ([options.confine, confined, "--"] if confined else []) + [program]
    bare = run(command, environment.variables(None, None))
    if confined and bare[:2] != run([program], environment.variables(None, None))[:2]:
        return None
    out = tempfile.mkdtemp(dir=folder)
    os.chmod(out, 0o777)
    ways = {"under the shim": run(command, environment.variables(options.shim, out)),
            "by run": run([options.forksight, "run", "-q", "--out", out, "--", *command], environment.variables(None, None))}
    return [f"{os.path.basename(program)}, {confined or 'no restriction'}, {way}: {under} instead of {bare}"
            for way, under in ways.items() if under != bare], len(ways)


def cell_of(results):
    """Returns the text of a cell, given the comparisons of all programs."""
    able = [result for result in results if result is not None]
    differ = sum(1 for problems, _ in able if problems)
    return "-" if not able else f"{len(able)}" if not differ else f"**{differ} of {len(able)} differ**"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("shim")
    parser.add_argument("forksight")
    parser.add_argument("confine")
    parser.add_argument("--page")
    parser.add_argument("--only", default="")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    options = parser.parse_args()
    rows, problems, runs = [], [], 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.j) as workers:
        os.chmod(folder, 0o755)
        for environment in environments():
            if options.only not in environment.name:
                continue
            programs = environment.build(folder).values()
            jobs = [[workers.submit(compare, options, environment, program, confined, folder) for program in programs]
                    for confined in CONFINED]
            cells = [[job.result() for job in column] for column in jobs]
            for result in (result for column in cells for result in column if result is not None):
                runs += result[1]
                problems += [f"{environment.name}: {problem}" for problem in result[0]]
            rows.append([environment.name] + [cell_of(column) for column in cells])
            print(" | ".join(rows[-1]), flush=True)
    print(*problems, sep="\n")
    if options.page:
        head = ["built by, with"] + [confined.split("=")[0] or "nothing" for confined in CONFINED]
        table = "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rows])
        verdict = "All were the same." if not problems else f"{len(problems)} were not the same."
        with open(options.page, "w", encoding="utf-8") as page:
            page.write(PAGE.format(programs=len(PROGRAMS), table=table, sum=runs, verdict=verdict))
    return 1 if problems or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
