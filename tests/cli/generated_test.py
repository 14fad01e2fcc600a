"""generated_test.py FORKSIGHT: `forksight generate` writes manual pages, and completion for shells.

The manual page of a verb and the completion for each shell must contain each option of the verb's help. The test also lets bash
complete words with the generated file.
"""
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

LIMIT_S = 60
OPTION = re.compile(r"^  (-\S+)", re.MULTILINE)
VERB = re.compile(r"^  ([a-z]+)\b", re.MULTILINE)
SHELLS = {"bash": "forksight", "zsh": "_forksight", "fish": "forksight.fish"}
FORKSIGHT = ""


def run(*words, **options):
    return subprocess.run([FORKSIGHT, *words], capture_output=True, text=True, timeout=LIMIT_S, check=False, **options)


def read_help(path=()):
    """Returns [(words of a verb, options of this verb)], read from --help. The list has the verb `path` and all verbs below it."""
    text = run(*path, "--help").stdout
    # Examples come before the first group of options. The verbs and the footer come after the options.
    body = text[text.index("\nOptions:\n"):]
    body, _, verbs = body.partition("\nSubcommands:\n")
    names = sorted({name for head in OPTION.findall(body) for name in head.split(",") if name.startswith("-")})
    found = [(tuple(path), names)]
    for verb in VERB.findall(verbs.split("\n\n")[0]):
        found += read_help((*path, verb))
    return found


class Generated(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.verbs = read_help()
        assert len(cls.verbs) > 12 and (("why",), ["--all", "--debuginfod", "--depth", "--format", "--full", "--help", "--locals", "--no-stop", "--watch", "-h"]) in cls.verbs, cls.verbs
        cls.made = tempfile.TemporaryDirectory(prefix="forksight-generated-")
        cls.folder = Path(cls.made.name)
        cls.texts = {}
        for shell, name in SHELLS.items():
            done = run("generate", shell, str(cls.folder))
            assert done.returncode == 0, done.stderr
            cls.texts[shell] = (cls.folder / name).read_text()

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()

    def test_each_verb_has_its_page(self):
        pages = self.folder / "man1"
        self.assertEqual(run("generate", "man", str(pages)).returncode, 0)
        names = {"-".join(("forksight", *verb)) + ".1" for verb, _ in self.verbs}
        self.assertEqual({page.name for page in pages.iterdir()}, names)
        for verb, options in self.verbs:
            with self.subTest(verb=verb):
                text = (pages / ("-".join(("forksight", *verb)) + ".1")).read_text()
                self.check_page(text, verb, options)

    def check_page(self, text, verb, options):
        sections = re.findall(r"^\.SH (.*)$", text, re.MULTILINE)
        self.assertEqual(sections[:3], ["NAME", "SYNOPSIS", "DESCRIPTION"])
        self.assertIn("OPTIONS", sections)
        if verb and not (verb[0] == "trace" and len(verb) == 1):
            self.assertIn("EXAMPLES" if len(verb) == 1 else "OPTIONS", sections)
        if verb:
            self.assertIn("EXIT STATUS", sections)
        heads = {name for line in re.findall(r"^\.TP\n(.*)$", text, re.MULTILINE)
                 for name in re.findall(r"\\fB(\\-[^\\]*(?:\\-[^\\]*)*)\\fR", line)}
        self.assertLessEqual({name.replace("-", "\\-") for name in options}, heads)
        # The page uses only roff requests that man(7) describes. No line of its text begins like a request.
        requests = {line.split()[0] for line in text.splitlines() if line.startswith((".", "'"))}
        self.assertLessEqual(requests, {'.\\"', ".TH", ".SH", ".SS", ".TP", ".PP", ".nh", ".ad"})
        self.assertEqual([line for line in text.splitlines() if not line.strip()], [])
        if shutil.which("groff"):
            shown = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=text, capture_output=True, text=True,
                                   timeout=LIMIT_S, check=False)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))

    def test_each_completion_has_every_option(self):
        for verb, options in self.verbs:
            with self.subTest(verb=verb):
                name = " ".join(verb)
                listed = re.search(rf"^    '{name}'\) printf '%s\\n' (.*) ;;$", self.texts["bash"], re.MULTILINE)
                self.assertEqual(sorted(listed.group(1).split()), options)
                body = re.search(rf"^{'_'.join(('_forksight', *verb))}\(\) {{\n(.*?)^}}$", self.texts["zsh"], re.MULTILINE | re.DOTALL).group(1)
                self.assertEqual(sorted(set(re.findall(r"(?:\)|\*)(--?[a-zA-Z-]+)[=+]?\[", body))), options)
                lines = [line for line in self.texts["fish"].splitlines() if line.startswith(f"complete -c forksight -n '__forksight_at \\'{name}\\''")]
                told = {"--" + one for line in lines for one in re.findall(r" -l ([a-z-]+)", line)}
                told |= {"-" + one for line in lines for one in re.findall(r" -s ([a-zA-Z])\b", line)}
                self.assertEqual(sorted(told), options)

    def test_shells_can_read_them(self):
        for shell, name in SHELLS.items():
            if shutil.which(shell) or shell == "bash":
                done = subprocess.run([shell, "-n", self.folder / name], capture_output=True, text=True, timeout=LIMIT_S, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def complete(self, *words):
        """Returns the completions that bash offers for the last of `words`."""
        script = ('. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; _forksight; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", script, str(self.folder / "forksight"), *words], capture_output=True, text=True,
                              timeout=LIMIT_S, check=True, cwd=self.folder)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_verbs_and_options(self):
        verbs = [verb[0] for verb, _ in self.verbs if len(verb) == 1]
        self.assertEqual(self.complete("forksight", ""), verbs)
        self.assertNotIn("generate", verbs)
        self.assertEqual(self.complete("forksight", "wh"), ["why"])
        self.assertEqual(self.complete("forksight", "suite", ""), ["list", "run", "check"])
        for verb, options in self.verbs:
            self.assertEqual(sorted(self.complete("forksight", *verb, "-")), options)
        self.assertEqual(self.complete("forksight", "why", "--wa"), ["--watch"])
        self.assertEqual(self.complete("forksight", "why", "--format", "json", "--wa"), ["--watch"])

    def test_bash_completes_values(self):
        self.assertEqual(self.complete("forksight", "why", "--format", ""), ["text", "json"])
        self.assertEqual(self.complete("forksight", "why", "--format", "=", "j"), ["json"])
        self.assertEqual(self.complete("forksight", "why", "--format", "="), ["text", "json"])
        self.assertEqual(self.complete("forksight", "suite", "run", "--only", "co"), ["core"])
        self.assertEqual(self.complete("forksight", "explain", "lost-o"), ["lost-openmp-pool"])
        self.assertIn("1", self.complete("forksight", "why", ""))
        self.assertEqual(self.complete("forksight", "run", "--hang-after", ""), [])
        (self.folder / "xx folder").mkdir(exist_ok=True)
        (self.folder / "xx*").touch()
        self.assertEqual(self.complete("forksight", "run", "--out", "xx"), ["xx", "folder"])
        self.assertIn("xx*", self.complete("forksight", "core", "xx"))

    def test_bash_completes_the_command(self):
        self.assertIn("printf", self.complete("forksight", "run", "--", "print"))
        self.assertEqual(self.complete("forksight", "run", "--", "cat", "_fork"), ["_forksight"])
        self.assertEqual(self.complete("forksight", "run", "--", "why", "--wa"), [])
        self.assertEqual(self.complete("forksight", "why", "--", "print"), [])

    def test_invalid_arguments_are_refused(self):
        for words, status, said in ((["man"], 2, "FOLDER: is missing"), ([], 2, "WHAT is required"), (["csh"], 2, "csh"),
                                    (["bash", "/proc/none"], 3, "/proc/none/forksight: cannot be written")):
            done = run("generate", *words)
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            self.assertIn(said, done.stderr)
        with tempfile.TemporaryDirectory(prefix="forksight-generate-") as folder:
            Path(folder, "forksight").symlink_to("/dev/full")
            done = run("generate", "bash", folder)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(f"{folder}/forksight: cannot be written: No space left on device", done.stderr)
        self.assertEqual(run("generate", "bash").stdout, self.texts["bash"])
        self.assertNotIn("generate", run("--help").stdout + run("reprot").stderr)


if __name__ == "__main__":
    FORKSIGHT = sys.argv.pop(1)
    unittest.main()
