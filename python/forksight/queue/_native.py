"""Declares the functions of libforksight-ipc.so for ctypes. ipc/include/forksight/ipc.h says what they do."""
import ctypes
import os
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

__all__ = ["ErrorText", "Expected", "Options", "byref", "library", "c_void_p", "OK", "TIMEOUT", "CLOSED", "PRODUCER_DIED", "NO_CONSUMER", "CANCELLED"]

OK, TIMEOUT, CLOSED, PRODUCER_DIED, NO_CONSUMER, USED_AFTER_FORK, ROLE, EVICTED, TOO_LARGE = range(9)
CANCELLED = 19


class ErrorText(ctypes.Structure):
    _fields_ = [("code", c_int32), ("sys_errno", c_int32), ("pid", c_uint32), ("text", c_char * 500)]


class Options(ctypes.Structure):
    _fields_ = [("slots", c_uint32), ("buffers", c_uint32), ("buffer_bytes", c_uint64), ("named", c_uint32), ("thread", c_uint32),
                ("redeliver", c_uint32), ("full", c_uint32), ("max_redeliver", c_uint32), ("max_participants", c_uint32), ("spin_us", c_int32),
                ("atfork_handlers", c_uint32), ("unlink_at", c_uint32),
                ("later", c_uint32 * 16)]  # room for options of later versions of the library; 0 is the default of each


class Expected(ctypes.Structure):
    _fields_ = [("producers", c_uint32), ("consumers", c_uint32), ("grace_ms", c_uint32)]


ERROR = POINTER(ErrorText)
# Name without the prefix forksight_: (type of the result, types of the arguments).
FUNCTIONS = {
    "queue_create_expecting": (c_int, [POINTER(Options), POINTER(Expected), POINTER(c_void_p), ERROR]),
    "queue_open_or_create_expecting": (c_int, [c_char_p, POINTER(Options), POINTER(Expected), c_int, POINTER(c_void_p), ERROR]),
    "queue_attach": (c_int, [c_int, c_int, POINTER(c_void_p), ERROR]),
    "queue_attach_named": (c_int, [c_char_p, c_int, POINTER(c_void_p), ERROR]),
    "queue_reattach_after_fork": (c_int, [c_void_p, POINTER(c_void_p), ERROR]),
    "queue_close": (None, [c_void_p]),
    "queue_fd": (c_int, [c_void_p]),
    "queue_message_fd": (c_int, [c_void_p, POINTER(c_int), ERROR]),
    "queue_room_fd": (c_int, [c_void_p, POINTER(c_int), ERROR]),
    "queue_name": (c_size_t, [c_void_p, c_char_p, c_size_t]),
    "queue_take_role": (c_int, [c_void_p, c_int, ERROR]),
    "queue_buffer_bytes": (c_uint64, [c_void_p]),
    "queue_acquire": (c_int, [c_void_p, c_int64, POINTER(c_void_p), ERROR]),
    "loan_data": (c_void_p, [c_void_p]),
    "loan_capacity": (c_uint64, [c_void_p]),
    "queue_send": (c_int, [c_void_p, c_void_p, c_uint64, c_int64, ERROR]),
    "loan_give_back": (None, [c_void_p]),
    "queue_receive": (c_int, [c_void_p, c_int64, POINTER(c_void_p), ERROR]),
    "message_data": (c_void_p, [c_void_p]),
    "message_size": (c_uint64, [c_void_p]),
    "message_producer": (c_uint32, [c_void_p]),
    "message_deliveries": (c_uint32, [c_void_p]),
    "message_release": (None, [c_void_p]),
    "queue_receive_parked": (c_int, [c_void_p, POINTER(c_void_p), ERROR]),
    "queue_requeue": (c_int, [c_void_p, POINTER(c_size_t), ERROR]),
    "message_park": (c_int, [c_void_p, ERROR]),
    "queue_close_producer": (c_int, [c_void_p, c_int64, c_void_p, ERROR]),
    "queue_cancel": (None, [c_void_p]),
    "queue_shutdown": (None, [c_void_p, c_int]),
    "queue_recover": (c_size_t, [c_void_p]),
}


def find_library():
    """Returns the value of the environment variable FORKSIGHT_QUEUE_LIBRARY if it is set. Otherwise returns the path of
    the library in this package. If this package has no library, returns only the name of the library, and the loader
    searches for it."""
    named = os.environ.get("FORKSIGHT_QUEUE_LIBRARY")
    if named:
        return named
    packed = Path(__file__).resolve().parent.parent / "native" / "lib" / "libforksight-ipc.so"
    return str(packed) if packed.exists() else "libforksight-ipc.so"


def load():
    path = find_library()
    try:
        made = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"forksight.queue: {path} cannot be loaded: {error}. Install forksight with the queue, or set "
                          "FORKSIGHT_QUEUE_LIBRARY to the path of libforksight-ipc.so.") from error
    for name, (returned, taken) in FUNCTIONS.items():
        function = getattr(made, f"forksight_{name}")
        function.restype, function.argtypes = returned, taken
        setattr(made, name, function)
    return made


library = load()
