"""check_orders.py FORKSIGHT PREDICT_ORDERS PREDICT_SCOPED [RUNS]: runs programs whose lock orders are known, RUNS times each (default:
once), under `forksight run --lock-order`. forksight must never find anything in a harmless program. In each of the other programs, the
lock orders form a ring, and each finding must name the locks of the ring. At least 95 of 100 runs of these programs
must have such a finding. At least one run of each program must have such a finding.
"""
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

LIMIT_S = 60
AT_ONCE = 2
LEAST_FOUND = 0.95

HARMLESS = ["gate", "gate_of_processes", "semaphore", "writer_gate", "early_gate", "joined", "joined_later", "joined_by_another",
            "joined_by_trying", "before_and_after", "in_child", "readers", "no_writer", "tried", "timed", "one_thread"]
INVERTED = {
    "plain": {"from_mu", "to_mu"},
    "after_a_join": {"from_mu", "to_mu"},
    "made_by_another": {"from_mu", "to_mu"},
    "id_used_again": {"from_mu", "to_mu"},
    "main_beside_thread": {"from_mu", "to_mu"},
    "in_child_too": {"from_mu", "to_mu"},
    "ring": {"from_mu", "to_mu", "third_mu"},
    "reader_and_writer": {"table_rw", "to_mu"},
    "queued_writer": {"table_rw", "to_mu"},
    "readers_gate": {"from_mu", "to_mu"},
    "gate_left_early": {"from_mu", "to_mu"},
    "gate_entered_late": {"from_mu", "to_mu"},
    "counting_semaphore": {"from_mu", "to_mu"},
    "condition": {"from_mu", "to_mu"},
    "pool": {"from_mu", "to_mu"},
}


def findings_of(forksight, command):
    with tempfile.TemporaryDirectory(prefix="forksight-predict-") as folder:
        report = f"{folder}/report.json"
        run = [forksight, "run", "--lock-order", "--format", "json", "--report", report, "--out", f"{folder}/out", "--"]
        done = subprocess.run([*run, *command], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr}")
        with open(report, encoding="utf-8") as file:
            return json.load(file)["findings"]


def names_ring(finding, locks):
    between = finding["summary"].split("may hang between ")[-1].split(":")[0]
    named = set(between.replace(" and ", ", ").split(", "))
    return finding["rule"] == "lock-order-inversion" and named == locks


def main():
    forksight, orders, scoped = sys.argv[1:4]
    runs = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    harmless = {name: [orders, name] for name in HARMLESS} | {"scoped": [scoped]}
    wrong = []
    missed = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [(name, pool.submit(findings_of, forksight, command)) for name, command in harmless.items() for _ in range(runs)]
        for name, job in jobs:
            wrong += [f"{name} is harmless: {finding['summary']}" for finding in job.result()]
        jobs = [(name, pool.submit(findings_of, forksight, [orders, name])) for name in INVERTED for _ in range(runs)]
        for name, job in jobs:
            findings = job.result()
            if not any(names_ring(finding, INVERTED[name]) for finding in findings):
                missed[name] = missed.get(name, 0) + 1
            wrong += [f"{name}: {finding['summary']}" for finding in findings if not names_ring(finding, INVERTED[name])]
    looked = runs * len(INVERTED)
    found = looked - sum(missed.values())
    print(f"{len(harmless)} harmless programs, {len(INVERTED)} with a ring, {runs} runs each: "
          f"{len(wrong)} false alarms, {found} of {looked} rings found")
    for name, count in missed.items():
        print(f"{name}: missed in {count} of {runs} runs")
    print("\n".join(wrong))
    return 0 if not wrong and found >= LEAST_FOUND * looked and all(count < runs for count in missed.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
