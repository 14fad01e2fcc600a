#!/usr/bin/python3
"""Writes docs/pools.md from analyzer/model/owners.def, or compares the two.

  pools_doc.py OWNERS_DEF          print the page
  pools_doc.py OWNERS_DEF PAGE     exit 1 if PAGE is not what would be printed
"""
import re
import sys

HEAD = """# To which library a thread belongs

`analyzer/model/pools_doc.py` makes this page from `analyzer/model/owners.def`, and a test compares the two. To add an
owner, add a line to that file.

The table below lists libraries that make threads of their own. forksight uses the table to name the owner of a thread pool.
A thread belongs to the library that contains its start routine. Some libraries are general, so their start routines do
not show the owner: {general}.
If the start routine is in a general library, the thread belongs to the innermost other library on the stack of the
`pthread_create` call. A library that is compiled into the program is recognised by its functions, on the stack of that
call or on the thread's own stack. forksight takes the first line of the table that matches. If no line matches, the
owner is `unknown`: the thread belongs to the program itself.

In the JSON report, every fork (`forks[].thread_pools`) lists the pools that the process had. It gives their threads at
two times: when `fork()` was entered, and when all prepare handlers had run. A pool has one of these states:

| state | meaning |
|---|---|
| `handled` | the library ended the pool before the fork, or nothing in the child needs the pool |
| `rebuilds` | the pool is not in the child, and its library makes it anew there |
| `lost` | the pool is not in the child, but the library's data in the child's memory says that it is |

| owner | what it is | recognised by library | or by start routine | or by a function on the stack | what the library does at a fork | tested with | what to do |
|---|---|---|---|---|---|---|---|
"""

AT_FORK = {
    "kLost": "nothing: the pool is lost",
    "kHandles": "ends an idle pool before the fork, makes it anew in parent and child",
    "kRebuilds": "makes it anew in the child",
    "kRebuildsByHandler": "makes it anew in the child, if it has registered its fork handlers",
    "kUnneeded": "nothing in the child needs it",
}


def entries(text, macro):
    """Yields the arguments of each use of a macro. Adjacent strings are joined. Identifiers stay as they are."""
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
    for _, key, name, libraries, starts, frames, at_fork, measured, fix in entries(text, "FORKSIGHT_OWNER"):
        columns = (f"`{key}`", name, patterns(libraries), patterns(starts), patterns(frames), AT_FORK[at_fork], measured, fix)
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
