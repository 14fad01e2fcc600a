"""dead_mount.py FOLDER [--private] [--slow SECONDS] FILE...: mounts a file system at FOLDER. The file system contains
copies of the files, with mode 755. With --private, only the user who mounts the file system may use it. With --slow,
each answer takes SECONDS. When this program has read a line from standard input, it answers no further request. The
file system is then like a network mount whose server is down. When standard input is closed, this program ends, and the
kernel aborts all requests.

This program implements FUSE protocol version 7.31 (linux/fuse.h). All files are in the root folder. The answers tell
the kernel to cache no names and no attributes, so each system call with a path causes a request."""
import ctypes
import errno
import os
import select
import stat
import struct
import sys
import time
from pathlib import Path

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, BATCH_FORGET = (
    1, 2, 3, 14, 15, 17, 18, 25, 26, 27, 28, 29, 42)
ROOT = 1
IN_HEADER = struct.Struct("<IIQQIIII")
ATTR = struct.Struct("<QQQQQQIIIIIIIIII")
LONGEST_REQUEST = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)


class FileSystem:
    def __init__(self, folder, paths, is_private):
        self.contents = [Path(path).read_bytes() for path in paths]
        self.names = [Path(path).name.encode() for path in paths]
        self.device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.device},rootmode={stat.S_IFDIR | 0o755:o},user_id={os.getuid()},group_id={os.getgid()}" + (
            "" if is_private else ",allow_other")
        if libc.mount(b"forksight-test", os.fsencode(folder), b"fuse", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "mount")

    def attr(self, node):
        size = len(self.contents[node - 2]) if node != ROOT else 0
        mode = (stat.S_IFDIR if node == ROOT else stat.S_IFREG) | 0o755
        return ATTR.pack(node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, opcode, node, body):
        """Returns the body of the answer to a request, or an error number."""
        if opcode == INIT:
            return struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 16, 12, 1 << 17, 1, 32, 0, 0, *[0] * 7)
        if opcode == LOOKUP:
            name = body.rstrip(b"\0")
            if node != ROOT or name not in self.names:
                return errno.ENOENT
            found = self.names.index(name) + 2
            return struct.pack("<QQQQII", found, 0, 0, 0, 0, 0) + self.attr(found)
        if opcode == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self.attr(node)
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<QII", node, 0, 0)
        if opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self.contents[node - 2][offset:offset + size]
        if opcode == READDIR:
            return b""
        if opcode == STATFS:
            return struct.pack("<QQQQQIIII6I", 0, 0, 0, 0, 0, 4096, 255, 4096, 0, *[0] * 6)
        return 0 if opcode in (RELEASE, FLUSH, RELEASEDIR) else errno.ENOSYS

    def serve_one(self, is_dead, seconds):
        request = os.read(self.device, LONGEST_REQUEST)
        _, opcode, unique, node, *_ = IN_HEADER.unpack_from(request)
        if is_dead or opcode in (FORGET, BATCH_FORGET):
            return
        time.sleep(seconds)
        body = self.answer(opcode, node, request[IN_HEADER.size:])
        error, body = (-body, b"") if isinstance(body, int) else (0, body)
        os.write(self.device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


def main():
    folder, *paths = sys.argv[1:]
    is_private = paths[0] == "--private"  # only the user who mounts the file system may use it
    paths = paths[is_private:]
    seconds = 0
    if paths[0] == "--slow":
        seconds, paths = float(paths[1]), paths[2:]
    system = FileSystem(folder, paths, is_private)
    is_dead, is_ready = False, False
    try:
        while True:
            ready, _, _ = select.select([system.device, sys.stdin.fileno()], [], [])
            if sys.stdin.fileno() in ready:
                if not os.read(sys.stdin.fileno(), 100):
                    break
                is_dead = True
                os.write(1, b"d")
            if system.device in ready:
                system.serve_one(is_dead, seconds)
                if not is_ready:  # the first request is INIT
                    is_ready = True
                    os.write(1, b"x")
    finally:
        libc.umount2(os.fsencode(folder), 2)  # MNT_DETACH
        os.close(system.device)


main()
