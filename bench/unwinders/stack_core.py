#!/usr/bin/python3
"""Writes a core file that contains one recorded stack: stack_core.py DUMP LABEL CORE. DUMP is the output of a program of
tests/symbols. LABEL names one of its stacks. CORE is the file to write."""
import struct
import sys
from pathlib import Path

PAGE = 4096
LINKS = 0x10000  # the address of the made-up list of loaded objects: r_debug, then the link_maps, then the names


def down(value):
    return value // PAGE * PAGE


class Module:
    def __init__(self, bias, start, end, path):
        self.bias, self.start, self.end, self.path = bias, start, end, path
        self.data = Path(path).read_bytes() if path.startswith("/") else b""
        self.segments = []
        if not self.data:
            return
        offset, self.entry = struct.unpack_from("<Q", self.data, 32)[0], struct.unpack_from("<Q", self.data, 24)[0]
        self.phoff, count = offset, struct.unpack_from("<H", self.data, 56)[0]
        self.phnum = count
        for i in range(count):
            self.segments.append(struct.unpack_from("<IIQQQQQQ", self.data, offset + i * 56))

    def of_kind(self, kind):
        return [segment for segment in self.segments if segment[0] == kind]

    @property
    def dynamic(self):
        return self.bias + self.of_kind(2)[0][3]


def read_dump(path, label):
    modules, stack = [], None
    for line in Path(path).read_text().splitlines():
        words = line.split(maxsplit=5)
        if words[0] == "module":
            modules.append(Module(*(int(word, 16) for word in words[1:4]), words[5]))
        elif words[0] == "stack" and words[1] == label:
            words = line.split()
            stack = [int(word, 16) for word in words[2:5]] + [bytes.fromhex(words[7])]
    return modules, stack


def note(kind, body):
    return struct.pack("<III8s", 5, len(body), kind, b"CORE") + body + bytes(-len(body) % 4)


def make_notes(modules, stack):
    program = modules[0]
    registers = [0] * 27
    registers[4], registers[16], registers[19] = stack[2], stack[0] - 1, stack[1]  # rbp, rip, rsp of user_regs_struct
    status = bytearray(336)
    struct.pack_into("<i", status, 32, 1)
    struct.pack_into("<27Q", status, 112, *registers)
    notes = note(1, bytes(status))
    loader = next(module for module in modules if "ld-linux" in module.path)
    auxiliary = [(3, program.start + program.phoff), (4, 56), (5, program.phnum), (6, PAGE), (7, loader.bias),
                 (9, program.bias + program.entry), (0, 0)]
    notes += note(6, b"".join(struct.pack("<QQ", *pair) for pair in auxiliary))
    pieces = [(module.bias + down(s[3]), module.bias + down(s[3] + s[5] + PAGE - 1), down(s[2]) // PAGE, module.path)
              for module in modules for s in module.of_kind(1)]
    body = struct.pack("<QQ", len(pieces), PAGE) + b"".join(struct.pack("<QQQ", *piece[:3]) for piece in pieces)
    return notes + note(0x46494c45, body + b"".join(piece[3].encode() + b"\0" for piece in pieces))


def make_links(modules):
    """Returns the bytes of r_debug, and of a link_map for each object. Debuggers find them by DT_DEBUG of the
    program."""
    listed = [module for module in modules if module.segments]
    at = LINKS + 64
    names = at + 64 * len(listed)
    maps, text = b"", b""
    for i, module in enumerate(listed):
        following = at + 64 * (i + 1) if i + 1 < len(listed) else 0
        before = at + 64 * (i - 1) if i > 0 else 0
        maps += struct.pack("<5Q24x", module.bias, names + len(text), module.dynamic, following, before)
        text += (b"" if i == 0 else module.path.encode()) + b"\0"
    return struct.pack("<4Q32x", 1, at, 0, 0) + maps + text


def make_core(modules, stack):
    program = modules[0]
    dynamic = bytearray(program.data)
    segment = program.of_kind(2)[0]
    for offset in range(segment[2], segment[2] + segment[5], 16):
        if struct.unpack_from("<Q", dynamic, offset)[0] == 21:
            struct.pack_into("<Q", dynamic, offset + 8, LINKS)
    first = down(program.dynamic)
    load = next(s for s in program.of_kind(1) if program.bias + s[3] <= program.dynamic < program.bias + s[3] + s[6])
    file_first = load[2] + first - program.bias - load[3]
    pieces = [(LINKS, make_links(modules)), (first, bytes(dynamic[file_first:file_first + 2 * PAGE])), (stack[1], stack[3])]
    notes = make_notes(modules, stack)
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, len(pieces) + 1, 0, 0, 0)
    offset = 64 + 56 * (len(pieces) + 1)
    table = struct.pack("<IIQQQQQQ", 4, 0, offset, 0, 0, len(notes), 0, 4)
    offset += len(notes)
    for address, data in pieces:
        table += struct.pack("<IIQQQQQQ", 1, 6, offset, address, 0, len(data), len(data), 1)
        offset += len(data)
    return header + table + notes + b"".join(data for _, data in pieces)


if __name__ == "__main__":
    found, recorded = read_dump(sys.argv[1], sys.argv[2])
    Path(sys.argv[3]).write_bytes(make_core(found, recorded))
