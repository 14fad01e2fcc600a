"""Checks that sources have no tabs, no trailing blanks and no paths that only one machine has, such as those of a home folder. Each
source must end with a newline, and must not use PASS_REGULAR_EXPRESSION."""
import re
import sys
from pathlib import Path

from house import conclude, tracked_files

SOURCES = (".cpp", ".hpp", ".c", ".h", ".py", ".sh", ".cmake", ".def")
FORBIDDEN = (
    (re.compile(r"\bPASS_REGULAR_EXPRESSION\s"), "lets a failing test pass if its output matches; compare the output in the test instead"),
    (re.compile(r"(?<![\w/.$}])/(home|work|root|Users)/"), "a path of one machine"),
)


def check_file(path, name):
    lines = path.read_text(errors="replace").split("\n")
    problems = []
    for number, line in enumerate(lines, start=1):
        if line.rstrip() != line:
            problems.append(f"{name}:{number}: trailing blanks")
        if "\t" in line:
            problems.append(f"{name}:{number}: a tab")
        problems += [f"{name}:{number}: {why}" for pattern, why in FORBIDDEN if pattern.search(line)]
    if lines[-1] != "":
        problems.append(f"{name}: no newline at the end")
    return problems


def check(root):
    """Returns the problems. Python files of tests/house are not checked, because this file contains the forbidden patterns, and
    checks_test.py contains examples."""
    problems = []
    for path in tracked_files(root):
        name = path.relative_to(root)
        exempt = name.parts[:2] == ("tests", "house") and path.suffix == ".py"
        if (path.suffix in SOURCES or path.name == "CMakeLists.txt") and not exempt:
            problems += check_file(path, name)
    return problems


if __name__ == "__main__":
    conclude(check(Path(sys.argv[1])))
