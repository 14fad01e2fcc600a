"""Tests queues whose name the user chose: the C functions open them, and `forksight queue` accepts the name.

Usage: chosen_name_test.py LIBRARY FORKSIGHT"""
import ctypes
import json
import os
import subprocess
import sys

LIBRARY, FORKSIGHT = sys.argv[1:3]
CHOICE = f"chosen_name_test.{os.getpid()}"
NAME = f"/forksight-{CHOICE}"
BAD_OPTION = 17


class ErrorText(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("sys_errno", ctypes.c_int32), ("pid", ctypes.c_uint32), ("text", ctypes.c_char * 500)]


native = ctypes.CDLL(LIBRARY)
told = ErrorText()


def open_or_create(name, role=0):
    """Returns the handle. If the call fails, returns None, and `told` has the reason."""
    handle = ctypes.c_void_p()
    code = native.forksight_queue_open_or_create(name, None, role, ctypes.byref(handle), ctypes.byref(told))
    assert code in (0, told.code), code
    return handle if code == 0 else None


class Expected(ctypes.Structure):
    _fields_ = [("producers", ctypes.c_uint32), ("consumers", ctypes.c_uint32), ("grace_ms", ctypes.c_uint32)]


def check_what_is_expected():
    """`queue inspect` shows how many producers and consumers the queue expects, and how many have come."""
    choice, handle, producer = (CHOICE + ".expects").encode(), ctypes.c_void_p(), ctypes.c_void_p()
    expected = Expected(3, 0, 1500)
    code = native.forksight_queue_open_or_create_expecting(choice, None, ctypes.byref(expected), 3, ctypes.byref(handle), ctypes.byref(told))
    assert code == 0, told.text
    try:
        for is_closed in (True, False):
            code = native.forksight_queue_open_or_create_expecting(choice, None, ctypes.byref(expected), 1, ctypes.byref(producer),
                                                                   ctypes.byref(told))
            assert code == 0, told.text
            if is_closed:
                native.forksight_queue_close(producer)
        text = say("inspect", choice.decode())
        assert "  producers: 3 expected, 1 there, 1 closed, 0 died, 1 has not come\n  consumers: 0 there, 0 closed, 0 died\n" in text, text
        assert "  after the last one has ended, others may come for 1.5 s\n" in text, text
        seen = json.loads(say("inspect", choice.decode(), "--format", "json"))[0]
        assert seen["producers"] == {"expected": 3, "closed": 1, "died": 0}, seen
        assert seen["grace_ms"] == 1500, seen
        # Options with another expected number do not match the existing queue, so opening it fails.
        assert open_or_create(choice) is None
        assert b"has expected_producers 3, but this call asks for 0" in told.text, told.text
        native.forksight_queue_close(producer)
    finally:
        native.forksight_queue_close(handle)
        os.unlink(f"/dev/shm/forksight-{choice.decode()}")


def expect_bad(name, role, text):
    told.code, told.text = 0, b""
    assert open_or_create(name, role) is None
    assert (told.code, told.text.decode()) == (BAD_OPTION, text), (told.code, told.text)


def say(*arguments):
    done = subprocess.run([FORKSIGHT, "queue", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (arguments, done)
    return done.stdout


def main():
    expect_bad(None, 0, "name is NULL")
    expect_bad(b"jobs", 4, "role is 4: it can be 0 to 3")
    handle = open_or_create(CHOICE.encode())
    assert handle, told.text
    try:
        other = open_or_create(CHOICE.encode(), 2)
        assert other, told.text
        assert native.forksight_queue_take_role(handle, 1, None) == 0
        assert native.forksight_queue_take_role(handle, 0, None) == BAD_OPTION
        assert native.forksight_queue_take_role(None, 1, None) == BAD_OPTION
        for what in (CHOICE, f"forksight-{CHOICE}", NAME, str(os.getpid())):
            assert NAME in say("inspect", what), what
        assert "expected" not in say("inspect", CHOICE)
        check_what_is_expected()
        assert f"in use: {NAME}\n" in say("gc", "--dry-run")
        native.forksight_queue_close(other)
        native.forksight_queue_close(handle)
        handle = None
        assert f"left behind: {NAME}\n" in say("gc", "--dry-run")
        assert os.path.exists("/dev/shm" + NAME)
        assert "removed" in say("gc", "--watch", CHOICE)
        assert not os.path.exists("/dev/shm" + NAME)
    finally:
        if os.path.exists("/dev/shm" + NAME):
            os.unlink("/dev/shm" + NAME)


main()
