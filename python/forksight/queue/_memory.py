"""Views of bytes at an address, and copies of bytes. A view keeps the owner of its bytes alive. Other threads can run during a
large copy."""
import ctypes
import pickle
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_ssize_t, c_void_p

# A copy of this many bytes or more releases the lock of the interpreter (GIL).
LARGE = 1 << 18

_memmove = ctypes.CDLL(None).memmove
_memmove.restype, _memmove.argtypes = c_void_p, [c_void_p, c_void_p, c_size_t]


class _Buffer(ctypes.Structure):
    """CPython's Py_buffer. It belongs to the stable interface since Python 3.11. Its fields are the same since 3.0."""
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t), ("itemsize", c_ssize_t), ("readonly", c_int), ("ndim", c_int),
                ("format", c_char_p), ("shape", c_void_p), ("strides", c_void_p), ("suboffsets", c_void_p), ("internal", c_void_p)]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.restype, _get_buffer.argtypes = c_int, [ctypes.py_object, POINTER(_Buffer), c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.restype, _release_buffer.argtypes = None, [POINTER(_Buffer)]


def address_of(view):
    """Returns the address of a contiguous memoryview, which may be read-only. Returns 0 for an empty one."""
    if view.nbytes == 0:
        return 0
    described = _Buffer()
    _get_buffer(view, ctypes.byref(described), 0)
    at = described.buf
    _release_buffer(ctypes.byref(described))
    return at


def view_of(address, size, owner, array_type=None):
    """Returns a writable memoryview of `size` bytes at `address`. This memoryview keeps `owner` alive. Every view that
    is made of the memoryview does so, too."""
    if size == 0:
        return memoryview(bytearray())
    held = (array_type or ctypes.c_ubyte * size).from_address(address)
    held.owner = owner
    return pickle.PickleBuffer(held).raw()[:size]


def copy_into(target, source):
    """Copies `source` into `target`. Both are memoryviews of bytes and have the same size."""
    if source.nbytes < LARGE:
        target[:] = source
    else:
        _memmove(address_of(target), address_of(source), source.nbytes)
