#!/usr/bin/python3
"""Compares the table of limits in docs/security.md with the constants of analyzer/files/budgets.hpp.

  budgets_doc.py BUDGETS          print the table
  budgets_doc.py BUDGETS PAGE     exit 1 if PAGE lacks the table
"""
import re
import sys

ROW = re.compile(r"((?:^//.*\n)+)^inline constexpr ([\w:]+) (k\w+)(?: = |\{)(.+?)\}?;$", re.M)
CONSTANT = re.compile(r"^inline constexpr .* (k\w+)", re.M)
UNITS = {"std::chrono::minutes": "min", "std::chrono::seconds": "s"}


def value(kind, name, words):
    number = eval(re.sub(r"std::\w+\{([\d']+)\}", r"\1", words).replace("'", "_").replace("U", ""), {"__builtins__": {}})
    if kind == "std::chrono::milliseconds":
        return f"{number / 1000:g} s"
    if kind in UNITS:
        return f"{number} {UNITS[kind]}"
    if "Bytes" not in name:
        return f"{number:,}"
    return f"{number >> 30} GiB" if number % (1 << 30) == 0 else f"{number >> 20} MiB"


def table(text):
    rows = ROW.findall(text)
    missing = set(CONSTANT.findall(text)) - {name for _, _, name, _ in rows}
    if missing:
        sys.exit(f"budgets.hpp: no comment above {', '.join(sorted(missing))}")
    lines = ["| limit | value |", "|---|---|"]
    for comment, kind, name, words in rows:
        sentence = " ".join(line.removeprefix("//").strip() for line in comment.splitlines())
        lines.append(f"| {re.split(r'[.] (?=[A-Z])', sentence)[0].rstrip('.')} | {value(kind, name, words)} |")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as text:
        rows = table(text.read())
    if len(sys.argv) == 2:
        print(rows, end="")
        return
    with open(sys.argv[2], encoding="utf-8") as page:
        if rows not in page.read():
            sys.exit(f"{sys.argv[2]}: its table of limits differs from the output of analyzer/files/budgets_doc.py")


if __name__ == "__main__":
    main()
