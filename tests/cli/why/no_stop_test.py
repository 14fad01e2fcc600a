"""no_stop_test.py FORKSIGHT CASE RULE...: `forksight why --no-stop` names the hazard of a hanging case without ptrace()."""
import sys
import tempfile

from observed import Command, forbid_ptrace, processes, rules


def main():
    forksight, case, *expected = sys.argv[1:]
    processes.become_reaper()
    with tempfile.TemporaryDirectory(prefix="forksight-why-") as folder:
        program = processes.Program([case], folder)
        try:
            seen = program.watch(20)
            if seen != "hang":
                print(f"expected a hang, seen {seen}")
                return 1
            report, _ = Command(forksight).report(program.popen.pid, "--no-stop", preexec_fn=forbid_ptrace)
        finally:
            program.end()
    if rules(report) == expected:
        return 0
    print(f"expected {expected}, found {rules(report)}")
    for finding in report["findings"]:
        print(finding["summary"])
    return 1


if __name__ == "__main__":
    sys.exit(main())
