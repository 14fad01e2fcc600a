"""Converts objects into messages, and messages into objects.

A message has four parts: a prefix of 64 bytes, the memory of arrays, a table, and a pickle. The memory of each array begins at a
multiple of 64 bytes. The table holds the offset and size of each array. The pickle refers to these arrays. The pickle comes last,
so that an array can be written into a loan before the pickle is known."""
import io
import pickle
import struct

from . import _memory, _tensors

PREFIX = struct.Struct("<4sIQQ")  # magic, number of arrays, offset of the table, bytes of the pickle
PLACE = struct.Struct("<QQ")      # an entry of the table: offset of an array, bytes of the array
MAGIC = b"fsq1"
ALIGNMENT = FIRST = 64
# How many bytes each buffer of a queue has in addition to `item_bytes`: for the prefix, the table and the gaps between arrays.
OVERHEAD = 4096
# If the arrays of a message have together at most this number of bytes, they are copied on receipt, because a view would keep a
# whole buffer in use.
SMALL = 2048


def align(offset):
    return (offset + ALIGNMENT - 1) & -ALIGNMENT


def _rebuild_permuted(array, axes):
    return array.transpose(axes)


def _reduce_array(array):
    """Pickles an array of numpy. numpy itself pickles an array in C or Fortran order without a copy. If only the axes
    are in another order, the array is sent with its axes in the order of memory. An array with gaps is copied without
    the gaps."""
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
    """Returns the function that pickles objects of this type, or None if they are pickled as usual. Subclasses of
    arrays, and parameters of torch, are pickled as usual, so they keep their type."""
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


# Objects of these types contain no other objects, so the plain pickler can pickle them.
PLAIN = frozenset((int, str, bytes, bytearray, float, bool, complex, type(None)))


class Item:
    """A message that is ready to be written into a loan. The message refers to the memory of arrays, and write() copies
    this memory. `size` is the size of the message in bytes."""

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
        """Writes the message into a memoryview of at least `size` bytes. Returns the size of the message."""
        for (start, size), source in zip(self.places, self.buffers):
            _memory.copy_into(target[start:start + size], source)
        return write_table(target, self.places, self.table, self.pickle)


def write_table(target, places, table, pickled):
    """Writes the prefix, the table and the pickle of a message whose arrays are already in place. Returns the size of the
    message."""
    at = table
    for place in places:
        PLACE.pack_into(target, at, *place)
        at += PLACE.size
    target[at:at + len(pickled)] = pickled
    PREFIX.pack_into(target, 0, MAGIC, len(places), table, len(pickled))
    return at + len(pickled)


def read(view, copy=False):
    """Returns the object of a message. If the arrays of the object are small, or `copy` is true, the arrays are copies.
    Otherwise the arrays are views of `view`. A message without the prefix comes from put_bytes() or a program in
    another language. Such a message is returned as a memoryview of its bytes."""
    if view.nbytes < FIRST or bytes(view[:4]) != MAGIC:
        return memoryview(bytearray(view)) if copy else view
    _, count, table, pickled = PREFIX.unpack_from(view)
    start = table + PLACE.size * count
    if start + pickled > view.nbytes:
        raise ValueError(f"a message of {view.nbytes} bytes says that it has {start + pickled}")
    places = [PLACE.unpack_from(view, table + PLACE.size * i) for i in range(count)]
    if any(at + size > table for at, size in places):
        raise ValueError("a message describes an array outside its part for arrays")
    if copy or sum(size for _, size in places) <= SMALL:
        buffers = [bytearray(view[at:at + size]) for at, size in places]
    else:
        buffers = [view[at:at + size] for at, size in places]
    return pickle.loads(view[start:start + pickled], buffers=buffers)
