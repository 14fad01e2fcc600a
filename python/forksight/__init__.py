"""forksight for Python environments: the command and its shim, as files of this package."""
import os
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "native" / "bin" / "forksight"


def main():
    """Becomes the command, with the arguments of this process."""
    try:
        os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"forksight: error: {PROGRAM}: {error.strerror}; install the package `forksight` again")
