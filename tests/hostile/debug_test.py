"""debug_test.py FORKSIGHT HANGING LIBRARY OBJCOPY CC: a process hangs in a library. The test made the library's file or
its debug information so that reading it would use up time or memory of `forksight why`. The report must nevertheless
contain the exported names of the library."""
import gzip
import json
import lzma
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib
from pathlib import Path

from bounded import SANITIZED, Opened, Program, run, settle
from elf import EHDR, PT_GNU_EH_FRAME, SHDR, SHF_COMPRESSED, SHT_NOTE, Elf

CC = sys.argv.pop()
OBJCOPY = sys.argv.pop()
LIBRARY, HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
SOURCE = "stuck.c"
ZEROS = 700 << 20


def zlib_zeros(size):
    packer, packed = zlib.compressobj(1), []
    piece = bytes(1 << 20)
    for _ in range(size >> 20):
        packed.append(packer.compress(piece))
    return b"".join(packed) + packer.flush()


def xz_zeros(size):
    packer, packed = lzma.LZMACompressor(preset=0), []
    piece = bytes(1 << 20)
    for _ in range(size >> 20):
        packed.append(packer.compress(piece))
    return b"".join(packed) + packer.flush()


def compressed_section(size):
    """Returns a compressed section: an Elf64_Chdr with ELFCOMPRESS_ZLIB, and `size` zeros, compressed."""
    return struct.pack("<IIQQ", 1, 0, size, 1) + zlib_zeros(size)


class Debug(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-hostile-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.library, self.debug = self.folder / "libstuck.so", self.folder / "libstuck.debug"

    def objcopy(self, *arguments):
        subprocess.run([OBJCOPY, *map(str, arguments)], check=True, timeout=60)

    def split(self):
        """Makes the library without debug information, with a debug link to a debug file."""
        self.objcopy("--only-keep-debug", LIBRARY, self.debug)
        self.objcopy("--strip-all", f"--add-gnu-debuglink={self.debug}", LIBRARY, self.library)

    def why(self, *sentences, lines=False, name="stuck", memory_mb=300, program=None):
        if program is None:
            program = Program([HANGING, "load", self.library])
            self.addCleanup(program.end)
            settle(program.pid)
        done = run([FORKSIGHT, "why", program.pid, "--format", "json"])
        self.assertEqual(done.status, 1, done.text)
        report = json.loads(done.out)
        self.assertEqual([finding["rule"] for finding in report["findings"]], ["pipe-held-open"])
        frames = report["findings"][0]["stack"]
        if name:
            self.assertIn(name, [frame["function"] for frame in frames])
        self.assertEqual(SOURCE in {os.path.basename(frame["file"]) for frame in frames}, lines, frames)
        for sentence in sentences:
            self.assertTrue(any(sentence in limit for limit in report["limits"]), (sentence, report["limits"]))
        self.assertLess(done.peak_mb, memory_mb)
        self.assertLess(done.seconds, 10)
        return report

    def test_honest_debug_information_is_read(self):
        shutil.copy(LIBRARY, self.library)
        self.why(lines=True)

    def test_an_honest_debug_file_is_read(self):
        self.split()
        self.why(lines=True)

    def test_honest_compressed_debug_information_is_read(self):
        self.split()
        self.objcopy("--compress-debug-sections=zlib", self.debug)
        self.why(lines=True)

    def test_a_fifo_at_the_place_of_a_debug_file_is_not_waited_for(self):
        self.split()
        self.debug.unlink()
        os.mkfifo(self.debug)
        self.why()

    def test_a_link_upwards_is_not_followed(self):
        inner = self.folder / "inner"
        inner.mkdir()
        self.library = inner / "libstuck.so"
        self.split()
        elf = Elf(self.library.read_bytes())
        elf.put(elf.find(".gnu_debuglink"), b"../libstuck.debug\0\0\0" + struct.pack("<I", zlib.crc32(self.debug.read_bytes())))
        self.library.write_bytes(elf.bytes)
        self.why()

    def test_a_debug_file_of_another_build_is_not_read(self):
        self.split()
        elf = Elf(self.debug.read_bytes())
        values = elf.section(elf.find(".note.gnu.build-id"))
        elf.bytes[values[4] + values[5] - 1] ^= 1
        self.debug.write_bytes(elf.bytes)
        self.why()

    def test_a_debug_file_that_unpacks_to_much_more_is_not_unpacked(self):
        self.split()
        elf = Elf(self.debug.read_bytes())
        elf.put(elf.find(".debug_str"), compressed_section(ZEROS), SHF_COMPRESSED)
        self.debug.write_bytes(elf.bytes)
        self.why("libstuck.so: its debug information would unpack to 700 MiB, more than 512 MiB; the report has no source lines of this file")

    def test_sections_of_the_library_that_unpack_to_much_more_are_not_unpacked(self):
        elf = Elf(Path(LIBRARY).read_bytes())
        elf.put(elf.find(".debug_str"), compressed_section(ZEROS), SHF_COMPRESSED)
        self.library.write_bytes(elf.bytes)
        self.why("libstuck.so: its debug information would unpack to 700 MiB, more than 512 MiB; the report has no source lines of this file")

    def test_a_packed_symbol_table_that_unpacks_to_much_more_is_not_unpacked(self):
        packed = self.folder / "packed"
        packed.write_bytes(xz_zeros(ZEROS))
        self.objcopy("--strip-all", f"--add-section=.gnu_debugdata={packed}", LIBRARY, self.library)
        self.why("libstuck.so: the symbol table in its .gnu_debugdata would unpack to more than 64 MiB")

    def test_an_archive_at_the_place_of_a_debug_file_is_not_unpacked(self):
        self.split()
        with gzip.open(self.debug, "wb", compresslevel=1) as file:
            for _ in range(ZEROS >> 20):
                file.write(bytes(1 << 20))
        # libdw took a checksum of zero for an unknown one. So forksight must not open the archive if the checksum is
        # zero. If the checksum is right, forksight opens the archive, but must not unpack it.
        for checksum in (0, zlib.crc32(self.debug.read_bytes())):
            with self.subTest(checksum=checksum):
                elf = Elf(self.library.read_bytes())
                link = elf.section(elf.find(".gnu_debuglink"))
                elf.bytes[link[4] + link[5] - 4:link[4] + link[5]] = struct.pack("<I", checksum)
                self.library.unlink()  # a process of the previous subtest has mapped this file
                self.library.write_bytes(elf.bytes)
                opened = Opened(self.debug)
                self.addCleanup(opened.close)
                self.why()
                self.assertEqual(opened.was_opened(), checksum != 0, "the archive was opened, or not opened, against expectation")

    def test_a_sparse_debug_file_of_a_terabyte_is_not_read(self):
        self.split()
        elf = Elf(self.debug.read_bytes())
        number = elf.find(".debug_info")
        values = elf.section(number)
        values[4], values[5] = len(elf.bytes), (1 << 40) - len(elf.bytes)
        elf.set_section(number, values)
        self.debug.write_bytes(elf.bytes)
        os.truncate(self.debug, 1 << 40)
        self.why("libstuck.so: its debug information has 1024 GiB, more than 16 GiB; the report has no source lines of this file")

    def address_of_stuck(self, elf):
        symbols, names = elf.section(elf.find(".dynsym")), elf.section(elf.find(".dynstr"))
        for at in range(symbols[4], symbols[4] + symbols[5], 24):
            name, _, _, _, value, size = struct.unpack_from("<IBBHQQ", elf.bytes, at)
            start = names[4] + name
            if elf.bytes[start:elf.bytes.index(0, start)] == b"stuck":
                return value, size
        raise KeyError("stuck")

    def check_costly(self, elf, *sentences):
        self.library.write_bytes(elf.bytes)
        self.why(*sentences, memory_mb=512)

    @unittest.skipIf(SANITIZED, "AddressSanitizer ends a program whose memory is limited")
    def test_a_line_table_of_sixty_million_lines_takes_bounded_memory(self):
        elf = Elf(Path(LIBRARY).read_bytes())
        address, _ = self.address_of_stuck(elf)
        # DWARF 3. Each byte of the program makes a line.
        head = struct.pack("<BBbBB", 1, 1, -5, 14, 13) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + b"\0a.c\0\0\0\0\0"
        program = b"\0\x09\2" + struct.pack("<Q", address) + bytes([18]) * (60 << 20)
        body = struct.pack("<HI", 3, len(head)) + head + program
        elf.put(elf.find(".debug_line"), struct.pack("<I", len(body)) + body)
        self.check_costly(elf, "libstuck.so: its line table takes too much memory; some source lines are missing")

    def stress_functions_that_share_a_long_list_of_ranges_take_bounded_time(self):
        ranges, plain = self.folder / "ranges", self.folder / "plain.so"
        ranges.write_bytes(b"".join(struct.pack("<QQ", 2 * i + 1, 2 * i + 2) for i in range(200_000)) + bytes(16))
        self.objcopy("--add-section", f".debug_ranges={ranges}", LIBRARY, plain)
        elf = Elf(plain.read_bytes())
        address, size = self.address_of_stuck(elf)
        # DWARF 4. Abbreviation 1 is a unit with an address, a size and a line table. Abbreviation 3 is a function with
        # a list of ranges.
        elf.put(elf.find(".debug_abbrev"), b"\1\x11\1\x11\1\x12\7\x10\x17\0\0" + b"\3\x2e\0\x55\x17\0\0" + b"\0")
        entries = b"\1" + struct.pack("<QQI", address, size, 0) + (b"\3" + bytes(4)) * 200_000 + b"\0"
        body = struct.pack("<HIB", 4, 0, 8) + entries
        elf.put(elf.find(".debug_info"), struct.pack("<I", len(body)) + body)
        index = struct.pack("<HIBB", 2, 0, 8, 0) + bytes(4) + struct.pack("<QQQQ", address, size, 0, 0)
        elf.put(elf.find(".debug_aranges"), struct.pack("<I", len(index)) + index)
        self.check_costly(elf, "libstuck.so: reading its debug information took too much time or memory, or failed")

    def test_a_fifo_at_the_place_of_a_split_file_is_not_waited_for(self):
        shutil.copy(Path(__file__).parent / SOURCE, self.folder / SOURCE)
        subprocess.run([CC, "-g", "-O1", "-gsplit-dwarf", "-fPIC", "-shared", "-Wl,--build-id", "-o", "libstuck.so", SOURCE],
                       cwd=self.folder, check=True, timeout=60)
        split = next(self.folder.glob("*.dwo"))
        self.why(lines=True)
        split.unlink()
        os.mkfifo(split)
        self.why(f"{split.name}: no debug information could be read from it", lines=True)

    def stress_packed_symbol_tables_of_many_libraries_are_not_all_unpacked(self):
        """Twelve libraries call each other. Each has a packed symbol table of 60 MB, which is within the limit for one file."""
        packed, count = self.folder / "packed", 12
        packer = lzma.LZMACompressor(preset=0)
        packed.write_bytes(packer.compress(Path(LIBRARY).read_bytes() + bytes(60 << 20)) + packer.flush())
        for number in reversed(range(count)):
            name = "stuck" if number == 0 else f"step{number}"
            body = "read(fd, (void*)&byte, 1) + byte" if number == count - 1 else f"step{number + 1}(fd) + 1"
            source = self.folder / "step.c"
            source.write_text(f"#include <unistd.h>\nint step{number + 1}(int);\n"
                              f"int {name}(int fd) {{ volatile char byte = 0; (void)byte; return (int){body}; }}")
            library = self.folder / f"lib{number}.so"
            needed = [] if number == count - 1 else [self.folder / f"lib{number + 1}.so"]
            subprocess.run([CC, "-O1", "-fPIC", "-shared", "-Wl,--build-id", f"-Wl,-rpath,{self.folder}", "-o", library, source, *needed],
                           check=True, timeout=60)
            self.objcopy("--strip-all", f"--add-section=.gnu_debugdata={packed}", library)
        program = Program([HANGING, "load", self.folder / "lib0.so"])
        self.addCleanup(program.end)
        settle(program.pid)
        report = self.why("and those of other files took the 256 MiB that forksight unpacks", memory_mb=512, program=program)
        names = {frame["function"] for frame in report["findings"][0]["stack"]}
        # The packed table is copied from another library. So the innermost function, step11, may get a wrong name from
        # this table.
        self.assertLessEqual({f"step{number}" for number in range(1, count - 1)}, names)

    def test_names_that_stand_for_gigabytes_stay_mangled(self):
        """Three functions call each other. Each has the name of a C++ function with 41 parameters. The text of each
        parameter is twice as long as the text of the parameter before it. The demangled text of such a name has more
        than 2^40 words."""
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        source = self.folder / "names.c"
        lines = ["#include <unistd.h>", "#define OUT __attribute__((noinline, visibility(\"default\")))"]
        called = "read(fd, &byte, 1)"
        for number in range(3):
            name = f"_Z1{digits[10 + number].lower()}1pIiiE" + "".join(f"S_IS{one}_S{one}_E" for one in [*digits, "10", "11", "12", "13"])
            lines.append(f'OUT int step{number}(int fd) __asm__("{name}");')
            lines.append(f"int step{number}(int fd) {{ volatile char byte = 0; return (int){called.replace('&byte', '(void*)&byte')} + byte; }}")
            called = f"step{number}(fd)"
        lines.append(f"OUT int stuck(int fd) {{ return {called} + 1; }}")
        source.write_text("\n".join(lines))
        subprocess.run([CC, "-O1", "-fPIC", "-shared", "-Wl,--build-id", "-o", self.library, source], check=True, timeout=60)
        report = self.why()
        names = [frame["function"] for frame in report["findings"][0]["stack"]]
        self.assertEqual(len([name for name in names if name.startswith("_Z1")]), 3, names)

    def test_notes_that_overlap_are_not_read_again_and_again(self):
        elf = Elf(Path(LIBRARY).read_bytes())
        count, size = 60_000, len(elf.bytes)
        table = b"".join(SHDR.pack(*elf.section(i)) for i in range(elf.shnum))
        table += SHDR.pack(0, SHT_NOTE, 0, 0, 0, size, 0, 0, 4, 0) * (count - elf.shnum)
        head = list(EHDR.unpack_from(elf.bytes))
        head[6], head[12] = size, count
        EHDR.pack_into(elf.bytes, 0, *head)
        self.library.write_bytes(elf.bytes + table)
        self.why("libstuck.so: cannot be read (its sections of notes have", name=None)

    def test_call_frame_information_of_gigabytes_is_not_searched(self):
        elf = Elf(Path(LIBRARY).read_bytes())
        size = 1_900 << 20
        for number in range(elf.phnum):
            values = elf.segment(number)
            if values[0] == PT_GNU_EH_FRAME:
                values[2], values[5] = len(elf.bytes), size
                elf.set_segment(number, values)
        for name in (".eh_frame", ".eh_frame_hdr"):
            values = elf.section(elf.find(name))
            values[4], values[5] = len(elf.bytes), size
            elf.set_section(elf.find(name), values)
        self.library.write_bytes(elf.bytes)
        os.truncate(self.library, len(elf.bytes) + size)
        self.why("libstuck.so: its call frame information has", lines=True)

    def test_names_of_sections_are_not_searched_for_their_end(self):
        elf = Elf(Path(LIBRARY).read_bytes())
        values = elf.section(elf.names)
        values[4], values[5] = len(elf.bytes), 8 << 20
        elf.set_section(elf.names, values)
        self.library.write_bytes(bytes(elf.bytes) + b"a" * (8 << 20))
        self.why("libstuck.so: cannot be read (the names of its sections do not end)", name=None)

    def test_a_library_may_become_shorter_while_it_is_read(self):
        self.check_shorter(tries=8)

    def stress_a_library_may_become_shorter_in_any_moment(self):
        self.check_shorter(tries=50)

    def check_shorter(self, tries):
        whole = Path(LIBRARY).read_bytes()
        other = self.folder / "libother.so"
        elf = Elf(whole)
        elf.put(elf.find(".comment"), bytes(16 << 20))  # so large that forksight needs some time to read it
        self.library.write_bytes(elf.bytes)
        program = Program([HANGING, "load", self.library])
        self.addCleanup(program.end)
        settle(program.pid)
        other.write_bytes(elf.bytes)
        stop = threading.Event()

        def cut():
            while not stop.is_set():
                os.truncate(self.library, 4096)
                time.sleep(0.001)
                with open(self.library, "r+b") as file:
                    file.write(elf.bytes)
                time.sleep(0.002)

        cutter = threading.Thread(target=cut)
        cutter.start()
        try:
            for _ in range(tries):
                done = run([FORKSIGHT, "why", program.pid, "--format", "json"])
                self.assertEqual(done.status, 1, (done.status, done.err))
                self.assertEqual([finding["rule"] for finding in json.loads(done.out)["findings"]], ["pipe-held-open"])
                self.assertLess(done.peak_mb, 512)
        finally:
            stop.set()
            cutter.join()


if __name__ == "__main__":
    unittest.main()
