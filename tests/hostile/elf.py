"""ELF files for the tests: files with replaced sections, and cores of processes that never existed."""
import struct

SHT_NULL, SHT_PROGBITS, SHT_NOTE, SHT_NOBITS = 0, 1, 7, 8
SHF_COMPRESSED = 0x800
PT_LOAD, PT_NOTE, PT_GNU_EH_FRAME = 1, 4, 0x6474E550
EHDR, PHDR, SHDR = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ"), struct.Struct("<IIQQQQIIQQ")


class Elf:
    """A 64-bit ELF file. Its sections can be replaced."""

    def __init__(self, content):
        self.bytes = bytearray(content)
        head = EHDR.unpack_from(self.bytes)
        self.phoff, self.shoff, self.phnum, self.shnum, self.names = head[5], head[6], head[10], head[12], head[13]

    def section(self, number):
        return list(SHDR.unpack_from(self.bytes, self.shoff + number * SHDR.size))

    def set_section(self, number, values):
        SHDR.pack_into(self.bytes, self.shoff + number * SHDR.size, *values)

    def segment(self, number):
        return list(PHDR.unpack_from(self.bytes, self.phoff + number * PHDR.size))

    def set_segment(self, number, values):
        PHDR.pack_into(self.bytes, self.phoff + number * PHDR.size, *values)

    def find(self, name):
        names = self.section(self.names)
        for number in range(self.shnum):
            at = names[4] + self.section(number)[0]
            if self.bytes[at:self.bytes.index(0, at)] == name.encode():
                return number
        raise KeyError(name)

    def put(self, number, content, flags=None):
        """Replaces the contents of a section. Appends the new bytes to the file."""
        self.bytes += b"\0" * (-len(self.bytes) % 16)
        values = self.section(number)
        if flags is not None:
            values[2] = flags
        values[1] = SHT_PROGBITS
        values[4], values[5] = len(self.bytes), len(content)
        self.bytes += content
        self.set_section(number, values)


def note(kind, body, owner=b"CORE\0"):
    padded = lambda raw: raw + b"\0" * (-len(raw) % 4)
    return struct.pack("<III", len(owner), len(body), kind) + padded(owner) + padded(body)


def thread_note(tid, rip, rsp):
    """Returns the note NT_PRSTATUS of a thread in futex(): an elf_prstatus of <sys/procfs.h>. The registers begin at
    byte 112 of the elf_prstatus."""
    body = bytearray(336)
    struct.pack_into("<i", body, 32, tid)
    registers = [0] * 27
    registers[10] = (1 << 64) - 512  # rax: the kernel has put -ERESTARTSYS there
    registers[15], registers[16], registers[17] = 202, rip, 0x33
    registers[19], registers[20] = rsp, 0x2B
    registers[21] = 0x7F0000000000 + tid * 0x1000  # fs_base
    struct.pack_into("<27Q", body, 112, *registers)
    return note(1, bytes(body))


def process_note(uid=0):
    process = bytearray(136)
    struct.pack_into("<IIiiii", process, 16, uid, uid, 1000, 1, 1000, 1000)
    process[40:44] = b"many"
    return note(3, bytes(process))


def files_note(files):
    """Returns the note NT_FILE, which lists the mapped files. Each file is (start, end, offset in pages, path)."""
    rows = b"".join(struct.pack("<QQQ", *file[:3]) for file in files)
    return note(0x46494C45, struct.pack("<QQ", len(files), 4096) + rows + b"".join(str(file[3]).encode() + b"\0" for file in files))


def write_core_with_hole(path, hole_bytes):
    """Writes a core of two threads. Between the notes of the two threads is a note of `hole_bytes` bytes about vector
    registers. These bytes are a hole in the file, so they take no disk space."""
    page, code, stack = 4096, 0x400000, 0x7FFF00000000
    first = process_note() + thread_note(1000, code + 2, stack + 256) + struct.pack("<III", 6, hole_bytes, 0x202) + b"LINUX\0\0\0"
    last = thread_note(1001, code + 2, stack + 256)
    size = len(first) + hole_bytes + len(last)
    segments = [(PT_NOTE, 0, 3 * page, 0, 0, size, 0, 4), (PT_LOAD, 5, page, code, 0, page, page, page),
                (PT_LOAD, 6, 2 * page, stack, 0, page, page, page)]
    head = EHDR.pack(b"\x7fELF\x02\x01\x01" + bytes(9), 4, 62, 1, 0, EHDR.size, 0, 0, EHDR.size, PHDR.size, len(segments), 0, 0, 0)
    head += b"".join(PHDR.pack(*segment) for segment in segments)
    with open(path, "wb") as file:
        file.write(head.ljust(page, b"\0") + b"\x0f\x05".ljust(page, b"\x90") + bytes(page) + first)
        file.seek(hole_bytes, 1)
        file.write(last)


def write_core_of_notes(path, places):
    """Writes a core of one thread. `places` has the segments of notes, each as (offset, size). The first segment begins
    with the notes of the thread. All other bytes are a hole in the file. The hole reads as zeros, and zeros are notes
    without content."""
    page, code = 4096, 0x400000
    segments = [(PT_NOTE, 0, at, 0, 0, size, 0, 4) for at, size in places] + [(PT_LOAD, 5, 0, code, 0, page, page, page)]
    head = EHDR.pack(b"\x7fELF\x02\x01\x01" + bytes(9), 4, 62, 1, 0, EHDR.size, 0, 0, EHDR.size, PHDR.size, len(segments), 0, 0, 0)
    with open(path, "wb") as file:
        file.write(head + b"".join(PHDR.pack(*segment) for segment in segments))
        file.seek(places[0][0])
        file.write(process_note() + thread_note(1000, code + 2, code))
        file.truncate(max(at + size for at, size in places))


def core(threads, files=(), uid=0):
    """Returns the bytes of a core whose threads all sleep in futex(). All threads have the same page of stack. `files`
    are the mapped files, as in files_note(). `uid` is the user of the process."""
    page, code, stack = 4096, 0x400000, 0x7FFF00000000
    notes = process_note(uid) + (files_note(files) if files else b"") + b"".join(thread_note(1000 + i, code + 2, stack + 256) for i in range(threads))
    head_bytes = page
    notes_at = head_bytes
    data_at = (notes_at + len(notes) + page - 1) // page * page
    segments = [(PT_NOTE, 0, notes_at, 0, 0, len(notes), 0, 4), (PT_LOAD, 5, data_at, code, 0, page, page, page),
                (PT_LOAD, 6, data_at + page, stack, 0, page, page, page)]
    head = EHDR.pack(b"\x7fELF\x02\x01\x01" + bytes(9), 4, 62, 1, 0, EHDR.size, 0, 0, EHDR.size, PHDR.size, len(segments), 0, 0, 0)
    head += b"".join(PHDR.pack(*segment) for segment in segments)
    body = head.ljust(head_bytes, b"\0") + notes
    return body.ljust(data_at, b"\0") + b"\x0f\x05".ljust(page, b"\x90") + bytes(page)


def write_core(path, notes, segments, content):
    """Writes a core with one segment of notes, and a segment of memory for each entry of `segments`. An entry is
    (flags, address, size in memory, offset in `content`, size in the file)."""
    page = 4096
    at = EHDR.size + (1 + len(segments)) * PHDR.size
    data_at = (at + len(notes) + page - 1) // page * page
    rows = [(PT_NOTE, 0, at, 0, 0, len(notes), 0, 4)]
    rows += [(PT_LOAD, flags, data_at + offset, address, 0, size, in_memory, page) for flags, address, in_memory, offset, size in segments]
    head = EHDR.pack(b"\x7fELF\x02\x01\x01" + bytes(9), 4, 62, 1, 0, EHDR.size, 0, 0, EHDR.size, PHDR.size, len(rows), 0, 0, 0)
    with open(path, "wb") as file:
        file.write((head + b"".join(PHDR.pack(*row) for row in rows) + notes).ljust(data_at, b"\0") + content)


def program_head(size, build_id=None):
    """Returns the first page of a program with one segment of `size` bytes."""
    segments = [(PT_LOAD, 5, 0, 0, 0, 4096, size, 4096)]
    body = b""
    if build_id is not None:
        body = struct.pack("<III", 4, len(build_id), 3) + b"GNU\0" + build_id
        segments.append((PT_NOTE, 4, 0x200, 0x200, 0, len(body), len(body), 4))
    head = EHDR.pack(b"\x7fELF\x02\x01\x01" + bytes(9), 3, 62, 1, 0, EHDR.size, 0, 0, EHDR.size, PHDR.size, len(segments), 0, 0, 0)
    head += b"".join(PHDR.pack(*segment) for segment in segments)
    return (head.ljust(0x200, b"\0") + body).ljust(4096, b"\0")
