#!/usr/bin/python3
"""Writes docs/hooks.md from preload/hooks.def, or compares the two.

  hooks_doc.py HOOKS_DEF          print the page
  hooks_doc.py HOOKS_DEF PAGE     exit 1 if PAGE is not what would be printed
"""
import os
import re
import sys

HEAD = """# What the shim interposes

Made from `preload/hooks.def` and `trace/include/forksight/trace/libc_calls.def` by `preload/hooks_doc.py`; a test holds them together. Each hook calls the next definition of
the function that its caller's reference would be bound to and returns exactly what that returned. None allocates, takes a lock that could be held
at a fork, or changes `errno`.

| function | contract |
|---|---|
"""

LATE = """
Found by the hook itself, because they may come with a library that is loaded later, must go on by a jump, or are called
by few programs:

| function | contract |
|---|---|
"""

ANNOTATIONS = """
The shim's own, called by programs that use [`<forksight/annotate.h>`](annotate.md):

| function | contract |
|---|---|
"""

LIBC = """
## Libc functions with locks that fork() does not reset

Each marks, in a process that has had a second thread, that its thread is inside, and where it was called; returns what the
real function returned. In a child whose parent had another thread inside of a function with a lock in common, the call is
recorded before it is made. With `--cure=quiesce-libc` it waits, for a bounded time, while another thread forks.

| locks | functions |
|---|---|
"""

OMP = """
## OpenMP

Entry points of OpenMP runtimes, called by code that GCC compiled. Each call goes on to the runtime that its caller's
object would have been bound to. In a child whose forking thread lost a libgomp pool the region is recorded before it is
entered, or held at one thread (`--omp=clamp`). Of `omp_pause_resource` and `omp_pause_resource_all` is remembered that
the calling thread has no pool from then on; without a runtime they fail.

"""

CUDA = """
## The CUDA driver

Entry points of the CUDA driver, called by symbol, through `dlsym` or through `cuGetProcAddress`. None is exported: calls by
symbol are watched at the slots of the caller's PLT, those of the program and of libraries that are loaded at start-up, or
that are opened and asked by `dlsym`. Each call goes on to the function that the caller was bound to. The first `cuInit` that succeeds keeps its stack; in a child of a process that had initialised the driver each
function's first call is recorded, with the driver's answer.

"""


MPI = """
## MPI and UCX

Watched at the caller's slots, too. Each call goes on to the library that its caller was bound to. In a child of a process that had initialised it, and had not finalised it, each function's
first call is recorded, with what it returned. Whether MPI is initialised the library itself is asked at the fork
(`PMPI_Initialized`, `PMPI_Finalized`); of UCX, contexts are counted.

"""


def libc_table(definition):
    """Functions by the set of locks that they may take, in the order of the list."""
    text = open(os.path.join(os.path.dirname(definition), "../trace/include/forksight/trace/libc_calls.def"), encoding="utf-8").read()
    by_locks = {}
    for name, locks in re.findall(r"^FORKSIGHT_(?:LIBC|VARIADIC)_HOOK\((\w+), \w+, \"[^\"]*\", ([\w| ]+),", text, re.M):
        by_locks.setdefault(locks, []).append(f"`{name}`")
    locks_file = os.path.join(os.path.dirname(definition), "../trace/include/forksight/trace/libc_locks.def")
    names = dict(re.findall(r'^FORKSIGHT_LIBC_LOCK\((\w+), "([^"]+)"', open(locks_file, encoding="utf-8").read(), re.M))
    rows = []
    for locks, functions in by_locks.items():
        rows.append(f"| {', '.join('`' + names[lock] + '`' for lock in locks.split(' | '))} | {', '.join(functions)} |")
    return "\n".join(rows) + "\n"


def page(definition):
    text = open(definition, encoding="utf-8").read()
    def table(macro):
        found = re.findall(rf'^FORKSIGHT_{macro}\((\w+),(?:.*,\n)? *"(.*)"\)$', text, re.M)
        return "\n".join(f"| `{name}` | {contract} |" for name, contract in found) + "\n"

    entries = [f"- `{name}`" for name in re.findall(r"^FORKSIGHT_OMP_HOOK\((\w+), ", text, re.M)]
    cuda = open(os.path.join(os.path.dirname(definition), "cuda", "cuda_hooks.def"), encoding="utf-8").read()
    functions = [f"- `{name}`" for name in re.findall(r"^FORKSIGHT_CUDA_HOOK\((\w+), \d+\)", cuda, re.M)]
    mpi = open(os.path.join(os.path.dirname(definition), "mpi", "mpi_hooks.def"), encoding="utf-8").read()
    messages = [f"- `{name}`" for name in re.findall(r"^FORKSIGHT_MPI_HOOK\((\w+), \d+\)", mpi, re.M)]
    return (HEAD + table("HOOK") + LATE + table("LATE_HOOK") + ANNOTATIONS + table("ANNOTATION") +
            LIBC + libc_table(definition) + OMP + "\n".join(entries) + "\n" + CUDA + "\n".join(functions) + "\n" + MPI + "\n".join(messages) + "\n")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    wanted = page(sys.argv[1])
    if len(sys.argv) == 2:
        print(wanted, end="")
    elif open(sys.argv[2], encoding="utf-8").read() != wanted:
        sys.exit(f"{sys.argv[2]} is out of date: write it anew with preload/hooks_doc.py preload/hooks.def > docs/hooks.md")


if __name__ == "__main__":
    main()
