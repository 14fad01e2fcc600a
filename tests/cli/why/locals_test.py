"""locals_test.py FORKSIGHT PYTHON CASE: `--locals` names the variables of the innermost Python frames of a hanging process."""
import sys
import tempfile

from observed import LIMIT_S, Command, processes


def main():
    forksight, python, case = sys.argv[1:]
    processes.become_reaper()
    command = Command(forksight)
    with tempfile.TemporaryDirectory(prefix="forksight-why-") as folder:
        program = processes.Program([python, "-B", case, "plain"], folder)
        try:
            seen = program.watch(LIMIT_S)
            if seen != "hang":
                print(f"expected a hang, seen {seen}: {program.stderr()}")
                return 1
            plain = command.run(program.popen.pid)
            told = command.run(program.popen.pid, "--locals")
            refused = command.run(program.popen.pid, "--locals", "--format", "json")
        finally:
            program.end()
    if plain.returncode != 1 or told.returncode != 1 or "Locals of" in plain.stdout or refused.returncode != 2:
        print(plain.returncode, told.returncode, refused.returncode, plain.stdout, plain.stderr, told.stderr, refused.stderr)
        return 1
    lines = told.stdout.partition("Locals of the innermost frames of Python, by name:\n")[2].splitlines()
    if any(f" take ({case.rpartition('/')[2]}:" in line and line.endswith(": lock, number, seen") for line in lines):
        return 0
    print(told.stdout, told.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
