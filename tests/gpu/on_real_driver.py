#!/usr/bin/python3
"""Runs a command in such a way that the loader finds the machine's own CUDA driver before the test driver.

  on_real_driver.py [--driver LIBCUDA] COMMAND [ARGUMENT...]

If there is no driver, or no device that answers, the exit status is 77 and the reason is printed: this is a skip, not a
pass. Otherwise the exit status is that of the command.
"""
import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Folders that are searched in addition to those of ldconfig. Containers and WSL put the driver there.
FOLDERS = ("/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib")
TEST_DRIVER = "forksight test driver"


def find_drivers():
    try:
        known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    except OSError:
        known = ""
    found = [line.rpartition("=> ")[2].strip() for line in known.splitlines() if "libcuda.so.1 (libc6,x86-64" in line]
    return [path for path in found + [f"{folder}/libcuda.so.1" for folder in FOLDERS] if Path(path).exists()]


def ask(path):
    """Returns why the driver at `path` cannot be used, or "" if it has a device.

    Call this function in a separate process, because a driver may crash.
    """
    try:
        driver = ctypes.CDLL(path)
    except OSError as error:
        return f"cannot be loaded: {error}"
    count, name = ctypes.c_int(0), ctypes.create_string_buffer(256)
    answer = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if answer != 0:
        return f"answers cuInit with {answer}"
    if count.value == 0:
        return "has no device"
    if driver.cuDeviceGetName(name, 256, 0) != 0:
        return "does not name its device"
    return "is the test driver" if name.value.decode(errors="replace") == TEST_DRIVER else ""


def main():
    if sys.argv[1:2] == ["--ask"]:
        print(ask(sys.argv[2]), end="")
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", help="use this driver instead of the first one that is found")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    drivers = [options.driver] if options.driver else find_drivers()
    reasons = []
    for driver in drivers:
        asked = subprocess.run([sys.executable, "-B", __file__, "--ask", driver], capture_output=True, text=True, timeout=60)
        if asked.returncode == 0 and asked.stdout == "":
            break
        reasons.append(f"{driver} {asked.stdout or 'crashed'}")
    else:
        print("skipped: " + ("; ".join(reasons) or "no libcuda.so.1 on this machine"))
        return 77
    with tempfile.TemporaryDirectory(prefix="forksight-gpu-") as folder:
        # The folder has a link to the driver and nothing else, so that the loader finds no other library of the driver's folder.
        os.symlink(Path(driver).resolve(), Path(folder, "libcuda.so.1"))
        environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))}
        return subprocess.run(options.command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
