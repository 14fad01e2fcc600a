"""Tests frame.py and judge.py, which compare runs with and without forksight.

Both must notice changed results, and findings for which explained.json gives no reason. They must reuse kept runs.
"""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import frame  # noqa: E402
import judge  # noqa: E402
from suites import marked, tap  # noqa: E402


class FakeTools:
    """Tools for the tests. The command gets its mode in the variable $MODE. `isolate` runs a command without isolation."""
    build = "one"

    def __init__(self, folder):
        self.isolate = Path(folder, "isolate")
        self.isolate.write_text('#!/bin/sh\nresult=$2\nshift 2\n"$@"\nprintf %s $? > "$result"\n')
        self.isolate.chmod(0o755)

    def words(self, mode, _out):
        return ["env", f"MODE={mode}"]


class FrameTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.tools = FakeTools(self.folder.name)

    def compare(self, script, parse=None):
        unit = frame.Unit("unit", ["sh", "-c", script], folder=self.folder.name, parse=parse)
        kept = frame.Kept(Path(self.folder.name, "results.jsonl"), self.tools.build)
        frame.compare(self.tools, [unit], kept, 1, lambda _: None)
        return kept, judge.judge_suite("made", kept, ["unit"])

    def test_same_everywhere(self):
        kept, judged = self.compare("exit 3")
        self.assertEqual(judged.problems(), [])
        self.assertEqual((judged.tests, judged.same["shim"]), (1, 1))
        self.assertEqual([len(kept.of("unit", mode)) for mode in frame.MODES], [2, 1, 1, 1])

    def test_changed_exit_status_is_a_problem(self):
        kept, judged = self.compare('test "$MODE" != shim')
        self.assertEqual([(one.mode, one.bare, one.result) for one in judged.changed()], [("shim", ["0"], "1")])
        self.assertEqual(len(judged.problems()), 1)
        self.assertEqual(len(kept.of("unit", "shim")), 1 + frame.TRIES_AGAIN)

    def test_one_test_of_many(self):
        _, judged = self.compare('echo "@@ a ok"; test "$MODE" = cure || echo "@@ b ok"', marked.parse)
        self.assertEqual([(one.mode, one.test, one.result) for one in judged.changed()], [("cure", "b", "missing")])

    def test_a_difference_that_happens_once_is_not_a_change(self):
        _, judged = self.compare('test "$MODE" != run || ! mkdir once')
        self.assertEqual((judged.changed(), [one.runs for one in judged.differences]), ([], [["1", "0"]]))

    def test_unstable_bare(self):
        _, judged = self.compare('test "$MODE" != bare || ! mkdir once')
        self.assertEqual((judged.unstable, judged.problems()), ([("unit", "unit")], []))

    def test_finding_without_a_reason_is_a_problem(self):
        kept, _ = self.compare("exit 0")
        kept.of("unit", "run")[0]["findings"] = [{"rule": "made-up", "certainty": "likely", "outcome": "hang", "summary": "words"}]
        self.assertIn("made-up", judge.judge_suite("made", kept, ["unit"]).problems()[0])

    def test_runs_are_kept_by_build(self):
        self.compare("exit 0")
        again, _ = self.compare("exit 0")
        self.assertEqual(len(again.path.read_text().splitlines()), 5)
        self.tools.build = "two"
        later, _ = self.compare("exit 0")
        self.assertEqual(len(later.path.read_text().splitlines()), 8)

    def test_a_unit_that_did_not_start_is_a_problem(self):
        self.assertEqual(self.compare("exit 127")[1].problems(), ["did not start: unit"])

    def test_parsers(self):
        self.assertEqual(tap.parse("ok 1 /a\nnot ok 2 /b # words\nok 3 /c # SKIP why\nok 4 /a\n", "0"),
                         {"/a": "ok", "/b": "failed", "/c": "skipped", "/a #2": "ok"})
        self.assertEqual(marked.parse("@@ a began\n@@ a ok\n@@ b began\n", "139"), {"a": "ok", "b": "did not end: 139"})


if __name__ == "__main__":
    unittest.main()
