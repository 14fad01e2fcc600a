"""faults_test.py FORKSIGHT HANGING STRACE [--all]: strace makes system calls of `forksight why` fail: one call, or all calls from
a certain one on. `why` must end and must not crash. It must not report that it found nothing, because the examined process hangs.
By default the test makes few calls of each kind fail. With --all, the test makes many calls fail."""
import re
import subprocess
import sys
import tempfile
import unittest

from bounded import Program, settle

IS_WHOLE = "--all" in sys.argv
if IS_WHOLE:
    sys.argv.remove("--all")
STRACE, HANGING, FORKSIGHT = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
LIMIT_S = 60
# For each system call, the errors that the kernel may return. The table lacks brk(), because brk() reports failures in
# another way. It lacks mmap(), because the loader calls mmap() before the command starts.
ERRORS = {
    "openat": ["EMFILE", "ENFILE", "ENOMEM"], "read": ["EIO", "EINTR"], "pread64": ["EIO", "EINTR", "ENOMEM"], "readlink": ["EACCES", "ENOMEM"], "readlinkat": ["EACCES", "ENOMEM"],
    "getdents64": ["ENOMEM"], "newfstatat": ["EACCES", "ENOMEM"], "pipe2": ["EMFILE"], "clone": ["EAGAIN"], "clone3": ["EAGAIN"],
    "ptrace": ["EPERM", "ESRCH"], "wait4": ["EINTR"], "poll": ["EINTR"], "kcmp": ["EPERM", "ENOSYS"], "write": ["ENOSPC", "EINTR"],
    "dup2": ["EBADF"], "mprotect": ["ENOMEM"], "fcntl": ["EINVAL"], "sched_setaffinity": ["EPERM"], "fstatfs": ["EIO"], "close_range": ["ENOSYS"],
    "prctl": ["EINVAL"], "madvise": ["EINVAL"]}
RESOURCES = ("EMFILE", "ENFILE", "ENOMEM", "EIO", "EAGAIN")  # errors that may last, so the test also makes all later calls fail



class Faults(unittest.TestCase):
    def setUp(self):
        self.program = Program([HANGING, "hold", 1])
        self.addCleanup(self.program.end)
        settle(self.program.pid)
        self.command = [FORKSIGHT, "why", str(self.program.pid)]

    def count_calls(self, *options):
        with tempfile.NamedTemporaryFile("r") as log:
            subprocess.run([STRACE, "-f", "-qq", "-o", log.name, *options, *self.command], stdout=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
            names = re.findall(r"^\d+ +(\w+)\(", log.read(), re.MULTILINE)
        return {name: names.count(name) for name in set(names)}

    def places(self, call, count, error):
        parts = 12 if IS_WHOLE else 2
        found = sorted({max(1, count * part // parts) for part in range(1, parts + 1)})
        return [str(place) for place in found] + ([f"{max(1, count // 3)}+"] if error in RESOURCES else [])

    def run_injected(self, *options):
        """Runs `why` under strace. With --seccomp-bpf, only the calls that strace traces cost time."""
        return subprocess.run([STRACE, "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", *options, *self.command], capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)

    def check(self, call, error, when, *options):
        done = self.run_injected(*options, "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}")
        is_found = done.returncode == 1 and "pipe-held-open" in done.stdout
        # 127: the loader could not start the command.
        is_refused = done.returncode in (3, 127) and (done.stderr != "" or call == "write")
        is_told = done.returncode == 0 and "does not let forksight list the descriptors of" in " ".join(done.stdout.split())
        self.assertTrue(is_found or is_refused or is_told, f"{call}() fails with {error}, number {when}: {done.returncode}\n{done.stdout}{done.stderr}")

    def test_no_failure_hangs_crashes_or_hides_the_hang(self):
        counts = self.count_calls()
        self.assertGreater(len(counts.keys() & ERRORS.keys()), 15, counts)
        for call in sorted(counts.keys() & ERRORS.keys()):
            for error in ERRORS[call]:
                for when in self.places(call, counts[call], error):
                    with self.subTest(call=call, error=error, when=when):
                        self.check(call, error, when)

    def test_a_refused_folder_does_not_hide_the_hang(self):
        """The kernel refuses to list processes, threads or descriptors: openat() of their folder in /proc fails. Each
        run makes another call of openat() fail. The last run makes all calls of openat() for the folder fail. `why`
        must repeat the call, or must say what it could not read."""
        own = f"/proc/{self.program.pid}"
        for folder in ("/proc", f"{own}/task", f"{own}/fd"):
            count = self.count_calls("-P", folder)["openat"]
            self.assertGreater(count, 1, folder)
            for when in [*map(str, range(1, count + 1)), "1+"]:
                with self.subTest(folder=folder, when=when):
                    self.check("openat", "EACCES", when, "-P", folder)

    def test_the_hang_is_found_without_the_file_of_the_program(self):
        for call in ("openat", "pread64"):
            done = self.run_injected("-P", HANGING, "-P", f"/proc/{self.program.pid}/exe", "-e", f"trace={call}",
                                     "-e", f"inject={call}:error=EIO")
            self.assertEqual(done.returncode, 1, f"{call}: {done.stdout}{done.stderr}")
            self.assertIn("pipe-held-open", done.stdout)


if __name__ == "__main__":
    unittest.main()
