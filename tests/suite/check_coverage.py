"""Checks that docs/coverage.md ends with the output of `forksight suite list --format markdown`. With --update, writes this
output into the page.

  check_coverage.py FORKSIGHT CASES PAGE [--update]
"""
import subprocess
import sys
from pathlib import Path

START = "<!-- forksight suite list --format markdown -->\n"


def main():
    forksight, cases, page, *update = sys.argv[1:]
    printed = subprocess.run([forksight, "suite", "list", "--format", "markdown", "--cases", cases], capture_output=True, text=True,
                             timeout=40, check=True).stdout
    head, start, table = Path(page).read_text().partition(START)
    if not start:
        print(f"{page}: has no line {START.strip()}")
        return 1
    if update == ["--update"]:
        Path(page).write_text(head + start + "\n" + printed)
        return 0
    if table == "\n" + printed:
        return 0
    there, new = set(table.splitlines()), set(printed.splitlines())
    print("\n".join([f"{page}: differs from the output of the command (build the target `coverage`)",
                     *(f"- {line}" for line in sorted(there - new)), *(f"+ {line}" for line in sorted(new - there))]))
    return 1


if __name__ == "__main__":
    sys.exit(main())
