"""Passes a numpy array to another process. Both processes use the shared memory, so nothing is copied. Argument: the
library's path."""
import ctypes as c, os, sys
import numpy as np

lib = c.CDLL(sys.argv[1])
for name in ("forksight_loan_data", "forksight_message_data"):
    getattr(lib, name).restype = c.c_void_p
queue, item = c.c_void_p(), c.c_void_p()
options = (c.c_uint64 * 7)(4 | 4 << 32, 8 << 20)  # 4 slots, 4 buffers of 8 MiB; struct forksight_queue_options
assert lib.forksight_queue_create(options, c.byref(queue), None) == 0

if os.fork() == 0:
    own = c.c_void_p()
    assert lib.forksight_queue_reattach_after_fork(queue, c.byref(own), None) == 0
    assert lib.forksight_queue_acquire(own, c.c_int64(-1), c.byref(item), None) == 0
    there = np.frombuffer((c.c_char * (8 << 20)).from_address(lib.forksight_loan_data(item)), np.float64)
    there[:] = np.arange(1 << 20)
    os._exit(lib.forksight_queue_send(own, item, c.c_uint64(8 << 20), c.c_int64(-1), None))

assert lib.forksight_queue_receive(queue, c.c_int64(60000), c.byref(item), None) == 0
array = np.frombuffer((c.c_char * (8 << 20)).from_address(lib.forksight_message_data(item)), np.float64)
print(f"{array.size} numbers, their sum is {array.sum():.0f}, from process {lib.forksight_message_producer(item)}")
lib.forksight_message_release(item)
assert os.wait()[1] == 0
