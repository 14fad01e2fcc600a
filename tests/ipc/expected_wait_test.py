"""Tests what `forksight why` reports about a process that waits in a queue for members that have not come yet.

Usage: expected_wait_test.py LIBRARY FORKSIGHT
The test starts itself as: expected_wait_test.py LIBRARY --member NAME consume|produce|idle"""
import ctypes
import json
import os
import signal
import subprocess
import sys
import time

LIBRARY = sys.argv[1]
PRODUCER, CONSUMER, CARETAKER = 1, 2, 3


class ErrorText(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("sys_errno", ctypes.c_int32), ("pid", ctypes.c_uint32), ("text", ctypes.c_char * 500)]


class Options(ctypes.Structure):
    _fields_ = [("slots", ctypes.c_uint32), ("buffers", ctypes.c_uint32), ("buffer_bytes", ctypes.c_uint64),
                ("named", ctypes.c_uint32), ("thread", ctypes.c_uint32), ("redeliver", ctypes.c_uint32), ("full", ctypes.c_uint32),
                ("max_redeliver", ctypes.c_uint32), ("max_participants", ctypes.c_uint32), ("spin_us", ctypes.c_int32),
                ("atfork_handlers", ctypes.c_uint32), ("unlink_at", ctypes.c_uint32)]


class Expected(ctypes.Structure):
    _fields_ = [("producers", ctypes.c_uint32), ("consumers", ctypes.c_uint32), ("grace_ms", ctypes.c_uint32)]


native = ctypes.CDLL(LIBRARY)
native.forksight_queue_receive.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
native.forksight_queue_send_copy.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int64, ctypes.c_void_p]


def attach(name, role):
    handle, told = ctypes.c_void_p(), ErrorText()
    code = native.forksight_queue_attach_named(name.encode(), role, ctypes.byref(handle), ctypes.byref(told))
    assert code == 0, told.text
    return handle


def be_a_member(name, act):
    handle = attach(name, CONSUMER if act == "consume" else PRODUCER)
    if act == "idle":
        print("there", flush=True)
        sys.stdin.read()
        native.forksight_queue_close(handle)
        return
    while True:
        if act == "consume":
            code = native.forksight_queue_receive(handle, -1, ctypes.byref(ctypes.c_void_p()), None)
        else:
            code = native.forksight_queue_send_copy(handle, b"x", 1, -1, None)
        assert code == 0, code


class Queue:
    """A queue that this process has made. The process is the supervisor of the queue: it neither sends nor receives."""

    def __init__(self, label, expected):
        self.name = f"/forksight-expected_wait_test.{os.getpid()}.{label}"
        self.handle, self.members, told = ctypes.c_void_p(), [], ErrorText()
        options = Options(slots=2, buffers=2, buffer_bytes=64)
        choice = self.name.removeprefix("/forksight-").encode()
        code = native.forksight_queue_open_or_create_expecting(choice, ctypes.byref(options), ctypes.byref(expected), CARETAKER,
                                                               ctypes.byref(self.handle), ctypes.byref(told))
        assert code == 0, told.text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            if member.poll() is None:
                member.kill()
            member.communicate()
        native.forksight_queue_close(self.handle)
        os.unlink("/dev/shm" + self.name)

    def start(self, act):
        member = subprocess.Popen([sys.executable, "-B", __file__, LIBRARY, "--member", self.name, act], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.members.append(member)
        if act == "idle":
            assert member.stdout.readline() == "there\n"
        return member

    def inspect(self):
        return json.loads(forksight("queue", "inspect", self.name, "--format", "json"))[0]

    def wait_until(self, is_so):
        """Waits until `is_so` accepts the inspected queue. Only the timeout of the test limits the time."""
        while not is_so(seen := self.inspect()):
            time.sleep(0.01)
        return seen

    def expect(self, member, kind, text):
        """Waits until this member waits for a message or a buffer. Then `why` must report this wait with this text. Asks again for up to
        30 s, because the member wakes up now and then, and `why` may look just then."""
        seen = self.wait_until(lambda q: any(p["pid"] == member.pid and p["waits_for"] == kind for p in q["participants"]))
        what = {"message": "a message", "buffer": "a free buffer"}[kind]
        wanted = f"{what} of queue {seen['id'][:8]}, {text}"
        end = time.monotonic() + 30
        said = " ".join(forksight("why", str(member.pid)).split())
        while wanted not in said and time.monotonic() < end:
            said = " ".join(forksight("why", str(member.pid)).split())
        assert wanted in said, (wanted, said)
        return said


def forksight(*arguments):
    done = subprocess.run([sys.argv[2], *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (arguments, done)
    return done.stdout


def words_of(member):
    return f'process {member.pid} "{open(f"/proc/{member.pid}/comm").read().strip()}" (alive, state S)'


def main():
    # One of three expected producers comes and ends. The other two never come.
    with Queue("never", Expected(producers=3)) as queue:
        ends = queue.start("idle")
        ends.communicate(timeout=60)
        consumer = queue.start("consume")
        queue.expect(consumer, "message", "0 queued; no producer is left: 1 closed, 0 died; "
                     "the thread waits for 2 of 3 expected producers to come")
        assert "producers: 3 expected, 0 there, 1 closed, 0 died, 2 have not come\n" in forksight("queue", "inspect", queue.name)
    # The only expected producer never comes.
    with Queue("none", Expected(producers=1)) as queue:
        consumer = queue.start("consume")
        queue.expect(consumer, "message", "0 queued; no other process has sent one; the thread waits for 1 of 1 expected producer to come")
    # No hang: the only expected producer has come and died, and another one may still come within the grace time.
    with Queue("grace", Expected(producers=1, grace_ms=600_000)) as queue:
        dies, consumer = queue.start("idle"), queue.start("consume")
        dies.send_signal(signal.SIGKILL)
        dies.communicate(timeout=60)
        queue.wait_until(lambda q: q["producers"]["died"] == 1)
        said = queue.expect(consumer, "message", "0 queued; no producer is left: 0 closed, 1 died; "
                            "the thread waits for another one to come, for 600.0 s at most")
        assert "expected producer" not in said, said
    # A producer is there and does not send. `why` must not say that the consumer waits for a producer to come.
    with Queue("idle", Expected(producers=2)) as queue:
        idles, consumer = queue.start("idle"), queue.start("consume")
        said = queue.expect(consumer, "message",
                            f"0 queued; sent by {words_of(idles)}; 1 of 2 expected producers has not come yet")
        assert "to come" not in said, said
    # The only expected producer is there and does not send.
    with Queue("all", Expected(producers=1)) as queue:
        idles, consumer = queue.start("idle"), queue.start("consume")
        said = queue.expect(consumer, "message", f"0 queued; sent by {words_of(idles)}")
        assert "expected producer" not in said, said
    # Two expected consumers never come.
    with Queue("room", Expected(consumers=2)) as queue:
        producer = queue.start("produce")
        queue.expect(producer, "buffer", "2 queued; no other process receives; the thread waits for 2 of 2 expected consumers to come")


if sys.argv[2] == "--member":
    be_a_member(*sys.argv[3:])
else:
    main()
