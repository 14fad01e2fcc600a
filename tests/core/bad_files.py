"""bad_files.py FORKSIGHT: `forksight core` prints one error line for each file that it cannot read.

The exit status is 3, or 2 for wrong arguments. Standard output stays empty.
"""
import gzip
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

EM_AARCH64 = 183


def make_core(folder):
    """Returns a core that gcore made of a process that is started here. Returns None if gcore is not installed."""
    if not shutil.which("gcore"):
        return None
    victim = subprocess.Popen(["/bin/sleep", "1000"], stdin=subprocess.DEVNULL)
    try:
        subprocess.run(["gcore", "-o", str(Path(folder, "good")), str(victim.pid)], capture_output=True, timeout=40, check=False)
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    core = Path(folder, f"good.{victim.pid}")
    return core if core.exists() else None


def main():
    forksight = sys.argv[1]
    faults = []

    def expect(arguments, *parts, status=3):
        done = subprocess.run([forksight, "core", *map(str, arguments)], capture_output=True, text=True, timeout=40, check=False)
        lines = done.stderr.splitlines()
        good = done.returncode == status and done.stdout == "" and len(lines) == 1
        if not good or not all(part in done.stderr for part in ("forksight: error: ", *parts)):
            faults.append(f"core {arguments}: exit status {done.returncode}, stdout {done.stdout!r}, stderr {done.stderr!r}")

    with tempfile.TemporaryDirectory(prefix="forksight-core-") as folder:
        at = lambda name: Path(folder, name)
        expect([at("absent")], "absent", "No such file")
        expect([folder], folder)
        at("empty").write_bytes(b"")
        expect([at("empty")], "is empty")
        at("text").write_text("no core at all, and long enough for one\n" * 40)
        expect([at("text")], "is not a core file")
        expect(["/bin/sleep"], "/bin/sleep", "core")
        at("packed").write_bytes(gzip.compress(b"core"))
        expect([at("packed")], "is packed with gzip", "gzip -dk")
        os.mkfifo(at("pipe"))
        expect([at("pipe")], "pipe")
        expect([], "CORE is required", status=2)
        expect([at("text"), "--format", "xml"], "xml is neither text nor json", status=2)

        core = make_core(folder)
        if core is None:
            print("gcore (package gdb) is not installed, so no core can be made")
            return 1
        whole = core.read_bytes()
        at("cut").write_bytes(whole[:1000])
        expect([at("cut")], "is cut")
        other = bytearray(whole)
        struct.pack_into("<H", other, 18, EM_AARCH64)
        at("other").write_bytes(other)
        expect([at("other")], "aarch64")
        expect([core, "--exe", "/bin/true"], "is not a core of /bin/true")
        expect([core, "--exe", at("absent")], "is not a readable x86-64 program")
        expect([core, "--parent-core", at("text")], "is not a core file")

        awake = subprocess.run([forksight, "core", str(core)], capture_output=True, text=True, timeout=40, check=False)
        if awake.returncode != 0 or "nothing found" not in awake.stdout or awake.stderr:
            faults.append(f"a core of sleep: {awake}")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
