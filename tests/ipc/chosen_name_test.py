"""A name that the user chose: by the C functions, and as `forksight queue` takes it.

Usage: chosen_name_test.py LIBRARY FORKSIGHT"""
import ctypes
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
    """The handle; None: `told` says why not."""
    handle = ctypes.c_void_p()
    code = native.forksight_queue_open_or_create(name, None, role, ctypes.byref(handle), ctypes.byref(told))
    assert code in (0, told.code), code
    return handle if code == 0 else None


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
