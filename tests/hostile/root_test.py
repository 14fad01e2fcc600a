"""root_test.py FORKSIGHT HANGING LIBRARY CC: root examines a process. The process of forksight that parses data has
given up root's user. Another process of forksight opens files for the process that parses data. The report must
nevertheless contain what root may read, or must say what is missing."""
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from bounded import Mount, Program, run, settle

CC = sys.argv.pop()
LIBRARY, HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
QUEUE = Path("/dev/shm/forksight-root-test")
# The new /proc hides the processes of other users. It belongs to a new pid namespace, so the /proc of the machine stays as it is.
HIDE = """mount -t proc -o hidepid=2 proc /proc || exit 77
"$2" lock 0 > "$3" < /dev/null &
while [ ! -s "$3" ]; do kill -0 $! || exit; sleep 0.05; done
sleep 0.5
"$1" why $! --format json
status=$?
kill -9 $!
exit $status
"""

HIDE_FROM_QUEUE = """mount -t proc -o hidepid=2 proc /proc || exit 77
sleep 60 3< "$2" &
"$1" queue inspect /proc/$!/fd/3
status=$?
kill -9 $!
exit $status
"""


class Root(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("this needs root")
        folder = tempfile.TemporaryDirectory(prefix="forksight-root-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)  # with mode 700

    def start(self, *argv):
        program = Program(argv)
        self.addCleanup(program.end)
        settle(program.pid)
        return program

    def why(self, program, **options):
        done = run([FORKSIGHT, "why", program.pid, "--format", "json"], **options)
        self.assertEqual(done.status, 1, done.text)
        return json.loads(done.out)

    def test_hidden_processes_are_seen(self):
        done = run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", HIDE, "sh", FORKSIGHT, HANGING, self.folder / "ready"])
        if done.status == 77:
            self.skipTest("a new /proc cannot be mounted here")
        self.assertEqual(done.status, 1, done.text)
        [finding] = json.loads(done.out)["findings"]
        self.assertEqual(finding["rule"], "self-deadlock", finding)
        self.assertTrue(finding["culprit"]["holder"]["alive"])

    def test_the_descriptors_of_hidden_processes_are_seen(self):
        """The reader of this command has no CAP_SYS_PTRACE, so /proc hides the process from the reader."""
        place = self.folder / "file"
        place.write_text("no queue")
        place.chmod(0o600)
        done = run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", HIDE_FROM_QUEUE, "sh", FORKSIGHT, place])
        if done.status == 77:
            self.skipTest("a new /proc cannot be mounted here")
        self.assertEqual(done.status, 3, done.text)
        self.assertIn("a header alone has", done.err)

    def test_the_limit_of_processes_does_not_hold_for_the_reader(self):
        _, most = resource.getrlimit(resource.RLIMIT_NPROC)
        report = self.why(self.start(HANGING, "lock", "0"), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, most)))
        self.assertNotIn("Seen from outside", json.dumps(report))

    def test_files_of_a_mount_that_only_root_may_use_are_read(self):
        place = self.folder / "mount"
        place.mkdir()
        if not os.access("/dev/fuse", os.W_OK):
            self.skipTest("/dev/fuse must exist")
        mount = Mount(place, ["--private", LIBRARY])
        self.addCleanup(mount.end)
        program = self.start(HANGING, "load", place / Path(LIBRARY).name)
        [finding] = self.why(program)["findings"]
        self.assertIn(("stuck", "stuck.c"), [(frame["function"], os.path.basename(frame["file"])) for frame in finding["stack"]])
        program.end()

    def test_a_split_file_that_not_everybody_may_read_is_told(self):
        (self.folder / "split.c").write_text((Path(__file__).parent / "stuck.c").read_text())
        subprocess.run([CC, "-g", "-O1", "-gsplit-dwarf", "-fPIC", "-shared", "-Wl,--build-id", "-o", "libsplit.so", "split.c"],
                       cwd=self.folder, check=True, timeout=60)
        program = self.start(HANGING, "load", self.folder / "libsplit.so")

        def is_told():
            return any("inlined" in limit and ".dwo" in limit for limit in self.why(program)["limits"])

        self.assertTrue(is_told())
        self.folder.chmod(0o755)
        self.assertFalse(is_told())

    def test_a_named_file_that_is_no_queue_is_looked_at(self):
        self.addCleanup(QUEUE.unlink)
        QUEUE.write_text("no queue")
        QUEUE.chmod(0o600)
        done = run([FORKSIGHT, "queue", "inspect", QUEUE.name])
        self.assertEqual(done.status, 3, done.text)
        self.assertIn("a header alone has", done.err)


if __name__ == "__main__":
    unittest.main()
