"""Runs sessions of pytest with the plugin: checks which tests fail, what their explanations say, and that no process is left
behind."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT = 100

# Maps a test to a pattern that its explanation must match. A lock of Python does not record its holder. So for test_two_locks the
# explanation only shows the lines where the threads wait.
HANGS = {
    "test_child_of_a_held_lock": "HANG[^\n]*: python-lock-orphaned",
    "test_pool_join": "HANG[^\n]*: python-lock-orphaned",
    "test_two_locks": r"in a futex without a timeout\n.*\n *test_two_locks +test_hangs.py:[0-9]+\n(.*\n)*? *other +test_hangs.py:[0-9]+\n",
}


class Session:
    def __init__(self, line, sample, *options):
        self.folder = Path(tempfile.mkdtemp(prefix="forksight-pytest-"))
        shutil.copy(HERE / f"sample_{sample}.py", self.folder / f"test_{sample}.py")
        self.mark = f"FORKSIGHT_TEST_MARK={self.folder}"
        environment = {**os.environ, "FORKSIGHT": line.forksight, "PYTHONPATH": line.package, "PYTHONDONTWRITEBYTECODE": "1"}
        environment.update([self.mark.split("=", 1)])
        command = [sys.executable, "-m", "pytest", "-p", "forksight.pytest_plugin", "--forksight-timeout", "3", "--forksight-out", "out",
                   "--junitxml", "junit.xml", *options, f"test_{sample}.py"]
        with open(self.folder / "log.txt", "w+", encoding="utf-8") as log:
            self.status = subprocess.run(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                         stderr=subprocess.STDOUT, timeout=LIMIT, check=False).returncode
            log.seek(0)
            self.log = log.read()
        self.cases = {case.get("name"): case for case in xml.parse(self.folder / "junit.xml").iter("testcase")}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            print(self.log)
        shutil.rmtree(self.folder)

    def failure(self, name):
        """Returns what junit.xml says about a failed test, or None if the test passed. If the worker of the test was killed,
        junit.xml has an `error` instead of a `failure`."""
        found = [one for one in self.cases[name] if one.tag in ("failure", "error")]
        return f"{found[0].get('message')}\n{found[0].text}" if found else None

    def files(self):
        return sorted(path.name for path in (self.folder / "out").glob("pytest-*.txt"))

    def find_left(self):
        """Returns the command lines of the processes of this session that still exist."""
        left = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.mark.encode() in path.read_bytes():
                    left.append((path.parent / "cmdline").read_text())
            except OSError:
                pass
        return left

    def check_nothing_is_left(self):
        until = time.monotonic() + 10
        while self.find_left() and time.monotonic() < until:
            time.sleep(0.1)
        assert not self.find_left(), self.find_left()


def check_hangs(session):
    assert session.status == 1, session.status
    assert re.search(r"3 failed, 17 passed", session.log)
    for name, pattern in HANGS.items():
        text = session.failure(name)
        assert text and re.search(pattern, text), (name, text)
        assert "its call has not ended after 3 s" in text, (name, text)
        assert any(name in file for file in session.files()), session.files()
    assert sum(session.failure(name) is None for name in session.cases) == 17
    session.check_nothing_is_left()


def check_alone(line):
    with Session(line, "hangs", "--forksight=observe") as session:
        check_hangs(session)


def check_xdist(line):
    with Session(line, "hangs", "--forksight=observe", "-n", "2") as session:
        check_hangs(session)


def check_native(line):
    """A session without workers writes a report and junit.xml, and is then killed. With one worker, only the hung worker is
    killed, and the session goes on."""
    with Session(line, "native", "--forksight=observe") as session:
        assert session.status == -9, session.status
        assert "cannot be interrupted: the session is ended by SIGKILL" in session.log
        assert session.failure("test_before") is None
        assert "test_native_lock" in session.failure("test_native_lock")
        assert "hangs" in session.failure("test_native_lock")
        session.check_nothing_is_left()
    with Session(line, "native", "--forksight=observe", "-n", "1") as session:
        assert session.status == 1, session.status
        assert "1 failed, 1 passed" in session.log
        assert "crashed while running" in session.failure("test_native_lock")
        assert "its call has not ended after 3 s" in session.failure("test_native_lock")
        session.check_nothing_is_left()


def check_stubborn(line):
    """A test that catches each interruption and waits again is finally ended by SIGKILL, together with its session."""
    with Session(line, "stubborn", "--forksight=observe") as session:
        assert session.status == -9, session.status
        log = session.log.replace("\n", " ")
        assert "test_catches_all waits in Python code that catches each interruption and cannot be interrupted" in log, log
        assert "the session is ended by SIGKILL" in log, log
        assert session.failure("test_before") is None
        assert "its call has not ended after 3 s" in session.failure("test_catches_all")
        session.check_nothing_is_left()


def check_busy(line):
    """The slow test fails when its native code returns. The session goes on."""
    with Session(line, "busy", "--forksight=observe") as session:
        assert session.status == 1, session.status
        assert "test_busy is still at work in native code" in session.log.replace("\n", " "), session.log
        assert "its call has not ended after 3 s" in session.failure("test_busy")
        assert session.failure("test_after") is None
        session.check_nothing_is_left()


def check_exit(line):
    with Session(line, "exit", "--forksight=observe") as session:
        assert session.status == 1, session.status
        assert "1 passed" in session.log
        assert "exit: its exit has not ended after 3 s" in session.log
        assert session.files() == ["pytest-exit.txt"], session.files()
        session.check_nothing_is_left()


    with Session(line, "exit", "--forksight=observe", "-n", "1") as session:
        assert "1 passed" in session.log
        assert "exit: its exit has not ended after 3 s" in session.log
        assert session.files() == ["pytest-exit.txt"], session.files()
        session.check_nothing_is_left()


def check_idle(line):
    """A worker without tests waits longer than the limit for the other worker. That is no hang."""
    with Session(line, "idle", "--forksight=observe", "-n", "2", "--dist", "loadscope") as session:
        assert session.status == 0, session.status
        assert "6 passed" in session.log
        assert "no end of" not in session.log
        assert session.files() == [], session.files()
        session.check_nothing_is_left()


def check_auto(line):
    with Session(line, "auto", "--forksight=auto") as session:
        assert session.status == 0, session.status
        assert "forksight: auto, under the shim" in session.log
        assert session.files() == [], session.files()
        session.check_nothing_is_left()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("session", choices=("alone", "xdist", "native", "stubborn", "busy", "exit", "idle", "auto"))
    parser.add_argument("--forksight", required=True)
    parser.add_argument("--package", required=True)
    line = parser.parse_args()
    globals()[f"check_{line.session}"](line)


if __name__ == "__main__":
    main()
