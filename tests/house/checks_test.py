"""Runs each check on trees of files that break the rules of the check. check_install.py and check_annotate_example.py
have no test here."""
import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import check_batches
import check_commits
import check_docs
import check_layers
import check_packages
import check_scripts
import check_session
import check_release
import check_sources
import check_tests


class House(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-house-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name, text, mode=0o644):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def assertProblem(self, problems, *words):
        self.assertTrue(any(all(word in problem for word in words) for problem in problems), problems)

    def test_scripts(self):
        self.write("good", "#!/usr/bin/env bash\nset -euo pipefail\necho\n", 0o755)
        self.write("good.py", "print(1)\n")
        self.assertEqual(check_scripts.check(self.root), [])
        self.write("open", "#!/usr/bin/env bash\nset -eu\nif true\n", 0o755)
        self.write("careless", "#!/usr/bin/env bash\necho\n", 0o644)
        self.write("bad.py", "def\n")
        problems = check_scripts.check(self.root)
        self.assertProblem(problems, "open", "syntax error")
        self.assertProblem(problems, "careless", "no `set -eu`")
        self.assertProblem(problems, "careless", "not executable")
        self.assertProblem(problems, "bad.py")

    def write_layers(self):
        self.write("preload/guest/sys.hpp", "")
        self.write("preload/hooks.def", "")
        self.write("preload/record/slots.hpp", '#include "guest/sys.hpp"\n#include "forksight/trace/format.hpp"\n')
        self.write("preload/files/shares.cpp", '#include "record/slots.hpp"\n#include "hooks.def"\n')
        self.write("preload/init.cpp", '#include "record/slots.hpp"\n')
        self.write("analyzer/result.hpp", "")
        self.write("analyzer/model/model.hpp", "")
        self.write("analyzer/proc/proc_fs.hpp", '#include "model/model.hpp"\n#include "result.hpp"\n#include "forksight/abi/glibc.hpp"\n')
        self.write("analyzer/watch/proof.cpp", '#include "proc/proc_fs.hpp"\n')
        self.write("analyzer/diagnose/finding.hpp", '#include "model/model.hpp"\n')
        self.write("analyzer/diagnose/rules/deadlock.cpp", '#include "diagnose/finding.hpp"\n')
        self.assertEqual(check_layers.check(self.root), [])

    def test_layers_of_the_shim(self):
        self.assertProblem(check_layers.check(self.root), "preload/: no sources found")
        self.write_layers()
        self.write("preload/guest/sys.hpp", '#include "record/slots.hpp"\n')
        self.write("preload/cuda/cuda.hpp", "")
        self.write("preload/mpi/mpi.cpp", '#include "cuda/cuda.hpp"\n#include "mpi.hpp"\n')
        self.write("preload/new/new.cpp", "")
        problems = check_layers.check(self.root)
        self.assertProblem(problems, "preload/guest/sys.hpp", "must not include record/slots.hpp")
        self.assertProblem(problems, "preload/mpi/mpi.cpp", "must not include cuda/cuda.hpp")
        self.assertProblem(problems, "preload/mpi/mpi.cpp", "not its path from preload/")
        self.assertProblem(problems, "new/ has no place")
        self.assertEqual(len(problems), 4)

    def test_layers_of_the_analyzer(self):
        self.assertProblem(check_layers.check(self.root), "analyzer/: no sources found")
        self.write_layers()
        self.write("analyzer/watch/proof.hpp", '#include "sampler.hpp"\n#include "locks/held.hpp"\n')
        self.write("analyzer/proc/launch.cpp", '#include "watch/proof.hpp"\n')
        self.write("analyzer/diagnose/rules/deadlock.cpp", '#include "diagnose/finding.hpp"\n#include "proc/proc_fs.hpp"\n')
        self.write("analyzer/news/news.cpp", "")
        problems = check_layers.check(self.root)
        self.assertProblem(problems, "analyzer/watch/proof.hpp", "\"sampler.hpp\" is not its path from analyzer/")
        self.assertProblem(problems, "analyzer/watch/proof.hpp", "\"locks/held.hpp\" is not its path from analyzer/")
        self.assertProblem(problems, "analyzer/proc/launch.cpp", "proc/ must not include watch/proof.hpp")
        self.assertProblem(problems, "deadlock.cpp", "diagnose/rules/ must not include proc/proc_fs.hpp")
        self.assertProblem(problems, "news/ has no place")
        self.assertEqual(len(problems), 5)

    def test_layers_have_no_cycle(self):
        self.write("part/low/a.hpp", "")
        ring = check_layers.Part("part", {"low": {"high"}, "high": {"low"}}, common=set())
        self.assertProblem(ring.check(self.root), "the table lets low/ include high/, which is not below it")

    def test_document_has_the_layers(self):
        page = Path(__file__).resolve().parents[2] / "docs/architecture.md"
        self.write("docs/architecture.md", page.read_text())
        self.assertEqual(check_layers.check_page(self.root), [])
        rows = page.read_text().replace("| `diagnose/rules/` |", "| `diagnose/rulez/` |")
        self.write("docs/architecture.md", rows.replace("| `files/` `model/` `proc/` |", "| `files/` `model/` `render/` |"))
        problems = check_layers.check_page(self.root)
        self.assertProblem(problems, "the table of the analyzer's folders has", "diagnose/rulez")
        self.assertProblem(problems, "watch/ may include ['files', 'model', 'proc'], the page says ['files', 'model', 'render']")

    def test_no_scripts(self):
        self.assertProblem(check_scripts.check(self.root), "no shell script")

    def commit(self, subject):
        identity = ["-c", "user.name=tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(self.root), *identity, "commit", "-q", "--allow-empty", "-m", subject], check=True,
                       env={"PATH": "/usr/bin:/bin", "HOME": str(self.root), "GIT_COMMITTER_DATE": "2030-01-01T00:00:00Z"})

    def test_commits(self):
        self.assertEqual(check_commits.check(self.root), [])  # no repository
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.commit("area: " + "x" * 66)
        self.assertEqual(check_commits.check(self.root), [])
        self.commit("area: " + "x" * 67)
        self.assertProblem(check_commits.check(self.root), "has 73 characters")

    def test_packages(self):
        self.write("bootstrap", "#!/usr/bin/env bash\nset -eu\ncat packages.txt\n", 0o755)
        self.write("packages.txt", "# comment\n[build]\nbash  # is there always\n[bench]\n[package]\n[test]\n")
        self.assertEqual(check_packages.check(self.root), [])
        self.write("packages.txt", "bash\n[build]\n[test]\n")
        self.assertProblem(check_packages.check(self.root), "its headings are [build] [test]")
        self.assertProblem(check_packages.check(self.root), "bash stands below no heading")
        self.write("packages.txt", "[build]\nbash\naside:dash\n[bench]\n[package]\nsource:made\n[test]\n")
        self.assertProblem(check_packages.check(self.root), "dash is not in build/packages")
        Path(self.root, "build/packages/dash").mkdir(parents=True)
        self.assertEqual(check_packages.check(self.root), [])
        self.write("packages.txt", "[build]\n[bench]\n[package]\nbash\nno-such-package-at-all\n[test]\nbash\n")
        self.assertEqual(check_packages.check(self.root), [])
        self.write("packages.txt", "[build]\n[bench]\n[package]\n[test]\nbash\nbash\nno-such-package-at-all\ntwo words\n")
        problems = check_packages.check(self.root)
        self.assertProblem(problems, "bash is there twice")
        self.assertProblem(problems, "no-such-package-at-all is not installed")
        self.assertProblem(problems, "two words: not the name")

    def write_presets(self, *with_batches):
        presets = [{"name": name, "cacheVariables": {"FORKSIGHT_UNITY_BUILD": "ON"} if name in with_batches else {}} for name in ("dev", "release")]
        self.write("CMakePresets.json", json.dumps({"configurePresets": presets}))

    def test_batches(self):
        build = self.root / "build"
        unit = build / "Unity/unity_0_cxx.cxx"
        self.write("build/compile_commands.json", json.dumps([{"file": str(unit)}, {"file": str(self.root / "preload/guest/text.cpp")}]))
        self.write_presets("release")
        self.write("build/Unity/unity_0_cxx.cxx", f'/* made */\n#include "{self.root}/analyzer/proc/launch.cpp"\n')
        self.assertEqual(check_batches.check(self.root, build), [])
        self.write("build/Unity/unity_0_cxx.cxx", "".join(
            f'#include "{self.root}/{file}"\n' for file in ("ipc/src/ring.cpp", "analyzer/diagnose/rules.cpp", "analyzer/proc/launch.cpp")))
        problems = check_batches.check(self.root, build)
        self.assertProblem(problems, "ipc/src/ring.cpp is compiled in a batch")
        self.assertProblem(problems, "analyzer/diagnose/rules.cpp is compiled in a batch")
        self.assertEqual(len(problems), 2)
        self.write_presets("dev", "release")
        self.assertProblem(check_batches.check(self.root, build), "is ON in ['dev', 'release']")

    def test_second_list(self):
        self.write("packages.txt", "bash\n")
        self.write("bootstrap", "#!/usr/bin/env bash\nset -eu\napt-get install -y bash\n", 0o755)
        problems = check_packages.check(self.root)
        self.assertProblem(problems, "bootstrap:3", "second list")
        self.assertProblem(problems, "does not read packages.txt")

    def test_sources(self):
        self.write("good.cpp", "int a;\n")
        self.assertEqual(check_sources.check(self.root), [])
        self.write("bad.hpp", "int a; \n\tint b;")
        self.write("CMakeLists.txt", "set(x PASS_REGULAR_EXPRESSION ok)\nset(y /home/me/x)\n")
        problems = check_sources.check(self.root)
        self.assertProblem(problems, "bad.hpp:1: trailing blanks")
        self.assertProblem(problems, "bad.hpp:2: a tab")
        self.assertProblem(problems, "bad.hpp: no newline")
        self.assertProblem(problems, "CMakeLists.txt:1: lets a failing test pass")
        self.assertProblem(problems, "CMakeLists.txt:2: a path")

    def test_registered(self):
        good = {"name": "a", "command": ["x"], "properties": [{"name": "TIMEOUT", "value": 5.0}, {"name": "LABELS", "value": ["unit"]}]}
        self.assertEqual(check_tests.check([good]), [])
        self.assertProblem(check_tests.check([]), "no tests")
        problems = check_tests.check([{"name": "b", "properties": [{"name": "LABELS", "value": ["quick"]}]}])
        self.assertProblem(problems, "b: no TIMEOUT")
        self.assertProblem(problems, "b: unknown labels quick")
        self.assertProblem(problems, "b: what it runs is not built")
        self.assertProblem(check_tests.check([{"name": "c", "command": ["x"]}]), "c: no LABELS")

    def test_skipped_tests(self):
        self.write("some_test.py", "self.skipTest('no gcore')\n")
        self.write("script.sh", "echo skipped\nexit 77\n")
        self.write("unittests.py", "")
        good = [{"name": "TIMEOUT", "value": 5.0}, {"name": "LABELS", "value": ["unit"]}]
        told = {"name": "SKIP_RETURN_CODE", "value": 77}
        file, script, driver = (str(self.root / name) for name in ("some_test.py", "script.sh", "unittests.py"))
        self.assertEqual(check_tests.check([{"name": "a", "command": ["python", driver, file], "properties": [*good, told]},
                                            {"name": "b", "command": [script], "properties": [*good, told]}]), [])
        problems = check_tests.check([{"name": "a", "command": ["python", file], "properties": [*good, told]}])
        self.assertProblem(problems, "a: ", "unittests.py does not run it")
        problems = check_tests.check([{"name": "a", "command": ["python", driver, file], "properties": good}, {"name": "b", "command": [script], "properties": good}])
        self.assertProblem(problems, "a: ", "no SKIP_RETURN_CODE")
        self.assertProblem(problems, "b: ", "no SKIP_RETURN_CODE")

    def test_docs(self):
        self.write("CMakePresets.json", '{"configurePresets": [{"name": "dev"}]}')
        self.write("docs/a.md", "[b](b.md) `tests/<suite>` `--omp=clamp` `forksight run --omp=x -- cmd --unknown` --preset dev\n")
        self.write("docs/b.md", "[a](https://example.org/none) `make -C x`\n")
        self.write("tests/one/x", "")
        self.write("docs/hazards/known.md", "")
        head = "// Mechanism: a.\n// To blame:  b.\n// User sees: c.\n// Fix:       d.\n//\n// EXPECT-BARE: hang\n"
        self.write("repro/good.c", head + "// EXPECT: known proven hang\n")
        self.write("repro/lost_pool.c", "")
        verbs = {"": {"--version": False}, "run": {"--omp": True, "-q": False}, "suite": {}, "suite run": {"--keep": True}, "suite list": {}}
        self.write("README.md", "`forksight run -q --omp=auto -- x --lost`, forksight run. `forksight suite run 'lost_*' --keep dir lost_pool`\n"
                   "`forksight suite list|run` `forksight --version` `forksight help run` `forksight <verb>`\n")
        self.assertEqual(check_docs.check(self.root, verbs), [])
        self.write("docs/b.md", "[c](c.md) `docs/none.md` `--gone` --preset none\n    $ forksight run --lost -- x\n"
                   "`forksight runs --omp auto` `forksight suite run --omp auto` `forksight suite run lost_pol` `forksight suite list|run --keep x`\n")
        self.write("repro/bad.c", "// EXPECT(x): unknown proven hang\n")
        self.write("repro/headless.c", head.replace("Fix", "Help") + "// EXPECT: known proven hang EXPECT-STACK: stack main\n")
        problems = check_docs.check(self.root, verbs)
        self.assertProblem(problems, "link to c.md")
        self.assertProblem(problems, "docs/none.md is not there")
        self.assertProblem(problems, "--gone is in no --help")
        self.assertProblem(problems, "forksight run has no --lost")
        self.assertProblem(problems, "forksight runs: there is no such verb")
        self.assertProblem(problems, "forksight suite run has no --omp")
        self.assertProblem(problems, "forksight suite list has no --keep")
        self.assertProblem(problems, "lost_pol is no case of the suite")
        self.assertProblem(problems, "no preset none")
        self.assertProblem(problems, "repro/bad.c: unknown has no")
        self.assertProblem(problems, "repro/headless.c: its head has no line 'Fix:'")
        self.assertProblem(problems, "repro/headless.c: an expectation within a line")

    def test_release(self):
        self.write("CMakeLists.txt", "project(forksight VERSION 1.2.3 LANGUAGES C)\n")
        self.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2030-01-02\n\nNotes.\n\n### Added\n\n- a\n\n## [1.2.2] - 2029-01-02\n")
        self.write("README.md", "forksight_1.2.3_amd64.deb forksight-1.2.3.tar.zst manylinux_2_28\n")
        self.assertEqual(check_release.check(self.root), [])
        self.write("README.md", "forksight_1.2.2_amd64.deb\n")
        self.assertProblem(check_release.check(self.root), "README.md", "1.2.2", "1.2.3")
        for text, *said in (("## [1.2.2] - 2030-01-02\n", "the last release", "1.2.3"), ("## [1.2.3]\n", "no version with a date"),
                            ("## [1.2.3] - 2030-01-02\n## [Unreleased]\n", "does not come first"),
                            ("## [1.2.3] - 2030-01-02\n### New\n", "New is no heading"), ("## [1.2.3] - 2030-01-02\n- a\n", "below no heading"),
                            ("## [1.2.3] - 2030-01-02\n### Added\n- a\n### Added\n", "Added twice")):
            self.write("CHANGELOG.md", text)
            self.assertProblem(check_release.check(self.root), *said)

    def test_session(self):
        text = "```console\n$ echo child 1200 waits 1.5 s\nchild 700 waits\n  0.1 s\n$ true\n```\n"
        self.assertEqual(check_session.check(text, self.root, "x"), [])
        self.assertProblem(check_session.check("no session", self.root, "x"), "no session")
        self.assertProblem(check_session.check(text.replace("waits\n", "sleeps\n"), self.root, "x"), "it prints", "child 1200 waits")
        self.assertProblem(check_session.check("```console\n$ true\nwords\n```\n", self.root, "x"), "words")

    def test_session_with_lines_left_out(self):
        printed = "```console\n$ printf 'one\\ntwo\\nthree\\nfour\\n'\n%s\n```\n"
        for said in ("one\n  ...\nfour", "...\nthree\n...", "one\n..."):
            self.assertEqual(check_session.check(printed % said, self.root, "x"), [], said)
        for said in ("one\nthree\n...", "...\nfour\n...\ntwo", "...\nthree", "two\n...", "one"):
            self.assertProblem(check_session.check(printed % said, self.root, "x"), "it prints")

    def test_session_with_a_program_in_the_background(self):
        block = "```console\n$ sleep 60 &\n$ tr '\\0' ' ' < /proc/PID/cmdline\n%s\n```\n"
        self.assertEqual(check_session.check(block % "sleep 60", self.root, "x"), [])


if __name__ == "__main__":
    unittest.main()
