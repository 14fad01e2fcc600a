"""ways_out.py FORKSIGHT WAYS_OUT NO_LIBC: programs that look as if they hung, but go on when something wakes them.

`forksight run --on-hang kill` must not kill these programs, and must report no hang. A few programs are an exception
(MAY_BE_WITHDRAWN): if `run` reports a hang of such a program, the hang must not be certain, and `run` must later
withdraw the finding. `forksight why` must report no hang, either. `why` must say what the programs wait for, or what
could end the wait. Other programs look similar, but nothing can wake them (TWINS). `run` must report a hang of each
twin, and kill the twin.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import memory_groups
from processes import become_reaper

HANG_AFTER = "0.2"
IDLE_S = 3.0  # how long `run` watches a program that is ready: fifteen times HANG_AFTER
LIMIT_S = 250  # only ends a program that hangs
MOST_STARTS = 5
FOUND = 9
AT_ONCE = 4
KILLED = 128 + signal.SIGKILL

ASYNCIO = """
import asyncio, signal
async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print("x", end="", flush=True)
    await stop.wait()
asyncio.run(main())
raise SystemExit(7)
"""

ASYNCIO_INTERRUPT = ASYNCIO.replace("signal.SIGTERM", "signal.SIGINT")

EVENT = """
import signal, threading
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
print("x", end="", flush=True)
stop.wait()
raise SystemExit(7)
"""

EVENT_INTERRUPT = EVENT.replace("signal.SIGTERM", "signal.SIGINT")

RAISING_ALARM = """
import os, signal, threading
def give_up(*_): raise TimeoutError
signal.signal(signal.SIGALRM, give_up)
signal.alarm(4 * int(os.environ.get("WAITS_ARE_LONGER", 1)))
print("x", end="", flush=True)
lock = threading.Lock()
lock.acquire()
try:
    lock.acquire()
except TimeoutError:
    raise SystemExit(7)
"""

# A thread that the fork does not copy holds the lock. The handler of SIGALRM raises an exception, which ends the wait.
LOST_LOCK_ALARM = """
import os, signal, threading, time
lock, taken = threading.Lock(), threading.Event()
def work():
    with lock:
        taken.set(); time.sleep(60)
threading.Thread(target=work, daemon=True).start()
taken.wait()
print("x", end="", flush=True)
child = os.fork()
if child == 0:
    def give_up(*_): raise TimeoutError
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(4)
    try:
        lock.acquire()
    except TimeoutError:
        os._exit(7)
os._exit(os.waitpid(child, 0)[1] >> 8)
"""

# `run` may report a hang of the programs in MAY_BE_WITHDRAWN, but not a certain one. When such a program goes on, `run`
# must withdraw the finding.
JUMPS = ["alarm_jumps", "alarm_unlocks", "alarm_cancels", "timer_jumps", "childs_end_jumps", "ready_descriptor_jumps", "alarm_jumps_out_of_orphan"]
MAY_BE_WITHDRAWN = {"slow_atfork", "busy_atfork", "lost_lock_alarm", "cancelled_anywhere", *JUMPS}

EXECUTOR = """
import concurrent.futures, multiprocessing, signal, threading
stop = threading.Event()
if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        assert sorted(pool.map(abs, [-1, -2, -3, -4])) == [1, 2, 3, 4]
        print("x", end="", flush=True)
        stop.wait()
        assert pool.submit(abs, -7).result() == 7
    raise SystemExit(7)
"""

QUEUE = """
import multiprocessing, signal, threading
stop = threading.Event()
def work(queue): raise SystemExit(queue.get() + 2)
if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    worker = fork.Process(target=work, args=(queue,))
    worker.start()
    print("x", end="", flush=True)
    stop.wait()
    queue.put(5)
    worker.join()
    raise SystemExit(worker.exitcode)
"""

NODE = """
const child = require('child_process').spawn('cat', {stdio: ['pipe', 'pipe', 'inherit']});
child.stdout.on('data', () => process.exit(7));
process.on('SIGTERM', () => child.stdin.write('go'));
require('fs').writeSync(1, 'x');
"""

RUBY = """
queue = Queue.new
reader, writer = IO.pipe
trap('TERM') { writer.write('x') }
Thread.new { reader.read(1); queue << 7 }
$stdout.write('x'); $stdout.flush
exit queue.pop
"""

DEADLOCK = """
import signal, threading
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("x", end="", flush=True)
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""


def python(script):
    return [sys.executable, "-B", "-c", script]


def programs(ways_out, no_libc):
    """Returns for each program: its name, its command, the signal that ends its wait, and a pattern that the output of `why` must match.

    If the signal is None, the wait ends by itself. If the pattern is None, `why` is not run.
    """
    return [
        ("self_pipe", [ways_out, "self_pipe"], signal.SIGTERM, "a handler of SIGTERM"),
        ("signal_32_without_libc", [no_libc], 32, r"could be ended by: .*\n +a handler of signal 32\n"),
        ("sem_in_handler", [ways_out, "sem_in_handler"], signal.SIGTERM, "a handler of SIGTERM"),
        ("prefork", [ways_out, "prefork"], signal.SIGTERM, "a handler of SIGTERM"),
        ("alarm_in_read", [ways_out, "alarm_in_read"], None, "in read: pipe:"),
        ("watchdog_aborts", [ways_out, "watchdog_aborts"], None, "in read: pipe:"),
        ("epoll_changed", [ways_out, "epoll_changed"], None, "in epoll_wait"),
        ("child_has_alarm", [ways_out, "child_has_alarm"], None, "in read: pipe:"),
        ("descriptor_on_its_way", [ways_out, "descriptor_on_its_way"], None, "thread"),
        ("lock_on_its_way", [ways_out, "lock_on_its_way"], None, "in flock: "),
        ("memory_on_its_way", [ways_out, "memory_on_its_way"], None, "in a futex"),
        ("memory_as_descriptor", [ways_out, "memory_as_descriptor"], None, "in a futex"),
        ("held_by_filter", [ways_out, "held_by_filter"], None, None),
        ("ring_writes", [ways_out, "ring_writes"], None, "in read: pipe:"),
        ("ring_of_parent", [ways_out, "ring_of_parent"], None, "in read: pipe:"),
        ("aio_of_parent", [ways_out, "aio_of_parent"], None, "in read: .*eventfd"),
        ("group_of_memory", [ways_out, "group_of_memory"], None, "in read: .*eventfd"),
        ("own_locks", [ways_out, "own_locks"], None, None),
        ("requeued", [ways_out, "requeued"], None, "in a futex"),
        ("remapped", [ways_out, "remapped"], None, "in a futex"),
        ("bytes_not_yet_sent", [ways_out, "bytes_not_yet_sent"], None, "in read: socket:"),
        *[(name, [ways_out, name], None, "in read: pipe:") for name in ("thread_has_pipe", "number_means_two_files")],
        ("thread_has_timer", [ways_out, "thread_has_timer"], None, "in read: anon_inode:.timerfd"),
        ("number_used_again", [ways_out, "number_used_again"], None, "in epoll_wait"),
        *[(name, [ways_out, name], None, None) for name in JUMPS],
        ("cancelled_anywhere", [ways_out, "cancelled_anywhere"], None, None),
        ("slow_atfork", [ways_out, "slow_atfork"], None, None),
        ("busy_atfork", [ways_out, "busy_atfork"], None, None),
        ("asyncio", python(ASYNCIO), signal.SIGTERM, "a handler of SIG"),
        ("asyncio_interrupt", python(ASYNCIO_INTERRUPT), signal.SIGINT, "a handler of SIGINT"),
        ("event", python(EVENT), signal.SIGTERM, "a handler of SIGTERM"),
        ("event_interrupt", python(EVENT_INTERRUPT), signal.SIGINT, "a handler of SIGINT"),
        ("raising_alarm", python(RAISING_ALARM), None, "a handler of SIGALRM"),
        ("lost_lock_alarm", python(LOST_LOCK_ALARM), None, None),
        ("executor", python(EXECUTOR), signal.SIGTERM, "a handler of SIGTERM"),
        ("queue", python(QUEUE), signal.SIGTERM, "a handler of SIGTERM"),
        ("node", ["node", "-e", NODE], signal.SIGTERM, None),
        ("ruby", ["ruby", "-e", RUBY], signal.SIGTERM, None),
    ]


TWINS = [
    ("own_pipe", "pipe-held-open"),
    ("own_pipe_with_fault_handlers", "pipe-held-open"),
    ("own_pipe_with_blocked_signal", "pipe-held-open"),
    ("own_mutex_with_handler", "self-deadlock"),
    ("own_tcp", "pipe-held-open"),
    ("own_shared_word", "deadlock"),
    ("lost_poster", "lost-wakeup"),
    ("thread_has_pipe_and_waits", "pipe-held-open"),
    ("own_epoll", "pipe-deadlock"),
    ("lock_made_anew", "deadlock"),
    ("own_locked_mutex", "join-cycle"),
    ("full_eventfd", "pipe-deadlock"),
]

# What `run` says of these programs depends on whether the machine has memory control groups of version 1. Each of these
# programs runs twice. The second time, the groups are hidden from forksight.
OF_EVENTFDS = {"aio_of_parent", "own_epoll"}


def start(forksight, folder, name, command, hiding=(), longer=1):
    """Starts `forksight run` with the command. Returns the process of `run` when the program is ready.

    `hiding` is the beginning of the command line (hiding_command() in memory_groups.py). Some waits of the program end
    by themselves. These waits last `longer` times as long as usual.
    """
    where = Path(folder, name)
    where.mkdir()
    argv = [*hiding, forksight, "run", "--hang-after", HANG_AFTER, "--on-hang", "kill", "--error-exitcode", str(FOUND), "--fail-on",
            "possible", "--out", str(where / "out"), "--", *command]
    with open(where / "stderr", "wb") as err:
        run = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, cwd=where, start_new_session=True,
                               env=os.environ | {"WAITS_ARE_LONGER": str(longer)})
    if run.stdout.read(1) != b"x":
        run.kill()
        raise RuntimeError(f"{name} did not start: {(where / 'stderr').read_text(errors='replace')}")
    return run


def said_by(folder, name):
    return Path(folder, name, "stderr").read_text(errors="replace")


def program_of(run):
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    return int(children[0]) if children else None


def ask(forksight, pid, words, name):
    done = subprocess.run([forksight, "why", str(pid)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        return [f"{name}: `why` ends with {done.returncode}: {done.stdout}{done.stderr}"]
    if words and not re.search(words, done.stdout):
        return [f"{name}: `why` does not say \"{words}\": {done.stdout}"]
    return []


class TooLate(Exception):
    """The wait of the program ended by itself before `why` had examined it, because the machine is busy."""


def expect_no_finding(forksight, folder, name, command, end, words, hiding=()):
    """If the wait of a program ends by itself before `why` has examined it, starts the program again, with a longer wait."""
    for attempt in range(MOST_STARTS):
        try:
            return watch_without_finding(forksight, folder, f"{name}.{attempt}", name, command, end, words, hiding, 2 ** attempt)
        except TooLate:
            continue
    return [f"{name}: in {MOST_STARTS} starts, `why` never examined the program before its wait ended"]


def watch_without_finding(forksight, folder, place, name, command, end, words, hiding, longer):
    lines = []
    run = start(forksight, folder, place, command, hiding, longer)
    try:
        if words:
            time.sleep(1)
            program = program_of(run)
            lines += ask(forksight, program, words, name) if program else ["the program has ended"]
            if lines and end is None and run.poll() == 7:
                raise TooLate
        time.sleep(IDLE_S)
        if end is not None and run.poll() is None:
            os.kill(program_of(run), end)
        status = run.wait(LIMIT_S)
        if status != 7:
            lines.append(f"{name}: status {status}, not 7")
    finally:
        run.stdout.close()
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    said = said_by(folder, place)
    allowed = "is withdrawn" in said and name in MAY_BE_WITHDRAWN and "CERTAIN" not in said
    if "finding" in said.splitlines()[-1] or ("HANG" in said and not allowed) or "unexplained" in said:
        lines.append(f"{name}: {said}")
    return lines


def expect_finding(forksight, folder, name, command, rule, hiding=()):
    run = start(forksight, folder, name, command, hiding)
    try:
        status = run.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        status = None
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    run.stdout.close()
    said = said_by(folder, name)
    return [] if status == FOUND and f": {rule}\n" in said and "CERTAIN HANG" in said else [f"{name}: status {status}: {said}"]


def main():
    forksight, ways_out, no_libc = sys.argv[1:]
    become_reaper()
    hiding = memory_groups.hiding_command()
    jobs = []
    with tempfile.TemporaryDirectory(prefix="forksight-ways-out-") as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        for name, command, end, words in programs(ways_out, no_libc):
            jobs.append(pool.submit(expect_no_finding, forksight, folder, name, command, end, words))
            if hiding and name in OF_EVENTFDS:
                jobs.append(pool.submit(expect_no_finding, forksight, folder, f"{name}_without_groups", command, end, None, hiding))
        for name, rule in TWINS:
            if name not in OF_EVENTFDS:
                jobs.append(pool.submit(expect_finding, forksight, folder, name, [ways_out, name], rule))
            elif hiding is not None:
                jobs.append(pool.submit(expect_finding, forksight, folder, name, [ways_out, name], rule, hiding))
            else:
                print(f"{name} is left out: this machine has memory control groups of version 1, which this user may not hide")
        jobs.append(pool.submit(expect_finding, forksight, folder, "without_libc", [no_libc, "without handler"], "pipe-held-open"))
        jobs.append(pool.submit(expect_finding, forksight, folder, "deadlock", python(DEADLOCK), "deadlock"))
        lines = [line for job in jobs for line in job.result()]
    memory_groups.remove_left("forksight-ways-out-")
    print(f"{len(jobs)} programs")
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
