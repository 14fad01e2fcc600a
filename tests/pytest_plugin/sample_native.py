"""A test that hangs in native code. Its wait starts again after every signal. Another test comes before it."""
import ctypes


def test_before():
    assert True


def test_native_lock():
    libc = ctypes.CDLL(None)
    mutex = ctypes.create_string_buffer(64)
    assert libc.pthread_mutex_lock(mutex) == 0
    libc.pthread_mutex_lock(mutex)
