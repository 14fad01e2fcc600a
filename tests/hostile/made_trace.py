"""Writes traces that no shim writes. trace/include/forksight/trace/format.hpp describes the records."""
import struct

HEADER_BYTES = 4096
MAX_BYTES = 64 << 20
COMMITTED = 2
TYPES = {"module": 1, "stack": 3, "thread": 4, "handlers": 6, "fork": 7, "forked": 8, "held": 9, "touch": 10, "note": 13, "handler_run": 27, "unflushed": 52,
         "flush": 53, "life": 56, "order": 57, "share": 60, "share_use": 61, "draw": 62}


class Trace:
    """A trace of process `pid`. add() and fill() write nothing beyond the size that a trace may have."""

    def __init__(self, pid=1000, cmdline=b"app\0", start_ticks=777):
        head = bytearray(HEADER_BYTES)
        struct.pack_into("<8sIIIIQ", head, 0, b"FRKSGHT1", 1, HEADER_BYTES, 0x01020304, 8, MAX_BYTES)
        struct.pack_into("<QQQiiiiI", head, 64, 0, 10**9, start_ticks, pid, 900, -1, -1, len(cmdline))
        struct.pack_into("<64s", head, 160, b"node1")
        struct.pack_into("<BBB", head, 244, 2, 36, 1)  # glibc 2.36
        struct.pack_into("<1024s", head, 256, b"/bin/app")
        struct.pack_into("<2816s", head, 1280, cmdline)
        self.pid, self.parts, self.size = pid, [bytes(head)], HEADER_BYTES

    @staticmethod
    def make(kind, payload, pid, tid, time_ns):
        size = (32 + len(payload) + 15) // 16 * 16
        return struct.pack("<QiiQQ", size | TYPES[kind] << 32 | COMMITTED << 48, pid, tid, time_ns, 0) + payload.ljust(size - 32, b"\0")

    def add(self, kind, payload, pid=None, tid=None):
        """Returns the reference to the record; 0 if there is no room for it."""
        pid = self.pid if pid is None else pid
        record = self.make(kind, payload, pid, pid if tid is None else tid, 5 * 10**9 + self.size)
        if self.size + len(record) > MAX_BYTES:
            return 0
        self.parts.append(record)
        self.size += len(record)
        return self.size - len(record)

    def fill(self, kind, payload, pid=None):
        """Writes equal records, as many as there is room for."""
        pid = self.pid if pid is None else pid
        record = self.make(kind, payload, pid, pid, 5 * 10**9)
        count = (MAX_BYTES - self.size) // len(record)
        self.parts.append(record * count)
        self.size += len(record) * count

    def write(self, path):
        """Makes holes in the file where there are only zeros."""
        page = 4096
        content = b"".join(self.parts)
        with open(path, "wb") as file:
            for at in range(0, len(content), page):
                if any(content[at:at + page]):
                    file.seek(at)
                    file.write(content[at:at + page])
            file.truncate(len(content) + 64)


def thread(tid, start=0):
    return struct.pack("<iiQQQII16sQ", tid, 0, start, 0, 0, 0, 0, b"worker", 0)


def module(path, start, size=0x1000, build_id=bytes(20)):
    return struct.pack("<QQQII32s", start, start, start + size, len(build_id), len(path), build_id) + path


def stack(frames, return_address):
    """A stack on which each frame has eight bytes, the return address."""
    return struct.pack("<QQQII", return_address, 0x7FFF0000, 0, 8 * frames, 0) + struct.pack("<Q", return_address) * frames


def handlers(entry, count):
    return struct.pack("<II", count, 0) + struct.pack("<QQQ", *entry) * count


def fork(thread_reference, lost=(), ordinal=1):
    tail = b"".join(struct.pack("<QQII", reference, 0x1000, 1, 1) for reference in lost)
    return struct.pack("<QQQQIIIIQ", ordinal, 0, thread_reference, 0, 1, len(lost), 0, len(lost) + 1, 100) + tail


def forked(fork_reference, child):
    return struct.pack("<QiiQ", fork_reference, child, 0, 200)


def held(fork_reference, lock, thread_reference):
    mutex = struct.pack("<IIiIi", 1, 0, 1001, 1, 0).ljust(56, b"\0")
    return struct.pack("<QQQQII", fork_reference, lock, thread_reference, 0, 1, 40) + mutex


def touch(fork_reference, held_reference, lock, stack_reference=0):
    return struct.pack("<QIIQQQQIIII", fork_reference, 1, 0, held_reference, 0, lock, stack_reference, 0, 0, 0, 0)


def life():
    return struct.pack("<QQQQII", 0, 1, 0, 0, 1, 0)


def order(life_reference, thread_reference, held_number, taken_number):
    return struct.pack("<9Q8QIIIIII", life_reference, thread_reference, 0x1000 * held_number, 0x1000 * taken_number, held_number, taken_number, 0, 0, 1,
                       *range(1, 9), 8, 1, 1, 0, 0, 0)


def unflushed(fork_reference):
    return struct.pack("<QQQiiII40s", fork_reference, 1, 5, 1, 1, 5, 0, b"hello")


def flush(unflushed_reference, fork_reference):
    return struct.pack("<QQQII", unflushed_reference, fork_reference, 0, 1, 0)


def share(fork_reference):
    return struct.pack("<QIiiI32s16sQQII64s", fork_reference, 1, 3, 1000, 0, b"", b"", 1, 1, 0, 0, b"")


def share_use(share_reference, fork_reference, kind, target):
    return struct.pack("<QQQIIiIQQ", share_reference, fork_reference, 0, kind, 0, target, 0, 1, 1)


def draw(fork_reference):
    return struct.pack("<QQQII", fork_reference, 0, 77, 1, 0)
