"""attacks_test.py FORKSIGHT HANGING LIBRARY CC [--all]: a process of another user hangs in a library whose tables are
hostile (attacks.py). `forksight why` must report the hang in less than ten seconds, with less than 512 MB of memory. With
--all, the test tries all attacks. Without --all, it tries only the attacks in attacks.DEFAULT."""
import json
import os
import shutil
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import attacks
from bounded import Mount, Program, run, settle
from elf import Elf

ALL = "--all" in sys.argv
sys.argv = [word for word in sys.argv if word != "--all"]
CC = sys.argv.pop()
LIBRARY, HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
# The reports about these attacks lack the name of the function stuck(). Either the symbols of the library are the
# hostile part, or forksight does not read the file.
WITHOUT_NAME = {"symbols_ten_million", "symbols_seven_million_with_one_long_name", "symbols_whose_names_do_not_end",
                "dynamic_symbols_whose_names_do_not_end", "symbol_tables_in_sixty_thousand_sections_that_overlap",
                "hashes_that_form_a_ring", "sections_that_overlap_everything", "an_object_file_is_mapped",
                "a_libc_with_sixty_thousand_tables_of_symbols", "a_vdso_with_costly_frames",
                "frames_with_an_expression_that_reads_memory_in_each_of_many_frames"}
LEFT_OUT = "forksight left out the debug information of all files but the main program: source lines are missing"
SENTENCES = {
    "dynamic_symbols_whose_names_do_not_end": "cannot be read (the names of its symbols do not end)",
    "relocations_in_sixty_thousand_sections_that_overlap": "has more than 4000000 relocations",
    "relocations_eight_million": "has more than 4000000 relocations",
    "five_libraries_that_each_take_minutes": LEFT_OUT,
    "thirty_libraries_that_each_take_almost_a_second": LEFT_OUT,
    "symbols_seven_million_with_one_long_name": "forksight reads the first 4000000",
    "eight_libraries_that_crash_the_reader": "forksight left out the debug information of files: source lines are missing",
}


class Attacks(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="forksight-hostile-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o755)

    def why(self, *argv, program=HANGING):
        """Examines a process of another user that runs `program`. Returns the names of the functions in its stack, the files of its lines,
        and the sentences that say what is missing."""
        for path in self.folder.rglob("*"):
            if not path.is_dir() and not path.parent.is_mount():
                path.chmod(0o755)
        process = Program([*NOBODY, program, *argv])
        try:
            settle(process.pid)
            done = run([FORKSIGHT, "why", process.pid, "--format", "json"])
        finally:
            process.end()
        self.assertEqual(done.status, 1, done.text)
        report = json.loads(done.out)
        self.assertEqual([finding["rule"] for finding in report["findings"]], ["pipe-held-open"])
        self.assertLess(done.seconds, 10)
        self.assertLess(done.peak_mb, 512)
        frames = report["findings"][0]["stack"]
        return [frame["function"] for frame in frames], {os.path.basename(frame["file"]) for frame in frames}, report["limits"]

    def check(self, name):
        place = attacks.Place(self.folder, Path(HANGING), CC)
        argv = attacks.ATTACKS[name](place) or ["load", place.library]
        names, files, limits = self.why(*argv, program=place.program)
        if name not in WITHOUT_NAME:
            self.assertIn("stuck", names)
        if sentence := SENTENCES.get(name):
            self.assertEqual(sum(sentence in limit for limit in limits), 1, limits)
        if sentence == LEFT_OUT:
            self.assertIn("hanging.c", files)  # the report has source lines of the main program

    def check_slow(self, seconds, is_slow):
        """Each answer of the file system takes `seconds`."""
        library, mounted = self.folder / "libslow.so", self.folder / "mount"
        shutil.copy(LIBRARY, library)
        mounted.mkdir()
        mount = Mount(mounted, ["--slow", str(seconds), library])
        self.addCleanup(mount.end)
        names, _, limits = self.why("load", mounted / library.name)
        self.assertEqual("stuck" in names, not is_slow)
        self.assertEqual(any("answers too slowly" in limit for limit in limits), is_slow, limits)

    def test_a_file_system_that_answers_within_a_moment_is_read(self):
        self.check_slow(0.02, False)

    def test_a_file_system_whose_answers_take_a_second_is_left_out(self):
        self.check_slow(1, True)

    def test_a_library_whose_head_changes_again_and_again(self):
        """The table of sections changes all the time. In turn, each section has its right place, covers the whole file,
        is far larger than the file, and covers the last 64 bytes of the file."""
        whole = bytearray(Path(LIBRARY).read_bytes()) + bytes(16 << 20)
        library = self.folder / "libmade.so"
        library.write_bytes(whole)
        library.chmod(0o755)
        program = Program([*NOBODY, HANGING, "load", library])
        self.addCleanup(program.end)
        settle(program.pid)
        elf = Elf(whole)
        tables = [bytes(whole[elf.shoff:elf.shoff + 64 * elf.shnum])]
        for offset, size in ((0, len(whole)), (len(whole) - 1, 1 << 62), (len(whole) - 64, 64)):
            for number in range(1, elf.shnum):
                values = elf.section(number)
                values[4], values[5] = offset, size
                elf.set_section(number, values)
            tables.append(bytes(elf.bytes[elf.shoff:elf.shoff + 64 * elf.shnum]))
        stop = threading.Event()

        def change():
            with open(library, "r+b", buffering=0) as file:
                while not stop.is_set():
                    for table in tables:
                        os.pwrite(file.fileno(), table, elf.shoff)

        changer = threading.Thread(target=change)
        changer.start()
        try:
            for _ in range(15):
                done = run([FORKSIGHT, "why", program.pid, "--format", "json"])
                self.assertEqual(done.status, 1, done.text)
                self.assertEqual([finding["rule"] for finding in json.loads(done.out)["findings"]], ["pipe-held-open"])
                self.assertLess(done.seconds, 10)
                self.assertLess(done.peak_mb, 512)
        finally:
            stop.set()
            changer.join()


for attack in attacks.ATTACKS if ALL else attacks.DEFAULT:
    setattr(Attacks, f"test_{attack}", lambda self, name=attack: self.check(name))

if __name__ == "__main__":
    unittest.main()
