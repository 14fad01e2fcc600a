# Mechanism: a program starts a child with its output in a pipe, and waits for the child's end. The child writes more than the
#            pipe takes, and sleeps until somebody reads.
# To blame:  Popen.wait() with stdout=PIPE: nobody reads meanwhile.
# User sees: it works with little output, and stops with more than 64 KiB.
# Fix:       communicate(), or subprocess.run(capture_output=True): they read until the child has ended.
# Repaired:  communicate().
#
# EXPECT-BARE: hang
# EXPECT: pipe-deadlock proven hang victims=0
import signal
import subprocess
import sys

# As a script in the background of a shell has it: else Ctrl-C could end the wait.
signal.signal(signal.SIGINT, signal.SIG_DFL)
child = subprocess.Popen(["head", "-c", "1000000", "/dev/zero"], stdout=subprocess.PIPE)
if sys.argv[1] == "repaired":
    written = len(child.communicate()[0])
else:
    written = 0
    child.wait()
sys.exit(0 if (written, child.returncode) == (1000000, 0) else 1)
