"""full_test.py FORKSIGHT PROGRAM: the verbs that print stacks replace frames of libraries by one line, and print all frames with
--full.

PROGRAM is why_program. tests/cli/why/why_test.py has the same test for `forksight why`.
"""
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "why"))
from observed import LIMIT_S, Program, end_all, tree_of  # noqa: E402

PROGRAM, FORKSIGHT = sys.argv.pop(), sys.argv.pop()


def forksight(*words, **more):
    return subprocess.run([FORKSIGHT, *map(str, words)], capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)


class Full(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-full-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def check(self, folded, full):
        for text in (folded, full):
            self.assertRegex(text, r"\n      hang_in_child ")
        self.assertRegex(folded, r"\n      \(\d+ frames? of libc[^)]*\)\n")
        self.assertNotRegex(full, r"\d+ frames? of ")
        self.assertRegex(full, r"\n      pthread_mutex_lock +libc")
        self.assertNotRegex(folded, r"\n      pthread_mutex_lock ")

    def run_report(self, *options):
        words = ["run", "--hang-after", "0.2", "--on-hang", "kill", *options, "--out", self.folder / "out", "--", PROGRAM, "hang"]
        return forksight(*words, input="x").stderr

    def test_run_and_report(self):
        self.check(self.run_report(), self.run_report("--full"))
        traces = next((self.folder / "out").iterdir())
        self.check(*(forksight("report", *option, traces).stdout for option in ([], ["--full"])))

    def test_core(self):
        if shutil.which("gcore") is None:
            self.skipTest("gcore is not installed: package gdb")
        program = Program([PROGRAM, "hang"])
        self.addCleanup(end_all, [program])
        program.go_on()
        program.wait_quiet()
        child = tree_of(program.pid)[1]
        subprocess.run(["gcore", "-o", self.folder / "core", str(child)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S,
                       check=True)
        self.check(*(forksight("core", *option, self.folder / f"core.{child}").stdout for option in ([], ["--full"])))

    def test_a_stripped_program(self):
        """A frame without a name shows its file and the offset in the file. For this offset, addr2line must find the
        line that the report shows if the program is not stripped."""
        stripped = self.folder / "stripped"
        subprocess.run(["strip", "-o", stripped, PROGRAM], timeout=LIMIT_S, check=True)
        program, named = Program([stripped, "hang"]), Program([PROGRAM, "hang"])
        self.addCleanup(end_all, [program, named])
        for one in (program, named):
            one.go_on()
            one.wait_quiet()
        texts = [forksight("why", one.pid, "--full").stdout for one in (program, named)]
        self.assertNotIn("??", texts[0])
        found = [re.findall(pattern, text) for pattern, text in zip((r"\n      stripped\+(0x[0-9a-f]+)\n", r"\n      (hang_in_child) +(\S.*)\n"), texts)]
        self.assertTrue(found[0] and found[1], texts)
        lines = [subprocess.run(["addr2line", "-i", "-f", "-e", PROGRAM, offset], capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
                 for offset in found[0]]
        function, place = found[1][0]
        in_function = [line for line in lines if line.splitlines()[0] == function]
        self.assertTrue(in_function, lines)
        self.assertIn(Path(place).name, [Path(line.splitlines()[1].split(" (")[0]).name for line in in_function], lines)
        # Without --full, the report has a row for the innermost frame without a name.
        self.assertRegex(forksight("why", program.pid).stdout, rf"\n      stripped\+{found[0][0]}( |\n)")

    def test_the_help_of_every_verb_names_the_option(self):
        for verb in ("run", "why", "core", "report"):
            self.assertIn("--full", forksight(verb, "--help").stdout, verb)


if __name__ == "__main__":
    unittest.main()
