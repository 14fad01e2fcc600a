"""Tests which threads forksight names for a lock that does not record who holds it.

  references_test.py FORKSIGHT SCENES_O0 SCENES_O2

The programs are scenes.cpp without and with optimisation. In each scene except "free", a child hangs in a lock. The
report must name the threads whose functions use the lock. It must say that these threads may hold the lock, not that
they hold it.
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cases"))
import processes  # noqa: E402

FORKSIGHT, PLAIN, OPTIMISED = sys.argv[1:4]
LIMIT_S = 60
INTRODUCTION = "A lock of this kind does not record which thread holds it. The address of the lock is on the "

# For each scene: the names of the threads that `why` must name, each with the function that refers to the lock, and the
# number of threads that `why` must only count.
HOLDER, POINTER = ("holder", "fill_cache"), ("pointer", "use_later")
SCENES = {
    "holder": ([HOLDER], 0),
    "pair": ([HOLDER, POINTER], 0),
    "crowd": ([HOLDER, POINTER, POINTER], 2),
    "leaked": ([POINTER], 0),
    "forker": ([POINTER], 0),
    "finished": ([], 0),
    "waiter": ([], 0),
    "own": ([("own", "fill_cache")], 0),
}
# A core does not contain the names of lost threads. It contains the functions with which these threads started.
STARTS = {"holder": "holder_main", "pointer": "pointer_main"}


def setUpModule():
    processes.become_reaper()


def ask(*argv):
    done = subprocess.run([FORKSIGHT, *map(str, argv), "--format", "json"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=LIMIT_S)
    return json.loads(done.stdout)


def sentence_of(finding):
    """The sentence about the threads that refer to the lock; "" if there is none."""
    return next((sentence for sentence in finding["chain"] if sentence.startswith(INTRODUCTION)), "")


class References(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-locks-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def hang(self, program, scene):
        process = processes.Program([program, scene], self.folder)
        self.addCleanup(process.end)
        self.assertEqual(process.watch(LIMIT_S), "hang")
        return process.popen.pid

    def only_finding(self, report):
        self.assertEqual([finding["rule"] for finding in report["findings"]], ["lost-wakeup"])
        finding = report["findings"][0]
        self.assertEqual(finding["cause"], "possible")
        self.assertIn("It is not proven.", " ".join(finding["chain"]))
        return finding

    def check(self, finding, named, counted, words):
        """`words`: turns the name of a thread into the pattern for it in the sentence."""
        sentence = sentence_of(finding)
        if not named:
            self.assertEqual(sentence, "")
            self.assertEqual(finding["culprit"]["address"], 0)
            return
        self.assertNotEqual(finding["culprit"]["address"], 0)
        threads = [rf"{words(name)}, at \S+:\d+ \((\(anonymous namespace\)::)?{function}\)" for name, function in named]
        more = f"; and {counted} more" if counted else ""
        if len(named) + counted == 1:
            pattern = (f"stack of another thread: {threads[0]}\\. This thread may hold the lock\\. It may also only have the lock's "
                       "address, or have released the lock already\\.")
        else:
            pattern = (f"stacks of {len(named) + counted} other threads: {'; '.join(threads)}{more}\\. One of these threads may hold the "
                       "lock\\. A thread may also only have the lock's address, or have released the lock already\\.")
        self.assertRegex(sentence, re.escape(INTRODUCTION) + pattern + "$")

    def test_live_processes(self):
        def words(name):
            return rf'thread \d+ "{name}"' + (" of the child itself" if name == "own" else "")

        for program in (PLAIN, OPTIMISED):
            for scene, (named, counted) in SCENES.items():
                with self.subTest(program=Path(program).name, scene=scene):
                    self.check(self.only_finding(ask("why", self.hang(program, scene))), named, counted, words)
                    self.doCleanups()
                    self.setUp()

    def test_thread_that_waits_for_another_lock(self):
        finding = self.only_finding(ask("why", self.hang(PLAIN, "elsewhere")))
        self.check(finding, [("elsewhere", "hold_first_wait_for_second")], 0, lambda name: rf'thread \d+ "{name}"')

    def test_cores(self):
        if shutil.which("gcore") is None:
            self.skipTest("gcore is not installed: package gdb")
        # The core of "own" is left out. This core has two threads, and does not show that both threads wait for ever.
        for scene in ("holder", "pair", "crowd", "leaked", "forker", "finished", "waiter", "elsewhere"):
            named, counted = SCENES.get(scene, ([], 0))
            with self.subTest(scene=scene):
                self.hang(PLAIN, scene)
                child = max(processes.descendants())
                subprocess.run(["gcore", "-o", self.folder / "core", str(child)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               timeout=LIMIT_S, check=True)
                finding = self.only_finding(ask("core", self.folder / f"core.{child}"))
                self.check(finding, named, counted, lambda name: f"a thread that started with (\\(anonymous namespace\\)::)?{STARTS[name]}")
                self.doCleanups()
                self.setUp()

    def run_scene(self, scene):
        file = self.folder / "report.json"
        process = processes.Program([FORKSIGHT, "run", "--on-hang", "kill", "--out", self.folder / "out", "--format", "json", "--report", file,
                                     "--", PLAIN, scene], self.folder)
        self.addCleanup(process.end)
        status = process.wait(LIMIT_S)
        return status, json.loads(file.read_text())

    def test_run_and_its_folder(self):
        _, report = self.run_scene("holder")
        for one in (report, ask("report", self.folder / "out")):
            self.check(self.only_finding(one), [HOLDER], 0, lambda name: rf'thread \d+ "{name}"')

    def test_advice_is_about_the_lock(self):
        fixes = [fix["text"] for fix in self.only_finding(ask("why", self.hang(PLAIN, "holder")))["fixes"]]
        self.assertIn("Fork before the threads that use this lock are started, or while none of them uses it.", fixes)
        self.assertFalse([text for text in fixes if "start them again" in text])

    def test_free_lock_is_no_hang(self):
        status, report = self.run_scene("free")
        self.assertEqual((status, report["findings"]), (0, []))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
