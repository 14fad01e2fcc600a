"""Runs the numpy example as a user would. A second process of the example must print the right sum.

Usage: numpy_array_test.py EXAMPLE LIBRARY"""
import re
import subprocess
import sys

run = subprocess.run([sys.executable, "-B", *sys.argv[1:3]], capture_output=True, text=True, timeout=50)
assert run.returncode == 0, run.stderr
said = re.fullmatch(r"1048576 numbers, their sum is 549755289600, from process (\d+)\n", run.stdout)
assert said and int(said[1]) > 0, run.stdout
