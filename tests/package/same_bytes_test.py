"""Tests which differences problems_of() of same_bytes.py reports."""
import unittest

from same_bytes import problems_of

GOOD = {"a.deb": b"1", "a.tar.zst": b"2", "a-debug.tar.zst": b"3", "a.whl": b"4"}


class SameBytes(unittest.TestCase):
    def test_the_same(self):
        self.assertEqual(problems_of(GOOD, dict(GOOD)), [])

    def test_another_byte_and_another_name(self):
        self.assertEqual(problems_of(GOOD, {**GOOD, "a.deb": b"5"}), ["a.deb differs"])
        other = {**GOOD, "b.whl": b"4"}
        del other["a.whl"]
        self.assertEqual(problems_of(GOOD, other), ["a.whl differs", "b.whl differs"])

    def test_missing_and_empty_packages(self):
        self.assertEqual(problems_of({}, {}), ["0 packages were made, not 4: "] * 2)
        self.assertEqual(problems_of({**GOOD, "a.deb": b""}, {**GOOD, "a.deb": b""}), ["a.deb is empty"])


if __name__ == "__main__":
    unittest.main()
