"""Runs the example producer and the example consumer, each built by another compiler with another optimisation level.

Both programs must understand the same segment.

Usage: abi_test.py NAME=PRODUCER,CONSUMER ..."""
import itertools
import os
import subprocess
import sys

FRAMES = 32


def pass_frames(producer, consumer):
    """Runs both programs. Returns what the consumer printed."""
    sender = subprocess.Popen([producer, str(FRAMES)], stdout=subprocess.PIPE, text=True)
    name = sender.stdout.readline().strip()
    receiver = None
    try:
        receiver = subprocess.Popen([consumer, name], stdout=subprocess.PIPE, text=True)
        said = receiver.communicate(timeout=30)[0]
        assert (receiver.returncode, sender.wait(30)) == (0, 0), said
        return said
    finally:
        for process in (sender, receiver):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        os.unlink("/dev/shm" + name)


builds = {}
for argument in sys.argv[1:]:
    build, _, programs = argument.partition("=")
    builds[build] = programs.split(",")
assert len(builds) > 1, sys.argv
for one, other in itertools.permutations(builds, 2):
    said = pass_frames(builds[one][0], builds[other][1])
    assert said.startswith(f"{FRAMES} frames; "), (one, other, said)
