"""Checks that each test that CTest knows has a TIMEOUT, known labels, and a program that is built. A test that may be skipped must
have a SKIP_RETURN_CODE, so that CTest counts a skipped test as skipped."""
import json
import re
import subprocess
import sys
from pathlib import Path

from house import conclude

# SKIPS_A_PART matches a line of a script that skips one test of unittest. SKIPS_ALL matches a line that skips the whole script.
SKIPS_A_PART = re.compile(r"^\s*(self\.skipTest\(|@unittest\.skip)", re.MULTILINE)
SKIPS_ALL = {".py": re.compile(r"^\s*(return 77|sys\.exit\(77\)|raise SystemExit\(77\))$", re.MULTILINE), ".sh": re.compile(r"\bexit 77\b")}
LABELS = {"unit", "shim", "case", "cli", "golden", "audit", "fuzz", "stress", "bench", "gpu"}


def check_skips(test, properties):
    """Checks the scripts that may skip.

    A script that uses unittest ends with 0 even if it skipped tests. So if it may skip tests,
    tests/support/unittests.py must run it. A script that skips as a whole ends with 77.
    """
    problems = []
    for word in test.get("command", []):
        if not word.endswith((".py", ".sh")) or not Path(word).is_file() or Path(word).name == "unittests.py":
            continue
        text = Path(word).read_text(encoding="utf-8")
        skips_parts = SKIPS_A_PART.search(text) is not None
        if skips_parts and not any(other.endswith("/unittests.py") for other in test["command"]):
            problems.append(f"{test['name']}: {word} skips tests, but tests/support/unittests.py does not run it")
        if (skips_parts or SKIPS_ALL[Path(word).suffix].search(text)) and "SKIP_RETURN_CODE" not in properties:
            problems.append(f"{test['name']}: {word} may be skipped, but the test has no SKIP_RETURN_CODE")
    return problems


def check_test(test):
    properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
    labels = set(properties.get("LABELS", []))
    problems = []
    if not properties.get("TIMEOUT"):
        problems.append(f"{test['name']}: no TIMEOUT")
    if not labels:
        problems.append(f"{test['name']}: no LABELS")
    if labels - LABELS:
        problems.append(f"{test['name']}: unknown labels {' '.join(sorted(labels - LABELS))}")
    if not test.get("command"):
        problems.append(f"{test['name']}: what it runs is not built")
    return problems + check_skips(test, properties)


def check(tests):
    problems = [problem for test in tests for problem in check_test(test)]
    return problems or ([] if tests else ["no tests at all"])


if __name__ == "__main__":
    shown = subprocess.run([sys.argv[1], "--show-only=json-v1", "--test-dir", sys.argv[2]], capture_output=True, text=True, check=True)
    conclude(check(json.loads(shown.stdout)["tests"]))
