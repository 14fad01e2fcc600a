"""package.py --build DIR --out DIR: packs an installed forksight as a tar archive, a Debian package and a wheel.

What is packed comes from `cmake --install`. Two calls for the same commit make the same bytes: names are sorted, owners are
root, times are SOURCE_DATE_EPOCH (else the date of the last commit), compressors run with one thread and a fixed level."""
import argparse
import base64
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURE = "x86_64"
WHEEL_TAG = "py3-none-manylinux_2_28_x86_64"
SUMMARY = "Fork-safety and deadlock diagnosis for Linux processes"
MAINTAINER = "forksight maintainers <maintainers@forksight.invalid>"
OLDEST_LIBC = "2.28"
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
"""
# The command is one static program by intent; the shim and the queue are opened by path, and are nobody's dependency.
OVERRIDES = """forksight: statically-linked-binary
forksight: embedded-library
forksight: sharedobject-in-library-directory-missing-soname
forksight: lacks-versioned-link-to-shared-library
forksight: link-to-shared-library-in-wrong-package
forksight: bogus-mail-host
"""


def run(argv, **options):
    subprocess.run([str(word) for word in argv], check=True, stdin=subprocess.DEVNULL, **options)


def find_epoch():
    if value := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(value)
    return int(subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], check=True, capture_output=True, text=True).stdout)


def find_version():
    return re.search(r"^project\(forksight VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def install(build, prefix):
    """Installs below `prefix`, without debug information, with fixed modes."""
    run(["cmake", "--install", build, "--prefix", prefix, "--strip"], stdout=subprocess.DEVNULL)
    for archive in prefix.rglob("*.a"):
        run(["strip", "--strip-debug", "--enable-deterministic-archives", archive])
    for path in [prefix, *prefix.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)


def make_tar(prefix, name, out, epoch):
    def fix(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = epoch
        return entry

    plain = out / f"{name}.tar"
    with tarfile.open(plain, "w", format=tarfile.GNU_FORMAT) as archive:
        for path in [prefix, *sorted(prefix.rglob("*"))]:
            archive.add(path, arcname=Path(name, path.relative_to(prefix)), recursive=False, filter=fix)
    run(["zstd", "-q", "-f", "-19", "--single-thread", "--rm", plain, "-o", out / f"{name}.tar.zst"])
    return out / f"{name}.tar.zst"


def write_gzip(path, data):
    path.write_bytes(gzip.compress(data, compresslevel=9, mtime=0))


def make_deb(prefix, version, out, epoch, scratch):
    root = scratch / "deb"
    shutil.copytree(prefix, root / "usr", symlinks=True)
    doc = root / "usr/share/doc/forksight"
    (doc / "LICENSE").unlink()
    copyright_text = f"Files: *\nCopyright: the authors of forksight\nLicense: Apache-2.0\n On Debian systems, the text of this license is in /usr/share/common-licenses/Apache-2.0.\n"
    (doc / "copyright").write_text("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n" + copyright_text)
    write_gzip(doc / "NEWS.md.gz", (doc / "CHANGELOG.md").read_bytes())
    (doc / "CHANGELOG.md").unlink()
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(epoch))
    write_gzip(doc / "changelog.gz", f"forksight ({version}) unstable; urgency=medium\n\n  * Version {version}; see NEWS.md.gz.\n\n -- {MAINTAINER}  {date}\n".encode())
    for page in (root / "usr/share/man").rglob("*.[1-9]"):
        write_gzip(page.with_name(page.name + ".gz"), page.read_bytes())
        page.unlink()
    # The place that Debian's zsh looks into for packages.
    zsh = root / "usr/share/zsh/vendor-completions"
    (root / "usr/share/zsh/site-functions").rename(zsh)
    overrides = root / "usr/share/lintian/overrides/forksight"
    overrides.parent.mkdir(parents=True)
    overrides.write_text(OVERRIDES)
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink()]
    control = root / "DEBIAN"
    control.mkdir()
    kib = sum((path.stat().st_size + 1023) // 1024 for path in files)
    (control / "control").write_text(CONTROL.format(version=version, maintainer=MAINTAINER, kib=kib, libc=OLDEST_LIBC, summary=SUMMARY))
    (control / "md5sums").write_text("".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files))
    (control / "triggers").write_text("activate-noawait ldconfig\n")
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
            os.utime(path, (epoch, epoch))
    made = out / f"forksight_{version}_amd64.deb"
    run(["dpkg-deb", "-Zxz", "-z6", "--threads-max=1", "--root-owner-group", "--build", root, made], stdout=subprocess.DEVNULL,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
    return made


def read_package():
    """{name in the wheel: (bytes, mode)} of the Python sources."""
    return {f"forksight/{path.relative_to(ROOT / 'python/forksight')}": (path.read_bytes(), 0o644)
            for path in sorted((ROOT / "python/forksight").rglob("*.py"))}


def make_wheel(prefix, version, out, epoch):
    files = read_package()
    files["forksight/native/bin/forksight"] = ((prefix / "bin/forksight").read_bytes(), 0o755)
    files["forksight/native/lib/libforksight.so"] = ((prefix / "lib/libforksight.so").read_bytes(), 0o644)
    info = f"forksight-{version}.dist-info"
    metadata = (f"Metadata-Version: 2.1\nName: forksight\nVersion: {version}\nSummary: {SUMMARY}\nLicense: Apache-2.0\n"
                "Requires-Python: >=3.7\nDescription-Content-Type: text/markdown\n\n") + (ROOT / "README.md").read_text()
    entry_points = "[console_scripts]\nforksight = forksight:main\n"
    if "forksight/pytest_plugin.py" in files:
        entry_points += "\n[pytest11]\nforksight = forksight.pytest_plugin\n"
    for name, text in (("METADATA", metadata), ("entry_points.txt", entry_points), ("LICENSE", (ROOT / "LICENSE").read_text()),
                       ("WHEEL", f"Wheel-Version: 1.0\nGenerator: forksight\nRoot-Is-Purelib: false\nTag: {WHEEL_TAG}\n")):
        files[f"{info}/{name}"] = (text.encode(), 0o644)
    rows = []
    for name, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    files[f"{info}/RECORD"] = ("".join(rows + [f"{info}/RECORD,,\n"]).encode(), 0o644)
    made = out / f"forksight-{version}-{WHEEL_TAG}.whl"
    date = time.gmtime(max(epoch, 315532800))[:6]  # zip begins in 1980
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
    with tempfile.TemporaryDirectory(prefix="forksight-package-") as folder:
        prefix = Path(folder, "usr")
        install(build, prefix)
        made = [make_tar(prefix, f"forksight-{version}-{ARCHITECTURE}", out, epoch), make_deb(prefix, version, out, epoch, Path(folder)),
                make_wheel(prefix, version, out, epoch)]
    for path in made:
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}")
    if shutil.which("lintian"):
        run(["lintian", "--allow-root", "--fail-on", "error", made[1]])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="a build of the preset `portable`")
    parser.add_argument("--out", type=Path, required=True, help="where the packages go")
    arguments = parser.parse_args()
    os.umask(0o022)
    package(arguments.build.resolve(), arguments.out.resolve())
