"""Open POSIX conformance tests. Each program is a test.

The exit status of a program is 0 for passed, 1 for failed, 2 for unresolved, 4 for unsupported, 5 for untested.
"""
import re
from pathlib import Path

from frame import Unit
from packages import clean_folder, fetch_source

from .build import build_programs, built_programs

ABOUT = "Open POSIX conformance tests"
PACKAGES = ["gcc", "libc6-dev", "dpkg-dev"]
SOURCES = ["posixtestsuite"]
LEFT_OUT = {
    "shm_open/23-1": "it leaves 600 processes behind that spin",
    "pthread_cond_broadcast/1-2": "it starts 200 processes and 10,000 threads, for minutes",
    "tests that set the clock": "they would set the clock of the machine",
    "tests that build only": "they have nothing to run",
}
SETS_CLOCK = re.compile(r"\b(clock_settime|settimeofday|stime)\s*\(")
PROGRAM = re.compile(r"\d+-\d+\.c\Z")


def wanted(source):
    test = f"{source.parent.name}/{source.stem}"
    text = source.read_text(errors="replace")
    return PROGRAM.match(source.name) and test not in LEFT_OUT and not SETS_CLOCK.search(text)


def prepare(cache):
    index = cache / "posix" / "built.json"
    if index.exists():
        return
    root = fetch_source("posixtestsuite", cache)
    folder = clean_folder(cache / "posix")
    jobs = []
    for source in sorted((root / "conformance/interfaces").glob("*/*.c")):
        if wanted(source):
            program = folder / source.parent.name / source.stem
            program.parent.mkdir(exist_ok=True)
            jobs.append((program, ["gcc", "-D_GNU_SOURCE", "-w", "-O1", "-g", f"-I{root}/include", str(source), "-o", str(program),
                                   "-lpthread", "-lrt", "-lm"]))
    build_programs(jobs, index)


def units(cache):
    for path in map(Path, built_programs(cache / "posix" / "built.json")):
        yield Unit(f"{path.parent.name}/{path.name}", [str(path)])
