"""A test that computes in native code for longer than the limit: it is slow, but it does not hang. Another test follows."""
import hashlib
import time

SECONDS = 14  # of processor time, so a busy machine makes the call longer, never shorter


def work(rounds):
    began = time.thread_time()
    hashlib.pbkdf2_hmac("sha256", b"word", b"salt", rounds)
    return time.thread_time() - began


def test_busy():
    some = 200_000
    work(int(some * SECONDS / work(some)))


def test_after():
    assert True
