"""Finds out whether and how namespaces can be made here."""
import subprocess

from observed import LIMIT_S

NAMESPACES = ["--pid", "--fork", "--mount"]


def find_right():
    """The options with which namespaces can be made; None if they cannot, after the reason is printed."""
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
    """Whether user namespaces can be made; if not, the reason is printed."""
    tried = subprocess.run(["unshare", "--user", "--map-root-user", *NAMESPACES, "--mount-proc", "true"], capture_output=True,
                           text=True, timeout=LIMIT_S, check=False)
    if tried.returncode != 0:
        print(f"skipped: user namespaces cannot be made here: {tried.stderr.strip()}")
    return tried.returncode == 0
