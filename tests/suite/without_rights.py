"""Runs a command as an ordinary user: without_rights.py COMMAND [ARGUMENT...]

The kernel shows an ordinary user less than it shows root, for example almost nothing about a zombie. If root runs this
script, the command runs as user 65534. Otherwise the command runs as the caller. The exit status is that of the
command, or 77 if user 65534 cannot execute the command's file.
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
