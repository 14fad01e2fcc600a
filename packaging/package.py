"""package.py --build DIR --out DIR: packs forksight as a tar archive, a Debian package and a wheel. A second archive has the
debug information. If the second archive is unpacked over the first, gdb finds the information.

`cmake --install` makes the files that are packed. Two calls for the same commit make the same bytes. For this purpose names are
sorted, owners are root, and compressors run with one thread and a fixed level. All times are SOURCE_DATE_EPOCH, or the date of the
last commit if that variable is not set."""
import argparse
import base64
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

import check_contents

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURE = "x86_64"
WHEEL_TAG = "py3-none-manylinux_2_28_x86_64"
SUMMARY = "Fork-safety and deadlock diagnosis for Linux processes"
MAINTAINER = "forksight developers <developers@forksight.example>"
BINARIES = ("bin/forksight", "lib/libforksight.so", "lib/libforksight-ipc.so")
# The Debian packages whose static archives and headers are in the command.
LINKED = ("libc6-dev", "libstdc++-12-dev", "libdw-dev", "zlib1g-dev", "libbz2-dev", "liblzma-dev", "libcli11-dev", "nlohmann-json3-dev")
# The source packages that are compiled into the command.
LINKED_SOURCES = ("fmtlib", "zydis")
CONTROL = """Package: forksight
Version: {version}
Architecture: amd64
Maintainer: {maintainer}
Installed-Size: {kib}
Depends: libc6 (>= {libc})
Section: devel
Priority: optional
Description: {summary}
 forksight names what a process tree hangs on, and who holds it: locks, thread
 pools and descriptors that fork() left without their owners. It explains
 processes that hang already, core files, and programs that it starts itself
 under a preloaded library.
 .
 It comes with libforksight-ipc.so, a library for queues in shared memory.
"""
# These complaints of lintian do not apply. The command is linked statically on purpose. The shim has no read-only relocations,
# because every further mapping makes each fork of the program slower. The shim and the queue's library are opened by path, and no
# package links with them.
OVERRIDES = """forksight: statically-linked-binary
forksight: shared-library-lacks-prerequisites *
forksight: embedded-library *
forksight: hardening-no-relro *
forksight: shared-library-lacks-version *
forksight: package-name-doesnt-match-sonames *
forksight: lacks-versioned-link-to-shared-library *
forksight: link-to-shared-library-in-wrong-package *
"""


def run(argv, **options):
    subprocess.run([str(word) for word in argv], check=True, stdin=subprocess.DEVNULL, **options)


def find_epoch():
    if value := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(value)
    return int(subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], check=True, capture_output=True, text=True).stdout)


def find_version():
    return re.search(r"^project\(forksight VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def split(path):
    """Moves the debug information of a program or library into the folder .debug/ beside it, where gdb looks for it. Returns the
    path of the file with the debug information."""
    debug = path.parent / ".debug" / f"{path.name}.debug"
    debug.parent.mkdir(exist_ok=True)
    run(["objcopy", "--only-keep-debug", path, debug])
    run(["strip", "--strip-unneeded", path])
    run(["objcopy", f"--add-gnu-debuglink={debug}", path])
    return debug


def fix_modes(folder):
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)


def copy_licenses(doc):
    """Copies the license notices of the libraries that are linked into the command into the folder `doc`."""
    doc.mkdir(parents=True)
    for name in LINKED:
        shutil.copyfile(f"/usr/share/doc/{name}/copyright", doc / name)
    for name in LINKED_SOURCES:
        shutil.copyfile(ROOT / "build/packages" / name / "debian/copyright", doc / name)


def install(build, prefix, debug):
    """Installs below `prefix`, with fixed modes. The debug information goes to `debug`, in the same layout."""
    run(["cmake", "--install", build, "--prefix", prefix], stdout=subprocess.DEVNULL)
    for archive in prefix.rglob("*.a"):
        run(["strip", "--strip-debug", "--enable-deterministic-archives", archive])
    for name in BINARIES:
        made = split(prefix / name)
        (debug / made.relative_to(prefix)).parent.mkdir(parents=True, exist_ok=True)
        made.rename(debug / made.relative_to(prefix))
        made.parent.rmdir()
    copy_licenses(prefix / "share/doc/forksight/linked")
    fix_modes(prefix)
    fix_modes(debug)


def make_tar(folder, top, out, epoch, name):
    """Packs a folder as NAME.tar.zst in the folder `out`. In the archive the files lie below `top`. Returns the path of the
    archive."""
    def fix(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = epoch
        return entry

    plain = out / f"{name}.tar"
    with tarfile.open(plain, "w", format=tarfile.GNU_FORMAT) as archive:
        for path in [folder, *sorted(folder.rglob("*"))]:
            archive.add(path, arcname=Path(top, path.relative_to(folder)), recursive=False, filter=fix)
    run(["zstd", "-q", "-f", "-19", "--single-thread", "--rm", plain, "-o", out / f"{name}.tar.zst"])
    return out / f"{name}.tar.zst"


def write_gzip(path, data):
    path.write_bytes(gzip.compress(data, compresslevel=9, mtime=0))


def make_deb(prefix, version, out, epoch, scratch):
    root = scratch / "deb"
    shutil.copytree(prefix, root / "usr", symlinks=True)
    doc = root / "usr/share/doc/forksight"
    (doc / "LICENSE").unlink()
    copyright_text = f"Files: *\nCopyright: {time.gmtime(epoch).tm_year} forksight developers\nLicense: Apache-2.0\n On Debian systems, the text of this license is in /usr/share/common-licenses/Apache-2.0.\n"
    (doc / "copyright").write_text("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n" + copyright_text)
    write_gzip(doc / "NEWS.md.gz", (doc / "CHANGELOG.md").read_bytes())
    (doc / "CHANGELOG.md").unlink()
    for path in sorted((doc / "linked").iterdir()):
        write_gzip(path.with_name(path.name + ".gz"), path.read_bytes())
        path.unlink()
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(epoch))
    write_gzip(doc / "changelog.gz", f"forksight ({version}) unstable; urgency=medium\n\n  * Version {version}; see NEWS.md.gz.\n\n -- {MAINTAINER}  {date}\n".encode())
    for page in (root / "usr/share/man").rglob("*.[1-9]"):
        write_gzip(page.with_name(page.name + ".gz"), page.read_bytes())
        page.unlink()
    # Debian's zsh looks for the completions of packages in this folder.
    zsh = root / "usr/share/zsh/vendor-completions"
    (root / "usr/share/zsh/site-functions").rename(zsh)
    overrides = root / "usr/share/lintian/overrides/forksight"
    overrides.parent.mkdir(parents=True)
    overrides.write_text(OVERRIDES)
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink()]
    control = root / "DEBIAN"
    control.mkdir()
    kib = sum((path.stat().st_size + 1023) // 1024 for path in files)
    (control / "control").write_text(CONTROL.format(version=version, maintainer=MAINTAINER, kib=kib, summary=SUMMARY,
                                                    libc=check_contents.LIBC))
    (control / "md5sums").write_text("".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files))
    (control / "triggers").write_text("activate-noawait ldconfig\n")
    fix_modes(root)
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            os.utime(path, (epoch, epoch))
    made = out / f"forksight_{version}_amd64.deb"
    run(["dpkg-deb", "-Zxz", "-z6", "--threads-max=1", "--root-owner-group", "--build", root, made], stdout=subprocess.DEVNULL,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
    return made


def read_package():
    """Returns {name in the wheel: (bytes, mode)} of the Python sources."""
    return {f"forksight/{path.relative_to(ROOT / 'python/forksight')}": (path.read_bytes(), 0o644)
            for path in sorted((ROOT / "python/forksight").rglob("*.py"))}


def make_wheel(prefix, version, out, epoch):
    files = read_package()
    files["forksight/native/bin/forksight"] = ((prefix / "bin/forksight").read_bytes(), 0o755)
    for name in ("libforksight.so", "libforksight-ipc.so"):
        files[f"forksight/native/lib/{name}"] = ((prefix / "lib" / name).read_bytes(), 0o644)
    info = f"forksight-{version}.dist-info"
    metadata = (f"Metadata-Version: 2.1\nName: forksight\nVersion: {version}\nSummary: {SUMMARY}\nLicense: Apache-2.0\n"
                "Requires-Python: >=3.7\nDescription-Content-Type: text/markdown\n\n") + (ROOT / "README.md").read_text()
    entry_points = "[console_scripts]\nforksight = forksight:main\n"
    if "forksight/pytest_plugin.py" in files:
        # The entry has the name of the module. Then pytest does not load the module twice if it is also named by `-p`, by
        # PYTEST_PLUGINS or by a conftest.py.
        entry_points += "\n[pytest11]\nforksight.pytest_plugin = forksight.pytest_plugin\n"
    for name, text in (("METADATA", metadata), ("entry_points.txt", entry_points), ("LICENSE", (ROOT / "LICENSE").read_text()),
                       ("WHEEL", f"Wheel-Version: 1.0\nGenerator: forksight\nRoot-Is-Purelib: false\nTag: {WHEEL_TAG}\n")):
        files[f"{info}/{name}"] = (text.encode(), 0o644)
    rows = []
    for name, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    files[f"{info}/RECORD"] = ("".join(rows + [f"{info}/RECORD,,\n"]).encode(), 0o644)
    made = out / f"forksight-{version}-{WHEEL_TAG}.whl"
    date = time.gmtime(max(epoch, 315532800))[:6]  # the earliest date that a zip file can have is in 1980
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, date)
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, data)
    return made


def package(build, out):
    epoch, version = find_epoch(), find_version()
    out.mkdir(parents=True, exist_ok=True)
    top = f"forksight-{version}-{ARCHITECTURE}"
    with tempfile.TemporaryDirectory(prefix="forksight-package-") as folder:
        prefix, debug = Path(folder, "usr"), Path(folder, "debug")
        install(build, prefix, debug)
        if problems := check_contents.check(prefix, debug):
            sys.exit("".join(f"package.py: error: {problem}\n" for problem in problems))
        made = [make_tar(prefix, top, out, epoch, top), make_tar(debug, top, out, epoch, f"{top}-debug"),
                make_deb(prefix, version, out, epoch, Path(folder)), make_wheel(prefix, version, out, epoch)]
    for path in made:
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}")
    if shutil.which("lintian"):
        run(["lintian", "--allow-root", "--fail-on", "error", made[2]])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="the folder of a build with the preset `portable`")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the packages")
    arguments = parser.parse_args()
    os.umask(0o022)
    package(arguments.build.resolve(), arguments.out.resolve())
