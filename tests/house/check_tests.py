"""Each test that CTest knows has a TIMEOUT, known labels, and a program that is built."""
import json
import subprocess
import sys

from house import conclude

LABELS = {"unit", "shim", "case", "cli", "golden", "audit", "fuzz", "stress", "bench", "gpu"}


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
    return problems


def check(tests):
    problems = [problem for test in tests for problem in check_test(test)]
    return problems or ([] if tests else ["no tests at all"])


if __name__ == "__main__":
    shown = subprocess.run([sys.argv[1], "--show-only=json-v1", "--test-dir", sys.argv[2]], capture_output=True, text=True, check=True)
    conclude(check(json.loads(shown.stdout)["tests"]))
