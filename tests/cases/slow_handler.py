"""slow_handler.py FORKSIGHT WAYS_OUT: `run --on-hang kill` does not kill a program whose atfork handler takes fourteen seconds.

After ten seconds, `run` reports that the handler is likely to hang, whatever the value of `--hang-after` is. When the handler
returns, `run` withdraws the finding. The exit status of `run` must be that of the program. There are two programs: the handler of
one sleeps, the handler of the other computes.
"""
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from processes import become_reaper

SECONDS = 14
LIMIT_S = 120
FOUND = 9
WELL = 7
HANDLERS = ("slow_atfork", "busy_atfork")


def run(forksight, folder, ways_out, handler, options):
    where = Path(folder, "-".join((handler, *options)).replace("--", ""))
    argv = [forksight, "run", *options, "--on-hang", "kill", "--error-exitcode", str(FOUND), "--fail-on", "possible", "--out", str(where),
            "--", ways_out, handler, str(SECONDS)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    problems = []
    if done.returncode != WELL:
        problems.append(f"`run` exits with {done.returncode}")
    if "CERTAIN HANG" in done.stderr:
        problems.append("the hang is reported as proven")
    if "withdrawn" not in done.stderr:
        problems.append("`run` withdraws no finding")
    return [f"{handler} {' '.join(options)}: {problem}: {done.stderr}" for problem in problems]


def main():
    forksight, ways_out = sys.argv[1:]
    become_reaper()
    with tempfile.TemporaryDirectory(prefix="forksight-slow-handler-") as folder, ThreadPoolExecutor(len(HANDLERS)) as threads:
        wanted = [(handler, options) for options in ((), ("--hang-after", "1")) for handler in HANDLERS]
        found = list(threads.map(lambda one: run(forksight, folder, ways_out, *one), wanted))
    for line in (line for lines in found for line in lines):
        print(line)
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main())
