"""libgomp's tests in C that DejaGnu would run. Each test is built with the options in its dg-options comments."""
import re
import subprocess
from pathlib import Path

from frame import Unit
from packages import NotHere, clean_folder, fetch_source

from .build import build_programs, built_programs

ABOUT = "libgomp's tests in C"
PACKAGES = ["gcc", "libc6-dev", "dpkg-dev"]
SOURCES = ["gcc-12"]
LEFT_OUT = {"tests that do not build here": "they need an offload target or another library"}
FOLDERS = ("libgomp.c", "libgomp.c-c++-common")
OPTIONS = re.compile(r'dg-(?:additional-)?options\s+"([^"]*)"(?:\s*\{\s*target\s+([^}]*)\})?')
OTHER_DO = re.compile(r"dg-do\s+(compile|link)")
SECONDS = 60


def unpack(cache):
    """Unpacks libgomp's tests from the archive in the source package. Returns their folder."""
    archives = list(fetch_source("gcc-12", cache).glob("gcc-*.tar.*"))
    if not archives:
        raise NotHere("no gcc-*.tar.* in the source package gcc-12")
    subprocess.run(["tar", "-C", str(cache / "libgomp"), "--strip-components=1", "--wildcards", "-xf", str(archives[0]), "*/libgomp/testsuite/*"],
                   check=True)
    return cache / "libgomp/libgomp/testsuite"


def options_of(text):
    return [word for words, target in OPTIONS.findall(text) if not target or "x86_64" in target or "*-*-linux*" in target
            for word in words.split()]


def prepare(cache):
    index = cache / "libgomp" / "built.json"
    if index.exists():
        return
    clean_folder(cache / "libgomp")
    root = unpack(cache)
    jobs = []
    for source in sorted(path for folder in FOLDERS for path in (root / folder).glob("*.c")):
        text = source.read_text(errors="replace")
        if OTHER_DO.search(text) or "dg-shouldfail" in text and "offload" in text:
            continue
        program = cache / "libgomp/programs" / source.parent.name / source.stem
        program.parent.mkdir(parents=True, exist_ok=True)
        jobs.append((program, ["gcc", "-w", "-O2", "-g", "-fopenmp", "-foffload=disable", *options_of(text), str(source), "-o", str(program), "-lm"]))
    build_programs(jobs, index)


def units(cache):
    for path in map(Path, built_programs(cache / "libgomp" / "built.json")):
        yield Unit(f"{path.parent.name}/{path.name}", [str(path)], environment={"OMP_NUM_THREADS": "4"}, seconds=SECONDS)
