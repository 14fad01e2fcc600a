"""run_folder_test.py FORKSIGHT HANGING: the command of a `forksight run` damages its own traces and its run folder, or writes the pid
of a process into a trace that is not part of the run. Or the owner of the folder of --out exchanges the run folder. The run must end
with the status of the command, and must touch neither that process nor the files of other folders."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from bounded import FORKS, LIMIT_S, Program, run, settle

HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop()
STATUS = 7
# Makes a trace: the command forks while it has a second thread. Then runs the code of the attack.
COMMAND = FORKS + """
import shutil
from pathlib import Path
sys.path.insert(0, sys.argv[1])
folder = Path(os.environ["FORKSIGHT_OUT"])
[trace] = folder.glob("*.fstrace")
exec(sys.argv[2])
sys.stdout.flush()
os._exit(7)
"""
DAMAGES = {
    "garbage": "trace.write_bytes(os.urandom(1 << 20))",
    "garbage behind the header": "f = open(trace, 'r+b'); f.seek(4096); f.write(os.urandom(1 << 20)); f.close()",
    "cut": "os.truncate(trace, 4100)",
    "empty": "os.truncate(trace, 0)",
    "a FIFO": "trace.unlink(); os.mkfifo(trace)",
    "a folder": "trace.unlink(); trace.mkdir(); (trace / 'x.fstrace').mkdir()",
    "a link to a secret": "trace.unlink(); trace.symlink_to('/etc/shadow')",
    "a link to itself": "trace.unlink(); trace.symlink_to(trace.name)",
    "a link to zeros": "trace.unlink(); trace.symlink_to('/dev/zero')",
    "a terabyte": "os.truncate(trace, 1 << 40)",
    "no folder": "shutil.rmtree(folder)",
    "another folder": "folder.rename(folder.with_name('gone')); folder.mkdir()",
    "a file as folder": "shutil.rmtree(folder); folder.write_bytes(b'x')",
    "a link as folder": "shutil.rmtree(folder); folder.symlink_to('/etc')",
    "a FIFO as run.json": "os.mkfifo(folder / 'run.json')",
    "a folder as run.json": "(folder / 'run.json').mkdir(); (folder / 'run.json' / 'x').mkdir()",
    "many files": "[(folder / f'{i}.fstrace').write_bytes(b'') for i in range(5000)]",
}
# Writes a trace of a process that is not part of the run, and hangs.
FOREIGN = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import made_trace
folder = Path(os.environ["FORKSIGHT_OUT"])
for number, fields in enumerate(sys.argv[2:]):
    pid, start = map(int, fields.split(","))
    trace = made_trace.Trace(pid=pid, start_ticks=start)
    forking = trace.add("thread", made_trace.thread(pid))
    trace.add("fork", made_trace.fork(forking, [trace.add("thread", made_trace.thread(pid + 1))]))
    trace.write(folder / f"{number}.fstrace")
ends = os.pipe()
import signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.read(ends[0], 1)
"""
# The owner of the folder of --out puts a link in the place of the run folder.
EXCHANGE = """
import os, sys, time
out, victim = sys.argv[1:]
end = time.monotonic() + 30
while time.monotonic() < end:
    for name in os.listdir(out):
        os.rename(f"{out}/{name}", f"{out}/gone")
        os.symlink(victim, f"{out}/{name}")
        sys.exit(0)
sys.exit(1)
"""
# Ends when the link is there.
AWAIT = """
import os, sys, time
while not any(entry.is_symlink() for entry in os.scandir(sys.argv[1])):
    time.sleep(0.01)
"""
STRANGER = 65534


def start_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19])


class RunFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-run-folder-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_damages(self):
        here = Path(__file__).parent
        for name, code in DAMAGES.items():
            with self.subTest(damage=name):
                out = self.folder / name.replace(" ", "-")
                done = run([FORKSIGHT, "run", "--out", out, "--", sys.executable, "-B", "-c", COMMAND, here, code], cwd=self.folder)
                self.assertEqual(done.status, STATUS, done.text)
                self.assertNotIn("signal", done.err)
                self.assertLess(done.peak_mb, 512)
                self.assertLess(done.seconds, 10)

    def test_a_foreign_pid_in_a_trace(self):
        if os.geteuid() != 0:
            self.skipTest("forksight trusts the traces of its own user, so this needs root")
        stranger = Program([HANGING, "hold", 1])
        self.addCleanup(stranger.end)
        settle(stranger.pid)
        done = run([FORKSIGHT, "run", "--on-hang", "kill", "--hang-after", "1", "--out", self.folder / "out", "--report", self.folder / "report", "--",
                    sys.executable, "-B", "-c", FOREIGN, Path(__file__).parent, f"{stranger.pid},{start_of(stranger.pid)}"], limit_s=LIMIT_S)
        self.assertEqual(done.status, 137, done.text)
        self.assertIsNone(stranger.popen.poll(), "the run has ended a process that is not part of it")
        self.assertNotIn("processes: ", (self.folder / "report").read_text())

    def test_files_behind_a_link_of_another_user_stay(self):
        if os.geteuid() != 0:
            self.skipTest("only root can act as two users")
        self.folder.chmod(0o755)
        out, victim = self.folder / "out", self.folder / "victim"
        for folder in (out, victim):
            folder.mkdir()
        os.chown(out, STRANGER, STRANGER)
        files = {victim / name: f"precious {name}" for name in ("run.json", "outside.json", "a.fstrace", "other")}
        for name, forks in (("a run without a trace", ""), ("a run with a trace", FORKS)):
            with self.subTest(name):
                for path, text in files.items():
                    path.write_text(text)
                exchange = subprocess.Popen(["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups",
                                             "/usr/bin/python3", "-c", EXCHANGE, out, victim])
                try:
                    done = run([FORKSIGHT, "run", "--out", out, "--", sys.executable, "-c", AWAIT + forks, out],
                               cwd=self.folder)
                finally:
                    exchange.kill()
                    exchange.wait()
                self.assertEqual(done.status, 0, done.text)
                self.assertEqual({path: path.read_text() for path in files}, files)
                for entry in out.iterdir():
                    if entry.is_symlink():
                        entry.unlink()
                    else:
                        shutil.rmtree(entry)


if __name__ == "__main__":
    unittest.main()
