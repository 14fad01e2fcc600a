"""Finds out whether namespaces can be made here, and with which options."""
import subprocess

from observed import LIMIT_S

NAMESPACES = ["--pid", "--fork", "--mount"]


def find_right():
    """Returns the options with which `unshare` can make namespaces.

    If `unshare` can make none, prints the reason and returns None.
    """
    reason = ""
    for more in ([], ["--user", "--map-root-user"]):
        try:
            tried = subprocess.run(["unshare", *more, *NAMESPACES, "--mount-proc", "true"], capture_output=True, text=True,
                                   timeout=LIMIT_S, check=False)
        except FileNotFoundError as error:
            reason = str(error)
            continue
        if tried.returncode == 0:
            return more
        reason = tried.stderr.strip()
    print(f"skipped: namespaces cannot be made here: {reason}")
    return None


def can_map():
    """Returns whether user namespaces can be made. If not, prints the reason."""
    tried = subprocess.run(["unshare", "--user", "--map-root-user", *NAMESPACES, "--mount-proc", "true"], capture_output=True,
                           text=True, timeout=LIMIT_S, check=False)
    if tried.returncode != 0:
        print(f"skipped: user namespaces cannot be made here: {tried.stderr.strip()}")
    return tried.returncode == 0
