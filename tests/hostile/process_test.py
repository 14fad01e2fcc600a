"""process_test.py FORKSIGHT HANGING LIBRARY: `forksight why` and `forksight queue inspect` on malicious processes: very long
lists, replaced files, overlapping mappings."""
import json
import os
import resource
import shutil
import struct
import sys
import tempfile
import unittest
from pathlib import Path

from bounded import SECONDS, Opened, Program, run, settle
from elf import PHDR, PT_LOAD, Elf

LIBRARY, HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
STRANGER = 65534


class Process(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-hostile-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.library = self.folder / "libstuck.so"

    def start(self, *arguments):
        program = Program([HANGING, *arguments])
        self.addCleanup(program.end)
        settle(program.pid)
        return program

    def why(self, program, memory_mb=300, status=(0, 1)):
        done = run([FORKSIGHT, "why", program.pid])
        self.assertIn(done.status, status, done.text)
        self.assertIn(str(program.pid), done.out)
        self.assertLess(done.peak_mb, memory_mb)
        self.assertLess(done.seconds, SECONDS)
        return done

    def test_many_descriptors_of_one_pipe_are_counted(self):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        count = min(20_000, most - 64)
        done = self.why(self.start("hold", count), status=(1,))
        self.assertIn("more descriptors of", done.out)
        self.assertLess(done.out.count("\n"), 80)

    def test_many_polled_descriptors(self):
        self.why(self.start("poll", 100, 16_000))

    def stress_three_times_as_many_polled_descriptors(self):
        self.why(self.start("poll", 300, 16_000))

    def test_few_polled_descriptors_are_all_reported(self):
        done = self.why(self.start("poll", 2, 3), status=(1,))
        self.assertIn("pipe", done.out)

    def test_many_processes_that_could_end_each_others_waits(self):
        done = self.why(self.start("share", 600, 1), status=(1,))
        self.assertIn("more unexplained hangs; --format json has them all", done.out)
        self.assertLess(done.out.count("no rule explains"), 20)

    def test_too_many_processes_that_could_end_each_others_waits(self):
        done = self.why(self.start("share", 1400, 1), status=(0,))
        self.assertIn("proves nothing about further waits that more than 64 processes could end", " ".join(done.out.split()))

    def test_many_processes_with_few_descriptors_are_proven_to_hang(self):
        done = self.why(self.start("crowd", 30, 300), status=(1,))
        self.assertNotIn("so many descriptors", done.text)

    def test_the_json_report_counts_what_it_does_not_list(self):
        done = run([FORKSIGHT, "why", self.start("share", 300, 1).pid, "--format", "json"])
        waits = [wait for process in json.loads(done.out)["processes"] for wait in process["waits"]]
        cut = [wait for wait in waits if "wakers_left_out" in wait]
        self.assertTrue(cut)
        for wait in cut:
            self.assertEqual(len(wait["wakers"]), 100)
            self.assertGreater(wait["wakers_left_out"], 150)

    def test_many_threads_that_could_end_each_others_waits(self):
        self.why(self.start("share", 1, 6000), status=(1,))

    def exchange(self, make):
        """Removes the library while a process uses it. Then calls `make`, which creates something else at the same
        path."""
        shutil.copy(LIBRARY, self.library)
        program = self.start("load", self.library)
        self.library.unlink()
        make(self.library)
        return program

    def test_a_fifo_at_the_place_of_a_library_is_not_opened(self):
        program = self.exchange(os.mkfifo)
        opened = Opened(self.library)
        self.addCleanup(opened.close)
        self.assertIn("pipe-held-open", self.why(program).out)
        self.assertFalse(opened.was_opened())

    def test_a_link_to_a_fifo_is_not_opened(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        program = self.exchange(lambda path: path.symlink_to(fifo))
        opened = Opened(fifo)
        self.addCleanup(opened.close)
        self.assertIn("pipe-held-open", self.why(program).out)
        self.assertFalse(opened.was_opened())

    def test_a_link_to_a_device_is_not_opened(self):
        program = self.exchange(lambda path: path.symlink_to("/dev/full"))
        opened = Opened("/dev/full")
        self.addCleanup(opened.close)
        self.assertIn("pipe-held-open", self.why(program).out)
        self.assertFalse(opened.was_opened())

    def test_a_link_to_a_secret_is_not_opened(self):
        secret = self.folder / "secret"
        secret.write_text("a password")
        secret.chmod(0o600)
        program = self.exchange(lambda path: path.symlink_to(secret))
        if os.geteuid() != 0:
            self.skipTest("only root could read a secret of another user")
        os.chown(self.library, STRANGER, STRANGER, follow_symlinks=False)
        opened = Opened(secret)
        self.addCleanup(opened.close)
        self.assertIn("pipe-held-open", self.why(program).out)
        self.assertFalse(opened.was_opened())

    def test_an_opened_file_is_noticed(self):
        place = self.folder / "file"
        place.touch()
        opened = Opened(place)
        self.addCleanup(opened.close)
        os.stat(place)
        self.assertFalse(opened.was_opened())
        place.read_bytes()
        self.assertTrue(opened.was_opened())

    def test_mappings_whose_segments_overlap(self):
        size = 60 << 20
        elf = Elf(Path(LIBRARY).read_bytes())
        count = 200
        table = b"".join(PHDR.pack(PT_LOAD, 5, 0, 0, 0, size, size, 4096) for _ in range(count))
        head = bytearray(elf.bytes[:64])
        struct.pack_into("<Q", head, 32, 64)  # e_phoff
        struct.pack_into("<H", head, 56, count)  # e_phnum
        struct.pack_into("<Q", head, 40, 0)  # e_shoff
        struct.pack_into("<HH", head, 60, 0, 0)
        other = self.folder / "overlapping"
        other.write_bytes(head + table)
        os.truncate(other, size)
        program = self.start("map", other, 40)
        other.unlink()
        self.why(program, memory_mb=512)

    def test_a_fifo_with_the_name_of_a_queue_is_not_opened(self):
        name = f"forksight-{os.getpid():032x}"
        place = Path("/dev/shm", name)
        os.mkfifo(place)
        self.addCleanup(place.unlink)
        reader = os.open(place, os.O_RDWR)
        self.addCleanup(os.close, reader)
        opened = Opened(place)
        self.addCleanup(opened.close)
        for what in (str(os.getpid()), f"/proc/{os.getpid()}/fd/{reader}", "/" + name):
            done = run([FORKSIGHT, "queue", "inspect", what])
            self.assertEqual(done.status, 3, done.text)
            self.assertEqual(len(done.err.splitlines()), 1)
            self.assertLess(done.peak_mb, 512)
        self.assertFalse(opened.was_opened())


if __name__ == "__main__":
    unittest.main()
