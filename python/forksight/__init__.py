"""forksight: why processes hang. This package finds the command, and has a plugin for pytest."""
import os
import shutil


def find_command():
    """The path of the command `forksight`, or None: $FORKSIGHT, else bin/forksight of this package, else PATH."""
    named = os.environ.get("FORKSIGHT")
    if named:
        return shutil.which(named)
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "forksight")
    return beside if os.access(beside, os.X_OK) else shutil.which("forksight")
