"""Makes libraries whose tables are hostile. The C compiler assembles each library from a text, so
the linker computes its addresses. The function stuck() of each library reads from a descriptor, and never returns."""
import struct
import subprocess

TEXT = """
.file "made.c"
.text
.globl {function}
.type {function},@function
{function}:
.Lstuck:
.cfi_startproc
sub $24, %rsp
.cfi_adjust_cfa_offset 24
{extra}
mov %rsp, %rsi
mov $1, %edx
call {calls}@plt
add $24, %rsp
.cfi_adjust_cfa_offset -24
ret
.cfi_endproc
.Lstuck_end:
.size {function}, .-{function}
{more}
.section .note.GNU-stack,"",@progbits
"""


def uleb(value):
    out = bytearray()
    while True:
        out.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if value == 0:
            return bytes(out)


def sleb(value):
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        is_last = value == (-1 if byte & 0x40 else 0)
        out.append(byte | (0 if is_last else 0x80))
        if is_last:
            return bytes(out)


def build(cc, path, extra="", more="", sections=None, flags=(), plain=False, function="stuck", calls="read"):
    """Builds a library.

    `extra` is assembler text within stuck(), and `more` is text after stuck(). `sections` maps the name of a section to
    its content. The content is bytes, or a list of bytes and of names of symbols. A name stands for the 8 bytes of the
    symbol's address. If `plain` is true, stuck() has no call frame information. `function` is another name for stuck().
    `calls` is the function that stuck() calls instead of read(). If `calls` is None, stuck() calls no function.
    """
    folder, text = path.parent, TEXT.format(extra=extra, more=more, function=function, calls=calls)
    if calls is None:
        text = text.replace("call None@plt", "")
    if plain:
        text = "\n".join(line for line in text.split("\n") if not line.startswith(".cfi"))
    for number, (name, content) in enumerate((sections or {}).items()):
        kind = "@progbits" if name.startswith(".debug") else "@note" if name.startswith(".note") else "@progbits"
        text += f'.section {name},"",{kind}\n'
        for part, piece in enumerate([content] if isinstance(content, bytes) else content):
            if isinstance(piece, str):
                text += f".quad {piece}\n"
                continue
            blob = folder / f"{path.name}.{number}.{part}"
            blob.write_bytes(piece)
            text += f'.incbin "{blob}"\n'
    source = path.with_suffix(".s")
    source.write_text(text)
    subprocess.run([cc, "-shared", "-nostdlib", "-Wl,--build-id", "-Wl,-z,noexecstack", *flags, "-o", path, source], check=True, timeout=120)
    for blob in folder.glob(f"{path.name}.*.*"):
        blob.unlink()
    source.unlink()


class Info:
    """Makes debug information of version 4 or 5 with one unit. The unit spans stuck(), and has the line table at offset
    0 of .debug_line."""

    # Abbreviation 1 is the unit. Abbreviation 2 is a function with children. Abbreviation 3 is a function without
    # children. The numbers from 4 on are free.
    ABBREV = (uleb(1) + b"\x11\1" + b"\x03\x08" + b"\x11\x01" + b"\x12\x07" + b"\x10\x17" + b"\0\0" +
              uleb(2) + b"\x2e\1" + b"\x03\x08" + b"\x11\x01" + b"\x12\x07" + b"\0\0" +
              uleb(3) + b"\x2e\0" + b"\x03\x08" + b"\x11\x01" + b"\x12\x07" + b"\0\0")

    @staticmethod
    def unit(entries, version=4, abbrev_at=0, name=b"made.c\0", line_at=0, kind=1, function="stuck"):
        """Returns the pieces of a unit, for build(). `entries` are the pieces of the entries within the unit."""
        size = sum(8 if isinstance(piece, str) else len(piece) for piece in entries)
        head = struct.pack("<HIB", 4, abbrev_at, 8) if version == 4 else struct.pack("<HBBI", 5, kind, 8, abbrev_at)
        size += len(head) + 1 + len(name) + 8 + 8 + 4 + 1
        return [struct.pack("<I", size) + head + uleb(1) + name, function,
                struct.pack("<QI", 256, line_at), *entries, b"\0"]

    @staticmethod
    def ranges(function="stuck"):
        """Returns an index from the address of stuck() to the unit at offset 0."""
        return [struct.pack("<IHIBBI", 44, 2, 0, 8, 0, 0), function, struct.pack("<Q", 256), bytes(16)]

    @staticmethod
    def lines(names=(b"made.c",), head_names=None, program=b"", function="stuck"):
        """Returns a line table of version 3. One line begins at stuck()."""
        listed = head_names if head_names is not None else b"".join(name + b"\0\0\0\0" for name in names)
        head = struct.pack("<BBbBB", 1, 1, -5, 14, 13) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + b"\0" + listed + b"\0"
        end = program + b"\x03" + sleb(6) + b"\x01" + b"\x02" + uleb(200) + b"\0\1\1"
        size = 2 + 4 + len(head) + 3 + 8 + len(end)
        return [struct.pack("<IHI", size, 3, len(head)) + head + b"\0\x09\2", function, end]
