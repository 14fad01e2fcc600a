"""Lines `@@ TEST RESULT`, which the runners of this folder print."""
MARK = "@@ "


def parse(text, end):
    """A test that began and did not end is known by the end of the unit."""
    tests = {}
    for line in text.splitlines():
        if line.startswith(MARK):
            name, _, result = line.removeprefix(MARK).rpartition(" ")
            tests[name] = f"did not end: {end}" if result == "began" else result
    return tests or {"(no test told)": end}
