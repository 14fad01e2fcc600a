"""A test that checks whether the shim is loaded, and one that waits for all its children."""
import os

import pytest


def test_shim_is_loaded():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        assert "/libforksight" in maps.read()


def test_watcher_is_no_child():
    with pytest.raises(ChildProcessError):
        os.wait()
