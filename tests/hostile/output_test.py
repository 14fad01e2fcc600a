"""output_test.py FORKSIGHT: forksight writes reports into folders of other users. It must not follow links of these
users. A report may be written to a device or a mount, or through a link of the user's own."""
import ctypes
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from bounded import run

FORKSIGHT = sys.argv.pop(1)
STRANGER = 65534
MS_BIND, MNT_DETACH = 4096, 2
libc = ctypes.CDLL(None, use_errno=True)


class Output(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-hostile-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.folder.chmod(0o755)
        self.report = self.folder / "report.json"

    def forksight(self, report, status=0, **options):
        done = run([FORKSIGHT, "run", "--out", self.folder / "out", "--format", "json", "--report", report, "--", "/bin/true"],
                   **options)
        self.assertEqual(done.status, status, done.text)
        return done

    def check_document(self, text):
        self.assertEqual(json.loads(text)["schema"].partition("/")[0], "forksight-report")

    def check_file(self, path, mode=None):
        self.check_document(path.read_text())
        if mode is not None:
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), mode)

    def make_link(self, owner):
        victim = self.folder / "victim"
        victim.write_text("precious")
        self.report.symlink_to(victim)
        os.chown(self.report, owner, owner, follow_symlinks=False)
        return victim

    def need_root(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make a link of another user")

    def test_a_new_file_honours_the_umask(self):
        self.forksight(self.report, umask=0o027)
        self.check_file(self.report, 0o640)

    def test_an_old_file_keeps_its_mode(self):
        self.report.write_text("old")
        self.report.chmod(0o604)
        self.forksight(self.report)
        self.check_file(self.report, 0o604)
        self.assertEqual([entry.name for entry in self.folder.iterdir() if entry.name.startswith(".")], [])

    def test_an_old_file_keeps_its_owner(self):
        self.need_root()
        self.report.write_text("old")
        os.chown(self.report, STRANGER, STRANGER)
        self.forksight(self.report)
        self.check_file(self.report)
        self.assertEqual((self.report.stat().st_uid, self.report.stat().st_gid), (STRANGER, STRANGER))

    def test_a_reader_keeps_the_old_file(self):
        self.report.write_text("old")
        with open(self.report) as reader:
            self.forksight(self.report)
            self.assertEqual(reader.read(), "old")
        self.check_file(self.report)

    def test_a_link_of_another_user_is_not_followed(self):
        self.need_root()
        victim = self.make_link(STRANGER)
        self.forksight(self.report)
        self.assertEqual(victim.read_text(), "precious")
        self.assertFalse(self.report.is_symlink())
        self.check_file(self.report)

    def make_folder_link(self, owner):
        """Returns the victim, a file in a folder. The folder has a second path: self.folder / "way" / "there"."""
        (self.folder / "private").mkdir()
        victim = self.folder / "private" / "report.json"
        victim.write_text("precious")
        (self.folder / "way").mkdir()
        link = self.folder / "way" / "there"
        link.symlink_to("../private")
        os.chown(link, owner, owner, follow_symlinks=False)
        return victim

    def test_a_link_of_another_user_to_a_folder_is_not_followed(self):
        self.need_root()
        victim = self.make_folder_link(STRANGER)
        for report in (self.folder / "way" / "there" / "report.json", self.folder / "way" / "there" / ".." / "new.json"):
            done = self.forksight(report, 2)
            self.assertIn(f"its folder there is a link of user {STRANGER}", done.err)
        self.assertEqual(victim.read_text(), "precious")
        self.assertFalse((self.folder / "new.json").exists())

    def test_a_link_of_ones_own_to_a_folder_is_followed(self):
        victim = self.make_folder_link(os.geteuid())
        self.forksight(self.folder / "way" / "there" / "report.json")
        self.check_file(victim)

    def test_a_link_behind_a_link_of_ones_own_is_checked(self):
        self.need_root()
        victim = self.make_folder_link(STRANGER)
        self.report.symlink_to("way/there/report.json")
        self.assertIn("which forksight does not follow", self.forksight(self.report, 2).err)
        self.assertEqual(victim.read_text(), "precious")

    def test_links_that_lead_to_each_other(self):
        (self.folder / "a").symlink_to("b")
        (self.folder / "b").symlink_to("a")
        for report in (self.folder / "a", self.folder / "a" / "report.json"):
            self.assertIn("Too many levels of symbolic links", self.forksight(report, 2).err)

    def test_a_folder_of_proc_is_followed(self):
        report = "/proc/self/cwd/report.json"
        self.forksight(report, cwd=self.folder)
        self.check_file(self.report)

    def test_a_fifo_of_another_user_is_not_opened(self):
        self.need_root()
        os.mkfifo(self.report, 0o666)
        os.chown(self.report, STRANGER, STRANGER)
        self.assertIn(f"it is a FIFO of user {STRANGER}", self.forksight(self.report, 2).err)

    def test_a_hard_link_of_another_user_is_not_written_through(self):
        victim = self.folder / "victim"
        victim.write_text("precious")
        os.link(victim, self.report)
        self.forksight(self.report)
        self.assertEqual(victim.read_text(), "precious")
        self.check_file(self.report)

    def test_a_link_of_ones_own_is_followed(self):
        victim = self.make_link(os.geteuid())
        self.forksight(self.report)
        self.assertTrue(self.report.is_symlink())
        self.check_file(victim)

    def test_a_link_of_ones_own_to_a_file_that_is_not_there(self):
        victim = self.make_link(os.geteuid())
        victim.unlink()
        self.forksight(self.report)
        self.check_file(victim)

    def test_standard_output(self):
        for place in ("/dev/stdout", "/dev/fd/1", "-"):
            done = subprocess.run([FORKSIGHT, "run", "--out", self.folder / "out", "--format", "json", "--report", place, "--",
                                   "/bin/true"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=True)
            self.check_document(done.stdout)

    def test_standard_output_that_is_a_file(self):
        with open(self.report, "w") as out:
            subprocess.run([FORKSIGHT, "run", "--out", self.folder / "out", "--format", "json", "--report", "/dev/stdout", "--",
                            "/bin/true"], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL, timeout=30, check=True)
        self.check_file(self.report)

    def test_dev_null(self):
        self.forksight("/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_a_folder_is_an_error(self):
        self.report.mkdir()
        self.assertIn("cannot be written", self.forksight(self.report, 2).err)

    def test_a_file_that_is_mounted_alone(self):
        self.need_root()
        source = self.folder / "source"
        source.write_text("old")
        self.report.touch()
        if libc.mount(bytes(source), bytes(self.report), None, MS_BIND, None) != 0:
            self.skipTest("no mount can be made here")
        try:
            self.forksight(self.report)
        finally:
            libc.umount2(bytes(self.report), MNT_DETACH)
        self.check_file(source)

    def test_a_writable_file_in_a_folder_that_is_not(self):
        if os.geteuid() == 0:
            command = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
            owner = STRANGER
            if subprocess.run([*command, FORKSIGHT, "--version"], capture_output=True, timeout=30, check=False).returncode != 0:
                self.skipTest("another user cannot start forksight from its folder")
        else:
            command, owner = [], os.geteuid()
        inner = self.folder / "inner"
        inner.mkdir()
        report, out = inner / "report.json", self.folder / "out"
        report.write_text("old")
        out.mkdir()
        for path in (report, out):
            os.chown(path, owner, -1)
        inner.chmod(0o555)
        done = run([*command, FORKSIGHT, "run", "--out", out, "--format", "json", "--report", report, "--", "/bin/true"])
        inner.chmod(0o755)
        self.assertEqual(done.status, 0, done.text)
        self.check_file(report)

    def test_a_file_of_another_user_in_a_folder_like_tmp_is_not_emptied(self):
        self.need_root()
        shared = self.folder / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        report = shared / "report.json"
        report.write_text("precious")
        report.chmod(0o666)
        out = self.folder / "out"
        out.mkdir()
        os.chown(out, STRANGER, STRANGER)
        done = run(["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", FORKSIGHT, "run", "--out", out,
                    "--format", "json", "--report", report, "--", "/bin/true"])
        self.assertEqual(done.status, 2, done.text)
        self.assertEqual(report.read_text(), "precious")


if __name__ == "__main__":
    unittest.main()
