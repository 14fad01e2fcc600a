"""fingerprints_test.py FORKSIGHT CASES: the fingerprint of a finding is the same in every run, and differs between causes.

The test runs each case of SAMPLE twice, and runs `forksight why` on it. Both runs must report the same fingerprints. Two cases
must not share a fingerprint, although many cases have the same interpreter and the same rule. The tests case.* check that `run`,
`why` and `core` report the same fingerprint for one case.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT_S = 200
SAMPLE = [
    "python.lock", "python.queue_mutex", "python.buffered_writer", "python.pool_worker", "python.executor", "python.lock_cycle",
    "python.queue_lock_abandoned", "pipe_deadlock", "pipe_held_open", "flock_deadlock", "lock_cycle", "self_deadlock", "join_cycle",
    "missed_signal", "semaphore_cycle", "lost_future", "std_thread_pool", "lost_openmp_pool", "fork_in_handler",
    "call_in_flight.setenv", "call_in_flight.popen", "orphaned_mutex.O2", "orphaned_semaphore", "prepare_locks",
]


def ask(forksight, cases, folder):
    """Returns the fingerprints that `why` reports for each case, with their rules."""
    argv = [forksight, "suite", "run", *SAMPLE, "--only", "why", "-q", "--keep", folder, "--cases", cases]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    said = {}
    for report in sorted(Path(folder).glob("*/bare/why.stdout")):
        findings = json.loads(report.read_text())["findings"]
        said[report.parent.parent.name] = {finding["fingerprint"]: finding["rule"] for finding in findings}
    if done.returncode != 0:
        sys.exit(f"the suite ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return said


def main():
    forksight, cases = sys.argv[1:]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first, second = ask(forksight, cases, one), ask(forksight, cases, other)
    lines = [f"{name}: `why` reports nothing" for name in SAMPLE if not first.get(name)]
    lines += [f"{name}: first {first[name]}, then {second.get(name)}" for name in first if first[name] != second.get(name)]
    cases_of = {}
    for name, said in first.items():
        for fingerprint in said:
            cases_of.setdefault(fingerprint, []).append(name)
    lines += [f"{fingerprint} belongs to {' and '.join(names)}" for fingerprint, names in cases_of.items() if len(names) > 1]
    print(f"{len(first)} cases, {len(cases_of)} fingerprints")
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
