"""Runs units of other projects' tests in four modes, and keeps each run as a line of JSON.

A suite yields units. A unit is one command. Its output gives a result for each test. The modes are `bare`, `shim` (LD_PRELOAD
alone), `run` (`forksight run`) and `cure` (`forksight run --cure=auto`). A run that is kept is not made again. So a comparison
that was interrupted goes on where it stopped. Kept runs of another build of forksight are ignored. Kept bare runs are always
used.
"""
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

MODES = ("bare", "shim", "run", "cure")
BARE_RUNS = 2
# While a result in a mode differs from the results of the bare runs, the unit is run again, bare and in that mode, at
# most TRIES_AGAIN times.
TRIES_AGAIN = 2
TIMEOUT_S = 20
KEPT_OUTPUT = 4000
# A test gets the variables in ENVIRONMENT and those of its unit, and no others.
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp",
               "TMPDIR": "/tmp", "USER": "root", "TERM": "dumb"}


@dataclasses.dataclass
class Unit:
    """One command.

    `parse` makes {test: result} from the output of the command, and from how the command ended. Without `parse`, the
    unit is one test.
    """
    name: str
    command: list
    folder: str = "/tmp"
    environment: dict = dataclasses.field(default_factory=dict)
    seconds: int = TIMEOUT_S
    parse: object = None
    # The modes in which the unit is run.
    modes: tuple = MODES
    # True if the command is a script that gets the words of the mode as arguments. The script puts these words before
    # the programs that it starts. False if the words of the mode come before the command.
    words_last: bool = False


class Tools:
    """The files that a comparison needs: the shim, the command, and the program that isolates a test."""

    def __init__(self, build):
        # absolute() keeps a symbolic link. LD_PRELOAD cannot name a path with a blank, but it can name a link to that path.
        build = Path(build).absolute()
        self.shim = build / "lib/libforksight.so"
        self.forksight = build / "bin/forksight"
        self.isolate = build / "bin/compat_isolate"
        missing = [str(path) for path in (self.shim, self.forksight, self.isolate) if not path.exists()]
        if missing:
            raise SystemExit(f"compat: not built: {', '.join(missing)}")
        self.check()
        digest = hashlib.sha256(self.shim.read_bytes() + self.forksight.read_bytes())
        self.build = digest.hexdigest()[:16]

    def check(self):
        """Checks that an isolated program loads the shim. If the shim were hidden, for example because it is below /tmp, all tests would
        run bare."""
        with tempfile.TemporaryDirectory() as folder:
            command = [str(self.isolate), "30", f"{folder}/end", "env", f"LD_PRELOAD={self.shim}", "cat", "/proc/self/maps"]
            maps = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
        if str(self.shim.resolve()) not in maps.stdout:
            raise SystemExit(f"compat: an isolated program does not load {self.shim}: {maps.stderr.strip()}")

    def words(self, mode, out):
        """Returns the words that a mode puts before a command."""
        if mode == "bare":
            return []
        if mode == "shim":
            return ["env", f"LD_PRELOAD={self.shim}", f"FORKSIGHT_OUT={out}/traces"]
        cure = ["--cure=auto"] if mode == "cure" else []
        return [str(self.forksight), "run", "-q", "--format", "json", "--report", f"{out}/report.json", "--out", f"{out}/traces",
                *cure, "--"]


def findings_in(report, end):
    try:
        text = report.read_text()
        if end == "timeout" and not text:
            return []  # forksight was killed before it wrote the report
        findings = json.loads(text)["findings"]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError) as error:
        return [{"rule": "unreadable-report", "harm": "proven", "outcome": "error", "summary": str(error)}]
    return [{"certainty": finding.get("hang", finding.get("harm", finding.get("certainty"))),
             **{key: finding.get(key) for key in ("rule", "outcome", "summary", "count")}} for finding in findings]


def placed(unit, words):
    return [*unit.command, *words] if unit.words_last else [*words, *unit.command]


def run_unit(tools, unit, mode, scratch):
    """Makes one run. Returns the line that the results keep about it."""
    out = Path(tempfile.mkdtemp(prefix="run-", dir=scratch))
    (out / "traces").mkdir()
    os.chmod(out, 0o777)
    os.chmod(out / "traces", 0o1777)
    command = [str(tools.isolate), str(unit.seconds), str(out / "end"), *placed(unit, tools.words(mode, out))]
    started = time.monotonic()
    with open(out / "output", "wb") as output:
        subprocess.run(command, cwd=unit.folder, env={**ENVIRONMENT, **unit.environment}, stdin=subprocess.DEVNULL, stdout=output,
                       stderr=subprocess.STDOUT, check=False, timeout=unit.seconds + 60)
    seconds = round(time.monotonic() - started, 2)
    end = (out / "end").read_text() or "lost"
    text = (out / "output").read_bytes().decode(errors="replace")
    tests = unit.parse(text, end) if unit.parse else {unit.name: end}
    line = {"unit": unit.name, "mode": mode, "end": end, "seconds": seconds, "tests": tests}
    if mode in ("run", "cure"):
        line["findings"] = findings_in(out / "report.json", end)
    if mode != "bare":
        line["build"] = tools.build
    if end != "0" or line.get("findings"):
        line["output"] = text[-KEPT_OUTPUT:]
    shutil.rmtree(out, ignore_errors=True)
    return line


class Kept:
    """The kept runs of one suite, in a file of JSON lines.

    Kept runs without forksight are always used. Kept runs with forksight are used only if `build` made them. If `build` is None, a
    unit may have runs of several builds in one mode. Only those of the latest build are then used.
    """

    def __init__(self, path, build):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.runs = {}
        if self.path.exists():
            for text in self.path.read_text().splitlines():
                try:
                    line = json.loads(text)
                except ValueError:
                    continue  # a line that was not written completely, because the comparison was killed
                if line["mode"] == "bare" or build is None or line.get("build") == build:
                    runs = self.runs.setdefault((line["unit"], line["mode"]), [])
                    if runs and runs[-1].get("build") != line.get("build"):
                        runs.clear()
                    runs.append(line)

    def of(self, unit, mode):
        return self.runs.get((unit, mode), [])

    def add(self, line):
        self.runs.setdefault((line["unit"], line["mode"]), []).append(line)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def differences(bare_runs, runs):
    """Returns {test: (bare results, result)} for each test whose last result in a mode differs from all bare results."""
    last = runs[-1]
    names = {name for run in bare_runs for name in run["tests"]}
    found = {}
    for name in names:
        bare = {run["tests"].get(name, "missing") for run in bare_runs}
        result = last["tests"].get(name, "missing")
        if result not in bare:
            found[name] = (sorted(bare), result)
    ends = {run["end"] for run in bare_runs}
    if not found and last["end"] not in ends:
        found["(exit status)"] = (sorted(ends), last["end"])
    return found


def compare_unit(tools, unit, kept, scratch):
    """Makes the runs of a unit that are missing.

    If a result in a mode differs, the unit is run again, bare and in that mode. This shows whether the difference is
    chance.
    """
    while len(kept.of(unit.name, "bare")) < BARE_RUNS:
        kept.add(run_unit(tools, unit, "bare", scratch))
    for mode in unit.modes[1:]:
        if not kept.of(unit.name, mode):
            kept.add(run_unit(tools, unit, mode, scratch))
        tries = len(kept.of(unit.name, mode)) - 1
        while tries < TRIES_AGAIN and differences(kept.of(unit.name, "bare"), kept.of(unit.name, mode)):
            kept.add(run_unit(tools, unit, "bare", scratch))
            kept.add(run_unit(tools, unit, mode, scratch))
            tries += 1


def compare(tools, units, kept, jobs, say):
    """Makes the missing runs of all units, `jobs` units at a time."""
    done = 0
    with tempfile.TemporaryDirectory(prefix="compat-", dir=kept.path.parent) as scratch:
        os.chmod(scratch, 0o755)  # servers give up root's rights, and then write traces below this folder
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            work = {pool.submit(compare_unit, tools, unit, kept, scratch): unit for unit in units}
            for future in concurrent.futures.as_completed(work):
                done += 1
                future.result()
                if done % 50 == 0 or done == len(work):
                    say(f"{done} of {len(work)} units")
