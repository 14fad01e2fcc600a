"""Checks that the documents name only things that exist: links, paths, verbs of the command, options of each verb, cases of the
suite and presets. It also checks the cases: each slug that a case expects must have a page, and each case must have a
complete head."""
import argparse
import fnmatch
import json
import re
import subprocess
from pathlib import Path

from house import conclude, tracked_files

LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")
CODE = re.compile(r"`([^`\n]+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
PATH = re.compile(r"(?:\./)?[\w.-]+(?:/[\w.<>*-]+)*/?\Z")
PRESET = re.compile(r"--preset[ =](\w+)")
FOLDERS = ("abi", "analyzer", "bench", "cmake", "docs", "preload", "python", "repro", "tests", "trace", ".ci")
SLUG_IN_CASE = re.compile(r"(?://|#)\s*EXPECT(?:\([^)]*\))?:\s*(\S+)")
COMMENT = re.compile(r"\s*(?://|#)\s")
EXPECTATION = re.compile(r"\s*(?://|#)\s*EXPECT-BARE:")
SECOND_EXPECTATION = re.compile(r"(?://|#)\s*\S.*\bEXPECT[-A-Z]*(?:\([^)]*\))?:")
HEAD = ("Mechanism", "To blame", "User sees", "Fix")
# A line of --help about one option: the names of the option, and the word for its value, if it takes one.
IN_HELP = re.compile(r"^  ((?:-\w,)?--[a-z-]+|-\w)(?: (\S+))?", re.MULTILINE)
VERB_IN_HELP = re.compile(r"^  ([a-z]+)\b", re.MULTILINE)
CALL = re.compile(r"\bforksight ((?:[a-z]+(?:\|[a-z]+)*)(?: [^`\n]*)?)")
# The end of a call of forksight in a command line or in a sentence.
END_OF_CALL = re.compile(r" -- | --$|\s[|&;#>]|[|&;>]\s| {2,}|\.(?:\s|$)|[,:)]")
OPTION_WORD = re.compile(r"--?[a-z][a-z-]*")
CASE = re.compile(r"[a-z*?][a-z0-9_.*?]*\Z")
VERBS_OF_CASES = ("suite list", "suite run")


def read_verbs(forksight, path=()):
    """Returns {words of a verb: {option: whether the option takes a value}}, read from the command's own help."""
    helped = subprocess.run([forksight, *path, "--help"], capture_output=True, text=True, check=True).stdout
    options, _, below = helped[helped.index("\nOptions:\n"):].partition("\nSubcommands:\n")
    verbs = {" ".join(path): {name: value != "" and "Excludes:" not in value for names, value in IN_HELP.findall(options) for name in names.split(",")}}
    for verb in VERB_IN_HELP.findall(below.split("\n\n")[0]):
        verbs |= read_verbs(forksight, (*path, verb))
    return verbs


def find_verbs(words, verbs):
    """Returns the verbs that the first words name, and the words after them. "list|run" names two verbs. The list of verbs is
    empty if the first word names no verb."""
    paths, rest = [""], list(words)
    while rest:
        below = [f"{path} {one}".strip() for path in paths for one in rest[0].split("|")]
        if not all(path in verbs for path in below):
            break
        paths, rest = below, rest[1:]
    return ([] if paths == [""] else paths), rest


def check_call(call, verbs, cases):
    """Returns the errors in the words after `forksight`."""
    paths, rest = find_verbs(END_OF_CALL.split(call, maxsplit=1)[0].split(), verbs)
    problems, is_value = [], False
    for word in rest:
        option = word.partition("=")[0]
        if OPTION_WORD.fullmatch(option):
            problems += [f"forksight {path} has no {option}" for path in paths if option not in verbs[path]]
            is_value = "=" not in word and any(verbs[path].get(option) for path in paths)
            continue
        name = word.strip("'")
        if not is_value and paths and set(paths) <= set(VERBS_OF_CASES) and CASE.match(name) and not fnmatch.filter(cases, name):
            problems.append(f"{name} is no case of the suite")
        is_value = False
    return problems


def check_calls(text, verbs, cases, name):
    problems = [f"{name}: {problem}" for call in CALL.findall(text) for problem in check_call(call, verbs, cases)]
    for code in CODE.findall(text):
        words = code.split()
        if len(words) > 1 and words[0] == "forksight" and words[1][0] not in "-<." and words[1].islower() and words[1] != "help":
            if not find_verbs(words[1:], verbs)[0]:
                problems.append(f"{name}: forksight {words[1]}: there is no such verb")
    return problems


def known_cases(root):
    """Returns the names of the cases. The name of a case is that of its source file."""
    return {path.stem for path in tracked_files(root) if path.relative_to(root).parts[0] == "repro"}


def check_links(text, path, name):
    return [f"{name}: link to {target}, which is not there" for target in LINK.findall(text) if not (path.parent / target).exists()]


def check_paths(text, root, name):
    """Checks paths in `code` that start with a folder of the repository. In such a path, <slug> and * match any name."""
    problems = []
    for code in CODE.findall(text):
        word = code.split()[0].removeprefix("./") if code.split() else ""
        if not PATH.match(word) or word.partition("/")[0] not in FOLDERS or "/" not in word:
            continue
        if not list(Path(root).glob(re.sub(r"<[^>]*>", "*", word.rstrip("/")))):
            problems.append(f"{name}: {word} is not there")
    return problems


def plugin_options(root):
    """Returns the options that the plugin for pytest adds to those of pytest."""
    source = Path(root, "python/forksight/pytest_plugin.py").read_text()
    return set(re.findall(r'addoption\("(--[a-z-]+)"', source))


def check_options(text, options, name):
    """Checks options that stand in `code` without a verb. Only the text around such an option says to which verb it belongs, so
    this check accepts an option of any verb."""
    used = []
    for code in CODE.findall(text):
        if code.startswith("--") and not code.startswith("--preset"):
            used += OPTION.findall(code)
    return [f"{name}: {option} is in no --help of forksight" for option in sorted(set(used)) if option not in options]


def check_presets(text, presets, name):
    return [f"{name}: no preset {preset}" for preset in sorted(set(PRESET.findall(text))) if preset not in presets]


def check_cases(root):
    """Checks that every hazard that a case expects has a page."""
    problems = []
    for path in tracked_files(root):
        if path.relative_to(root).parts[0] == "repro" and path.suffix in (".c", ".cpp", ".py"):
            for slug in SLUG_IN_CASE.findall(path.read_text()):
                if not Path(root, "docs/hazards", slug + ".md").exists():
                    problems.append(f"{path.relative_to(root)}: {slug} has no docs/hazards/{slug}.md")
    return problems


def check_heads(root):
    """Checks that the head of each case names the mechanism, the culprit, what the user sees, and the fix. Each expectation must be on a
    line of its own, because the suite does not read an expectation within another line."""
    problems = []
    for path in tracked_files(root):
        name = path.relative_to(root)
        text = path.read_text() if name.parts[0] == "repro" and path.suffix in (".c", ".cpp", ".py") else ""
        comments = [line for line in text.splitlines() if COMMENT.match(line)]
        if not any(EXPECTATION.match(line) for line in comments):
            continue
        problems += [f"{name}: an expectation within a line: {line}" for line in comments if SECOND_EXPECTATION.search(line)]
        problems += [f"{name}: its head has no line '{key}:'" for key in HEAD if not any(re.match(rf"(?://|#) {key}: ", line) for line in comments)]
    return problems


def check(root, verbs):
    options, cases = {option for verb in verbs.values() for option in verb}, known_cases(root)
    presets = {preset["name"] for preset in json.loads(Path(root, "CMakePresets.json").read_text())["configurePresets"]}
    problems = check_cases(root) + check_heads(root)
    for path in tracked_files(root):
        if path.suffix != ".md":
            continue
        name, text = path.relative_to(root), path.read_text()
        problems += check_links(text, path, name) + check_paths(text, root, name)
        known = options | plugin_options(root) if str(name) == "docs/ci.md" else options
        problems += check_options(text, known, name) + check_presets(text, presets, name)
        problems += check_calls(text, verbs, cases, name)
    return problems


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--forksight", required=True)
    arguments = parser.parse_args()
    conclude(check(arguments.root, read_verbs(arguments.forksight)))
