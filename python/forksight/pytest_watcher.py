"""This program watches one pytest process, and ends processes that hang. pytest_plugin.py starts it.

Each line of standard input is a JSON document from the plugin. It says that a phase has begun or ended, that pytest has
caught the watcher's signal, or that a test has a result. The first line of standard output is the process id of the
watcher. Each further line announces an explanation: it has the number of the explained phase (its token), and the path
of the file. The watcher is not a child of pytest, so an os.wait() in a test does not return the watcher's id. The
watcher imports only the standard library, because it runs with `python -I -S`.
"""
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

PATIENCE = 3.0      # seconds that pytest has to react to the signal
LOOK_LIMIT = 60     # seconds that one call of `forksight why` may take
MOST_TRIES = 3      # how often a test may catch the plugin's exception and go on before pytest is ended
PACE = 0.5          # seconds between two checks of whether pytest is alive
MOST_IDLE = 0.1     # share of one processor; a process tree that uses more is taken to be working


def file_name(nodeid):
    return "pytest-" + re.sub(r"[^A-Za-z0-9_.-]+", "-", nodeid)[-150:].strip("-") + ".txt"


def read_stat(pid):
    """Returns state, parent, start time and processor time (both times in ticks) of a process. Returns None if there is
    no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            words = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return words[0], int(words[1]), int(words[19]), int(words[11]) + int(words[12])


def read_work(root):
    """Returns how many seconds of processor time `root` and its descendants have used."""
    stats = [read_stat(pid) for pid in (root, *find_descendants(root))]
    return sum(stat[3] for stat in stats if stat) / os.sysconf("SC_CLK_TCK")


def find_descendants(root):
    """Returns {pid: start time} of all descendants of `root`."""
    parents = {}
    for name in os.listdir("/proc"):
        stat = read_stat(name) if name.isdigit() else None
        if stat and stat[0] not in "ZX":
            parents[int(name)] = stat[1:]
    found = {}
    for pid in parents:
        above = pid
        while above in parents and above != root:
            above = parents[above][0]
        if above == root and pid != root:
            found[pid] = parents[pid][1]
    return found


def find_dead(document, root):
    """Returns {pid: start time} of the descendants of `root` that, according to the report, are proven to hang."""
    proven = {(one["pid"], one["start_ticks"]) for one in document.get("processes", []) if one["liveness"] == "dead"}
    for finding in document.get("findings", []):
        if finding["hang"] == "proven" and finding["outcome"] == "hang":
            proven |= {(one["pid"], one["start_ticks"]) for one in finding["processes"]}
    return {pid: start for pid, start in find_descendants(root).items() if (pid, start) in proven}


def end(processes):
    for pid, start in processes.items():
        stat = read_stat(pid)
        if stat and stat[2] == start:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass


def write_junit(path, results):
    """Writes the JUnit report in place of pytest, which is about to be killed."""
    def count(kind):
        return str(sum(one["outcome"] == kind for one in results.values()))
    suite = xml.Element("testsuite", name="pytest", tests=str(len(results)), failures=count("failed"), errors="0", skipped=count("skipped"))
    for nodeid, one in results.items():
        module, _, name = nodeid.partition("::")
        case = xml.SubElement(suite, "testcase", classname=module.replace("/", ".").replace(".py", ""), name=name or nodeid,
                              time=f"{one['duration']:.3f}")
        if one["outcome"] != "passed":
            text = "".join(sign for sign in one["text"] if sign in "\n\t" or sign.isprintable())
            below = xml.SubElement(case, "failure" if one["outcome"] == "failed" else "skipped", message=text.partition("\n")[0])
            below.text = text
    root = xml.Element("testsuites")
    root.append(suite)
    xml.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


class Watcher:
    def __init__(self, settings):
        self.settings = settings
        self.pid = settings["pid"]
        self.start = read_stat(self.pid)[2]
        self.rest = b""
        self.phase = None   # the phase that is under way
        self.caught = None  # the token of the phase in which pytest caught the signal
        self.results = {}
        self.is_open = True

    def run(self):
        while self.is_alive():
            if self.phase and time.monotonic() >= self.phase["deadline"]:
                self.judge(self.phase)
            elif self.is_open:
                self.receive(PACE)
            else:
                time.sleep(PACE)

    def is_alive(self):
        stat = read_stat(self.pid)
        return bool(stat) and stat[2] == self.start and stat[0] not in "ZX"

    def receive(self, seconds):
        if not self.is_open:
            time.sleep(seconds)
            return
        if not select.select([0], [], [], max(seconds, 0))[0]:
            return
        data = os.read(0, 1 << 16)
        self.is_open = bool(data)
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        for line in lines:
            self.take(json.loads(line))

    def take(self, message):
        kind = message["kind"]
        if kind == "begin":
            self.phase = {**message, "tries": 0, "deadline": time.monotonic() + self.settings["seconds"]}
        elif kind == "end":
            self.phase = None
        elif kind == "caught":
            self.caught = message["token"]
        elif kind == "result":
            known = self.results.get(message["nodeid"])
            if known is None or known["outcome"] == "passed":
                self.results[message["nodeid"]] = message

    def ask(self, *options):
        command = [self.settings["command"], "why", *options, str(self.pid)]
        try:
            looked = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LOOK_LIMIT,
                                    encoding="utf-8", errors="replace", check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return "", str(error)
        return looked.stdout, looked.stderr

    def is_over(self, phase):
        self.receive(0)
        return self.phase is not phase or not self.is_alive()

    def await_answer(self, phase):
        """Returns True as soon as pytest has caught the signal, has left the phase, or has ended. Returns False after
        PATIENCE."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self.caught == phase["token"] or self.is_over(phase):
                return True
            self.receive(0.05)
        return False

    def await_end(self, phase):
        """Returns True as soon as pytest has left the phase or has ended. Returns False after PATIENCE."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self.is_over(phase):
                return True
            self.receive(0.05)
        return False

    def judge(self, phase):
        text, problem = self.ask()
        document, _ = self.ask("--format", "json")
        if self.is_over(phase):  # the phase was slow and has ended without the signal
            return
        try:
            dead = find_dead(json.loads(document), self.pid)
        except ValueError:
            dead = {}
        head = f"forksight: {phase['name']}: its {phase['when']} has not ended after {self.settings['seconds']:g} s\n\n"
        text = head + (text or f"forksight could not examine pytest: {problem}\n")
        path = self.write(phase, text, document)
        is_exit = phase["when"] == "exit"
        if is_exit:
            self.say(text)
        phase["tries"] += 1
        phase["deadline"] = time.monotonic() + max(self.settings["seconds"], PATIENCE)
        below = find_descendants(self.pid) if is_exit else {}
        if is_exit:
            # pytest may end by itself as soon as the descendants that hang are killed.
            end(dead)
            if self.await_answer(phase):
                return
        self.caught = None
        os.write(1, f"{phase['token']} {path}\n".encode())
        os.kill(self.pid, self.settings["signal"])
        was_caught = self.await_answer(phase)
        # The descendants that hang are killed only after the signal. Otherwise a test that waits for such a process
        # would go on as if that process had ended by itself.
        end(dead)
        before, work = time.monotonic(), read_work(self.pid)
        if was_caught:
            goes_on = phase["tries"] > MOST_TRIES and not self.await_end(phase)
        else:
            goes_on = not self.await_answer(phase)
        where = "in Python code that catches each interruption" if was_caught else "in native code"
        if not goes_on:
            if is_exit:
                end(below)
        elif read_work(self.pid) - work > MOST_IDLE * (time.monotonic() - before):
            # The process tree uses processor time, so pytest is not ended. If pytest is in native code, the test fails
            # when that code returns.
            self.say(f"forksight: {phase['name']} is still at work {where}, and is not ended; report in {path}\n")
        else:
            self.end_pytest(phase, text, path, where)

    def write(self, phase, text, document):
        path = os.path.join(self.settings["out"], file_name(phase["name"]))
        try:
            os.makedirs(self.settings["out"], exist_ok=True)
            for name, content in ((path, text), (path[:-len("txt")] + "json", document)):
                with open(name, "w", encoding="utf-8") as file:
                    file.write(content)
        except OSError as error:
            self.say(f"forksight: {path}: {error}\n")
        return path

    def end_pytest(self, phase, text, path, where):
        """Kills pytest and its descendants. Called if the main thread waits in native code, which no Python handler can
        interrupt, or if the test catches each exception of the plugin's handler. `where` says which of the two is the
        case."""
        if self.settings["junit"]:
            self.results[phase["name"]] = {"outcome": "failed", "duration": self.settings["seconds"], "text": text}
            try:
                write_junit(self.settings["junit"], self.results)
            except OSError as error:
                self.say(f"forksight: {self.settings['junit']}: {error}\n")
        if not self.settings["is_worker"]:
            self.say(text)
        who = "this worker" if self.settings["is_worker"] else "the session"
        self.say(f"forksight: {phase['name']} waits {where} and cannot be interrupted: {who} is ended by SIGKILL; report in {path}\n")
        end({self.pid: self.start, **find_descendants(self.pid)})

    @staticmethod
    def say(text):
        try:
            sys.stderr.write("\n" + text)
            sys.stderr.flush()
        except OSError:
            pass


def main():
    settings = json.loads(sys.argv[1])
    if os.fork() > 0:  # this process has only one thread, so the child loses no thread
        os._exit(0)
    os.setsid()
    # Commands that the watcher starts must not inherit the pipe.
    fcntl.fcntl(0, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    os.write(1, f"{os.getpid()}\n".encode())
    Watcher(settings).run()


if __name__ == "__main__":
    main()
