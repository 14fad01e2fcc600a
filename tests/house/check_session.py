"""Runs each command of the README's console blocks, and compares the command's output with the text of the block.

Only words are compared, because line breaks differ. Process ids, durations and the name of the host count as equal, because
they differ from run to run. A line "..." stands for lines that are left out. A command that ends in "&" goes on in the
background. In the commands after such a command, PID stands for the process id of the program in the background. Each
of these later commands is repeated until it prints the expected text, because the program in the background needs time
until it hangs.
"""
import argparse
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from house import conclude

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT_S = 60
LEFT_OUT = "..."
OF_PIDS = "(?:process|processes|child|children|thread|threads)"


def read_session(block):
    """Returns [(command, expected output)] of a console block."""
    session = []
    for line in block.splitlines():
        if line.startswith("$ "):
            session.append((line[2:], []))
        elif session:
            session[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in session]


def words(text):
    text = " ".join(text.split())
    text = re.sub(r"\) on \S+?(?=[,.]?(?: |$))", ") on HOST", text)
    text = re.sub(r"\b\d+(\.\d+)? (ms|s)\b", "TIME", text)
    text = re.sub(r"\b\d+-\d+-\d+\b", "RUN", text)
    text = re.sub(r"\bkill -9 \d+(?: \d+)*", "kill -9 NUMBER", text)
    return re.sub(rf"\b({OF_PIDS}:?) \d+(?:(?:, | and )\d+)*\b", r"\1 NUMBER", text)


def is_as_said(expected, printed):
    """True if the parts of the expected text between its lines "..." occur in the same order in the printed text."""
    rest = words(printed)
    parts = [words(part) for part in re.split(rf"^\s*{re.escape(LEFT_OUT)}\s*$", expected, flags=re.MULTILINE)]
    if not rest.startswith(parts[0]) or (parts[-1] and not rest.endswith(parts[-1])):
        return False
    for part in parts:
        at = rest.find(part)
        if at < 0:
            return False
        rest = rest[at + len(part):]
    return len(parts) > 1 or not rest.strip()


class Terminal:
    """Runs the commands of one block in the folder of the README's program."""

    def __init__(self, folder, build, out):
        self.folder, self.background = folder, None
        self.environment = dict(os.environ, LC_ALL="C", COLUMNS="100", FORKSIGHT_OUT=out, PATH=f"{build}/bin:/usr/bin:/bin")
        self.out = out

    def run(self, command):
        """Returns what the command prints, and its exit status."""
        if command.endswith("&"):
            self.background = subprocess.Popen(["bash", "-c", "exec " + command.removesuffix("&")], cwd=self.folder, env=self.environment,
                                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                               start_new_session=True)
            return "", 0
        if self.background:
            command = re.sub(r"\bPID\b", str(self.background.pid), command)
        command = command.replace("forksight run ", f"forksight run --out {self.out} ")
        ran = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)
        return ran.stdout.strip("\n"), ran.returncode

    def prints(self, command, expected):
        """Returns None if the command prints the expected text, else what it prints."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            printed, _ = self.run(command)
            if is_as_said(expected, printed):
                return None
            if self.background is None or time.monotonic() > deadline:
                return printed
            time.sleep(0.5)

    def end(self):
        if self.background:
            os.killpg(self.background.pid, signal.SIGKILL)
            self.background.communicate(timeout=LIMIT_S)


def check(text, folder, build):
    blocks = BLOCK.findall(text)
    problems = [] if blocks else ["README.md: no session"]
    for block in blocks:
        with tempfile.TemporaryDirectory() as out:
            terminal = Terminal(folder, build, out)
            try:
                for command, expected in read_session(block):
                    printed = terminal.prints(command, expected)
                    if printed is not None:
                        problems.append(f"$ {command}\n--- README.md has:\n{expected}\n--- it prints:\n{printed}")
            finally:
                terminal.end()
    return problems


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    arguments = parser.parse_args()
    readme = (arguments.root / "README.md").read_text()
    conclude(check(readme, arguments.root / "repro" / "readme", arguments.build))
