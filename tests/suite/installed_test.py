"""Tests the suite after an installation into an empty prefix. It must find its cases, libraries and scripts in the prefix, and
its cases must have the same results as in the build tree."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT_S = 200
# At least one case of each folder, and each case that has a library of its own.
CASES = ("prepare_locks", "handler_order", "library_being_loaded", "exec_with_locks_held", "cuda_by_symbol", "cuda_by_dlsym",
         "cuda_hidden_init", "cuda_hidden_init.repaired", "lock_cycle", "python.queue_lock_abandoned", "pipe_held_open",
         "slow_user_database", "output_twice", "orphaned_mutex.O0", "mpi_after_fork.refused", "two_libgomps.repaired",
         "renamed_libgomp", "mixed_runtimes", "std_thread_pool.repaired", "lost_blas_pool", "lock_order_inversion",
         "python.lock.repaired", "python.module_import", "dead_consumer", "vfork_locks")


def run(argv, **options):
    return subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=LIMIT_S, check=False, **options)


def find_build_paths(suite, build):
    """Returns the programs and libraries that contain the path of the build tree outside their debug information."""
    found = []
    with tempfile.TemporaryDirectory(prefix="forksight-stripped-") as folder:
        for path in sorted(suite.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            content = path.read_bytes()
            if content.startswith(b"\x7fELF"):
                stripped = Path(folder, "stripped")
                run(["objcopy", "--strip-debug", path, stripped])
                content = stripped.read_bytes()
            if str(build).encode() in content:
                found.append(f"{path.relative_to(suite)} names the build tree")
    return found


def check(options, scratch):
    prefix = scratch / "prefix"
    done = run([options.cmake, "--install", options.build, "--prefix", prefix])
    if done.returncode != 0:
        return [done.stdout + done.stderr]
    suite = prefix / options.libexecdir / "forksight" / "suite"
    problems = find_build_paths(suite, options.build)
    links = [path for path in suite.rglob("*") if path.is_symlink()]
    problems += [f"{path} is a link" for path in links]
    # The commands run without the environment of the build. They must not write into the prefix.
    forksight = prefix / options.bindir / "forksight"
    environment = {"PATH": os.environ["PATH"], "HOME": str(scratch), "TMPDIR": str(scratch)}
    listed = run([forksight, "suite", "list", "--format", "json"], env=environment, cwd=scratch)
    cases = json.loads(listed.stdout)["cases"] if listed.returncode == 0 else []
    outside = [path for case in cases for path in (case["source"], *case["command"][:1]) if not path.startswith((str(suite), "/usr/"))]
    problems += [listed.stderr] if not cases else [f"{path} is not in the prefix" for path in outside]
    if missing := {case["folder"] for case in cases} - {case["folder"] for case in cases if case["name"] in CASES}:
        problems.append(f"this test runs no case of {', '.join(sorted(missing))}")
    before = sorted(prefix.rglob("*"))
    done = run([forksight, "suite", "run", "--strict", "-q", *CASES], env=environment, cwd=scratch)
    if done.returncode != 0 or f"{len(CASES)} cases: {len(CASES)} ok" not in done.stdout:
        problems.append(done.stdout + done.stderr)
    problems += [f"{path} is new" for path in sorted(set(prefix.rglob("*")) - set(before))]
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("cmake", "build", "source", "bindir", "libexecdir"):
        parser.add_argument("--" + name, required=True)
    with tempfile.TemporaryDirectory(prefix="forksight-installed-") as folder:
        problems = check(parser.parse_args(), Path(folder))
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
