"""GLib's installed tests. Each program is a unit. Each test that the program reports in the Test Anything Protocol is a test."""
import shlex
from pathlib import Path

from frame import Unit

from . import tap

ABOUT = "GLib's installed tests"
PACKAGES = ["libglib2.0-tests", "dbus", "dbus-daemon"]
SOURCES = []
LEFT_OUT = {"tests in Python": "they test scripts that generate source files, and use no threads or forks", "1bit-mutex": "it spins for 17 s, five times",
            "1bit-emufutex": "the same as 1bit-mutex"}
LISTED = Path("/usr/share/installed-tests/glib")
SECONDS = 60


def prepare(_cache):
    pass


def command_of(path):
    for line in path.read_text().splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "Exec":
            return shlex.split(value)
    return None


def units(_cache):
    for path in sorted(LISTED.glob("*.test")):
        command = command_of(path)
        if path.stem in LEFT_OUT or not command or path.stem.endswith(".py"):
            continue
        if "--tap" not in command and not command[0].endswith(("sh", "env", "python3")):
            command.append("--tap")
        yield Unit(path.stem, command, environment={"XDG_RUNTIME_DIR": "/tmp"}, seconds=SECONDS, parse=tap.parse)
