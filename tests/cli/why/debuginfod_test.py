"""debuginfod_test.py FORKSIGHT CASE: `forksight why` and `forksight core` get debug files from a debuginfod server.

Two threads of a stripped program wait for each other's locks. This test runs a server that has the program's debug file. If
DEBUGINFOD_URLS names the server, the commands use the file. Otherwise the commands work without the file.
"""
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from observed import LIMIT_S, Command, processes

FORKSIGHT = Command(sys.argv[1])
CASE = sys.argv.pop()
sys.argv.pop()
LINE = "lock_cycle.c"


class Server:
    """Serves files by their paths, and records the requests. The server answers requests only while `gate` is set."""

    def __init__(self):
        self.files, self.asked, self.gate, self.has_request = {}, [], threading.Event(), threading.Event()
        self.gate.set()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(self.path)
                server.has_request.set()
                server.gate.wait(LIMIT_S)
                file = server.files.get(self.path)
                content = file.read_bytes() if file else b""
                try:
                    self.send_response(200 if file else 404)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                except ConnectionError:
                    pass  # the client has closed the connection

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()

    def end(self):
        self.gate.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


def build_id_of(program):
    listed = subprocess.run(["readelf", "--notes", program], capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
    return listed.partition("Build ID:")[2].split()[0]


class Debuginfod(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-debuginfod-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.whole, self.stripped, debug = self.folder / "whole", self.folder / "lock_cycle", self.folder / "debug"
        kept = self.folder / "kept"
        shutil.copy(CASE, self.whole)
        subprocess.run(["objcopy", "--only-keep-debug", self.whole, debug], timeout=LIMIT_S, check=True)
        subprocess.run(["strip", "--strip-all", "-o", self.stripped, self.whole], timeout=LIMIT_S, check=True)
        shutil.copy(self.stripped, kept)
        self.server = Server()
        self.addCleanup(self.server.end)
        self.key = "/buildid/" + build_id_of(self.whole)
        self.server.files = {self.key + "/debuginfo": debug, self.key + "/executable": kept}
        self.program = processes.Program([str(self.stripped)], folder.name)
        self.addCleanup(self.program.end)
        self.assertEqual(self.program.watch(LIMIT_S), "hang")

    def environment(self, cache, url=None):
        own = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy") and key != "DEBUGINFOD_URLS"}
        own["DEBUGINFOD_CACHE_PATH"] = str(self.folder / cache)
        return {**own, "DEBUGINFOD_URLS": url} if url else own

    def lines(self, report):
        self.assertEqual([finding["rule"] for finding in report["findings"]], ["lock-cycle"])
        files = {os.path.basename(frame["file"] or "") for frame in report["findings"][0]["stack"]}
        functions = {frame["function"] for frame in report["findings"][0]["stack"]}
        return LINE in files, "thread_main" in functions

    def why(self, cache, url=None):
        return self.lines(FORKSIGHT.report(self.program.popen.pid, "--debuginfod", env=self.environment(cache, url))[0])

    def core(self, core, cache, url=None):
        done = subprocess.run([FORKSIGHT.path, "core", core, "--debuginfod", "--format", "json"], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False, env=self.environment(cache, url))
        return self.lines(json.loads(done.stdout))

    def test_why_has_lines_from_the_server_that_is_named(self):
        self.assertEqual(self.why("cache"), (False, False))
        self.assertEqual(self.server.asked, [])
        self.assertEqual(self.why("cache", self.server.url), (True, True))
        self.assertIn(self.key + "/debuginfo", self.server.asked)
        self.server.asked.clear()
        self.assertEqual(self.why("cache", self.server.url), (True, True))  # now libdebuginfod has the file in its cache
        self.assertNotIn(self.key + "/debuginfo", self.server.asked)

    def test_root_asks_no_server_unless_it_is_told_to(self):
        if os.geteuid() != 0:
            self.skipTest("only root needs --debuginfod to ask the servers")
        report = FORKSIGHT.report(self.program.popen.pid, env=self.environment("cache", self.server.url))[0]
        self.assertEqual(self.lines(report), (False, False))
        self.assertEqual(self.server.asked, [])

    def test_without_an_answer_of_the_server_the_report_has_no_lines(self):
        self.server.files.clear()
        self.assertEqual(self.why("cache", self.server.url), (False, False))
        self.assertIn(self.key + "/debuginfo", self.server.asked)
        url = self.server.url
        self.server.end()  # from now on, no server listens at this address
        self.server.end = lambda: None
        self.assertEqual(self.why("another", url), (False, False))

    def test_no_thread_is_stopped_while_why_waits_for_the_server(self):
        self.server.gate.clear()
        pid = self.program.popen.pid
        command = FORKSIGHT.start(pid, "--debuginfod", "--format", "json", env=self.environment("cache", self.server.url))
        try:
            self.assertTrue(self.server.has_request.wait(LIMIT_S))
            for task in os.listdir(f"/proc/{pid}/task"):
                status = Path(f"/proc/{pid}/task/{task}/status").read_text()
                self.assertIn("\nState:\tS", status)
                self.assertIn("\nTracerPid:\t0\n", status)
        finally:
            self.server.gate.set()
            output, _ = command.communicate(timeout=LIMIT_S)
        self.assertEqual(self.lines(json.loads(output)), (True, True))

    def test_a_server_that_does_not_answer_is_not_asked_again(self):
        pid = self.program.popen.pid
        subprocess.run(["gcore", "-o", str(self.folder / "core"), str(pid)], capture_output=True, timeout=LIMIT_S, check=True)
        self.stripped.unlink()
        self.server.gate.clear()  # the server never answers, so the time limit of libdebuginfod ends the request
        environment = {**self.environment("cache", self.server.url), "DEBUGINFOD_TIMEOUT": "6",
                       "DEBUGINFOD_RETRY_LIMIT": "0"}
        done = subprocess.run([FORKSIGHT.path, "core", str(self.folder / f"core.{pid}"), "--debuginfod", "--format", "json"],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False, env=environment)
        report = json.loads(done.stdout)
        self.assertEqual(self.lines(report), (False, False))
        self.assertEqual(set(self.server.asked), {self.key + "/executable"})
        self.assertTrue(any("DEBUGINFOD_URLS did not answer in time" in limit for limit in report["limits"]), report["limits"])

    def test_a_core_of_a_deleted_program_has_lines_from_the_server(self):
        pid = self.program.popen.pid
        subprocess.run(["gcore", "-o", str(self.folder / "core"), str(pid)], capture_output=True, timeout=LIMIT_S, check=True)
        core = str(self.folder / f"core.{pid}")
        self.stripped.unlink()
        self.assertEqual(self.core(core, "cache"), (False, False))
        self.assertEqual(self.core(core, "cache", self.server.url), (True, True))
        self.assertIn(self.key + "/debuginfo", self.server.asked)


if __name__ == "__main__":
    processes.become_reaper()
    unittest.main()
