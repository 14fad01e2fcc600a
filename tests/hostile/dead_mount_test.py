"""dead_mount_test.py FORKSIGHT HANGING LIBRARY: a file system does not answer, like a network mount whose server is down. A
system call for a file of this file system blocks in the kernel, and not even SIGKILL ends the call. `why` must report
the hang nevertheless, and must say what it did not read."""
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from bounded import Mount, Program, run, settle

LIBRARY, HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
SILENT = "does not answer"
LIMIT_S = 60  # `why` takes about three seconds on an idle machine


class DeadMount(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0 or not os.access("/dev/fuse", os.W_OK):
            self.skipTest("only root can mount a FUSE file system, and /dev/fuse must exist")
        folder = tempfile.TemporaryDirectory(prefix="forksight-dead-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.place = self.folder / "mount"
        self.place.mkdir()

    def mount(self, *paths):
        mount = Mount(self.place, paths)
        self.addCleanup(mount.end)
        return mount

    def start(self, mount, *argv, **options):
        program = Program(argv, **options)
        self.addCleanup(program.end)
        self.addCleanup(mount.end)  # runs before program.end: unittest runs the last added cleanup first
        settle(program.pid)
        return program

    def why(self, program, *options):
        done = run([FORKSIGHT, "why", program.pid, *options], limit_s=LIMIT_S)
        self.assertEqual(done.status, 1, done.text)
        self.assertIn(str(program.pid), done.out)
        self.assertLess(done.peak_mb, 512)
        self.assertLess(done.seconds, 10)
        return done

    def test_a_library_on_the_dead_mount_is_left_out(self):
        mount = self.mount(LIBRARY)
        program = self.start(mount, HANGING, "load", self.place / Path(LIBRARY).name)
        mount.die()
        done = self.why(program)
        self.assertIn(SILENT, done.out)
        self.assertIn(str(self.place), done.out.replace("\n", ""))
        self.assertIn("pipe", done.out)

    def test_a_program_on_the_dead_mount_is_left_out(self):
        mount = self.mount(HANGING)
        program = self.start(mount, self.place / Path(HANGING).name, "hold", 1)
        mount.die()
        done = self.why(program)
        self.assertIn(SILENT, done.out)
        self.assertIn("pipe", done.out)

    def test_a_working_folder_and_a_descriptor_on_the_dead_mount_do_no_harm(self):
        mount = self.mount(LIBRARY)
        with open(self.place / Path(LIBRARY).name, "rb") as file:
            program = self.start(mount, HANGING, "hold", 1, cwd=self.place, pass_fds=[file.fileno()])
        mount.die()
        self.assertIn("pipe", self.why(program).out)

    def test_a_dead_mount_that_is_not_used_is_not_mentioned(self):
        """The process uses no file of the file system that does not answer, so the report does not mention the file system."""
        mount = self.mount(LIBRARY)
        program = self.start(mount, HANGING, "hold", 1)
        mount.die()
        self.assertNotIn(SILENT, self.why(program).out)

    def test_json_is_complete(self):
        mount = self.mount(LIBRARY)
        program = self.start(mount, HANGING, "load", self.place / Path(LIBRARY).name)
        mount.die()
        done = self.why(program, "--format", "json")
        self.assertTrue(done.out.startswith("{") and done.out.rstrip().endswith("}"), done.out)
        self.assertIn(SILENT, done.out)

    def test_run(self):
        """`run` cannot read the library. Nevertheless `run` reports that its command hangs, and ends with the status of
        the command."""
        mount = self.mount(LIBRARY)
        run_it = subprocess.Popen([FORKSIGHT, "run", "--full", "--out", self.folder / "out", "--", HANGING, "load", self.place / Path(LIBRARY).name],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run_it.kill)
        self.addCleanup(mount.end)  # runs before run_it.kill: unittest runs the last added cleanup first
        self.assertEqual(run_it.stdout.read(1), "x")
        mount.die()
        said = ""
        while SILENT not in said:
            line = run_it.stderr.readline()
            self.assertTrue(line, said)
            said += line
        [child] = Path(f"/proc/{run_it.pid}/task/{run_it.pid}/children").read_text().split()[:1]
        os.kill(int(child), signal.SIGTERM)
        rest = run_it.communicate(timeout=LIMIT_S)[1]
        self.assertEqual(run_it.returncode, 128 + signal.SIGTERM, said + rest)
        self.assertIn(str(self.place), (said + rest).replace("\n", ""))

    def test_control_the_mount_blocks(self):
        """`cat` of a file of the mount does not return. So the other tests would fail if `why` read such a file."""
        mount = self.mount(LIBRARY)
        mount.die()
        reader = subprocess.Popen(["/bin/cat", self.place / Path(LIBRARY).name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with self.assertRaises(subprocess.TimeoutExpired):
                reader.wait(3)
        finally:
            mount.end()
            reader.wait()


if __name__ == "__main__":
    unittest.main()
