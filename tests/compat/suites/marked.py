"""Reads lines `@@ TEST RESULT`, which cpython_runner.py and the scripts in programs/ print."""
MARK = "@@ "


def parse(text, end):
    """Returns {test: result}. If a test began and did not end, its result says how the unit ended."""
    tests = {}
    for line in text.splitlines():
        if line.startswith(MARK):
            name, _, result = line.removeprefix(MARK).rpartition(" ")
            tests[name] = f"did not end: {end}" if result == "began" else result
    return tests or {"(no test told)": end}
