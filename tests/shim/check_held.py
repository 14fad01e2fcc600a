#!/usr/bin/python3
"""Checks what a trace records about the locks that a thread holds. held_list.c describes the scenes.

  check_held.py HELD_LIST SHIM FORKSIGHT moves|taken|handler|nested
"""
import collections
import json
import os
import subprocess
import sys
import tempfile


def run(program, shim, forksight, scene):
    """Runs the program. Returns the addresses that it prints, and the records of its trace."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_PRELOAD=shim, FORKSIGHT_OUT=folder)
        printed = subprocess.run([program, scene], env=environment, check=True, timeout=100, stdout=subprocess.PIPE,
                                 text=True).stdout
        records = []
        for name in os.listdir(folder):
            text = subprocess.run([forksight, "trace", "dump", os.path.join(folder, name), "--format", "jsonl"],
                                  check=True, timeout=60, stdout=subprocess.PIPE, text=True).stdout
            records += [json.loads(line) for line in text.splitlines()]
    return printed.split(), records


def check_moves(locks, records):
    """Checks that each fork records each of the printed locks exactly once as held. At every fork the place where a lock was taken must
    be the same."""
    stacks = {record["offset"]: record["fields"] for record in records if record["record"] == "stack"}
    forks = [record["offset"] for record in records if record["record"] == "fork"]
    held = collections.defaultdict(list)
    for record in records:
        if record["record"] == "held":
            fields = record["fields"]
            held[fields["fork"]].append((fields["lock"], stacks[fields["stack"]]["pc"]))
    problems = [] if len(forks) > 20 else [f"only {len(forks)} forks"]
    where = dict(held[forks[0]]) if forks else {}
    for fork in forks:
        for lock in locks:
            places = [pc for address, pc in held[fork] if address == lock]
            if places != [where.get(lock)]:
                problems.append(f"fork {fork}: lock {lock} is held {len(places)} times, from {places}")
    return problems


def check_taken(printed, records):
    """In the trace, each fork of the first process is followed by a fork of the child that was just made. The program
    prints the address of a lock, and the number of the first process's forks at which libc had not yet taken this lock.
    Checks the children of these forks: the fork of each child must record the lock exactly once as held."""
    lock, count = printed[0], int(printed[1])
    forks = [record["offset"] for record in records if record["record"] == "fork"]
    held = collections.Counter(record["fields"]["fork"] for record in records
                               if record["record"] == "held" and record["fields"]["lock"] == lock)
    problems = [] if count > 20 and len(forks) > 2 * count else [f"only {count} of {len(forks)} forks came early enough"]
    return problems + [f"fork {child}: the lock is held {held[child]} times" for child in forks[1:2 * count:2] if held[child] != 1]


def check_handler(locks, records):
    """Checks that the trace records exactly one lock as held by the atfork handlers: the lock that a handler took and did not release."""
    held = [record["fields"]["lock"] for record in records if record["record"] == "handler_held"]
    return [] if held == locks else [f"handlers hold {held}, expected {locks}"]


def check_nested(_, records):
    """Checks that the trace records both forks as forks by fork(), and that the two forks have returned different children."""
    forks = {record["offset"]: record["fields"] for record in records if record["record"] == "fork"}
    returned = [record["fields"] for record in records if record["record"] == "forked"]
    problems = [f"fork {offset} was not made through the hook" for offset, fork in forks.items()
                if "kForkByWrapper" not in fork["flags"]]
    if len(forks) != 2 or {record["fork"] for record in returned} != set(forks):
        problems.append(f"forks {sorted(forks)}, returned: {returned}")
    if len({record["child"] for record in returned}) != 2:
        problems.append(f"children {returned}")
    return problems


def main():
    program, shim, forksight, scene = sys.argv[1:]
    locks, records = run(program, shim, forksight, scene)
    problems = {"moves": check_moves, "taken": check_taken, "handler": check_handler, "nested": check_nested}[scene](locks, records)
    for problem in problems[:10]:
        print(f"{scene}: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
