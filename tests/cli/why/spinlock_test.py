"""spinlock_test.py FORKSIGHT PROGRAM: `why` does not claim as certain that a lost thread holds a spinlock.

A spinlock does not record which thread locked it. In each scene here, the hanging thread, the thread that forked or
another thread of the child has locked the spinlock. If the fork lost threads, `why` must say that a lost thread possibly holds the spinlock. If the
fork lost no thread, `why` must report nothing.
"""
import json
import os
import signal
import subprocess
import sys
import unittest

PROGRAM, FORKSIGHT = sys.argv.pop(), sys.argv.pop()
LIMIT_S = 60


class Spinlock(unittest.TestCase):
    def findings(self, threads, holder):
        """Returns the rule, the certainties and all sentences of each finding of `why` about the child."""
        with subprocess.Popen([PROGRAM, str(threads), holder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as parent:
            try:
                child = int(parent.stdout.readline())
                try:
                    looked = subprocess.run([FORKSIGHT, "why", "--format", "json", str(child)], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, timeout=LIMIT_S, check=False)
                finally:
                    os.kill(child, signal.SIGKILL)  # the parent has not reaped the child, so the pid is still valid
            finally:
                parent.kill()
        return [(one["rule"], one.get("hang"), one["cause"], [one["summary"], *one["chain"]])
                for one in json.loads(looked.stdout)["findings"]]

    def test_without_lost_threads_a_taken_spinlock_has_no_finding(self):
        for holder in ("forker", "child"):
            with self.subTest(holder):
                self.assertEqual(self.findings(0, holder), [])

    def test_with_lost_threads_they_are_only_the_possible_holders(self):
        for holder in ("forker", "child"):
            for threads in (1, 3):
                with self.subTest(holder, threads=threads):
                    (rule, hang, cause, sentences), = self.findings(threads, holder)
                    self.assertEqual((rule, hang, cause), ("orphaned-spinlock", "likely", "possible"))
                    self.assertIn("it is locked, possibly by a thread that fork() left behind", sentences[0])
                    self.assertFalse([one for one in sentences if "was held by" in one or "another thread" in one], sentences)

    def test_a_sleeping_thread_of_the_child_may_unlock_it(self):
        (rule, hang, cause, sentences), = self.findings(1, "sleeper")
        self.assertEqual((rule, hang, cause), ("orphaned-spinlock", "possible", "possible"))
        self.assertIn("Other threads of this process sleep. If one of them holds the lock, it may still unlock it.", " ".join(sentences))


if __name__ == "__main__":
    unittest.main()
