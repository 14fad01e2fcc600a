#!/usr/bin/python3
"""Runs a program bare and under the shim, and compares its output and its exit status.

  environments.py [OPTION...] -- PROGRAM [ARGUMENT...]

  --shim LIBRARY     the shim
  --forksight EXE    also run the program by `forksight run`
  --says TEXT        the report or the standard error of `forksight run` must contain this text, with any blanks between its words
  --silent TEXT      the report and the standard error of `forksight run` must not contain this text
  --on ENVIRONMENT   run the program in this environment, by environment_confine in the folder of the program
  --set NAME=VALUE   set this environment variable when the program runs with the shim
  --option OPTION    an option of `forksight run`

All options but --shim and --forksight may be given more than once.

A program that exits with 77 when it runs bare cannot run here, and the test is skipped.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile

TIMEOUT_S = 120
SKIPPED = 77


def run(command, extra, timeout=TIMEOUT_S):
    """Returns (exit status, stdout, stderr). The status is "timeout" if the program did not end."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FORKSIGHT_")}
    environment.pop("LD_PRELOAD", None)
    environment.update(extra)
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True) as process:
        try:
            output, error = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, error = process.communicate()
            return "timeout", output, error
    return process.returncode, output, error


def confined(options, command):
    if not options.on:
        return command
    confine = os.path.join(os.path.dirname(os.path.abspath(command[0])), "environment_confine")
    return [confine, *options.on, "--", *command]


def differences(name, bare, other):
    problems = []
    if bare[0] != other[0]:
        problems.append(f"{name}: ended with {other[0]}, bare with {bare[0]}")
    if bare[1] != other[1]:
        problems.append(f"{name}: printed\n{other[1]}\nbare:\n{bare[1]}")
    if problems and other[2]:
        problems.append(f"{name}: stderr:\n{other[2][-3000:]}")
    return problems


def has_words(report, text):
    return re.search(r"\s+".join(map(re.escape, text.split())), report) is not None


def check_report(options, command, settings, bare, folder):
    report = os.path.join(folder, "report")
    status, output, error = run([options.forksight, "run", "--out", os.path.join(folder, "run"), "--report", report,
                                 *options.option, "--", *confined(options, command)], settings)
    wanted = 128 - bare[0] if isinstance(bare[0], int) and bare[0] < 0 else bare[0]
    problems = differences("run", (wanted, bare[1], bare[2]), (status, output, error))
    text = ""
    if os.path.exists(report):
        with open(report, encoding="utf-8") as file:
            text = file.read()
    text += error
    problems += [f"the report does not say '{words}':\n{text}" for words in options.says if not has_words(text, words)]
    problems += [f"the report says '{words}':\n{text}" for words in options.silent if has_words(text, words)]
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shim", required=True)
    parser.add_argument("--forksight")
    for name in ("--says", "--silent", "--on", "--set", "--option"):
        parser.add_argument(name, action="append", default=[])
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    settings = dict(one.split("=", 1) for one in options.set)
    bare = run(confined(options, options.command), {})
    if bare[0] == SKIPPED:
        print(bare[1] + bare[2])
        return SKIPPED
    problems = [f"bare: the program did not end: {bare}"] if bare[0] == "timeout" else []
    # A program may change its user, so every user may write to the folder.
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        shimmed = run(confined(options, options.command),
                      {"LD_PRELOAD": options.shim, "FORKSIGHT_OUT": folder, **settings})
        problems += differences("shim", bare, shimmed)
        if options.forksight:
            problems += check_report(options, options.command, settings, bare, folder)
    print("\n".join(problems) or "as bare")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
