# Mechanism: a program starts a child whose output goes into a pipe, and waits for the child's end. The child writes
#            more than fits into the pipe, and sleeps until the parent reads.
# To blame:  Popen.wait() with stdout=PIPE. Nothing reads the pipe meanwhile.
# User sees: the program works if the output is short, and stops if it is longer than 64 KiB.
# Fix:       use communicate(), or subprocess.run(capture_output=True). Both read until the child has ended.
# Repaired:  the program calls communicate().
#
# EXPECT-BARE: hang
# EXPECT: pipe-deadlock proven hang victims=0
import signal
import subprocess
import sys

# SIGINT gets its default action. Python's own handler could end the wait.
signal.signal(signal.SIGINT, signal.SIG_DFL)
child = subprocess.Popen(["head", "-c", "1000000", "/dev/zero"], stdout=subprocess.PIPE)
if sys.argv[1] == "repaired":
    written = len(child.communicate()[0])
else:
    written = 0
    child.wait()
sys.exit(0 if (written, child.returncode) == (1000000, 0) else 1)
