"""Servers, language runtimes, tools, a browser and debuggers. Each script in programs/ is a unit, and prints a few results."""
import os
import subprocess
from pathlib import Path

from frame import Unit
from packages import NotHere, clean_folder

from . import marked

ABOUT = "servers, runtimes, tools, a browser, debuggers"
PACKAGES = """
redis-server nginx-light postgresql-15 apache2 apache2-utils php8.2-fpm libfcgi-bin chromium curl xz-utils zstd git make perl ruby nodejs
openjdk-17-jdk-headless python3 golang-go rustc gcc gdb valgrind
""".split()
SOURCES = []
LEFT_OUT = {"errors that a debugger counts": "compared by their number, not by their text"}
FOLDER = Path(__file__).resolve().parent.parent / "programs"
SECONDS = 180


def compile_program(words, **environment):
    done = subprocess.run(["nice", *words], env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotHere(f"`{' '.join(map(str, words))}`: {done.stderr.strip()}")


def prepare(cache):
    folder = cache / "programs"
    if (folder / "debugged").exists():
        return
    clean_folder(folder)
    go = {"GOCACHE": str(folder / "go"), "GOPATH": str(folder / "gopath"), "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    compile_program(["/usr/bin/go", "build", "-o", folder / "forks-go", FOLDER / "forks.go"], CGO_ENABLED="0", **go)
    compile_program(["/usr/bin/go", "build", "-o", folder / "forks-cgo", FOLDER / "cgo.go"], CGO_ENABLED="1", **go)
    compile_program(["/usr/bin/rustc", "-O", "-o", folder / "forks-rust", FOLDER / "forks.rs"])
    compile_program(["gcc", "-g", "-O1", "-pthread", "-o", folder / "debugged", FOLDER / "debugged.c"])


def units(cache):
    for script in sorted(FOLDER.glob("*.sh")):
        if script.name != "lib.sh":
            yield Unit(script.stem, [str(script)], environment={"BUILT": str(cache / "programs")}, seconds=SECONDS, parse=marked.parse,
                       words_last=True)
