"""busy_programs.py FORKSIGHT BUSY BUSY_BLAS: forked children compute without a pause. `forksight why` must report nothing.

`forksight why` must not mistake these children for children that spin on a lock.
"""
import subprocess
import sys

from idle_starts import Started, communicate
from processes import become_reaper

LOOKS = 4
LIMIT_S = 60


def check(forksight, program, name):
    busy = Started(name, [program, name], env={"OPENBLAS_NUM_THREADS": "2"})
    try:
        if busy.popen.stdout.read(1) != b"x":
            return [f"{name} did not start"]
        for _ in range(LOOKS):
            done = subprocess.run([forksight, "why", str(busy.pid)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
            if done.returncode != 0:
                return [f"{name}: `forksight why` ends with {done.returncode}:", done.stdout, done.stderr]
        busy.popen.stdin.write(b"x")
        said = communicate(busy.popen, LIMIT_S)
        return [] if said == "7 0" else [f"{name}: the program printed \"{said}\""]
    finally:
        busy.end()


def main():
    forksight, plain, blas = sys.argv[1:]
    become_reaper()
    lines = [line for program, name in ((plain, "spinlock"), (plain, "compute"), (blas, "blas")) for line in check(forksight, program, name)]
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
