"""Checks that preload/guest/shim_calls.def lists exactly the system calls that the shim makes.

Under a seccomp filter, the shim makes only calls that it knows to be harmless. The shim can know this only for the
calls in the list.

  check_calls.py PRELOAD [--without NAME]   treats NAME as if it were not in the list
"""
import re
import sys
from pathlib import Path

CALLS = re.compile(r"(?<!raw_)\bcall\(\s*SYS_(\w+)")
RAW_CALLS = re.compile(r"\braw_call\(\s*SYS_(\w+)")
LISTED = re.compile(r"^FORKSIGHT_(?:LOADER_)?CALL\(SYS_(\w+)\)", re.MULTILINE)
# Only this file may use raw_call(). In this file the shim makes the calls in AS_THE_PROGRAM on behalf of the program.
# So the list need not have them.
RAW_FILE = Path("guest/confinement.cpp")
AS_THE_PROGRAM = {"clone", "clone3"}


def check(preload, without):
    listed = set(LISTED.findall((preload / "guest/shim_calls.def").read_text())) - {without}
    used = set()
    problems = []
    for path in sorted(preload.rglob("*")):
        if path.suffix not in (".cpp", ".hpp"):
            continue
        text = path.read_text()
        name = path.relative_to(preload)
        found = set(CALLS.findall(text)) | (set(RAW_CALLS.findall(text)) - AS_THE_PROGRAM)
        if RAW_CALLS.search(text) and name != RAW_FILE:
            problems.append(f"{name}: raw_call() is for {RAW_FILE} alone")
        problems += [f"{name}: {call} is not in guest/shim_calls.def" for call in sorted(found - listed)]
        used |= found
    problems += [f"guest/shim_calls.def: {call} is not called" for call in sorted(listed - used)]
    return problems if used else ["no system call was found at all"]


if __name__ == "__main__":
    found = check(Path(sys.argv[1]), sys.argv[3] if sys.argv[2:3] == ["--without"] else None)
    print("\n".join(found) or "as listed")
    sys.exit(1 if found else 0)
