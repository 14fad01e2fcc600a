"""The second test hangs in native code. The kernel restarts the wait of this test after every signal, so a signal
handler cannot end the test."""
import ctypes


def test_before():
    assert True


def test_native_lock():
    libc = ctypes.CDLL(None)
    mutex = ctypes.create_string_buffer(64)
    assert libc.pthread_mutex_lock(mutex) == 0
    libc.pthread_mutex_lock(mutex)
