"""Runs the Python programs of repro/python with the interpreters of other Linux distributions. Each distribution is in a root
folder of its own on this machine.
Checks what forksight reports about the programs.

  in_root.py COMMAND SHIM CASES      COMMAND, SHIM: from the build; CASES: the folder repro/python

FORKSIGHT_PYTHON_ROOTS names the folders and interpreters: "ROOT:INTERPRETER ROOT:INTERPRETER ...", for example
"/srv/trixie:/usr/bin/python3.13". A root folder needs /proc, and a glibc that is not older than the glibc of this system. The
test uses chroot, so root must run it.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIPPED = 77
FOLDER = "opt/forksight-test"
DEADLINE = 30  # seconds within which forksight must find a hang
# Libraries that are not copied, because the root folder contains its own.
OF_THE_ROOT = ("libc.so", "libm.so", "ld-linux", "linux-vdso")
# The programs that hang, and the rule that explains each hang.
HANGS = {
    "lock.py": "python-lock-orphaned",
    "queue_mutex.py": "python-lock-orphaned",
    "buffered_writer.py": "python-lock-orphaned",
    "pool_worker.py": "python-lock-orphaned",
    "module_import.py": "python-lock-orphaned",
    "start_methods.py": "python-lock-orphaned",
    "executor.py": "lost-wakeup",
    "feeder.py": "lost-feeder-thread",
}
SILENT = [name for name in HANGS if name != "start_methods.py"]  # forksight must report nothing about the variant "repaired" of these programs
CERTAINTIES = ["proven", "likely", "possible"]
RECURSIVE = "recursive_lock.py"
# From this version on, an RLock records its owner. In earlier versions it is a semaphore.
FIRST_WITH_OWNER = (3, 14)
# With these versions, the shim cannot find the files and lines of Python frames, because the interpreter does not export
# the functions that the shim needs.
WITHOUT_LINES_IN_TRACES = ((3, 9), (3, 10))
# `run` recognises the hang of these programs only if the trace has the files and lines of Python frames.
NEED_LINES_IN_TRACES = ("feeder.py",)


class Problem(Exception):
    pass


class Root:
    def __init__(self, root, interpreter, command, shim, cases):
        self.root, self.interpreter = Path(root), interpreter
        self.folder = self.root / FOLDER
        shutil.rmtree(self.folder, ignore_errors=True)
        for part in ("bin", "lib"):
            (self.folder / part).mkdir(parents=True)
        self.install(command)
        shutil.copy(shim, self.folder / "lib" / "libforksight.so")
        shutil.copytree(cases, self.folder / "cases", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(Path(__file__).parent / RECURSIVE, self.folder / "cases")
        version = self.run([interpreter, "-c", "import sys; print(*sys.version_info[:2])"]).stdout
        self.version = tuple(int(part) for part in version.split())

    def install(self, command):
        """Copies the command, and the libraries that it needs if it is not linked statically."""
        copy = self.folder / "bin" / "forksight"
        shutil.copy(command, copy)
        needed = subprocess.run(["ldd", command], capture_output=True, text=True, timeout=60).stdout
        libraries = [words[2] for words in map(str.split, needed.splitlines()) if len(words) > 2 and words[1] == "=>"]
        libraries = [path for path in libraries if not Path(path).name.startswith(OF_THE_ROOT)]
        for path in libraries:
            library = shutil.copy(path, self.folder / "lib")
            subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", library], check=True, timeout=60)
        if libraries:
            subprocess.run(["patchelf", "--set-rpath", "$ORIGIN/../lib", copy], check=True, timeout=60)

    def run(self, command, timeout=120):
        return subprocess.run(["chroot", self.root, *command], capture_output=True, text=True, timeout=timeout)

    def forksight(self, *arguments):
        result = self.run([f"/{FOLDER}/bin/forksight", *arguments])
        return json.loads(result.stdout) if result.stdout else {"findings": [], "limits": [result.stderr]}

    def python(self, name, variant=""):
        return [self.interpreter, "-B", f"/{FOLDER}/cases/{name}", variant]

    def why(self, name):
        """Returns the report of `why` about the case. Runs `why` again until it finds something, because the case needs some
        time before it hangs."""
        case = subprocess.Popen(["chroot", self.root, *self.python(name)], start_new_session=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + DEADLINE
            while True:
                report = self.forksight("why", str(case.pid), "--format", "json")
                if report["findings"] or time.monotonic() > deadline or case.poll() is not None:
                    return report
                time.sleep(0.2)
        finally:
            try:
                os.killpg(case.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # the case has ended
            case.wait()

    def watched(self, name, variant=""):
        with tempfile.TemporaryDirectory(dir=self.folder) as out:
            inside = "/" + str(Path(out).relative_to(self.root))
            self.run([f"/{FOLDER}/bin/forksight", "run", "--omp=observe", "--on-hang", "kill", "--kill-on", "likely",
                      "--out", inside, "--format", "json", "--report", inside + "/report.json", "--",
                      *self.python(name, variant)])
            return json.loads((Path(out) / "report.json").read_text())


def find_marked(script, mark):
    """Returns the number of the line with this mark. Returns None if no line has the mark. No line has the mark if the
    standard library calls fork, not the script itself."""
    lines = script.read_text().splitlines()
    return next((number for number, text in enumerate(lines, 1) if text.rstrip().endswith(f"# MARK: {mark}")), None)


def has_line(stack, name, number):
    return any(frame.get("python") and frame["file"].endswith("/" + name) and number in (None, frame["line"])
               for frame in stack)


def find(report, rule):
    found = [finding for finding in report["findings"] if finding["rule"] == rule and finding["outcome"] == "hang"]
    if not found:
        rules = [f"{finding['rule']} {finding['outcome']}" for finding in report["findings"]]
        raise Problem(f"expected {rule} hang, not {rules}; limits: {report['limits']}")
    return found[0]


def check_hang(root, name, rule):
    script = root.folder / "cases" / name
    certainties = {}
    has_lines = root.version not in WITHOUT_LINES_IN_TRACES
    for view, look in (("why", root.why), ("run", root.watched)):
        if view == "run" and not has_lines and name in NEED_LINES_IN_TRACES:
            return
        report = look(name)
        finding = find(report, rule)
        if not has_line(finding["stack"], name, find_marked(script, "touch")):
            raise Problem(f"{view}: the report does not have the line of the wait: {finding['summary']}")
        if view == "run" and has_lines and not has_line(finding["fork"]["stack"], name, find_marked(script, "fork")):
            raise Problem(f"{view}: the report does not have the line of the fork: {finding['summary']}")
        if [limit for limit in report["limits"] if "Python" in limit]:
            raise Problem(f"{view}: {report['limits']}")
        certainties[view] = finding["hang"]
    # `run` must be as certain as `why`. A signal handler can end a wait, so it makes a hang less certain. The shim's own
    # handler must not have this effect.
    if CERTAINTIES.index(certainties["run"]) > CERTAINTIES.index(certainties["why"]):
        raise Problem(f"`run` is less certain than `why`: {certainties}")


def check_silent(root, name):
    report = root.watched(name, "repaired")
    if report["findings"]:
        raise Problem(f"the report has findings about the repaired program: {[finding['summary'] for finding in report['findings']]}")


def check_owner(root):
    finding = find(root.why(RECURSIVE), "python-lock-orphaned")
    holder = finding["culprit"]["holder"]
    if root.version >= FIRST_WITH_OWNER and (holder["tid"] == 0 or holder["start_routine"] != "load"):
        raise Problem(f"the report does not name the owner of the RLock: {holder}")


def check_root(root):
    problems = 0
    checks = [(name, check_hang, (name, rule)) for name, rule in HANGS.items()]
    checks += [(f"{name} repaired", check_silent, (name,)) for name in SILENT]
    checks += [(RECURSIVE, check_owner, ())]
    for name, check, arguments in checks:
        try:
            check(root, *arguments)
            print(f"{root.interpreter} {name}: ok", flush=True)
        except Problem as problem:
            problems += 1
            print(f"{root.interpreter} {name}: {problem}", flush=True)
    return problems


def main():
    command, shim, cases = (Path(argument) for argument in sys.argv[1:4])
    named = os.environ.get("FORKSIGHT_PYTHON_ROOTS", "").split()
    if not named:
        print("skipped: FORKSIGHT_PYTHON_ROOTS names no roots")
        sys.exit(SKIPPED)
    if os.geteuid() != 0:
        print("skipped: chroot needs root's rights")
        sys.exit(SKIPPED)
    problems = 0
    for name in named:
        path, _, interpreter = name.partition(":")
        if not (Path(path) / "proc/self").exists():
            print(f"skipped: {path} has no /proc")
            sys.exit(SKIPPED)
        root = Root(path, interpreter, command, shim, cases)
        print(f"{path}: CPython {'.'.join(map(str, root.version))}")
        try:
            problems += check_root(root)
        finally:
            shutil.rmtree(root.folder)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
