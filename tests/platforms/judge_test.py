"""Tests the table that tests/platforms/platforms.py makes from results, and which results make platforms.py fail."""
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import platforms

GREEN = dict.fromkeys(platforms.COLUMNS, "")


class Judge(unittest.TestCase):
    def setUp(self):
        known = dict(platforms.EXPLAINED)
        self.addCleanup(lambda: (platforms.EXPLAINED.clear(), platforms.EXPLAINED.update(known)))
        platforms.EXPLAINED.clear()
        platforms.EXPLAINED[("sid", "suite")] = "It is too new."

    def test_green_and_explained_cells_are_accepted(self):
        self.assertEqual(platforms.judge([("bookworm", "deb", "2.36", GREEN), ("sid", "deb", "2.43", {**GREEN, "suite": "red"})]), [])

    def test_a_red_cell_must_be_explained(self):
        self.assertEqual(platforms.judge([("bookworm", "deb", "2.36", {**GREEN, "core": "nothing"})]), ["bookworm, deb, core: nothing"])

    def test_an_explanation_must_be_needed(self):
        self.assertEqual(platforms.judge([("sid", "deb", "2.43", GREEN)]), ["sid, deb, suite: is explained as red, but is not red"])

    def test_a_step_that_is_not_tried_is_neither_red_nor_green(self):
        untried = {**GREEN, "suite": None}
        self.assertEqual(platforms.judge([("sid", "tar", "2.43", untried)]), [])
        self.assertIn("| yes | - | yes |\n", platforms.make_table([("sid", "tar", "2.43", untried)]))

    def test_the_table_says_why_below(self):
        table = platforms.make_table([("sid", "tar", "2.43", {**GREEN, "suite": "red"})])
        self.assertIn("| Debian sid | 2.43 | `.tar.zst` | yes |", table)
        self.assertTrue(table.endswith("| no (1) | yes |\n\n1. It is too new.\n"), table)

    def test_the_table_is_written_between_its_marks(self):
        with TemporaryDirectory() as folder:
            page = Path(folder, "page.md")
            page.write_text(f"before\n{platforms.BEGIN}old\n{platforms.END}after\n")
            platforms.write_page(page, "new\n")
            self.assertEqual(page.read_text(), f"before\n{platforms.BEGIN}new\n{platforms.END}after\n")


if __name__ == "__main__":
    unittest.main()
