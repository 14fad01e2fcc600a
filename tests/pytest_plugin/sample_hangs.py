"""Twenty tests for pytest. Three of them hang, each in another way."""
import multiprocessing
import threading
import time

import pytest


@pytest.mark.parametrize("number", range(17))
def test_fine(number):
    assert number >= 0


def hold_elsewhere(lock):
    """Starts a thread that takes `lock` and never releases it."""
    held = threading.Event()

    def hold():
        with lock:
            held.set()
            time.sleep(1000)

    threading.Thread(target=hold, daemon=True).start()
    assert held.wait(30)


def test_child_of_a_held_lock():
    lock = threading.Lock()
    hold_elsewhere(lock)
    child = multiprocessing.get_context("fork").Process(target=lock.acquire)
    child.start()
    child.join()


POOL_LOCK = threading.Lock()


def take_pool_lock(number):
    with POOL_LOCK:
        return number


def test_pool_join():
    hold_elsewhere(POOL_LOCK)
    pool = multiprocessing.get_context("fork").Pool(2)
    pool.map_async(take_pool_lock, range(2))
    pool.close()
    pool.join()


def test_two_locks():
    first, second = threading.Lock(), threading.Lock()
    has_second = threading.Event()

    def other():
        with second:
            has_second.set()
            first.acquire()

    with first:
        threading.Thread(target=other, daemon=True).start()
        assert has_second.wait(30)
        with second:
            pass
