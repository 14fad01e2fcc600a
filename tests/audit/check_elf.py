#!/usr/bin/python3
"""Audits the shim's ELF file: what it needs, what it exports, how it reaches thread-local storage.

  check_elf.py needed|exports|tls|imports LIBRARY HOOKS_DEF
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


def exports(library, hooks):
    listed = set()
    for path in [hooks] + [os.path.join(os.path.dirname(hooks), part) for part in ("../trace/include/forksight/trace/libc_calls.def", "cuda/cuda_hooks.def", "mpi/mpi_hooks.def")]:
        listed |= set(re.findall(r"^FORKSIGHT_(?:[A-Z]+_)?(?:HOOK|ANNOTATION)\((\w+)", open(path, encoding="utf-8").read(), re.M))
    exported = set()
    for line in readelf("--dyn-syms", library).splitlines():
        fields = line.split()
        # ABS: the names of versions
        if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK") and fields[6] not in ("UND", "ABS"):
            exported.add(fields[7].split("@")[0])
    return [f"exports {name}, not in the list" for name in sorted(exported - listed)] + [
        f"does not export {name}" for name in sorted(listed - exported)]


def tls(library, _):
    return ["imports __tls_get_addr"] if "__tls_get_addr" in readelf("--dyn-syms", library) else []


def imports(library, _):
    """What the shim may import: the names in imports.txt, each with its reason."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "imports.txt")
    lines = [line.split(None, 1) for line in open(path, encoding="utf-8") if line.strip() and not line.startswith("#")]
    without = [f"imports.txt gives no reason for {fields[0]}" for fields in lines if len(fields) < 2]
    imported = {fields[7].split("@")[0] for fields in map(str.split, readelf("--dyn-syms", library).splitlines())
                if len(fields) >= 8 and fields[6] == "UND"}
    return without + [f"imports {name}" for name in sorted(imported - {fields[0] for fields in lines})]


def main():
    checks = {"needed": needed, "exports": exports, "tls": tls, "imports": imports}
    if len(sys.argv) != 4 or sys.argv[1] not in checks:
        sys.exit(__doc__)
    problems = checks[sys.argv[1]](sys.argv[2], sys.argv[3])
    for problem in problems:
        print(f"{sys.argv[2]}: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
