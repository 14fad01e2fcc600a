"""java_test.py FORKSIGHT JAVA: two threads of a JVM wait for each other's monitor.

Only the JVM knows which thread holds a monitor. So `why` says how many threads wait for monitors, and which command
names the holders. `why` must not count threads that sleep in wait().
"""
import sys
import time
import unittest
from pathlib import Path

from observed import Command, Program, processes

JAVA, FORKSIGHT = sys.argv.pop(), Command(sys.argv.pop())
SOURCE = Path(__file__).with_name("Monitors.java")


class Monitors(unittest.TestCase):
    def said_of(self, mode, until=""):
        """Returns the pid of the JVM and what `why` says. If `why` does not say `until`, asks again for 30 s: the threads of the JVM
        may not have come to their waits yet."""
        program = Program([JAVA, "-Xint", "-XX:+UseSerialGC", str(SOURCE), mode])
        end = time.monotonic() + 30
        try:
            done = FORKSIGHT.run(program.pid)
            while until not in done.stdout + done.stderr and time.monotonic() < end:
                done = FORKSIGHT.run(program.pid)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return program.pid, done.stdout + done.stderr
        finally:
            program.go_on()
            program.close()

    def test_two_threads_that_wait_for_monitors_are_counted_and_jstack_is_named(self):
        pid, said = self.said_of("ring", until="synchronized")
        self.assertIn(f"process {pid}: 2 threads wait to enter `synchronized` code", " ".join(said.split()))
        self.assertIn(f"`jstack {pid}`", said)

    def test_threads_in_wait_are_not_counted_as_waiting_for_monitors(self):
        self.assertNotIn("synchronized", self.said_of("idle")[1])


if __name__ == "__main__":
    processes.become_reaper()
    unittest.main(verbosity=0)
