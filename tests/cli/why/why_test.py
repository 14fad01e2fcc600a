"""why_test.py FORKSIGHT PROGRAM SCHEMA: `forksight why` on processes that hang, that do not hang, or that cannot be examined."""
import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import jsonschema

from observed import LIMIT_S, PTRACE_SEIZE, Command, Program, end_all, forbid_ptrace, libc, processes, rules, tree_of

SCHEMA, PROGRAM, FORKSIGHT = sys.argv.pop(), sys.argv.pop(), Command(sys.argv.pop())
NOBODY = 65534


@contextlib.contextmanager
def for_a_user():
    """Yields a command prefix, and paths of forksight and PROGRAM. If the test runs as root, the prefix runs a command as a user
    without rights. Otherwise the prefix is empty. Any user may read the files at the paths."""
    folder, path = FORKSIGHT.copy_for_everybody()
    with folder:
        program = shutil.copy(PROGRAM, folder.name)
        os.chmod(program, 0o755)
        yield ["setpriv", f"--reuid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else [], path, program


class Refused(unittest.TestCase):
    """`why` refuses to examine a process: it prints an error on standard error, and nothing on standard output."""

    def expect(self, done, status, *parts):
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1 if status == 3 else len(lines), done.stderr)
        self.assertTrue(lines and lines[0].startswith("forksight: error: "), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_an_invalid_pid_is_a_usage_error(self):
        for word in ("0", "-1", "", "99999999999999999999"):
            with self.subTest(word):
                done = FORKSIGHT.run(word)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertNotEqual(done.stderr, "")
        self.assertEqual(FORKSIGHT.run().returncode, 2)
        self.assertEqual(FORKSIGHT.run("--all", "1").returncode, 2)
        self.assertEqual(FORKSIGHT.run("1", "--depth", "-1").returncode, 2)

    def test_an_unknown_name_is_an_error_that_says_how_to_list_names(self):
        for word in ("no-such-program", "12x", "0x10", "1.5", " 1"):
            with self.subTest(word):
                self.expect(FORKSIGHT.run(word), 3, f"{word}: no process ", "`ps -e` lists the names")

    def test_an_unknown_pid_is_an_error(self):
        said = "process 999999999: there is no such process; it may have ended. `ps -e` lists the processes"
        self.expect(FORKSIGHT.run(999999999), 3, said)

    def test_a_zombie_is_refused_and_its_parent_is_named(self):
        child = subprocess.Popen(["true"])
        try:
            while processes.stat_fields(f"/proc/{child.pid}/stat")[:1] != ["Z"]:
                time.sleep(0.005)
            self.expect(FORKSIGHT.run(child.pid), 3, "zombie", f"its parent {os.getpid()}")
        finally:
            child.wait(LIMIT_S)

    def test_a_process_that_ends_during_the_look_is_an_error_or_no_finding(self):
        for round_number in range(20):
            child = subprocess.Popen(["sleep", f"0.00{round_number % 10}"], start_new_session=True)
            done = FORKSIGHT.run(child.pid)
            child.wait(LIMIT_S)
            self.assertIn(done.returncode, (0, 3), done.stderr)
            if done.returncode == 3:
                self.expect(done, 3, f"process {child.pid}: ")

    def test_why_refuses_to_examine_itself(self):
        done = subprocess.run(["sh", "-c", 'exec "$0" why $$', FORKSIGHT.path], capture_output=True, text=True, timeout=LIMIT_S)
        self.expect(done, 3, "is forksight itself: name the process that hangs")

    def test_processes_of_another_user_are_refused_with_the_reason(self):
        """`why` refuses to examine a process of another user.

        If the test runs as an ordinary user, `why` gets process 1, which belongs to root. If the test runs as root, it
        runs `why` as nobody.
        """
        if os.geteuid() != 0:
            self.expect(FORKSIGHT.run(1), 3, "process 1: ")
            return
        folder, path = FORKSIGHT.copy_for_everybody()
        as_nobody = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"]
        with folder, Program([PROGRAM, "wait"]) as program:
            self.expect(FORKSIGHT.run(program.pid, before=as_nobody, path=path), 3, "belongs to another user (uid 0)", "has no CAP_SYS_PTRACE: ")
            self.expect(FORKSIGHT.run(1, before=as_nobody, path=path), 3, "process 1: ")

    def test_a_process_that_is_protected_from_its_own_user_is_refused_with_the_reason(self):
        with for_a_user() as (as_user, path, program), Program([*as_user, program, "private"]) as private:
            private.wait_quiet()
            done = FORKSIGHT.run(private.pid, before=as_user, path=path)
            self.expect(done, 3, "is protected from its own user", "has no CAP_SYS_PTRACE: ",
                        "only thread states are visible: 1 asleep, 0 running")
            if not as_user:
                return
            # Root may examine the protected process.
            self.assertEqual(FORKSIGHT.run(private.pid).returncode, 0)


class Looked(unittest.TestCase):
    def setUp(self):
        with open(SCHEMA, encoding="utf-8") as file:
            self.validator = jsonschema.Draft7Validator(json.load(file))

    def report(self, *words, **more):
        report, status = FORKSIGHT.report(*words, **more)
        errors = [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in self.validator.iter_errors(report)]
        self.assertEqual(errors, [])
        self.assertEqual(status, 1 if report["findings"] else 0)
        return report

    def hung(self, mode="hang"):
        return self.all_hung(1, PROGRAM, mode)[0]

    def all_hung(self, count, path=PROGRAM, mode="hang"):
        programs = [Program([path, mode]) for _ in range(count)]
        self.addCleanup(end_all, programs)
        for program in programs:
            program.go_on()
            program.wait_quiet()
        return programs

    def test_a_process_that_waits_for_its_input_has_no_finding(self):
        with Program([PROGRAM, "wait"]) as program:
            report = self.report(program.pid)
            self.assertEqual(rules(report), [])
            self.assertEqual([one["pid"] for one in report["processes"]], [program.pid])
            done = FORKSIGHT.run(program.pid)
            self.assertEqual(done.returncode, 0, done.stderr)
            program.go_on()
            self.assertEqual(program.popen.wait(LIMIT_S), 0)

    def test_a_process_that_hangs_on_an_orphaned_mutex_is_proven_to_hang(self):
        report = self.report(self.hung().pid)
        self.assertEqual(rules(report), ["orphaned-mutex"])
        self.assertEqual(report["findings"][0]["hang"], "proven")
        self.assertEqual(report["findings"][0]["culprit"]["name"], "cache_mutex (mutex)")

    def test_frames_of_libraries_are_folded_unless_all_are_asked_for(self):
        pid = self.hung().pid
        folded, full = FORKSIGHT.run(pid).stdout, FORKSIGHT.run(pid, "--full").stdout
        self.assertRegex(folded, r"\n      \(\d+ frames? of libc[^)]*\)\n")
        self.assertNotRegex(full, r"\d+ frames? of libc")
        frames = self.report(pid)["findings"][0]["stack"]
        self.assertGreater(len(frames), 2)
        named = [frame["function"] for frame in frames if frame["function"]]
        self.assertEqual([name for name in named if f"      {name}" not in full], [])
        self.assertNotEqual([name for name in named if f"      {name}" not in folded], [])

    def test_a_thread_id_examines_the_process_of_the_thread(self):
        program = self.hung()
        thread = max(int(tid) for tid in os.listdir(f"/proc/{program.pid}/task"))
        self.assertNotEqual(thread, program.pid)
        self.assertEqual(rules(self.report(thread)), ["orphaned-mutex"])

    def test_several_pids_give_one_report_with_each_process_once(self):
        first, second = self.all_hung(2)
        report = self.report(first.pid, second.pid, first.pid, tree_of(first.pid)[1])
        self.assertEqual([(one["rule"], one["count"]) for one in report["findings"]], [("orphaned-mutex", 2)])
        told = [one["pid"] for one in report["processes"]]
        self.assertEqual(sorted(told), sorted(tree_of(first.pid) + tree_of(second.pid)))

    def test_a_program_name_examines_all_processes_of_that_name(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-why-")
        self.addCleanup(folder.cleanup)
        name = f"a-long-name-of-{os.getpid()}"
        path = shutil.copy(PROGRAM, Path(folder.name, name))
        self.all_hung(2, path)
        report = self.report(name)
        self.assertEqual([(one["rule"], one["count"]) for one in report["findings"]], [("orphaned-mutex", 2)])

    def test_all_reports_the_process_that_hangs_between_protected_ones(self):
        with for_a_user() as (as_user, path, program):
            # One piece of code examines the first process of the list, and another piece examines the others. So the
            # list begins and ends with a protected process.
            first, hung, last = (Program([*as_user, program, mode]) for mode in ("private", "hang", "private"))
            self.addCleanup(end_all, [first, hung, last])
            hung.go_on()
            hung.wait_quiet()
            for words in (["--all"], [first.pid, hung.pid, last.pid]):  # the protected processes must not hide the one that hangs
                report, _ = FORKSIGHT.report(*words, before=as_user, path=path)
                about = [one["pid"] for finding in report["findings"] for one in finding["processes"]]
                self.assertIn(tree_of(hung.pid)[1], about)
                for private in (first, last):
                    refused = [limit for limit in report["limits"] if f"process {private.pid}: is protected" in limit]
                    self.assertEqual(len(refused), 1, report["limits"])

    def test_the_pid_of_the_hanging_child_gives_the_same_finding(self):
        child = tree_of(self.hung().pid)[1]
        self.assertEqual(rules(self.report(child)), ["orphaned-mutex"])

    def test_the_first_line_counts_what_was_asked_about(self):
        # Two shells wait for the program. If `why` is asked about the program or its child, the first line does not
        # count the shells, because neither the program nor its child waits for a shell.
        shell = Program(["sh", "-c", """sh -c '"$1" hang; :' sh "$1"; :""", "sh", str(PROGRAM)])
        self.addCleanup(end_all, [shell])
        shell.go_on()
        shell.wait_quiet()
        outer, inner, program, child = tree_of(shell.pid)
        first = {}
        for pid in (outer, inner, program, child):
            shell.wait_quiet()  # a look stops threads for a moment
            first[pid] = FORKSIGHT.run(pid).stdout.splitlines()[0]
        end = ", 1 fork of a process with threads"
        self.assertEqual(first[outer], "forksight: 1 finding in 4 processes" + end)
        self.assertEqual(first[inner], "forksight: 1 finding in 3 processes" + end)
        self.assertEqual(first[program], "forksight: 1 finding in 2 processes" + end)
        # A thread of the parent holds the lock for which the child waits. So the parent counts.
        self.assertEqual(first[child], "forksight: 1 finding in 2 processes" + end)
        told = [one["pid"] for one in self.report(child)["processes"]]
        self.assertEqual(sorted(told), sorted([outer, inner, program, child]))

    def test_a_reader_that_ends_early(self):
        program = self.hung()
        pid = program.pid
        for ignored in (False, True):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([FORKSIGHT.path, "why", str(pid)], stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE, text=True,
                                  timeout=LIMIT_S, check=False, restore_signals=False,
                                  preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN if ignored else signal.SIG_DFL))
            os.close(writer)
            expected = (3, "forksight: error: standard output: Broken pipe\n") if ignored else (-signal.SIGPIPE, "")
            self.assertEqual((done.returncode, done.stderr), expected)
        program.wait_quiet()
        done = subprocess.run(["sh", "-c", '"$0" why "$1" | head -n 1', FORKSIGHT.path, str(pid)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT_S, check=True)
        self.assertRegex(done.stdout, "^forksight: 1 finding in 2 processes")
        self.assertEqual(done.stderr, "")

    def test_depth_limits_the_generations(self):
        program = self.hung("chain")
        self.assertEqual([len(self.report(program.pid, "--depth", depth)["processes"]) for depth in (0, 1, 2, 9)], [1, 2, 3, 3])
        self.assertEqual(rules(self.report(program.pid, "--depth", 1)), [])
        self.assertEqual(rules(self.report(program.pid, "--depth", 2)), ["orphaned-mutex"])

    def test_with_no_stop_ptrace_is_never_called(self):
        program = self.hung()
        self.assertEqual(rules(self.report(program.pid, "--no-stop", preexec_fn=forbid_ptrace)), ["orphaned-mutex"])
        # Check the filter. Without --no-stop, the reader (a child process of forksight) calls ptrace(), and the filter
        # must kill the reader.
        ended = FORKSIGHT.run(program.pid, preexec_fn=forbid_ptrace)
        self.assertEqual(ended.returncode, 3)
        self.assertIn(f"was ended by signal {int(signal.SIGSYS)}", ended.stderr)

    def test_a_process_that_is_traced_already_is_explained_and_its_tracer_is_named(self):
        program = self.hung()
        child = tree_of(program.pid)[1]
        self.assertEqual(libc.ptrace(PTRACE_SEIZE, child, None, None), 0)
        report = self.report(program.pid)
        self.assertEqual(rules(report), ["orphaned-mutex"])
        self.assertTrue(any(f"process {child} is traced by {os.getpid()}" in limit for limit in report["limits"]), report["limits"])

    def test_a_process_that_is_stopped_stays_stopped_and_has_no_finding(self):
        with Program([PROGRAM, "wait"]) as program:
            os.kill(program.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
            report = self.report(program.pid)
            self.assertEqual(rules(report), [])
            self.assertTrue(any("stopped by a signal" in limit for limit in report["limits"]), report["limits"])
            self.assertEqual(processes.stat_fields(f"/proc/{program.pid}/stat")[0], "T")
            os.kill(program.pid, signal.SIGCONT)
            program.go_on()
            self.assertEqual(program.popen.wait(LIMIT_S), 0)

    def test_functions_have_names_although_the_files_are_deleted(self):
        """The program and its working folder are deleted while the program runs. `why` still names functions."""
        folder = Path(tempfile.mkdtemp(prefix="forksight-why-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = shutil.copy(PROGRAM, folder / "program")
        program = Program([path, "hang"], cwd=folder)
        self.addCleanup(end_all, [program])
        program.go_on()
        program.wait_quiet()
        shutil.rmtree(folder)
        for link in ("exe", "cwd"):
            self.assertRegex(os.readlink(f"/proc/{program.pid}/{link}"), " \\(deleted\\)$")
        report = self.report(program.pid, cwd="/")
        self.assertEqual(rules(report), ["orphaned-mutex"])
        self.assertEqual(report["findings"][0]["culprit"]["name"], "cache_mutex (mutex)")


class Watching(unittest.TestCase):
    def start(self, *words):
        watcher = FORKSIGHT.start(*words, "--watch")
        # The child of the command does the work. Between two looks, the child sleeps for a second, and it stays in no other
        # system call for long. Wait until three checks in a row find it in the sleep.
        deadline = time.monotonic() + LIMIT_S
        seen = 0
        while seen < 3 and time.monotonic() < deadline:
            # If root runs the command, the command has two children. The first child only opens files.
            reader = processes.read_or_empty(f"/proc/{watcher.pid}/task/{watcher.pid}/children").split()[-1:]
            fields = processes.read_or_empty(f"/proc/{reader[0]}/syscall").split() if reader else []
            seen = seen + 1 if fields[:1] in (["230"], ["35"]) else 0
            time.sleep(0.1)
        self.assertEqual(seen, 3, "`why --watch` does not sleep between its looks")
        return watcher

    def end_of(self, watcher):
        try:
            out, err = watcher.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            watcher.kill()
            watcher.communicate()
            raise
        return watcher.returncode, out, err

    def test_watch_reports_a_hang_and_ends(self):
        with Program([PROGRAM, "hang"]) as program:
            watcher = self.start(program.pid)
            program.go_on()
            status, out, _ = self.end_of(watcher)
            self.assertEqual(status, 1)
            self.assertIn("orphaned-mutex", out)

    def test_watch_ends_with_the_process(self):
        with Program([PROGRAM, "wait"]) as program:
            watcher = self.start(program.pid)
            program.go_on()
            program.popen.wait(LIMIT_S)
            status, out, err = self.end_of(watcher)
            self.assertEqual((status, out), (0, ""), err)
            begin, _, end = err.partition("\n")
            self.assertRegex(begin, rf"^forksight: watching process {program.pid}: 1 process with \d+ threads?, no hang found$")
            self.assertEqual(end, f"forksight: process {program.pid} has ended; forksight did not see it hang\n")

    def test_watch_shows_on_a_terminal_whether_the_process_works(self):
        """`why --watch` writes its line of progress again at each look, and removes the line at the end."""
        terminal, line = pty.openpty()
        self.addCleanup(os.close, terminal)
        with Program([PROGRAM, "wait"]) as program:
            watcher = subprocess.Popen([FORKSIGHT.path, "why", str(program.pid), "--watch"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=line, env={**os.environ, "COLUMNS": "200"})
            os.close(line)
            shown = b""
            while shown.count(b"of processor time since the last look") < 2:
                shown += os.read(terminal, 65536)
            program.go_on()
            self.assertEqual(watcher.wait(LIMIT_S), 0)
            while not shown.endswith(b"forksight did not see it hang\r\n"):
                shown += os.read(terminal, 65536)
            last = shown.decode().split("\r\x1b[K")
            self.assertRegex(last[1], rf"^forksight: watching process {program.pid}: 1 process with \d+ threads?, no hang found$")
            self.assertRegex(last[-2], r", no hang found; watched for [0-9.]+ s, 0\.\d s of processor time since the last look$")
            self.assertEqual(last[-1], f"forksight: process {program.pid} has ended; forksight did not see it hang\r\n")

    def test_watch_ends_when_the_process_is_a_zombie(self):
        with Program([PROGRAM, "wait"]) as program:
            watcher = self.start(program.pid)
            program.go_on()
            status, _, err = self.end_of(watcher)
            self.assertEqual(status, 0, err)
            self.assertIn("has ended", err)


if __name__ == "__main__":
    processes.become_reaper()
    unittest.main()
