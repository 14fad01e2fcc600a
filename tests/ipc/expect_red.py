"""expect_red.py PROGRAM [ARGUMENTS] runs a checking program that contains a planted fault.

The program must find the fault: it must end with exit status 1, and print "broken: " and what is broken.
"""

import subprocess
import sys

found = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True, check=False)
print(found.stdout, end="")
if found.returncode != 1 or "broken: " not in found.stdout:
    sys.exit(f"expect_red.py: {sys.argv[1]}: ended with {found.returncode}: the fault was not found")
