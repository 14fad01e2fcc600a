"""Judges the runs of a suite.

judge_suite() divides the tests into three groups. Some have the same result with and without forksight. Others already
have several results without forksight. The rest have another result with forksight. judge_suite() also lists the
findings about the tests. explained.json gives reasons for differences, and says for findings why they are true.
"""
import collections
import dataclasses
import fnmatch
import json
from pathlib import Path

import frame

# The statuses of a bare run whose command was not found, or for which no namespaces could be made. Such a run says nothing about its
# tests.
NOT_STARTED = ("127", "126", "125", "lost")
EXPLAINED = Path(__file__).with_name("explained.json")


@dataclasses.dataclass
class Difference:
    unit: str
    test: str
    mode: str
    bare: list
    result: str
    runs: list

    def happened_once(self):
        """Returns whether another run in this mode had the result of a bare run.

        If so, the difference is due to chance, or to a time limit under load.
        """
        return any(result in self.bare for result in self.runs)


@dataclasses.dataclass
class Finding:
    unit: str
    mode: str
    rule: str
    certainty: str
    outcome: str
    summary: str
    reason: str


class Judged:
    def __init__(self, name):
        self.name = name
        self.units = 0
        self.not_run = []
        self.not_started = []
        self.tests = 0
        self.unstable = []
        self.same = collections.Counter()
        self.differences = []
        self.findings = []
        self.results = collections.Counter()

    def changed(self):
        return [one for one in self.differences if not one.happened_once()]

    def problems(self):
        lines = [f"not run: {unit}" for unit in self.not_run]
        lines += [f"did not start: {unit}" for unit in self.not_started]
        lines += [f"{one.unit}: {one.test}: {one.mode}: {one.result!r}, bare {' or '.join(one.bare)!r}" for one in self.changed()
                  if not explanation("difference", self.name, one.unit, one.test)]
        lines += [f"{one.unit}: {one.mode}: {one.certainty} {one.rule} ({one.outcome}): {one.summary}" for one in self.findings if not one.reason]
        return lines

    def summary(self):
        return (f"{self.tests} tests in {self.units} units, {len(self.unstable)} not stable bare, {len(self.changed())} changed, "
                f"{len(self.differences) - len(self.changed())} by chance, {len(self.findings)} findings")


def explanations():
    return json.loads(EXPLAINED.read_text())


def explanation(kind, suite, unit, what):
    """Returns the reason that explained.json gives for a finding, or for the difference of a test. Returns "" if it gives none."""
    for entry in explanations()[kind + "s"]:
        if entry["suite"] == suite and fnmatch.fnmatchcase(unit, entry["unit"]) and fnmatch.fnmatchcase(what, entry["what"]):
            return entry["reason"]
    return ""


def judge_mode(judged, unit, kept, mode, stable):
    bare_runs, runs = kept.of(unit, "bare"), kept.of(unit, mode)
    found = {}
    for index in range(len(runs)):
        found.update(frame.differences(bare_runs, runs[:index + 1]))
    for test, (bare, result) in sorted(found.items()):
        results = [run["end"] if test == "(exit status)" else run["tests"].get(test, "missing") for run in runs]
        judged.differences.append(Difference(unit, test, mode, bare, result, results))
    judged.same[mode] += sum(1 for test in stable if test not in found)
    seen = set()
    for run in runs:
        for finding in run.get("findings", []):
            key = (finding["rule"], finding["certainty"], finding["outcome"])
            if key not in seen:
                seen.add(key)
                reason = explanation("finding", judged.name, unit, finding["rule"])
                judged.findings.append(Finding(unit, mode, *key, finding["summary"], reason))


def judge_suite(name, kept, units=None):
    """Judges the units in `units`. Each must have been run. Without `units`, judges the units that were run in all modes."""
    judged = Judged(name)
    for unit in units if units is not None else sorted({unit for unit, _ in kept.runs}):
        modes = [mode for mode in frame.MODES[1:] if kept.of(unit, mode)]
        bare_runs = kept.of(unit, "bare")
        if units is None and len(modes) < len(frame.MODES) - 1:
            continue
        if not modes or len(bare_runs) < frame.BARE_RUNS:
            judged.not_run.append(unit)
            continue
        if any(run["end"] in NOT_STARTED for run in bare_runs):
            judged.not_started.append(unit)
            continue
        judged.units += 1
        names = sorted({test for run in bare_runs for test in run["tests"]})
        judged.tests += len(names)
        stable = [test for test in names if len({run["tests"].get(test) for run in bare_runs}) == 1]
        judged.unstable += [(unit, test) for test in names if test not in set(stable)]
        judged.results.update(bare_runs[0]["tests"][test] for test in stable)
        for mode in modes:
            judge_mode(judged, unit, kept, mode, stable)
    return judged
