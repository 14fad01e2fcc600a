"""Runs one case of the hazard suite and judges what is said of it: bare, under observation, and with each cure.

Exit status 0: as expected. 1: not. 2: the case's own expectations, or the call, make no sense.
"""
import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import processes
from compare import compare_ended, compare_findings
from expectations import ExpectationError, read_expectations

BARE_LIMIT_S = 20


def say(title, lines):
    print(f"{title}:")
    for line in lines:
        print(line)


def command_of(options):
    """A script gets the name of its variant as its argument."""
    return [options.interpreter, "-B", options.case, options.variant] if options.interpreter else [options.case]


def judge_why(forksight, program, expected, folder):
    """What is said of the hung program, which nobody watched until now."""
    argv = [forksight, "why", str(program.popen.pid), "--format", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=BARE_LIMIT_S, check=False)
    try:
        lines = compare_findings(json.loads(done.stdout), expected.why)
    except ValueError as error:
        lines = [f"  no report (exit status {done.returncode}): {error}"]
    return ["as explained by `forksight why`:", *lines, done.stderr] if lines else []


def judge_core(forksight, program, expected, folder):
    """The same of a core of the process that hangs: of the program itself if it has no child."""
    if not shutil.which("gcore"):
        return ["  there is no gcore, which comes with gdb"]
    alive = [pid for pid in processes.descendants() if processes.stat_fields(f"/proc/{pid}/stat")[:1] not in ([], ["Z"])]
    pid = max(alive, key=lambda one: (one != program.popen.pid, one))
    made = subprocess.run(["gcore", "-o", str(Path(folder, "core")), str(pid)], capture_output=True, text=True,
                          timeout=BARE_LIMIT_S, check=False)
    argv = [forksight, "core", str(Path(folder, f"core.{pid}")), "--format", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=BARE_LIMIT_S, check=False)
    try:
        lines = compare_findings(json.loads(done.stdout), expected.core)
    except ValueError as error:
        lines = [f"  no report (exit status {done.returncode}): {error}", made.stderr]
    return ["as explained by `forksight core`:", *lines, done.stderr] if lines else []


def judge_bare(command, expected, folder, forksight):
    program = processes.Program(command, folder)
    try:
        seen = program.watch(BARE_LIMIT_S)
        if seen == expected.bare:
            if not forksight or seen not in ("hang", "spin"):
                return []
            lines = judge_why(forksight, program, expected, folder)
            return lines + (judge_core(forksight, program, expected, folder) if expected.core is not None else [])
        lines = [f"  expected {expected.bare}, seen {seen} (status {program.status()})"]
        if program.status() is None:
            lines.append(processes.stacks(processes.descendants()))
        return lines + [program.stdout(), program.stderr()]
    finally:
        program.end()


def run_forksight(forksight, options, command, folder, limit_s):
    """(argv, program after its end, report or None, difference lines)"""
    report = Path(folder, "report.json")
    argv = [forksight, "run", *options, "--out", str(Path(folder, "out")), "--format", "json", "--report", str(report), "--", *command]
    program = processes.Program(argv, folder)
    lines = []
    try:
        status = program.wait(limit_s)
        if status is None:
            lines = [f"  not done after {limit_s} s; its processes:", processes.stacks(processes.descendants())]
    finally:
        left = program.end()
    if left and not lines:
        lines.append("  forksight ended and left processes of the case behind")
    if lines:
        return argv, program, None, lines
    try:
        return argv, program, json.loads(report.read_text()), []
    except (OSError, ValueError) as error:
        return argv, program, None, [f"  no report (exit status {status}): {error}"]


def judge_run(argv, program, lines):
    if not lines:
        return True
    say("as seen by `" + shlex.join(argv) + "`", lines + [program.stdout(), program.stderr()])
    return False


def judge_observed(options, expected, folder):
    flags = ["--omp=observe", *expected.options, "--on-hang", "kill"]
    argv, program, report, lines = run_forksight(options.forksight, flags, command_of(options), folder, options.limit)
    if report is not None:
        lines = compare_findings(report, expected.findings)
        if expected.bare == "ok" and program.status() != 0:
            lines.append(f"  exit status: expected 0, got {program.status()}")
    return judge_run(argv, program, lines)


def judge_cure(options, cure, expected, folder):
    flags = [*cure.options, *expected.options, "--on-hang", "kill"]
    argv, program, report, lines = run_forksight(options.forksight, flags, command_of(options), folder, options.limit)
    if report is not None:
        lines = compare_ended(report, expected.findings, cure.outcome, cure.says)
        if program.status() != cure.status:
            lines.append(f"  exit status: expected {cure.status}, got {program.status()}")
        printed = program.stdout().splitlines()
        lines += [f"  stdout: expected a line \"{line}\"" for line in cure.stdout if line not in printed]
    return judge_run(argv, program, lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--case", required=True)
    parser.add_argument("--variant", default="")
    parser.add_argument("--interpreter", help="runs --case, which is a script; it gets the variant as its argument")
    parser.add_argument("--forksight", help="without it only the bare program is judged")
    parser.add_argument("--bare", action="store_true", help="only the bare program, and `forksight why` of it")
    parser.add_argument("--limit", type=float, default=25, help="seconds for each run under forksight")
    options = parser.parse_args()
    try:
        expected = read_expectations(options.source, options.variant)
    except (ExpectationError, OSError) as error:
        print(f"judge: {error}", file=sys.stderr)
        return 2
    processes.become_reaper()

    def fresh():
        return tempfile.TemporaryDirectory(prefix="forksight-case-")

    with fresh() as folder:
        lines = judge_bare(command_of(options), expected, folder, options.forksight)
    if lines:
        say("as seen without forksight", lines)
    good = not lines
    if options.forksight and not options.bare:
        with fresh() as folder:
            good &= judge_observed(options, expected, folder)
        for cure in expected.cures:
            with fresh() as folder:
                good &= judge_cure(options, cure, expected, folder)
    if not good:
        print("to repeat: " + shlex.join(["/usr/bin/python3", "-B", *sys.argv]))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
