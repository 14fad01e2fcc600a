"""Makes the table of times and ratios, for the terminal and for docs/performance.md."""
import os
import platform
import re
import subprocess

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
OTHERS = (("empty", "an empty preload"), ("portable", "without assembly"), ("tsan", "TSan"), ("helgrind", "Helgrind"), ("drd", "DRD"))


def duration(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}" if nanoseconds < 100 * size else f"{nanoseconds / size:.0f} {unit}"
    return f"{nanoseconds:.1f} ns"


def ratio(measure, results, variant):
    value = results.ratio(measure, variant)
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _row(measure, results):
    times = [duration(time) for time in results.times(measure, "shim")]
    at_most = "" if measure.at_most is None else f"{measure.at_most:.2f}"
    cells = [measure.text, *times, ratio(measure, results, "shim"), at_most]
    return cells + [ratio(measure, results, variant) for variant, _ in OTHERS]


def table(measures, results):
    rows = [["", "bare", "with the shim", "ratio", "at most"] + [name for _, name in OTHERS]]
    rows += [_row(measure, results) for measure in measures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def over(measures, results):
    """Returns a line for each measure whose ratio exceeds its limit. The ratio is first rounded to two places, as in
    the table."""
    lines = []
    for measure in measures:
        if measure.at_most is not None and round(results.ratio(measure, "shim"), 2) > measure.at_most:
            lines.append(f"over: {measure.text}: {ratio(measure, results, 'shim')}, the limit is {measure.at_most:.2f}")
    return lines


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"^model name\s*: (.*)$", file.read(), re.M)
    libc = subprocess.run(["getconf", "GNU_LIBC_VERSION"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return f"{os.cpu_count()} CPUs ({model.group(1) if model else platform.machine()}), Linux {platform.release()}, {libc}"


def update(path, measures, results):
    text = path.read_text(encoding="utf-8")
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    load = f"load average {os.getloadavg()[2]:.1f} over the last fifteen minutes"
    middle = f"\nMeasured on {machine()}, {load}.\n\n{table(measures, results)}\n"
    path.write_text(text[:begin] + middle + text[end:], encoding="utf-8")
