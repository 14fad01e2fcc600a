"""Writes docs/compatibility.md from the kept runs."""
import collections
import time
from pathlib import Path

import frame
import packages
from judge import explanation, judge_suite
from suites import SUITES

# The results with which the suites say that a test passed, or that it was skipped. All other results are failures.
PASSED = ("0", "ok", "PASS")
SKIPPED = ("skipped", "SKIP", "4", "5", "77")

HEAD = """# What forksight changes in other projects' tests

The tests of other projects show whether forksight changes the behaviour of programs. Each test was run in four ways:
bare (without forksight), under the shim alone (`LD_PRELOAD`), by `forksight run`, and by `forksight run --cure=auto`.
Some tests have different results from one bare run to the next. A test counts as unchanged if its result with forksight
is one of its results without forksight. This comparison includes tests that fail or skip without forksight.

The tables show each result as the suite reports it. In the suite `programs`, a result such as `0:2323662268` is an exit
status and a checksum of the standard output.

`tests/compat/compat.py page` writes this page from the runs that these commands make:

    cmake --preset release && cmake --build --preset release
    tests/compat/compat.py run --build build/release all
    tests/compat/compat.py page --build build/release docs/compatibility.md

All tests come from Debian packages and source packages, which the script installs or builds. Each run has namespaces of
its own for processes, mounts, message queues and the network, an empty `/tmp`, and a time limit. No process or file of
a run is left when the run has ended. If a result differs, the test is run {tries} times more, bare and in the mode in
which it differed.
"""


def write(path, arguments):
    kept = {name: frame.Kept(arguments.results / f"{name}.jsonl", None) for name in SUITES}
    judged = {name: judge_suite(name, kept[name]) for name in SUITES
              if (arguments.results / f"{name}.jsonl").exists()}
    parts = [HEAD.format(tries=frame.TRIES_AGAIN), made(arguments, kept), counts(judged), changes(judged), chance(judged), findings(judged),
             left_out(judged), versions(judged, arguments.cache)]
    Path(path).write_text("\n".join(part.rstrip("\n") + "\n" for part in parts))
    print(f"{path}: {sum(one.tests for one in judged.values())} tests")
    return 1 if any(one.problems() for one in judged.values()) else 0


def made(arguments, kept):
    newest = max(path.stat().st_mtime for path in arguments.results.glob("*.jsonl"))
    builds = collections.Counter(runs[-1]["build"] for one in kept.values() for (_, mode), runs in one.runs.items() if mode == "cure")
    commits = collections.Counter()
    for build, units in builds.items():
        commits[arguments.commit.get(build, f"build {build}")] += units
    shown = ", ".join(f"{commit} ({units} units)" for commit, units in commits.most_common())
    glibc = packages.version_of("libc6")
    kernel = Path("/proc/sys/kernel/osrelease").read_text().strip()
    return f"Last run: {time.strftime('%Y-%m-%d', time.gmtime(newest))}, forksight of {shown}, glibc {glibc}, Linux {kernel}.\n"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]) + "\n"


def shares(judged):
    passed = sum(count for result, count in judged.results.items() if result.split(":")[0] in PASSED)
    skipped = sum(count for result, count in judged.results.items() if result in SKIPPED)
    return passed, skipped, sum(judged.results.values()) - passed - skipped


def counts(judged):
    rows = []
    total = collections.Counter()
    for name, one in judged.items():
        numbers = {"tests": one.tests, "unstable": len(one.unstable)}
        numbers["passed"], numbers["skipped"], numbers["failed"] = shares(one)
        for mode in frame.MODES[1:]:
            numbers[mode] = len({(change.unit, change.test) for change in one.changed() if change.mode == mode})
        total.update(numbers)
        rows.append([f"{name}: {SUITES[name].ABOUT}", *numbers.values()])
    rows.append(["**all**", *total.values()])
    head = ["suite", "tests", "not stable bare", "pass bare", "skip bare", "fail bare", "shim changes", "`run` changes", "`run --cure=auto` changes"]
    return "## Results\n\n" + table(head, rows)


def changes(judged):
    rows = [[name, one.unit, one.test, one.mode, " or ".join(one.bare), one.result, reason(name, one)]
            for name, suite in judged.items() for one in suite.changed()]
    text = "## Results that forksight changes\n\n"
    return text + (table(["suite", "unit", "test", "mode", "bare", "in that mode", "why"], rows) if rows else "None.\n")


def reason(name, change):
    return explanation("difference", name, change.unit, change.test) or "**not explained**"


def chance(judged):
    rows = [[name, one.unit, one.test, one.mode, " or ".join(one.bare), ", ".join(one.runs)]
            for name, suite in judged.items() for one in suite.differences if one.happened_once()]
    text = ("## Results that differed in some runs only\n\n"
            "Each of these tests had one and the same result in all bare runs. In the mode of the table, the test had this result in\n"
            "some runs, and another result in the other runs. The cause is a race or a time limit in the test itself.\n\n")
    unstable = sum(len(suite.unstable) for suite in judged.values())
    text += (f"{unstable} other tests have more than one result in bare runs. For such a test, each of these results counts as correct\n"
             "with forksight, too.\n\n")
    return text + (table(["suite", "unit", "test", "mode", "bare", "in that mode, run by run"], rows) if rows else "None.\n")


def findings(judged):
    classes = collections.OrderedDict()
    for name, suite in judged.items():
        for one in suite.findings:
            classes.setdefault((name, one.rule, one.certainty, one.outcome, one.reason), []).append(one)
    rows = []
    for (name, rule, certainty, outcome, why), found in classes.items():
        units = sorted({one.unit for one in found})
        shown = ", ".join(f"`{unit}`" for unit in units[:4]) + (f" and {len(units) - 4} more" if len(units) > 4 else "")
        rows.append([name, rule, f"{certainty}, {outcome}", shown, why or "**not explained**"])
    text = ("## Findings in these tests\n\n"
            "`forksight run`, with or without `--cure=auto`, reported these findings about the tests. The last column says why each is true.\n\n")
    return text + (table(["suite", "finding", "how", "units", "why it is true"], rows) if rows else "None.\n")


def left_out(judged):
    rows = [[name, what, why] for name in judged for what, why in SUITES[name].LEFT_OUT.items()]
    return "## Left out\n\n" + table(["suite", "what", "why"], rows)


def versions(judged, cache):
    rows = []
    for name in judged:
        suite = SUITES[name]
        shown = [f"{package} {packages.version_of(package)}" for package in suite.PACKAGES if packages.version_of(package)]
        shown += [f"{source} {packages.source_version(source, cache)} (source)" for source in suite.SOURCES]
        rows.append([name, ", ".join(shown)])
    return "## Versions\n\n" + table(["suite", "packages"], rows)
