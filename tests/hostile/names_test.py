"""names_test.py FORKSIGHT: the names of a process contain characters that change the direction of text: its program, arguments,
threads, Python functions and Python files. Every report must escape these characters. Two more tests examine a Python
process. In one test the frames of the process form a ring. In the other test its list of threads forms a ring."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
import unittest
from pathlib import Path

from bounded import LIMIT_S, Program, run, settle

FORKSIGHT = sys.argv.pop()
# All format characters of Unicode whose bidirectional class changes the direction, and the marks LRM, RLM and ALM.
DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
MARKS = "".join(char for char in map(chr, range(sys.maxunicode + 1))
                if unicodedata.category(char) == "Cf" and unicodedata.bidirectional(char) in DIRECTIONS) + "\u200e\u200f\u061c"

SCENE = """
import ctypes, os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a handler could end the wait
MARKS = sys.argv[1]
ends = os.pipe()

def hang(libc=ctypes.CDLL(None)):
    libc.prctl(15, MARKS[:4].encode(), 0, 0, 0)
    os.write(1, b"x")
    os.read(ends[0], 1)

hang.__code__ = hang.__code__.replace(co_name=f"hang{MARKS}g", co_filename=f"/app/{MARKS}.py")
hang()
"""

# Makes a ring in structures of Debian's Python 3.11. analyzer/inspect/python/python_layout.cpp has the same offsets.
RING = """
import ctypes, os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
ends = os.pipe()
get = ctypes.pythonapi.PyThreadState_Get
get.restype = ctypes.c_void_p

def word(address):
    return ctypes.c_uint64.from_address(address)

libc = ctypes.PyDLL(None)
keep = bytearray(1)
buffer = (ctypes.c_char * 1).from_buffer(keep)

def innermost():
    state = get()
    frame = word(word(state + 56).value + 8).value
    if sys.argv[1] == "frames":
        word(word(frame + 48).value + 48).value = frame
    else:
        word(state + 8).value = state
    libc.write(1, b"x", 1)
    libc.read(ends[0], buffer, 1)

def outer():
    innermost()

outer()
"""


class Names(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-names-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.strange = self.folder / f"s{MARKS}e"
        self.strange.mkdir()
        self.script = self.strange / f"app{MARKS}.py"
        self.script.write_text(SCENE)
        self.python = self.strange / f"py{MARKS}"
        shutil.copy(os.path.realpath(sys.executable), self.python)

    def check(self, text, what):
        self.assertTrue(text, f"{what} is empty")
        found = sorted({f"U+{ord(char):04X}" for char in text if char in MARKS})
        self.assertEqual(found, [], f"{what} contains characters that change the direction of text:\n{text!r}")

    def test_twelve_characters_change_the_direction(self):
        self.assertEqual(len(set(MARKS)), 12, [hex(ord(char)) for char in MARKS])

    def start(self):
        program = Program([self.python, "-B", self.script, MARKS])
        self.addCleanup(program.end)
        settle(program.pid)
        return program

    def test_why(self):
        program = self.start()
        done = run([FORKSIGHT, "why", program.pid, "--full"])
        self.assertEqual(done.status, 1, done.text)
        self.check(done.text, "the text")
        self.assertIn("\\xe2\\x80\\xae", done.text)

    def test_why_json_escapes_the_characters(self):
        program = self.start()
        done = run([FORKSIGHT, "why", program.pid, "--format", "json"])
        self.check(done.out, "the document")
        self.assertIn("\\u202e", done.out)
        self.assertIn(str(self.python), json.dumps(json.loads(done.out), ensure_ascii=False))

    def test_ci(self):
        summary, junit = self.folder / "summary.md", self.folder / "junit.xml"
        done = run([FORKSIGHT, "ci", "--timeout", "6s", "--grace", "1s", "--junit", junit, "--out", self.folder / "out", "--", self.python, "-B",
                    self.script, MARKS], env={**os.environ, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)})
        self.assertEqual(done.status, 124, done.text)
        self.check(done.err, "standard error")
        for file in (summary, junit, *self.folder.glob("out/*/report.json")):
            self.check(file.read_text(), file.name)


class Rings(unittest.TestCase):
    def look(self, kind):
        if sys.version_info[:2] != (3, 11):
            self.skipTest("the script writes to structures of Python 3.11")
        program = Program([sys.executable, "-B", "-c", RING, kind])
        self.addCleanup(program.end)
        settle(program.pid)
        done = run([FORKSIGHT, "why", program.pid, "--full"], limit_s=LIMIT_S)
        self.assertEqual(done.status, 1, done.text)
        self.assertIn("innermost", done.out)
        self.assertLess(done.peak_mb, 512)
        self.assertLess(done.seconds, 10)
        return re.sub(r"\s+", " ", done.out)

    def test_a_ring_of_frames_is_cut_and_reported(self):
        text = self.look("frames")
        self.assertIn("the Python frames of 1 thread form a ring", text)
        self.assertLess(text.count("outer"), 4)

    def test_a_ring_of_threads_is_read_once(self):
        text = self.look("threads")
        self.assertIn("the list of Python's threads forms a ring", text)
        self.assertLess(text.count("innermost"), 4)


if __name__ == "__main__":
    unittest.main()
