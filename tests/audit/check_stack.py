#!/usr/bin/python3
"""check_stack.py PROBE LIBRARY: measures how much more stack a call needs with a hook than without.

The stack of a thread may have only 16 KiB, and most of the stack may be in use. So a call with a hook may need at most
1 KiB more than the same call without the hook.
"""
import os
import subprocess
import sys
import tempfile

HOOK_BYTES = 1024


def measure(probe, **environment):
    done = subprocess.run([probe], env=dict(os.environ, **environment), stdout=subprocess.PIPE, text=True, check=True, timeout=50)
    return {name: int(count) for name, count in (line.split() for line in done.stdout.splitlines())}


def main():
    probe, library = sys.argv[1:]
    bare = measure(probe)
    with tempfile.TemporaryDirectory() as folder:
        under = measure(probe, LD_PRELOAD=library, FORKSIGHT_OUT=folder)
    failed = bare.keys() != under.keys() or not bare
    for name, count in bare.items():
        more = under[name] - count
        failed = failed or more > HOOK_BYTES
        print(f"{name:20} bare {count:6}, under the shim {under[name]:6}, more {more:6}{'  <-- too much' if more > HOOK_BYTES else ''}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
