"""Idle servers and interpreters. After forksight has examined such a program, the program must still answer a request.

packages.txt lists the packages that contain these programs.
"""
import os
import pty
import pwd
import select
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from idle_starts import Started, wait_for

LIMIT_S = 30


def ask(path, question, length=4096):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(LIMIT_S)
        client.connect(path)
        client.sendall(question)
        return client.recv(length)


class Redis(Started):
    """Redis has an event loop with a timer, and threads that wait for jobs. A client waits for Redis to answer BLPOP."""

    def __init__(self, folder):
        self.path = str(Path(folder, "redis.sock"))
        super().__init__("redis", [shutil.which("redis-server") or "/usr/bin/redis-server", "--port", "0", "--unixsocket", self.path,
                                   "--save", "", "--dir", folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(self.path), LIMIT_S, "redis does not start")
        self.client = socket.socket(socket.AF_UNIX)
        self.client.settimeout(LIMIT_S)
        self.client.connect(self.path)
        self.client.sendall(b"BLPOP list 0\r\n")

    def go_on(self):
        ask(self.path, b"RPUSH list a\r\n")
        answer = self.client.recv(4096)
        self.client.close()
        return [] if b"list" in answer else [f"redis: the client that waited got {answer!r}"]


class Nginx(Started):
    """The master process of nginx waits in sigsuspend, and its two workers wait in epoll_wait."""

    def __init__(self, folder):
        folder = Path(folder, "nginx")
        folder.mkdir()
        self.path = str(folder / "socket")
        user = f"user {pwd.getpwuid(os.geteuid()).pw_name};" if os.geteuid() == 0 else ""
        temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "conf").write_text(
            f"{user} daemon off; worker_processes 2; pid {folder}/pid; error_log stderr; events {{}}\n"
            f"http {{ access_log off; {temporary} server {{ listen unix:{self.path}; return 200 well; }} }}\n")
        super().__init__("nginx", [shutil.which("nginx") or "/usr/sbin/nginx", "-p", str(folder), "-c", str(folder / "conf")],
                         stdin=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(self.path) and len(self.tree()) == 3 + bool(Started.wrap), LIMIT_S, "nginx does not start")

    def go_on(self):
        answer = ask(self.path, b"GET / HTTP/1.0\r\n\r\n")
        return [] if answer.endswith(b"well") else [f"nginx answers {answer!r}"]


class Terminal(Started):
    """An interpreter that waits for a line from a terminal."""

    def __init__(self, name, argv, question, answer):
        self.fd, theirs = pty.openpty()
        self.question, self.answer = question, answer
        super().__init__(name, argv, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self.read_until(b"> ")

    def read_until(self, end):
        text = b""
        while end not in text:
            if not select.select([self.fd], [], [], LIMIT_S)[0]:
                break
            text += os.read(self.fd, 4096)
        return text

    def go_on(self):
        os.write(self.fd, self.question)
        said = self.read_until(self.answer)
        return [] if self.answer in said else [f"{self.name}: no answer, but {said!r}"]

    def end(self):
        super().end()
        os.close(self.fd)


def bash(_folder):
    return Terminal("bash", ["bash", "--norc", "--noprofile", "--noediting", "-c", "PS1='> ' exec bash --norc --noprofile -i"],
                    b"echo $((6 * 7))\n", b"42\r\n")


def python_at_a_terminal(_folder):
    return Terminal("python", [sys.executable, "-q", "-i", "-B"], b"6 * 7\n", b"42\r\n")


class Script(Started):
    """A script that prints "idle" before it waits for input. After a line of input it prints its result and ends."""

    def __init__(self, name, argv, **more):
        super().__init__(name, argv, **more)
        if self.popen.stdout.readline() != b"idle\n":
            raise RuntimeError(f"{name} did not start")

    def go_on(self):
        out, _ = self.popen.communicate(b"go\n", timeout=LIMIT_S)
        return [] if out == b"42\n" and self.popen.returncode == 0 else [f"{self.name}: {out!r}, status {self.popen.returncode}"]


PYTHON = {
    "multiprocessing_pool": """
import multiprocessing, sys
def work(n): return 6 * n
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        pool.map(work, range(9))
        print("idle", flush=True)
        sys.stdin.readline()
        print(pool.apply(work, (7,)))
""",
    "multiprocessing_queue": """
import multiprocessing, sys
def work(questions, answers): answers.put(6 * questions.get())
if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    questions, answers = fork.Queue(), fork.Queue()
    worker = fork.Process(target=work, args=(questions, answers))
    worker.start()
    print("idle", flush=True)
    sys.stdin.readline()
    questions.put(7)
    print(answers.get())
    worker.join()
""",
    "thread_pool": """
import concurrent.futures, sys
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    list(pool.map(abs, range(99)))
    print("idle", flush=True)
    sys.stdin.readline()
    print(pool.submit(lambda: 42).result())
""",
    "asyncio": """
import asyncio, sys
async def main():
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    print("idle", flush=True)
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.add_reader(0, lambda: over.done() or over.set_result(sys.stdin.readline()))
    await over
    server.close()
    print(42)
asyncio.run(main())
""",
    "thread_and_fork": """
import os, sys, threading
# The fork does not copy the thread that holds the lock. The child does not need the lock. It
# waits for its parent.
ready = threading.Event()
lock = threading.Lock()
over = threading.Event()
def hold():
    with lock:
        ready.set()
        over.wait()
thread = threading.Thread(target=hold)
thread.start()
ready.wait()
mine, yours = os.pipe()
child = os.fork()
if child == 0:
    os._exit(len(os.read(mine, 9)) + 41)
print("idle", flush=True)
sys.stdin.readline()
os.write(yours, b"x")
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
over.set()
thread.join()
""",
}


def script(name):
    return lambda _folder: Script(name, [sys.executable, "-B", "-c", PYTHON[name]])


class Node(Script):
    def __init__(self, _folder):
        super().__init__("node", ["node", "-e", "process.stdin.once('data', () => { console.log(42); process.exit(0); }); console.log('idle');"])


class Java(Started):
    """A JVM with about a dozen internal threads, and one thread that reads a password.

The JVM runs keytool, because even a Java runtime without a compiler contains keytool.
"""

    def __init__(self, folder):
        store = str(Path(folder, "keystore"))
        subprocess.run(["keytool", "-genkeypair", "-keystore", store, "-storepass", "secret", "-dname", "CN=idle", "-alias", "one",
                        "-keyalg", "EC"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S)
        super().__init__("java", ["keytool", "-list", "-keystore", store], stderr=subprocess.PIPE)
        question = b""
        while not question.endswith(b": "):
            question += self.popen.stderr.read(1) or b": "

    def go_on(self):
        out, _ = self.popen.communicate(b"secret\n", timeout=LIMIT_S)
        return [] if b"one, " in out and self.popen.returncode == 0 else [f"java: {out!r}, status {self.popen.returncode}"]


class Postgres(Started):
    """A postmaster with its writer and launcher processes.

    A postmaster refuses to run as root. So if the test runs as root, it starts the postmaster as the user postgres.
    """

    def __init__(self, folder):
        tools, user = self.find_tools(), self.find_user()
        folder = Path(folder, "postgres")
        folder.mkdir()
        os.chmod(folder.parent, 0o755)
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        self.as_user = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        subprocess.run([tools / "initdb", "-D", folder / "data", "-A", "trust", "-N"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=120, cwd=folder, **self.as_user)
        super().__init__("postgres", [str(tools / "postgres"), "-D", str(folder / "data"), "-k", str(folder), "-h", ""],
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=folder, **self.as_user)
        self.psql = [tools / "psql", "-h", folder, "-d", "postgres", "-At", "-c", "select 6 * 7"]
        wait_for(lambda: self.answer() == "42", 60, "postgres does not start")

    def answer(self):
        return subprocess.run(self.psql, capture_output=True, text=True, timeout=LIMIT_S, check=False, **self.as_user).stdout.strip()

    def go_on(self):
        return [] if self.answer() == "42" else ["postgres does not answer"]

    @staticmethod
    def find_user():
        return pwd.getpwnam("postgres") if os.geteuid() == 0 else None

    @staticmethod
    def find_tools():
        return max(Path("/usr/lib/postgresql").glob("*/bin"))


SERVERS = [Redis, Nginx, Node, Java, Postgres, bash, python_at_a_terminal, *(script(name) for name in PYTHON)]
