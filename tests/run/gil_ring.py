"""gil_ring.py hang|slow: a worker holds a mutex of C code, and the main thread waits for that mutex while it holds the GIL. In
"hang", the worker then waits for the GIL: both wait for ever. In "slow", the worker sleeps, and does not need the GIL meanwhile.
The program writes a byte when the worker has the mutex."""
import ctypes
import os
import sys
import threading

mutex = ctypes.create_string_buffer(40)  # the size of a pthread_mutex_t. All bytes are zero, as in PTHREAD_MUTEX_INITIALIZER
with_gil = ctypes.PyDLL(None)            # calls of this library keep the GIL
without_gil = ctypes.CDLL(None)          # calls of this library release the GIL
has_mutex = threading.Event()


def work():
    with_gil.pthread_mutex_lock(mutex)
    has_mutex.set()
    if sys.argv[1] == "slow":
        without_gil.sleep(60)
    while True:  # Python takes the GIL from a thread that computes, and gives it back later
        pass


threading.Thread(target=work, daemon=True).start()
has_mutex.wait()
os.write(1, b"r")
with_gil.pthread_mutex_lock(mutex)
