"""Real libraries at a fork: OpenBLAS ends its idle pool, libgomp loses its pool, and LLVM's libomp makes a new pool."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def first_fork(forksight, program):
    """Returns (exit status, the first fork of the report, findings)."""
    with tempfile.TemporaryDirectory(prefix="forksight-pools-") as folder:
        report = Path(folder, "report.json")
        done = subprocess.run([forksight, "run", "--omp=observe", "--out", folder, "--format", "json", "--report", str(report),
                               "--", program], env=dict(os.environ, OPENBLAS_NUM_THREADS="2"), check=False, timeout=40)
        seen = json.loads(report.read_text())
        return done.returncode, (seen["forks"] or [None])[0], seen["findings"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("forksight", "libgomp", "libomp", "openblas"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    failures = []
    expected = {"openblas": (2, 1, "handled"), "libgomp": (4, 4, "lost"), "libomp": (4, 4, "rebuilds")}
    for owner, figures in expected.items():
        status, fork, findings = first_fork(options.forksight, getattr(options, owner))
        if status != 0 or fork is None or findings:
            failures.append(f"{owner}: status {status}, fork {fork}, findings {findings}")
            continue
        pools = [pool for pool in fork["thread_pools"] if pool["owner"] == owner]
        seen = [(fork["threads_before"], fork["threads_after"], pool["state"]) for pool in pools]
        print(f"{owner}: {seen}")
        if seen != [figures]:
            failures.append(f"{owner}: expected {figures}, seen {fork['thread_pools']}")
        if owner == "openblas":
            named = [handlers["prepare"] for handlers in fork["handlers"] if "openblas" in handlers["library"]]
            if not named or not named[0] or named[0]["function"] != "blas_thread_shutdown_" or not named[0]["ns"]:
                failures.append(f"openblas: the report does not have its prepare handler with a time: {fork['handlers']}")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
