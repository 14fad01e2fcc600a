#!/usr/bin/python3
"""Audits the shim's ELF file: the libraries that it needs, its imports and exports, and how it accesses thread-local storage.

  check_elf.py needed|exports|tls|imports|floor|versions LIBRARY HOOKS_DEF
"""
import os
import re
import subprocess
import sys


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def needed(library, _):
    found = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", library)))
    allowed = {"libc.so.6", "ld-linux-x86-64.so.2"}
    return [f"needs {name}" for name in sorted(found - allowed)] + ([] if "libc.so.6" in found else ["does not need libc"])


def lists_of_hooks(hooks):
    """Yields the texts of the two lists of exported hooks: hooks.def, and the list of libc functions that use locks.

    The hooks of CUDA and MPI are not exported.
    """
    for part in ("hooks.def", "../trace/include/forksight/trace/libc_calls.def"):
        with open(os.path.join(os.path.dirname(hooks), part), encoding="utf-8") as file:
            yield file.read()


def listed_versions(hooks):
    """Returns {hook: its symbol versions} for the hooks that have versions."""
    found = [row for text in lists_of_hooks(hooks)
             for row in re.findall(r'^FORKSIGHT_(?:[A-Z]+_)?HOOK\((\w+), [^"\n]*"([^"\n]*)"(?:, .*\),$|\)$|, k)', text, re.M)]
    return {name: set(versions.split()) for name, versions in found if versions}


def exports(library, hooks):
    listed = set()
    for text in lists_of_hooks(hooks):
        listed |= set(re.findall(r"^FORKSIGHT_(?:[A-Z]+_)?(?:HOOK|ANNOTATION)\((\w+)", text, re.M))
    versions = listed_versions(hooks)
    exported, seen, visible = set(), {}, []
    for line in readelf("--dyn-syms", library).splitlines():
        fields = line.split()
        # A symbol in section ABS is the name of a version.
        if len(fields) < 8 or fields[4] not in ("GLOBAL", "WEAK") or fields[6] in ("UND", "ABS"):
            continue
        name, at, version = re.match(r"(\w+)(@*)(.*)", fields[7]).groups()
        exported.add(name)
        seen.setdefault(name, set()).add(version)
        if name in versions and at != "@":
            visible.append(f"exports {fields[7]}, to which a reference without a version binds")
    wrong = [f"exports {name} with the versions {sorted(seen[name])}, but its row has {sorted(of)}" for name, of in sorted(versions.items())
             if name in seen and seen[name] != of]
    return visible + wrong + [f"exports {name}, not in the list" for name in sorted(exported - listed)] + [
        f"does not export {name}" for name in sorted(listed - exported)]


def tls(library, _):
    return ["imports __tls_get_addr"] if "__tls_get_addr" in readelf("--dyn-syms", library) else []


def versions(library, hooks):
    """Checks the symbol versions in the lists of hooks. LIBRARY is a library whose functions the shim hooks, such as libc. A
    function may have several versions in LIBRARY. The lists must name exactly those versions that have the same address as the
    function's default version."""
    listed = listed_versions(hooks)
    addresses = {}
    for line in readelf("--dyn-syms", library).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[3] == "FUNC" and fields[6] != "UND" and "@" in fields[7]:
            name, at, version = re.match(r"(\w+)(@+)(.*)", fields[7]).groups()
            addresses.setdefault(name, {})[version] = (fields[1], at == "@@")
    problems = []
    for name, of in sorted(listed.items()):
        default = [address for address, is_default in addresses.get(name, {}).values() if is_default]
        same = {version for version, (address, _) in addresses.get(name, {}).items() if address in default}
        if default and same - {"VERSION"} != of - {"VERSION"}:
            problems.append(f"{name} has the versions {sorted(same)} in the library, and {sorted(of)} in its row")
    return problems if addresses.keys() & listed.keys() else ["has none of the functions"]


def imports(library, _):
    """Checks that LIBRARY imports only names in imports.txt, and that imports.txt gives a reason for each name."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "imports.txt")
    lines = [line.split(None, 1) for line in open(path, encoding="utf-8") if line.strip() and not line.startswith("#")]
    without = [f"imports.txt gives no reason for {fields[0]}" for fields in lines if len(fields) < 2]
    imported = {fields[7].split("@")[0] for fields in map(str.split, readelf("--dyn-syms", library).splitlines())
                if len(fields) >= 8 and fields[6] == "UND"}
    return without + [f"imports {name}" for name in sorted(imported - {fields[0] for fields in lines})]


def floor(library, _):
    """Checks that no import needs a later glibc than 2.28, which is the oldest glibc for which the shim is built."""
    found = re.findall(r"(\w+)@+GLIBC_(\d+)\.(\d+)", readelf("--dyn-syms", library))
    imported = {line.split()[7].split("@")[0] for line in readelf("--dyn-syms", library).splitlines()
                if len(line.split()) >= 8 and line.split()[6] == "UND"}
    return [f"imports {name} of glibc {major}.{minor}, later than 2.28" for name, major, minor in sorted(set(found))
            if name in imported and (int(major), int(minor)) > (2, 28)]


def main():
    checks = {"needed": needed, "exports": exports, "tls": tls, "imports": imports, "floor": floor, "versions": versions}
    if len(sys.argv) != 4 or sys.argv[1] not in checks:
        sys.exit(__doc__)
    problems = checks[sys.argv[1]](sys.argv[2], sys.argv[3])
    for problem in problems:
        print(f"{sys.argv[2]}: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
