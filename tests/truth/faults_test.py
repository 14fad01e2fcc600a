"""Tests that a fault is planted into its file, both if the build compiles the file alone and if it compiles the file in a batch."""
import json
import shlex
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from faults import FAULTS, SOURCE, Fault, Plants  # noqa: E402

FAULT = FAULTS[0]
FILE = SOURCE / FAULT.file
FLAGS = "c++ -O2 -g -g1 -Wall -o analyzer/diagnose/CMakeFiles/forksight_diagnose.dir/x.o -c"


class Recorder(Plants):
    """Compiles and links nothing. It only records the commands that Plants would call."""

    def __init__(self, build, folder):
        super().__init__(build, folder)
        self.called = []

    def commands(self, target):
        return f": && c++ main.o -o {target} libforksight_diagnose.a && :"

    def call(self, words):
        self.called.append(words)


class Planting(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="faults-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def plant(self, *units, fault=FAULT):
        commands = [{"directory": str(self.folder), "command": f"{FLAGS} {shlex.quote(str(unit))}", "file": str(unit)} for unit in units]
        (self.folder / "compile_commands.json").write_text(json.dumps(commands))
        plants = Recorder(self.folder, self.folder)
        self.assertEqual(plants.plant(fault), self.folder / fault.rule)
        return plants.called

    def batch(self, name, *files):
        unit = self.folder / "Unity" / name
        unit.parent.mkdir(exist_ok=True)
        unit.write_text("/* generated */\n\n" + "".join(f'#include "{file}"\n\n' for file in files))
        return unit

    def assert_faulty(self, file):
        text = Path(file).read_text()
        self.assertIn(FAULT.faulty, text)
        self.assertNotIn(FAULT.sound, text)

    def test_a_file_that_is_compiled_alone(self):
        compiling, linking = self.plant(SOURCE / "analyzer/diagnose/rules.cpp", FILE)
        self.assert_faulty(compiling[-1])
        self.assertFalse([word for word in compiling if word.startswith(("-g", "-W"))])
        self.assertLess(linking.index(compiling[compiling.index("-o") + 1]), linking.index("libforksight_diagnose.a"))

    def test_a_file_in_a_batch_is_compiled_with_the_other_files(self):
        others = [SOURCE / "analyzer/diagnose/words.cpp", SOURCE / "analyzer/diagnose/pools.cpp"]
        compiling, _ = self.plant(self.batch("unity_0_cxx.cxx", SOURCE / "analyzer/diagnose/locks.cpp"),
                                  self.batch("unity_1_cxx.cxx", others[0], FILE, others[1]))
        files = [line.split('"')[1] for line in Path(compiling[-1]).read_text().splitlines() if line.startswith("#include")]
        self.assertEqual([files[0], files[2]], [str(other) for other in others])
        self.assertNotEqual(files[1], str(FILE))
        self.assert_faulty(files[1])

    def test_a_file_that_the_build_does_not_compile_is_an_error(self):
        with self.assertRaisesRegex(SystemExit, "does not say how .*orphaned_mutex.cpp becomes a part of forksight_diagnose"):
            self.plant(SOURCE / "analyzer/diagnose/rules.cpp")

    def test_a_missing_text_is_an_error(self):
        with self.assertRaisesRegex(SystemExit, "does not say `no such text` any more"):
            self.plant(FILE, fault=Fault(FAULT.rule, FAULT.file, "no such text", "", "nothing"))

    def test_the_source_has_the_text_of_each_fault(self):
        for fault in FAULTS:
            self.assertIn(fault.sound, (SOURCE / fault.file).read_text(), fault.rule)


if __name__ == "__main__":
    unittest.main()
