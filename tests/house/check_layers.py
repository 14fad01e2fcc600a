"""preload/ is built in layers: a folder includes what is below it, and no other. The order stands in docs/architecture.md."""
import re
import sys
from pathlib import Path

from house import conclude

# From the bottom. Those in one tuple are side by side: none of them includes another, but for EXCEPTIONS.
LAYERS = ("guest", "loader", "record", "locks", "threads",
          ("foresight", "openmp", "cuda", "mpi", "python", "libc", "files", "signals", "rights"), "fork", ".")
EXCEPTIONS = {("signals", "libc"): "whether the process has ever called timer_create"}
# Lists of macros that lie at the top, and that any layer may expand.
LISTS = {"hooks.def"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def heights():
    return {folder: height for height, layer in enumerate(LAYERS)
            for folder in ((layer,) if isinstance(layer, str) else layer)}


def check_include(name, folder, included, preload):
    height = heights()
    if not Path(preload, included).is_file():
        # Headers of the other parts go by forksight/...; all of preload/ by its path from there.
        return [] if included.startswith("forksight/") else [f"{name}: \"{included}\" is not its path from preload/"]
    target = str(Path(included).parent)
    if target == folder or included in LISTS:
        return []
    if target not in height:
        return [f"{name}: {target}/ has no place in LAYERS of tests/house/check_layers.py"]
    if height[target] < height[folder] or (folder, target) in EXCEPTIONS:
        return []
    return [f"{name}: {folder}/ must not include {included}: {target}/ is not below it"]


def check(root):
    preload = Path(root, "preload")
    problems = []
    seen = 0
    for path in sorted(preload.rglob("*")):
        if path.suffix not in (".hpp", ".cpp", ".def") or path.is_relative_to(preload / "include"):
            continue
        seen += 1
        folder = str(path.parent.relative_to(preload))
        name = path.relative_to(root)
        if folder not in heights():
            problems.append(f"{name}: {folder}/ has no place in LAYERS of tests/house/check_layers.py")
            continue
        for included in INCLUDE.findall(path.read_text()):
            problems += check_include(name, folder, included, preload)
    if seen == 0:
        problems.append("preload/: no sources found")
    return problems


def check_page(root):
    """The page that shows the order to people names each folder, in this order."""
    text = Path(root, "docs/architecture.md").read_text()
    rows = re.findall(r"^\| `([a-z]+)/`", text, re.MULTILINE)
    flat = [folder for layer in LAYERS for folder in ((layer,) if isinstance(layer, str) else layer) if folder != "."]
    return [] if rows == flat else [f"docs/architecture.md: the table of folders has {rows}, LAYERS has {flat}"]


if __name__ == "__main__":
    conclude(check(sys.argv[1]) + check_page(sys.argv[1]))
