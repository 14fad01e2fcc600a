"""help_test.py FORKSIGHT: the help of every verb is wrapped at the width of the terminal, and manual pages fit on 80 columns."""
import fcntl
import os
import pty
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
from pathlib import Path

LIMIT_S = 60
VERB = re.compile(r"^  ([a-z]+)\b", re.MULTILINE)
FORKSIGHT = ""


def read_help(*words, columns=None):
    settings = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    if columns is not None:
        settings["COLUMNS"] = str(columns)
    done = subprocess.run([FORKSIGHT, *words, "--help"], capture_output=True, text=True, timeout=LIMIT_S, check=True, env=settings)
    assert done.stderr == "", done.stderr
    return done.stdout


def find_verbs(*path):
    verbs = [path]
    below = read_help(*path).partition("\nSubcommands:\n")[2]
    for verb in VERB.findall(below.split("\n\n")[0]):
        verbs += find_verbs(*path, verb)
    return verbs


def find_wide(text, columns):
    """Returns the lines that are too wide although a blank between two words could have ended them."""
    return [line for line in text.splitlines() if len(line) > columns and " " in line.strip()]


class Help(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.verbs = [*find_verbs(), ("generate",)]
        assert len(cls.verbs) > 15, cls.verbs

    def test_no_line_is_wider_than_the_terminal(self):
        for verb in self.verbs:
            for columns in (40, 57, 80, 100):
                with self.subTest(verb=verb, columns=columns):
                    text = read_help(*verb, columns=columns)
                    self.assertEqual(find_wide(text, columns), [])
                    self.assertEqual([line for line in text.splitlines() if line != line.rstrip()], [])

    def test_a_text_is_never_wider_than_100_columns_or_narrower_than_40(self):
        self.assertEqual(read_help("run", columns=200), read_help("run", columns=100))
        self.assertEqual(read_help("run", columns=10), read_help("run", columns=40))

    def test_without_a_terminal_it_has_80_columns(self):
        for verb in self.verbs:
            self.assertEqual(read_help(*verb), read_help(*verb, columns=80))

    def show(self, columns, *words):
        """Returns the status of the command, and what a terminal of that width shows."""
        terminal, line = pty.openpty()
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", 200, columns, 0, 0))
        settings = {"PATH": os.environ["PATH"], "TERM": "xterm"}
        process = subprocess.Popen([FORKSIGHT, *words], stdin=subprocess.DEVNULL, stdout=line, stderr=line, env=settings)
        os.close(line)
        shown = b""
        try:
            while part := os.read(terminal, 65536):
                shown += part
        except OSError:  # the command has ended
            pass
        return process.wait(timeout=LIMIT_S), shown.decode().replace("\r\n", "\n")

    def test_on_a_terminal_it_has_the_width_of_the_terminal(self):
        self.assertEqual(self.show(57, "suite", "--help"), (0, read_help("suite", columns=57)))

    def test_an_error_is_wrapped_on_a_terminal_only(self):
        done = subprocess.run([FORKSIGHT, "reprot"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
        self.assertGreater(len(done.stderr), 57)
        status, shown = self.show(57, "reprot")
        self.assertEqual((status, shown.split()), (2, done.stderr.split()))
        self.assertEqual(find_wide(shown, 57), [])

    def test_wrapping_changes_no_word(self):
        """All widths have the same words in the same order."""
        for verb in self.verbs:
            words = [read_help(*verb, columns=columns).split() for columns in (40, 80, 100)]
            self.assertEqual(words[0], words[1])
            self.assertEqual(words[1], words[2])

    def test_options_are_in_a_column(self):
        for verb in self.verbs:
            lines = read_help(*verb, columns=80).splitlines()
            first = lines.index("Options:") + 1
            options = [line for line in lines[first:] if line.startswith("  -")]
            self.assertNotEqual(options, [])
            for line in options:
                rest = re.fullmatch(r"  \S+(?: \S+)?(?:  +(\S.*))?", line)
                self.assertTrue(rest, line)
                if rest.group(1) is not None:
                    self.assertEqual(line.index(rest.group(1)), 30, line)

    @unittest.skipUnless(shutil.which("groff"), "this needs groff")
    def test_manual_pages_fit_on_80_columns(self):
        with tempfile.TemporaryDirectory(prefix="forksight-help-") as folder:
            subprocess.run([FORKSIGHT, "generate", "man", folder], capture_output=True, timeout=LIMIT_S, check=True)
            pages = sorted(Path(folder).iterdir())
            self.assertEqual(len(pages), len(self.verbs) - 1)
            for page in pages:
                shown = subprocess.run(["groff", "-man", "-Tutf8", "-P-cbou", "-rLL=80n", page], capture_output=True, text=True,
                                       timeout=LIMIT_S, check=True).stdout
                with self.subTest(page=page.name):
                    self.assertEqual(find_wide(shown, 80), [])

    @unittest.skipIf(os.environ.get("FORKSIGHT_SANITIZED") == "thread", "ThreadSanitizer itself writes a file")
    def test_a_limit_of_file_sizes_is_an_error(self):
        """Under `ulimit -f 0` the kernel sends SIGXFSZ to a process that writes to a file."""
        for words in (["--help"], ["--version"], ["explain"], ["help", "why"], ["generate", "bash"]):
            with self.subTest(words=words), tempfile.TemporaryFile() as out:
                done = subprocess.run([FORKSIGHT, *words], stdout=out, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
                self.assertEqual((done.returncode, done.stderr), (3, "forksight: error: standard output: File too large\n"))


if __name__ == "__main__":
    FORKSIGHT = sys.argv.pop(1)
    unittest.main()
