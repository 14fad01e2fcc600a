"""musl_test.py FORKSIGHT PROGRAM: a program that uses musl hangs.

`forksight why` proves the hang from outside. musl's loader cannot load the shim, so `forksight run` starts the program without
the shim, and says so in one line. `run` also proves the hang.
"""
import subprocess
import sys
import tempfile

from observed import LIMIT_S, Command, processes


def hangs_of(report):
    return [(one["rule"], one["hang"], one["cause"]) for one in report["findings"]]


def look(forksight, program):
    processes.become_reaper()
    with tempfile.TemporaryDirectory(prefix="forksight-why-") as folder:
        process = processes.Program([program], folder)
        try:
            seen = process.watch(LIMIT_S)
            report, _ = Command(forksight).report(process.popen.pid)
        finally:
            process.end()
    if seen != "hang":
        return [f"expected a hang, seen {seen}"]
    # A mutex of musl does not record its owner. So it is not proven that the lost thread holds the mutex.
    return [] if hangs_of(report) == [("lost-wakeup", "proven", "possible")] else [f"why: {report['findings']}"]


def run(forksight, program):
    with tempfile.TemporaryDirectory(prefix="forksight-run-") as folder:
        argv = [forksight, "run", "--on-hang", "kill", "--out", folder, "--", program]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    problems = [] if done.returncode == 137 and "CERTAIN HANG" in done.stderr else [f"run: status {done.returncode}"]
    said = [line for line in done.stderr.splitlines() if " on musl" in line]
    wanted = f"forksight: not seen: {program} runs on musl: the shim needs glibc and was left out, so forks and locks were not seen"
    problems += [] if said == [wanted] else [f"run says {said}"]
    if "Error loading shared library" in done.stderr:
        problems.append("musl's loader tried to load the shim")
    return [f"{problem}\n{done.stderr}" for problem in problems]


def main():
    forksight, program = sys.argv[1:]
    problems = look(forksight, program) + run(forksight, program)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
