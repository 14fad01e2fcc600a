"""kernel_thread_test.py FORKSIGHT PID: `why` refuses to examine a thread of the kernel."""
import sys

from observed import Command

done = Command(sys.argv[1]).run(sys.argv[2])
expected = f"forksight: error: process {sys.argv[2]}: is a thread of the kernel"
good = done.returncode == 3 and done.stdout == "" and done.stderr.startswith(expected) and done.stderr.count("\n") == 1
print(done.returncode, done.stdout, done.stderr)
sys.exit(0 if good else 1)
