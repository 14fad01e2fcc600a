"""The only test passes, but leaves a thread that never ends."""
import threading


def test_thread_that_stays():
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=lock.acquire).start()
