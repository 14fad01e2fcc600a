"""The documents name only what exists: links, paths, options of the command, presets and slugs of hazards."""
import argparse
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
FOLDERS = ("abi", "analyzer", "bench", "cmake", "docs", "preload", "repro", "tests", "trace", ".ci")
SLUG_IN_CASE = re.compile(r"(?://|#)\s*EXPECT(?:\([^)]*\))?:\s*(\S+)")
COMMENT = re.compile(r"\s*(?://|#)\s")
EXPECTATION = re.compile(r"\s*(?://|#)\s*EXPECT-BARE:")
SECOND_EXPECTATION = re.compile(r"(?://|#)\s*\S.*\bEXPECT[-A-Z]*(?:\([^)]*\))?:")
HEAD = ("Mechanism", "To blame", "User sees", "Fix")
VERBS = ("run", "why", "core", "report", "explain", "suite list", "suite run", "suite check", "trace dump")


def known_options(forksight):
    """All options that the command's own help names."""
    options = {"--version"}
    for words in ([], *(verb.split() for verb in VERBS)):
        helped = subprocess.run([forksight, *words, "--help"], capture_output=True, text=True, check=True)
        options |= set(OPTION.findall(helped.stdout))
    return options


def check_links(text, path, name):
    return [f"{name}: link to {target}, which is not there" for target in LINK.findall(text) if not (path.parent / target).exists()]


def check_paths(text, root, name):
    """Paths in `code` that start with a folder of the repository; <slug> and * stand for anything."""
    problems = []
    for code in CODE.findall(text):
        word = code.split()[0].removeprefix("./") if code.split() else ""
        if not PATH.match(word) or word.partition("/")[0] not in FOLDERS or "/" not in word:
            continue
        if not list(Path(root).glob(re.sub(r"<[^>]*>", "*", word.rstrip("/")))):
            problems.append(f"{name}: {word} is not there")
    return problems


def check_options(text, options, name):
    """Options on every line that calls the command, and those alone in `code`."""
    used = []
    for line in text.splitlines():
        call = re.search(r"\bforksight (?:run|report|explain|suite|trace|--).*", line)
        if call:
            used += OPTION.findall(call.group().partition(" -- ")[0])
    for code in CODE.findall(text):
        if code.startswith("--") and not code.startswith("--preset"):
            used += OPTION.findall(code)
    return [f"{name}: {option} is in no --help of forksight" for option in sorted(set(used)) if option not in options]


def check_presets(text, presets, name):
    return [f"{name}: no preset {preset}" for preset in sorted(set(PRESET.findall(text))) if preset not in presets]


def check_cases(root):
    """Every rule that a case expects has its page."""
    problems = []
    for path in tracked_files(root):
        if path.relative_to(root).parts[0] == "repro" and path.suffix in (".c", ".cpp", ".py"):
            for slug in SLUG_IN_CASE.findall(path.read_text()):
                if not Path(root, "docs/hazards", slug + ".md").exists():
                    problems.append(f"{path.relative_to(root)}: {slug} has no docs/hazards/{slug}.md")
    return problems


def check_heads(root):
    """Each case says in its head who is to blame and what helps; expectations are lines of their own, or nobody reads them."""
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


def check(root, options):
    presets = {preset["name"] for preset in json.loads(Path(root, "CMakePresets.json").read_text())["configurePresets"]}
    problems = check_cases(root) + check_heads(root)
    for path in tracked_files(root):
        if path.suffix != ".md":
            continue
        name, text = path.relative_to(root), path.read_text()
        problems += check_links(text, path, name) + check_paths(text, root, name)
        problems += check_options(text, options, name) + check_presets(text, presets, name)
    return problems


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--forksight", required=True)
    arguments = parser.parse_args()
    conclude(check(arguments.root, known_options(arguments.forksight)))
