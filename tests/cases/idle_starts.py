"""Starts programs, each in a session of its own, and ends them. Signals only these programs and their descendants."""
import os
import signal
import subprocess
import time

from processes import descendants, stat_fields

LIMIT_S = 30


def wait_for(condition, limit_s, failure):
    """Waits until condition() is true, and returns True. After `limit_s` seconds, raises an error with the text
    `failure`.

    If `failure` is None, returns False instead.
    """
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    if failure:
        raise RuntimeError(failure)
    return False


def communicate(popen, limit_s):
    out, _ = popen.communicate(timeout=limit_s)
    return out.decode(errors="replace").strip()


def parent_of(pid):
    fields = stat_fields(f"/proc/{pid}/stat")
    return int(fields[1]) if fields else 0


class Started:
    """A program with pipes to its input and from its output. Its standard error is ignored."""

    wrap = None  # a function that gets a name and a command, and returns the command that is started instead

    def __init__(self, name, argv, **more):
        self.name = name
        argv = Started.wrap(name, argv) if Started.wrap else argv
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, **more}
        self.popen = subprocess.Popen(argv, start_new_session=True, **options)

    @property
    def pid(self):
        return self.popen.pid

    def tree(self):
        mine = {self.pid}
        parents = {pid: parent_of(pid) for pid in descendants()}
        while grown := {pid for pid, parent in parents.items() if parent in mine} - mine:
            mine |= grown
        return sorted(mine)

    def go_on(self):
        """Checks that the program still works. Returns lines with errors."""
        return []

    def end(self):
        """Ends the program and its descendants.

        SIGTERM comes first, because a server may have to remove files and shared memory.
        """
        tree = self.tree()
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(10)
            except subprocess.TimeoutExpired:
                pass
        for pid in tree:
            # The kernel does not reuse a pid before the parent has waited for the process. So if the parent of `pid` is in the
            # tree, `pid` still belongs to the process that was found in the tree. The same is true if the parent is this test,
            # which adopts the processes whose parent has ended.
            if pid == self.pid or parent_of(pid) in (os.getpid(), self.pid, *tree):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.popen.wait(LIMIT_S)
        for pid in tree:
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                pass
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass
