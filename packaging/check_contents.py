"""Checks, before anything is packed, that the contents of the packages run on the systems that the packages name."""
import re
import subprocess

SHIM_LIBC = "2.28"
QUEUE_LIBC = "2.34"
QUEUE_LIBSTDCXX = "3.4.30"  # of GCC 12
MOST_BYTES = 10_000_000


def readelf(*argv):
    return subprocess.run(["readelf", "--wide", *(str(word) for word in argv)], check=True, capture_output=True, text=True).stdout


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def find_late_imports(path, prefix, most):
    """The imported symbols of versions such as GLIBC_2.34 that are later than `most`."""
    symbols = re.findall(rf" UND (\w+)@{prefix}_([\d.]+)", readelf("--dyn-syms", path))
    return [f"{path.name} imports {name} of {prefix}_{version}, later than {most}" for name, version in sorted(set(symbols))
            if numbers(version) > numbers(most)]


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
    """gdb uses a file as the debug information of another one if both have the same build id."""
    if not debug.is_file() or ".debug_info" not in readelf("--section-headers", debug):
        return [f"there is no debug information of {path.name}"]
    if build_id(path) is None or build_id(path) != build_id(debug):
        return [f"{path.name} and its debug information have not the same build id"]
    return []


def check(prefix, debug):
    """The errors of an installation below `prefix`, whose debug information is below `debug`."""
    command, shim, queue = prefix / "bin/forksight", prefix / "lib/libforksight.so", prefix / "lib/libforksight-ipc.so"
    problems = check_command(command)
    problems += find_late_imports(shim, "GLIBC", SHIM_LIBC)
    problems += find_late_imports(queue, "GLIBC", QUEUE_LIBC) + find_late_imports(queue, "GLIBCXX", QUEUE_LIBSTDCXX)
    for path in (command, shim, queue):
        problems += check_debug(path, debug / path.parent.name / ".debug" / f"{path.name}.debug")
    return problems
