"""same_bytes.py ROOT: builds and packs two copies of the repository in two folders, and compares the packages byte for byte.
The compiler cache is off, so that the second build cannot reuse objects of the first."""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = 4  # the command and its debug information as archives, a Debian package, a wheel


def copy_sources(root, copy):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, copy / name, follow_symlinks=False)
    for name in ("fmtlib", "zydis"):
        shutil.copytree(root / "build/packages" / name, copy / "build/packages" / name)


def pack(copy, epoch):
    """Makes the packages of a copy of the repository. Returns {name of a package: its bytes}."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch, "CCACHE_DISABLE": "1"}
    for argv in (["cmake", "--preset", "portable"], ["cmake", "--build", "--preset", "portable"],
                 ["/usr/bin/python3", "-B", "packaging/package.py", "--build", "build/portable", "--out", "build/packages-out"]):
        subprocess.run(argv, check=True, cwd=copy, env=environment, stdin=subprocess.DEVNULL)
    return {path.name: path.read_bytes() for path in (copy / "build/packages-out").iterdir()}


def problems_of(one, two):
    """Returns the faults of two results of pack(): missing packages, empty packages, and packages that differ."""
    wrong = [f"{len(made)} packages were made, not {PACKAGES}: {', '.join(sorted(made))}" for made in (one, two) if len(made) != PACKAGES]
    empty = [f"{name} is empty" for name in sorted(one) if not one[name]]
    return wrong + empty + [f"{name} differs" for name in sorted({*one, *two}) if one.get(name) != two.get(name)]


def main(root):
    if not (root / "build/packages/zydis").is_dir():
        print("skipped: build/packages has no sources; ./bootstrap package puts them there")
        return 77
    epoch = subprocess.run(["git", "-C", root, "log", "-1", "--format=%ct"], check=True, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="forksight-same-") as folder:
        copies = [Path(folder, name) for name in ("one", "a-longer-name/two")]
        # Make both copies first, so that changes of the repository during the builds do no harm.
        for copy in copies:
            copy_sources(root, copy)
        made = [pack(copy, epoch) for copy in copies]
    problems = problems_of(*made)
    print(*(problems or ["the same bytes:", *sorted(made[0])]), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
