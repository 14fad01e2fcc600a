"""container_test.py FORKSIGHT COMPARE CASES WAY CASE: runs a case in a pid namespace of its own. `forksight why` must
report the same about the case as without the namespace.

CASES is the folder of the suite's cases. COMPARE is the suite's program that compares findings. WAY says where the case and
`forksight why` run:

outside  `why` runs outside of the namespace.
netted   The same as `outside`, and the case also has its own network namespace.
mapped   The same as `outside`, and the case also has its own user namespace.
inside   `why` runs in the namespace.
rooted   The same as `outside`, and the case also has its own root directory. Outside, another program has the path of the case.
beside   `why` runs in a container for debugging. The container has the pid namespace of the case, but a
         mount namespace of its own. In the container, another program has the same path as the case.

The process that made the namespace waits for the case. So `why` reports that process as a victim. The comparison leaves
this victim out.

If namespaces cannot be made, the test prints the reason and exits with status 77.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from namespaces import NAMESPACES, can_map, find_right
from observed import LIMIT_S, processes

# Runs the program in a root folder that contains only the program and its libraries.
ROOTED = """
set -e
mount -t tmpfs forksight-root "$1"
for file in $3; do mkdir -p "$1/$(dirname "$file")"; cp -L "$file" "$1/$file"; done
mkdir -p "$1/proc" "$1/tmp" "$1$(dirname "$4")"
cp "$2" "$1$4"
mount -t proc proc "$1/proc"
exec env PATH=/usr/sbin:/sbin:"$PATH" chroot "$1" "$4"
"""

# Runs forksight in a root folder that contains only forksight, its libraries, and /bin/true under the path of the case.
BESIDE = """
set -e
mount -t tmpfs forksight-root "$1"
for file in $3 "$2"; do mkdir -p "$1/$(dirname "$file")"; cp -L "$file" "$1/$file"; done
mkdir -p "$1/proc" "$1/tmp" "$1$(dirname "$4")"
cp /bin/true "$1$4"
mount -t proc proc "$1/proc"
exec env PATH=/usr/sbin:/sbin:"$PATH" chroot "$1" "$2" why 1 --format json
"""


def libraries_of(case):
    listed = subprocess.run(["ldd", case], capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
    return sorted({word for line in listed.splitlines() for word in line.split() if word.startswith("/")})


def find_case(forksight, cases, name):
    """Returns the command and the expectations of the case, as the suite lists them."""
    argv = [forksight, "suite", "list", "--cases", cases, "--format", "json", name]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout)["cases"][0]


def compare_findings(compare, report, expected, folder):
    """Compares the findings of two reports. Returns the differences as lines of text."""
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
        more = {"netted": ["--net"], "mapped": ["--user", "--map-root-user"]}.get(way, [])
        return ["unshare", *right, *more, *NAMESPACES, "--mount-proc", *words]
    root = Path(folder, "root")
    root.mkdir()
    decoy = Path(folder, "programs", Path(case).name)
    decoy.parent.mkdir()
    shutil.copy("/bin/true", decoy)
    return ["unshare", *right, *NAMESPACES, "sh", "-c", ROOTED, "sh", str(root), case, " ".join(libraries_of(case)),
            str(decoy)]


def look(forksight, way, right, pid, case, folder):
    argv = [forksight, "why", str(pid), "--format", "json"]
    entered = ["--user", "--preserve-credentials"] if right else []
    if way == "beside":
        root = Path(folder, "beside")
        root.mkdir()
        argv = ["nsenter", "--target", str(pid), *entered, "--pid", "unshare", "--mount", "sh", "-c", BESIDE, "sh", str(root),
                forksight, " ".join(libraries_of(forksight)), case]
    if way == "inside":
        argv = ["nsenter", "--target", str(pid), *entered, "--pid", "--mount", forksight, "why", "1", "--format", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise SystemExit(f"no report (status {done.returncode}): {error}: {done.stderr}") from error


def look_at_core(forksight, folder):
    """Makes a core of the hanging process from outside the container, and examines the core. The core contains the pids that the
    processes have outside of the container."""
    pid = max(processes.descendants())
    subprocess.run(["gcore", "-o", str(Path(folder, "core")), str(pid)], capture_output=True, timeout=LIMIT_S, check=True)
    argv = [forksight, "core", str(Path(folder, f"core.{pid}")), "--format", "json"]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False).stdout)


def as_contained(findings):
    """Returns the expected findings for a core that was made outside of the container.

    The core does not contain the thread id that the forking thread had inside the container. So `core`
    cannot exclude that the forking thread itself holds the lock.
    """
    return [{**one, "certainty": "proven/possible" if one["rule"].startswith("orphaned") else one["certainty"], "stacks": {},
             "fields": {key: value for key, value in one["fields"].items() if key != "start"}} for one in findings]


def main():
    forksight, compare, cases, way, name = sys.argv[1:]
    case = find_case(forksight, cases, name)
    expected = case["expected"]
    right = find_right()
    if right is None:
        return 77
    if way == "mapped":
        if not can_map():
            return 77
        right = []
    # Only root can see the files of another mount namespace and the sockets of another network namespace.
    if right and way in ("rooted", "netted"):
        print(f"skipped: {way}: from outside, only root can examine this namespace")
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
                print(f"process {children[0]} is not process 1 of a pid namespace of its own: {numbers}")
                return 1
            report = look(forksight, way, right, int(children[0]), case["command"][0], folder)
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
