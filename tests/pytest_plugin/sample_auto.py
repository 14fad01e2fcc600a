"""One test checks that the shim is loaded. The other checks that the process of pytest has no child: the plugin's watcher must not be
a child of this process."""
import os

import pytest


def test_shim_is_loaded():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        assert "/libforksight" in maps.read()


def test_watcher_is_no_child():
    with pytest.raises(ChildProcessError):
        os.wait()
