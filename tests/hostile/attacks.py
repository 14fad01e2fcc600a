"""Makes files that try to use up time or memory of forksight, or to crash it.

Each function with the decorator `attack` or `default_attack` makes a library in a folder. A process of the program
`hanging` (hanging.c) then hangs in the library's function stuck(). If an attack returns a list, the list has the
arguments for the program `hanging`.
"""
import struct

from elf import EHDR, PT_GNU_EH_FRAME, SHDR, Elf
from made_library import Info, build, sleb, uleb

ATTACKS = {}
# The names of attacks that once took more than ten seconds or 512 MB, or because of which a report lacked names of
# other files. Each test run tries these attacks. If several attacks show the same defect, this set has only one of
# them.
DEFAULT = set()
MILLION = 1_000_000


def attack(function):
    ATTACKS[function.__name__] = function
    return function


def default_attack(function):
    DEFAULT.add(function.__name__)
    return attack(function)


class Place:
    def __init__(self, folder, hanging, cc):
        self.folder, self.cc = folder, cc
        self.program = hanging  # an attack may put another program here
        self.library = folder / "libmade.so"

    def build(self, **arguments):
        build(self.cc, self.library, **arguments)

    def elf(self):
        return Elf(self.library.read_bytes())

    def write(self, elf):
        self.library.write_bytes(elf.bytes)


@default_attack
def honest(place):
    place.build(sections={".debug_info": Info.unit([uleb(3) + b"stuck\0", "stuck", struct.pack("<Q", 256)]), ".debug_abbrev": Info.ABBREV + b"\0",
                          ".debug_line": Info.lines(), ".debug_aranges": Info.ranges()})


# Call frame information

def blob_frames(place, data, function="stuck", extra="", more="", **arguments):
    """Builds a library whose call frame information has the instructions `data` for a function. `data` may have
    millions of bytes. The assembler would take too long for as many directives. So the text below writes the entry of
    the function byte by byte, and includes `data` from a file."""
    blob = place.folder / "frames"
    blob.write_bytes(data)
    text = f"""
.section .eh_frame,"a",@progbits
.Lcie: .long .Lcie_end-.Lcie_start
.Lcie_start: .long 0
.byte 1
.string "zR"
.uleb128 1
.sleb128 -8
.byte 16
.uleb128 1
.byte 0x1b
.byte 0x0c,7,8,0x90,1
.balign 4
.Lcie_end:
.Lfde: .long .Lfde_end-.Lfde_start
.Lfde_start: .long .Lfde_start-.Lcie
.long .L{function}-.
.long .L{function}_end-.L{function}
.uleb128 0
.byte 0x0e,32
.incbin "{blob}"
.balign 4
.Lfde_end:
"""
    place.build(extra=extra, more=more + text, plain=True, **arguments)
    blob.unlink()


@attack
def frames_that_remember_ten_million_states(place):
    blob_frames(place, b"\x0a" * 10 * MILLION)


@attack
def frames_that_copy_a_large_state(place):
    """The instructions set a rule for register number four million. So a copy of all rules takes 64 MB. Then two
    million instructions each make such a copy."""
    blob_frames(place, b"\x05" + uleb(4 * MILLION) + uleb(1) + b"\x0a\x0b" * 2 * MILLION)


@attack
def frames_of_register_four_billion(place):
    blob_frames(place, b"\x05" + uleb(0xFFFFFFF0) + uleb(1))


@attack
def frames_with_ten_million_rows(place):
    blob_frames(place, b"\x40\x0e\x20" * 10 * MILLION)


@attack
def frames_with_a_long_expression(place):
    """The address of the frame is computed by ten million operations."""
    ops = b"\x77\x20" + b"\x96" * 10 * MILLION  # breg7 32, nop...
    blob_frames(place, b"\x0f" + uleb(len(ops)) + ops)


@attack
def frames_with_a_long_expression_for_each_register(place):
    ops = b"\x77\x00" + b"\x96" * 500_000
    blob_frames(place, b"".join(b"\x10" + uleb(register) + uleb(len(ops)) + ops for register in (3, 6, 12, 13, 14, 15)))


@attack
def frames_with_an_expression_that_reads_memory(place):
    """Each third operation reads a word of the process's memory. The word is not on the stack."""
    ops = b"\x80\x00" + b"\x06\x13\x80\x00" * 400_000 + b"\x13\x77\x20"  # (breg16 0, deref, drop)...
    blob_frames(place, b"\x0f" + uleb(len(ops)) + ops)


@default_attack
def frames_with_an_expression_that_reads_memory_in_each_of_many_frames(place):
    """stuck() calls a function that calls itself a thousand times. Each frame has an expression that reads memory."""
    ops = b"\x80\x00" + b"\x06\x13\x80\x00" * 20_000 + b"\x13\x77\x20"
    deep = """
.Ldeep: sub $24, %rsp
dec %ecx
jz 1f
call .Ldeep
add $24, %rsp
ret
1: mov %rsp, %rsi
mov $1, %edx
call read@plt
add $24, %rsp
ret
.Ldeep_end:
"""
    blob_frames(place, b"\x0f" + uleb(len(ops)) + ops, "deep", extra="mov $1000, %ecx\ncall .Ldeep", more=deep)


@attack
def frames_with_an_expression_that_loops(place):
    ops = b"\x77\x20" + b"\x2f" + struct.pack("<h", -3)
    blob_frames(place, b"\x0f" + uleb(len(ops)) + ops)


@attack
def frames_with_an_expression_that_calls(place):
    ops = b"\x77\x20" + b"\x9a" + struct.pack("<I", 0)
    blob_frames(place, b"\x0f" + uleb(len(ops)) + ops)


@attack
def frames_whose_cie_has_a_long_augmentation(place):
    place.build(more='.section .eh_frame,"a",@progbits\n.Lc: .long .Ld-.Ls\n.Ls: .long 0\n.byte 1\n.ascii "z"\n.fill 20000000,1,0x52\n.byte 0\n'
                     '.uleb128 1\n.sleb128 -8\n.byte 16\n.uleb128 1\n.byte 0x1b\n.balign 4\n.Ld:\n.Lf: .long .Lg-.Lh\n.Lh: .long .Lh-.Lc\n.long .Lstuck-.\n'
                     '.long .Lstuck_end-.Lstuck\n.uleb128 0\n.balign 4\n.Lg:\n', plain=True)


@attack
def frames_with_two_million_entries_of_debug_frame(place):
    cie = struct.pack("<IIB", 20, 0xFFFFFFFF, 4) + b"\0\x08\0\1\x78\x10" + b"\x0c\7\x08\x90\1" + bytes(4)
    fde = b"".join(struct.pack("<IIQQ", 20, 0, (1 << 40) + i, 1) for i in range(2 * MILLION))
    place.build(plain=True, flags=("-Wl,--no-eh-frame-hdr",), sections={
        ".debug_info": Info.unit([uleb(3) + b"stuck\0", "stuck", struct.pack("<Q", 256)]), ".debug_abbrev": Info.ABBREV + b"\0",
        ".debug_line": Info.lines(), ".debug_aranges": Info.ranges(), ".debug_frame": cie + fde})


@attack
def frames_whose_index_is_not_sorted(place):
    place.build()
    elf = place.elf()
    for number in range(elf.phnum):
        values = elf.segment(number)
        if values[0] == PT_GNU_EH_FRAME:
            at = len(elf.bytes)
            rows = b"".join(struct.pack("<ii", (i * 7919) % 100_000 - 50_000, (i * 104729) % 4096) for i in range(200_000))
            elf.bytes += b"\1\x1b\3\x3b" + struct.pack("<iI", -64, 200_000) + rows
            values[2], values[5] = at, 12 + len(rows)
            elf.set_segment(number, values)
    place.write(elf)


@attack
def frames_whose_index_counts_four_billion(place):
    place.build()
    elf = place.elf()
    for number in range(elf.phnum):
        values = elf.segment(number)
        if values[0] == PT_GNU_EH_FRAME:
            struct.pack_into("<I", elf.bytes, values[2] + 8, 0xFFFFFFFF)
    place.write(elf)


# Symbols and sections

def symbols(place, count, names, same_address=False, info=0x12, name_of=lambda i: 1):
    place.build()
    elf = place.elf()
    rows = b"".join(struct.pack("<IBBHQQ", name_of(i), info, 0, 5, 0x1000 + (0 if same_address else i % 4096), 0 if same_address else 1 + i % 4096)
                    for i in range(min(count, MILLION))) * max(1, count // MILLION)
    add_sections(elf, [(2, rows, 24, 1), (3, names, 0, 0)])
    place.write(elf)


def add_sections(elf, added):
    """Adds the sections `added`: (type, content, size of an entry, info). Each added section links to the next one."""
    table = [elf.section(number) for number in range(elf.shnum)]
    for kind, content, entry, info in added:
        elf.bytes += b"\0" * (-len(elf.bytes) % 16)
        table.append([0, kind, 0, 0, len(elf.bytes), len(content), len(table) + 1, info, 8, entry])
        elf.bytes += content
    put_table(elf, table)


def put_table(elf, table):
    elf.bytes += b"\0" * (-len(elf.bytes) % 16)
    head = list(EHDR.unpack_from(elf.bytes))
    head[6], head[12] = len(elf.bytes), len(table)
    EHDR.pack_into(elf.bytes, 0, *head)
    elf.bytes += b"".join(SHDR.pack(*row) for row in table)
    elf.shoff, elf.shnum = head[6], len(table)


@attack
def symbols_ten_million(place):
    symbols(place, 10 * MILLION, b"\0name\0")


@attack
def symbols_seven_million_with_one_long_name(place):
    symbols(place, 7 * MILLION, b"\0" + b"n" * 5000 + b"\0", same_address=True)


@attack
def symbols_whose_names_do_not_end(place):
    symbols(place, MILLION, b"\0" + b"n" * (64 << 20), name_of=lambda i: 1 + i)


@default_attack
def dynamic_symbols_whose_names_do_not_end(place):
    """forksight reads these sections to find imports and calls. The loader does not read them."""
    place.build()
    elf = place.elf()
    count = MILLION
    rows = bytes(24) + struct.pack("<IBBHQQ", 5, 0x12, 0, 0, 0, 0) * count
    relocations = b"".join(struct.pack("<QQq", 0x4000 + i, (1 + i) << 32 | 7, 0) for i in range(count))
    table = [elf.section(number) for number in range(elf.shnum)]
    for row in table:
        if row[1] in (4, 11):
            row[1] = 1
    for kind, content, entry, step in ((11, rows, 24, 1), (3, b"\0" + b"n" * (32 << 20), 0, 0), (4, relocations, 24, -2)):
        elf.bytes += b"\0" * (-len(elf.bytes) % 16)
        table.append([0, kind, 0, 0, len(elf.bytes), len(content), len(table) + step, 1, 8, entry])
        elf.bytes += content
    put_table(elf, table)
    place.write(elf)


@default_attack
def relocations_in_sixty_thousand_sections_that_overlap(place):
    place.build()
    elf = place.elf()
    dynsym = next(number for number in range(elf.shnum) if elf.section(number)[1] == 11)
    relocations = b"".join(struct.pack("<QQq", 0x4000 + i * 8, 1 << 32 | 7, 0) for i in range(200_000))
    at = len(elf.bytes) + -len(elf.bytes) % 16
    elf.bytes += b"\0" * (at - len(elf.bytes)) + relocations
    table = [elf.section(number) for number in range(elf.shnum)]
    table += [[0, 4, 2, 0, at, len(relocations), dynsym, 0, 8, 24]] * (60_000 - len(table))
    put_table(elf, table)
    place.write(elf)


@attack
def relocations_eight_million(place):
    place.build()
    elf = place.elf()
    dynsym = next(number for number in range(elf.shnum) if elf.section(number)[1] == 11)
    relocations = b"".join(struct.pack("<QQq", 0x4000 + i * 8, 1 << 32 | 7, 0) for i in range(8 * MILLION))
    at = len(elf.bytes) + -len(elf.bytes) % 16
    elf.bytes += b"\0" * (at - len(elf.bytes)) + relocations
    put_table(elf, [elf.section(number) for number in range(elf.shnum)] + [[0, 4, 2, 0, at, len(relocations), dynsym, 0, 8, 24]])
    place.write(elf)


@attack
def symbol_tables_in_sixty_thousand_sections_that_overlap(place):
    place.build()
    elf = place.elf()
    rows = struct.pack("<IBBHQQ", 1, 0x12, 0, 5, 0x1000, 16) * 200_000
    at = len(elf.bytes) + -len(elf.bytes) % 16
    elf.bytes += b"\0" * (at - len(elf.bytes)) + rows
    table = [elf.section(number) for number in range(elf.shnum)]
    link = next(number for number, row in enumerate(table) if row[1] == 3)
    table += [[0, kind, 0, 0, at, len(rows), link, 0, 8, 24] for kind in (2, 11)] * 30_000
    put_table(elf, table)
    place.write(elf)


@attack
def a_symbol_index_in_a_loop(place):
    """Sections of extended indexes (SHT_SYMTAB_SHNDX), groups (SHT_GROUP) and other kinds link to themselves."""
    place.build()
    elf = place.elf()
    table = [elf.section(number) for number in range(elf.shnum)]
    at = len(elf.bytes) + -len(elf.bytes) % 16
    elf.bytes += b"\0" * (at - len(elf.bytes)) + struct.pack("<I", 0x10000) * (8 << 20)
    first = len(table)
    table += [[0, kind, 0, 0, at, 32 << 20, first + i, first + i, 4, 4] for i, kind in enumerate([18, 17, 19, 5, 0x6FFFFFF6] * 5_000)]
    put_table(elf, table)
    place.write(elf)


@attack
def hashes_that_form_a_ring(place):
    """The file has no section headers, so only its two hash tables show the number of symbols. The chains of the GNU
    hash table have no end. The other hash table claims two billion symbols."""
    place.build(flags=("-Wl,--hash-style=both",), more=".data\n.globl filler\nfiller: .fill 4000000,4,2\n")
    elf = place.elf()
    table = [elf.section(number) for number in range(elf.shnum)]
    for row in table:
        if row[1] == 5:  # DT_HASH begins with nbucket and nchain; the loader uses DT_GNU_HASH instead
            struct.pack_into("<II", elf.bytes, row[4], 1, 0x7FFFFFF0)
        if row[1] == 0x6FFFFFF6:
            buckets, first, bloom, _ = struct.unpack_from("<IIII", elf.bytes, row[4])
            at = row[4] + 16 + 8 * bloom + 4 * buckets
            for word in range(at, row[4] + row[5], 4):
                (value,) = struct.unpack_from("<I", elf.bytes, word)
                struct.pack_into("<I", elf.bytes, word, value & ~1)
    head = list(EHDR.unpack_from(elf.bytes))
    head[6] = head[12] = head[13] = 0
    EHDR.pack_into(elf.bytes, 0, *head)
    place.write(elf)


@attack
def sections_that_overlap_everything(place):
    place.build(sections={".debug_info": Info.unit([]), ".debug_abbrev": Info.ABBREV + b"\0", ".debug_line": Info.lines()})
    elf = place.elf()
    elf.bytes += b"\1" * (100 << 20)
    for number in range(1, elf.shnum):
        values = elf.section(number)
        if number != elf.names:
            values[4], values[5] = 0, len(elf.bytes)
        elf.set_section(number, values)
    place.write(elf)


# Debug information

def debug(place, entries, abbrev=b"", version=4, more=None, lines=None):
    place.build(sections={".debug_info": Info.unit(entries, version), ".debug_abbrev": Info.ABBREV + abbrev + b"\0",
                          ".debug_line": lines or Info.lines(), ".debug_aranges": Info.ranges(), **(more or {})})


STUCK = [uleb(3) + b"stuck\0", "stuck", struct.pack("<Q", 256)]


@attack
def lines_with_ten_million_files(place):
    debug(place, STUCK, lines=Info.lines(head_names=b"a\0\0\0\0" * 10 * MILLION))


@attack
def abbreviations_one_million(place):
    debug(place, [uleb(4 + MILLION - 1), *STUCK], abbrev=b"".join(uleb(4 + i) + b"\x24\0\0\0" for i in range(MILLION)))


@attack
def units_that_share_a_million_abbreviations(place):
    unit = struct.pack("<IHIB", 8 + 3, 4, 0, 8) + uleb(4 + MILLION - 1)
    unit = struct.pack("<I", len(unit) - 4) + unit[4:]
    place.build(sections={".debug_info": [*Info.unit(STUCK), unit * 50_000], ".debug_line": Info.lines(),
                          ".debug_abbrev": Info.ABBREV + b"".join(uleb(4 + i) + b"\x24\0\0\0" for i in range(MILLION)) + b"\0"})


@attack
def abbreviations_with_huge_numbers(place):
    debug(place, STUCK, abbrev=b"".join(uleb((1 << 63) + i) + b"\x24\0\0\0" for i in range(200_000)))


@attack
def names_out_of_range(place):
    # Abbreviation 4 is a function whose name is an index into .debug_str_offsets (DW_FORM_strx).
    debug(place, [uleb(4) + uleb((1 << 40) + 5), "stuck", struct.pack("<Q", 256)], version=5,
          abbrev=uleb(4) + b"\x2e\0" + b"\x03\x1a" + b"\x11\x01" + b"\x12\x07" + b"\0\0", more={".debug_str_offsets": b"\xff" * 64, ".debug_str": b"a" * 64})


@attack
def ranges_of_six_million(place):
    # DW_AT_ranges is an offset into .debug_rnglists (DW_FORM_sec_offset). The list there has six million offset pairs,
    # and no entry that ends the list.
    lists = struct.pack("<IHBBI", 8 + 18 * MILLION, 5, 8, 0, 0) + b"\x04\1\2" * 6 * MILLION
    debug(place, [uleb(4) + b"f\0" + struct.pack("<I", 12)] * 200 + STUCK, version=5, abbrev=uleb(4) + b"\x2e\0" + b"\x03\x08" + b"\x55\x17" + b"\0\0",
          more={".debug_rnglists": lists})


@attack
def entries_whose_origins_form_a_ring(place):
    # Abbreviation 4 is a function with an abstract origin (DW_FORM_ref4), an address and a size, and without a name.
    at = 11 + 1 + 7 + 8 + 8 + 4
    size = 1 + 4 + 8 + 8
    ring = [[uleb(4) + struct.pack("<I", at + (1 - i) * size), "stuck", struct.pack("<Q", 256)] for i in range(2)]
    debug(place, ring[0] + ring[1], abbrev=uleb(4) + b"\x2e\0" + b"\x31\x13" + b"\x11\x01" + b"\x12\x07" + b"\0\0")


@attack
def entries_whose_specifications_form_a_ring(place):
    at = 11 + 1 + 7 + 8 + 8 + 4
    size = 1 + 4 + 8 + 8
    ring = [[uleb(4) + struct.pack("<I", at + (1 - i) * size), "stuck", struct.pack("<Q", 256)] for i in range(2)]
    debug(place, ring[0] + ring[1], abbrev=uleb(4) + b"\x2e\0" + b"\x47\x13" + b"\x11\x01" + b"\x12\x07" + b"\0\0")


@attack
def entries_nested_a_million_deep(place):
    # Abbreviation 4 is a block with children. Abbreviation 5 is a namespace with children.
    debug(place, [uleb(5) * MILLION, *STUCK, bytes(MILLION)], abbrev=uleb(4) + b"\x0b\1\0\0" + uleb(5) + b"\x39\1\0\0")


@attack
def a_function_nested_a_million_deep_in_cplusplus(place):
    # The unit has the language DW_LANG_C_plus_plus. So the reader of debug information searches the scopes of the
    # function.
    abbrev = uleb(1) + b"\x11\1\x03\x08\x11\x01\x12\x07\x10\x17\0\0" + uleb(3) + b"\x2e\0\x03\x08\x11\x01\x12\x07\0\0" + uleb(5) + b"\x39\1\0\0"
    abbrev = abbrev.replace(b"\x10\x17\0\0", b"\x10\x17\x13\x0b\0\0", 1)
    entries = [b"\4", uleb(5) * MILLION, bytes(MILLION), uleb(5) * 200, *STUCK, bytes(200)]
    place.build(sections={".debug_info": Info.unit(entries, 4), ".debug_abbrev": abbrev + b"\0", ".debug_line": Info.lines(), ".debug_aranges": Info.ranges()})


@attack
def blocks_nested_a_million_deep_in_the_function(place):
    debug(place, [uleb(2) + b"stuck\0", "stuck", struct.pack("<Q", 256), uleb(4) * MILLION, bytes(MILLION), b"\0"], abbrev=uleb(4) + b"\x0b\1\0\0")


@attack
def blocks_that_are_searched_again_and_again(place):
    """250 blocks are nested in one another. The innermost block has ten million entries."""
    entries = [uleb(2) + b"stuck\0", "stuck", struct.pack("<Q", 256)]
    entries += [uleb(4) * 250, uleb(5) * 10 * MILLION, bytes(250), b"\0"]
    debug(place, entries, abbrev=uleb(4) + b"\x0b\1\0\0" + uleb(5) + b"\x34\0\0\0")


@attack
def forms_that_are_indirect_in_a_chain(place):
    # DW_FORM_indirect (0x16) says that the form follows. The form that follows is again DW_FORM_indirect, and so on.
    debug(place, [uleb(4) + b"\x16" * 4 * MILLION + b"\x0b\1", *STUCK], abbrev=uleb(4) + b"\x34\0" + b"\x03\x16" + b"\0\0")


@attack
def type_units_four_hundred_thousand(place):
    unit = struct.pack("<HBBIQI", 5, 2, 8, 0, 7, 24) + uleb(4)
    place.build(sections={".debug_info": [*Info.unit(STUCK, 5), (struct.pack("<I", len(unit)) + unit) * 400_000], ".debug_line": Info.lines(),
                          ".debug_abbrev": Info.ABBREV + uleb(4) + b"\x24\0\0\0" + b"\0"})


@attack
def a_unit_of_no_bytes_in_a_loop(place):
    place.build(sections={".debug_info": [bytes(64 << 20)], ".debug_abbrev": Info.ABBREV + b"\0", ".debug_line": Info.lines()})


@attack
def units_that_import_each_other(place):
    at = 11 + 1 + 7 + 8 + 8 + 4
    debug(place, [(uleb(4) + struct.pack("<I", 11)) * 100_000, *STUCK], abbrev=uleb(4) + b"\x3d\0" + b"\x18\x13" + b"\0\0")


@attack
def inlined_calls_ten_million(place):
    # Abbreviation 4 is an inlined call with children, an address and a size. 250 of these calls are nested in one
    # another.
    entries = [uleb(2) + b"stuck\0", "stuck", struct.pack("<Q", 256)]
    for _ in range(250):
        entries += [uleb(4), "stuck", struct.pack("<Q", 256), uleb(5) * 1]
    debug(place, [*entries, uleb(5) * 10 * MILLION, bytes(250), b"\0"], abbrev=uleb(4) + b"\x1d\1" + b"\x11\x01" + b"\x12\x07" + b"\0\0" + uleb(5) + b"\x34\0\0\0")


@attack
def a_main_program_that_takes_minutes(place):
    """The debug information of the program itself is costly. The library has honest debug information."""
    honest(place)
    elf = Elf(place.program.read_bytes())
    size = 1 << 20
    abbrev = b"\1\x11\1\x11\1\x12\7\0\0" + b"\2\x2e\1\x11\1\x12\7\0\0" + b"\4\x0b\1\0\0" + b"\5\x34\0\0\0" + b"\0"
    entries = b"\1" + struct.pack("<QQ", 0, size) + b"\2" + struct.pack("<QQ", 0, size) + b"\4" * 250 + b"\5" * 10 * MILLION + bytes(252)
    body = struct.pack("<HIB", 4, 0, 8) + entries
    index = struct.pack("<IHIBBIQQQQ", 44, 2, 0, 8, 0, 0, 0, size, 0, 0)
    for name, content in ((".debug_info", struct.pack("<I", len(body)) + body), (".debug_abbrev", abbrev), (".debug_aranges", index)):
        elf.put(elf.find(name), content)
    place.program = place.folder / "program"
    place.program.write_bytes(elf.bytes)


@attack
def an_alternative_file_that_is_the_library_itself(place):
    debug(place, STUCK, more={".gnu_debugaltlink": b"libmade.so\0" + bytes(range(20))})
    elf = place.elf()
    number = elf.find(".note.gnu.build-id")
    values = elf.section(number)
    at = elf.section(elf.find(".gnu_debugaltlink"))[4]
    elf.bytes[at + 11:at + 31] = elf.bytes[values[4] + 16:values[4] + 36]
    place.write(elf)


@attack
def a_debug_link_to_the_library_itself(place):
    place.build(sections={".gnu_debuglink": b"libmade.so\0\0" + bytes(4)})


@attack
def an_object_file_is_mapped(place):
    """The header of the mapped file has the type ET_REL, as in an object file."""
    place.build(sections={".debug_info": Info.unit(STUCK), ".debug_abbrev": Info.ABBREV + b"\0", ".debug_line": Info.lines()})
    elf = place.elf()
    struct.pack_into("<H", elf.bytes, 16, 1)
    info = elf.find(".debug_info")
    dynsym = next(number for number in range(elf.shnum) if elf.section(number)[1] == 11)
    at = len(elf.bytes) + -len(elf.bytes) % 16
    relocations = b"".join(struct.pack("<QQq", 8, 1 << 32 | 1, 0) for i in range(MILLION))
    elf.bytes += b"\0" * (at - len(elf.bytes)) + relocations
    put_table(elf, [elf.section(number) for number in range(elf.shnum)] + [[0, 4, 0, 0, at, len(relocations), dynsym, info, 8, 24]] * 1000)
    place.write(elf)
    return ["map", place.library, "2"]


def chain(place, count, contents):
    """Makes `count` libraries. The function of each library calls the function of the next one. `contents` gets the
    name of a library's function, and returns the sections of the library."""
    for number in reversed(range(count)):
        function = "stuck" if number == 0 else f"step{number}"
        calls = "read" if number == count - 1 else f"step{number + 1}"
        library = place.library if number == 0 else place.folder / f"libmade{number}.so"
        needed = [] if number == count - 1 else [str(place.folder / f"libmade{number + 1}.so"), f"-Wl,-rpath,{place.folder}"]
        build(place.cc, library, function=function, calls=calls, flags=("-Wl,--no-as-needed", *needed), sections=contents(function))


def many(place, count, blocks, entries):
    """Makes `count` libraries that call each other. The function of each library has `blocks` blocks, nested in one
    another. The innermost block has `entries` entries. A search for the scopes of the function reads `blocks` times
    `entries` entries."""
    def contents(function):
        info = [uleb(2) + function.encode() + b"\0", function, struct.pack("<Q", 256), uleb(4) * blocks, uleb(5) * entries, bytes(blocks), b"\0"]
        return {".debug_info": Info.unit(info, function=function), ".debug_line": Info.lines(function=function),
                ".debug_abbrev": Info.ABBREV + uleb(4) + b"\x0b\1\0\0" + uleb(5) + b"\x34\0\0\0" + b"\0", ".debug_aranges": Info.ranges(function)}

    chain(place, count, contents)


@attack
def five_libraries_that_each_take_all_memory(place):
    def contents(function):
        info = [uleb(3) + function.encode() + b"\0", function, struct.pack("<Q", 256)]
        return {".debug_info": Info.unit(info, function=function), ".debug_abbrev": Info.ABBREV + b"\0", ".debug_aranges": Info.ranges(function),
                ".debug_line": Info.lines(function=function, head_names=b"a\0\0\0\0" * 10 * MILLION)}

    chain(place, 5, contents)


@default_attack
def eight_libraries_that_crash_the_reader(place):
    """libdw searches the scopes of a function of C++ recursively. This search overflows the stack of the reader."""
    abbrev = (uleb(1) + b"\x11\1\x03\x08\x11\x01\x12\x07\x10\x17\x13\x0b\0\0" + uleb(3) + b"\x2e\0\x03\x08\x11\x01\x12\x07\0\0" +
              uleb(5) + b"\x39\1\0\0" + b"\0")

    def contents(function):
        info = [b"\4", uleb(5) * 100_000, bytes(100_000), uleb(5) * 200, uleb(3) + function.encode() + b"\0", function, struct.pack("<Q", 256), bytes(200)]
        return {".debug_info": Info.unit(info, function=function), ".debug_abbrev": abbrev, ".debug_aranges": Info.ranges(function),
                ".debug_line": Info.lines(function=function)}

    chain(place, 8, contents)


@default_attack
def five_libraries_that_each_take_minutes(place):
    many(place, 5, 250, 10 * MILLION)


@attack
def thirty_libraries_that_each_take_almost_a_second(place):
    many(place, 30, 40, 700_000)


@attack
def six_libraries_that_each_take_almost_four_seconds(place):
    many(place, 6, 120, 1_000_000)


@attack
def a_vdso_with_costly_frames(place):
    """The process has written a library over its vDSO. It would take hours to compute the address of a frame in this
    library."""
    data = b"\x05" + uleb(4 * MILLION) + uleb(1) + b"\x0a\x0b" * 1400
    text = """
.globl _start
_start: .Lentry: sub $24, %rsp
mov %rsp, %rsi
mov $1, %edx
xor %eax, %eax
syscall
add $24, %rsp
ret
.Lentry_end:
"""
    blob_frames(place, data, "entry", more=text, flags=("-Wl,-z,noseparate-code", "-Wl,--build-id=none", "-Wl,-e,_start", "-s", "-Wl,-z,norelro"), calls=None)
    assert place.library.stat().st_size <= 8192 + 4096, place.library.stat().st_size
    return ["vdso", place.library]


@default_attack
def a_libc_with_sixty_thousand_tables_of_symbols(place):
    """The file has the name of the C library. Sixty thousand sections of symbols in the file overlap."""
    symbol_tables_in_sixty_thousand_sections_that_overlap(place)
    library = place.folder / "libc.so.6"
    place.library.rename(library)
    return ["map", library, "2"]
