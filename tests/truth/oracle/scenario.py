"""Reads a scenario from text, and writes it as text. ../README.md has the grammar."""
from dataclasses import dataclass, field

DESCRIPTORS = ("pipe", "socket", "eventfd", "timerfd", "fifo", "channel")
COUNTERS = ("eventfd", "timerfd")  # kinds with one descriptor, and a count in the kernel
STDIN = "stdin"


@dataclass(frozen=True)
class Object:
    kind: str
    name: str
    attributes: tuple = ()
    shared: bool = False
    number: int = 0
    at: str = ""  # the name of another object; after that object was destroyed, `make` creates this object in its memory


@dataclass(frozen=True)
class Step:
    thread: str
    operation: str
    arguments: tuple = ()
    begins: bool = False

    def __str__(self):
        return " ".join((self.thread, *(("!",) if self.begins else ()), self.operation, *self.arguments))


@dataclass
class Scenario:
    objects: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    forced: int = 0

    def object(self, name):
        return next(entry for entry in self.objects if entry.name == name)

    def has(self, *operations):
        return any(step.operation in operations for step in self.steps)

    def __str__(self):
        lines = []
        for entry in self.objects:
            words = [entry.kind, entry.name, *entry.attributes]
            words += [str(entry.number)] if entry.kind in ("sem", "barrier", "word", "eventfd") else []
            words += ["shared"] if entry.shared else []
            words += ["at", entry.at] if entry.at else []
            lines.append(" ".join(words))
        lines += ["--", *map(str, self.steps[:self.forced]), "free", *map(str, self.steps[self.forced:])]
        return "\n".join(lines) + "\n"


def parse_object(words):
    at = words[words.index("at", 2) + 1] if "at" in words[2:] else ""
    words = words[:words.index("at", 2)] if at else words
    shared = "shared" in words[2:]
    number = next((int(word) for word in words[2:] if word.isdigit()), 0)
    attributes = tuple(word for word in words[2:] if word != "shared" and not word.isdigit())
    return Object(words[0], words[1], attributes, shared, number, at)


def parse_step(words):
    begins = words[1] == "!"
    rest = words[2:] if begins else words[1:]
    return Step(words[0], rest[0], tuple(rest[1:]), begins)


def parse(text):
    scenario = Scenario(forced=-1)
    in_steps = False
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] == "--":
            in_steps = True
        elif words[0] == "free":
            scenario.forced = len(scenario.steps)
        elif in_steps:
            scenario.steps.append(parse_step(words))
        else:
            scenario.objects.append(parse_object(words))
    if scenario.forced < 0:
        scenario.forced = len(scenario.steps)
    return scenario
