"""multiprocessing_test.py FORKSIGHT: `forksight why` names the process that holds a lock of multiprocessing.

The semaphore of such a lock records no owner. But each process has a Python object that counts the acquisitions of this process.
So the counts show which process holds the lock. `why` blames a process that has ended only if no living process holds the lock.
"""
import sys
import unittest
from pathlib import Path

from observed import Command, Program, tree_of

FORKSIGHT = Command(sys.argv.pop())
SCENES = Path(__file__).resolve().parent / "multiprocessing_scenes.py"


class Locks(unittest.TestCase):
    def look(self, scene):
        """Returns the rule and the cause of each finding, and the text of the report."""
        with Program([sys.executable, "-B", SCENES, scene]) as program:
            program.wait_quiet()
            self.pids = tree_of(program.pid)
            text = FORKSIGHT.run(program.pid).stdout
            report, _ = FORKSIGHT.report(program.pid)
        self.assertNotIn("unexplained", text)
        found = [(finding["rule"], finding["cause"]) for finding in report["findings"]]
        return found, " ".join(text.split())

    def test_a_parent_that_holds_the_lock_and_waits_for_the_child_is_a_join_cycle(self):
        found, text = self.look("parent_holds")
        self.assertEqual(found, [("join-cycle", "likely")], text)
        self.assertRegex(text, rf"Held by the first thread of process {self.pids[0]};")

    def test_a_child_that_acquires_the_lock_twice_is_a_self_deadlock(self):
        found, text = self.look("child_acquires_twice")
        self.assertEqual(found, [("self-deadlock", "likely")], text)
        self.assertIn(f"process {self.pids[0]} (wait4) waits for this: a victim", text)

    def test_two_processes_that_take_two_locks_in_two_orders_are_a_lock_cycle(self):
        found, text = self.look("two_orders")
        self.assertEqual(found, [("lock-cycle", "likely")], text)

    def test_a_holder_that_was_killed_is_an_abandoned_lock(self):
        found, text = self.look("holder_was_killed")
        self.assertEqual(found, [("queue-lock-abandoned", "likely")], text)
        self.assertIn("the process that took it last has ended", text)

    def test_no_process_that_has_ended_is_blamed_for_an_event_that_nobody_sets(self):
        found, text = self.look("event_is_never_set")
        self.assertEqual(found, [("queue-lock-abandoned", "possible")], text)
        self.assertIn("The semaphore is not a lock", text)

    def test_no_process_that_has_ended_is_blamed_for_a_barrier_that_one_does_not_reach(self):
        found, text = self.look("party_is_missing")
        self.assertEqual(found, [("queue-lock-abandoned", "possible")], text)

    def test_a_full_queue_of_one_place_is_no_lock_that_the_producer_holds(self):
        found, text = self.look("nobody_gets")
        self.assertEqual(found, [("queue-lock-abandoned", "possible")], text)

    def test_a_worker_that_waits_for_the_lock_of_an_idle_worker_is_a_victim(self):
        found, text = self.look("nobody_puts")
        self.assertEqual(found, [("pipe-held-open", "proven")], text)
        self.assertRegex(text, r"\(semaphore lock\).* waits? for this: ")

    def test_a_holder_that_goes_on_later_is_no_hang(self):
        self.assertEqual(self.look("holder_sleeps")[0], [])

    def test_a_recursive_lock_that_its_holder_acquires_again_is_no_hang(self):
        self.assertEqual(self.look("recursive_lock_is_fine")[0], [])

    def test_a_lock_of_an_ended_thread_is_not_held_by_its_process(self):
        found, text = self.look("holding_thread_has_ended")
        self.assertEqual(found, [("queue-lock-abandoned", "possible")], text)
        self.assertNotIn("holds it already", text)

    def test_a_lock_that_two_processes_seem_to_hold_has_no_known_holder(self):
        found, text = self.look("copy_of_held_lock")
        self.assertEqual(found, [("queue-lock-abandoned", "possible")], text)
        self.assertIn("A semaphore does not record who took it", text)


if __name__ == "__main__":
    unittest.main()
