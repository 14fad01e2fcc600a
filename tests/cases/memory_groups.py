"""Hides memory control groups of version 1 from forksight.

The kernel may write to an eventfd because of such a group. So on a machine with such groups, forksight cannot prove
that a wait for an eventfd hangs (docs/proven.md). Tests of such waits hide the groups from forksight if the kernel
allows it.
"""
import atexit
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

LIST = Path("/proc/cgroups")


def exist():
    """Returns True if the machine has memory control groups of version 1."""
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    return any(line.startswith("memory\t") and line.split("\t")[1] != "0" for line in lines)


def hiding_command():
    """Returns the beginning of a command line that hides memory control groups of version 1 from the command after it.

    The command runs in a mount namespace of its own. There a file that does not list the groups is mounted over
    /proc/cgroups. If the machine has no such groups, the result is empty. Returns None if the kernel refuses the mount.
    """
    if not exist():
        return []
    handle, path = tempfile.mkstemp(prefix="forksight-cgroups-")
    os.write(handle, b"#subsys_name\thierarchy\tnum_cgroups\tenabled\n")
    os.fchmod(handle, 0o644)  # root's reading process is another user
    os.close(handle)
    atexit.register(os.unlink, path)
    command = ["unshare", "--mount", "sh", "-c", f'mount --bind "$0" {LIST} && exec "$@"', path]
    is_hidden = shutil.which("unshare") and subprocess.run([*command, "sh", "-c", f"! grep -q memory {LIST}"], capture_output=True,
                                                           check=False).returncode == 0
    return command if is_hidden else None


def remove_left(prefix):
    """Removes the empty groups that killed programs have left. Their names are `prefix` and the pid of the program."""
    for group in Path("/sys/fs/cgroup/memory").glob(prefix + "*"):
        if not Path("/proc", group.name.removeprefix(prefix)).exists():
            group.rmdir()
