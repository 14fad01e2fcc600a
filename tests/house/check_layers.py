"""Checks the layers of preload/ and analyzer/: a folder may include only those folders that the tables below allow. The tables of
docs/architecture.md must say the same."""
import re
import sys
from pathlib import Path

from house import conclude

# The lowest layer comes first. A folder may include those of lower layers. The folders in one tuple may not include one another.
SHIM_LAYERS = ("guest", "loader", "record", "locks", "threads",
               ("foresight", "openmp", "cuda", "mpi", "python", "libc", "files", "signals", "rights"), "fork", ".")
SHIM_EXCEPTIONS = {("signals", "libc"): "whether the process has ever called timer_create"}
# Lists of macros in preload/ itself, which any layer may expand.
SHIM_LISTS = {"hooks.def"}

# The lowest folder comes first. A folder may include only what is listed for it, even if others are below it. For example, a rule
# reads the model and never /proc.
ANALYZER = {
    "files": "",
    "model": "",
    "libc": "files model",
    "symbols": "files model",
    "proc": "files model libc",
    "image": "files model libc symbols proc",
    "watch": "files model proc",
    "collect": "files model libc symbols",
    "guard": "files model symbols proc",
    "inspect/python": "model symbols image",
    "inspect": "files model libc symbols proc image watch inspect/python",
    "diagnose": "files model",
    "diagnose/rules": "model diagnose",
    "render": "files model diagnose",
    "dump": "collect render",
    "suite": "model proc diagnose render",
    "session": "files model proc watch collect guard inspect diagnose render",
    "command": "files model symbols proc image collect guard inspect diagnose render dump suite session",
}
# Headers that any folder may include.
ANALYZER_COMMON = {"enumerators.hpp", "result.hpp"}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def names_of(layer):
    return (layer,) if isinstance(layer, str) else layer


def allowed_by_layers(layers, exceptions):
    allowed = {}
    for layer in layers:
        below = set(allowed)
        allowed.update({folder: below | {to for source, to in exceptions if source == folder} for folder in names_of(layer)})
    return allowed


class Part:
    """A top folder of the repository.

    `allowed` maps each folder below it to the folders that this folder may include. The lowest folder comes first.
    """

    def __init__(self, name, allowed, common, skipped=()):
        self.name = name
        self.allowed = allowed
        self.common = common
        self.skipped = skipped

    def check_table(self):
        """Checks that the table lets no folder include a folder that comes later in the table."""
        problems = []
        seen = set()
        for folder, below in self.allowed.items():
            for target in sorted(below - seen):
                problems.append(f"{self.name}/: the table lets {folder}/ include {target}/, which is not below it")
            seen.add(folder)
        return problems

    def check_include(self, file, folder, included, root):
        if not Path(root, self.name, included).is_file():
            # A header of another part is included as forksight/..., and a header of this part by its path from the part's folder.
            return [] if included.startswith("forksight/") else [f"{file}: \"{included}\" is not its path from {self.name}/"]
        target = str(Path(included).parent)
        if target == folder or included in self.common:
            return []
        if target not in self.allowed:
            return [f"{file}: {target}/ has no place in the table of tests/house/check_layers.py"]
        if target in self.allowed[folder]:
            return []
        return [f"{file}: {folder}/ must not include {included}: the table does not allow {target}/ for {folder}/"]

    def check(self, root):
        here = Path(root, self.name)
        problems = self.check_table()
        seen = 0
        for path in sorted(here.rglob("*")):
            if path.suffix not in (".hpp", ".cpp", ".def") or any(path.is_relative_to(here / folder) for folder in self.skipped):
                continue
            seen += 1
            folder = str(path.parent.relative_to(here))
            file = path.relative_to(root)
            if str(path.relative_to(here)) in self.common and folder not in self.allowed:
                continue
            if folder not in self.allowed:
                problems.append(f"{file}: {folder}/ has no place in the table of tests/house/check_layers.py")
                continue
            for included in INCLUDE.findall(path.read_text()):
                problems += self.check_include(file, folder, included, root)
        if seen == 0:
            problems.append(f"{self.name}/: no sources found")
        return problems


PARTS = (Part("preload", allowed_by_layers(SHIM_LAYERS, SHIM_EXCEPTIONS), SHIM_LISTS, skipped=("include",)),
         Part("analyzer", {folder: set(below.split()) for folder, below in ANALYZER.items()}, ANALYZER_COMMON))


def check(root, parts=PARTS):
    return [problem for part in parts for problem in part.check(root)]


def section(text, heading):
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def check_page(root):
    """Checks that the tables of docs/architecture.md name the same folders in the same order, and that the analyzer's table
    lists for each folder the folders that it may include."""
    text = Path(root, "docs/architecture.md").read_text()
    problems = []
    rows = re.findall(r"^\| `([a-z]+)/`", section(text, "The shim's folders"), re.MULTILINE)
    flat = [folder for layer in SHIM_LAYERS for folder in names_of(layer) if folder != "."]
    if rows != flat:
        problems.append(f"docs/architecture.md: the table of the shim's folders has {rows}, SHIM_LAYERS has {flat}")
    rows = re.findall(r"^\| `([a-z/]+)/` \|.*\|([^|]*)\|$", section(text, "The analyzer's folders"), re.MULTILINE)
    told = {folder: set(re.findall(r"`([a-z/]+)/`", below)) for folder, below in rows}
    wanted = {folder: set(below.split()) for folder, below in ANALYZER.items()}
    if list(told) != list(wanted):
        problems.append(f"docs/architecture.md: the table of the analyzer's folders has {list(told)}, ANALYZER has {list(wanted)}")
    problems += [f"docs/architecture.md: {folder}/ may include {sorted(wanted[folder])}, the page says {sorted(below)}"
                 for folder, below in told.items() if folder in wanted and wanted[folder] != below]
    return problems


if __name__ == "__main__":
    conclude(check(sys.argv[1]) + check_page(sys.argv[1]))
