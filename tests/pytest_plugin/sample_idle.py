"""Two groups of tests. None hangs. The worker that gets the first group waits long for the worker that gets the second."""
import time

import pytest


class TestQuick:
    def test_quick(self):
        pass


class TestSlow:
    @pytest.mark.parametrize("number", range(5))
    def test_slow(self, number):
        time.sleep(1)
