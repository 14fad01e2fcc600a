"""rule_mutants.py MUTANT RULES CASES: the suite must notice if any one rule finds nothing.

MUTANT is a build of forksight in which the rule that FORKSIGHT_MUTED_RULE names finds nothing. For each rule of RULES
(rules.def), the test runs with MUTANT the fastest case that expects a finding of the rule. It runs only the part `observed`, or
only `why` if only `forksight why` reports the finding. The case must be red: either the finding is missing, or the hang does not
end, because forksight ends only explained hangs. The test fails if a rule has no case. The tests case.* show that the cases are
green with all rules. This test shows the same for MUTANT with one case.
"""
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RULE = re.compile(r'^FORKSIGHT_RULE\((\w+), "([^"]+)"', re.MULTILINE)
LIMIT_S = 100


def expected_of(case):
    """Returns the findings that `run` must report. If the case hangs and `run` must report nothing, returns the findings of
    `forksight why`."""
    expected = case["expected"]
    return expected["why"] if expected["bare"] == "hang" and not expected["findings"] else expected["findings"]


def cost(case):
    """Returns a sort key: cases that take little time come first. A hang takes time, and so does the start of an interpreter. If two
    cases take the same time, the case with fewer findings comes first."""
    expected = case["expected"]
    return ({"ok": 0, "error": 0, "hang": 2, "spin": 3}[expected["bare"]] + (1 if case["command"][1:] else 0), len(expected_of(case)))


def cheapest(cases, slug):
    fit = [case for case in cases if not case["labels"] and any(finding["rule"] == slug for finding in expected_of(case))]
    return min(fit, key=cost, default=None)


def judge(mutant, cases, case, muted):
    """Returns whether the case is green (None if the suite failed), and the lines of its result."""
    environment = {key: value for key, value in os.environ.items() if key != "FORKSIGHT_MUTED_RULE"}
    if muted:
        environment["FORKSIGHT_MUTED_RULE"] = muted
    part = "observed" if case["expected"]["findings"] else "why"
    argv = [mutant, "suite", "run", case["name"], "--strict", "--only", part, "--format", "json", "-q", "--cases", cases]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=environment)
    if done.returncode not in (0, 1):
        return None, f"exit status {done.returncode}: {done.stderr}"
    case = json.loads(done.stdout)["cases"][0]
    return done.returncode == 0, "\n".join(line for part in case["parts"] for line in part["lines"])


def check(mutant, cases, listed, slug):
    case = cheapest(listed, slug)
    if case is None:
        return f"{slug}: no case expects it"
    name = case["name"]
    green, said = judge(mutant, cases, case, slug)
    if green is None or green:
        return f"{slug}: {name} is not red without the rule: {said}"
    is_missing = f"expected {slug} " in said or (case["expected"]["bare"] in ("hang", "spin") and "did not end within" in said)
    if not is_missing:
        return f"{slug}: {name} is red without the rule, but not because the finding is missing:\n{said}"
    print(f"{slug}: {name}", flush=True)
    return None


def main():
    mutant, rules, cases = sys.argv[1:]
    listed = json.loads(subprocess.run([mutant, "suite", "list", "--format", "json", "--cases", cases], capture_output=True,
                                       text=True, timeout=LIMIT_S, check=True).stdout)["cases"]
    slugs = [slug for _, slug in RULE.findall(Path(rules).read_text())]
    if len(slugs) < 30:
        sys.exit(f"only {len(slugs)} rules were found in {rules}")
    first = cheapest(listed, slugs[0])
    green, said = judge(mutant, cases, first, "")
    if not green:
        sys.exit(f"{first['name']} is not green with all rules:\n{said}")
    # A hang that no rule explains lasts until its time limit. So the cases sleep most of the time, and many can run at once.
    with ThreadPoolExecutor(4 * len(os.sched_getaffinity(0))) as pool:
        problems = [problem for problem in pool.map(lambda slug: check(mutant, cases, listed, slug), slugs) if problem]
    print("\n".join(problems) or f"the suite notices each of the {len(slugs)} rules")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
