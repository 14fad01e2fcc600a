"""A report against what a case expects: each difference is one line of text."""
import os


def base(path):
    return os.path.basename(path or "")


def plain(function):
    """worker_main(void*) -> worker_main; sum._omp_fn.0 and push.isra.0 -> sum, push."""
    return (function or "").partition("(")[0].partition(".")[0].strip()


def describe(finding):
    culprit = finding.get("culprit") or {}
    return (f"{finding.get('rule')} {finding.get('certainty')} {finding.get('outcome')}: "
            f"{culprit.get('name')} | {finding.get('summary')}")


def actual_field(finding, key):
    culprit = finding.get("culprit") or {}
    holder = culprit.get("holder") or {}
    return {
        "culprit": lambda: culprit.get("name"),
        "lock": lambda: (culprit.get("name") or "").partition(" (")[0] if culprit.get("kind") == "lock" else None,
        "holder": lambda: holder.get("name"),
        "start": lambda: plain(holder.get("start_routine")),
        "library": lambda: base(culprit.get("library")),
        "victims": lambda: str(len(finding.get("victims") or [])),
        "merged": lambda: str(finding.get("count", 1)),
    }[key]()


def actual_stack(finding, name):
    if name == "stack":
        return finding.get("stack") or []
    return (finding.get(name) or {}).get("stack") or []


def user_frames(stack, files):
    """The frames in the case's own files, innermost first."""
    return [frame for frame in stack if base(frame.get("file")) in files]


def show_stack(stack):
    return [f"      {frame.get('function')} ({base(frame.get('file'))}:{frame.get('line')})"
            f"{' approximate' if frame.get('approximate') else ''} in {base(frame.get('module'))}" for frame in stack]


def compare_stack(finding, name, expected):
    """The expected frames are the innermost user frames, one after the other."""
    stack = actual_stack(finding, name)
    seen = user_frames(stack, {frame.file for frame in expected})
    same = len(seen) >= len(expected) and all(
        plain(got.get("function")) == want.function and base(got.get("file")) == want.file and got.get("line") == want.line
        for got, want in zip(seen, expected))
    if same:
        return []
    return ([f"    {name}: expected, innermost first:"] + [f"      {frame}" for frame in expected] +
            ["    the report has:"] + (show_stack(stack) or ["      (no stack)"]))


def compare_finding(finding, expected):
    lines = []
    for key in ("certainty", "outcome"):
        if finding.get(key) != getattr(expected, key):
            lines.append(f"    {key}: expected {getattr(expected, key)}, the report has {finding.get(key)}")
    for key, value in expected.fields.items():
        actual = actual_field(finding, key)
        if actual != value:
            lines.append(f"    {key}: expected {value}, the report has {actual}")
    for name, frames in expected.stacks.items():
        lines += compare_stack(finding, name, frames)
    if lines:
        lines.insert(0, f"  {expected.rule}: {finding.get('summary')}")
    return lines


def compare_findings(report, expected):
    """Each expected finding once, and nothing else."""
    left = list(report.get("findings", []))
    lines = []
    for want in expected:
        candidates = [finding for finding in left if finding.get("rule") == want.rule]
        if not candidates:
            lines.append(f"  expected {want.rule} {want.certainty} {want.outcome}: not in the report")
            continue
        best = min(candidates, key=lambda finding: len(compare_finding(finding, want)))
        left.remove(best)
        lines += compare_finding(best, want)
        if "merged" not in want.fields and best.get("count", 1) != 1:
            lines.append(f"  {want.rule}: merged {best['count']} times, expected once")
    lines += [f"  not expected: {describe(finding)}" for finding in left]
    return lines


def compare_ended(report, expected, outcome, says):
    """What was expected as a hang is there still, with the outcome of this run, and nothing else; "none": not even that,
    because what the run did leaves no trace of it."""
    findings = report.get("findings", [])
    got = sorted((finding.get("rule"), finding.get("outcome")) for finding in findings)
    want = [] if outcome == "none" else sorted((finding.rule, outcome) for finding in expected)
    lines = []
    if got != want:
        lines = ["  expected: " + (", ".join(" ".join(pair) for pair in want) or "nothing")] + \
                [f"  the report has: {describe(finding)}" for finding in findings]
    told = " ".join(" ".join(finding.get("chain") or []) for finding in findings)
    return lines + [f"  no finding says: {part}" for part in says if part not in told]
