"""reader_test.py FORKSIGHT HANGING LIBRARY STRACE: each command of forksight that parses data of other users parses
them in a process that has given up its rights. strace shows which process opens traces, queues, cores, libraries and
memory of other processes, and whether that process had installed a filter of system calls before."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from bounded import FORKS, LIMIT_S, Program, settle

STRACE, LIBRARY, HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
STRANGER = 65534
CALLS = "read,pread64,mmap,openat,open,ptrace,process_vm_readv,seccomp,setresuid,clone,clone3,fork,vfork,execve"
# `run` itself reads one number of 8 bytes in the head of each trace, to see whether the trace has grown. The pattern leaves these
# reads out.
READS_A_TRACE = r"^p?read(?:64)?\(\d+<[^>]*\.fstrace>.* = (?!8$)\d+$"


def may_trace():
    """True if this process has CAP_SYS_PTRACE."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:")]
    return int(line.split()[1], 16) >> 19 & 1 == 1


class Traced:
    """The system calls of one command and of all its processes."""

    def __init__(self, log):
        self.parents, self.filtered, self.reads, self.commands = {}, set(), [], {}
        self.without_user = set()  # processes that have given up root's user, and their threads
        lines = self.join_split_calls([(int(pid), rest.strip()) for pid, _, rest in (line.partition(" ") for line in log.splitlines())])
        # strace may list calls of a new process or thread before the line in which the parent makes the process or
        # thread. So this loop collects all parents first.
        for pid, rest in lines:
            made = re.match(r"(?:clone3?|v?fork).* = (\d+)", rest)
            if made:
                self.parents[int(made[1])] = pid
        seen = set()
        for pid, rest in lines:
            if pid not in seen and self.parents.get(pid) in self.filtered:
                self.filtered.add(pid)
            if pid not in seen and self.parents.get(pid) in self.without_user:
                self.without_user.add(pid)
            seen.add(pid)
            self.note(pid, rest)

    @staticmethod
    def join_split_calls(lines):
        """If another thread makes a call during a call, strace splits the line of the first call. Joins the two parts.
        The joined line stands where the call ended."""
        joined, begun = [], {}
        for pid, rest in lines:
            end = re.match(r"<\.\.\. \w+ resumed>(.*)", rest)
            if rest.endswith("<unfinished ...>"):
                begun[pid] = rest.removesuffix("<unfinished ...>")
            else:
                joined.append((pid, begun.pop(pid, "") + end[1] if end else rest))
        return joined + list(begun.items())

    def has_filter(self, pid):
        """True if the process or thread has installed a filter, or had one from its start."""
        return pid in self.filtered

    def note(self, pid, rest):
        if rest.startswith("seccomp(SECCOMP_SET_MODE_FILTER") and rest.endswith("= 0"):
            self.filtered.add(pid)
        elif re.match(r"setresuid\([1-9].* = 0$", rest):
            self.without_user.add(pid)
        elif rest.startswith("execve("):
            self.commands[pid] = rest
        elif rest.startswith(("open", "ptrace", "process_vm_readv", "read(", "pread64(", "mmap(")):
            self.reads.append((pid, rest, self.has_filter(pid)))

    def of(self, pattern, within=None):
        found = [(pid, text, is_safe) for pid, text, is_safe in self.reads if re.search(pattern, text)]
        return [entry for entry in found if within is None or within(entry[0])]


class Reader(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-reader-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.library = self.folder / "libstranger.so"
        shutil.copy(LIBRARY, self.library)

    def trace(self, *argv, status, before=(), options=()):
        """Runs forksight with the arguments `argv` under strace. If `before` is given, it is a command that executes forksight.
        `options`: further options of strace."""
        log = self.folder / "strace.log"
        strace = [STRACE, "-f", "-qq", "-y", "-s", "8", "-e", f"trace={CALLS}", "-e", "signal=none", *options, "-o", log]
        done = subprocess.run([*strace, *before, FORKSIGHT, *map(str, argv)],
                              cwd=self.folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertIn(done.returncode, status, done.stdout + done.stderr)
        self.said = done.stdout + done.stderr
        return Traced(log.read_text(errors="replace"))

    def check(self, traced, *patterns):
        """Each pattern matches calls that read data of other users. At least one call must match, and only processes with a filter
        may have made these calls."""
        for pattern in patterns:
            found = traced.of(pattern)
            self.assertTrue(found, f"no call matches {pattern}, so this test checks nothing")
            self.assertEqual([entry[:2] for entry in found if not entry[2]], [])

    def hang(self, *words, before=()):
        program = Program([*before, HANGING, *words])
        self.addCleanup(program.end)
        settle(program.pid)
        return program

    def test_why(self):
        program = self.hang("load", self.library)
        self.check(self.trace("why", program.pid, status=[1]), r"libstranger\.so", r"PTRACE_SEIZE", r"/mem\"|process_vm_readv")

    def test_a_command_without_a_child_gives_up_its_rights(self):
        """fork() fails, as if the user had reached the limit of processes."""
        as_stranger = []
        if os.geteuid() == 0:
            as_stranger = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
            if shutil.which("setpriv") is None or subprocess.run([*as_stranger, "test", "-x", HANGING, "-a", "-x", FORKSIGHT], check=False).returncode:
                self.skipTest("another user cannot start the programs from their folder")
            self.folder.chmod(0o755)
        program = self.hang("load", self.library, before=as_stranger)
        traced = self.trace("why", program.pid, status=[1], before=as_stranger, options=["-e", "inject=clone:error=EAGAIN"])
        self.check(traced, r"libstranger\.so", r"PTRACE_SEIZE", r"/mem\"|process_vm_readv")

    def test_root_reads_nothing_without_a_child(self):
        self.need_root()
        program = self.hang("load", self.library)
        traced = self.trace("why", program.pid, status=[3], options=["-e", "inject=clone:error=EAGAIN"])
        self.assertIn("could not start the process that reads files and memory", self.said)
        self.assertEqual(traced.of(r"libstranger\.so|PTRACE_SEIZE|/mem\""), [])

    def test_root_parses_only_in_a_process_of_another_user(self):
        """The process that opens files reads at most the head of a program or library, to see whether the file is a
        program or library."""
        self.need_root()
        folder = self.folder / "run"
        folder.mkdir(mode=0o700)
        (folder / "run.json").write_text("{" + " " * 1000 + "}")
        (folder / "run.json").chmod(0o600)
        program = self.hang("load", self.library)
        for argv, status, what in ((["why", program.pid], 1, r"libstranger\.so|/proc/\d+/mem"), (["report", folder], 3, r"run\.json")):
            traced = self.trace(*argv, status=[status])
            parsed = traced.of(rf"^(read|pread64|mmap|process_vm_readv)\(.*({what})")
            self.assertTrue(parsed, f"{argv}: nothing was read, so this test checks nothing")
            larger = [entry for entry in parsed if not re.search(r" = (\d|[1-5]\d|6[0-4])$", entry[1])]
            self.assertTrue(larger, f"{argv}: only heads were read, so this test checks nothing")
            self.assertEqual([entry[:2] for entry in larger if entry[0] not in traced.without_user], [])

    def need_root(self):
        if os.geteuid() != 0 or not may_trace():
            self.skipTest("this needs root with CAP_SYS_PTRACE")

    def test_run_and_report(self):
        ended = self.trace("run", "--on-hang", "kill", "--out", "out", "--", HANGING, "load", self.library, status=[137])
        own = self.of_forksight(ended)
        found = ended.of("O_RDONLY", own)
        # PTRACE_SEIZE is not in this list: strace already traces the command, so forksight cannot trace it.
        for what in (r"libstranger\.so", r"/run\.json"):
            matching = [entry for entry in found if re.search(what, entry[1]) and "O_WRONLY" not in entry[1]]
            self.assertTrue(matching, f"no call matches {what}")
            self.assertEqual([entry[:2] for entry in matching if not entry[2]], [])
        self.check(self.trace("report", "out", status=[1]), r"/run\.json")

    def test_the_watch_of_a_run_parses_no_library(self):
        """To prove that a thread waits for a mutex for ever, a run must know which libc the process has mapped. The file of that libc may be
        one that the owner of the process has made."""
        ended = self.trace("run", "--on-hang", "kill", "--out", "out", "--", HANGING, "lock", "0", status=[137])
        # The pattern requires O_NOCTTY. So it leaves out the calls of the loader, which opens libc without this flag.
        found = ended.of(r"O_NOCTTY.* = \d+<[^>]*/libc\.so\.6>$", self.of_forksight(ended))
        self.assertTrue(found, "forksight opens no libc, so this test checks nothing")
        self.assertEqual([entry[:2] for entry in found if not entry[2]], [])

    def test_run_where_only_ancestors_may_examine(self):
        """With Yama's ptrace_scope 1, a process without CAP_SYS_PTRACE may examine only its descendants.

        The command is a descendant of the process of `run`, but not of the readers, which are other children of `run`.
        So the process of `run` itself must examine the command, with no more rights than the command has. It must name
        the hang. A folder that is mounted over /proc/sys/kernel says that the scope is 1.
        """
        script = "mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && echo 1 > /proc/sys/kernel/yama/ptrace_scope"
        mounted = ["unshare", "--mount", "sh", "-c", f'{script} && exec setpriv --bounding-set=-sys_ptrace --inh-caps=-all "$@"', "sh"]
        if shutil.which("setpriv") is None or subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this needs setpriv, and the right to mount")
        ended = self.trace("run", "--on-hang", "kill", "--out", "out", "--", HANGING, "load", self.library, status=[137], before=mounted)
        first = next(iter(ended.commands))
        memory = ended.of(r'"/proc/\d+/mem"|process_vm_readv', self.of_forksight(ended))
        self.assertIn(first, {pid for pid, *_ in memory}, "the process of `run` has not examined the job")
        self.assertIn("pipe-held-open", self.said)
        self.assertRegex(self.said, r"stuck +.*stuck\.c")

    def of_forksight(self, traced):
        """Returns a function that tells whether a process is forksight: the process that strace starts, or a descendant that has
        not called execve()."""
        first = next(iter(traced.commands))
        return lambda pid: pid == first or pid not in traced.commands and (pid in traced.parents and self.of_forksight(traced)(traced.parents[pid]))

    def test_traces(self):
        """The command of this run forks while a second thread exists, so the run has traces."""
        ended = self.trace("run", "--out", "out", "--", sys.executable, "-c", FORKS, status=[0])
        found = ended.of(READS_A_TRACE, self.of_forksight(ended))
        self.assertTrue(found, "the run reads no trace, so this test checks nothing")
        self.assertEqual([entry[:2] for entry in found if not entry[2]], [])
        [trace, *_] = sorted((self.folder / "out").rglob("*.fstrace"))
        self.check(self.trace("report", "out", status=[0, 1]), READS_A_TRACE)
        self.check(self.trace("trace", "dump", trace, status=[0]), READS_A_TRACE)

    def test_ci(self):
        ended = self.trace("ci", "--timeout", "8s", "--out", "out", "--", HANGING, "load", self.library, status=[124])
        found = ended.of(r"libstranger\.so", self.of_forksight(ended))
        self.assertTrue(found, "ci has not examined the hang")
        self.assertEqual([entry[:2] for entry in found if not entry[2]], [])

    def test_core(self):
        core = self.folder / "strange.core"
        core.write_bytes(b"\x7fELF" + bytes(4000))
        self.check(self.trace("core", core, status=[3]), r"strange\.core")

    def test_queue(self):
        name = f"/forksight-reader-test-{os.getpid()}"
        Path("/dev/shm" + name).write_bytes(bytes(8192))
        self.addCleanup(os.unlink, "/dev/shm" + name)
        for verb in ("inspect", "parked"):
            self.check(self.trace("queue", verb, name, status=[3]), re.escape(name))


class ReaderDies(unittest.TestCase):
    """If the reader of a run dies, `run` still ends with the status of the command, and says in one sentence what it did not
    read."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-reader-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_without_reader(self, *argv, status, signal="SIGSEGV"):
        """strace kills each process that installs a filter of system calls. Only readers install one."""
        done = subprocess.run([STRACE, "-f", "-qq", "-o", "/dev/null", "-e", "trace=seccomp", "-e", f"inject=seccomp:signal={signal}", FORKSIGHT, *argv],
                              cwd=self.folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr

    def test_run(self):
        said = self.run_without_reader("run", "--out", "out", "--", sys.executable, "-c", FORKS + "sys.exit(7)", status=7)
        self.assertIn("the traces of the run were not read", said)
        self.assertIn("was ended by signal 11", said)
        self.assertTrue(list(self.folder.rglob("*.fstrace")), "the traces are gone, so nobody can read them later")

    def test_quiet_run(self):
        said = self.run_without_reader("run", "-q", "--out", "out", "--", sys.executable, "-c", FORKS, status=0)
        self.assertEqual(said.count("the traces of the run were not read"), 1, said)

    def test_ci(self):
        said = self.run_without_reader("ci", "--timeout", "60s", "--out", "out", "--", sys.executable, "-c", FORKS + "sys.exit(7)", status=7)
        self.assertIn("the traces of the run were not read", said)

    def test_why_and_report(self):
        self.assertIn("was ended by signal 11", self.run_without_reader("report", ".", status=3))
        # The kernel sends SIGKILL if there is no more memory.
        for verb in (["report", "."], ["why", str(os.getpid())]):
            self.assertIn("was ended by signal 9", self.run_without_reader(*verb, status=3, signal="SIGKILL"))


if __name__ == "__main__":
    unittest.main()
