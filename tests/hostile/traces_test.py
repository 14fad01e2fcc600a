"""Usage: traces_test.py FORKSIGHT

Runs `forksight report` on a folder with traces whose records take far more time or memory than those of an honest trace. The report
must still contain the rest of the folder. It must take less than ten seconds of processor time. It must take less memory than 512 MB
plus twice the size of the traces on disk."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import made_trace
from bounded import SECONDS, run
from made_trace import Trace
from report_test import FORKSIGHT, MEMORY_MB, run_log, stuck_process

HONEST_PID = 4711
CHILD_PID = 5000
MANY_WORDS = b"a\0" * 1408  # as many arguments as the header has room for


def many_modules(trace):
    for i in range(8192):
        trace.add("module", made_trace.module(b"/lib/x%d.so" % i, 0x10000 * (i + 1)))
    return 0x7FFF00000000  # an address that is in none of them


def threads_beside_many_modules(trace):
    trace.fill("thread", made_trace.thread(7, start=many_modules(trace)))


def handlers_beside_many_modules(trace):
    address = many_modules(trace)
    trace.fill("handlers", made_trace.handlers((address, address + 1, address + 2), 1024))


def handlers_three_million(trace):
    """Each record is a hole in the file, except for its first words."""
    trace.fill("handlers", made_trace.handlers((0, 0, 0), 1024))


def modules_half_a_million(trace):
    for i in range(500_000):
        trace.add("module", made_trace.module(b"/lib/x.so", 0x10000 * (i + 1)))


def processes_with_long_command_lines(trace):
    for i in range(200_000):
        trace.add("life", made_trace.life(), pid=2000 + i)


def forks_half_a_million(trace):
    trace.fill("fork", made_trace.fork(trace.add("thread", made_trace.thread(1000))))


def forks_whose_children_have_one_pid(trace):
    """Each fork has its own child, but all children have the same pid, as if the kernel had used it again each time."""
    forking, lost = (trace.add("thread", made_trace.thread(tid)) for tid in (1000, 1001))
    while reference := trace.add("fork", made_trace.fork(forking, [lost])):
        trace.add("forked", made_trace.forked(reference, CHILD_PID))


def forks_with_forty_thousand_threads(trace):
    forking, lost = (trace.add("thread", made_trace.thread(tid)) for tid in (1000, 1001))
    trace.fill("fork", made_trace.fork(forking, [lost] * 43_000))


def hangs_of_a_hundred_thousand_locks(trace):
    forking, lost = (trace.add("thread", made_trace.thread(tid)) for tid in (1000, 1001))
    reference = trace.add("fork", made_trace.fork(forking, [lost]))
    trace.add("forked", made_trace.forked(reference, CHILD_PID))
    for i in range(100_000):
        lock = 0x5000 + 64 * i
        held = trace.add("held", made_trace.held(reference, lock, lost), pid=CHILD_PID)
        trace.add("touch", made_trace.touch(reference, held, lock), pid=CHILD_PID, tid=CHILD_PID + i)


def hangs_of_a_hundred_thousand_children(trace):
    forking, lost = (trace.add("thread", made_trace.thread(tid)) for tid in (1000, 1001))
    for i in range(100_000):
        reference = trace.add("fork", made_trace.fork(forking, [lost]))
        trace.add("forked", made_trace.forked(reference, CHILD_PID + i))
        held = trace.add("held", made_trace.held(reference, 0x5000 + 64 * i, lost), pid=CHILD_PID + i)
        trace.add("touch", made_trace.touch(reference, held, 0x5000 + 64 * i), pid=CHILD_PID + i)


def touches_of_one_lock(trace):
    forking, lost = (trace.add("thread", made_trace.thread(tid)) for tid in (1000, 1001))
    reference = trace.add("fork", made_trace.fork(forking, [lost]))
    trace.add("forked", made_trace.forked(reference, CHILD_PID))
    held = trace.add("held", made_trace.held(reference, 0x5000, lost), pid=CHILD_PID)
    trace.fill("touch", made_trace.touch(reference, held, 0x5000), pid=CHILD_PID)


def touches_with_deep_stacks(trace):
    """Each touch refers to the same stack of 2,000 frames, so a report without limits would have 600 million frames."""
    mapped = re.search(r" (/\S*/libc\.so\.6)$", Path("/proc/self/maps").read_text(), re.MULTILINE)
    libc, start = mapped.group(1), 0x7F0000000000
    notes = subprocess.run(["readelf", "-n", libc], capture_output=True, text=True, check=True).stdout
    symbols = subprocess.run(["nm", "-D", "--defined-only", libc], capture_output=True, text=True, check=True).stdout
    build_id = bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", notes).group(1))
    function = int(re.search(r"^([0-9a-f]+) T qsort(@|$)", symbols, re.MULTILINE).group(1), 16)
    trace.add("module", made_trace.module(libc.encode(), start, 0x400000, build_id))
    stack = trace.add("stack", made_trace.stack(2_000, start + function + 1))
    forking, lost = (trace.add("thread", made_trace.thread(tid)) for tid in (1000, 1001))
    reference = trace.add("fork", made_trace.fork(forking, [lost]))
    trace.add("forked", made_trace.forked(reference, CHILD_PID))
    held = trace.add("held", made_trace.held(reference, 0x5000, lost), pid=CHILD_PID)
    trace.fill("touch", made_trace.touch(reference, held, 0x5000, stack), pid=CHILD_PID)


def flushes_of_one_stream(trace):
    reference = trace.add("fork", made_trace.fork(trace.add("thread", made_trace.thread(1000))))
    output = trace.add("unflushed", made_trace.unflushed(reference))
    trace.fill("flush", made_trace.flush(output, reference), pid=CHILD_PID)


def uses_of_one_epoll_instance(trace):
    reference = trace.add("fork", made_trace.fork(trace.add("thread", made_trace.thread(1000))))
    shared = trace.add("share", made_trace.share(reference))
    for i in range(400_000):
        by_child = i % 2
        trace.add("share_use", made_trace.share_use(shared, reference * by_child, 1 + i % 2, i), pid=CHILD_PID if by_child else 1000)


def orders_of_six_hundred_locks(trace):
    """Every lock was taken at some time while every other lock was held."""
    thread = trace.add("thread", made_trace.thread(1000))
    lives = [trace.add("life", made_trace.life()) for _ in range(100)]
    choose = random.Random(1)
    for i in range(300_000):
        trace.add("order", made_trace.order(lives[i % 100], thread, *choose.sample(range(1, 600), 2)))


def rings_of_one_lock_and_many_others(trace):
    """Two threads took the first lock and each other lock in opposite orders."""
    thread = trace.add("thread", made_trace.thread(1000))
    lives = [trace.add("life", made_trace.life()) for _ in range(2)]
    for other in range(2, 100_000):
        trace.add("order", made_trace.order(lives[0], thread, 1, other))
        trace.add("order", made_trace.order(lives[1], thread, other, 1))


def draws_of_many_children(trace):
    thread = trace.add("thread", made_trace.thread(1000))
    child = CHILD_PID
    while reference := trace.add("fork", made_trace.fork(thread)):
        trace.add("draw", made_trace.draw(reference), pid=child)
        child += 1


# The default test tries these. If forksight had no limits, each of them would take more time or memory than this test permits. What is
# costly: the frames of stacks, and the search for orders of locks.
DEFAULT = [touches_with_deep_stacks, orders_of_six_hundred_locks]
# The stress test tries all. FORKSIGHT_ATTACK=PART_OF_A_NAME chooses some of them.
ATTACKS = [threads_beside_many_modules, handlers_beside_many_modules, handlers_three_million, modules_half_a_million,
           processes_with_long_command_lines, forks_half_a_million, forks_whose_children_have_one_pid, forks_with_forty_thousand_threads,
           hangs_of_a_hundred_thousand_locks, hangs_of_a_hundred_thousand_children, touches_of_one_lock, touches_with_deep_stacks, flushes_of_one_stream,
           uses_of_one_epoll_instance, orders_of_six_hundred_locks, rings_of_one_lock_and_many_others,
           draws_of_many_children]


class Traces(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-traces-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "run.json").write_text(json.dumps(run_log(processes=[stuck_process(HONEST_PID)])))

    def report(self, form):
        done = run([FORKSIGHT, "report", self.folder, "--format", form])
        self.assertIn(done.status, (0, 1), done.err)
        self.assertLess(done.seconds, SECONDS)
        on_disk_mb = sum(trace.stat().st_blocks * 512 for trace in self.folder.glob("*.fstrace")) / 1e6
        self.assertLess(done.peak_mb, MEMORY_MB + 2 * on_disk_mb)
        return done

    def check(self, sentence=""):
        self.report("text")
        report = json.loads(self.report("json").out)
        self.assertIn(HONEST_PID, [process["pid"] for process in report["processes"]], "the rest of the report is missing")
        self.assertTrue(any(sentence in limit for limit in report["limits"]), report["limits"])

    def test_attacks(self):
        chosen = os.environ.get("FORKSIGHT_ATTACK")
        for attack in DEFAULT if chosen is None else [one for one in ATTACKS if chosen in one.__name__]:
            with self.subTest(attack=attack.__name__):
                trace = Trace(cmdline=MANY_WORDS if attack is processes_with_long_command_lines else b"app\0")
                attack(trace)
                trace.write(self.folder / "strange.fstrace")
                self.check("its names and stacks would take too much memory" if attack is touches_with_deep_stacks else "")

    def stress_many_costly_traces_leave_room_for_an_honest_one(self):
        costly = Trace()
        handlers_three_million(costly)
        for number in range(8):
            costly.write(self.folder / f"a{number}.fstrace")
        honest = Trace(pid=4712)
        forking, lost = (honest.add("thread", made_trace.thread(tid)) for tid in (4712, 4713))
        honest.add("fork", made_trace.fork(forking, [lost]))
        honest.write(self.folder / "z.fstrace")
        self.check("a0.fstrace: its records would take too much memory")
        report = json.loads(self.report("json").out)
        self.assertIn(4712, [process["pid"] for process in report["processes"]])


if __name__ == "__main__":
    unittest.main()
