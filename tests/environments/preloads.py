#!/usr/bin/python3
"""Runs programs with another preload library: without the shim, with the shim before it, and with the shim after it.

  preloads.py WHICH SHIM PROGRAM...

WHICH is jemalloc, tcmalloc, mimalloc, the path of a library, or "itself". "itself" is a second copy of the shim. With "itself",
the run without the shim has no preload library. A program whose name contains "threads" must leave a trace when it runs
with the shim. Exit status: 0 the runs are the same, 1 they differ, 77 the library is not installed.
"""
import os
import shutil
import subprocess
import sys
import tempfile

ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.2"}
FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")
SECONDS = 60


def find_library(which, shim, folder):
    """Returns the path of the library, or None if it is not installed."""
    if which == "itself":
        return shutil.copy(shim, os.path.join(folder, "libsecond.so"))
    if which not in ALLOCATORS:
        return which
    paths = [os.path.join(place, ALLOCATORS[which]) for place in FOLDERS]
    return next((path for path in paths if os.path.exists(path)), None)


def run(program, preloads, out):
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD" and not key.startswith("FORKSIGHT_")}
    environment.update(LD_PRELOAD=":".join(preloads), FORKSIGHT_OUT=out, TRACER_FILE=os.path.join(out, "calls"))
    result = subprocess.run([program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL, text=True, timeout=SECONDS)
    return result.returncode, result.stdout, result.stderr


def has_file(folder, ending):
    return any(name.endswith(ending) and os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    which, shim, programs = sys.argv[1], sys.argv[2], sys.argv[3:]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        library = find_library(which, shim, folder)
        if library is None:
            print(f"skipped: there is no {ALLOCATORS[which]}")
            return 77
        for program in programs:
            bare = run(program, [] if which == "itself" else [library], folder)
            for preloads in ([shim, library], [library, shim]):
                out = tempfile.mkdtemp(dir=folder)
                under = run(program, preloads, out)
                problems = [f"{what} is {other!r}, bare {one!r}" for what, one, other in
                            zip(("exit status", "standard output", "standard error"), bare, under) if one != other]
                if "threads" in os.path.basename(program) and not has_file(out, ".fstrace"):
                    problems.append("the shim wrote no trace of the fork")
                if "environment_tracer" in os.path.basename(library) and not has_file(out, "calls"):
                    problems.append("the tracing library has counted no call")
                for problem in problems:
                    print(f"{program} under {' '.join(preloads)}: {problem}")
                failures += len(problems)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
