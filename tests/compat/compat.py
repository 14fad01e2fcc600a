#!/usr/bin/python3
"""Runs other projects' tests in four ways, and compares the results: bare, under the shim alone, by `forksight run`, and by
`forksight run --cure=auto`.

  compat.py run --build BUILD [--cache DIR] [--results DIR] [--jobs N] [--unit PATTERN] SUITE...
  compat.py page --build BUILD [--cache DIR] [--results DIR] [--commit DIGEST=COMMIT]... FILE

`run` installs or builds what a suite needs from Debian packages and source packages. It makes the runs that are missing in
the folder of results, and says what differs. Only root can install packages. The tests run in namespaces of their own. For
an ordinary user, the kernel must therefore allow user namespaces (user.max_user_namespaces).
`page` writes FILE from the results. --commit says which commit a build was made from. The page then names the commit instead
of the digest of the build. SUITE is `all` or a name in suites/__init__.py. Exit status of `run`: 0 if nothing differs and
each finding is explained, 77 if something that a suite needs is not available here, 1 otherwise.
"""
import argparse
import fnmatch
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True

import frame  # noqa: E402
import page  # noqa: E402
import packages  # noqa: E402
from judge import judge_suite  # noqa: E402
from suites import SUITES  # noqa: E402


def say(text):
    print(time.strftime("%H:%M:%S"), text, flush=True)


def prepare(suite, cache):
    packages.install(suite.PACKAGES)
    for name in suite.SOURCES:
        packages.fetch_source(name, cache)
    suite.prepare(cache)


def run_suite(name, arguments, tools):
    suite = SUITES[name]
    prepare(suite, arguments.cache)
    units = [unit for unit in suite.units(arguments.cache) if fnmatch.fnmatch(unit.name, arguments.unit)]
    kept = frame.Kept(arguments.results / f"{name}.jsonl", tools.build)
    started = time.monotonic()
    frame.compare(tools, units, kept, arguments.jobs, lambda text: say(f"{name}: {text}"))
    judged = judge_suite(name, kept, [unit.name for unit in units])
    say(f"{name}: {judged.summary()}, {time.monotonic() - started:.0f} s")
    for line in judged.problems():
        say(f"{name}: {line}")
    return not judged.problems()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("run", "page"))
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--unit", default="*")
    parser.add_argument("--commit", action="append", default=[])
    parser.add_argument("names", nargs="+")
    arguments = parser.parse_args()
    arguments.commit = dict(text.split("=", 1) for text in arguments.commit)
    arguments.cache = (arguments.cache or arguments.build / "compat").resolve()
    arguments.results = (arguments.results or arguments.cache / "results").resolve()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.verb == "page":
        return page.write(Path(arguments.names[0]), arguments)
    tools = frame.Tools(arguments.build)
    names = list(SUITES) if arguments.names == ["all"] else arguments.names
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        raise SystemExit(f"compat: no suite {unknown[0]}; there are {', '.join(SUITES)}")
    try:
        same = [run_suite(name, arguments, tools) for name in names]
    except packages.NotHere as problem:
        print(f"skipped: {problem}")
        return 77
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
