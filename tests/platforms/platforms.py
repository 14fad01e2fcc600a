"""platforms.py --packages DIR --build DIR --roots DIR [--page FILE] [RELEASE ...]: installs packages in minimal roots
of Debian releases, tries the packages there, and prints a table of the results. `./bootstrap package` makes the
packages. The roots contain no compiler. --page writes the table into FILE (docs/platforms.md), but only if all releases
were tried.

The script needs the rights of root, and debootstrap. It makes missing roots from the mirror of this machine. --build names a
configured build folder with tests. The script reads from this folder how the cases of the hazard suite are compiled.
EXPLAINED must explain each red cell of the table, and no other cell. Otherwise the exit status is 1. The exit status is
77 if the packages, debootstrap or the rights of root are missing."""
import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/transparency"))
import transparency  # noqa: E402

RELEASES = {"bullseye": "Debian 11", "bookworm": "Debian 12", "trixie": "Debian 13", "sid": "Debian sid"}
OLDEST = "bullseye"
PACKAGES = {"deb": "`.deb`", "tar": "`.tar.zst`", "wheel": "wheel"}
COLUMNS = {"install": "installs", "version": "`--version`", "libraries": "libraries", "demo": "demo", "why": "`why`", "why python": "`why`, Python",
           "why numpy": "`why`, numpy", "run numpy": "`run`, numpy", "core": "`core`", "suite": "`suite run`", "probes": "probes"}
# Cases of the hazard suite: several kinds of locks, some with repaired twins, and the pool of libgomp.
CASES = ("orphaned_mutex.O2", "orphaned_mutex.O0", "orphaned_mutex.repaired", "orphaned_mutex_kinds.robust", "orphaned_mutex_kinds.pi",
         "orphaned_recursive_mutex", "orphaned_rwlock_writer", "orphaned_rwlock_writer.repaired", "orphaned_semaphore", "orphaned_condvar",
         "self_held_lock", "lock_cycle", "lock_cycle.repaired", "lost_openmp_pool", "lost_openmp_pool.repaired")
COMPILES = re.compile(r"&& \S*/(?P<compiler>g\+\+|gcc)(-\d+)? (?P<flags>.*) -MD -MF \S+ -MT \S+ (?P<source>\S+) -o \S+ (?P<libraries>.*?)( && |$)")
TRANSPARENCY = ROOT / "tests/transparency"
# Groups of probes that cannot be compiled on the oldest release, because they use _Fork(), epoll_pwait2(), a semaphore of C++20,
# or a library that only the build machine has.
PROBES_LEFT_OUT = ("bypass", "cplusplus", "cuda", "epoll", "mpi")
# The cells that are expected to be red: {(release, step): the reason}. The reasons are printed below the table.
EXPLAINED = {}
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
LIMIT_S = 1800


def run(*argv, **options):
    return subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, timeout=LIMIT_S, **options)


def ask(root, folder, *argv):
    return run(HERE / "enter.sh", root, folder, *argv, check=True, capture_output=True, text=True).stdout.strip()


def compile_command(build, case):
    """Returns the command by which the build compiles a case, with /mnt/source instead of the path of the repository."""
    printed = run("ninja", "-C", build, "-t", "commands", f"repro/{case}", check=True, capture_output=True, text=True).stdout.splitlines()
    found = COMPILES.search(printed[-1])
    if not found:
        sys.exit(f"platforms.py: error: {case} is not compiled by one command: {printed[-1]}")
    command = f"{found['compiler']} {found['flags']} {found['source']} -o /mnt/suite/bin/{shlex.quote(case)} {found['libraries']}"
    return command.replace(str(ROOT), "/mnt/source")


def probe_commands():
    """Returns the commands that compile the probes of tests/transparency, on the oldest release."""
    flags = f"-D_GNU_SOURCE -g -O1 -U_FORTIFY_SOURCE -I /mnt/source/{TRANSPARENCY.relative_to(ROOT)}"
    commands = [f"gcc {flags} -c /mnt/source/tests/transparency/{name}.c -o /tmp/{name}.o" for name in ("contexts", "probe")]
    for source in sorted((TRANSPARENCY / "probes").glob("*.c*")):
        if source.stem in PROBES_LEFT_OUT:
            continue
        compiler = "g++ -std=c++2a" if source.suffix == ".cpp" else "gcc"
        own = " ".join(transparency.words_of(source, "FLAGS"))
        commands.append(f"{compiler} {flags} {own} /mnt/source/{source.relative_to(ROOT)} /tmp/contexts.o /tmp/probe.o "
                        f"-o /mnt/suite/probes/{source.stem} -pthread -ldl -lrt -lutil {own}")
    return commands


def make_programs(build, roots, folder):
    """Makes programs that run on each release. They are compiled in the root of the oldest release, in which a compiler
    is installed for this command only."""
    programs = roots / "programs"
    if (programs / "done").exists():
        return programs
    shutil.rmtree(programs, ignore_errors=True)
    shutil.copytree(ROOT / "repro", folder / "source/repro")
    shutil.copytree(ROOT / "preload/include", folder / "source/preload/include")
    shutil.copytree(TRANSPARENCY, folder / "source/tests/transparency")
    listed = json.loads((build / "repro/cases.json").read_text())
    listed["cases"] = [case for case in listed["cases"] if case["name"] in CASES]
    if len(listed["cases"]) != len(CASES):
        sys.exit("platforms.py: error: the hazard suite lacks some of the cases in CASES")
    (folder / "suite/bin").mkdir(parents=True)
    (folder / "suite/probes").mkdir()
    (folder / "suite/cases.json").write_text(json.dumps(listed))
    script = ["set -e", "apt-get -o Acquire::Check-Valid-Until=false update -q", "apt-get install -y -q --no-install-recommends g++",
              *(compile_command(build, case) for case in CASES), *probe_commands()]
    run(HERE / "enter.sh", "--network", roots / OLDEST, folder, "sh", "-c", "\n".join(script), check=True)
    shutil.copytree(folder / "suite", programs)
    shutil.copytree(ROOT / "repro", programs / "src")
    (programs / "done").touch()
    return programs


def try_package(release, package, arguments, programs, logs):
    """Returns one row of the table, and the version of the release's libc. A row is {step: "", or why it failed, or None if it
    was not tried}."""
    root = arguments.roots / release
    with tempfile.TemporaryDirectory(prefix="forksight-platform-") as name:
        folder = Path(name)
        libc = ask(root, folder, "getconf", "GNU_LIBC_VERSION").split()[1]
        shutil.copytree(arguments.packages, folder / "packages")
        shutil.copytree(programs, folder / "suite")
        shutil.copytree(TRANSPARENCY, folder / "transparency")
        for part in ("demo.sh", "openmp/lost_openmp_pool.c"):
            (folder / "forksight/repro" / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / "repro" / part, folder / "forksight/repro" / part)
        for path in (*HERE.glob("*.py"), ROOT / "tests/package/queue_programs.py"):
            shutil.copy2(path, folder)
        with open(logs / f"{release}-{package}.log", "w", encoding="utf-8") as log:
            run(HERE / "enter.sh", root, folder, "/usr/bin/python3", "-B", "/mnt/inside.py", package, check=True, stdout=log, stderr=subprocess.STDOUT)
        return json.loads((folder / "result.json").read_text()), libc


def explanation_of(release, step):
    return EXPLAINED.get((release, step))


def make_table(rows):
    """Returns the table as Markdown. Rows are (release, package, libc, {step: reason})."""
    texts, lines = [], ["| system | glibc | package | " + " | ".join(COLUMNS.values()) + " |", "|---" * (len(COLUMNS) + 3) + "|"]
    for release, package, libc, result in rows:
        cells = []
        for step in COLUMNS:
            text = explanation_of(release, step) or "not explained"
            if not result[step]:
                cells.append("-" if result[step] is None else "yes")
                continue
            if text not in texts:
                texts.append(text)
            cells.append(f"no ({texts.index(text) + 1})")
        lines.append(f"| {RELEASES[release]} | {libc} | {PACKAGES[package]} | " + " | ".join(cells) + " |")
    lines += [""] * bool(texts) + [f"{number}. {text}" for number, text in enumerate(texts, 1)]
    return "".join(line + "\n" for line in lines)


def judge(rows):
    """Returns a text for each cell that is red but not explained, or explained but not red."""
    problems = []
    for release, package, _, result in rows:
        for step, reason in result.items():
            if reason and not explanation_of(release, step):
                problems.append(f"{release}, {package}, {step}: {reason}")
            elif reason == "" and explanation_of(release, step):
                problems.append(f"{release}, {package}, {step}: is explained as red, but is not red")
    return problems


def write_page(page, table):
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"platforms.py: error: {page} has no place for the table")
    page.write_text(f"{before}{BEGIN}{table}{END}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--roots", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--page", type=Path)
    parser.add_argument("release", nargs="*", help=" ".join(RELEASES))
    arguments = parser.parse_args()
    arguments.roots, arguments.packages = arguments.roots.resolve(), arguments.packages.resolve()
    for missing, what in ((os.geteuid() != 0, "the rights of root"), (not shutil.which("debootstrap"), "debootstrap"),
                          (not list(arguments.packages.glob("*.deb")), f"the packages in {arguments.packages}: ./bootstrap package makes them")):
        if missing:
            print(f"skipped: this needs {what}")
            return 77
    logs = arguments.roots / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    releases = arguments.release or list(RELEASES)
    for release in {OLDEST: 0, **dict.fromkeys(releases)}:
        run(HERE / "make_root.sh", release, arguments.roots / release, check=True)
    with tempfile.TemporaryDirectory(prefix="forksight-platform-") as folder:
        programs = make_programs(arguments.build.resolve(), arguments.roots, Path(folder))
    rows = []
    for release in releases:
        for package in PACKAGES:
            result, libc = try_package(release, package, arguments, programs, logs)
            rows.append((release, package, libc, result))
            red = [f"{step} ({reason})" for step, reason in result.items() if reason]
            tried = sum(reason is not None for reason in result.values())
            print(f"{release}, {package}: {tried - len(red)} of {tried} steps{'; red: ' if red else ''}{'; '.join(red)}", flush=True)
    table = make_table(rows)
    print(table)
    if arguments.page and releases == list(RELEASES):
        write_page(arguments.page, table)
    problems = judge(rows)
    for problem in problems:
        print(f"platforms.py: {problem}; see {logs}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
