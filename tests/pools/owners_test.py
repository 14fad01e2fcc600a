"""Tests what forksight reports about a program that uses a library and forks.

  owners_test.py FORKSIGHT FOLDER NAME

The program uses the library NAME, and its forked child hangs. `forksight why` and `forksight run` must report the hang and
name the library. The repaired twin of the program must end with status 0, and `run` must report no finding about it. A few
libraries do not hang in a child. For such a library, the program and its twin must both end with status 0, and `run`
must report nothing.

This test compiles the programs into FOLDER. If a Debian package is missing, the test prints its name and exits with status 77.
"""
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
MODULES = Path("/usr/lib/python3/dist-packages")
PYTHON = "/usr/bin/python3"
LIMIT_S = 60
BUILD_LIMIT_S = 600
POOL = ("lost-thread-pool", "proven", "likely")
# Python has a signal handler for SIGINT. A signal handler may wake a thread, so the hang is likely, not proven.
POOL_IN_PYTHON = ("lost-thread-pool", "likely", "likely")
NO_HANG = None
# Maps the name of a library to four values: a file of the Debian package, the name of the package, the expected finding
# or NO_HANG, and words of the expected summary. If `why` must report another finding than `run`, two more values
# follow. They are the finding of `why`, and words of the summary of this finding.
LIBRARIES = {
    "eigen": (Path("/usr/include/eigen3/unsupported/Eigen/CXX11/ThreadPool"), "libeigen3-dev", POOL, "Eigen pool of 2 threads"),
    "abseil": (Path("/usr/include/absl/synchronization/mutex.h"), "libabsl-dev", ("lost-wakeup", "proven", "possible"), "an abseil Mutex or CondVar"),
    "rayon": (CRATES / "rayon-core-*", "librust-rayon-dev", POOL, "rayon pool of 2 threads"),
    "tokio": (CRATES / "tokio-1*", "librust-tokio-dev", POOL, "tokio pool of 2 threads"),
    "rust_mutex": (Path("/usr/bin/cargo"), "cargo", ("lost-wakeup", "proven", "possible"), "a Rust std::sync::Mutex"),
    "parking_lot": (CRATES / "parking_lot-0*", "librust-parking-lot-dev", ("lost-wakeup", "proven", "possible"), "a parking_lot lock"),
    "crossbeam": (CRATES / "crossbeam-0*", "librust-crossbeam-dev", ("lost-wakeup", "proven", "possible"), "Rust's thread::park()"),
    "onednn": (Path("/usr/include/oneapi/dnnl/dnnl.hpp"), "libdnnl-dev", ("lost-openmp-pool", "proven", "proven"), "libgomp pool of 2 threads"),
    "mkl": (Path("/usr/include/mkl/mkl.h"), "libmkl-dev", ("mixed-openmp-runtimes", "proven", "proven"), "libgomp.so"),
    "opencv": (Path("/usr/include/opencv4/opencv2/core.hpp"), "libopencv-core-dev", NO_HANG, ""),
    "c10": (MODULES / "torch", "python3-torch", POOL_IN_PYTHON, "PyTorch (c10, ATen) pool of 2 threads"),
    "aws_crt": (MODULES / "awscrt", "python3-awscrt", POOL_IN_PYTHON, "AWS CRT pool of 1 thread,"),
    "grpc": (MODULES / "grpc", "python3-grpcio", NO_HANG, ""),
    # `why` does not see which fork handlers a program has.
    "arrow": (Path("/usr/include/arrow/api.h"), "libarrow-dev", POOL, "Arrow pool of 1 thread", ("lost-wakeup", "proven", "possible"),
              "1 thread of its parent was not copied"),
}
# Words that the explanation of the finding must have. The programs of these libraries are compiled with little
# optimisation or none.
HOLDER = "The address of the lock is on the stack of another thread: thread "
EXPLANATIONS = {"abseil": HOLDER, "rust_mutex": HOLDER, "parking_lot": HOLDER}
# The options of the compiler in addition to -pthread. If the value is None, pkg-config gives the options.
FLAGS = {"abseil": None, "arrow": ["-std=c++20", "-larrow"], "eigen": ["-I/usr/include/eigen3"], "mkl": ["-I/usr/include/mkl", "-Wl,--no-as-needed", "-lgomp", "-lmkl_rt"],
         "onednn": ["-ldnnl"], "opencv": ["-I/usr/include/opencv4", "-lopencv_core"]}


def find_missing(name):
    path, package, *_ = LIBRARIES[name]
    if not list(path.parent.glob(path.name)):
        return package
    if MODULES in path.parents:
        return None
    tool, of = ("cargo", "cargo") if CRATES in path.parents else ("g++", "g++")
    return None if shutil.which(tool) else of


def call(argv, **options):
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)
    return done


def build(name, folder, variant):
    """Builds the program, or its repaired twin if `variant` is true. Returns the command that starts it."""
    if MODULES in LIBRARIES[name][0].parents:
        return [PYTHON, str(SOURCES / f"{name}.py"), *(["repaired"] if variant else [])]
    program = folder / f"{name}{'.repaired' if variant else ''}"
    if (SOURCES / name / "Cargo.toml").exists():
        target = folder / f"cargo-{name}"
        argv = ["cargo", "build", "--offline", "--manifest-path", SOURCES / name / "Cargo.toml", "--config",
                'source.crates-io.replace-with="debian"', "--config", f'source.debian.directory="{CRATES}"', "--target-dir", target]
        shutil.copytree(SOURCES / name, folder / f"source-{name}", dirs_exist_ok=True)  # cargo writes a file beside Cargo.toml
        argv[4] = folder / f"source-{name}/Cargo.toml"
        done = call([*argv, *(["--features", "repaired"] if variant else [])], timeout=BUILD_LIMIT_S)
        made = target / f"debug/owner-{name}"
    else:
        flags = FLAGS[name] or call(["pkg-config", "--cflags", "--libs", "absl_synchronization"]).stdout.split()
        made = folder / f"{name}.new"
        done = call(["g++", "-std=c++17", "-g", "-O1", *(["-DREPAIRED"] if variant else []), SOURCES / f"{name}.cpp", "-o", made,
                     "-pthread", *flags], timeout=BUILD_LIMIT_S)
    if done.returncode != 0:
        raise SystemExit(f"{name} cannot be built: {done.stderr}")
    shutil.copy2(made, program)
    return [str(program)]


def problem_of(report, name, verb):
    """Returns a text that says how the report differs from the expected one, or "" if it does not differ."""
    finding, words = LIBRARIES[name][-2:] if verb == "why" else LIBRARIES[name][2:4]
    told = [(one["rule"], one["hang"], one["cause"]) for one in report["findings"]]
    if told != [finding]:
        return f"expected {finding}, found {told}"
    summary, chain = report["findings"][0]["summary"], " ".join(report["findings"][0]["chain"])
    if words not in summary:
        return f"expected {words!r} in: {summary}"
    explanation = EXPLANATIONS.get(name, "")
    return "" if explanation in chain else f"expected {explanation!r} in: {chain}"


def look(forksight, program, name):
    with tempfile.TemporaryDirectory(prefix="forksight-owners-") as folder:
        process = processes.Program(program, folder)
        try:
            seen = process.watch(LIMIT_S)
            done = call([forksight, "why", process.popen.pid, "--format", "json"], timeout=LIMIT_S)
        finally:
            process.end()
    return problem_of(json.loads(done.stdout), name, "why") if seen == "hang" else f"expected a hang, seen {seen}"


def run(forksight, program, name, is_well):
    with tempfile.TemporaryDirectory(prefix="forksight-owners-") as folder:
        file = Path(folder, "report.json")
        cures = [] if is_well else ["--cure", "none"]
        process = processes.Program([forksight, "run", *cures, "--on-hang", "kill", "--kill-on", "likely", "--out", folder, "--format", "json",
                                     "--report", str(file), "--", *program], folder)
        try:
            status = process.wait(LIMIT_S)
        finally:
            process.end()
        if status is None:
            return "`forksight run` did not end"
        report = json.loads(file.read_text())
    if is_well:
        return "" if status == 0 and not report["findings"] else f"status {status}, found {report['findings']}"
    return problem_of(report, name, "run")


def main():
    forksight, folder, name = sys.argv[1:]
    missing = find_missing(name)
    if missing:
        print(f"skipped: this needs {missing}")
        return 77
    os.environ.update(PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="2")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    program, repaired = build(name, folder, False), build(name, folder, True)
    processes.become_reaper()
    hangs = LIBRARIES[name][2] is not NO_HANG
    problems = {"why": look(forksight, program, name)} if hangs else {}
    problems["run"] = run(forksight, program, name, not hangs)
    problems["run, repaired"] = run(forksight, repaired, name, True)
    for where, problem in problems.items():
        print(f"{where}: {problem or 'as expected'}")
    return 1 if any(problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
