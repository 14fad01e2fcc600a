"""owners_test.py FORKSIGHT FOLDER NAME: a program that uses the library NAME hangs in a forked child. `forksight why` and
`forksight run` prove the hang and name the library. Its repaired twin ends well, and `run` reports no finding about it.

This test compiles the programs into FOLDER. If a package of Debian is missing, the test prints its name and exits with 77."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cases"))
import processes  # noqa: E402

SOURCES = HERE / "owners"
CRATES = Path("/usr/share/cargo/registry")
LIMIT_S = 60
BUILD_LIMIT_S = 600
POOL = ("lost-thread-pool", "proven", "likely")
# Name of the library: a file of Debian's package, the package, the expected finding, words of the expected summary.
LIBRARIES = {
    "eigen": (Path("/usr/include/eigen3/unsupported/Eigen/CXX11/ThreadPool"), "libeigen3-dev", POOL, "Eigen pool of 2 threads"),
    "abseil": (Path("/usr/include/absl/synchronization/mutex.h"), "libabsl-dev", ("lost-wakeup", "proven", "possible"), "an abseil Mutex or CondVar"),
    "rayon": (CRATES / "rayon-core-*", "librust-rayon-dev", POOL, "rayon pool of 2 threads"),
    "tokio": (CRATES / "tokio-1*", "librust-tokio-dev", POOL, "tokio pool of 2 threads"),
}


def find_missing(name):
    path, package, *_ = LIBRARIES[name]
    if not list(path.parent.glob(path.name)):
        return package
    tool, of = ("cargo", "cargo") if CRATES in path.parents else ("g++", "g++")
    return None if shutil.which(tool) else of


def call(argv, **options):
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)
    return done


def build(name, folder, variant):
    """Builds the program, or its repaired twin if `variant` is true. Returns the path of the built file."""
    program = folder / f"{name}{'.repaired' if variant else ''}"
    if CRATES in LIBRARIES[name][0].parents:
        target = folder / f"cargo-{name}"
        argv = ["cargo", "build", "--offline", "--manifest-path", SOURCES / name / "Cargo.toml", "--config",
                'source.crates-io.replace-with="debian"', "--config", f'source.debian.directory="{CRATES}"', "--target-dir", target]
        shutil.copytree(SOURCES / name, folder / f"source-{name}", dirs_exist_ok=True)  # cargo writes a file beside Cargo.toml
        argv[4] = folder / f"source-{name}/Cargo.toml"
        done = call([*argv, *(["--features", "repaired"] if variant else [])], timeout=BUILD_LIMIT_S)
        made = target / f"debug/owner-{name}"
    else:
        flags = call(["pkg-config", "--cflags", "--libs", "absl_synchronization"]).stdout.split() if name == "abseil" else ["-I/usr/include/eigen3"]
        made = folder / f"{name}.new"
        done = call(["g++", "-std=c++17", "-g", "-O1", *(["-DREPAIRED"] if variant else []), SOURCES / f"{name}.cpp", "-o", made,
                     "-pthread", *flags], timeout=BUILD_LIMIT_S)
    if done.returncode != 0:
        raise SystemExit(f"{name} cannot be built: {done.stderr}")
    shutil.copy2(made, program)
    return program


def problem_of(report, name):
    """Returns a text that says how the report differs from the expected one, or "" if it does not differ."""
    *_, finding, words = LIBRARIES[name]
    told = [(one["rule"], one["hang"], one["cause"]) for one in report["findings"]]
    if told != [finding]:
        return f"expected {finding}, found {told}"
    summary = report["findings"][0]["summary"]
    return "" if words in summary else f"expected {words!r} in: {summary}"


def look(forksight, program, name):
    with tempfile.TemporaryDirectory(prefix="forksight-owners-") as folder:
        process = processes.Program([str(program)], folder)
        try:
            seen = process.watch(LIMIT_S)
            done = call([forksight, "why", process.popen.pid, "--format", "json"], timeout=LIMIT_S)
        finally:
            process.end()
    return problem_of(json.loads(done.stdout), name) if seen == "hang" else f"expected a hang, seen {seen}"


def run(forksight, program, name, is_repaired):
    with tempfile.TemporaryDirectory(prefix="forksight-owners-") as folder:
        file = Path(folder, "report.json")
        done = call([forksight, "run", "--on-hang", "kill", "--out", folder, "--format", "json", "--report", file, "--", program], timeout=LIMIT_S)
        report = json.loads(file.read_text())
    if is_repaired:
        return "" if done.returncode == 0 and not report["findings"] else f"status {done.returncode}, found {report['findings']}"
    return problem_of(report, name)


def main():
    forksight, folder, name = sys.argv[1:]
    missing = find_missing(name)
    if missing:
        print(f"skipped: this needs {missing}")
        return 77
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    program, repaired = build(name, folder, False), build(name, folder, True)
    processes.become_reaper()
    problems = {"why": look(forksight, program, name), "run": run(forksight, program, name, False),
                "run, repaired": run(forksight, repaired, name, True)}
    for where, problem in problems.items():
        print(f"{where}: {problem or 'as expected'}")
    return 1 if any(problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
