"""Compares the odds that `forksight run --predict` reports with what happens in many forks without forksight.

  check_odds.py FORKSIGHT PREDICT_ODDS FORKS LEAST [PROGRAM...]

Each program forks 100 times under forksight, and FORKS times without it. The odds are right if their range contains the
share of the FORKS forks that found the lock taken. They are also right if forksight reports no odds and this share is almost
zero. The odds must be right for at least LEAST programs. Without a PROGRAM, all programs are run.
"""
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

LIMIT_S = 120
AT_ONCE = 2
SEEN = 100        # forks under --predict
NEXT_TO_NOTHING = 0.005
# The largest allowed ratio of the upper end of a range to its lower end. A range that begins at 0 ("at most") may have any width.
WIDEST = 30

PROGRAMS = ["rare", "a_tenth", "half", "most", "three_workers", "irregular", "phases", "burst_before", "begins_late", "short_lived",
            "writer", "reader", "gate_left_early", "when_idle", "after_a_job"]


def findings_of(forksight, program):
    with tempfile.TemporaryDirectory(prefix="forksight-odds-") as folder:
        report = f"{folder}/report.json"
        run = [forksight, "run", "--predict", "--format", "json", "--report", report, "--out", f"{folder}/out", "--"]
        done = subprocess.run([*run, *program, str(SEEN)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr}")
        with open(report, encoding="utf-8") as file:
            return [finding for finding in json.load(file)["findings"] if finding["rule"] == "racy-orphan"]


def judge(forksight, binary, name, forks):
    program = [binary, name]
    findings = findings_of(forksight, program)
    done = subprocess.run([*program, str(forks)], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    truth = int(done.stdout) / forks
    if not findings:
        return truth <= NEXT_TO_NOTHING, f"{name}: {truth:.1%} of {forks} forks; forksight reports no odds"
    low, high = findings[0]["odds"]["low"], findings[0]["odds"]["high"]
    is_right = low <= truth <= high and (low == 0 or high / low <= WIDEST)
    return is_right, f"{name}: {truth:.1%} of {forks} forks; forksight predicts {low:.2%} to {high:.2%}"


def main():
    forksight, binary, forks, least, *names = sys.argv[1:]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [pool.submit(judge, forksight, binary, name, int(forks)) for name in names or PROGRAMS]
        results = [job.result() for job in jobs]
    for is_right, words in results:
        print(words if is_right else f"{words}  <-- wrong")
    right = sum(is_right for is_right, _ in results)
    print(f"{right} of {len(results)} right")
    return 0 if right >= int(least) else 1


if __name__ == "__main__":
    sys.exit(main())
