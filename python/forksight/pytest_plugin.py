"""A plugin for pytest. If a test hangs, the plugin makes the test fail, with the text of `forksight why` as the
explanation. The session then continues with the next test.

The plugin starts a watcher, which is a process of its own (pytest_watcher.py). A phase is the collection of the tests,
a setup, call or teardown of a test, or the exit of pytest. The plugin tells the watcher when each phase begins and
ends. If a phase takes longer than the limit, the watcher writes an explanation into a file, and then sends a signal to
pytest. The plugin's handler of this signal runs in the main thread, and raises an exception there. The plugin starts no
thread: in a process with a second thread, every fork of a test would be a hazard.
"""
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from forksight import find_command
from forksight.pytest_watcher import file_name

DEFAULT_SECONDS = 300.0
MARK = "FORKSIGHT_PYTEST"  # set in the environment of the pytest that the plugin has started again under the shim
SIGNALS = (51, 50, 49, 48)  # real-time signals that the shim does not use
PR_SET_PTRACER = 0x59616D61


def pytest_addoption(parser):
    group = parser.getgroup("forksight", "tests that hang")
    group.addoption("--forksight", nargs="?", const="auto", choices=("auto", "observe"),
                    help="explain tests that hang; auto: also apply the sound cures of `forksight run --cure=auto`; observe: cure nothing")
    group.addoption("--forksight-timeout", type=float, metavar="SECONDS",
                    help=f"a setup, call or teardown that takes longer is explained and ended (default: {DEFAULT_SECONDS:g})")
    group.addoption("--forksight-out", metavar="DIR", help="the folder for the explanations (default: forksight-out)")
    parser.addini("forksight", "auto or observe: as --forksight", default="")
    parser.addini("forksight_timeout", "as --forksight-timeout", default="")
    parser.addini("forksight_out", "as --forksight-out", default="")


class Settings:
    def __init__(self, config, options):
        self.mode = options.forksight or config.getini("forksight")
        if self.mode not in ("", "auto", "observe"):
            raise pytest.UsageError(f"forksight: {self.mode!r} is neither auto nor observe")
        seconds = options.forksight_timeout
        if seconds is None:
            seconds = config.getini("forksight_timeout") or DEFAULT_SECONDS
        try:
            self.seconds = float(seconds)
        except ValueError:
            raise pytest.UsageError(f"forksight_timeout: {seconds!r} is not a number of seconds") from None
        if not self.seconds > 0:
            raise pytest.UsageError(f"--forksight-timeout {self.seconds:g}: must be more than 0")
        self.out = os.path.abspath(options.forksight_out or config.getini("forksight_out") or "forksight-out")


def is_under_shim():
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        return "/libforksight" in file.read()


def shim_environment(command, settings):
    """Returns the environment variables that `forksight run` sets for its command, but with a new folder as
    FORKSIGHT_OUT. Returns {} if `forksight run` fails."""
    cure = "auto" if settings.mode == "auto" else "none"
    asked = subprocess.run([command, "run", "-q", "--cure", cure, "--out", settings.out, "--", "env", "-0"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    pairs = [os.fsdecode(pair).partition("=") for pair in asked.stdout.split(b"\0")]
    found = {name: value for name, _, value in pairs if name.startswith("FORKSIGHT_") or name in ("LD_PRELOAD", "ASAN_OPTIONS")}
    if asked.returncode != 0 or "LD_PRELOAD" not in found:
        return {}
    # If this variable is set, the shim installs a signal handler. A handler could end any wait, so `forksight why`
    # could not prove a hang.
    found.pop("FORKSIGHT_PYTHON_SIGNAL", None)
    folder = os.path.join(settings.out, f"pytest-run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    os.makedirs(folder, exist_ok=True)
    return {**found, "FORKSIGHT_OUT": folder}


def is_pytest_itself(config):
    """Returns True if this process runs nothing but pytest. Only then can the plugin start pytest again without doing
    something else twice."""
    return list(config.invocation_params.args) == sys.argv[1:] and len(os.listdir("/proc/self/task")) == 1


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    settings = Settings(early_config, early_config.known_args_namespace)
    command = find_command()
    if not settings.mode or not command or MARK in os.environ or is_under_shim() or not is_pytest_itself(early_config):
        return
    environment = shim_environment(command, settings)
    if not environment:
        return
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().split(b"\0")[:-1]
    capture = early_config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, words, {**os.environ, **environment, MARK: str(os.getpid())})


def pytest_configure(config):
    settings = Settings(config, config.option)
    if not settings.mode:
        return
    command = find_command()
    if not command:
        raise pytest.UsageError("forksight: the command is not found: set FORKSIGHT to its path, or put it into PATH")
    config.pluginmanager.register(Plugin(config, settings, command), "forksight-plugin")


class Plugin:
    def __init__(self, config, settings, command):
        self.config = config
        self.settings = settings
        self.pid = os.getpid()
        self.began = time.time()
        self.is_worker = hasattr(config, "workerinput")
        self.status = 1
        self.token = 0       # how many phases have begun
        self.active = None   # the token of the phase that is under way
        self.when = ""
        self.explained = {}  # (node id, phase): the text
        self.name = ""
        self.signal = next((one for one in SIGNALS if signal.getsignal(one) == signal.SIG_DFL), None)
        if self.signal is None:
            raise pytest.UsageError("forksight: signals 48 to 51 all have handlers already")
        signal.signal(self.signal, self.on_signal)
        self.prctl = ctypes.CDLL(None).prctl
        self.watcher = self.start_watcher(command)
        self.allow_watcher()
        os.register_at_fork(after_in_child=self.in_child)

    def start_watcher(self, command):
        told, self.tell = os.pipe()
        self.answers, answer = os.pipe()
        self.identity = os.fstat(self.tell)[:3]
        junit = getattr(self.config.option, "xmlpath", None)
        words = json.dumps({"pid": self.pid, "seconds": self.settings.seconds, "out": self.settings.out, "command": command,
                            "signal": int(self.signal), "is_worker": self.is_worker,
                            "junit": os.path.abspath(junit) if junit and not self.is_worker else ""})
        clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("FORKSIGHT")}
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytest_watcher.py")
        # pytest captures no output while it configures its plugins, so the watcher gets the real standard error.
        subprocess.run([sys.executable, "-I", "-S", program, words], stdin=told, stdout=answer, env=clean, check=True)
        os.close(told)
        os.close(answer)
        pid = int(self.read_answers().split()[0])
        os.set_blocking(self.answers, False)
        return pid

    def read_answers(self):
        try:
            return os.read(self.answers, 1 << 16).decode()
        except OSError:
            return ""

    def allow_watcher(self):
        # The watcher is no ancestor of this process. If kernel.yama.ptrace_scope is 1, the watcher may examine this
        # process only after this call. A kernel without Yama needs no such permission, and the call fails there.
        self.prctl(PR_SET_PTRACER, ctypes.c_ulong(self.watcher), 0, 0, 0)

    def in_child(self):
        self.allow_watcher()
        try:
            # The child gives up the plugin's signal handler. A handler could end any wait. So with a handler, no hang
            # of the child could be proven.
            signal.signal(self.signal, signal.SIG_DFL)
        except ValueError:
            pass

    def send(self, **message):
        # A forked child sends nothing. If a test has closed the descriptor `tell`, its number may belong to another
        # file now. That file has a different identity, and the plugin must not write into it.
        if os.getpid() != self.pid:
            return
        try:
            if os.fstat(self.tell)[:3] == self.identity:
                os.write(self.tell, json.dumps(message).encode() + b"\n")
        except OSError:
            pass

    def begin(self, name, when):
        self.token += 1
        self.name, self.when = name, when
        self.send(kind="begin", token=self.token, name=name, when=when)
        self.active = self.token

    def end(self):
        self.active = None
        self.send(kind="end")

    def on_signal(self, *_):
        __tracebackhide__ = True
        lines = self.read_answers().splitlines()
        if not lines or os.getpid() != self.pid:
            return
        token, _, path = lines[-1].partition(" ")
        if int(token) != self.active:  # the explanation is about a phase that has ended meanwhile
            return
        self.send(kind="caught", token=self.active)
        if self.when == "exit":
            sys.stdout.flush()
            os._exit(int(self.status) or 1)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            text = f"forksight: {path}: {error}"
        text += f"\nThis report: {path}"
        self.explained[self.name, self.when] = text
        pytest.fail(text)

    def watch(self, name, when):
        self.begin(name, when)
        try:
            yield
        finally:
            self.end()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection(self):
        yield from self.watch("collection", "collection")

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        yield from self.watch(item.nodeid, "setup")

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item):
        yield from self.watch(item.nodeid, "call")

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        yield from self.watch(item.nodeid, "teardown")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report = outcome.get_result()
        text = self.explained.pop((item.nodeid, call.when), None)
        # The test may have caught the exception that on_signal() raised, or may have raised another exception instead.
        if text is not None and (not report.failed or text not in str(report.longrepr)):
            report.outcome = "failed"
            report.longrepr = text if report.longrepr is None else f"{report.longrepr}\n\n{text}"

    def pytest_runtest_logreport(self, report):
        if getattr(self.config.option, "xmlpath", None) and not self.is_worker:
            if report.when == "call" or not report.passed:
                self.send(kind="result", nodeid=report.nodeid, outcome=report.outcome, duration=report.duration, text=report.longreprtext)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem, report):
        """Called when an xdist worker has crashed. If the watcher of that worker has killed it, adds the watcher's
        explanation to the report."""
        path = os.path.join(self.settings.out, file_name(crashitem))
        try:
            if os.stat(path).st_mtime >= self.began - 1:
                with open(path, encoding="utf-8") as file:
                    report.longrepr = f"{report.longrepr}\n\n{file.read()}\nThis report: {path}"
        except OSError:
            pass

    def pytest_report_header(self):
        how = "under the shim" if is_under_shim() else "by the watcher alone, without the shim"
        return f"forksight: {self.settings.mode}, {how}; timeout {self.settings.seconds:g} s a phase; explanations in {self.settings.out}"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus):
        self.status = exitstatus

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self):
        # An xdist worker that has run its tests sleeps until the other workers have run theirs. So its exit begins only
        # when its interpreter ends. Before Python 3.9 no function can be called at that time. With such a Python, the
        # plugin does not watch the exit of a worker.
        if not self.is_worker:
            self.begin_exit()
        elif hasattr(threading, "_register_atexit"):
            threading._register_atexit(self.begin_exit)

    def begin_exit(self):
        self.begin("exit", "exit")
