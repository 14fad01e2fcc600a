"""The judge judged: it is red for each kind of wrong expectation, and green for the right one. The programs are real cases;
the reports are made up, by a stand-in for forksight that prints what the test gives it."""
import copy
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent

SOURCE = """\
// EXPECT-BARE: ok
// EXPECT: orphaned-mutex certain hang lock=m holder=worker start=worker_main victims=1
// EXPECT-STACK: culprit inner@here outer@there
// EXPECT-CURED: --omp=rebuild stdout="child: 2 threads"
inner();  // MARK: here
outer();  // MARK: there
"""
FRAMES = [
    {"function": "std::mutex::lock()", "file": "/usr/include/mutex", "line": 9},
    {"function": "inner(int)", "file": "/src/case.c", "line": 5},
    {"function": "outer.isra.0", "file": "/src/case.c", "line": 6},
    {"function": "main", "file": "/src/case.c", "line": 7},
]
FINDING = {
    "rule": "orphaned-mutex", "certainty": "certain", "outcome": "hang", "summary": "child 7 hangs", "count": 1,
    "culprit": {"kind": "lock", "name": "m (mutex)", "library": "/x/case", "stack": FRAMES,
                "holder": {"name": "worker", "start_routine": "worker_main(void*)"}},
    "victims": [{"pid": 1, "via": "wait4"}], "stack": [], "fork": {"stack": []},
}
# Writes the report for the options that it is called with, runs the case, passes on its status.
STAND_IN = """\
#!/usr/bin/env bash
set -eu
folder=$(dirname "$0")
cured=observed
while [ "$1" != -- ]; do
  case $1 in --omp=rebuild) cured=cured ;; --report) cp "$folder/$cured.json" "$2" ;; esac
  shift
done
shift
exec "$@"
"""


def changed(finding, path, value):
    finding = copy.deepcopy(finding)
    place = finding
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return finding


class Judge(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-judge-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "forksight").write_text(STAND_IN)
        (self.folder / "forksight").chmod(0o755)

    def judge(self, source=SOURCE, observed=(FINDING,), cured=None, program="echo 'child: 2 threads'", variant=""):
        cured = [changed(FINDING, ["outcome"], "cured")] if cured is None else cured
        (self.folder / "case.c").write_text(source)
        (self.folder / "observed.json").write_text(json.dumps({"findings": list(observed)}))
        (self.folder / "cured.json").write_text(json.dumps({"findings": list(cured)}))
        case = self.folder / "case"
        case.write_text(f"#!/usr/bin/env bash\n{program}\n")
        case.chmod(0o755)
        return subprocess.run([sys.executable, "-B", str(HERE / "judge.py"), "--source", str(self.folder / "case.c"), "--case", str(case),
                               "--variant", variant, "--forksight", str(self.folder / "forksight"), "--limit", "1"],
                              capture_output=True, text=True, check=False, timeout=60)

    def assertRed(self, judged, *words):
        self.assertEqual(judged.returncode, 1, judged.stdout + judged.stderr)
        for word in words:
            self.assertIn(word, judged.stdout)
        self.assertIn("to repeat: ", judged.stdout)

    def test_green(self):
        judged = self.judge()
        self.assertEqual((judged.returncode, judged.stdout), (0, ""), judged.stderr)

    def test_each_field(self):
        for path, value, word in (
                (["rule"], "orphaned-rwlock", "not in the report"), (["certainty"], "likely", "certainty: expected certain"),
                (["outcome"], "error", "outcome: expected hang"), (["culprit", "name"], "n (mutex)", "lock: expected m"),
                (["culprit", "kind"], "pool", "lock: expected m"), (["culprit", "holder", "name"], "main", "holder: expected worker"),
                (["culprit", "holder", "start_routine"], "", "start: expected worker_main"), (["victims"], [], "victims: expected 1"),
                (["count"], 2, "merged 2 times, expected once")):
            with self.subTest(path=path):
                self.assertRed(self.judge(observed=[changed(FINDING, path, value)]), word)

    def test_findings_are_exact(self):
        self.assertRed(self.judge(observed=[]), "not in the report")
        self.assertRed(self.judge(observed=[FINDING, FINDING]), "not expected: orphaned-mutex")
        self.assertRed(self.judge(variant="repaired", observed=[FINDING]), "not expected: orphaned-mutex")

    def test_stacks(self):
        for frames in (FRAMES[1:2], FRAMES[2:], [FRAMES[1], FRAMES[3], FRAMES[2]], [], [FRAMES[1], dict(FRAMES[2], line=8)]):
            with self.subTest(frames=frames):
                self.assertRed(self.judge(observed=[changed(FINDING, ["culprit", "stack"], frames)]), "outer (case.c:6)")

    def test_cures(self):
        self.assertRed(self.judge(cured=[FINDING]), "--omp=rebuild", "expected: orphaned-mutex cured")
        self.assertRed(self.judge(cured=[]), "expected: orphaned-mutex cured")
        self.assertRed(self.judge(program="echo 'child: 1 threads'"), 'expected a line "child: 2 threads"')

    def test_other_ends(self):
        ended = SOURCE.replace("EXPECT-CURED:", "EXPECT-RUN:").replace("stdout=", "outcome=error status=3 says=refused stdout=")
        error = changed(changed(FINDING, ["outcome"], "error"), ["chain"], ["It was refused."])
        self.assertRed(self.judge(ended, cured=[FINDING]), "expected: orphaned-mutex error", "no finding says: refused")
        self.assertRed(self.judge(ended, cured=[error]), "exit status: expected 3, got 0")
        ended = ended.replace("status=3", "status=0")
        judged = self.judge(ended, cured=[error])
        self.assertEqual((judged.returncode, judged.stdout), (0, ""), judged.stderr)
        self.assertEqual(self.judge(ended.replace("outcome=error", "")).returncode, 2)

    def test_options(self):
        asked = SOURCE.replace("EXPECT-CURED: --omp=rebuild stdout=\"child: 2 threads\"", "EXPECT-OPTIONS: --omp=rebuild")
        for variant in ("", "O2"):
            judged = self.judge(asked, observed=[], cured=[FINDING], variant=variant)
            self.assertEqual((judged.returncode, judged.stdout), (0, ""), judged.stderr)
        self.assertRed(self.judge(asked, observed=[], cured=[FINDING], variant="repaired"), "not expected: orphaned-mutex")
        self.assertRed(self.judge(asked.replace("OPTIONS: --omp=rebuild", "OPTIONS:"), observed=[], cured=[FINDING]), "not in the report")

    def test_bare(self):
        self.assertRed(self.judge(SOURCE.replace("BARE: ok", "BARE: hang")), "expected hang, seen ok")
        self.assertRed(self.judge(program="exit 3"), "expected ok, seen error (status 3)", "exit status: expected 0, got 3")

    def test_hang(self):
        judged = self.judge(program="exec sleep infinity")
        self.assertRed(judged, "expected ok, seen hang", "--- process", "not done after 1.0 s")

    def test_senseless_expectations(self):
        for source in ("", "// EXPECT-NONE\n", "// EXPECT-BARE: ok\n", "// EXPECT-BARE: maybe\n// EXPECT-NONE\n",
                       SOURCE + "// EXPECT-NONE\n", SOURCE.replace("@here", "@nowhere"), SOURCE.replace("holder=", "owner="),
                       SOURCE + "// EXPECT-LATER: x\n", SOURCE + "x();  // MARK: here\n", SOURCE.replace("stdout=", "stderr=")):
            with self.subTest(source=source):
                judged = self.judge(source)
                self.assertEqual(judged.returncode, 2, judged.stdout + judged.stderr)
                self.assertIn("judge: ", judged.stderr)


if __name__ == "__main__":
    unittest.main()
