"""hidden_links_test.py FORKSIGHT: a process whose descriptors forksight may list, but not read, may have the other end of a pipe.

The examined process and forksight are in a user namespace of their own. A process outside of that namespace, of the same
user and session, has inherited the writing end of a pipe. The kernel lets forksight list its descriptors, and refuses to
show where they lead. So `why` must not say that nobody else can write to the pipe.
"""
import os
import shutil
import signal
import subprocess
import sys
import unittest

FORKSIGHT = sys.argv.pop()
LIMIT_S = 60
IN_NAMESPACE = ["unshare", "--user", "--map-root-user"]
MAY_UNSHARE = shutil.which("unshare") and subprocess.run([*IN_NAMESPACE, "true"], stderr=subprocess.DEVNULL, timeout=LIMIT_S,
                                                         check=False).returncode == 0
# cat reads from the pipe, and has its writing end (descriptor 4), too.
EXAMINE = """
cat <&3 &
exec 3<&- 4>&-
until grep -q '^0 ' /proc/$!/syscall; do :; done 2> /dev/null
"$1" why $!
echo "status $?"
"""
# The shell becomes the first process of the namespace. Its child stays outside, and keeps both ends of the pipe.
WITH_HOLDER = 'sleep 1000 & exec unshare --user --map-root-user sh -c "$2" sh "$1"'
WITHOUT_HOLDER = 'exec unshare --user --map-root-user sh -c "$2" sh "$1"'


@unittest.skipUnless(MAY_UNSHARE, "this needs a user namespace")
class HiddenLinks(unittest.TestCase):
    def examine(self, script):
        reader, writer = os.pipe()

        def move_pipe():
            os.dup2(reader, 10)
            os.dup2(writer, 11)
            os.dup2(10, 3)
            os.dup2(11, 4)
            os.close(10)
            os.close(11)

        with subprocess.Popen(["sh", "-c", script, "sh", FORKSIGHT, EXAMINE], start_new_session=True, close_fds=False,
                              preexec_fn=move_pipe, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as shell:
            os.close(reader)
            os.close(writer)
            said = []
            try:
                for line in shell.stdout:
                    said.append(line)
                    if line.startswith("status "):
                        break
            finally:
                os.killpg(shell.pid, signal.SIGKILL)
        return "".join(said)

    def test_a_hidden_process_may_write(self):
        said = self.examine(WITH_HOLDER)
        self.assertIn("status 0\n", said)
        self.assertNotIn("CERTAIN", said)
        self.assertIn("the kernel does not let forksight list the descriptors of", said)

    def test_without_that_process_the_hang_is_proven(self):
        said = self.examine(WITHOUT_HOLDER)
        self.assertIn("CERTAIN HANG: pipe-held-open", said)


if __name__ == "__main__":
    unittest.main()
