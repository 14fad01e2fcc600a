"""rights_test.py FORKSIGHT HANGING LIBRARY OBJCOPY CC: root examines a process, a core and a run of another user. The
process, the core and the run name files that only root may read. forksight must not open these files. It must still
open the files that the other user may read."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

import elf
from bounded import Opened, Program, run, settle

CC = sys.argv.pop()
OBJCOPY = sys.argv.pop()
LIBRARY, HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
STRANGER = 65534
AS_STRANGER = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
SOURCE = "stuck.c"


# A child waits for a lock that a thread of its parent holds.
FORKS = """
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static void* hold(void* unused) {
  pthread_mutex_lock(&mutex);
  if (write(ends[1], "x", 1) == 1) pause();
  return unused;
}
int main(void) {
  pthread_t thread;
  char byte;
  if (pipe(ends) != 0 || pthread_create(&thread, NULL, hold, NULL) != 0 || read(ends[0], &byte, 1) != 1) return 2;
  const pid_t child = fork();
  if (child == 0) pthread_mutex_lock(&mutex);
  waitpid(child, NULL, 0);
  _exit(0);
}
"""


class Rights(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("this needs root and setpriv")
        if subprocess.run([*AS_STRANGER, "test", "-x", HANGING], check=False).returncode != 0:
            self.skipTest("another user cannot start the program from its folder")
        folder = tempfile.TemporaryDirectory(prefix="forksight-rights-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.folder.chmod(0o755)
        self.home, self.closed = self.folder / "home", self.folder / "closed"
        for place in (self.home, self.closed):
            place.mkdir(mode=0o700)
        self.own(self.home)
        self.library, self.debug = self.home / "libstuck.so", self.home / "libstuck.debug"
        # By its mode everybody may read this file, but only root may enter the folder of the file.
        self.secret = self.closed / "secret"
        self.secret.write_bytes(Path(LIBRARY).read_bytes())
        self.secret.chmod(0o644)

    def own(self, path):
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)

    def link(self, path, target):
        path.symlink_to(target)
        self.own(path)

    def watch(self, path):
        opened = Opened(path)
        self.addCleanup(opened.close)
        return opened

    def objcopy(self, *arguments):
        subprocess.run([OBJCOPY, *map(str, arguments)], check=True, timeout=60)

    def split(self, link):
        """Makes a library without debug information. `link`: the text of its debug link."""
        self.objcopy("--only-keep-debug", LIBRARY, self.debug)
        self.objcopy("--strip-all", f"--add-gnu-debuglink={self.debug}", LIBRARY, self.library)
        head = elf.Elf(self.library.read_bytes())
        name = os.fsencode(link) + b"\0"
        head.put(head.find(".gnu_debuglink"), name + bytes(-len(name) % 4) + struct.pack("<I", zlib.crc32(self.debug.read_bytes())))
        self.library.write_bytes(head.bytes)
        self.own(self.library)
        self.own(self.debug)

    def start(self):
        program = Program([*AS_STRANGER, HANGING, "load", self.library])
        self.addCleanup(program.end)
        settle(program.pid)
        return program

    def why(self, program, lines):
        """`lines`: whether the report has source lines of the library."""
        done = run([FORKSIGHT, "why", program.pid, "--format", "json"])
        self.assertEqual(done.status, 1, done.text)
        [finding] = json.loads(done.out)["findings"]
        self.assertEqual(finding["rule"], "pipe-held-open")
        self.assertEqual(SOURCE in {os.path.basename(frame["file"]) for frame in finding["stack"]}, lines, finding["stack"])

    def test_a_debug_file_of_the_user_is_read(self):
        self.split("libstuck.debug")
        self.why(self.start(), lines=True)

    def test_a_library_that_was_replaced_by_an_equal_file_of_the_user_is_read(self):
        shutil.copy(LIBRARY, self.library)
        self.own(self.library)
        program = self.start()
        self.library.unlink()
        shutil.copy(LIBRARY, self.library)
        self.own(self.library)
        self.why(program, lines=True)

    def test_a_link_at_the_place_of_a_library_into_a_closed_folder_is_not_followed(self):
        shutil.copy(LIBRARY, self.library)
        self.own(self.library)
        program = self.start()
        self.library.unlink()
        self.link(self.library, self.secret)
        opened = self.watch(self.secret)
        self.why(program, lines=True)  # the mapped file was removed, but can still be read
        self.assertFalse(opened.was_opened())

    def test_a_debug_link_into_a_closed_folder_is_not_followed(self):
        self.split(self.secret)
        self.debug.unlink()
        opened = self.watch(self.secret)
        self.why(self.start(), lines=False)
        self.assertFalse(opened.was_opened())

    def test_a_link_at_the_place_of_a_debug_file_into_a_closed_folder_is_not_followed(self):
        self.split("libstuck.debug")
        self.debug.unlink()
        self.link(self.debug, self.secret)
        opened = self.watch(self.secret)
        self.why(self.start(), lines=False)
        self.assertFalse(opened.was_opened())

    def test_a_link_at_the_place_of_a_split_file_into_a_closed_folder_is_not_followed(self):
        shutil.copy(Path(__file__).parent / SOURCE, self.home / SOURCE)
        subprocess.run([CC, "-g", "-O1", "-gsplit-dwarf", "-fPIC", "-shared", "-Wl,--build-id", "-o", "libstuck.so", SOURCE],
                       cwd=self.home, check=True, timeout=60)
        [split] = self.home.glob("*.dwo")
        split.rename(self.closed / "secret.dwo")
        self.link(split, self.closed / "secret.dwo")
        for path in self.home.iterdir():
            self.own(path)
        opened = self.watch(self.closed / "secret.dwo")
        self.why(self.start(), lines=True)  # the line of the function is in the library itself, not in the split file
        self.assertFalse(opened.was_opened())

    def core(self, name):
        """A core of a process that had the secret mapped. `name`: who owns the core file, "user" or "root"."""
        path = self.home / "core"
        path.write_bytes(elf.core(2, files=[(0x10000000, 0x10004000, 0, self.secret)], uid=STRANGER))
        path.chmod(0o644)
        if name == "user":
            self.own(path)
        return path

    def test_a_core_does_not_name_files_that_its_user_may_not_read(self):
        for name in ("user", "root"):
            opened = self.watch(self.secret)
            done = run([FORKSIGHT, "core", self.core(name)])
            self.assertEqual(done.status, 0, done.text)
            self.assertIn("2 threads", done.out)
            self.assertFalse(opened.was_opened(), name)

    def test_a_core_names_files_that_its_user_may_read(self):
        self.secret = self.home / "public"
        shutil.copy(LIBRARY, self.secret)
        self.own(self.secret)
        opened = self.watch(self.secret)
        run([FORKSIGHT, "core", self.core("user")])
        self.assertTrue(opened.was_opened())

    def run_log(self, name, pid, **more):
        wait = {"tid": pid, "name": "main", "state": "S", "kind": "futex", "object": "0x4040", "is_stuck": True, **more}
        process = {"pid": pid, "ppid": 1, "start_ticks": 7, "comm": name, "exe": f"/bin/{name}", "cmdline": [name], "liveness": "dead-but-for-signal",
                   "stuck_for_ms": 9000, "waits": [wait]}
        return json.dumps({"schema": "forksight-run/1", "command": [name], "started_at": "2026-01-01T00:00:00+00:00", "host": "here",
                           "limits": [], "processes": [process]})

    def report(self):
        done = run([FORKSIGHT, "report", self.home, "--format", "json"])
        self.assertIn(done.status, (0, 1), done.text)
        return json.loads(done.out)

    def test_a_run_log_does_not_name_files_that_its_user_may_not_read(self):
        place = self.home / "run.json"
        place.write_text(self.run_log("app", 4711, object_module=str(self.secret), module_bias="0x0"))
        opened = self.watch(self.secret)
        self.own(place)
        self.assertEqual([process["pid"] for process in self.report()["processes"]], [4711])
        self.assertFalse(opened.was_opened())
        os.chown(place, 0, 0)
        self.report()
        self.assertTrue(opened.was_opened(), "a run log of root does not make forksight open the file, so this test checks nothing")

    def test_a_trace_does_not_name_files_that_its_user_may_not_read(self):
        program, out = self.folder / "program", self.folder / "out"
        source = self.folder / "program.c"
        source.write_text(FORKS)
        subprocess.run([CC, "-g", "-pthread", "-o", program, source], check=True, timeout=60)
        run([FORKSIGHT, "run", "--on-hang", "kill", "--out", out, "--", program])
        program.rename(self.secret)
        program.symlink_to(self.secret)

        def report():
            opened = self.watch(self.secret)
            done = run([FORKSIGHT, "report", out, "--format", "json"])
            self.assertEqual(done.status, 1, done.text)
            document = json.loads(done.out)
            return opened.was_opened(), [finding["rule"] for finding in document["findings"]], document["limits"]

        self.assertEqual(report()[:2], (True, ["orphaned-mutex"]), "root's traces do not make forksight open the file, so this test checks nothing")
        for path in out.rglob("*"):
            self.own(path)
        is_opened, rules, limits = report()
        self.assertEqual((is_opened, rules), (False, ["orphaned-mutex"]))
        self.assertTrue(any("program: cannot be read (another user names this file, but may not read the file)" in limit for limit in limits), limits)

    def test_a_link_to_a_run_log_of_another_user_is_not_followed(self):
        for name in ("a", "b"):
            (self.home / name).mkdir()
        (self.home / "a" / "run.json").write_text(self.run_log("honest", 4711))
        self.secret.write_text(self.run_log("secret", 4712))
        for mode in (0o600, 0o644):
            self.secret.chmod(mode)
            place = self.home / "b" / "run.json"
            place.unlink(missing_ok=True)
            self.link(place, self.secret)
            opened = self.watch(self.secret)
            report = self.report()
            self.assertEqual([process["pid"] for process in report["processes"]], [4711])
            self.assertTrue(any("run.json: another user names this file, but may not read the file" in limit for limit in report["limits"]), report["limits"])
            self.assertFalse(opened.was_opened())

    def test_links_of_the_user_and_of_root_are_followed(self):
        (self.home / "kept.json").write_text(self.run_log("honest", 4711))
        self.own(self.home / "kept.json")
        place = self.home / "run.json"
        self.link(place, "kept.json")
        self.assertEqual([process["pid"] for process in self.report()["processes"]], [4711])
        place.unlink()
        self.secret.write_text(self.run_log("secret", 4712))
        place.symlink_to(self.secret)
        self.assertEqual([process["pid"] for process in self.report()["processes"]], [4712])


if __name__ == "__main__":
    unittest.main()
