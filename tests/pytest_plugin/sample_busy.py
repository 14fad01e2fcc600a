"""The first test computes in native code for longer than the time limit. It is slow, but it does not hang. A second test
follows."""
import hashlib
import time

SECONDS = 14  # CPU time of the call. On a busy machine the call takes longer than this, never shorter


def work(rounds):
    began = time.thread_time()
    hashlib.pbkdf2_hmac("sha256", b"word", b"salt", rounds)
    return time.thread_time() - began


def test_busy():
    some = 200_000
    work(int(some * SECONDS / work(some)))


def test_after():
    assert True
