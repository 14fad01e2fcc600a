"""The README's sessions are real: each command of a console block is run, and prints what the block says. With --update
the README gets what they print.

Compared are the words: process ids, durations and the host differ from run to run, and line breaks follow their lengths.
"""
import argparse
import os
import re
import subprocess
from pathlib import Path

from house import conclude

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUILD = "build/release"


def read_session(text):
    """[(command, expected output)] of all console blocks."""
    session = []
    for block in BLOCK.findall(text):
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
    return re.sub(r"\b(process|child|thread) \d+", r"\1 PID", text)


def run(command, root, build):
    ran = subprocess.run(["bash", "-c", command.replace(BUILD, build)], cwd=root, env=dict(os.environ, LC_ALL="C"),
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=40, check=False)
    return ran.stdout.strip("\n")


def check(text, root, build):
    session = read_session(text)
    problems = [] if session else ["README.md: no session"]
    for command, expected in session:
        printed = run(command, root, build)
        if words(printed) != words(expected):
            problems.append(f"$ {command}\n--- README.md has:\n{expected}\n--- it prints (check_session.py --update):\n{printed}")
    return problems


def update(text, root, build):
    def replay(block):
        commands = [command for command, _ in read_session(block.group())]
        return "```console\n" + "".join(f"$ {command}\n{run(command, root, build)}\n" for command in commands) + "```"
    return BLOCK.sub(replay, text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("--build", required=True, help=f"what {BUILD} stands for")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    readme = arguments.root / "README.md"
    if arguments.update:
        readme.write_text(update(readme.read_text(), arguments.root, arguments.build))
    conclude(check(readme.read_text(), arguments.root, arguments.build))
