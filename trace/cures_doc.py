#!/usr/bin/python3
"""Compares the table of docs/cures.md with the list of cures.

  cures_doc.py CURES_DEF          print the table
  cures_doc.py CURES_DEF PAGE     exit 1 if PAGE lacks the table or the section of a cure
"""
import re
import sys

ROW = re.compile(r'^FORKSIGHT_CURE\(\w+, "([\w-]+)", ([01]), (\d+), "(\w*)", "(.*)"\)$', re.M)


def cures(definition):
    with open(definition, encoding="utf-8") as text:
        return ROW.findall(text.read())


def table(rows):
    lines = ["| cure | sound | in `auto` | what it does |", "|---|---|---|---|"]
    for name, sound, value, _, words in rows:
        shown = name if value == "0" else f"{name}={value}"
        answer = "yes" if sound == "1" else "no"
        lines.append(f"| `{shown}` | {answer} | {answer} | {words} |")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    rows = cures(sys.argv[1])
    if not rows:
        sys.exit(f"{sys.argv[1]}: contains no line of FORKSIGHT_CURE")
    if len(sys.argv) == 2:
        print(table(rows), end="")
        return
    with open(sys.argv[2], encoding="utf-8") as text:
        page = text.read()
    missing = [f"no section \"## {row[0]}\"" for row in rows if f"\n## {row[0]}\n" not in page]
    if table(rows) not in page:
        missing.append("its table differs from the output of trace/cures_doc.py")
    if missing:
        sys.exit("\n".join(f"{sys.argv[2]}: {line}" for line in missing))


if __name__ == "__main__":
    main()
