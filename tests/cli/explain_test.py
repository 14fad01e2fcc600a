"""explain_test.py FORKSIGHT: `forksight explain` formats pages for the terminal.

If a page is longer than the terminal, `forksight explain` shows it in a pager.
"""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

LIMIT_S = 30
FORKSIGHT = ""
LONG = ("explain", "lost-openmp-pool")
SHORT = ("explain", "--search", "PHP-FPM")


def read_until_closed(terminal):
    text = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # no process has the terminal open any more
            return text.decode()
        if not part:
            return text.decode()
        text += part


def on_terminal(words, rows=24, columns=80, **environment):
    """Returns the exit status, and what the terminal shows."""
    terminal, line = pty.openpty()
    fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    settings = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment}
    process = subprocess.Popen([FORKSIGHT, *words], stdin=subprocess.DEVNULL, stdout=line, stderr=line, env=settings)
    os.close(line)
    try:
        shown = read_until_closed(terminal)
        return process.wait(timeout=LIMIT_S), shown.replace("\r\n", "\n")
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def piped(*words, **environment):
    return subprocess.run([FORKSIGHT, *words], capture_output=True, text=True, timeout=LIMIT_S, check=True, env=environment).stdout


class Explain(unittest.TestCase):
    def test_every_page_has_no_markdown(self):
        slugs = re.findall(r"^  ([a-z-]+)  ", piped("explain"), re.MULTILINE)
        self.assertGreater(len(slugs), 50)
        for slug in slugs:
            for columns in (40, 80, 200):
                with self.subTest(slug=slug, columns=columns):
                    text = piped("explain", slug, COLUMNS=str(columns))
                    prose = [line for line in text.splitlines() if not line.startswith("    ")]
                    self.assertEqual([line for line in prose if line.startswith(("|", "#", "```")) or "](" in line or "**" in line], [])
                    self.assertEqual([line for line in prose if len(line) > columns and " " in line.strip(" -")], [])
                    for heading in ("What happens", "Fixes", "False positives"):
                        self.assertIn(f"\n{heading}\n", text)

    def test_lists_have_the_width_of_the_terminal(self):
        for words in (("explain",), ("explain", "--search", "gunicron"), ("explain", "--search", "zebra worker"), ("explain", "--search", "deadlock")):
            for columns in (40, 80, 200):
                with self.subTest(words=words, columns=columns):
                    lines = piped(*words, COLUMNS=str(columns)).splitlines()
                    self.assertEqual([line for line in lines if len(line) > columns and " " in line.strip()], [])
            self.assertEqual(*(piped(*words, COLUMNS=columns).split() for columns in ("40", "200")))

    def test_tables_and_code(self):
        text = piped("explain", "pipe-deadlock", COLUMNS="60")
        self.assertIn("\n  - Read what the child writes before waiting for its end:\n    `communicate()`\n    cost: memory for the output\n", text)
        self.assertNotIn("fix: ", text)
        self.assertIn("\n    child.wait()  # hangs; communicate() does not\n", text)

    def test_bold_only_on_a_terminal(self):
        self.assertIn("\x1b[1mlost-openmp-pool\x1b[0m\n", on_terminal(LONG, PAGER="cat")[1])
        self.assertNotIn("\x1b", on_terminal(LONG, PAGER="cat", NO_COLOR="1")[1])
        self.assertNotIn("\x1b", piped(*LONG))

    def test_a_long_page_goes_through_the_pager(self):
        status, shown = on_terminal(LONG, PAGER="sed 's/^/paged: /'", NO_COLOR="1")
        self.assertEqual(status, 0)
        lines = shown.splitlines()
        self.assertGreater(len(lines), 40)
        self.assertTrue(all(line.startswith("paged: ") for line in lines), lines)
        self.assertEqual([line.removeprefix("paged: ") for line in lines], piped(*LONG, COLUMNS="80").splitlines())

    def test_a_short_page_does_not_go_through_the_pager(self):
        self.assertNotIn("paged: ", on_terminal(SHORT, rows=200, PAGER="sed 's/^/paged: /'")[1])
        self.assertIn("paged: ", on_terminal(SHORT, rows=5, PAGER="sed 's/^/paged: /'")[1])

    def test_less_is_the_pager_where_it_is_installed(self):
        with tempfile.TemporaryDirectory(prefix="forksight-pager-") as folder:
            less = os.path.join(folder, "less")
            with open(less, "w", encoding="utf-8") as script:
                script.write("#!/bin/sh\necho \"less with $LESS\"\nexec cat\n")
            os.chmod(less, 0o755)
            self.assertIn("less with FRX\n", on_terminal(LONG, PATH=f"{folder}:/usr/bin:/bin")[1])
            self.assertIn("less with M\n", on_terminal(LONG, PATH=f"{folder}:/usr/bin:/bin", LESS="M")[1])
            os.remove(less)
            self.assertEqual(on_terminal(LONG, PATH=folder, NO_COLOR="1")[1], piped(*LONG, COLUMNS="80"))

    def test_a_pager_may_end_before_the_last_line(self):
        status, shown = on_terminal(LONG, PAGER="head -n 3", NO_COLOR="1")
        self.assertEqual((status, len(shown.splitlines())), (0, 3))

    def test_a_pager_that_is_not_installed(self):
        status, shown = on_terminal(LONG, PAGER="no-such-pager", NO_COLOR="1")
        self.assertEqual(status, 0)
        self.assertTrue(shown.endswith(piped(*LONG, COLUMNS="80")), shown)


if __name__ == "__main__":
    FORKSIGHT = sys.argv.pop(1)
    unittest.main()
