"""Tests what `forksight queue parked`, `drain` and `requeue` print, and that these commands never lose a message.

Usage: parked_test.py LIBRARY FORKSIGHT"""
import ctypes
import json
import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

LIBRARY, FORKSIGHT = "", ""
C = None


class Options(ctypes.Structure):
    _fields_ = [("slots", ctypes.c_uint32), ("buffers", ctypes.c_uint32), ("buffer_bytes", ctypes.c_uint64),
                *[(name, ctypes.c_uint32) for name in ("named", "thread", "redeliver", "full", "max_redeliver", "max_participants")],
                ("spin_us", ctypes.c_int32), ("atfork_handlers", ctypes.c_uint32), ("unlink_at", ctypes.c_uint32)]


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("sys_errno", ctypes.c_int32), ("pid", ctypes.c_uint32), ("text", ctypes.c_char * 500)]


def load(path):
    lib = ctypes.CDLL(path)
    lib.forksight_message_data.restype = ctypes.c_void_p
    lib.forksight_message_data.argtypes = [ctypes.c_void_p]
    lib.forksight_message_size.restype = ctypes.c_uint64
    lib.forksight_message_size.argtypes = [ctypes.c_void_p]
    lib.forksight_message_release.argtypes = [ctypes.c_void_p]
    lib.forksight_message_park.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    lib.forksight_queue_send_copy.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int64, ctypes.c_void_p]
    lib.forksight_queue_receive.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
    lib.forksight_queue_name.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    for name in ("close", "fd", "recover"):
        getattr(lib, "forksight_queue_" + name).argtypes = [ctypes.c_void_p]
    return lib


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class Queue:
    def __init__(self, **options):
        self.handle = ctypes.c_void_p()
        wanted = Options(slots=64, buffers=64, buffer_bytes=4096, redeliver=1, **options)
        self.need(C.forksight_queue_create(ctypes.byref(wanted), ctypes.byref(self.handle), ctypes.byref(self.error())))
        name = ctypes.create_string_buffer(64)
        C.forksight_queue_name(self.handle, name, 64)
        self.name = name.value.decode()
        self.fd = C.forksight_queue_fd(self.handle)

    def error(self):
        self.why = Error()
        return self.why

    def need(self, code):
        assert code == 0, self.why.text

    def send(self, text):
        self.need(C.forksight_queue_send_copy(self.handle, text, len(text), -1, ctypes.byref(self.error())))

    def receive(self, handle=None):
        """Returns (the message, its bytes), or None if the queue is empty."""
        message = ctypes.c_void_p()
        if C.forksight_queue_receive(handle or self.handle, 0, ctypes.byref(message), ctypes.byref(self.error())) != 0:
            return None
        return message, ctypes.string_at(C.forksight_message_data(message), C.forksight_message_size(message))

    def park(self, text):
        self.send(text)
        message, got = self.receive()
        assert got == text
        self.need(C.forksight_message_park(message, None))

    def die_with_next(self):
        """Starts a consumer that takes the next message and is then killed. Returns the pid of the consumer."""
        pid = os.fork()
        if pid == 0:
            own = ctypes.c_void_p()
            C.forksight_queue_reattach_after_fork(self.handle, ctypes.byref(own), None)
            if self.receive(own) is not None:
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(1)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), status
        C.forksight_queue_recover(self.handle)
        return pid

    def close(self):
        C.forksight_queue_close(self.handle)
        if self.name and os.path.exists("/dev/shm" + self.name):
            os.unlink("/dev/shm" + self.name)


def forksight(*arguments, **options):
    return subprocess.run([FORKSIGHT, "queue", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False, **options)


class Parked(unittest.TestCase):
    def setUp(self):
        self.made = tempfile.TemporaryDirectory(prefix="forksight-parked-")
        self.addCleanup(self.made.cleanup)
        self.folder = Path(self.made.name)

    def make(self, **options):
        queue = Queue(**options)
        self.addCleanup(queue.close)
        return queue

    def run_good(self, *arguments, **options):
        done = forksight(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def parked(self, queue):
        return json.loads(self.run_good("parked", f"/proc/{os.getpid()}/fd/{queue.fd}", "--format", "json"))[0]["parked"]

    def files(self):
        return sorted(self.folder.iterdir())

    def test_parked_lists_each_message_with_the_consumers_it_killed(self):
        queue = self.make(named=1, max_redeliver=1)
        self.assertRegex(self.run_good("parked", queue.name), rf"^queue [0-9a-f]{{32}} \({queue.name}\): 0 messages parked\n$")
        queue.send(b"poison")
        dead = [queue.die_with_next(), queue.die_with_next()]
        queue.park(b"x")
        me = os.getpid()
        lines = self.run_good("parked", queue.name[1:]).splitlines()
        self.assertEqual(len(lines), 3, lines)
        self.assertTrue(lines[0].endswith(": 2 messages parked"), lines)
        self.assertRegex(lines[1], rf"^  message 0: 6 bytes from {me}, delivered 2 times, killed {dead[0]}, {dead[1]}, parked \d+\.\d s ago$")
        self.assertRegex(lines[2], rf"^  message 1: 1 byte from {me}, delivered once, parked by {me} \d+\.\d s ago$")
        for line in lines[1:]:
            self.assertIn(line.rsplit(" parked", 1)[0], self.run_good("inspect", queue.name))
        first, second = self.parked(queue)
        self.assertEqual((first["deliveries"], first["killed"], first["parked_by"], first["bytes"]), (2, dead, 0, 6))
        self.assertEqual((second["deliveries"], second["killed"], second["parked_by"]), (1, [], me))

    def test_drain_writes_each_message_into_a_file_and_frees_it(self):
        queue = self.make()
        texts = [b"first", b"", b"x" * 4096]
        for text in texts:
            queue.park(text)
        # The queue has no name. So the test passes a pid to drain and inspect.
        said = self.run_good("drain", os.getpid(), "--to", self.folder)
        self.assertEqual([file.read_bytes() for file in self.files()], texts)
        self.assertTrue(all(file.stat().st_mode & 0o777 == 0o600 for file in self.files()))
        lines = said.splitlines()
        self.assertEqual(lines[-1], "3 messages drained")
        self.assertEqual(lines[0], f"{self.files()[0]}: 5 bytes from {os.getpid()}, delivered once")
        self.assertEqual(self.parked(queue), [])
        self.assertEqual(json.loads(self.run_good("inspect", os.getpid(), "--format", "json"))[0]["free"], 64)
        self.assertEqual(self.run_good("drain", os.getpid(), "--to", self.folder), "0 messages drained\n")

    def test_drain_overwrites_nothing(self):
        queue = self.make()
        queue.park(b"one")
        queue.park(b"two")
        self.run_good("drain", f"/proc/{os.getpid()}/fd/{queue.fd}", "--to", self.folder)
        first, second = self.files()
        # A file already has the name that drain would use for the first message of another queue.
        first.rename(self.folder / "kept")
        os.rename(second, first)
        other = self.make()
        seen = json.loads(self.run_good("inspect", f"/proc/{os.getpid()}/fd/{other.fd}", "--format", "json"))[0]
        name = f"{seen['id'][:8]}-0000000000.message"
        (self.folder / name).write_text("somebody's")
        other.park(b"three")
        said = self.run_good("drain", f"/proc/{os.getpid()}/fd/{other.fd}", "--to", self.folder)
        self.assertIn(f"{name}-2: 5 bytes", said)
        self.assertTrue(said.endswith("\n1 message drained\n"), said)
        self.assertEqual((self.folder / name).read_text(), "somebody's")
        self.assertEqual((self.folder / (name + "-2")).read_bytes(), b"three")

    def test_drain_needs_a_folder_before_it_takes_anything(self):
        queue = self.make()
        queue.park(b"precious")
        before = self.parked(queue)
        for arguments, status in ((["--to", ""], 2), (["--to="], 2), ([], 2), (["--to", self.folder / "none"], 3), (["--to", __file__], 3)):
            done = forksight("drain", os.getpid(), *arguments, cwd=self.folder)
            self.assertEqual(done.returncode, status, done)
            self.assertNotEqual(done.stderr, "")
        missing = forksight("drain", os.getpid(), "--to", self.folder / "none")
        self.assertEqual(missing.stderr, f"forksight: error: {self.folder / 'none'}: no such folder; make it first\n")
        after = self.parked(queue)
        self.assertEqual([{**one, "age_ms": 0} for one in after], [{**one, "age_ms": 0} for one in before])
        self.assertEqual(self.files(), [])

    def test_a_message_that_cannot_be_written_stays_parked(self):
        queue = self.make()
        queue.park(b"x" * 4096)
        done = forksight("drain", os.getpid(), "--to", self.folder,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
        self.assertEqual(done.returncode, 3, done)
        self.assertRegex(done.stderr, r"^forksight: error: .*: File too large; the message is parked again\n$")
        self.assertEqual(self.files(), [])
        (one,) = self.parked(queue)
        self.assertEqual((one["state"], one["deliveries"], one["parked_by"]), ("parked", 1, os.getpid()))
        self.run_good("drain", os.getpid(), "--to", self.folder)
        self.assertEqual(self.files()[0].read_bytes(), b"x" * 4096)

    def test_no_message_is_lost_if_nobody_reads_the_output(self):
        queue = self.make()
        for i in range(3):
            queue.park(b"%d" % i)
        ours, theirs = os.pipe()
        os.close(ours)
        done = subprocess.run([FORKSIGHT, "queue", "drain", str(os.getpid()), "--to", str(self.folder)], stdout=theirs,
                              stderr=subprocess.PIPE, timeout=60, check=False)
        os.close(theirs)
        self.assertNotEqual(done.returncode, 0)
        self.check_all_there(queue, {b"0", b"1", b"2"})

    def check_all_there(self, queue, texts):
        """Checks that each message is still parked, or is in a file that has all of its bytes."""
        files = [file.read_bytes() for file in self.files() if not file.name.startswith(".")]
        self.assertLessEqual(set(files), texts)
        C.forksight_queue_recover(queue.handle)
        self.run_good("drain", os.getpid(), "--to", self.folder)
        files = [file.read_bytes() for file in self.files() if not file.name.startswith(".")]
        self.assertEqual(set(files), texts)
        self.assertEqual(self.parked(queue), [])

    def test_a_drain_that_is_killed_loses_nothing(self):
        randomly = random.Random(4)
        queue = self.make()
        cut_off = 0
        for round in range(20):
            texts = {b"%d of round %d" % (i, round) + b"." * 2000 for i in range(30)}
            for text in texts:
                queue.park(text)
            drain = subprocess.Popen([FORKSIGHT, "queue", "drain", str(os.getpid()), "--to", str(self.folder)],
                                     stdout=subprocess.DEVNULL)
            # Kills drain at a random time after it has written a random number of files.
            goal = randomly.randrange(20)
            while len(self.files()) < goal and drain.poll() is None:
                pass
            time.sleep(randomly.random() / 1000)
            drain.kill()
            cut_off += 1 if drain.wait() == -signal.SIGKILL else 0
            self.check_all_there(queue, texts)
            for file in self.files():
                file.unlink()
        self.assertGreater(cut_off, 10)

    def test_requeue_gives_the_messages_to_consumers(self):
        queue = self.make(max_redeliver=1)
        queue.send(b"again")
        queue.die_with_next()
        queue.die_with_next()
        queue.send(b"later")
        self.assertEqual(self.run_good("requeue", os.getpid()), "1 message requeued\n")
        self.assertEqual(self.run_good("requeue", os.getpid()), "0 messages requeued\n")
        for text in (b"again", b"later"):
            message, got = queue.receive()
            self.assertEqual(got, text)
            C.forksight_message_release(message)
        queue.park(b"a")
        queue.park(b"b")
        self.assertEqual(self.run_good("requeue", os.getpid()), "2 messages requeued\n")

    def test_the_commands_do_not_count_as_users_of_the_queue(self):
        queue = self.make(named=1, unlink_at=2)
        queue.park(b"a")
        self.run_good("requeue", queue.name)
        self.run_good("parked", queue.name)
        self.run_good("drain", queue.name, "--to", self.folder)
        self.assertTrue(os.path.exists("/dev/shm" + queue.name))

    def test_messages_that_only_refer_to_data_are_not_drained(self):
        queue = self.make()
        queue.park(b"a reference")
        # Sets `holds_references`, as a pool of device memory does in its queue. Then corrects the checksum `crc`. Both
        # are fields of the struct `geometry` in layout.hpp. This struct begins at byte 8 of the file.
        with mmap.mmap(queue.fd, 4096) as head:
            head[8 + 126] = 1
            head[8 + 148:8 + 152] = struct.pack("<I", crc32c(head[8:8 + 148]))
        done = forksight("drain", os.getpid(), "--to", self.folder)
        self.assertEqual(done.returncode, 3, done)
        self.assertIn("its messages refer to memory outside of it", done.stderr)
        self.assertEqual((len(self.parked(queue)), self.files()), (1, []))
        self.assertEqual(self.run_good("requeue", os.getpid()), "1 message requeued\n")

    def test_other_files_and_processes_are_refused(self):
        for verb in (["parked"], ["requeue"], ["drain", "--to", str(self.folder)]):
            for what in ("/forksight-" + "0" * 32, "1999999999", "/proc/self/fd/0", "/proc/self/fd/77", ""):
                done = forksight(verb[0], *verb[1:], what)
                self.assertEqual(done.returncode, 3, done)
                self.assertTrue(done.stderr.startswith("forksight: error: "), done)


if __name__ == "__main__":
    LIBRARY, FORKSIGHT = sys.argv[1:3]
    C = load(LIBRARY)
    unittest.main(argv=sys.argv[:1])
