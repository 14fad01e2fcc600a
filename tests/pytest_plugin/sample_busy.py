"""A test that computes in native code for longer than the limit: it is slow, but it does not hang. Another test follows."""
import hashlib
import time

SECONDS = 14


def work(rounds):
    began = time.monotonic()
    hashlib.pbkdf2_hmac("sha256", b"word", b"salt", rounds)
    return time.monotonic() - began


def test_busy():
    some = 200_000
    work(int(some * SECONDS / work(some)))


def test_after():
    assert True
