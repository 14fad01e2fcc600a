"""Checks which sources are compiled in a batch. A batch is several sources that are compiled as one file.

This check reads the compile commands of the build. No source of the shim, of the queue or of the hazard suite may be in
a batch. The list of rules may not be in a batch either, because a test replaces the object file of this list. Only the
release preset may have batches. If an include is missing, the builds of the other presets then fail.
"""
import json
import sys
from pathlib import Path

from house import conclude

SINGLE = ("preload/", "ipc/", "repro/")  # a linker script places their objects, or tests replace or compare the objects
ALONE = ("analyzer/diagnose/rules.cpp",)
SWITCH = "FORKSIGHT_UNITY_BUILD"


def files_of(unit):
    """Returns the files that a batch includes."""
    return [line.split('"')[1] for line in unit.read_text().splitlines() if line.startswith('#include "')]


def check_presets(root):
    presets = json.loads(Path(root, "CMakePresets.json").read_text())["configurePresets"]
    with_batches = [preset["name"] for preset in presets if preset.get("cacheVariables", {}).get(SWITCH) == "ON"]
    return [] if with_batches == ["release"] else [f"CMakePresets.json: {SWITCH} is ON in {with_batches}, not in the release preset alone"]


def check_units(root, build):
    problems = []
    for entry in json.loads(Path(build, "compile_commands.json").read_text()):
        unit = Path(entry["file"])
        if unit.parent.name != "Unity":
            continue
        names = [Path(file).relative_to(root).as_posix() for file in files_of(unit) if Path(file).is_relative_to(root)]
        problems += [f"{name} is compiled in a batch" for name in names if name.startswith(SINGLE) or name in ALONE]
    return problems


def check(root, build):
    return check_presets(root) + check_units(root, build)


if __name__ == "__main__":
    conclude(check(Path(sys.argv[1]), Path(sys.argv[2])))
