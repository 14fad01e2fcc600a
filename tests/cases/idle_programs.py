"""idle_programs.py FORKSIGHT WAITS: runs correct programs that wait for something. `forksight why` examines each program
while it waits, and must report nothing.

The examination must not disturb the programs. Afterwards the test lets each wait end. Each call of the programs must have
the same result as without the examination.
"""
import concurrent.futures
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from idle_servers import SERVERS
from idle_starts import Started, communicate, wait_for
from processes import become_reaper, look

LOOKS = 3
AT_ONCE = 2
LIMIT_S = 250  # only ends a program that hangs
SETTLE_S = 4
MOST_STARTS = 5


def by_timeout(_program):
    """Does nothing, because a timeout ends the wait."""


def by_byte(program):
    program.popen.stdin.write(b"x")
    program.popen.stdin.flush()


def by_signal(program):
    os.kill(program.pid, signal.SIGUSR1)


def by_connecting(times):
    def connect(program):
        for _ in range(times):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(LIMIT_S)
                client.connect(program.path)
                client.recv(1)
    return connect


def by_answer(program):
    client, _ = program.listener.accept()
    with client:
        client.sendall(b"x")


# For each wait: its name, the function that ends the wait, and the text that the program prints after the wait.
WAITS = [
    ("epoll", by_byte, "1 0"),
    ("poll", by_byte, "1 0"),
    ("select", by_byte, "1 0"),
    ("pipe", by_byte, "1 0"),
    ("sleepers", by_timeout, "0 0"),
    ("pool_and_read", by_byte, "1 0"),
    ("pool_and_sleep", by_timeout, "0 0"),
    ("pool_and_sigwait", by_signal, "1 0"),
    ("signalfd", by_signal, "1 0"),
    ("timerfd", by_timeout, "1 0"),
    ("pause", by_signal, "-1 EINTR"),
    ("sigsuspend", by_signal, "-1 EINTR"),
    ("eventfd", by_timeout, "0 0"),
    ("sem_timedwait", by_timeout, "-1 ETIMEDOUT"),
    ("cond_timedwait", by_timeout, "-1 ETIMEDOUT"),
    ("semtimedop", by_timeout, "-1 EAGAIN"),
    ("recv_with_timeout", by_timeout, "-1 EAGAIN"),
    ("accept", by_connecting(1), "1 0"),
    ("client", by_answer, "1 0"),
    ("live_child", by_byte, "1 0"),
    ("prefork", by_connecting(3), "3 0"),
    ("forked_reader", by_byte, "1 0"),
    ("forked_threads", by_byte, "7 0"),
    ("forked_pool", by_byte, "7 0"),
    ("forked_daemon", by_byte, "7 0"),
    ("flock", by_byte, "7 0"),
]


class Wait(Started):
    def __init__(self, waits, name, end, expected, folder):
        self.end_wait, self.expected = end, expected
        self.path = str(Path(folder, name))
        self.listener = None
        if name == "client":
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
            self.listener.listen()
        super().__init__(name, [waits, name, self.path])
        if self.popen.stdout.read(1) != b"x":
            raise RuntimeError(f"{name} did not start")

    def go_on(self):
        self.end_wait(self)
        said = communicate(self.popen, LIMIT_S)
        if self.listener:
            self.listener.close()
        return [] if said == self.expected and self.popen.returncode == 0 else [
            f"{self.name}: the program printed \"{said}\", not \"{self.expected}\" (status {self.popen.returncode})"]


def has_settled(program):
    before = look(program.tree())
    time.sleep(0.2)
    return before and before == look(program.tree()) and all(task.state == "S" for task in before.values())


def look_at(forksight, program):
    """Runs `forksight why` several times. Returns lines about the first unexpected exit status."""
    wait_for(lambda: has_settled(program), SETTLE_S, None)  # a server with timers never comes to rest, so a timeout is no failure
    lines = []
    for _ in range(LOOKS):
        done = subprocess.run([forksight, "why", str(program.pid)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            lines += [f"{program.name}: `forksight why` ends with {done.returncode}:", done.stdout, done.stderr]
            break
    return lines


def main():
    forksight, waits = sys.argv[1:]
    become_reaper()
    lines, started = [], []
    with tempfile.TemporaryDirectory(prefix="forksight-idle-") as folder:
        try:
            for make in SERVERS:
                started.append(make(folder))
            for name, end, expected in WAITS:
                if end is not by_timeout:
                    started.append(Wait(waits, name, end, expected, folder))

            def start_and_look_at(wait):
                """On a busy machine, the wait of a program may end before `why` has examined it. Then the program is started again."""
                for _ in range(MOST_STARTS):
                    started.append(Wait(waits, *wait, folder))
                    found = look_at(forksight, started[-1])
                    if not found or started[-1].popen.poll() is None:
                        return found
                return found

            with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as looks:
                for found in looks.map(lambda program: look_at(forksight, program), list(started)):
                    lines += found
            # The programs whose wait has a timeout are started one by one. The timeout runs from the start of the
            # program, and it must not end before the examination.
            for wait in WAITS:
                if wait[1] is by_timeout:
                    lines += start_and_look_at(wait)
            for program in started:
                lines += program.go_on()
        finally:
            for program in started:
                program.end()
    print(f"{len(started)} programs: {' '.join(program.name for program in started)}")
    print("\n".join(lines))
    return 1 if lines or len(started) < len(WAITS) + len(SERVERS) else 0


if __name__ == "__main__":
    sys.exit(main())
