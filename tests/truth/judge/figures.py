"""Counts of verdicts, and the page that shows them."""
import collections
import re

VERDICTS = ("right", "weaker", "silent", "hidden", "wrong", "harmed")
CERTAINTIES = ("proven", "likely", "possible", "unknown")


def without_numbers(text):
    return re.sub(r"(?:0x)?\b[0-9a-f]*\d[0-9a-f]*\b", "N", text).replace("|", "/")


class Figures:
    def __init__(self):
        self.scenarios = 0
        self.verdicts = collections.Counter()  # (mode, healthy, verdict)
        self.claims = collections.Counter()    # (mode, "hang" or "cause", certainty, whether the claim is true)
        self.rules = collections.Counter()     # (mode, rule, the wrong claim, the certainty of that claim)
        self.sentences = collections.Counter()  # (mode, answer: true, plain, false or unknown)
        self.texts = collections.Counter()     # (answer: false or unknown, rule, sentence without its numbers)

    def add(self, healthy, results):
        self.scenarios += 1
        for mode, (verdict, judged, _) in results.items():
            self.verdicts[mode, healthy, verdict] += 1
            for entry in judged:
                self.add_claims(mode, entry)

    def add_sentences(self, mode, entry):
        for answer, text, _ in entry.sentences:
            self.sentences[mode, answer] += 1
            if text:
                self.texts[answer, entry.rule, without_numbers(text)] += 1

    def add_claims(self, mode, entry):
        if entry.worth == "other":
            return
        self.add_sentences(mode, entry)
        self.claims[mode, "hang", entry.hang, entry.wrong != "hang"] += 1
        if entry.wrong != "hang" and entry.cause != "unknown":
            self.claims[mode, "cause", entry.cause, entry.wrong != "cause"] += 1
        if entry.wrong:
            self.rules[mode, entry.rule, entry.wrong, entry.hang if entry.wrong == "hang" else entry.cause] += 1

    def modes(self):
        return sorted({mode for mode, _, _ in self.verdicts if mode != "bare"}, key=("run", "why", "core").index)

    def verdict_table(self):
        lines = ["| mode | scenarios | " + " | ".join(VERDICTS) + " |", "|---|" + "---:|" * (len(VERDICTS) + 1)]
        for mode in self.modes():
            for healthy, name in ((True, "healthy"), (False, "hang")):
                counts = [self.verdicts[mode, healthy, verdict] for verdict in VERDICTS]
                lines.append(f"| `{mode}` | {sum(counts)} {name} | " + " | ".join(map(str, counts)) + " |")
        return lines

    def claim_table(self):
        lines = ["| mode | claim | certainty | made | false |", "|---|---|---|---:|---:|"]
        for mode in self.modes():
            for claim in ("hang", "cause"):
                for certainty in CERTAINTIES:
                    true, false = (self.claims[mode, claim, certainty, answer] for answer in (True, False))
                    if true + false:
                        lines.append(f"| `{mode}` | {'that it hangs' if claim == 'hang' else 'why'} | {certainty} | {true + false} | {false} |")
        return lines

    def rule_table(self):
        lines = ["| mode | rule | the false claim | certainty | findings |", "|---|---|---|---|---:|"]
        for (mode, rule, wrong, certainty), count in sorted(self.rules.items(), key=lambda row: (row[0][0], -row[1])):
            lines.append(f"| `{mode}` | {rule} | {'that it hangs' if wrong == 'hang' else 'why'} | {certainty} | {count} |")
        return lines

    def sentence_table(self):
        kinds = ("true", "plain", "false", "unknown")
        lines = ["| mode | " + " | ".join(kinds) + " |", "|---|" + "---:|" * len(kinds)]
        return lines + [f"| `{mode}` | " + " | ".join(str(self.sentences[mode, kind]) for kind in kinds) + " |" for mode in self.modes()]

    def texts_table(self, answer, most):
        rows = sorted(((count, rule, text) for (kind, rule, text), count in self.texts.items() if kind == answer), reverse=True)
        lines = ["| rule | sentence | times |", "|---|---|---:|"]
        return lines + [f"| {rule} | {text} | {count} |" for count, rule, text in rows[:most]]

    def part(self, command):
        disagreeing = sum(count for (mode, _, verdict), count in self.verdicts.items() if mode == "bare" and verdict == "disagrees")
        return ["## Verdicts", "", "This command wrote the figures:", "", f"    {command}", "",
                f"{self.scenarios:,} scenarios were played. Of these {disagreeing} were not judged, because the program did not do what the oracle says. The usual reason is a busy machine.", "",
                *self.verdict_table(), "",
                "### Claims", "", "Each finding makes two claims: that a process hangs, and why. A `possible` claim is only a candidate.", "", *self.claim_table(), "",
                "### False claims by rule", "", *self.rule_table(), "",
                "### Sentences", "", "The judge compares a sentence of \"Why\" with the oracle. It recognises a plain sentence by its text alone, and",
                "compares nothing. A sentence is unknown if no form matches it.", "", *self.sentence_table(), "",
                "False sentences:", "", *self.texts_table("false", 30), "", "The most frequent unknown sentences (numbers are replaced by N):", "", *self.texts_table("unknown", 30)]
