"""PHP's own tests, run by PHP's runner. A folder is a unit, and each file is a test."""
import re

from frame import Unit
from packages import fetch_source

ABOUT = "PHP's own tests"
PACKAGES = ["php8.2-cli", "dpkg-dev"]
SOURCES = ["php8.2"]
LEFT_OUT = {}
FOLDERS = """
ext/pcntl/tests ext/posix/tests sapi/cli/tests ext/standard/tests/general_functions ext/standard/tests/streams ext/sockets/tests
ext/sysvmsg/tests ext/sysvsem/tests ext/sysvshm/tests ext/shmop/tests ext/standard/tests/file Zend/tests/generators Zend/tests/fibers
Zend/tests/closures Zend/tests/gc
""".split()
LINE = re.compile(r"^(?:\r.*\r)?(PASS|FAIL|SKIP|XFAIL|BORK|WARN|LEAK)[^\n]*\[([^\]\n]+\.phpt)\]", re.M)
SECONDS = 600


def prepare(_cache):
    pass


def parse(text, _end):
    return {name: result for result, name in LINE.findall(text.replace("\r", "\n"))}


def units(cache):
    root = fetch_source("php8.2", cache)
    for folder in FOLDERS:
        if (root / folder).is_dir():
            yield Unit(folder, ["/usr/bin/php8.2", "run-tests.php", "-q", "--offline", "-p", "/usr/bin/php8.2", folder], folder=str(root),
                       environment={"NO_INTERACTION": "1", "TEST_PHP_EXECUTABLE": "/usr/bin/php8.2"}, seconds=SECONDS, parse=parse)
