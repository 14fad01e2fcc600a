"""undisturbed_test.py FORKSIGHT: `forksight run` interrupts no wait of a process that only waits for a hung process.

The program forks while another thread holds a lock of Python. The child hangs in that lock. The parent calls poll(),
select() or read() by ctypes, so Python does not hide an interruption. The call would end only when the child ends.
forksight kills both processes. If the call fails with EINTR before that, the parent prints the
result and the error number.
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FORKSIGHT = sys.argv.pop()
LIMIT_S = 60
PROGRAM = r"""
import ctypes, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
lock = threading.Lock()
held_in, held_out = os.pipe()
def hold():
    with lock:
        os.write(held_out, b"x")
        threading.Event().wait()
threading.Thread(target=hold, daemon=True).start()
os.read(held_in, 1)
end_in, end_out = os.pipe()
if os.fork() == 0:
    lock.acquire()
    os._exit(0)
os.close(end_out)
class Polled(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]
polled, byte = Polled(end_in, 1, 0), ctypes.create_string_buffer(1)
if sys.argv[1] == "poll":
    got = libc.poll(ctypes.byref(polled), 1, -1)
elif sys.argv[1] == "select":
    mask = (ctypes.c_ulong * 16)()
    mask[end_in // 64] = 1 << end_in % 64
    got = libc.select(end_in + 1, mask, None, None, None)
else:
    got = libc.read(end_in, byte, 1)
print(got, ctypes.get_errno(), flush=True)
os._exit(0)
"""


class Undisturbed(unittest.TestCase):
    def check(self, call, want):
        with tempfile.TemporaryDirectory(prefix="forksight-run-") as folder:
            report = Path(folder, "report.json")
            ended = subprocess.run([FORKSIGHT, "run", "-q", "--on-hang", "kill", "--format", "json",
                                    "--report", report, "--out", Path(folder, "out"), "--", sys.executable, "-B",
                                    "-c", PROGRAM, call],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   timeout=LIMIT_S, check=False)
            findings = [(one["rule"], one.get("hang")) for one in json.loads(report.read_text())["findings"]]
            self.assertEqual(findings, [("python-lock-orphaned", "proven")], ended.stderr)
            self.assertEqual(ended.stdout.strip(), want, ended.stderr)

    def test_poll(self):
        self.check("poll", "")

    def test_select(self):
        self.check("select", "")

    def test_read_of_a_pipe(self):
        self.check("read", "")


if __name__ == "__main__":
    unittest.main()
