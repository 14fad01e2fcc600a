"""One test checks that the shim is loaded. The other checks that the process has no child, so the watcher of the plugin is not
its child."""
import os

import pytest


def test_shim_is_loaded():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        assert "/libforksight" in maps.read()


def test_watcher_is_no_child():
    with pytest.raises(ChildProcessError):
        os.wait()
