"""own_processes_test.py FORKSIGHT: `why` does not take its own processes for spinning processes, and does not report them."""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FORKSIGHT = sys.argv.pop()


class OwnProcesses(unittest.TestCase):
    def test_the_shell_that_started_why_is_reported_without_the_processes_of_why(self):
        script = '"$1" why $$ --format json; exit 0'
        done = subprocess.run(["sh", "-c", script, "sh", FORKSIGHT], start_new_session=True, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60, check=True)
        names = [Path(process["exe"]).name for process in json.loads(done.stdout)["processes"]]
        self.assertEqual(len(names), 1, names)
        self.assertNotIn("forksight", names)

    @unittest.skipUnless(shutil.which("strace"), "this needs strace")
    def test_the_search_for_spinning_threads_leaves_out_the_processes_of_why(self):
        # `why` and the process that it examines have a common ancestor here. So `why` finds its own processes, too. If
        # the search for spinning threads sees a running thread at each look, the search pauses five times. If the
        # search pauses less often, it has left out the processes of `why`.
        with tempfile.TemporaryDirectory(prefix="forksight-why-") as folder:
            log = Path(folder, "calls")
            # The search would count `sleep` itself as running until it sleeps.
            script = 'sleep 100 & until grep -q ^State:.S /proc/$!/status; do :; done; strace -f -qq -e trace=clock_nanosleep -o "$2" "$1" why $!; kill $!'
            subprocess.run(["sh", "-c", script, "sh", FORKSIGHT, log], start_new_session=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False)
            # ThreadSanitizer makes pauses of its own, which are shorter than 10 ms.
            pauses = re.findall(r"clock_nanosleep\(\w+, 0, \{tv_sec=(?:[1-9]\d*|0, tv_nsec=\d{8,9}\b)", log.read_text())
            self.assertLess(len(pauses), 5, log.read_text())


if __name__ == "__main__":
    unittest.main()
