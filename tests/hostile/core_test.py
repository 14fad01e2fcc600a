"""core_test.py FORKSIGHT: `forksight core` uses little time and memory for a core with very many threads or notes."""
import json
import sys
import tempfile
import unittest
from pathlib import Path

import elf
from bounded import run

FORKSIGHT = sys.argv.pop(1)
THREADS = 100_000


class Core(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-hostile-")
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name, "core")

    def test_a_hundred_thousand_threads(self):
        self.path.write_bytes(elf.core(THREADS))
        done = run([FORKSIGHT, "core", self.path, "--format", "json"])
        self.assertIn(done.status, (0, 1), done.err)
        json.loads(done.out)
        self.assertLess(done.seconds, 5)
        self.assertLess(done.peak_mb, 512)
        self.assertIn("100000 threads", run([FORKSIGHT, "core", self.path]).out)

    def test_notes_that_are_not_needed_take_no_memory(self):
        elf.write_core_with_hole(self.path, 700 << 20)
        done = run([FORKSIGHT, "core", self.path])
        self.assertIn(done.status, (0, 1), done.err)
        self.assertIn("2 threads", done.out)
        self.assertLess(done.peak_mb, 256)

    def check_refused(self):
        done = run([FORKSIGHT, "core", self.path])
        self.assertEqual((done.status, done.out, len(done.err.splitlines())), (3, "", 1), done.text)
        self.assertIn("is damaged: it has more than", done.err)
        self.assertLess(done.seconds, 10)
        self.assertLess(done.peak_mb, 256)

    def test_notes_of_a_terabyte_are_not_visited(self):
        elf.write_core_of_notes(self.path, [(3 * 4096, 1 << 40)])
        self.check_refused()

    def test_notes_are_not_visited_again_for_each_segment(self):
        elf.write_core_of_notes(self.path, [(8 << 20, 16 << 20)] * 60_000)
        self.check_refused()


if __name__ == "__main__":
    unittest.main()
