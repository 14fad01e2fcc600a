"""Checks that the subject of a commit has at most 72 characters. Tools that list commits cut longer subjects."""
import subprocess
import sys
from pathlib import Path

from house import conclude

SINCE = "2026-11-23T18:00:00Z"  # older commits are not checked
MOST = 72


def check(root):
    """Returns the problems. An unpacked archive has no history, so there is nothing to check. If git fails, this is a problem."""
    if not (root / ".git").exists():
        return []
    try:
        log = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(root), "log", "--no-merges", f"--since={SINCE}", "--format=%h %s"], capture_output=True, text=True,
                             check=False)
    except FileNotFoundError:
        return ["there is no git, so the commits cannot be checked"]
    if log.returncode != 0:
        return [f"git log failed: {log.stderr.strip()}"]
    commits = [line.partition(" ") for line in log.stdout.splitlines()]
    return [f"commit {name}: its subject has {len(subject)} characters, more than {MOST}: {subject}" for name, _, subject in commits
            if len(subject) > MOST]


if __name__ == "__main__":
    conclude(check(Path(sys.argv[1])))
