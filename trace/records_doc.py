#!/usr/bin/python3
"""Compares the table of docs/trace.md with the list of records.

  records_doc.py RECORDS_DEF          print the table
  records_doc.py RECORDS_DEF PAGE     exit 1 unless PAGE has the table
"""
import re
import sys

RECORD = re.compile(r'^FORKSIGHT_RECORD\((\w+), (\d+), (\w+), (\w+), "(.*)"\)$', re.M)
TAIL = re.compile(r"^FORKSIGHT_TAIL\((\w+), \w+, (\w+), ([\w:]+), (\w+)\)$", re.M)
ELEMENTS = {"char": "text", "std::byte": "memory", "std::uint64_t": "references"}


def table(text):
    records, tails = RECORD.findall(text), TAIL.findall(text)
    if len(records) != len(re.findall(r"^FORKSIGHT_RECORD\(", text, re.M)) or not records:
        sys.exit("a line of FORKSIGHT_RECORD does not have the expected form, or there is none")
    if len(tails) != len(re.findall(r"^FORKSIGHT_TAIL\(", text, re.M)):
        sys.exit("a line of FORKSIGHT_TAIL does not have the expected form")
    lines = ["| number | name | fixed part | tails | what it is |", "|---|---|---|---|---|"]
    for identifier, number, name, struct, words in records:
        own = [f"`{tail}`: `{count}` {ELEMENTS.get(element, f'`{element}`')}"
               for of, count, element, tail in tails if of == identifier]
        lines.append(f"| {number} | `{name}` | `{struct}` | {'; '.join(own)} | {words} |")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as definition:
        wanted = table(definition.read())
    if len(sys.argv) == 2:
        print(wanted, end="")
        return
    with open(sys.argv[2], encoding="utf-8") as page:
        if wanted not in page.read():
            sys.exit(f"{sys.argv[2]}: its table differs from the output of trace/records_doc.py")


if __name__ == "__main__":
    main()
