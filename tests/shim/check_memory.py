#!/usr/bin/python3
"""Checks how much memory the shim needs for each thread, by comparing a program with and without the shim.

  check_memory.py PROGRAM SHIM THREADS KIB_EACH

The shim may use KIB_EACH KiB for each thread, and 64 KiB in addition, for the first page of its table and for the first thread.
"""
import os
import subprocess
import sys
import tempfile

GRANTED_KIB = 64


def kib(program, threads, **environment):
    done = subprocess.run([program, threads], env=dict(os.environ, **environment), stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout)


def main():
    program, shim, threads, each = sys.argv[1:]
    bare = kib(program, threads)
    with tempfile.TemporaryDirectory() as folder:
        under = kib(program, threads, LD_PRELOAD=shim, FORKSIGHT_OUT=folder)
    more = under - bare
    print(f"{threads} threads: {bare} KiB bare, {under} under the shim; {more / int(threads):.2f} KiB more each, at most {each}")
    if more <= 0:
        print("not more memory than without the shim: the program did not run under the shim")
    sys.exit(0 if 0 < more <= int(threads) * int(each) + GRANTED_KIB else 1)


if __name__ == "__main__":
    main()
