"""Runs a command as an ordinary user: without_rights.py COMMAND [ARGUMENT...]

To such a user the kernel shows less, for example nothing of a process that has ended. root becomes the user 65534; every
other user runs the command itself. Exit status: that of the command; 77 if the user 65534 cannot reach its file.
"""
import os
import subprocess
import sys
import tempfile

USER = 65534


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    as_other = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        environment = {**os.environ, "TMPDIR": folder, "HOME": folder}
        try:
            return subprocess.run(sys.argv[1:], cwd=folder, env=environment, check=False, **as_other).returncode
        except PermissionError:
            print(f"skipped: the user {USER} cannot reach {sys.argv[1]}")
            return 77


if __name__ == "__main__":
    sys.exit(main())
