"""nameless_test.py FORKSIGHT NAMELESS RULES CASES: if a run skips the look-up of function names, it must not miss a finding.

For each rule of RULES (rules.def), the test runs the fastest case that expects a finding of the rule. It runs only the part
`observed`, and keeps the traces. NAMELESS (nameless.cpp) diagnoses each folder of traces with names and without.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from rule_mutants import LIMIT_S, RULE, cheapest

FEWEST_RULES = 30  # at least this many rules must have a finding in the traces; other rules need an examination from outside


def main():
    forksight, nameless, rules, cases = sys.argv[1:]
    listed = json.loads(subprocess.run([forksight, "suite", "list", "--format", "json", "--cases", cases], capture_output=True,
                                       text=True, timeout=LIMIT_S, check=True).stdout)["cases"]
    slugs = [slug for _, slug in RULE.findall(Path(rules).read_text())]
    names = sorted({case["name"] for case in (cheapest(listed, slug) for slug in slugs) if case is not None})
    with tempfile.TemporaryDirectory() as kept:
        subprocess.run([forksight, "suite", "run", *names, "--only", "observed", "-q", "--keep", kept, "--cases", cases],
                       timeout=LIMIT_S * 2, check=True)
        folders = sorted({str(trace.parent) for trace in Path(kept).rglob("*.fstrace")})
        done = subprocess.run([nameless, *folders], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    print(done.stdout.replace(kept + "/", ""), done.stderr)
    spoke = {word for line in done.stdout.splitlines() for word in line.split()[1:]} & set(slugs)
    print(f"{len(folders)} folders, {len(spoke)} rules have findings in them")
    if len(spoke) < FEWEST_RULES:
        sys.exit(f"only {len(spoke)} rules have findings; without findings: {' '.join(sorted(set(slugs) - spoke))}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
