"""waiting_test.py FORKSIGHT PROGRAM: no process hangs here, because something could still end each wait. `why` says what the
threads wait for."""
import re
import sys
import tempfile
import unittest
from pathlib import Path

from observed import Command, Program, libc, processes

PROGRAM, FORKSIGHT = sys.argv.pop(), Command(sys.argv.pop())
IPC_RMID = 0


def joined(text):
    """Returns the text as one line: each sequence of spaces and line breaks becomes one space."""
    return " ".join(text.split())


class Waiting(unittest.TestCase):
    def said_of(self, *mode):
        return self.said_of_program([PROGRAM, *mode])

    def said_of_program(self, argv):
        with Program(argv) as program:
            program.wait_quiet()
            done = FORKSIGHT.run(program.pid)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Not proven to be stuck", done.stdout)
            self.assertIn("\nWhat to do next: follow", done.stdout)
            self.assertIn(f"`forksight why {program.pid} --watch`", joined(done.stdout))
            self.pid = program.pid
            return joined(done.stdout)

    def expect(self, text, pattern):
        found = re.search(pattern, text)
        self.assertIsNotNone(found, text)
        return found

    def test_a_wait_for_a_mutex_names_the_mutex_and_its_owner(self):
        found = self.expect(self.said_of("mutex"), r"in a futex without a timeout: the mutex cache_mutex, which thread (\d+) holds")
        self.assertGreater(int(found[1]), self.pid)

    def test_a_wait_for_a_system_v_semaphore_shows_its_set_and_value(self):
        found = self.expect(self.said_of("semaphore"), r"in semop: System V semaphore set (\d+)(.*)")
        libc.semctl(int(found[1]), 0, IPC_RMID)
        self.expect(found[2], r": until semaphore 0, which is 1 now, reaches 2, last changed by process \d+, which has ended")

    def test_a_wait_for_a_system_v_message_names_the_message_queue(self):
        found = self.expect(self.said_of("messages"), r"in msgrcv: System V message queue (\d+)(.*)")
        libc.msgctl(int(found[1]), IPC_RMID, None)
        self.expect(found[2], r" with 0 messages in it ")

    def test_a_wait_for_a_posix_message_names_the_message_queue(self):
        self.expect(self.said_of("queue"), r"in mq_receive: the POSIX message queue /forksight-why-\d+ \(deleted\); nobody has it open for writing")

    def test_a_wait_in_open_names_the_fifo_and_the_missing_end(self):
        with tempfile.TemporaryDirectory(prefix="forksight-why-") as folder:
            path = Path(folder, "fifo")
            self.expect(self.said_of("fifo", str(path)), rf"in open: the FIFO {path}, for somebody who writes; nobody has it open for writing")

    def test_a_wait_in_splice_names_the_system_call(self):
        splice = 275  # on x86-64
        script = ("import ctypes, os, sys; first, second = os.pipe(), os.pipe(); sys.stdout.write('x'); sys.stdout.flush(); "
                  f"ctypes.CDLL(None).syscall({splice}, first[0], 0, second[1], 0, 1, 0)")
        self.expect(self.said_of_program([sys.executable, "-B", "-c", script]), r"\bin splice\b")

    def test_a_wait_in_read_names_the_pipe(self):
        self.expect(self.said_of("wait"), r"in read: pipe:\[\d+\]")


if __name__ == "__main__":
    processes.become_reaper()
    unittest.main()
