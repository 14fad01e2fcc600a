"""Turns a tensor of any library into bytes and a shape, and turns bytes and a shape into a tensor again. This module
uses DLPack. It handles only tensors in the memory of the host."""
import ctypes
import sys
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint64, c_void_p

from ._memory import address_of

CPU = 1  # kDLCPU
NAME, USED = b"dltensor", b"used_dltensor"
# DLPack's code of the kind of a type, and numpy's letter for that kind.
LETTERS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8),
                ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


def _interpreter(name, returned, *taken):
    function = getattr(ctypes.pythonapi, name)
    return ctypes.PYFUNCTYPE(returned, *taken)((name, ctypes.pythonapi))


_new = _interpreter("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
_pointer = _interpreter("PyCapsule_GetPointer", c_void_p, ctypes.py_object, c_char_p)
# A destructor calls the next two functions. They take the address of the capsule, because the capsule has no references
# any more, and py_object would make a new reference.
_is_valid_at = _interpreter("PyCapsule_IsValid", c_int, c_void_p, c_char_p)
_pointer_at = _interpreter("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)

_exported = {}  # {address of a _Managed: objects that must live as long as that _Managed}


@ctypes.CFUNCTYPE(None, c_void_p)
def _delete(address):
    _exported.pop(address, None)


@ctypes.PYFUNCTYPE(None, c_void_p)
def _destroy(capsule):
    """The destructor of a capsule. If no library has consumed the capsule, the destructor frees the tensor."""
    if _is_valid_at(capsule, NAME):
        _exported.pop(_pointer_at(capsule, NAME), None)


def count_strides(shape):
    """Returns the strides, in elements, of a dense tensor whose last index changes fastest."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def is_dense(shape, strides):
    """Returns True if the elements fill their memory without gaps, in any order of the indices."""
    step = 1
    for stride, length in sorted((stride, length) for stride, length in zip(strides, shape) if length != 1):
        if stride != step:
            return False
        step *= length
    return True


class Tensor:
    """A tensor that lies in a message. from_dlpack() of numpy, torch and other libraries makes an array of it without a copy. The
    message is held until the tensor and all such arrays are gone."""

    def __init__(self, buffer, dtype, shape, strides):
        self.buffer, self.dtype, self.shape, self.strides = buffer, dtype, shape, strides

    def __repr__(self):
        return f"<forksight.queue.Tensor dtype={self.dtype} shape={self.shape} strides={self.strides}>"

    def __dlpack_device__(self):
        return (CPU, 0)

    def __dlpack__(self, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or dl_device not in (None, (CPU, 0)):
            raise BufferError("a forksight.queue.Tensor can be exported only without a copy, and only in host memory (CPU)")
        count = len(self.shape)
        shape, strides = (c_int64 * max(count, 1))(*self.shape), (c_int64 * max(count, 1))(*self.strides)
        made = _Managed()
        made.tensor = _Tensor(address_of(self.buffer), CPU, 0, count, *self.dtype, shape, strides, 0)
        made.deleter = ctypes.cast(_delete, c_void_p).value
        address = ctypes.addressof(made)
        _exported[address] = (made, shape, strides, self.buffer)
        return _new(address, NAME, ctypes.cast(_destroy, c_void_p))

    @property
    def __array_interface__(self):
        code, bits, lanes = self.dtype
        if code not in LETTERS or lanes != 1 or self.buffer.nbytes == 0:
            raise AttributeError("__array_interface__")
        item = bits // 8
        return {"version": 3, "typestr": f"{'|' if item == 1 else '<' if sys.byteorder == 'little' else '>'}{LETTERS[code]}{item}",
                "shape": self.shape, "strides": tuple(stride * item for stride in self.strides), "data": self.buffer}


def describe(tensor):
    """Returns (memory, dtype, shape, strides) of an object with __dlpack__, or None if it cannot be sent as bytes. The dtype is
    DLPack's (code, bits, lanes), and the strides are in elements. The memory is a ctypes array that keeps the tensor alive. It is
    an empty bytearray if the tensor has no elements."""
    if tuple(tensor.__dlpack_device__())[0] != CPU:
        return None
    try:
        capsule = tensor.__dlpack__()
        address = _pointer(capsule, NAME)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None  # for example, a tensor of torch that requires a gradient, or whose type DLPack does not have
    told = _Managed.from_address(address).tensor
    shape = tuple(told.shape[i] for i in range(told.ndim))
    strides = tuple(told.strides[i] for i in range(told.ndim)) if told.strides else count_strides(shape)
    if told.device_type != CPU or told.bits * told.lanes % 8:
        return None
    size = told.bits * told.lanes // 8
    for length in shape:
        size *= length
    if size and not is_dense(shape, strides):
        # Tensors of torch have contiguous(). A tensor without that method is pickled as usual, because the result is None.
        return describe(tensor.contiguous()) if hasattr(tensor, "contiguous") else None
    memory = (ctypes.c_ubyte * size).from_address(told.data + told.byte_offset) if size else bytearray()
    if size:
        memory.owner = capsule
    return memory, (told.code, told.bits, told.lanes), shape, strides


def rebuild(library, dtype, shape, strides, buffer):
    """Returns the tensor that describe() has described. A tensor of torch becomes a tensor of torch again, if torch is installed.
    Any other becomes a Tensor of this module."""
    made = Tensor(memoryview(buffer), dtype, shape, strides)
    if library == "torch":
        try:
            import torch
        except ImportError:
            return made
        if made.buffer.nbytes == 0:
            return torch.from_dlpack(Tensor(memoryview(bytearray(16)), dtype, shape, strides))
        return torch.from_dlpack(made)
    return made
