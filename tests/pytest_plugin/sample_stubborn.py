"""The second test hangs in Python code, and catches each exception that would end it."""
import threading


def test_before():
    assert True


def test_catches_all():
    lock = threading.Lock()
    lock.acquire()
    while True:
        try:
            lock.acquire()
        except BaseException:  # pylint: disable=broad-except
            pass
