#!/usr/bin/python3
"""Writes docs/hooks.md from preload/hooks.def, or compares the two.

  hooks_doc.py HOOKS_DEF          print the page
  hooks_doc.py HOOKS_DEF PAGE     exit 1 if PAGE is not what would be printed
"""
import os
import re
import sys

HEAD = """# What the shim interposes

`preload/hooks_doc.py` makes this page from `preload/hooks.def` and `trace/include/forksight/trace/libc_calls.def`, and a
test compares them. Each hook calls the function that its caller would call without the shim, and returns exactly the
result of that function. No hook allocates memory, takes a lock that could be held at a fork, or changes `errno`.

| function | contract |
|---|---|
"""

LATE = """
Each of the following hooks finds the real function itself, because the function may come with a library that is loaded later, the
hook must continue with a jump, or only few programs call the function.

| function | contract |
|---|---|
"""

ANNOTATIONS = """
Functions of the shim itself. Programs that use [`<forksight/annotate.h>`](annotate.md) call them:

| function | contract |
|---|---|
"""

LIBC = """
## Libc functions with locks that fork() does not reset

In a process that has had a second thread, each of these hooks marks that its thread is inside of the function, and where
the function was called. If another thread of the parent was inside of a function that takes the same lock, the child
records the call beforehand. With `--cure=quiesce-libc` the call waits, for a bounded time, while another thread
forks.

| locks | functions |
|---|---|
"""

OMP = """
## OpenMP

These are entry points of OpenMP runtimes. Code that GCC compiled calls them. Each call goes on to the runtime that its caller's
object would have been bound to. In a child whose forking thread lost a libgomp pool the region is recorded before it is
entered, or limited to one thread (`--omp=clamp`). After `omp_pause_resource` or `omp_pause_resource_all` the shim knows that
the calling thread has no pool. Without a runtime these two functions fail.

"""

CUDA = """
## The CUDA driver

Entry points of the CUDA driver, called by symbol, through `dlsym` or through `cuGetProcAddress`. The shim exports none of
these names. Calls by symbol are watched at the slots of the caller's PLT. This covers the program, libraries that are
loaded at start-up, and libraries that are opened and searched by `dlsym`. Each call goes on to the function that the
caller was bound to. The shim keeps the stack of the first `cuInit` that succeeds. In a child of a process that had
initialised the driver, it records the first call of each function, with the driver's answer.

"""


MPI = """
## MPI and UCX

These functions are watched at the caller's PLT slots, too. Each call goes on to the library that its caller was bound to.
In a child of a process that had initialised the library and not finalised it, the shim records the first call of each
function, with its result. At the fork the shim asks the library itself whether MPI is initialised (`PMPI_Initialized`,
`PMPI_Finalized`). For UCX it counts the contexts.

"""


def libc_table(definition):
    """Returns the rows of the table of libc functions: one row for each set of locks, in the order of the list."""
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
