"""enders_test.py FORKSIGHT SCHEMA: `forksight why` describes each waiting thread.

The text and the JSON report say what the thread waits for, for how long, in which function, and what could end the wait.
"""
import json
import os
import signal
import sys
import tempfile
import time
import unittest
from pathlib import Path

import jsonschema

from observed import LIMIT_S, Command, Program, processes, tree_of

SCHEMA, FORKSIGHT = sys.argv.pop(), Command(sys.argv.pop())
READY = "import sys; sys.stdout.write('x'); sys.stdout.flush(); "


def python(script):
    return [sys.executable, "-B", "-c", script]


def shell(script):
    return ["/bin/sh", "-c", "printf x; " + script]


class Enders(unittest.TestCase):
    def ask(self, program):
        done = FORKSIGHT.run(program.pid)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report, status = FORKSIGHT.report(program.pid)
        self.assertEqual(status, 0)
        jsonschema.validate(report, json.loads(Path(SCHEMA).read_text()))
        # The result contains the text twice. The second copy has no line breaks, so a pattern also matches text that was wrapped.
        return done.stdout + "\n" + " ".join(done.stdout.split()), report

    def look(self, argv):
        with Program(argv) as program:
            program.wait_quiet()
            text, report = self.ask(program)
            self.pid = program.pid
            return text, report

    def wait_of(self, report, pid, tid=None):
        process = next(process for process in report["processes"] if process["pid"] == pid)
        return next(wait for wait in process["waits"] if wait["tid"] == (tid or pid))

    def enders(self, report, pid, kind):
        return [ender for ender in self.wait_of(report, pid)["could_end"] if ender["kind"] == kind]

    def test_a_wait_for_a_child_names_the_child_and_its_command(self):
        with Program(shell("sleep 300; :")) as program:
            program.wait_quiet()
            text, report = self.ask(program)
            child = tree_of(program.pid)[1]
            self.assertRegex(text, rf"in a wait for a child: process {child} \(sleep\)\n(.*\n)*? +could be ended by: process {child}, asleep: sleep 300")
            self.assertRegex(text, rf"process {child} \(sleep\)\n    - thread {child} \"sleep\", for [^:]+: in a sleep\n(.*\n)*? +could be ended by: its time limit, in 4 min \d+ s")
            wait = self.wait_of(report, program.pid)
            self.assertEqual(wait["kind"], "wait-child")
            self.assertGreaterEqual(wait["for_ms"], 200)
            self.assertEqual([(ender["pid"], ender["via"], ender["command"]) for ender in wait["could_end"] if ender["kind"] == "process"],
                             [(child, "wait4", "sleep 300")])
            (timer,) = self.enders(report, child, "timer")
            self.assertTrue(0 < timer["in_ms"] < 300_000, timer)

    def test_a_wait_by_pidfd_names_only_the_child_of_the_pidfd(self):
        with Program(python("import os, subprocess\n"
                            "first, other = subprocess.Popen(['sleep', '300']), subprocess.Popen(['sleep', '301'])\n"
                            + READY + "\n"
                            "os.waitid(os.P_PIDFD, os.pidfd_open(first.pid), os.WEXITED)")) as program:
            program.wait_quiet()
            text, report = self.ask(program)
            child = next(pid for pid in tree_of(program.pid)[1:] if b"300" in Path(f"/proc/{pid}/cmdline").read_bytes())
            self.assertRegex(text, rf"in a wait for a child: process {child} \(sleep\)\n")
            self.assertEqual([(ender["pid"], ender["via"]) for ender in self.enders(report, program.pid, "process")], [(child, "wait4")])

    def test_a_read_from_a_pipe_names_the_process_at_the_other_end(self):
        text, report = self.look(shell("exec cat"))
        # The standard input of `cat` is a pipe. This test process has the other end of the pipe.
        self.assertRegex(text, rf"in read: pipe:\[\d+\]\n(.*\n)*? +could be ended by: process {os.getpid()} by its descriptor \d+, [^:]+: ")
        wait = self.wait_of(report, self.pid)
        self.assertEqual((wait["kind"], wait["fd"]), ("pipe-read", 0))
        self.assertIn(os.getpid(), [ender["pid"] for ender in wait["could_end"]])

    def test_a_fifo_without_a_writer_says_that_nobody_has_it_open(self):
        with tempfile.TemporaryDirectory(prefix="forksight-why-") as folder:
            path = Path(folder, "fifo")
            os.mkfifo(path)
            text, report = self.look(shell(f"cat < {path}"))
            self.assertIn(f"in open: the FIFO {path}, for somebody who writes; nobody has it open for writing", text)
            self.assertIn("could be ended by: whoever opens it for writing", text)

    def test_a_wait_for_a_file_lock_names_the_process_that_holds_it(self):
        with tempfile.NamedTemporaryFile() as file:
            script = f"""
import fcntl, os, sys, time
held = open({file.name!r}, "w")
fcntl.flock(held, fcntl.LOCK_EX)
pid = os.fork()
if pid == 0:
    held.close()
    wanted = open({file.name!r}, "w")
    sys.stdout.write("x"); sys.stdout.flush()
    fcntl.flock(wanted, fcntl.LOCK_EX)
time.sleep(300)
"""
            with Program(python(script)) as program:
                program.wait_quiet()
                text, report = self.ask(program)
                child = tree_of(program.pid)[1]
                self.assertRegex(text, rf"in flock: {file.name}\n(.*\n)*? +could be ended by: process {program.pid} by its descriptor \d+, asleep: ")
                self.assertEqual({ender["pid"] for ender in self.enders(report, child, "process")}, {program.pid})

    def test_a_poll_names_its_descriptors_and_signal_handlers(self):
        text, report = self.look(python(f"""
import select, signal, socket
listener = socket.create_server(("127.0.0.1", 0))
poll = select.epoll()
poll.register(listener, select.EPOLLIN)
poll.register(0, select.EPOLLIN)
signal.signal(signal.SIGTERM, lambda *_: None)
{READY}
def serve(): poll.poll()
serve()
"""))
        self.assertRegex(text, r"in epoll_wait: .*socket:\[\d+\] \(TCP socket 127\.0\.0\.1:\d+, listening\)")
        self.assertRegex(text, r"serve +<string>:\d+")
        self.assertRegex(text, r"whoever connects or sends to TCP socket 127\.0\.0\.1:\d+, listening \(descriptor \d+\)")
        self.assertRegex(text, rf"process {os.getpid()} by its descriptor \d+")
        self.assertIn("a handler of SIGTERM", text)
        self.assertEqual([ender["what"] for ender in self.enders(report, self.pid, "signal")], ["a handler of SIGTERM"])
        self.assertTrue(any(frame["python"] for frame in self.wait_of(report, self.pid)["stack"]))

    def test_a_wait_for_a_shared_semaphore_names_processes_with_the_same_memory(self):
        with Program(python(f"""
import multiprocessing, os, signal, sys
lock = multiprocessing.get_context("fork").Lock()
lock.acquire()
signal.signal(signal.SIGTERM, lambda *_: None)
pid = os.fork()
if pid == 0:
    {READY}
    lock.acquire()
signal.pause()
""")) as program:
            program.wait_quiet()
            text, report = self.ask(program)
            child = tree_of(program.pid)[1]
            self.assertRegex(text, rf"could be ended by: process {program.pid}, which has the same memory, asleep: ")
            self.assertIn(program.pid, [ender["pid"] for ender in self.enders(report, child, "process")])

    def test_threads_that_wait_alike_are_listed_once(self):
        text, report = self.look(python(f"""
import threading
gate = threading.Event()
for _ in range(20): threading.Thread(target=gate.wait, daemon=True).start()
{READY}
sys.stdin.read()
"""))
        self.assertRegex(text, r"    - 20 threads, for [^:]+ or longer: in a futex without a timeout")
        self.assertIn("could be ended by: another thread of its process", text)
        waits = next(process for process in report["processes"] if process["pid"] == self.pid)["waits"]
        self.assertEqual(len(waits), 21)

    def test_a_list_of_many_enders_is_cut(self):
        text, _ = self.look(python(f"""
import os, time
reading, writing = os.pipe()
for _ in range(12):
    if os.fork() == 0: time.sleep(300)
os.close(writing)
{READY}
os.read(reading, 1)
"""))
        self.assertRegex(text, r"\n {27}and 6 more\n")

    def test_a_stopped_process_is_shown_with_the_kill_that_continues_it(self):
        with Program(shell("read line")) as program:
            program.wait_quiet()
            os.kill(program.pid, signal.SIGSTOP)
            deadline = time.monotonic() + LIMIT_S
            while processes.stat_fields(f"/proc/{program.pid}/stat")[0] != "T" and time.monotonic() < deadline:
                time.sleep(0.01)
            text, report = self.ask(program)
            self.assertRegex(text, rf": stopped.*\n(.*\n)*? +could be ended by: kill -CONT {program.pid}, which lets it go on")
            self.assertEqual(self.wait_of(report, program.pid)["could_end"][0], {"kind": "continue", "run": f"kill -CONT {program.pid}"})
            os.kill(program.pid, signal.SIGCONT)

    def test_a_stopped_writer_is_shown_with_the_kill_that_continues_it(self):
        with Program(shell("sleep 300 | cat")) as program:
            program.wait_quiet()
            writer = next(pid for pid in tree_of(program.pid) if Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
            os.kill(writer, signal.SIGSTOP)
            deadline = time.monotonic() + LIMIT_S
            while processes.stat_fields(f"/proc/{writer}/stat")[0] != "T" and time.monotonic() < deadline:
                time.sleep(0.01)
            text, _ = self.ask(program)
            self.assertIn(f"process {writer} by its descriptor 1, stopped (kill -CONT {writer} lets it go on): sleep 300", text)
            os.kill(writer, signal.SIGCONT)

    def test_a_frozen_process_is_shown_with_the_command_that_thaws_it(self):
        group = Path(f"/sys/fs/cgroup/freezer/forksight-why-{os.getpid()}")
        try:
            group.mkdir()
        except OSError as error:
            self.skipTest(f"no control group can be made: {error}")
        try:
            with Program(shell("read line")) as program:
                program.wait_quiet()
                (group / "tasks").write_text(str(program.pid))
                (group / "freezer.state").write_text("FROZEN")
                try:
                    deadline = time.monotonic() + LIMIT_S
                    while (group / "freezer.state").read_text() != "FROZEN\n" and time.monotonic() < deadline:
                        time.sleep(0.01)
                    text, _ = self.ask(program)
                finally:
                    (group / "freezer.state").write_text("THAWED")
                self.assertRegex(text, r": frozen")
                self.assertIn(f"could be ended by: echo THAWED > {group}/freezer.state, which lets it go on", text)
        finally:
            deadline = time.monotonic() + LIMIT_S
            while (group / "tasks").read_text() and time.monotonic() < deadline:
                time.sleep(0.01)
            group.rmdir()


if __name__ == "__main__":
    processes.become_reaper()
    unittest.main()
