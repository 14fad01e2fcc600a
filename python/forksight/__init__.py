"""The Python package of forksight. It has a plugin for pytest and a queue in shared memory. The wheel also contains the
command `forksight` and the shim."""
import os
import shutil
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "native" / "bin" / "forksight"


def find_command():
    """Returns the path of the command `forksight`, or None if there is no such command. If the environment variable
    FORKSIGHT is set, it names the command. Otherwise the command in this package is taken. If the package has no
    command, the first `forksight` in PATH is taken."""
    named = os.environ.get("FORKSIGHT")
    if named:
        return shutil.which(named)
    return str(PROGRAM) if os.access(PROGRAM, os.X_OK) else shutil.which("forksight")


def main():
    """Replaces this process by the command `forksight` of this package. The command gets the arguments of this
    process."""
    try:
        os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"forksight: error: {PROGRAM}: {error.strerror}; install the package `forksight` again")
