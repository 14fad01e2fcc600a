"""Writes docs/truth.md. Each command replaces its own part of the page, and does not change the other parts."""


def write_part(page, name, lines):
    """Replaces the part of the page that has this name. If the page has no such part, adds the part at the end."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = page.read_text() if page.exists() else ""
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    parts = [before.strip(), "\n".join([begin, *lines, end]), after.strip()]
    page.write_text("\n\n".join(part for part in parts if part) + "\n")
