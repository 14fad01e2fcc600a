"""kernel_thread_test.py FORKSIGHT PID: `why` refuses to examine a thread of the kernel.

/proc of a container with its own pid namespace does not show these threads. There, the test exits with status 77.
"""
import sys
from pathlib import Path

from observed import Command

try:
    is_kernel = "VmSize" not in Path(f"/proc/{sys.argv[2]}/status").read_text()
except FileNotFoundError:
    is_kernel = False
if not is_kernel:
    print(f"skipped: process {sys.argv[2]} is no thread of the kernel here")
    sys.exit(77)
done = Command(sys.argv[1]).run(sys.argv[2])
expected = f"forksight: error: process {sys.argv[2]}: is a thread of the kernel"
good = done.returncode == 3 and done.stdout == "" and done.stderr.startswith(expected) and done.stderr.count("\n") == 1
print(done.returncode, done.stdout, done.stderr)
sys.exit(0 if good else 1)
