"""command_test.py FORKSIGHT SCHEMA XSD: tests the command `forksight suite` with a small suite that the test makes: exit
statuses, formats that other programs read, skipped cases, and signals."""
import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import jsonschema

FORKSIGHT, SCHEMA, XSD = sys.argv[1:4]
LIMIT_S = 60
GOOD = "# EXPECT-BARE: ok\n# EXPECT-NONE\nexit 0\n"


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Suite(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-suite-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name in ("bin", "src"):
            (self.folder / name).mkdir()
        self.cases = []
        self.add("good", GOOD)
        self.add("also_good", GOOD, folder="openmp")
        self.add("bad", "# EXPECT-BARE: ok\n# EXPECT: orphaned-mutex proven hang\necho '<&\x01>'; exit 3\n")
        self.add("lacks", GOOD, interpreter=sys.executable, modules=["no_such_module_at_all"])
        self.add("slow", GOOD, labels=["stress"])

    def add(self, name, source, folder="locks", **more):
        script = self.folder / "bin" / name
        script.write_text("#!/usr/bin/env bash\n" + source)
        script.chmod(0o755)
        self.cases.append({"name": name, "folder": folder, "variant": "", "source": f"bin/{name}", "program": f"bin/{name}",
                           "interpreter": "", "loads": [], "modules": [], "environment": {}, "labels": [], **more})
        (self.folder / "cases.json").write_text(json.dumps({"schema": "forksight-suite-cases/1", "cases": self.cases}))

    def argv(self, *words):
        return [FORKSIGHT, "suite", words[0], "--cases", str(self.folder), *words[1:]]

    def suite(self, *words, status=0):
        done = subprocess.run(self.argv(*words), capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def test_statuses(self):
        self.suite("run", "good")
        self.suite("run", "good", "bad", status=1)
        self.suite("run", "lacks")
        self.suite("run", "lacks", "--strict", status=1)
        self.assertIn("nothing: no such case", self.suite("run", "nothing", status=2).stderr)
        self.suite("run", "--format", "html", status=2)
        self.suite("run", "--outcome", "never", status=2)
        self.suite("run", "good", "--report", str(self.folder / "none" / "x"), status=3)
        (self.folder / "bin" / "bad").write_text("# EXPECT-BARE: never\n")
        self.assertIn("EXPECT-BARE must say one of", self.suite("run", status=3).stderr)
        (self.folder / "cases.json").write_text("{")
        self.assertIn("cases.json", self.suite("list", status=3).stderr)

    def test_lists_each_case_or_with_q_only_those_that_are_not_green(self):
        done = self.suite("run", status=1)
        self.assertEqual(len([line for line in done.stderr.splitlines() if line.startswith("[")]), 4)
        self.assertIn("4 cases: 2 ok, 1 red, 1 skipped and not judged", done.stdout)
        self.assertIn("no module no_such_module_at_all", done.stdout)
        self.assertIn("expected orphaned-mutex proven hang: not in the report", done.stdout)
        self.assertIn("to repeat: forksight suite run bad", done.stdout)
        done = self.suite("run", "-q", status=1)
        self.assertNotIn("good ", done.stdout + done.stderr)
        self.assertIn("bad", done.stderr)

    def test_json_fits_its_schema(self):
        schema = json.loads(Path(SCHEMA).read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        listed = json.loads(self.suite("list", "--format", "json").stdout)
        run = json.loads(self.suite("run", "--format", "json", status=1).stdout)
        for document in (listed, run):
            validator.validate(document)
        self.assertEqual((listed["count"], listed["controls"]), (5, 4))
        self.assertEqual(run["totals"], {"ok": 2, "red": 1, "skipped": 1, "unknown": 0})
        spoils = (lambda d: d.pop("cases"), lambda d: d.update(schema="forksight-suite-run/2"), lambda d: d.update(more=1),
                  lambda d: d["cases"][0].update(state="green"), lambda d: d["cases"][0]["expected"].update(bare="crash"),
                  lambda d: d["cases"][2]["expected"]["findings"][0].update(certainty="sure"),
                  lambda d: d["cases"][2]["parts"][0].pop("command"))
        for number, spoil in enumerate(spoils):
            spoilt = copy.deepcopy(run)
            spoil(spoilt)
            self.assertFalse(validator.is_valid(spoilt), f"the schema accepts damaged document {number}")

    def test_junit_fits_its_schema(self):
        report = self.folder / "report.xml"
        self.suite("run", "--format", "junit", "--report", str(report), status=1)
        checked = subprocess.run(["xmllint", "--noout", "--schema", XSD, str(report)], capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        good = report.read_text()
        self.assertIn('tests="4" failures="1" errors="0" skipped="1"', good)
        self.assertIn("\\x01", good)
        for old, new in (('tests="4"', 'tests="many"'), ("classname", "class"), ("<failure", "<fault"), (' time="', ' seconds="')):
            self.assertIn(old, good)
            report.write_text(good.replace(old, new).replace("</failure", "</fault" if "fault" in new else "</failure"))
            checked = subprocess.run(["xmllint", "--noout", "--schema", XSD, str(report)], capture_output=True, text=True, check=False)
            self.assertNotEqual(checked.returncode, 0, f"the schema accepts {new}")

    def test_tap(self):
        lines = self.suite("run", "--format", "tap", status=1).stdout.splitlines()
        self.assertEqual(lines[:2], ["TAP version 14", "1..4"])
        tests = [line for line in lines if line.startswith(("ok ", "not ok "))]
        self.assertEqual([line.partition(" - ")[0] for line in tests], ["ok 1", "ok 2", "not ok 3", "ok 4"])
        self.assertIn(" # SKIP ", tests[3])
        self.assertEqual(lines[lines.index(tests[2]) + 1], "  ---")
        self.assertEqual(lines[lines.index(tests[3]) - 1], "  ...")

    def test_keep(self):
        kept = self.folder / "kept"
        self.suite("run", "good", "bad", "--keep", str(kept), status=1)
        for name in ("good", "bad"):
            self.assertEqual(json.loads((kept / name / "observed" / "report.json").read_text())["findings"], [])
            self.assertTrue((kept / name / "bare" / "program.stdout").exists())

    def test_a_forksight_without_a_suite_says_where_to_get_one(self):
        (self.folder / "prefix").mkdir()
        alone = shutil.copy(FORKSIGHT, self.folder / "prefix")
        done = subprocess.run([alone, "suite", "list"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (3, "", 1), done.stderr)
        self.assertIn("there is no suite: the packages leave it out", done.stderr)
        self.assertIn("build them with `./bootstrap test`", done.stderr)

    def test_labels(self):
        self.assertIn("1 case: 1 ok", self.suite("run", "--label", "stress").stdout)
        self.assertIn("1 case: 1 ok", self.suite("run", "slow").stdout)
        self.suite("run", "--label", "gpu", status=2)

    def test_missing_library(self):
        """If the loader does not find a library of a case's program, the case is skipped, and the result names the library."""
        source = self.folder / "empty.c"
        for name, text in (("needed", "int needed(void) { return 0; }\n"), ("uses", "int needed(void); int main(void) { return needed(); }\n")):
            source.write_text(text)
            more = ["-shared", "-fPIC", "-o", str(self.folder / "libneeded.so")] if name == "needed" else \
                   [str(self.folder / "libneeded.so"), "-o", str(self.folder / "bin" / "uses")]
            subprocess.run(["cc", str(source), *more, *(["-Wl,-soname,libomp.so.9"] if name == "needed" else [])], check=True)
        self.cases.append({**self.cases[0], "name": "uses", "program": "bin/uses"})
        (self.folder / "cases.json").write_text(json.dumps({"schema": "forksight-suite-cases/1", "cases": self.cases}))
        case = json.loads(self.suite("run", "uses", "--format", "json").stdout)["cases"][0]
        self.assertEqual((case["state"], case["package"], case["parts"]), ("skipped", "libomp5-14", []))
        self.assertIn("libomp.so.9", case["lines"][0])

    def stopped(self, number):
        """Starts a run with a case that hangs, and sends a signal only to forksight. Returns the pids of the case, the exit
        status and the output."""
        pids = self.folder / "pids"
        os.mkfifo(self.folder / "started")
        self.add("hangs", f"# EXPECT-BARE: hang\n# EXPECT-NONE\nsetsid sleep 1000 & echo $! $$ > {pids}; echo > {self.folder}/started\n"
                          "while :; do sleep 0.01; done\n")
        # The results are in the order of the manifest, in which "hangs" is the last case. But forksight runs "hangs" first.
        argv = self.argv("run", "--format", "json", "-j", "1", "good", "hangs")
        run = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            (self.folder / "started").read_text()  # returns when the program has written to the FIFO and closed it
            run.send_signal(number)
            out = run.communicate(timeout=LIMIT_S)[0]
        finally:
            run.kill()
            run.wait()
        return [int(word) for word in pids.read_text().split()], run.returncode, out

    def test_interrupt_ends_all_and_reports_what_is_known(self):
        pids, status, out = self.stopped(signal.SIGINT)
        self.assertEqual((status, [gone(pid) for pid in pids]), (1, [True, True]))
        report = json.loads(out)
        self.assertTrue(report["stopped"])
        self.assertEqual({case["name"]: case["state"] for case in report["cases"]}, {"good": "unknown", "hangs": "unknown"})

    def test_workers_do_not_outlive_the_command(self):
        pids, status, _ = self.stopped(signal.SIGKILL)
        self.assertEqual(status, -signal.SIGKILL)
        deadline = time.monotonic() + 20
        while not all(gone(pid) for pid in pids):
            self.assertLess(time.monotonic(), deadline, f"{pids} still exist")
            time.sleep(0.05)

    def test_terminal_shows_progress(self):
        """On a terminal, the suite prints one line of progress that it overwrites, and one line for each red case."""
        if not shutil.which("script"):
            self.fail("the program `script` is not installed: package bsdutils")
        words = " ".join(f"'{word}'" for word in self.argv("run", "--format", "tap", "--report", str(self.folder / "tap")))
        done = subprocess.run(["script", "-qec", words, "/dev/null"], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(b"\r\x1b[Kforksight suite: 0 of 4: ", done.stdout)
        self.assertIn(b" red ", done.stdout)
        self.assertNotIn(b" ok  ", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
