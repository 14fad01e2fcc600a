"""idle_minutes.py FORKSIGHT WAYS_OUT NO_LIBC [SECONDS LOOKS]: runs idle programs for SECONDS (default: 600).

Some are real programs that wait for input. The others are daemons with signal handlers. All programs run at the same time,
each under `forksight run --on-hang kill`. The test runs `forksight why` LOOKS times (default: 10) on each program. Neither command may
report a finding, and `run` must not kill a program. At the end, each program must still do its work.
"""
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from idle_servers import SERVERS
from idle_starts import Started, communicate
from processes import become_reaper, read_or_empty
from ways_out import FOUND, programs

SECONDS = 600
LOOKS = 10
LIMIT_S = 60


class Filter(Started):
    """A program that must print `answer` for the input `question`, and must end when its input ends."""

    def __init__(self, name, argv, question=b"idle\n", answer=b"idle\n", status=0):
        self.question, self.answer, self.status = question, answer, status
        super().__init__(name, argv)

    def go_on(self):
        out, _ = self.popen.communicate(self.question, timeout=LIMIT_S)
        return [] if self.answer in out and self.popen.returncode == self.status else [
            f"{self.name}: {out!r}, status {self.popen.returncode}"]


class Follower(Started):
    """A program that waits for a file to grow."""

    def __init__(self, folder):
        self.path = Path(folder, "followed")
        self.path.write_text("")
        super().__init__("tail", ["tail", "-f", str(self.path)])

    def go_on(self):
        self.path.write_text("grown\n")
        line = self.popen.stdout.readline()
        return [] if line == b"grown\n" else [f"tail: {line!r}"]


class Waiter(Started):
    """A shell that waits for its child. The child reads a FIFO."""

    def __init__(self, folder):
        self.path = Path(folder, "fifo")
        os.mkfifo(self.path)
        super().__init__("waiting_shell", ["bash", "-c", f"cat {self.path} & wait $!; echo 42"])

    def go_on(self):
        self.path.write_text("x\n")
        said = communicate(self.popen, LIMIT_S)
        return [] if said == "x\n42" else [f"{self.name}: {said!r}"]


class Daemon(Started):
    """A program that exits with status 7 when it gets the signal `end`."""

    def __init__(self, name, argv, end):
        self.end_signal = end
        super().__init__(name, argv)
        if self.popen.stdout.read(1) != b"x":
            raise RuntimeError(f"{name} did not start")

    def go_on(self):
        os.kill(command_of(self), self.end_signal)
        communicate(self.popen, LIMIT_S)
        return [] if self.popen.returncode == 7 else [f"{self.name}: status {self.popen.returncode}, not 7"]


def real_programs():
    filters = [
        lambda folder: Filter("cat", ["cat"]),
        lambda folder: Filter("sort", ["sort"]),
        lambda folder: Filter("grep", ["grep", "idle"]),
        lambda folder: Filter("sed", ["sed", "-u", "p"]),
        lambda folder: Filter("perl", ["perl", "-ne", "print 6 * $_"], b"7\n", b"42"),
        lambda folder: Filter("make", ["make", "-s", "-f", str(makefile(folder))]),
        lambda folder: Filter("tee", ["tee"]),
        lambda folder: Filter("timeout", ["timeout", "7200", "cat"]),
        lambda folder: Filter("xargs", ["xargs", "echo"]),
        Follower,
        Waiter,
    ]
    return [*SERVERS, *filters]


def makefile(folder):
    path = Path(folder, "makefile")
    path.write_text("all:\n\tcat\n")
    return path


def daemons(ways_out, no_libc):
    return [(name, argv, end) for name, argv, end, _ in programs(ways_out, no_libc) if end is not None]


def command_of(program):
    """Returns the pid of the program that `forksight run` started, or 0 if the program has ended."""
    children = read_or_empty(f"/proc/{program.pid}/task/{program.pid}/children").split()
    return int(children[0]) if children else 0


def ask(forksight, program):
    pid = command_of(program)
    if pid == 0:
        return [f"{program.name}: the program has ended"]
    done = subprocess.run([forksight, "why", str(pid)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return [] if done.returncode == 0 else [f"{program.name}: `why` ends with {done.returncode}: {done.stdout}{done.stderr}"]


def check_report(path):
    """Returns [a line with the report] if the report names a hang, even a withdrawn one. Returns [] otherwise."""
    said = path.read_text(errors="replace")
    return [f"{path.stem}: {said}"] if any(word in said for word in ("HANG", "unexplained", "withdrawn")) else []


def main():
    forksight, ways_out, no_libc = sys.argv[1:4]
    seconds, looks = (float(sys.argv[4]), int(sys.argv[5])) if len(sys.argv) > 4 else (SECONDS, LOOKS)
    become_reaper()
    lines, started = [], []
    with tempfile.TemporaryDirectory(prefix="forksight-idle-") as folder:
        reports = Path(folder, "reports")
        reports.mkdir(mode=0o777)
        os.chmod(folder, 0o755)
        os.chmod(reports, 0o777)  # postgres runs as another user

        def under_run(name, argv):
            return [forksight, "run", "--on-hang", "kill", "--error-exitcode", str(FOUND), "--fail-on", "possible", "--out",
                    str(reports / f"{name}.out"), "--report", str(reports / f"{name}.txt"), "--", *argv]

        Started.wrap = under_run
        try:
            for make in real_programs():
                started.append(make(folder))
            real = len(started)
            for name, argv, end in daemons(ways_out, no_libc):
                started.append(Daemon(f"daemon_{name}", argv, end))
            begin = time.monotonic()
            for look in range(looks):
                until = begin + seconds * (look + 1) / looks
                for program in started:
                    lines += ask(forksight, program)
                time.sleep(max(0.0, until - time.monotonic()))
            for program in started:
                lines += program.go_on()
        finally:
            for program in started:
                program.end()
        for program in started:
            lines += check_report(reports / f"{program.name}.txt")
    print(f"{real} real programs and {len(started) - real} daemons for {seconds:.0f} s, {looks} looks at each")
    print("\n".join(lines))
    return 1 if lines or real < 20 or len(started) - real < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
