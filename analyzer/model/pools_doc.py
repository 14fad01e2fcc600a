#!/usr/bin/python3
"""Writes docs/pools.md from analyzer/model/owners.def, or compares the two.

  pools_doc.py OWNERS_DEF          print the page
  pools_doc.py OWNERS_DEF PAGE     exit 1 if PAGE is not what would be printed
"""
import re
import sys

HEAD = """# Whose threads forksight knows

`analyzer/model/pools_doc.py` makes this page from `analyzer/model/owners.def`, and a test compares the two. To add an
owner, add a line to that file.

A thread belongs to the library that has its start routine. These are general libraries:
{general}.
If the start routine is in one of them, the thread belongs to the innermost other library on the stack that made the
thread. A library that is compiled into the program is known by its functions: on the stack that made the thread, or on the
thread's own. The first line that matches counts. A thread that matches no line is `unknown`: it is the program's own.

In the JSON report, every fork (`forks[].thread_pools`) lists the pools that the process had. It gives their threads at
two times: when `fork()` was entered, and when all prepare handlers had run. A pool has one of these states:

| state | means |
|---|---|
| `handled` | its library ended it before the fork, or nothing in the child needs it |
| `rebuilds` | not in the child, and its library makes it anew there |
| `lost` | not in the child, but the child's copy of the library's memory says that the pool is there |

| owner | what it is | library | or start routine | or a function on its stack | what its library does about a fork | known from | what to do |
|---|---|---|---|---|---|---|---|
"""

FATES = {
    "kLost": "nothing: lost",
    "kHandles": "ends an idle pool, makes it anew on both sides",
    "kRebuilds": "makes it anew in the child",
    "kUnneeded": "nothing in the child needs it",
}


def entries(text, macro):
    """The arguments of each use of a macro: strings joined, identifiers as they are."""
    for body in re.findall(rf"^{macro}\((.*?)\)$", text, re.M | re.S):
        arguments, rest = [], body.strip()
        while rest:
            found = re.match(r'\s*((?:"(?:[^"\\]|\\.)*"\s*)+|\w+)\s*(?:,|$)', rest)
            if not found:
                sys.exit(f"cannot read: {rest[:60]}")
            word = found.group(1)
            parts = re.findall(r'"((?:[^"\\]|\\.)*)"', word)
            arguments.append("".join(parts).replace('\\"', '"') if word.startswith('"') else word)
            rest = rest[found.end():]
        yield arguments


def patterns(text):
    return ", ".join(f"`{pattern}`" for pattern in text.split("|") if pattern)


def page(definition):
    with open(definition, encoding="utf-8") as file:
        text = file.read()
    general = " or ".join(patterns(arguments[0]) for arguments in entries(text, "FORKSIGHT_GENERAL"))
    rows = []
    for _, key, name, libraries, starts, frames, fate, measured, fix in entries(text, "FORKSIGHT_OWNER"):
        columns = (f"`{key}`", name, patterns(libraries), patterns(starts), patterns(frames), FATES[fate], measured, fix)
        rows.append("| " + " | ".join(columns) + " |")
    return HEAD.format(general=general) + "\n".join(rows) + "\n"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    wanted = page(sys.argv[1])
    if len(sys.argv) == 2:
        print(wanted, end="")
        return
    with open(sys.argv[2], encoding="utf-8") as file:
        if file.read() != wanted:
            sys.exit(f"{sys.argv[2]} is out of date: write it anew with "
                     "analyzer/model/pools_doc.py analyzer/model/owners.def > docs/pools.md")


if __name__ == "__main__":
    main()
