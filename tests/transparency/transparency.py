#!/usr/bin/python3
"""Runs the probes of a group with and without a preload library, in every context, and compares what they print.

  transparency.py run PROGRAM SOURCE LIBRARY [--context NAME | --without NAME] [--probe NAME] [--no-trace]
  transparency.py covers NM HOOKS_DEF... --programs SOURCE=PROGRAM...

A probe is a function of PROGRAM. It calls hooked functions and prints the results. A context is the place where the probes run, such as
main, a thread, or a forked child.
`run`: in each context, runs the probes once without LIBRARY. Then it runs them with LIBRARY, once for each setting in EVERYWHERE and once
for each value in the `ENV:` lines of SOURCE. It prints each difference as a diff, with the command that repeats the run.
`covers`: each row of HOOKS_DEF names a hooked function and its probe. This command checks that the probe calls the function.
"""
import argparse
import difflib
import os
import re
import signal
import subprocess
import sys
import tempfile

TIMEOUT_S = 60
EVERYWHERE = [{}, {"FORKSIGHT_OUT": "{folder}"}, {"FORKSIGHT_OUT": "{folder}/none"},
              {"FORKSIGHT_OUT": "{folder}", "FORKSIGHT_ON_ORPHAN": "recover"},
              {"FORKSIGHT_OUT": "{folder}", "FORKSIGHT_ON_ORPHAN": "abort"},
              {"FORKSIGHT_OUT": "{folder}", "FORKSIGHT_LOCK_ORDER": "1", "FORKSIGHT_PREDICT": "1"}]


def words_of(source, key):
    """Returns the words after `KEY:` in the first comment of a source, up to the next key or an empty line. They may be on several
    lines."""
    with open(source, encoding="utf-8") as file:
        head = re.match(r"(?:/\*.*?\*/|(?://[^\n]*\n)+)", file.read(), re.S)
    text = re.sub(r"^(?: \*/?|//)", "", head.group(), flags=re.M) if head else ""
    found = re.findall(rf"\b{key}: (.*?)(?=\b[A-Z]+: |\n\s*\n|\Z)", text, re.S)
    return " ".join(found).replace("*/", "").split()


def settings_of(source):
    settings = list(EVERYWHERE)
    for word in words_of(source, "ENV"):
        name, _, values = word.partition("=")
        settings += [{"FORKSIGHT_OUT": "{folder}", name: value} for value in values.split(",")]
    return settings


def run(program, arguments, library, setting, folder):
    """Returns the exit status and the lines of stdout and stderr. The status is None if the program did not end in time."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FORKSIGHT_")}
    environment["OMP_WAIT_POLICY"] = "passive"  # otherwise the threads of a team would spin, and the run would take much longer
    environment.update({key: value.format(folder=folder) for key, value in setting.items()})
    if library:
        environment["LD_PRELOAD"] = library
    with subprocess.Popen([program, *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return None, output.splitlines()
    return process.returncode, output.splitlines()


def show_difference(bare, under, setting, command):
    print(f"differs: {' '.join(f'{key}={value}' for key, value in setting.items())} {command}")
    for status, name in ((bare[0], "bare"), (under[0], "under the shim")):
        print(f"  {name}: " + ("did not end" if status is None else f"exit status {status}"))
    for line in difflib.unified_diff(bare[1], under[1], "bare", "under the shim", lineterm="", n=4):
        print("  " + line)


def compare(options):
    library = os.path.abspath(options.library)
    listed = subprocess.run([options.program], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    contexts = [options.context] if options.context else [name for name in listed if name not in options.without]
    failures = compared = 0
    for context in contexts:
        arguments = [context] + ([options.probe] if options.probe else [])
        bare = run(options.program, arguments, None, {}, "")
        if bare[0] != 7:
            print(f"bare, {context}: exit status {bare[0]}", *bare[1][-20:], sep="\n  ")
            return 1
        if not any(line.startswith("- ") for line in bare[1]):
            continue  # no probe of this group runs in this context
        for setting in settings_of(options.source):
            with tempfile.TemporaryDirectory() as folder:
                under = run(options.program, arguments, library, setting, folder)
                recorded = any(name.endswith(".fstrace") for name in os.listdir(folder))
            compared += 1
            if under != bare:
                failures += 1
                show_difference(bare, under, setting, f"LD_PRELOAD={library} {options.program} {' '.join(arguments)}")
            elif context == "watched-child" and setting == EVERYWHERE[1] and not recorded and not options.no_trace:
                failures += 1
                print(f"{context}: no trace was written, so the shim was not loaded")
    print(f"{compared} runs compared with {len(contexts)} bare ones: {failures} differ")
    return 1 if failures or not compared else 0


def hooks_in(paths):
    """Maps each hook to the probe of its row. The rows of OpenMP, CUDA and MPI name no probe, because each of these
    libraries has one probe for all its hooks."""
    probes = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for macro, name, rest in re.findall(r"^FORKSIGHT_(\w*)HOOK\((\w+), (.*)", text, re.M):
            named = re.match(r"(?:[01], )?([a-z]\w*), \"", rest)
            probes[name] = named[1] if named else {"OMP_": "openmp"}.get(macro, macro.rstrip("_").lower())
    return probes


def imports(nm, program):
    lines = subprocess.run([nm, "-D", "--undefined-only", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in lines.splitlines() if line.strip()}


def covers(options):
    probes = hooks_in(options.lists)
    problems = [] if probes else ["no hooks in the lists"]
    called = {}
    for pair in options.programs:
        source, _, program = pair.partition("=")
        called.setdefault(os.path.splitext(os.path.basename(source))[0], set()).update(imports(options.nm, program))
    for name, probe in sorted(probes.items()):
        if probe not in called:
            problems.append(f"{name}: tests/transparency/probes has no {probe}")
        elif name not in called[probe]:
            problems.append(f"{name}: its probe {probe} does not call it")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("program")
    one.add_argument("source")
    one.add_argument("library")
    one.add_argument("--context", help="run the probes in this context only")
    one.add_argument("--without", metavar="CONTEXT", action="append", default=[], help="do not run the probes in this context")
    one.add_argument("--probe", help="run this probe only")
    one.add_argument("--no-trace", action="store_true", help="the library writes no trace")
    one.set_defaults(do=compare)
    other = commands.add_parser("covers")
    other.add_argument("nm")
    other.add_argument("lists", nargs="+")
    other.add_argument("--programs", nargs="+", required=True)
    other.set_defaults(do=covers)
    options = parser.parse_args()
    sys.exit(options.do(options))


if __name__ == "__main__":
    main()
