"""Tests that numpy arrays and DLPack tensors keep their type, shape and strides, and that the receiver does not copy them."""
import ctypes
import gc
import pickle
import sys
import unittest

from support import Case, Child

from forksight.queue import Full, Queue, Tensor, TooLarge, _tensors

try:
    import numpy
except ImportError:
    numpy = None


class Maker:
    """A tensor of a library that forksight.queue does not know. It has only the methods of DLPack, and can be pickled."""

    def __init__(self, tensor, is_readable=True):
        self.tensor, self.is_readable = tensor, is_readable

    def __dlpack__(self, stream=None):
        if not self.is_readable:
            raise BufferError("not now")
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __reduce__(self):
        return str, ("as it is pickled",)


def make_tensor(items, shape, strides):
    memory = (ctypes.c_double * len(items))(*items)
    return Tensor(memoryview(memory), (2, 64, 1), shape, strides)


class Tensors(Case):
    def setUp(self):
        super().setUp()
        self.queue = self.sharedClosing(Queue(2, item_bytes=1 << 20))
        gc.collect()
        self.exported = len(_tensors._exported)

    def tearDown(self):
        gc.collect()
        self.assertEqual(len(_tensors._exported), self.exported)
        super().tearDown()

    def test_a_tensor_of_an_unknown_library(self):
        for shape, strides in (((300, 2), (2, 1)), ((2, 300), (1, 2)), ((10, 20, 3), (3, 30, 1)), ((600,), (1,))):
            items = [float(i) for i in range(600)]
            self.queue.put({"tensor": Maker(make_tensor(items, shape, strides))})
            got = self.queue.get()["tensor"]
            self.assertEqual((type(got), got.dtype, got.shape, got.strides), (Tensor, (2, 64, 1), shape, strides))
            self.assertEqual(got.buffer.cast("d").tolist(), items)

    def test_a_tensor_keeps_its_message_and_uses_its_memory(self):
        self.queue.put(Maker(make_tensor([1.0] * 1000, (1000,), (1,))))
        got = self.queue.get()
        self.queue.put(1, False)
        with self.assertRaises(Full):
            self.queue.put(2, False)
        capsule = got.__dlpack__()
        del got
        with self.assertRaises(Full):
            self.queue.put(2, False)
        del capsule  # frees the message, because no library has taken the tensor from the capsule
        self.queue.put(2, False)

    def test_scalars_and_empty_tensors(self):
        for shape in ((), (0,), (3, 0, 2)):
            size = 1
            for length in shape:
                size *= length
            self.queue.put(Maker(make_tensor([7.0] * size, shape, _tensors.count_strides(shape))))
            self.assertEqual(self.queue.get().shape, shape)

    def test_a_tensor_that_dlpack_cannot_export_is_pickled(self):
        self.queue.put(Maker(make_tensor([1.0], (1,), (1,)), is_readable=False))
        self.assertEqual(self.queue.get(), "as it is pickled")

    def test_a_tensor_with_gaps_is_pickled(self):
        self.queue.put(Maker(make_tensor([1.0] * 10, (5,), (2,))))
        self.assertEqual(self.queue.get(), "as it is pickled")

    def test_a_buffer_of_pickle(self):
        data = bytes(range(256)) * 100
        self.queue.put([pickle.PickleBuffer(data)])
        got, = self.queue.get()
        self.assertEqual(bytes(got), data)

    @unittest.skipIf(numpy is None, "there is no numpy")
    def test_numpy_reads_a_tensor(self):
        self.queue.put(Maker(make_tensor([float(i) for i in range(600)], (2, 300), (1, 2))))
        got = numpy.asarray(self.queue.get())
        self.assertEqual((got.shape, got.strides, got.dtype), ((2, 300), (8, 16), numpy.float64))
        self.assertEqual(got[1, 3], 7.0)


@unittest.skipIf(numpy is None, "there is no numpy")
class Numpy(Case):
    def setUp(self):
        super().setUp()
        self.queue = self.sharedClosing(Queue(2, item_bytes=1 << 20))

    def test_types_shapes_and_strides(self):
        cube = numpy.arange(24 * 1000, dtype="f4").reshape(20, 30, 40)
        record = numpy.zeros(1000, dtype=[("a", "i2"), ("b", "f8"), ("c", "S3")])
        record["b"] = 2.5
        arrays = [cube, cube.transpose(1, 0, 2), cube.T, numpy.asfortranarray(cube), record, cube.astype(">i4"), cube.astype("c16")[:4], cube > 5,
                  numpy.arange(3000).astype("M8[s]"), numpy.array(3.5), numpy.zeros((0, 4)), numpy.array(["a", "bc"] * 900)]
        for array in arrays:
            self.queue.put({"x": array, "y": [1]})
            got = self.queue.get()["x"]
            self.assertEqual((got.dtype, got.shape), (array.dtype, array.shape))
            if array.size:
                self.assertEqual(got.strides, array.strides)
            self.assertTrue((got == array).all())

    def test_an_array_with_gaps_keeps_its_values(self):
        cube = numpy.arange(24 * 1000, dtype="f4").reshape(20, 30, 40)
        for array in (cube[::2, :, ::3], cube[::-1], cube.transpose(2, 0, 1)[:, ::2], numpy.broadcast_to(cube[0], (5, 30, 40))):
            self.queue.put(array)
            got = self.queue.get()
            self.assertEqual((got.dtype, got.shape), (array.dtype, array.shape))
            self.assertTrue((got == array).all())

    def test_a_subclass_keeps_its_type(self):
        for array in (numpy.ma.masked_array(numpy.arange(1000), numpy.arange(1000) % 2 == 0), numpy.arange(1000).view(numpy.recarray)):
            self.queue.put(array)
            got = self.queue.get()
            self.assertIs(type(got), type(array))
            self.assertEqual(got.sum(), array.sum())

    def test_objects_are_pickled(self):
        self.queue.put(numpy.array([{"a": 1}, None]))
        self.assertEqual(self.queue.get().tolist(), [{"a": 1}, None])

    def test_a_received_array_is_a_view_that_holds_its_message(self):
        self.queue.put(numpy.ones(10000))
        got = self.queue.get()
        self.assertFalse(got.flags.owndata)
        self.assertTrue(got.flags.writeable)
        row = got.reshape(100, 100)[3]
        del got
        self.queue.put(1, False)
        with self.assertRaises(Full):
            self.queue.put(2, False)
        row[:] = 5
        del row
        self.queue.put(2, False)

    def test_copies(self):
        self.queue.put(numpy.ones(10000))
        kept = [self.queue.get(copy=True)]
        for _ in range(5):  # small arrays are copied
            self.queue.put(numpy.arange(10))
            kept.append(self.queue.get())
        self.queue.put(1, False)
        self.queue.put(2, False)
        self.assertEqual([array.sum() for array in kept], [10000] + [45] * 5)

    def test_sender_and_receiver_use_the_same_memory(self):
        """The sender writes an array into a loan. The receiver gets an array that does not own its memory."""
        def work():
            with self.queue.loan() as loan:
                array = loan.array((100, 100), "f4")
                array[:] = 3
                loan.send()
                del array

        self.assertEqual(Child(work).end(), 0)
        got = self.queue.get(timeout=5)
        self.assertEqual((got.shape, got.dtype, got.sum()), ((100, 100), numpy.float32, 30000))
        self.assertFalse(got.flags.owndata)

    def test_a_loan_that_does_not_fit(self):
        with self.queue.loan() as loan:
            with self.assertRaises(TooLarge):
                loan.array(1 << 20, "f8")
            with self.assertRaises(TypeError):
                loan.array(1, object)
            loan.array(1 << 17, "f8")[:] = 1
            loan.send()
        self.assertEqual(self.queue.get().sum(), 1 << 17)

    def test_an_array_outlives_its_queue(self):
        other = Queue(2)
        other.put(numpy.arange(1000))
        array = other.get()
        other.close()
        del other
        gc.collect()
        self.assertEqual(array.sum(), 499500)


if __name__ == "__main__":
    if numpy is None:
        print("without numpy", file=sys.stderr)
    unittest.main()
