"""forksight for Python environments: the command and its shim as files of this package, a plugin for
pytest, and a queue in shared memory."""
import os
import shutil
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "native" / "bin" / "forksight"


def find_command():
    """Returns the path of the command `forksight`, or None. The command is the one that $FORKSIGHT names if that variable is set.
    Otherwise it is the command in this package, or, if this package has none, the first command `forksight` in PATH."""
    named = os.environ.get("FORKSIGHT")
    if named:
        return shutil.which(named)
    return str(PROGRAM) if os.access(PROGRAM, os.X_OK) else shutil.which("forksight")


def main():
    """Replaces this process by the command, with the same arguments."""
    try:
        os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"forksight: error: {PROGRAM}: {error.strerror}; install the package `forksight` again")
