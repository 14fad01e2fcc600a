"""stopped_test.py FORKSIGHT: another process stops or kills the processes that read for forksight, or forksight must write to a
FIFO that nobody reads. The command must still end soon, with the right exit status, and must say what happened."""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from bounded import FORKS, LIMIT_S

FORKSIGHT = sys.argv.pop(1)
SOON_S = 30  # forksight gives up after five seconds in which its children were stopped
AGAIN_S = 0.02  # how long the test waits until it stops a process again


def read(path):
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def state_of(pid):
    return read(f"/proc/{pid}/stat").rpartition(") ")[2][:1]


def readers_of(pid):
    """Returns the children of forksight that read or open files, in the order in which they were made. The last one reads. If root
    runs forksight, another one opens files for it. Only these children have a filter of system calls. A child that will start the
    command of `run` has none."""
    found = []
    for child in map(int, read(f"/proc/{pid}/task/{pid}/children").split()):
        try:
            has_filter = "\nSeccomp:\t2\n" in read(f"/proc/{child}/status")
            if has_filter and os.path.samefile(f"/proc/{child}/exe", FORKSIGHT):
                found.append(child)
        except OSError:
            pass
    return found


def send(pid, number):
    """Signals a child of a command that this test has started, and that it has not reaped. So the pid is still valid."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Stopper:
    """Stops all readers of a command again and again, until the command ends."""

    def __init__(self, command, pace_s=AGAIN_S):
        self.command = command
        self.pace_s = pace_s
        self.ends = threading.Event()
        self.stops = 0
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        while not self.ends.wait(self.pace_s):
            for reader in readers_of(self.command):
                if state_of(reader) not in ("T", "Z", ""):
                    send(reader, signal.SIGSTOP)
                    self.stops += 1

    def end(self):
        self.ends.set()
        self.thread.join()


class Command:
    def __init__(self, *argv, **options):
        self.popen = subprocess.Popen([FORKSIGHT, *map(str, argv)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, **options)
        self.pid = self.popen.pid

    def end(self, limit_s=SOON_S):
        """Returns the exit status and what the command has written to standard error."""
        try:
            _, error = self.popen.communicate(timeout=limit_s)
        finally:
            if self.popen.returncode is None:
                self.popen.kill()
                self.popen.communicate()
        return self.popen.returncode, error


class Base(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-stopped-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            found = condition()
            if found:
                return found
            time.sleep(0.01)
        self.fail(f"waited in vain: {what}")

    def watch(self):
        """Starts a `why` that reads until it is ended: the examined process does not hang for ever."""
        target = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        command = Command("why", "--watch", target.pid)
        self.addCleanup(command.popen.wait)
        self.addCleanup(command.popen.kill)
        count = 2 if os.geteuid() == 0 and self.has_opener(command) else 1
        return command, self.wait_for(lambda: readers_of(command.pid)[:count], "a process that reads")

    def has_opener(self, command):
        """True if two children appear. As root in a container with few capabilities, there is only one."""
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            if len(readers_of(command.pid)) == 2:
                return True
            time.sleep(0.01)
        return False


class Stopped(Base):
    def test_a_reader_that_was_stopped_goes_on(self):
        command, readers = self.watch()
        for reader in readers:
            send(reader, signal.SIGSTOP)
        self.wait_for(lambda: all(state_of(reader) == "T" for reader in readers) or None, "the readers stop")
        self.wait_for(lambda: all(state_of(reader) in ("R", "S", "D") for reader in readers), "the readers go on")
        command.popen.terminate()
        status, error = command.end()
        self.assertEqual(status, -signal.SIGTERM, error)

    def test_a_reader_that_is_stopped_for_ever_is_ended(self):
        command, _ = self.watch()
        stopper = Stopper(command.pid)
        try:
            status, error = command.end()
        finally:
            stopper.end()
        self.assertGreater(stopper.stops, 1)
        self.assertEqual(status, 3, error)
        self.assertIn("a signal stopped it again and again", error)


    def test_a_run_ends_with_the_status_of_its_command(self):
        """The reader of a run lives only for some milliseconds. So the test runs the command until it has stopped a reader."""
        for verb in (["run"], ["ci", "--timeout", "100s"]):
            with self.subTest(verb=verb):
                stops = 0
                for _ in range(20):
                    command = Command(*verb, "--out", "out", "--", sys.executable, "-c", FORKS + "sys.exit(7)", cwd=self.folder)
                    stopper = Stopper(command.pid, pace_s=0.0005)
                    try:
                        status, error = command.end(LIMIT_S)
                    finally:
                        stopper.end()
                    self.assertEqual(status, 7, error)
                    stops += stopper.stops
                    if stops > 0:
                        break
                self.assertGreater(stops, 0)


class Killed(Base):
    def test_both_reasons_are_named(self):
        """SIGKILL may come from a process or from the kernel."""
        command, readers = self.watch()
        send(readers[-1], signal.SIGKILL)
        status, error = command.end()
        self.assertEqual((status, len(error.strip().splitlines())), (3, 1), error)
        self.assertIn("was ended by signal 9", error)
        self.assertIn("somebody killed it, or the kernel had no memory left", error)


class Summary(Base):
    """GITHUB_STEP_SUMMARY names a FIFO. `forksight ci` appends a report to it."""

    def ci(self, fifo, limit_s=SOON_S):
        environment = {**os.environ, "GITHUB_STEP_SUMMARY": str(fifo)}
        command = Command("ci", "--timeout", "2s", "--grace", "1s", "--no-preload", "--out", "out", "--", "sleep", "1000", cwd=self.folder, env=environment)
        return command.end(limit_s)

    def make_fifo(self):
        fifo = self.folder / "summary"
        os.mkfifo(fifo)
        return fifo

    def test_a_fifo_without_reader(self):
        status, error = self.ci(self.make_fifo())
        self.assertEqual(status, 124, error)
        self.assertIn("summary: cannot be written: it is a FIFO that no process reads", error)

    def test_a_fifo_whose_reader_does_not_read(self):
        fifo = self.make_fifo()
        end = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, end)
        try:
            while True:
                os.write(end, bytes(4096))
        except BlockingIOError:
            pass  # the FIFO is full
        status, error = self.ci(fifo)
        self.assertEqual(status, 124, error)
        self.assertIn("summary: cannot be written: its reader reads too slowly", error)

    def test_a_fifo_with_a_reader_gets_the_report(self):
        fifo = self.make_fifo()
        end = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, end)
        status, error = self.ci(fifo)
        self.assertEqual(status, 124, error)
        self.assertIn(b"the job was ended at the limit", os.read(end, 65536))
        self.assertNotIn("cannot be written", error)


if __name__ == "__main__":
    unittest.main()
