"""Makes Markdown tables of figures, and writes them into a page between <!-- NAME: begin --> and <!-- NAME: end -->."""
import re
import statistics


def three_digits(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def shown(measure, seconds):
    """Returns the text of a figure in the unit of its measure. `seconds`: the time of one message."""
    if measure.unit == "us":
        return f"{three_digits(seconds * 1e6)} us" if seconds < 1e-3 else f"{three_digits(seconds * 1e3)} ms"
    if measure.unit == "GiB/s":
        return three_digits(measure.bytes / seconds / (1 << 30))
    return f"{three_digits(1 / seconds / 1e6)} M" if seconds < 1e-6 else f"{1 / seconds / 1e3:.0f} k"


def grid(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in [header, *rows]]
    lines.insert(1, "-|-".join("-" * width for width in widths))
    return "".join(f"| {line} |\n" if i != 1 else f"|-{line}-|\n" for i, line in enumerate(lines))


def of_transports(names, measures, taken, ratio):
    rows = []
    for name in names:
        row = [name]
        for measure in measures:
            values = [value for value in taken.get((name, measure.key), []) if value]
            times = ratio(taken, name, measure.key)
            if measure.unit != "us" and times:
                times = 1 / times
            row.append(f"{shown(measure, statistics.median(values))} ({times:.2g})" if values and times
                       else shown(measure, statistics.median(values)) if values else "")
        rows.append(row)
    header = ["", *[f"{measure.text}, {measure.unit}" if measure.unit == "GiB/s" else measure.text for measure in measures]]
    return grid(header, rows)


def of_gates(rows):
    return grid(["gate", "measured", "wanted", ""], [[what, figure, limit, "met" if met else "**missed**"]
                                                     for what, figure, limit, met in rows])


def bars(rows, width=40):
    """Returns a bar for each (label, value, text), as lines of preformatted text. The longest bar has `width` marks."""
    most = max(value for _, value, _ in rows)
    wide = max(len(label) for label, _, _ in rows)
    lines = (f"    {label.rjust(wide)}  {'#' * max(1, round(width * value / most))} {text}" for label, value, text in rows)
    return "".join(f"{line}\n" for line in lines)


def update(path, parts):
    text = path.read_text()
    for name, part in parts.items():
        text, count = re.subn(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)",
                              lambda found, part=part: found[1] + part + found[2], text, flags=re.DOTALL)
        if count != 1:
            raise SystemExit(f"{path}: there is no single pair of marks <!-- {name}: begin --> and <!-- {name}: end -->")
    path.write_text(text)
