"""Checks that packages.txt is the only list of packages. It must be well-formed, and its packages must be installed. ./bootstrap must
read it, and no script may repeat it."""
import re
import subprocess
import sys
from pathlib import Path

from house import conclude, is_script, tracked_files

NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+\Z")
INSTALLS = re.compile(r"\b(apt-get|apt|aptitude)\s+(-\S+\s+)*install\b(?P<rest>.*)")


ROLES = ("[build]", "[bench]", "[package]", "[test]")


def read_lines(root):
    return [line.partition("#")[0].strip() for line in Path(root, "packages.txt").read_text().splitlines()]


def read_list(root):
    return [line for line in read_lines(root) if not line.startswith("[")]


def check_headings(root):
    """Checks that packages.txt has each heading once, and that no package stands above the first heading."""
    lines = [line for line in read_lines(root) if line]
    headings = [line for line in lines if line.startswith("[")]
    problems = [] if sorted(headings) == sorted(ROLES) else [f"packages.txt: its headings are {' '.join(headings)}, not {' '.join(ROLES)}"]
    return problems + [f"packages.txt: {name} stands below no heading" for name in lines[:1] if name not in ROLES]


def check_unpacked(root, packages):
    """Checks each package that conflicts with an installed one. Such a package is not installed, but unpacked into build/packages."""
    return [f"packages.txt: {name} is not in build/packages: ./bootstrap build puts it there" for name in packages
            if not Path(root, "build/packages", name).is_dir()]


def check_list(packages):
    return [f"packages.txt: {name}: not the name of one package" for name in packages if not NAME.match(name)]


def read_roles(root):
    """Maps each heading to the lines below it."""
    roles, heading = {}, ""
    for line in [line for line in read_lines(root) if line]:
        if line.startswith("["):
            heading = line
        else:
            roles.setdefault(heading, []).append(line)
    return roles


def check_once(root):
    """Checks that no heading lists a package twice. A package that two commands need may be listed under both headings."""
    return [f"packages.txt: {name} is there twice" for names in read_roles(root).values() for name in sorted(set(names)) if names.count(name) > 1]


def check_installed(packages):
    """Checks that the packages are installed. The build and the tests work on this machine, so a package that is not installed has a
    wrong name, or is not needed."""
    problems = []
    for name in packages:
        asked = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Status}", name], capture_output=True, text=True, check=False)
        if asked.stdout != "installed":
            problems.append(f"packages.txt: {name} is not installed here, although the build works: is the name wrong, or is the package not needed?")
    return problems


def check_uses(root, packages):
    """Checks that no script installs packages by name, because such a command is a second list of packages."""
    problems = []
    if "packages.txt" not in Path(root, "bootstrap").read_text():
        problems.append("bootstrap does not read packages.txt")
    for path in tracked_files(root):
        if not (is_script(path) or path.suffix in (".yml", ".yaml")):
            continue
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            found = INSTALLS.search(line)
            named = [name for name in packages if found and name in found["rest"].split()]
            if named:
                problems.append(f"{path.relative_to(root)}:{number}: a second list of packages: {' '.join(named)}")
    return problems


def check(root):
    listed = [name for name in read_list(root) if name]
    packages = [name for name in listed if ":" not in name]
    aside = [name.partition(":")[2] for name in listed if name.startswith("aside:")]
    sources = [name.partition(":")[2] for name in listed if name.startswith("source:")]  # only ./bootstrap package needs these
    packages = list(dict.fromkeys(packages))
    roles = read_roles(root)
    tested = {name for heading in roles if heading != "[package]" for name in roles[heading]}  # what ./bootstrap test installs
    installed = [name for name in packages if name in tested]
    return (check_headings(root) + check_once(root) + check_list(packages + aside + sources) + check_installed(installed) +
            check_unpacked(root, aside) + check_uses(root, packages + aside + sources))


if __name__ == "__main__":
    conclude(check(Path(sys.argv[1])))
