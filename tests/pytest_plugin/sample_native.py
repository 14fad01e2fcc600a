"""A test that waits in native code, which starts its wait again after every signal; and one before it."""
import ctypes


def test_before():
    assert True


def test_native_lock():
    libc = ctypes.CDLL(None)
    mutex = ctypes.create_string_buffer(64)
    assert libc.pthread_mutex_lock(mutex) == 0
    libc.pthread_mutex_lock(mutex)
