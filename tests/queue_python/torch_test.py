"""Tests that torch tensors keep their type, shape and strides, and that the receiver does not copy them."""
import unittest

from support import Case

from forksight.queue import Full, Queue

try:
    import torch
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "there is no torch")
class Torch(Case):
    def setUp(self):
        super().setUp()
        self.queue = self.sharedClosing(Queue(2, item_bytes=1 << 20))

    def test_tensors(self):
        cube = torch.arange(24 * 1000, dtype=torch.float32).reshape(20, 30, 40)
        for tensor in (cube, cube.permute(1, 0, 2), cube.permute(2, 1, 0), cube.to(torch.bfloat16),
                       cube.to(torch.int64)[0].clone(), torch.zeros(0, 3), torch.tensor(3.5)):
            self.queue.put({"x": [tensor]})
            got = self.queue.get()["x"][0]
            self.assertEqual((got.dtype, got.shape), (tensor.dtype, tensor.shape))
            if tensor.numel():
                self.assertEqual(got.stride(), tensor.stride())
            self.assertTrue(torch.equal(got, tensor))

    def test_tensors_that_dlpack_cannot_export(self):
        gradient = torch.ones(1000, requires_grad=True)
        self.queue.put([gradient, torch.ones(100, 100)[::2], torch.nn.Parameter(torch.ones(3), requires_grad=False)])
        got = self.queue.get()
        self.assertIs(type(got[2]), torch.nn.Parameter)
        self.assertTrue(got[0].requires_grad)
        self.assertTrue(torch.equal(got[0], gradient))
        self.assertEqual(got[1].shape, (50, 100))

    def test_a_received_tensor_holds_its_message(self):
        self.queue.put(torch.ones(10000))
        got = self.queue.get()
        self.queue.put(1, False)
        with self.assertRaises(Full):
            self.queue.put(2, False)
        got += 1
        self.assertEqual(float(got.sum()), 20000)
        del got
        self.queue.put(2, False)


if __name__ == "__main__":
    unittest.main()
