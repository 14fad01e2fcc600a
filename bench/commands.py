"""Prepares and times two whole commands that users run: a build by make, and a configure script of autoconf."""
import os
import resource
import shutil
import subprocess
import sys

OBJECTS = ["locks/held.o", "locks/held_stacks.o", "loader/next.o", "loader/scope.o", "libc/streams.o"]


def _run(command, folder, environment=None):
    done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench.py: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-2000:]}")


def _processor_ns():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e9


def _timed(command, folder, environment):
    """Returns the processor time, in nanoseconds, of all processes of the command. Wall-clock time would include the work
    of other programs."""
    begin = _processor_ns()
    _run(command, folder, environment)
    return _processor_ns() - begin


def _make(scratch, source):
    """Prepares a make command that compiles some of the shim's sources, two at a time. The benchmark repeats the
    command many times. So the command compiles only a few sources."""
    build = scratch / "make"
    plain = {key: value for key, value in os.environ.items() if not key.startswith("CMAKE_") and key != "LD_PRELOAD"}
    _run(["cmake", "-S", source, "-B", build, "-G", "Unix Makefiles", "-DCMAKE_BUILD_TYPE=Release",
          "-DFORKSIGHT_BUILD_TESTS=OFF", "-DFORKSIGHT_BUILD_BENCH=OFF"], scratch, plain)

    def run(environment):
        _run(["make", "clean"], build)
        return _timed(["make", "-j2", *OBJECTS], build / "preload", environment)
    return run


def _configure(scratch, source):
    """Prepares the configure script that autoconf generates from bench/configure/configure.ac."""
    folder = scratch / "configure"
    shutil.copytree(source / "bench" / "configure", folder)
    _run(["autoconf"], folder)
    return lambda environment: _timed(["./configure", "--cache-file=/dev/null", "-q"], folder, environment)


def prepare(name, scratch, source):
    """Prepares the command. Returns a function that runs it in a given environment, and returns its processor time in
    nanoseconds."""
    return {"make": _make, "configure": _configure}[name](scratch, source)
