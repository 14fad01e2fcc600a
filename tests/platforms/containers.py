"""containers.py --packages DIR --roots DIR: a program hangs in the root of a Debian release, in namespaces of its own.
The command from the packages examines the program from outside. Then the command examines the program from a container
for debugging, which shares the program's pid namespace and has another libc. platforms.py makes the roots and the
programs.

The program runs in two ways. In the first way, the user is root, and the program has its own root folder, and its own
mount, pid and network namespaces. In the second way, bubblewrap starts the program as the user nobody, and the program
also has its own user namespace. If the script needs something that is missing, the script prints what is missing, and
exits with 77."""
import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = "orphaned_mutex.O2"
LIMIT_S = 60
NOBODY = 65534
# The release in whose root the program hangs, and the release of the container for debugging.
PAIRS = (("bullseye", "trixie"), ("trixie", "bullseye"))


def missing(arguments):
    wanted = {"the rights of root": os.geteuid() == 0, "nsenter": shutil.which("nsenter"),
              "the packages: ./bootstrap package makes them": list(arguments.packages.glob("*.tar.zst")),
              "bubblewrap": shutil.which("bwrap")}
    for release in {name for pair in PAIRS for name in pair}:
        wanted[f"the root of {release}: the test package.platforms makes it"] = (arguments.roots / f"{release}.done").exists()
    wanted["the programs: the test package.platforms makes them"] = (arguments.roots / "programs/done").exists()
    return [what for what, there in wanted.items() if not there]


def status_of(pid):
    try:
        return dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    except OSError:
        return {}


def descendants(pid):
    found, ahead = [], [pid]
    while ahead:
        at = ahead.pop()
        try:
            children = [int(word) for task in Path(f"/proc/{at}/task").iterdir() for word in (task / "children").read_text().split()]
        except OSError:
            continue
        found += children
        ahead += children
    return found


class Contained:
    """The hanging program. `with` yields two pids of the program: outside of its pid namespace, and inside."""

    def __init__(self, argv):
        self.popen = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      start_new_session=True)

    def __enter__(self):
        last = time.monotonic() + LIMIT_S
        while time.monotonic() < last:
            for pid in descendants(self.popen.pid):
                status = status_of(pid)
                if status.get("Name", "").strip() == PROGRAM[:15] and Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                    numbers = status["NSpid"].split()
                    if len(numbers) < 2:
                        raise SystemExit(f"process {pid} is in no namespace of its own")
                    return pid, int(numbers[-1])
            time.sleep(0.1)
        raise SystemExit(f"{PROGRAM} did not fork in {LIMIT_S} s (status {self.popen.poll()})")

    def __exit__(self, *_):
        # When the first process of a pid namespace ends, the kernel kills all other processes of that namespace. So
        # some of the descendants may be gone by now.
        for pid in descendants(self.popen.pid):
            if len(status_of(pid).get("NSpid", "").split()) > 1:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
        self.popen.wait(timeout=LIMIT_S)


def problem_of(argv):
    """Returns "", or what is wrong with the report. Tries again for a while, because the program needs a moment before it hangs."""
    last = time.monotonic() + LIMIT_S
    while True:
        done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        try:
            findings = json.loads(done.stdout)["findings"]
        except ValueError:
            return f"no report (status {done.returncode}): {done.stderr}"
        told = [(one["rule"], one["hang"], one["culprit"]["name"]) for one in findings]
        if told == [("orphaned-mutex", "proven", "queue_mutex (mutex)")]:
            # The source line comes from the debug information of the program, which is in the program's root.
            return "" if "orphaned_mutex.cpp:" in findings[0]["summary"] else f"no line: {findings[0]['summary']}"
        if time.monotonic() > last:
            return f"found {told or 'nothing'}: {done.stderr}"
        time.sleep(0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--roots", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.roots, arguments.packages = arguments.roots.resolve(), arguments.packages.resolve()
    for what in missing(arguments):
        print(f"skipped: this needs {what}")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory(prefix="forksight-containers-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(arguments.roots / "programs", folder / "suite")
        (folder / "forksight").mkdir()
        archive = next(path for path in arguments.packages.glob("*.tar.zst") if "-debug" not in path.name)
        subprocess.run(["tar", "-C", folder / "forksight", "--strip-components=1", "--use-compress-program=zstd", "-xf", archive], check=True)
        why = ["why", "--format", "json"]
        for target, debugger in PAIRS:
            entered = [HERE / "enter.sh", arguments.roots / target, folder, f"/mnt/suite/bin/{PROGRAM}"]
            # Like a rootless container, this container has a user namespace that the user nobody made, and its own
            # namespace of each other kind.
            rootless = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "bwrap", "--unshare-all", "--ro-bind",
                        arguments.roots / target, "/", "--proc", "/proc", "--dev", "/dev", "--bind", folder, "/mnt",
                        f"/mnt/suite/bin/{PROGRAM}"]
            for how, argv in (("as root", entered), ("rootless", rootless)):
                with Contained(argv) as (pid, own):
                    looks = {
                        "from outside": [folder / "forksight/bin/forksight", *why, pid],
                        f"from {debugger} beside it": [HERE / "enter.sh", "--beside", pid, arguments.roots / debugger, folder,
                                                       "/mnt/forksight/bin/forksight", *why, own],
                    }
                    for where, look in looks.items():
                        problem = problem_of(look)
                        failed += bool(problem)
                        print(f"{target}, {how}, {where}: {problem or 'orphaned-mutex, proven, with its line'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
