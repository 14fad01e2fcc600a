"""Checks the files that are packed. The programs and libraries must run on the systems that the packages name, and must
have debug information."""
import re
import subprocess

LIBC = "2.28"  # the oldest glibc that the shim and the queue's library run with; the tag of the wheel says the same
QUEUE_NEEDS = {"libc.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"}  # all of these are parts of glibc
QUEUE_EXPORTS = re.compile(r"forksight_(queue|loan|message)_\w+")
MOST_BYTES = 8_000_000


def readelf(*argv):
    return subprocess.run(["readelf", "--wide", *(str(word) for word in argv)], check=True, capture_output=True, text=True).stdout


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def find_late_imports(path, prefix, most):
    """Returns an error for each imported symbol whose version, such as GLIBC_2.34, is later than `most`."""
    symbols = re.findall(rf" UND (\w+)@{prefix}_([\d.]+)", readelf("--dyn-syms", path))
    return [f"{path.name} imports {name} of {prefix}_{version}, later than {most}" for name, version in sorted(set(symbols))
            if numbers(version) > numbers(most)]


def find_moved():
    """Returns the functions that glibc moved into libc.so.6 after version LIBC, from libpthread, librt or libdl. The libc.so.6 of
    this system has each of them with its old version, for old programs, and with a default version that is later than LIBC."""
    libc = subprocess.run(["cc", "-print-file-name=libc.so.6"], check=True, capture_output=True, text=True).stdout.strip()
    symbols = re.findall(r" (?!UND)\w+ (\w+)(@@?)GLIBC_([\d.]+)", readelf("--dyn-syms", libc))
    early = {name for name, _, version in symbols if numbers(version) <= numbers(LIBC)}
    return {name for name, at, version in symbols if at == "@@" and numbers(version) > numbers(LIBC) and name in early}


def find_moved_imports(path):
    """Returns an error for each function that `path` imports from libc.so.6, but that an old glibc has in another library.
    A link on a new system makes such an import, because the new libc.so.6 has the function. The loaders of glibc 2.28 and
    2.29 refuse to load `path` then, even if the other library is loaded."""
    versions = readelf("--version-info", path)
    sources = re.split(r"File: (\S+)", versions[versions.find("Version needs section"):])
    library = {number: name for name, rows in zip(sources[1::2], sources[2::2]) for number in re.findall(r"Version: (\d+)", rows)}
    imports = re.findall(r" UND (\w+)@GLIBC_\S+ \((\d+)\)", readelf("--dyn-syms", path))
    moved = find_moved()
    return [f"{path.name} imports {name} from libc.so.6, where glibc {LIBC} does not have it" for name, number in sorted(imports)
            if name in moved and library[number] == "libc.so.6"]


def check_command(path):
    problems = []
    if "(NEEDED)" in readelf("--dynamic", path):
        problems.append(f"{path.name} needs a library")
    if "INTERP" in readelf("--program-headers", path):
        problems.append(f"{path.name} needs a loader")
    if path.stat().st_size > MOST_BYTES:
        problems.append(f"{path.name} has {path.stat().st_size} bytes, more than {MOST_BYTES}")
    return problems


def build_id(path):
    found = re.search(r"Build ID: (\w+)", readelf("--notes", path))
    return found[1] if found else None


def check_debug(path, debug):
    """Returns an error if gdb would not use `debug` as the debug information of `path`. Both need the same build id for that."""
    if not debug.is_file() or ".debug_info" not in readelf("--section-headers", debug):
        return [f"there is no debug information of {path.name}"]
    if build_id(path) is None or build_id(path) != build_id(debug):
        return [f"{path.name} and its debug information do not have the same build id"]
    return []


def check_queue(path):
    """Returns an error for each reason why the queue's library would not run with glibc 2.28 and without libstdc++, and for each
    symbol that it exports besides its own functions. The library contains a libstdc++, which it must not export."""
    problems = find_late_imports(path, "GLIBC", LIBC) + find_moved_imports(path)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", path)))
    problems += [f"{path.name} needs {name}" for name in sorted(needed - QUEUE_NEEDS)]
    exports = re.findall(r" (?:GLOBAL|WEAK|UNIQUE) +DEFAULT +(?!UND)\w+ (\w+)", readelf("--dyn-syms", path))
    problems += [f"{path.name} exports {name}" for name in exports if not QUEUE_EXPORTS.fullmatch(name)]
    return problems if exports else problems + [f"{path.name} exports nothing"]


def check(prefix, debug):
    """Returns the errors of an installation below `prefix`. The debug information of its files is below `debug`."""
    command, shim, queue = prefix / "bin/forksight", prefix / "lib/libforksight.so", prefix / "lib/libforksight-ipc.so"
    problems = check_command(command)
    problems += find_late_imports(shim, "GLIBC", LIBC) + find_moved_imports(shim) + check_queue(queue)
    for path in (command, shim, queue):
        problems += check_debug(path, debug / path.parent.name / ".debug" / f"{path.name}.debug")
    return problems
