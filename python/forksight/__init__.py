"""forksight for Python environments: the command and its shim as files of this package, a plugin for
pytest, and a queue in shared memory."""
import os
import shutil
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "native" / "bin" / "forksight"


def find_command():
    """The path of the command `forksight`, or None: $FORKSIGHT, else the one in this package, else PATH."""
    named = os.environ.get("FORKSIGHT")
    if named:
        return shutil.which(named)
    return str(PROGRAM) if os.access(PROGRAM, os.X_OK) else shutil.which("forksight")


def main():
    """Becomes the command, with the arguments of this process."""
    try:
        os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"forksight: error: {PROGRAM}: {error.strerror}; install the package `forksight` again")
