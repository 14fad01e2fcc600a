"""Objects as messages and back.

A message: a prefix of 64 bytes, the memory of arrays (each from a multiple of 64 on), then a table of where each of these
lies and the pickle that refers to them. The pickle comes last, so that a loan can be written before it is known."""
import io
import pickle
import struct

from . import _memory, _tensors

PREFIX = struct.Struct("<4sIQQ")  # magic, how many buffers, where the table lies, bytes of the pickle
PLACE = struct.Struct("<QQ")      # of a buffer: where, how many bytes
MAGIC = b"fsq1"
ALIGNMENT = FIRST = 64
# Of each buffer of a queue, beyond the bytes that its user asked for.
OVERHEAD = 4096
# So few bytes of arrays are copied on receipt: a view of them would hold a whole buffer of the queue.
SMALL = 2048


def align(offset):
    return (offset + ALIGNMENT - 1) & -ALIGNMENT


def _rebuild_permuted(array, axes):
    return array.transpose(axes)


def _reduce_array(array):
    """numpy itself shares the memory of arrays in C or Fortran order. Any other is sent in the order that it has."""
    if array.dtype.hasobject or array.flags.c_contiguous or array.flags.f_contiguous:
        return NotImplemented
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    straight = array.transpose(order)
    if not straight.flags.c_contiguous:
        straight = straight.copy(order="C")
    back = [0] * array.ndim
    for place, axis in enumerate(order):
        back[axis] = place
    return _rebuild_permuted, (straight, back)


def _reduce_tensor(tensor):
    described = _tensors.describe(tensor)
    if described is None:
        return NotImplemented
    memory, dtype, shape, strides = described
    return _tensors.rebuild, (type(tensor).__module__.partition(".")[0], dtype, shape, strides, pickle.PickleBuffer(memory))


def _find_reducer(kind):
    """None: its own way to be pickled. So subclasses of arrays, and parameters of torch, keep their type."""
    names = [f"{base.__module__}.{base.__name__}" for base in kind.__mro__]
    if "numpy.ndarray" in names:
        return _reduce_array if names[0] == "numpy.ndarray" else None
    if "torch.Tensor" in names and names[0] != "torch.Tensor":
        return None
    return _reduce_tensor if hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__") else None


class _Pickler(pickle.Pickler):
    _reducers = {}

    def reducer_override(self, obj):
        kind = type(obj)
        try:
            reducer = self._reducers[kind]
        except KeyError:
            reducer = self._reducers[kind] = _find_reducer(kind)
        return reducer(obj) if reducer else NotImplemented


# Their pickles have no other objects in them.
PLAIN = frozenset((int, str, bytes, bytearray, float, bool, complex, type(None)))


class Item:
    """An object that is ready to be written into a loan. It refers to the object's arrays: they are copied by write()."""

    def __init__(self, obj):
        buffers = []
        if type(obj) in PLAIN:
            self.pickle = pickle.dumps(obj, 5)
        else:
            out = io.BytesIO()
            _Pickler(out, 5, buffer_callback=buffers.append).dump(obj)
            self.pickle = out.getbuffer()
        self.buffers = [buffer.raw() for buffer in buffers]
        end = FIRST
        self.places = []
        for buffer in self.buffers:
            self.places.append((end, buffer.nbytes))
            end = align(end + buffer.nbytes)
        self.table = end
        self.size = end + PLACE.size * len(self.places) + len(self.pickle)

    def write(self, target):
        """Into a memoryview of at least `size` bytes."""
        for (start, size), source in zip(self.places, self.buffers):
            _memory.copy_into(target[start:start + size], source)
        return write_table(target, self.places, self.table, self.pickle)


def write_table(target, places, table, pickled):
    """The prefix, table and pickle around buffers that are there. Returns the size of the message."""
    at = table
    for place in places:
        PLACE.pack_into(target, at, *place)
        at += PLACE.size
    target[at:at + len(pickled)] = pickled
    PREFIX.pack_into(target, 0, MAGIC, len(places), table, len(pickled))
    return at + len(pickled)


def read(view, copy=False):
    """The object of a message. Its arrays are views of `view`, unless they are small or `copy` is set. What has no prefix
    is bytes, as a program in another language sends them: they are returned as they lie."""
    if view.nbytes < FIRST or bytes(view[:4]) != MAGIC:
        return memoryview(bytearray(view)) if copy else view
    _, count, table, pickled = PREFIX.unpack_from(view)
    start = table + PLACE.size * count
    if start + pickled > view.nbytes:
        raise ValueError(f"a message of {view.nbytes} bytes says that it has {start + pickled}")
    places = [PLACE.unpack_from(view, table + PLACE.size * i) for i in range(count)]
    if any(at + size > table for at, size in places):
        raise ValueError("a message has an array that does not lie in it")
    if copy or sum(size for _, size in places) <= SMALL:
        buffers = [bytearray(view[at:at + size]) for at, size in places]
    else:
        buffers = [view[at:at + size] for at, size in places]
    return pickle.loads(view[start:start + pickled], buffers=buffers)
