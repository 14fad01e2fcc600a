"""pid_namespace_test.py FORKSIGHT: `why` recognises a pid that is valid only in another pid namespace.

`why` and `run` also recognise a /proc of another pid namespace.

If namespaces cannot be made, the test prints the reason and exits with status 77.
"""
import os
import subprocess
import sys
import unittest

from namespaces import NAMESPACES, find_right
from observed import LIMIT_S, Command, Program, processes

FORKSIGHT = Command(sys.argv.pop())
RIGHT = find_right() if __name__ == "__main__" else []


def free_number():
    """Returns a pid that no process in this namespace has."""
    taken = {int(entry) for entry in os.listdir("/proc") if entry.isdigit()}
    most = int(processes.read_or_empty("/proc/sys/kernel/pid_max"))
    return next(number for number in range(min(most, 32000) - 1, 300, -1) if number not in taken)


class Numbers(unittest.TestCase):
    def test_a_pid_of_a_container_is_answered_with_the_pid_outside(self):
        number = free_number()
        script = f'echo {number - 1} > /proc/sys/kernel/ns_last_pid && {{ sleep 1000 & }} && printf x && wait'
        with Program(["unshare", *RIGHT, *NAMESPACES, "--mount-proc", "sh", "-c", script]) as program:
            done = FORKSIGHT.run(number)
            self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
            self.assertIn("inside of a container, process ", done.stderr)
            named = int(done.stderr.split("inside of a container, process ")[1].split()[0])
            numbers = processes.read_or_empty(f"/proc/{named}/status").partition("NSpid:")[2].split("\n")[0].split()
            self.assertEqual(numbers[-1], str(number))
            self.assertEqual(FORKSIGHT.run(named).returncode, 0)
            program.wait_quiet()

    def inside(self, *words, more=()):
        argv = ["unshare", *RIGHT, *NAMESPACES, *more, FORKSIGHT.path, *words]
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False)

    def test_in_a_container_a_pid_from_outside_does_not_exist(self):
        done = self.inside("why", str(os.getpid()), more=["--mount-proc"])
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("there is no such process in this pid namespace (container)", done.stderr)

    def test_why_and_run_refuse_a_proc_of_another_pid_namespace(self):
        for words, status in ((["why", "1"], 3), (["run", "--", "true"], 125)):
            done = self.inside(*words)
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            self.assertIn("/proc shows another pid namespace than this one", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    if RIGHT is None:
        sys.exit(77)
    processes.become_reaper()
    unittest.main()
