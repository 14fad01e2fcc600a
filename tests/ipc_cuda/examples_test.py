"""Runs the two example programs: each frame must arrive, and both programs must succeed.

Usage: examples_test.py WRITER READER"""
import subprocess
import sys
import tempfile
from pathlib import Path

WRITER, READER = sys.argv[1:3]


def main():
    started = []
    with tempfile.TemporaryDirectory(prefix="forksight-gpu-") as folder:
        address = str(Path(folder, "socket"))
        try:
            writer = subprocess.Popen([WRITER, address, "300"], stdout=subprocess.PIPE, text=True)
            started.append(writer)
            assert writer.stdout.readline() == "listening\n"
            reader = subprocess.Popen([READER, address], stdout=subprocess.PIPE, text=True)
            started.append(reader)
            said = reader.communicate(timeout=50)[0]
            assert (reader.returncode, said) == (0, "300 frames; queue: no producer is left, and nothing is queued\n"), said
            assert writer.wait(timeout=50) == 0
        finally:
            for process in started:
                if process.poll() is None:
                    process.kill()
                process.wait()


main()
