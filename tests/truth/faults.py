"""Plants a fault into a rule, and counts the scenarios that are played until the judge finds the fault.

  faults.py --build FOLDER --player BIN [--page FILE] [FAULT...]

Each fault is a changed copy of one source file of the analyzer. It is compiled and linked in a temporary folder, with the
build's own commands. The build itself does not change. All copies of `forksight` with a fault, and the copy without a fault, are
asked about the same hanging programs. A fault is found when its copy makes a false claim that the copy without a fault does not make.
"""
import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
sys.path[:0] = [str(HERE / "oracle"), str(HERE / "judge")]

from campaign import stop_on_signal, stream  # noqa: E402
from figures import without_numbers  # noqa: E402
from page import write_part  # noqa: E402
from stage import Disagrees, Performance, ask_why, become_reaper  # noqa: E402
from verdict import is_tolerated, judge  # noqa: E402

MOST = 2000  # the largest number of scenarios that are tried
LIBRARY = "forksight_diagnose"
RULES = "analyzer/diagnose/rules/"


@dataclass(frozen=True)
class Fault:
    rule: str
    file: str
    sound: str   # correct text of the file; every occurrence is replaced
    faulty: str  # the text that replaces it
    what: str


def in_rule(rule, sound, faulty, what):
    return Fault(rule, f"{RULES}{rule.replace('-', '_')}.cpp", sound, faulty, what)


FAULTS = (
    in_rule("orphaned-mutex", "locks::find_orphan(evidence, touch)", "locks::find_own(evidence, touch)", "blames a lost thread for a lock that the child's own thread held"),
    in_rule("orphaned-rwlock", "if (!by_reader && orphan->lock.kind != model::LockKind::kRwlockWrite) continue;", "",
            "accepts a lock of any kind as a rwlock"),
    in_rule("orphaned-semaphore", "finding.cause = evidence.find_cause(touch);", "finding.cause = Certainty::kProven;",
            "calls the holder of a semaphore proven"),
    in_rule("lost-wakeup", "finding.cause = Certainty::kPossible;", "finding.cause = Certainty::kProven;",
            "calls it proven that a lost thread should have woken the child"),
    in_rule("self-held-lock", "locks::find_own(evidence, touch)", "locks::find_any_orphan(evidence, touch)",
            "treats a lock of a lost thread as a lock of the child's own thread"),
    in_rule("self-deadlock", "cycle.size() != 1 || ", "", "does not check that the owner is the waiting thread"),
    in_rule("lock-cycle", "cycle.size() < 2 || ", "", "reports a ring that has only one thread"),
    in_rule("rwlock-upgrade", "if (!process.never_had_other_threads) finding.cause = Certainty::kPossible;", "",
            "calls it proven that the waiting writer is the reader, although the reader may be another thread"),
    in_rule("join-cycle", '    if (!has_child && !cycles::has_via(cycle, "join")) continue;\n', "", "reports rings without a join"),
    in_rule("abandoned-shared-lock", " || !wait.owner_is_gone", "", "does not check whether the owner is alive"),
    in_rule("pipe-deadlock", '    if (std::ranges::none_of(std::array{"pipe", "socket", "eventfd"}, carries_bytes)) continue;\n', "",
            "reports rings without a pipe"),
    in_rule("pipe-held-open", "!cycles::is_held_open(cycle) || ", "", "reports rings in which no process waits for the end of a pipe"),
    Fault("flock-deadlock", "analyzer/diagnose/wait_cycles.cpp", "for a lock of {}, which {} holds{}.\", who, descriptor(wait), other, by);",
          "for a lock of {}, which {} holds{}.\", who, descriptor(wait), fmt::format(\"process {}\", evidence.process(link.process).pid), by);",
          "names another process as the holder of a file's lock"),
    in_rule("deadlock", "set_may_be_intended(finding);", ";", "does not check for signal handlers that could end the wait"),
)


def included(file):
    """Returns the line by which a batch includes this file. A batch is a source file that a unity build makes: it includes several
    sources, which are compiled together."""
    return f'#include "{file}"\n'


class Plants:
    """Builds copies of `forksight` in one folder. Each copy has one fault."""

    def __init__(self, build, folder):
        self.build, self.folder = build, Path(folder)

    def commands(self, target):
        return subprocess.run(["ninja", "-C", self.build, "-t", "commands", "-s", target], capture_output=True, text=True, check=True).stdout

    def unit_of(self, source):
        """Returns (file, words of the command that compiles it). The file is the source itself, or the batch that includes the
        source."""
        entries = json.loads((self.build / "compile_commands.json").read_text())
        for entry in entries:
            unit = Path(entry["file"])
            if f"{LIBRARY}.dir/" not in entry["command"]:
                continue
            if unit == source or (unit.parent.name == "Unity" and included(source) in unit.read_text()):
                return unit, shlex.split(entry["command"])
        raise SystemExit(f"{self.build / 'compile_commands.json'} does not say how {source} becomes a part of {LIBRARY}")

    def plant(self, fault):
        """Builds a copy of `forksight` with this fault, and returns its path."""
        source = SOURCE / fault.file
        text = source.read_text()
        if fault.sound not in text:
            raise SystemExit(f"{fault.rule}: {fault.file} does not say `{fault.sound.strip()}` any more. Plant the fault anew: {fault.what}")
        changed = self.folder / f"{fault.rule}.cpp"
        changed.write_text(text.replace(fault.sound, fault.faulty))
        compiled, binary = self.folder / f"{fault.rule}.o", self.folder / fault.rule
        unit, words = self.unit_of(source)
        if unit != source:
            # The whole batch is compiled. So the linker finds all functions of the batch in the new object file, and
            # takes no unchanged function from the library.
            batch = self.folder / f"{fault.rule}.batch.cpp"
            batch.write_text(unit.read_text().replace(included(source), included(changed)))
            changed = batch
        words = [word for word in words if not re.fullmatch(r"-g\d?|-W.*", word)]
        words[words.index(str(unit))] = str(changed)
        words[words.index("-o") + 1] = str(compiled)
        self.call(words)
        link = shlex.split(self.commands("bin/forksight"))
        link = link[link.index("&&") + 1:]
        link = link[:link.index("&&")]
        at = link.index("-o")
        # The changed object file stands before the library, so the linker does not take the unchanged object file from
        # the library.
        self.call([*link[:at], str(compiled), "-s", "-o", str(binary), *link[at + 2:]])
        return binary

    def call(self, words):
        words = [word for at, word in enumerate(words) if word not in ("-MD", "-MT", "-MF") and words[at - 1] not in ("-MT", "-MF")]
        subprocess.run(words, cwd=self.build, check=True)


def without_times(text):
    """Replaces the times in a text. Two copies report the same hang with different times, because the copies examine
    the hang one after the other."""
    return re.sub(r"\bN(?:\.N)? (?:ms|s|min)\b", "N s", without_numbers(text))


def false_claims(truth, result):
    """Maps each false claim to a text that describes its finding. The key of a claim is (rule, process, "hang" or "cause", the
    certainty of the claim). The key of a false sentence is (rule, process, "sentence", the sentence)."""
    _, judged = judge(truth, result, "why")
    claims = {(entry.rule, entry.process, entry.wrong, entry.hang if entry.wrong == "hang" else entry.cause): str(entry)
              for entry in judged if entry.worth == "wrong" and not is_tolerated(entry, "why")}
    return claims | {(entry.rule, entry.process, "sentence", without_times(text)): f"{entry.rule} of {entry.process} says: {text}"
                     for entry in judged for answer, text, _ in entry.sentences if answer == "false"}


class Search:
    def __init__(self, sound, faulty, player):
        self.sound, self.open, self.player = sound, dict(faulty), player
        self.lock = threading.Lock()
        self.found = {}  # rule -> (seed, the false claim)

    def claims(self, scenario, truth):
        """Asks each copy whose fault is not found yet. Returns (rule, text) for each false claim about the copy's own rule that the
        copy makes, and that the command without a fault does not make."""
        with Performance(scenario, truth, self.player) as performance:
            performance.settle()
            claims = {rule: false_claims(truth, ask_why(performance, binary)) for rule, binary in list(self.open.items())}
            suspects = {rule: claim for rule, claim in claims.items() if claim}
            known = false_claims(truth, ask_why(performance, self.sound)) if suspects else {}
        return [(rule, claim[key]) for rule, claim in suspects.items() for key in claim if key not in known and key[0] == rule]

    def play(self, seed, scenario, truth):
        if truth.is_over():
            return
        try:
            claims = self.claims(scenario, truth)
        except Disagrees:
            return
        with self.lock:  # seeds that are played at the same time may show the same fault: the smallest seed counts
            for rule, claimed in claims:
                self.open.pop(rule, None)
                if rule not in self.found or seed < self.found[rule][0]:
                    self.found[rule] = (seed, claimed)
                    print(f"{rule}: after {seed} scenarios: {claimed}", flush=True)

    def run(self, jobs):
        stream(range(1, MOST + 1), jobs, self.play, is_enough=lambda: not self.open)


def table(faults, found):
    lines = ["| rule | the planted fault | scenarios until it was seen |", "|---|---|---:|"]
    return lines + [f"| {fault.rule} | {fault.what} | {found[fault.rule][0] if fault.rule in found else 'not found'} |" for fault in faults]


def part(faults, found):
    return ["## Planted faults", "",
            "How many random scenarios reveal a faulty rule? A copy of forksight is built with one fault in one rule. Its `why` explains",
            "the scenarios of the seeds 1, 2, 3, ..., until it makes a false claim that `why` without the fault does not make. At most",
            f"{MOST:,} scenarios are played. This command wrote the table:", "",
            "    tests/truth/faults.py --build FOLDER --player BIN --page docs/truth.md", "", *table(faults, found)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--player", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=8, help="scenarios at once: they sleep most of the time")
    parser.add_argument("--page", type=Path, help="writes the figures into this page")
    parser.add_argument("rules", nargs="*", metavar="FAULT")
    arguments = parser.parse_args()
    become_reaper()
    stop_on_signal()
    faults = [fault for fault in FAULTS if not arguments.rules or fault.rule in arguments.rules]
    with tempfile.TemporaryDirectory(prefix="truth-faults-") as folder:
        plants = Plants(arguments.build.resolve(), folder)
        sound = shutil.copy(arguments.build / "bin/forksight", Path(folder) / "sound")  # a copy, because the build may replace the file meanwhile
        search = Search(sound, {fault.rule: plants.plant(fault) for fault in faults}, arguments.player.resolve())
        search.run(arguments.jobs)
    if arguments.page:
        write_part(arguments.page, "faults", part(faults, search.found))
    for rule in search.open:
        print(f"{rule}: not found in {MOST} scenarios")
    return 1 if search.open else 0


if __name__ == "__main__":
    sys.exit(main())
