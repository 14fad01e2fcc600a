"""container_test.py FORKSIGHT COMPARE CASES WAY CASE: a case of the suite in the folder CASES hangs in a pid namespace of
its own, and `forksight why` says the same of it as anywhere else. COMPARE is the suite's comparison.

WAY is from where it is looked at: `outside` of the namespace; `netted`: the same, with a network namespace, too; `inside`;
`rooted`: from outside, where the program has another root directory, too, and lies there under a path that is another
program's here. The process that made the namespace and waits for its end is left out of the victims.

Exit status 77 where namespaces cannot be made: with the reason.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from namespaces import NAMESPACES, find_right
from observed import LIMIT_S, processes

# A root of its own with nothing but the program and its libraries.
ROOTED = """
set -e
mount -t tmpfs forksight-root "$1"
for file in $3; do mkdir -p "$1/$(dirname "$file")"; cp -L "$file" "$1/$file"; done
mkdir -p "$1/proc" "$1/tmp" "$1$(dirname "$4")"
cp "$2" "$1$4"
mount -t proc proc "$1/proc"
exec chroot "$1" "$4"
"""


def libraries_of(case):
    listed = subprocess.run(["ldd", case], capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
    return sorted({word for line in listed.splitlines() for word in line.split() if word.startswith("/")})


def find_case(forksight, cases, name):
    """What the suite knows of it."""
    argv = [forksight, "suite", "list", "--cases", cases, "--format", "json", name]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout)["cases"][0]


def compare_findings(compare, report, expected, folder):
    """A line for each difference."""
    paths = [Path(folder, name) for name in ("expected.json", "report.json")]
    for path, value in zip(paths, (expected, report)):
        path.write_text(json.dumps(value))
    done = subprocess.run([compare, *paths], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{compare} ends with {done.returncode}: {done.stderr}")
    return done.stdout.splitlines() or (["  different"] if done.returncode else [])


def command(way, right, words, folder):
    case = words[0]
    if way != "rooted":
        more = ["--net"] if way == "netted" else []
        return ["unshare", *right, *more, *NAMESPACES, "--mount-proc", *words]
    root = Path(folder, "root")
    root.mkdir()
    decoy = Path(folder, "programs", Path(case).name)
    decoy.parent.mkdir()
    shutil.copy("/bin/true", decoy)
    return ["unshare", *right, *NAMESPACES, "sh", "-c", ROOTED, "sh", str(root), case, " ".join(libraries_of(case)),
            str(decoy)]


def look(forksight, way, right, pid):
    argv = [forksight, "why", str(pid), "--format", "json"]
    if way == "inside":
        entered = ["--user", "--preserve-credentials"] if right else []
        argv = ["nsenter", "--target", str(pid), *entered, "--pid", "--mount", forksight, "why", "1", "--format", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise SystemExit(f"no report (status {done.returncode}): {error}: {done.stderr}") from error


def look_at_core(forksight, folder):
    """Of the process that hangs, with the numbers of out here."""
    pid = max(processes.descendants())
    subprocess.run(["gcore", "-o", str(Path(folder, "core")), str(pid)], capture_output=True, timeout=LIMIT_S, check=True)
    argv = [forksight, "core", str(Path(folder, f"core.{pid}")), "--format", "json"]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False).stdout)


def as_contained(findings):
    """Which number the forking thread had in there is not known: whether it was the owner itself is not either."""
    return [{**one, "certainty": "proven/possible" if one["rule"].startswith("orphaned") else one["certainty"], "stacks": {},
             "fields": {key: value for key, value in one["fields"].items() if key != "start"}} for one in findings]


def main():
    forksight, compare, cases, way, name = sys.argv[1:]
    case = find_case(forksight, cases, name)
    expected = case["expected"]
    right = find_right()
    if right is None:
        return 77
    # The files of another mount namespace and the sockets of another network are root's to see.
    if right and way in ("rooted", "netted"):
        print(f"skipped: {way}: from outside, only root can look into it")
        return 77
    processes.become_reaper()
    with tempfile.TemporaryDirectory(prefix="forksight-why-") as folder:
        program = processes.Program(command(way, right, case["command"], folder), folder)
        try:
            seen = program.watch(LIMIT_S)
            if seen != expected["bare"]:
                print(f"expected {expected['bare']}, seen {seen}: {program.stderr()}")
                return 1
            children = processes.read_or_empty(f"/proc/{program.popen.pid}/task/{program.popen.pid}/children").split()
            numbers = processes.read_or_empty(f"/proc/{children[0]}/status").partition("NSpid:")[2].split("\n")[0].split()
            if len(numbers) != 2 or numbers[1] != "1":
                print(f"process {children[0]} is of no namespace of its own: {numbers}")
                return 1
            report = look(forksight, way, right, int(children[0]))
            core = look_at_core(forksight, folder) if way == "outside" and expected["core"] else None
        finally:
            program.end()
        for finding in report["findings"]:
            finding["victims"] = [one for one in finding["victims"] if one["pid"] != program.popen.pid]
        lines = compare_findings(compare, report, expected["why"], folder)
        if core is not None:
            lines += [f"  in its core: {line}" for line in compare_findings(compare, core, as_contained(expected["core"]), folder)]
    print("\n".join(lines))
    for limit in report["limits"] if lines else []:
        print(f"  not seen: {limit}")
    return 1 if lines else 0


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.exit(main())
