"""Checks that shell scripts parse, stop at errors and are executable, and that Python files compile."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

from house import conclude, is_script, tracked_files


def check_shell(path, root):
    name = path.relative_to(root)
    problems = []
    parsed = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True, check=False)
    if parsed.returncode != 0:
        problems.append(f"{name}: {parsed.stderr.strip()}")
    if "set -eu" not in path.read_text():
        problems.append(f"{name}: no `set -eu`")
    if not os.access(path, os.X_OK):
        problems.append(f"{name}: not executable")
    if shutil.which("shellcheck"):
        checked = subprocess.run(["shellcheck", str(path)], capture_output=True, text=True, check=False)
        if checked.returncode != 0:
            problems.append(f"{name}: {checked.stdout.strip()}")
    return problems


def check_python(path, root):
    try:
        compile(path.read_text(), str(path), "exec")
    except SyntaxError as error:
        return [f"{path.relative_to(root)}: {error}"]
    return []


def check(root):
    files = tracked_files(root)
    scripts = [path for path in files if is_script(path)]
    problems = []
    if not scripts:
        problems.append("no shell script found: where is ./bootstrap?")
    for path in scripts:
        problems += check_shell(path, root)
    for path in files:
        if path.suffix == ".py":
            problems += check_python(path, root)
    return problems


if __name__ == "__main__":
    conclude(check(Path(sys.argv[1])))
