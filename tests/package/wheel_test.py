"""wheel_test.py PACKAGING COMMAND SHIM QUEUE: makes a wheel of these files, unpacks it as pip would, and runs pytest with it.
pytest must load the plugin once, whether it is named on the command line, in the environment, in a conftest.py, or not at all."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

PACKAGING, COMMAND, SHIM, QUEUE = sys.argv[1:]
del sys.argv[1:]
sys.path.insert(0, PACKAGING)
import package  # noqa: E402

NAME = "forksight.pytest_plugin"


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="forksight-wheel-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        for source, place in ((COMMAND, "bin/forksight"), (SHIM, "lib/libforksight.so"), (QUEUE, "lib/libforksight-ipc.so")):
            (cls.folder / "usr" / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, cls.folder / "usr" / place)
        made = package.make_wheel(cls.folder / "usr", package.find_version(), cls.folder, 1_000_000_000)
        cls.site = cls.folder / "site"
        with zipfile.ZipFile(made) as archive:
            archive.extractall(cls.site)
        (cls.site / "forksight/native/bin/forksight").chmod(0o755)

    def run_pytest(self, *options, conftest="", **variables):
        """Runs a session with one test. Returns its output."""
        project = Path(tempfile.mkdtemp(dir=self.folder))
        (project / "test_one.py").write_text("def test_one():\n    pass\n")
        (project / "conftest.py").write_text(conftest)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FORKSIGHT", "PYTEST"))}
        done = subprocess.run([sys.executable, "-B", "-m", "pytest", *options, "--forksight=observe"], cwd=project, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
                              env={**kept, **variables, "PYTHONPATH": str(self.site)})
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def check(self, *options, **more):
        printed = self.run_pytest(*options, **more)
        self.assertIn("1 passed", printed)
        self.assertEqual(printed.count("forksight: observe, under the shim"), 1, printed)

    def test_pytest_finds_the_plugin(self):
        self.check()

    def test_the_command_line_may_name_it(self):
        self.check("-p", NAME)

    def test_the_environment_may_name_it(self):
        self.check(PYTEST_PLUGINS=NAME)

    def test_a_conftest_may_name_it(self):
        self.check(conftest=f"pytest_plugins = ['{NAME}']\n")

    def test_workers_load_it_once(self):
        self.check("-n", "1", "-p", NAME)


if __name__ == "__main__":
    unittest.main()
