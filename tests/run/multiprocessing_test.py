"""multiprocessing_test.py FORKSIGHT SCENES: `forksight run` names the process that holds a lock of multiprocessing.

The command kills the processes as soon as a hang is at least likely. So each of these tests ends by itself.
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCENES, FORKSIGHT = sys.argv.pop(), sys.argv.pop()
LIMIT_S = 100


class Locks(unittest.TestCase):
    def run_scene(self, scene, *before):
        """Returns the rule and the cause of each finding. `before`: the words before the program."""
        with tempfile.TemporaryDirectory(prefix="forksight-run-") as folder:
            report = Path(folder, "report.json")
            options = ["--on-hang", "kill", "--kill-on", "likely", "--format", "json", "--report", report, "--out", Path(folder, "out")]
            subprocess.run([FORKSIGHT, "run", *options, "--", *before, sys.executable, "-B", SCENES, scene], timeout=LIMIT_S,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
            return [(finding["rule"], finding["cause"]) for finding in json.loads(report.read_text())["findings"]]

    def test_the_holder_is_named(self):
        for scene, rule in (("parent_holds", "join-cycle"), ("child_acquires_twice", "self-deadlock"), ("two_orders", "lock-cycle"),
                            ("holder_was_killed", "queue-lock-abandoned")):
            with self.subTest(scene):
                self.assertEqual(self.run_scene(scene), [(rule, "likely")])

    def test_no_process_that_has_ended_is_blamed_for_an_event_that_nobody_sets(self):
        self.assertEqual(self.run_scene("event_is_never_set"), [("queue-lock-abandoned", "possible")])

    def test_a_script_of_the_same_name_that_becomes_python(self):
        # A shell script has the same file name as Python, as in pyenv. For a second, the process that `run` sees is a shell. Then the
        # script execs Python, and the name of the process does not change. `run` must nevertheless recognise Python's own handler of
        # SIGINT, which runs only after Ctrl-C. If this handler counted as a handler of the program, the wait would look intended.
        with tempfile.TemporaryDirectory(prefix="forksight-run-") as folder:
            script = Path(folder, Path(sys.executable).name)
            script.write_text('#!/bin/sh\nsleep 1\nexec "$@"\n')
            script.chmod(0o700)
            self.assertEqual(self.run_scene("parent_holds", script), [("join-cycle", "likely")])


if __name__ == "__main__":
    unittest.main()
