#!/usr/bin/python3
"""Builds programs with a sanitizer, and runs each bare, under the shim, and by `forksight run`.

  sanitizers.py COMPILER SANITIZER SHIM [FORKSIGHT]

COMPILER is gcc or clang. SANITIZER is address, leak, memory, thread or undefined. The runs are the same if exit status, standard
output and the sanitizer's report are the same. The sanitizer must report the defect of defect.c. The shim must write a trace of
the fork of threads.c. Exit status: 0 the runs are the same, 1 they differ, 77 the compiler or the sanitizer is missing.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
# The runtimes of OpenMP and of C++ are not built with these sanitizers. So the sanitizers would report defects that do not exist.
NEEDS_BUILT_RUNTIME = {"openmp.c": ("memory", "thread"), "guards.cpp": ("memory",)}
SECONDS = 60


def build(compiler, sanitizer, source, program):
    command = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}[compiler][source.endswith(".cpp")]
    if shutil.which(command) is None:
        return f"there is no {command}"
    options = ["-O1", "-g", "-pthread", "-w"] + ["-fopenmp"] * (source == "openmp.c")
    if sanitizer:
        options.append(f"-fsanitize={sanitizer}")
    # If the constructor of a C++ static throws, libstdc++ of gcc 12 can lose a wake-up. With this sanitizer, one run of
    # guards.cpp in 75 then hangs, even without the shim.
    if (compiler, sanitizer) == ("gcc", "thread"):
        options.append("-DNO_THROW")
    result = subprocess.run([command, *options, os.path.join(FOLDER, source), "-o", program], stderr=subprocess.PIPE, text=True)
    return result.stderr.strip().splitlines()[0] if result.returncode != 0 else ""


def clean_environment():
    return {key: value for key, value in os.environ.items()
            if key not in ("LD_PRELOAD", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS") and not key.startswith("FORKSIGHT_")}


def report_kinds(text):
    """Returns the kinds of defects in a sanitizer's report, and their functions. Addresses are left out."""
    return re.findall(r"^SUMMARY: (\w+: [\w-]+).*?( in \w+)?$|(runtime error: [a-z ]+)", text, re.M)


def run(command, variables=None):
    result = subprocess.run(command, env={**clean_environment(), **(variables or {})}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, timeout=SECONDS)
    return result.returncode, result.stdout, report_kinds(result.stderr), result.stderr


def traces_in(folder):
    return [name for _, _, names in os.walk(folder) for name in names if name.endswith(".fstrace")]


def ways_of(command, sanitizer, shim, forksight, folder):
    """Runs the command with the shim in each way. Yields the name of the way, the result, and the folder of traces or None."""
    out = os.path.join(folder, "traces")
    os.mkdir(out)
    variables = {"LD_PRELOAD": shim, "FORKSIGHT_OUT": out}
    if sanitizer == "address":
        variables["ASAN_OPTIONS"] = "verify_asan_link_order=0"
    yield "under the shim", run(command, variables), out
    if forksight:
        out = os.path.join(folder, "run")
        yield "by run", run([forksight, "run", "-q", "--out", out, "--", *command]), None


def compare(bare, under):
    return [f"{what} is {other!r}, bare {one!r}"
            for what, one, other in zip(("exit status", "standard output", "report"), bare, under) if one != other]


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    compiler, sanitizer, shim = sys.argv[1:4]
    forksight = sys.argv[4] if len(sys.argv) == 5 else None
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted(os.listdir(FOLDER)):
            if sanitizer in NEEDS_BUILT_RUNTIME.get(source, ()):
                continue
            program = os.path.join(folder, source.split(".")[0])
            problem = build(compiler, sanitizer, source, program)
            if problem:
                print(f"skipped: {compiler} -fsanitize={sanitizer}: {problem}")
                return 77
            command = [program] + ([sanitizer] if source == "defect.c" else [])
            bare = run(command)
            if source == "defect.c" and not bare[2]:
                print(f"{source}: the sanitizer does not report the defect: {bare}")
                failures += 1
            work = os.path.join(folder, source + ".d")
            os.mkdir(work)
            for way, under, out in ways_of(command, sanitizer, shim, forksight, work):
                problems = compare(bare, under)
                if out is not None and source == "threads.c" and not traces_in(out):
                    problems.append("the shim wrote no trace of the fork")
                for problem in problems:
                    print(f"{source} {way}: {problem}\n{under[3][:2000]}")
                failures += len(problems)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
