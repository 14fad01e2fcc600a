"""real_driver_test.py FORKSIGHT CASES DRIVER: cases with the label gpu run on the CUDA driver of the machine, and are
skipped if the machine has no CUDA driver.

The test driver DRIVER is not the driver of the machine, so with DRIVER the case must be skipped. With a copy of DRIVER that gives
itself another name, the case must run.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

NAME = b"forksight test driver"
CASE = "gpu.cuda_by_symbol"


def run(forksight, cases, folder, *words):
    """Runs the case with `folder` first in the loader's search path. Returns the exit status and the result of the case."""
    argv = [forksight, "suite", "run", CASE, "--format", "json", "--cases", cases, *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False, env={**os.environ, "LD_LIBRARY_PATH": str(folder)})
    return done.returncode, json.loads(done.stdout)["cases"][0]


def check(forksight, cases, driver, scratch):
    status, case = run(forksight, cases, driver.parent)
    if case["state"] == "skipped":
        if status != 0 or "is the test driver" not in case["lines"][0] or case["parts"]:
            return f"the case is skipped for another reason than the test driver: {case['lines']}, status {status}"
    elif not any(Path(path).exists() for path in ("/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib")):
        return f"the test driver counts as the driver of the machine: the case is not skipped, but {case['state']}"
    content = driver.read_bytes()
    if content.count(NAME) != 1:
        return f"{driver} names itself {content.count(NAME)} times"
    other = scratch / "libcuda.so.1"
    other.write_bytes(content.replace(NAME, NAME.swapcase()))
    status, case = run(forksight, cases, scratch, "--strict", "--keep", str(scratch / "kept"))
    if (status, case["state"]) != (0, "ok"):
        return f"status {status}: {case}"
    used = (scratch / "kept" / CASE / "driver" / "libcuda.so.1").resolve()
    report = (scratch / "kept" / CASE / "observed" / "report.json").read_text()
    if used != other.resolve() or str(other.resolve()) not in report and "/driver/libcuda.so.1" not in report:
        return f"the case used {used}, the report does not name {other}"
    return ""


def main():
    with tempfile.TemporaryDirectory(prefix="forksight-driver-") as folder:
        problem = check(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(folder))
    print(problem)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
