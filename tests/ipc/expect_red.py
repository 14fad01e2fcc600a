"""A planted fault must be found: expect_red.py PROGRAM [ARGUMENTS] passes if it ends with 1 and says what is broken."""

import subprocess
import sys

found = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True, check=False)
print(found.stdout, end="")
if found.returncode != 1 or "broken: " not in found.stdout:
    sys.exit(f"expect_red.py: {sys.argv[1]}: ended with {found.returncode}: the fault was not found")
