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

    def stress_as_many_threads_as_the_notes_may_have(self):
        """A core may have 128 MiB of notes about threads."""
        self.path.write_bytes(elf.core(350_000))
        for style in ("text", "json"):
            with self.subTest(style=style):
                done = run([FORKSIGHT, "core", self.path, "--format", style])
                self.assertEqual(done.status, 0, done.err)
                self.assertIn("350000 threads" if style == "text" else '"tid": 350999', done.out)
                self.assertLess(done.seconds, 10)
                self.assertLess(done.peak_mb, 512)

    def test_more_threads_than_the_notes_may_have(self):
        self.path.write_bytes(elf.core(400_000))
        done = run([FORKSIGHT, "core", self.path])
        self.assertEqual((done.status, done.out, len(done.err.splitlines())), (3, "", 1), done.text)
        self.assertIn("the notes about its threads take more than 128 MiB", done.err)
        self.assertLess(done.peak_mb, 256)

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

    def check_read(self, notes, segments=(), content=b"", threads=1):
        """Examines a core with `threads` threads in futex(). The bytes of `segments` begin behind two pages: the code and the stack."""
        page, code, stack = 4096, 0x400000, 0x7FFF00000000
        notes = elf.process_note() + notes + b"".join(elf.thread_note(1000 + i, code + 2, stack + 256) for i in range(threads))
        places = [(5, code, page, 0, page), (6, stack, page, page, page), *segments]
        elf.write_core(self.path, notes, places, b"\x0f\x05".ljust(page, b"\x90") + bytes(page) + content)
        done = run([FORKSIGHT, "core", self.path])
        self.assertIn(done.status, (0, 1), done.err)
        self.assertIn("1000", done.out)
        self.assertLess(done.seconds, 10)
        self.assertLess(done.peak_mb, 512)

    def test_many_notes_of_mapped_files(self):
        """Each note lists one file. forksight must sort the files only once, not again for each note."""
        self.check_read(b"".join(elf.files_note([(at, at + 1, 0, "/a")]) for at in range(200_000 << 12, 0, -(1 << 12))))

    def test_programs_whose_addresses_overlap(self):
        """16,000 programs are mapped. The head of each one claims the addresses of all mapped files. All mapped files
        have the path of one file, which exists."""
        page, start, build_id = 4096, 0x10000000, bytes(range(20))
        program = self.path.with_name("program")
        program.write_bytes(elf.program_head(page, build_id))
        files = [(start + i * page, start + (i + 1) * page, int(i >= 16_000), program) for i in range(100_000)]
        segments = [(4, start + i * page, page, 2 * page, page) for i in range(16_000)]
        self.check_read(elf.files_note(files), segments, elf.program_head(1 << 45, build_id))

    def test_mapped_files_that_overlap(self):
        """Each of 60,000 mapped files claims the addresses of all segments."""
        segments = [(4, 0x10000000 + i * 4096, 4096, 0, 0) for i in range(60_000)]
        self.check_read(elf.files_note([(4096, 1 << 46, 1, "/a")] * 60_000), segments)

    def test_files_with_the_name_of_the_stack(self):
        """forksight searches for the arguments only in the stack of the first thread."""
        segments = [(4, 0x10000000 + i * (4 << 20), 4 << 20, 8192, 4 << 20) for i in range(30_000)]
        files = [(address, address + size, 1, "[stack]") for _, address, size, _, _ in segments]
        self.check_read(elf.note(6, bytes(63) + b"\1" + bytes(64)) + elf.files_note(files), segments, bytes(4 << 20))


if __name__ == "__main__":
    unittest.main()
