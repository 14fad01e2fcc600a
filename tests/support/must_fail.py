"""Runs a check that must find a planted fault.

  must_fail.py PATTERN COMMAND [ARGUMENT...]

Exit status 0: the command ended with a status from 1 to 125, and a line of its output matches PATTERN, a regular
expression of Python. Exit status 77: the command ended with this status, because the check cannot run here. Otherwise the
exit status is 1, for example if the check crashed or failed for another reason than the planted fault.
"""
import re
import subprocess
import sys

SKIPPED = 77  # the exit status by which CTest (SKIP_RETURN_CODE) recognises a skipped test


def find_problem(status, output, pattern):
    """Returns an empty text if the check failed as it must. Otherwise returns what is wrong."""
    if status == 0:
        return "passed, although it must fail"
    if status < 0 or status > 125:
        return f"ended with status {status}, which is not that of a check that found something"
    if "Traceback (most recent call last)" in output:
        return "broke down"
    if not re.search(pattern, output, re.MULTILINE):
        return f"failed, but no line of its output matches {pattern!r}"
    return ""


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    print(done.stdout, end="")
    if done.returncode == SKIPPED:
        sys.exit(SKIPPED)
    problem = find_problem(done.returncode, done.stdout, sys.argv[1])
    if problem:
        print(f"must_fail: the check {problem}: {' '.join(sys.argv[2:])}")
    sys.exit(1 if problem else 0)


if __name__ == "__main__":
    main()
