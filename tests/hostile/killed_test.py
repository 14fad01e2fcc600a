"""killed_test.py FORKSIGHT HANGING: `why` is killed at many moments of its work. No thread of the process that it examined stays
stopped or traced, and no process of forksight is left."""
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from bounded import LIMIT_S, Program, settle

HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop()
THREADS = 24
KILLS = 40  # that find the command at work
TRIES = 1000
MOMENTS = 20


def states_of(pid):
    """The letter of each thread and whether it is traced."""
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        text = (task / "status").read_text()
        found.add((text.partition("State:\t")[2][0], text.partition("TracerPid:\t")[2].split()[0]))
    return found


def children_of(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Killed(unittest.TestCase):
    def setUp(self):
        self.program = Program([HANGING, "poll", THREADS, 4])
        self.addCleanup(self.program.end)
        settle(self.program.pid)

    def await_no(self, what, is_so):
        deadline = time.monotonic() + LIMIT_S
        while is_so():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.01)

    def kill_at(self, moment_s, number):
        """Returns whether the command was still at work."""
        command = subprocess.Popen([FORKSIGHT, "why", str(self.program.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moment_s)
        readers = children_of(command.pid)
        command.send_signal(number)
        status = command.wait(LIMIT_S)
        for reader in readers:
            self.await_no(f"the reader {reader} goes on", lambda reader=reader: is_alive(reader))
        self.await_no("a thread stays stopped", lambda: states_of(self.program.pid) != {("S", "0")})
        return status == -number

    def test_leaves_no_thread_stopped(self):
        began = time.monotonic()
        subprocess.run([FORKSIGHT, "why", str(self.program.pid)], stdout=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
        length_s = time.monotonic() - began
        killed = 0
        for i in range(TRIES):
            number = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[i % 3]
            killed += self.kill_at(length_s * (i % MOMENTS) / MOMENTS, number)
            if killed == KILLS:
                break
        self.assertEqual(killed, KILLS, "the command had ended before nearly all of the kills")


if __name__ == "__main__":
    unittest.main()
