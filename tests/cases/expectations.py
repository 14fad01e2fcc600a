"""What a case says of itself: the EXPECT lines and MARK comments of its source."""
import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

LINE = re.compile(r"^\s*(?://|#)\s*EXPECT(?P<kind>-[A-Z]+)?(?:\((?P<variant>[^)]*)\))?(?::\s*(?P<text>.*))?$")
MARK = re.compile(r"(?://|#)\s*MARK:\s*(?P<name>\S+)\s*$")
BARE = ("hang", "spin", "error", "ok")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
FIELDS = ("culprit", "lock", "holder", "start", "library", "victims", "merged")


class ExpectationError(Exception):
    """The case's own lines make no sense."""


@dataclass(frozen=True)
class Frame:
    function: str
    file: str
    line: int

    def __str__(self):
        return f"{self.function} ({self.file}:{self.line})"


@dataclass
class Expected:
    """One finding."""
    rule: str
    certainty: str
    outcome: str
    fields: dict = field(default_factory=dict)
    stacks: dict = field(default_factory=dict)  # culprit, stack, fork -> [Frame], innermost first


@dataclass
class Cure:
    """A run whose options change how the program ends: well, if nothing else is said."""
    options: list
    stdout: list
    outcome: str = "cured"
    status: int = 0
    says: list = field(default_factory=list)  # parts of the findings' sentences


@dataclass
class Expectations:
    bare: str
    findings: list
    cures: list
    why: list  # what `forksight why` finds of the bare program
    core: list = None  # what `forksight core` finds of its child's core; None: not asked
    options: list = field(default_factory=list)  # of every run under forksight


def find_marks(source):
    """{name: line} of one file's MARK comments."""
    marks = {}
    for number, text in enumerate(source.read_text().splitlines(), start=1):
        found = MARK.search(text)
        if not found:
            continue
        if found["name"] in marks:
            raise ExpectationError(f"{source}:{number}: MARK {found['name']} is there twice")
        marks[found["name"]] = number
    return marks


def parse_frame(text, source):
    """function@mark, or function@file:mark for a file beside the source."""
    function, at, place = text.partition("@")
    if not at:
        raise ExpectationError(f"frame {text}: write function@mark")
    file, colon, mark = place.rpartition(":")
    where = source.with_name(file) if colon else source
    marks = find_marks(where)
    if mark not in marks:
        raise ExpectationError(f"frame {text}: {where} has no MARK {mark}")
    return Frame(function, where.name, marks[mark])


def parse_finding(words):
    if len(words) < 3:
        raise ExpectationError("EXPECT: rule certainty outcome [field=value]")
    fields = {}
    for word in words[3:]:
        key, equals, value = word.partition("=")
        if not equals or key not in FIELDS:
            raise ExpectationError(f"EXPECT: {word}: fields are {', '.join(FIELDS)}")
        fields[key] = value
    return Expected(*words[:3], fields=fields)


def parse_run(words, kind):
    """EXPECT-CURED: options stdout="..."; EXPECT-RUN: options outcome=... status=... says="..."."""
    keys = ("stdout",) if kind == "-CURED" else ("stdout", "outcome", "status", "says")
    values = {key: [] for key in keys}
    options = []
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key in values:
            values[key].append(value)
        else:
            options.append(word)
    if kind == "-CURED":
        if not values["stdout"]:
            raise ExpectationError("EXPECT-CURED: say what the cured program prints: stdout=\"...\"")
        return Cure(options, values["stdout"])
    if len(values["outcome"]) != 1 or len(values["status"]) != 1 or not values["status"][0].isdigit():
        raise ExpectationError("EXPECT-RUN: say how it ends: outcome=error status=134")
    return Cure(options, values["stdout"], values["outcome"][0], int(values["status"][0]), values["says"])


def from_outside(finding):
    """The same of a process that nobody watched: where a lock was taken or a pool made, and how many handlers there
    are, is not known; libraries are files, not the names that they are linked by."""
    fields = dict(finding.fields)
    if "culprit" in fields:
        fields["culprit"] = re.sub(r" \(\d+\w\w of \d+\)$", "", fields["culprit"])
    if "library" in fields:
        fields["library"] = os.path.basename(os.path.realpath(os.path.join(LIBRARIES, fields["library"])))
    return Expected(finding.rule, finding.certainty, finding.outcome, fields,
                    {name: frames for name, frames in finding.stacks.items() if name == "stack"})


def select_lines(source, variant):
    """The lines that count for `variant`: of each kind its own ones, or else the ones without a name."""
    lines = []
    for number, text in enumerate(source.read_text().splitlines(), start=1):
        found = LINE.match(text)
        if found:
            lines.append((found["kind"] or "", found["variant"] or "", found["text"] or "", number))
    own_findings = any(kind in ("", "-NONE") and name == variant for kind, name, _, _ in lines)
    own_bare = any(kind == "-BARE" and name == variant for kind, name, _, _ in lines)
    own_why = any(kind in ("-WHY", "-UNKNOWN") and name == variant for kind, name, _, _ in lines)
    own_core = any(kind == "-CORE" and name == variant for kind, name, _, _ in lines)
    for kind, name, text, number in lines:
        own = {"-CORE": own_core, "-BARE": own_bare, "-WHY": own_why, "-UNKNOWN": own_why}.get(kind, own_findings)
        if name == (variant if own else ""):
            yield kind, text, number


def read_options(source):
    """EXPECT-OPTIONS: of all variants."""
    found = [LINE.match(text) for text in source.read_text().splitlines()]
    return [word for line in found if line and line["kind"] == "-OPTIONS" for word in shlex.split(line["text"] or "")]


def read_expectations(source, variant):
    source = Path(source)
    asked = read_options(source)
    if variant == "repaired":
        # A cure that is not needed changes nothing and says nothing.
        lines = [LINE.match(text) for text in source.read_text().splitlines()]
        return Expectations("ok", [], [parse_run(shlex.split(line["text"]), "-CURED") for line in lines
                                       if line and line["kind"] == "-CURED" and line["variant"] == "repaired"], [],
                            options=asked)
    bare, silent, findings, cures, why, core, unknown = "", False, [], [], [], None, ""
    for kind, text, number in select_lines(source, variant):
        words = shlex.split(text)
        if kind == "-BARE":
            bare = text.strip()
        elif kind == "-NONE":
            silent = True
        elif kind == "":
            findings.append(parse_finding(words))
        elif kind == "-WHY":
            why.append(parse_finding(words))
        elif kind == "-CORE":
            core = core or []
            if words != ["none"]:
                core.append(parse_finding(words))
        elif kind == "-UNKNOWN":
            unknown = text.strip()
        elif kind == "-OPTIONS":
            pass  # read_options
        elif kind in ("-CURED", "-RUN"):
            cures.append(parse_run(words, kind))
        elif kind == "-STACK":
            if not findings or len(words) < 2 or words[0] not in ("culprit", "stack", "fork"):
                raise ExpectationError(f"{source}:{number}: EXPECT-STACK: culprit|stack|fork function@mark..., after its EXPECT")
            findings[-1].stacks[words[0]] = [parse_frame(word, source) for word in words[1:]]
        else:
            raise ExpectationError(f"{source}:{number}: EXPECT{kind} is unknown")
    if bare not in BARE:
        raise ExpectationError(f"{source}: EXPECT-BARE must say one of {', '.join(BARE)}")
    if silent == bool(findings):
        raise ExpectationError(f"{source}: say what is found (EXPECT:), or that nothing is (EXPECT-NONE), and not both")
    if not why and not unknown:
        why = [from_outside(finding) for finding in findings]
    return Expectations(bare, findings, cures, why, core, asked)
