"""Two groups of tests. No test hangs. The worker that runs the quick group waits long for the worker that runs the slow group."""
import time

import pytest


class TestQuick:
    def test_quick(self):
        pass


class TestSlow:
    @pytest.mark.parametrize("number", range(5))
    def test_slow(self, number):
        time.sleep(1)
