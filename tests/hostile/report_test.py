"""report_test.py FORKSIGHT: `forksight report` on a folder of another user. The folder contains entries that are not regular
files, and files that would use up all memory. The report must still contain the rest of the folder."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from bounded import run

FORKSIGHT = sys.argv.pop(1)
MEMORY_MB = 512


def run_log(**more):
    return {"schema": "forksight-run/1", "command": ["app"], "started_at": "2026-01-01T00:00:00+00:00", "host": "here", "limits": [],
            "processes": [], **more}


def stuck_process(pid):
    wait = {"tid": pid, "name": "main", "state": "S", "kind": "pipe-read", "object": "0x0", "is_stuck": True, "fd": 3}
    return {"pid": pid, "ppid": 1, "start_ticks": 7, "comm": "honest", "exe": "/bin/honest", "cmdline": ["honest"], "liveness": "dead-but-for-signal",
            "stuck_for_ms": 9000, "waits": [wait]}


def remove_deep(folder):
    """Removes a folder. shutil.rmtree() of Python 3.11 fails if thousands of folders are nested."""
    subprocess.run(["rm", "-rf", folder], check=True, timeout=60)


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-hostile-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.honest, self.strange = self.folder / "a", self.folder / "b"
        self.honest.mkdir()
        self.strange.mkdir()
        (self.honest / "run.json").write_text(json.dumps(run_log(processes=[stuck_process(4711)])))

    def report(self, *sentences, memory_mb=MEMORY_MB):
        done = run([FORKSIGHT, "report", self.folder, "--format", "json"])
        self.assertIn(done.status, (0, 1), done.err)
        report = json.loads(done.out)
        self.assertIn(4711, [process["pid"] for process in report["processes"]], "the rest of the report is missing")
        for sentence in sentences:
            self.assertTrue(any(sentence in limit for limit in report["limits"]), (sentence, report["limits"]))
        self.assertLess(done.peak_mb, memory_mb)
        self.assertLess(done.seconds, 10)
        return done

    def test_a_fifo_is_not_waited_for(self):
        for name in ("run.json", "outside.json"):
            os.mkfifo(self.strange / name)
        self.report("run.json: not a regular file", "outside.json: not a regular file")

    def test_a_fifo_is_no_trace(self):
        os.mkfifo(self.strange / "trace.fstrace")
        done = run([FORKSIGHT, "report", self.strange])
        self.assertEqual((done.status, len(done.err.splitlines())), (3, 1), done.text)
        self.assertIn("trace.fstrace: not a regular file", done.err)

    def test_strange_traces_do_not_hide_the_rest(self):
        """None of the traces can be read."""
        os.mkfifo(self.strange / "fifo.fstrace")
        os.mkdir(self.strange / "folder.fstrace")
        (self.strange / "zero.fstrace").symlink_to("/dev/zero")
        (self.strange / "proc.fstrace").symlink_to("/proc/self/environ")
        (self.strange / "text.fstrace").write_text("no trace")
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(self.strange / "socket.fstrace"))
        names = ("fifo", "zero", "proc", "socket")
        self.report(*(f"{name}.fstrace: not a regular file" for name in names), "text.fstrace: not a forksight trace", memory_mb=100)

    def test_sparse_traces_of_a_terabyte(self):
        for number in range(20):
            with open(self.strange / f"{number}.fstrace", "wb") as file:
                file.truncate(1 << 40)
        self.report("0.fstrace: its writer had not finished creating it", memory_mb=200)

    def test_folders_in_folders_end_at_a_depth(self):
        """Each of 3000 folders is inside the previous one. So each path is longer than the previous path. A search that
        keeps all these paths takes 0.5 GB."""
        folder = os.open(self.strange, os.O_RDONLY)
        for _ in range(3000):
            os.mkdir("d", dir_fd=folder)
            inner = os.open("d", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = inner
        os.close(folder)
        self.addCleanup(remove_deep, self.strange / "d")
        self.report("its subfolders are not searched, because they are more than", memory_mb=100)

    def test_a_link_to_a_device_is_not_read(self):
        for name in ("run.json", "outside.json"):
            (self.strange / name).symlink_to("/dev/zero")
        self.report("run.json: not a regular file", "outside.json: not a regular file", memory_mb=200)

    def test_a_link_into_proc_is_not_read(self):
        for name in ("run.json", "outside.json"):
            (self.strange / name).symlink_to("/proc/kmsg" if name == "outside.json" else "/proc/self/environ")
        self.report("run.json: not a regular file", "outside.json: not a regular file", memory_mb=200)

    def test_a_folder_of_that_name_is_not_read(self):
        (self.strange / "run.json").mkdir()
        self.report("run.json: not a regular file")

    def test_a_sparse_file_of_a_terabyte_is_not_read(self):
        with open(self.strange / "run.json", "wb") as file:
            file.truncate(1 << 40)
        self.report("run.json: has 1099511627776 bytes", memory_mb=200)

    def check_items(self, before, item, after, sentence):
        """Writes a run.json of 120 MB that repeats `item`, and checks that the report contains `sentence`."""
        text = json.dumps(run_log())[:-1] + before
        piece = (item + ",") * 100_000
        with open(self.strange / "run.json", "w") as file:
            file.write(text)
            while file.tell() < 120_000_000:
                file.write(piece)
            file.write(item + after)
        self.report(sentence)

    def test_small_items_are_counted_before_they_are_kept(self):
        self.check_items(', "ends": [', "0", "]}", "has more than")

    def test_small_objects_are_counted_before_they_are_kept(self):
        self.check_items(', "ends": [', "{}", "]}", "an end has no pid")

    def test_lists_in_lists_end_at_a_depth(self):
        (self.strange / "run.json").write_text("[" * 10_000_000)
        self.report("has lists in lists", memory_mb=200)

    def check_rows(self, processes):
        (self.strange / "run.json").write_text(json.dumps(run_log(processes=processes)))
        self.report()

    def test_rows_within_the_number_of_items_stay_within_the_memory(self):
        wait = {"tid": 1, "name": "", "state": "S", "kind": "futex", "stack": [{}] * 3_000_000}
        self.check_rows([{**stuck_process(4712), "waits": [wait]}])

    def test_wakers_within_the_number_of_items_stay_within_the_memory(self):
        wait = {"tid": 1, "name": "", "state": "S", "kind": "futex", "wakers": [{}] * 900_000}
        self.check_rows([{**stuck_process(4712), "waits": [wait]}])

    def check_waits(self, waits_of):
        """Makes a report from a run log of 40,000 processes. For a pid, `waits_of` returns the fields of this process
        that differ from those of stuck_process()."""
        processes = [{**stuck_process(10_000 + i), **waits_of(10_000 + i)} for i in range(40_000)]
        (self.strange / "run.json").write_text(json.dumps(run_log(processes=processes)))
        self.report()

    def test_a_long_chain_of_victims(self):
        self.check_waits(lambda pid: {"liveness": "victim", "waits_for": {"pid": pid + 1, "start_ticks": 7}, "waits_via": "wait4"})

    def test_many_rings_of_two(self):
        wait = {"tid": 0, "name": "", "state": "S", "kind": "wait-child", "is_stuck": True, "wakers_known": True}
        self.check_waits(lambda pid: {"waits": [{**wait, "tid": pid, "target_pid": pid ^ 1,
                                                 "wakers": [{"pid": pid ^ 1, "tid": 0, "fd": -1, "via": "wait4"}]}]})

    def test_the_limits_hold_for_all_files_together(self):
        """Each of these files has fewer processes than one file may have. All of them together have more than all files may have."""
        text = json.dumps(run_log(processes=[{**stuck_process(10_000 + i), "liveness": "awake", "waits": []} for i in range(70_000)]))
        for number in range(4):
            folder = self.strange / str(number)
            folder.mkdir()
            (folder / "run.json").write_text(text)
        done = self.report("it has more processes, waiting threads or ends than forksight reads")
        refused = [limit for limit in json.loads(done.out)["limits"] if "than forksight reads" in limit]
        self.assertEqual(len(refused), 2, refused)

    def test_many_findings_about_a_process_with_many_victims(self):
        def wait(tid):
            return {"tid": tid, "name": "w", "state": "S", "kind": "futex", "is_stuck": True, "wakers_known": True, "use": "mutex",
                    "object": hex(64 * tid), "owner": tid, "mutex_type": "normal",
                    "stack": [{"function": f"f{tid}", "module": "/opt/app", "offset": "0x10"}],
                    "wakers": [{"pid": 5, "tid": tid, "fd": -1, "via": "mutex"}]}

        def process(pid, **more):
            return {"pid": pid, "ppid": 1, "start_ticks": 7, "comm": "x", "exe": "/bin/x", "cmdline": ["x"], "waits": [], **more}

        stuck = process(5, liveness="dead", stuck_for_ms=9000, waits=[wait(10 + number) for number in range(1000)])
        victims = [process(10_000 + number, liveness="victim", waits_for={"pid": 5, "start_ticks": 7}, waits_via="wait4")
                   for number in range(10_000)]
        (self.strange / "run.json").write_text(json.dumps(run_log(processes=[stuck, *victims])))
        findings = [one for one in json.loads(self.report().out)["findings"] if one["process"]["pid"] == 5]
        self.assertEqual(len(findings), 1000)
        self.assertEqual((len(findings[0]["victims"]), findings[0].get("more_victims")), (10_000, None))
        self.assertEqual((len(findings[1]["victims"]), findings[1].get("more_victims")), (100, 9_900))

    def test_a_large_run_of_honest_processes_is_read(self):
        frame = {"function": "wait_for_something", "module": "/usr/lib/libapp.so", "offset": "0x1234", "file": "/src/app/wait.cpp",
                 "line": 17}
        wait = {"tid": 1, "name": "worker", "state": "S", "kind": "futex", "object": "0x7f0000001000", "target_pid": 0,
                "has_timeout": False, "is_shared": False, "is_stuck": True, "wakers_known": False, "stack": [frame] * 25}
        process = {**stuck_process(5000), "waits": [{**wait, "tid": 5000 + i} for i in range(6000)]}
        (self.strange / "run.json").write_text(json.dumps(run_log(processes=[process]), indent=2))
        done = self.report()
        self.assertIn(5000, [one["pid"] for one in json.loads(done.out)["processes"]])


if __name__ == "__main__":
    unittest.main()
