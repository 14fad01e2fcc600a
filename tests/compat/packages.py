"""Gets Debian packages and source packages for the suites."""
import os
import shutil
import subprocess
from pathlib import Path


class NotHere(Exception):
    """Something that a suite needs is not available here."""


def release():
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    raise NotHere("no VERSION_CODENAME in /etc/os-release: this is not Debian")


def mirror(codename):
    """Returns the address from which this machine gets the packages of the Debian release `codename`."""
    asked = subprocess.run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"],
                           capture_output=True, text=True, check=False)
    for line in asked.stdout.splitlines():
        name, _, address = line.partition(" ")
        if name == codename and address:
            return address
    raise NotHere(f"apt has no list of packages of {codename}: run apt-get update")


def version_of(package):
    """Returns the version of an installed package, or None if the package is not installed."""
    asked = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Status} ${Version}", package], capture_output=True, text=True, check=False)
    status, _, version = asked.stdout.partition(" ")
    return version if status == "installed" else None


def install(packages):
    missing = [name for name in packages if version_of(name) is None]
    if not missing:
        return
    if os.geteuid() != 0:
        raise NotHere(f"these packages are missing, and only root can install them: {' '.join(missing)}")
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    done = subprocess.run(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise NotHere(f"`{' '.join(command)}`: {done.stdout.strip().splitlines()[-1]}")


def apt_for_sources(cache):
    """Returns an apt-get command that uses a list of sources in `cache`, so that the list of the machine stays unchanged."""
    lists = cache / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    sources = cache / "sources.list"
    sources.write_text(f"deb-src {mirror(release())} {release()} main\n")
    return ["apt-get", "-q", "-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State::lists={lists}"]


def fetch_source(package, cache):
    """Downloads and unpacks a source package, unless this was done before. Returns the unpacked folder."""
    folder = cache / "sources" / package
    if not (folder / "unpacked").exists():
        folder.mkdir(parents=True, exist_ok=True)
        apt = apt_for_sources(cache)
        for words in ([*apt, "update"], [*apt, "source", package]):
            done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode != 0:
                raise NotHere(f"`{' '.join(words)}`: {done.stdout.strip().splitlines()[-1]}")
        (folder / "unpacked").touch()
    found = [path for path in folder.iterdir() if path.is_dir()]
    if len(found) != 1:
        raise NotHere(f"{folder}: {len(found)} folders, not one")
    return found[0]


def source_version(package, cache):
    found = list((cache / "sources" / package).glob("*.dsc"))
    return found[0].name.removesuffix(".dsc").partition("_")[2] if found else None


def clean_folder(path):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path
