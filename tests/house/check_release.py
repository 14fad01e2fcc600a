"""Checks that the version in CMakeLists.txt is that of the last release in CHANGELOG.md. CHANGELOG.md must have the headings of Keep a
Changelog. If a document names the file of a package, the name must contain the version in CMakeLists.txt."""
import re
import sys
from pathlib import Path

from house import conclude, tracked_files

VERSION = re.compile(r"^project\(forksight VERSION (\d+\.\d+\.\d+) ", re.MULTILINE)
PACKAGE = re.compile(r"\bforksight[-_](\d+\.\d+\.\d+)(?=[-_.])")
RELEASE = re.compile(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}")
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


def check_changelog(text, version):
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    kinds = re.findall(r"^### (.*)$", text, re.MULTILINE)
    problems = [f"CHANGELOG.md: {name} is no heading of Keep a Changelog" for name in sorted(set(kinds) - set(KINDS))]
    released = [heading for heading in headings if heading != "[Unreleased]"]
    if headings[1:].count("[Unreleased]"):
        problems.append("CHANGELOG.md: [Unreleased] does not come first")
    problems += [f"CHANGELOG.md: {heading} is no version with a date" for heading in released if not RELEASE.fullmatch(heading)]
    if not released or not released[0].startswith(f"[{version}] "):
        problems.append(f"CHANGELOG.md: the last release is {released[0] if released else 'none'}, CMakeLists.txt has {version}")
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", part, re.MULTILINE)
        problems += [f"CHANGELOG.md: {part.splitlines()[0]} has {name} twice" for name in sorted(set(kinds)) if kinds.count(name) > 1]
        if re.search(r"^- ", part.partition("\n### ")[0], re.MULTILINE):
            problems.append(f"CHANGELOG.md: an entry of {part.splitlines()[0]} stands below no heading")
    return problems


def check(root):
    version = VERSION.search(Path(root, "CMakeLists.txt").read_text())[1]
    problems = check_changelog(Path(root, "CHANGELOG.md").read_text(), version)
    for path in tracked_files(root):
        if path.suffix == ".md" and path.name != "CHANGELOG.md":
            others = {found for found in PACKAGE.findall(path.read_text()) if found != version}
            problems += [f"{path.relative_to(root)}: names a package of {other}, the version is {version}" for other in sorted(others)]
    return problems


if __name__ == "__main__":
    conclude(check(Path(sys.argv[1])))
