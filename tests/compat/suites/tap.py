"""Reads results in the Test Anything Protocol."""
import re

LINE = re.compile(r"^(ok|not ok) \d+ *-? *(.*)$", re.M)


def parse(text, end):
    """Returns {name: ok, failed or skipped}. If several tests have the same name, the names of the later ones get a number."""
    tests = {}
    for result, rest in LINE.findall(text):
        name, _, directive = rest.partition(" # ")
        word = "skipped" if directive.upper().startswith("SKIP") else {"ok": "ok", "not ok": "failed"}[result]
        name = name.strip() or "?"
        same = sum(1 for known in tests if known.partition(" #")[0] == name)
        tests[f"{name} #{same + 1}" if same else name] = word
    return tests or {"(no test told)": end}
