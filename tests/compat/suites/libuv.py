"""libuv's tests. Each test runs in a process of its own, as with libuv's own runner."""
import subprocess

from frame import Unit
from packages import NotHere, clean_folder, fetch_source

ABOUT = "libuv's tests"
PACKAGES = ["gcc", "cmake", "ninja-build", "dpkg-dev"]
SOURCES = ["libuv1"]
LEFT_OUT = {"udp_multicast_join, udp_multicast_join6": "they need a network"}
SECONDS = 30


def prepare(cache):
    folder = cache / "libuv"
    if (folder / "uv_run_tests").exists():
        return
    root = fetch_source("libuv1", cache)
    clean_folder(folder)
    for words in (["cmake", "-G", "Ninja", "-S", str(root), "-B", str(folder), "-DLIBUV_BUILD_TESTS=ON", "-DCMAKE_BUILD_TYPE=Release"],
                  ["nice", "ninja", "-C", str(folder), "-j2", "uv_run_tests"]):
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise NotHere(f"`{' '.join(words)}`: {done.stdout.strip().splitlines()[-1]}")


def units(cache):
    program = cache / "libuv/uv_run_tests"
    listed = subprocess.run([str(program), "--list"], capture_output=True, text=True, check=True).stdout.split()
    left_out = {name.strip() for names in LEFT_OUT for name in names.split(",")}
    for name in listed:
        if name not in left_out:
            yield Unit(name, [str(program), name], folder=str(fetch_source("libuv1", cache)), seconds=SECONDS)
