"""Functions that the checks of this folder share. Each check makes a list of problems, and prints it at the end."""
import subprocess
import sys
from pathlib import Path


def tracked_files(root):
    """Returns all files that belong to the repository: those that git lists, or all files of an unpacked archive."""
    try:
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, check=False)
    except FileNotFoundError:
        listed = None
    if listed is not None and listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in Path(root).rglob("*") if path.is_file()]
        names = [name for name in names if not name.startswith((".git/", "build/", "forksight-out/"))]
    return [Path(root, name) for name in sorted(names) if Path(root, name).is_file()]


def is_script(path):
    with open(path, "rb") as file:
        return file.read(64).startswith((b"#!/usr/bin/env bash", b"#!/bin/sh", b"#!/bin/bash"))


def conclude(problems):
    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} problem(s)")
    sys.exit(1 if problems else 0)
