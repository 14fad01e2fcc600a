"""Tests what happens if system calls of the shim fail.

  faults_test.py FORKSIGHT SHIM GUEST STRACE SHORT_CALLS PAGE [--all | --write]

The test runs GUEST many times. In each run one system call of the shim fails once, or always, with one of the errors that
the kernel may return. strace injects the failures. For each call, strace prints the address of the instruction that
made the call. So the test knows whether the shim made the call. SHORT_CALLS makes the shim's calls read and write fewer
bytes than the shim asked for.

GUEST must print what it prints without the shim, and end with the same status. There may be no trace.
If there is a trace, it must have the same facts as without a failure, or the report must say that facts are missing.

Without an option, each call fails at one place. With --all, each call fails at up to twelve places, and the table in PAGE
must be equal to the results. --write writes this table.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

MODE = sys.argv.pop() if sys.argv[-1] in ("--all", "--write") else ""
PAGE, SHORT_CALLS, STRACE, GUEST, SHIM, FORKSIGHT = (Path(sys.argv.pop()).absolute() for _ in range(6))
SHIM = str(SHIM)
LIMIT_S = 60
ANY = ("EPERM", "EINTR")
LASTING = ("ENOSPC", "EMFILE", "ENFILE", "ENOMEM", "EPERM")  # with these errors, the test also lets all calls of one kind fail
# Errors that the kernel, or a filter of system calls, may return. The test also tries EINTR and EPERM for each call.
ERRORS = {"openat": ("EMFILE", "ENFILE", "ENOMEM", "ENOSPC", "EACCES"), "read": ("EIO", "0"), "mmap": ("ENOMEM",), "munmap": ("ENOMEM",), "mremap": ("ENOMEM",),
          "fallocate": ("ENOSPC", "EOPNOTSUPP"), "ftruncate": ("ENOSPC", "EIO"), "write": ("ENOSPC", "EIO"), "pipe2": ("EMFILE", "ENFILE"), "close": ("EIO",),
          "process_vm_readv": ("ENOSYS", "ENOMEM"), "readlinkat": ("ENOMEM", "EACCES"), "newfstatat": ("ENOMEM", "EACCES"), "fstat": ("EIO",), "mprotect": ("ENOMEM",),
          "madvise": ("ENOMEM", "EINVAL"), "prctl": ("EINVAL",), "getcwd": ("ENOENT",), "fcntl": ("EINVAL",), "prlimit64": ("EINVAL",), "tgkill": ("EAGAIN",),
          "unlinkat": ("EACCES",), "kcmp": ("ENOSYS",), "membarrier": ("ENOSYS",)}
# The shim's calls that may transfer fewer bytes than asked. The shim uses `write` only if process_vm_readv is refused.
SHORT = {"read": (), "process_vm_readv": (), "write": ("--refuse", "process_vm_readv")}
# If the shim makes one of these calls, SHORT must contain the call. The calls of the shim are in LIST_OF_CALLS, which
# tests/audit/check_calls.py checks.
TRANSFERS = {"read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2", "getdents64", "process_vm_readv",
             "process_vm_writev", "sendfile", "splice", "copy_file_range", "sendto", "recvfrom", "sendmsg", "recvmsg", "getrandom"}
FEWER = "fewer bytes"
LIST_OF_CALLS = Path(__file__).parents[2] / "preload/guest/shim_calls.def"
WHOLE, LESS, NONE = "the trace is whole", "the trace says what is missing", "there is no trace"
CALL = re.compile(r"^(\d+) +\[([0-9a-f?]+)\] +(?:(\w+)\(|<\.\.\. (\w+) resumed)(.*)$")
BEGIN, END = "<!-- made by tests/shim/faults_test.py -->\n", "<!-- end of the table -->\n"


class Calls:
    """The system calls in a log of strace, and which of them the shim made."""

    def __init__(self, log):
        self.of_shim, self.injected, counts, ranges, opened = collections.defaultdict(set), [], collections.Counter(), [], set()
        for line in log.splitlines():
            found = CALL.match(line)
            if not found:
                continue
            pid, address, begun, resumed, rest = found.groups()
            name = begun or resumed
            if begun == "openat" and SHIM in rest and " = " in rest:
                opened.add(pid)
            placed = re.match(r"NULL, (\d+), PROT_READ.* = (0x[0-9a-f]+)$", rest) if begun == "mmap" and pid in opened else None
            if placed:
                opened.discard(pid)
                ranges.append(range(int(placed[2], 16), int(placed[2], 16) + int(placed[1])))
            is_of_shim = "?" not in address and any(int(address, 16) in one for one in ranges)
            if begun:
                counts[pid, name] += 1
                if is_of_shim:
                    self.of_shim[name].add(counts[pid, name])
            if rest.endswith("(INJECTED)"):
                self.injected.append(is_of_shim)


class ShortCalls:
    """The calls in a log of SHORT_CALLS: the largest number of calls of one thread, and the results of the shortened calls."""

    def __init__(self, log):
        rows = [[int(word) for word in line.split()] for line in log.splitlines()]
        self.most_calls = max([number for _, number, *_ in rows], default=0)
        self.shortened = [answer for _, _, asked, let_through, answer in rows if let_through < asked]


def ticks_since_boot():
    return time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")


class Run:
    """A run of the guest: under SHORT_CALLS if `short` is given, otherwise under strace."""

    def __init__(self, *options, guest=GUEST, short=None):
        with tempfile.TemporaryDirectory(prefix="forksight-faults-") as folder:
            log, out = Path(folder, "log"), Path(folder, "out")
            out.mkdir()
            variables = {"LD_PRELOAD": SHIM, "FORKSIGHT_OUT": str(out)}
            command = [STRACE, "-f", "-i", "-qq", "-e", "signal=none", "-o", log, *(f"-E{key}={value}" for key, value in variables.items()), *options, guest]
            if short:
                # SHORT_CALLS looks for the shim in the list of mappings, which has its real path.
                command = [SHORT_CALLS, Path(SHIM).resolve(), log, *short, "/usr/bin/env", *(f"{key}={value}" for key, value in variables.items()), guest]
            began = ticks_since_boot()
            done = subprocess.run(command, cwd=Path(GUEST).parent, capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.behaviour = (done.returncode, done.stdout, done.stderr)
            self.calls = (ShortCalls if short else Calls)(log.read_text(errors="replace"))
            self.has_trace = any(out.glob("*.fstrace"))
            self.lies = [lie for trace in out.glob("*.fstrace") for lie in lies_of_header(trace, str(guest), began)]
            told = subprocess.run([FORKSIGHT, "report", out, "--format", "json"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.report = json.loads(told.stdout) if told.returncode in (0, 1) else None
            self.problem = told.stderr

    def facts(self):
        """Returns the forks and findings of the report, without numbers that differ from run to run."""
        told = []
        for fork in self.report["forks"]:
            stack = tuple(frame["function"] for frame in fork["stack"])
            told.append((fork["error"], fork["lost_threads"], fork["held_locks"], fork["threads_before"], fork["threads_after"], len(fork["thread_pools"]), stack))
        return collections.Counter(told), collections.Counter((one["rule"], one["outcome"]) for one in self.report["findings"])


def lies_of_header(trace, guest, began):
    """Yields the false facts of a trace's header. A start time of 0 and an empty command line are not false: the shim could not
    read the fact. A shortened command line is not false if the header says that it is cut."""
    done = subprocess.run([FORKSIGHT, "trace", "dump", trace, "--format", "jsonl"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if not done.stdout:
        return
    header = json.loads(done.stdout.splitlines()[0])["fields"]
    if header["start_ticks"] != 0 and not began - 1 <= header["start_ticks"] <= ticks_since_boot() + 1:
        yield f"the trace claims the start time {header['start_ticks']}"
    if header["cmdline"] not in ("", guest) and not ("kCmdlineCut" in header["flags"] and guest.startswith(header["cmdline"])):
        yield f"the trace claims the command line {header['cmdline']}"


def judge(run, good):
    """Returns the state of the trace (WHOLE, LESS or NONE), and the text of the problem, which is "" if the run is right."""
    if run.behaviour != good.behaviour:
        return "", f"the program did {run.behaviour}, and without a failure {good.behaviour}"
    if run.lies:
        return "", run.lies[0]
    if not run.has_trace:
        return NONE, ""
    if run.report is None:
        return (NONE, "") if "fstrace" in run.problem else ("", f"the report failed: {run.problem}")
    forks, findings = run.facts()
    good_forks, good_findings = good.facts()
    if (forks, findings) == (good_forks, good_findings):
        return WHOLE, ""
    without_stacks = lambda all_forks: collections.Counter(fork[:-1] for fork in all_forks.elements())
    if without_stacks(forks) - without_stacks(good_forks) or findings - good_findings:
        return "", f"the trace claims {forks}, {findings} instead of {good_forks}, {good_findings}"
    if run.report["limits"] == good.report["limits"]:
        return "", f"the trace lacks something and does not say so: {forks}, {findings} instead of {good_forks}, {good_findings}"
    return LESS, ""


class Faults:
    def __init__(self, most_places):
        self.good = Run()
        self.most = most_places
        self.outcomes, self.problems, self.tried, self.missed = {}, [], 0, collections.Counter()

    def places(self, name):
        numbers = sorted(self.good.calls.of_shim[name])
        step = max(1, -(-len(numbers) // self.most))
        return [str(number) for number in sorted(set(numbers[::step]) | {numbers[-1]})]

    def try_all(self):
        for name in sorted(self.good.calls.of_shim):
            for error in sorted({*ANY, *ERRORS.get(name, ())}):
                for place in self.places(name):
                    self.try_one(name, error, place)
                if error in LASTING:
                    self.try_one(name, error, self.places(name)[0] + "+")

    def try_one(self, name, error, place):
        how = f"retval={error}" if error.isdigit() else f"error={error}"
        try:
            run = Run("-e", f"inject={name}:{how}:when={place}")
        except subprocess.TimeoutExpired:
            self.problems.append(f"{name} number {place} fails with {error}: the program hangs")
            return
        # strace counts the calls of each thread separately, and `place` is the number of a call in its thread. So the
        # failure may have hit calls in several threads, and some of these may be calls of libc or of the program.
        if not run.calls.injected or not all(run.calls.injected):
            self.missed[name] += 1
            return
        self.tried += 1
        outcome, problem = judge(run, self.good)
        if problem:
            self.problems.append(f"{name} number {place} fails with {error}: {problem}")
        else:
            self.outcomes.setdefault(name, {}).setdefault(error, set()).add(outcome)

    def try_short(self, most_places):
        """Makes calls of the shim transfer only one byte, or half of their bytes: first one call in each run, then all calls."""
        for name, options in SHORT.items():
            good = Run(short=(name, "none", "one", *options))
            count = good.calls.most_calls
            problem = judge(good, self.good)[1]
            if problem or count == 0:
                self.problems.append(f"{name} with {options}: {count} calls; {problem}")
                continue
            step = max(1, -(-count // most_places))
            for amount in ("one", "half"):
                for place in [*range(1, count + 1, step), "all"]:
                    self.try_short_one(name, str(place), amount, options)

    def try_short_one(self, name, place, amount, options):
        where = f"{name} number {place} gets {amount} of its bytes"
        try:
            run = Run(short=(name, place, amount, *options))
        except subprocess.TimeoutExpired:
            self.problems.append(f"{where}: the program hangs")
            return
        if not run.calls.shortened:  # the call asked for one byte, which cannot be shortened
            return
        self.tried += 1
        outcome, problem = judge(run, self.good)
        if problem:
            self.problems.append(f"{where}: {problem}")
        else:
            self.outcomes.setdefault(name, {}).setdefault(FEWER, set()).add(outcome)

    def table(self):
        rows = ["| call | answers | what became of the trace |\n", "|---|---|---|\n"]
        for name, by_error in sorted(self.outcomes.items()):
            words = ["0 bytes" if error == "0" else FEWER if error == FEWER else f"`{error}`" for error in sorted(by_error)]
            outcomes = set().union(*by_error.values())
            rows.append(f"| `{name}` | {', '.join(words)} | {'; or '.join(word for word in (WHOLE, LESS, NONE) if word in outcomes)} |\n")
        return "".join(rows)


class Shim(unittest.TestCase):
    def test_a_program_whose_path_is_not_known(self):
        """The program is started by a relative path, and the shim cannot read the link in /proc to its file. The report must say
        that something is missing."""
        guest = f"./{Path(GUEST).name}"
        good = Run(guest=guest)
        lacking = 0
        for place in sorted(good.calls.of_shim["readlinkat"]):
            run = Run("-e", f"inject=readlinkat:error=EACCES:when={place}", guest=guest)
            outcome, problem = judge(run, good)
            self.assertEqual(problem, "", place)
            lacking += outcome == LESS
        self.assertGreater(lacking, 0)

    def test_each_call_fails_once(self):
        faults = Faults(12 if MODE else 1)
        bare = subprocess.run([GUEST], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(faults.good.behaviour, (bare.returncode, bare.stdout, bare.stderr))
        self.assertEqual(len(faults.good.report["forks"]), 2, faults.good.report)
        faults.try_all()
        faults.try_short(12 if MODE else 1)
        print(f"{faults.tried} failures of {len(faults.outcomes)} calls; {sum(faults.missed.values())} places were left out, because the failure hit other calls",
              file=sys.stderr)
        self.assertEqual(faults.problems, [])
        self.assertGreater(len(faults.outcomes), 8, faults.outcomes)
        listed = set(re.findall(r"^FORKSIGHT_(?:LOADER_)?CALL\(SYS_(\w+)\)", LIST_OF_CALLS.read_text(), re.MULTILINE))
        self.assertEqual(listed & TRANSFERS, set(SHORT))
        for name in SHORT:
            self.assertIn(FEWER, faults.outcomes[name])
        text = PAGE.read_text()
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        if MODE == "--write":
            PAGE.write_text(before + BEGIN + faults.table() + END + after)
        elif MODE == "--all":
            self.assertIn(BEGIN + faults.table() + END, text)
        else:
            named = set(re.findall(r"^\| `(\w+)` \|", text.partition(BEGIN)[2].partition(END)[0], re.MULTILINE))
            self.assertEqual(set(faults.outcomes) - named, set(), "the table in docs/security.md lacks calls: run this with --write")


if __name__ == "__main__":
    unittest.main()
