#!/usr/bin/env python3
"""tools/gpu_check whose programs hang, and which is ended itself: signals.py."""
import json
import os
import signal
import tarfile
import tempfile
import unittest
import unittest.mock

from stand_ins import HUNG, StandIns, load  # It makes tests/support importable.
from processes import stat, wait_until, with_words

HANGS = "sleep 1000000"
ROWS = "--rows", "first look/kernels/runs"


class Interrupted(StandIns):
    """Programs that hang until they are ended, by a limit of time or with gpu_check itself."""
    def test_a_call_that_is_killed_leaves_an_archive_of_all_rows_before(self):
        with self.start(fails="run_on_gpu*exclude", how="kill -9 $PPID", words=ROWS) as one:
            text, _ = one.communicate(timeout=HUNG)
        self.assertEqual(one.returncode, -9)
        with tarfile.open(self.out.with_suffix(".tar")) as tar:
            file = json.load(tar.extractfile("check.json"))
        self.assertEqual([(r["check"], r["result"]) for r in file["checks"]], [("first look", "ok"), ("kernels", "ok")])
        self.assertRegex(text, r"kernels +ok")
        self.assertFalse(list(self.out.parent.glob("*.part")))

    def test_a_program_that_hangs_or_never_stops_printing_costs_its_row(self):
        for how in (HANGS, "exec cat /dev/urandom"):
            self.expect_only("runs", "over 1 s", fails="run_on_gpu*exclude", how=how, runs=0.4)

    def test_interrupted_it_says_what_it_knows(self):
        for how in (signal.SIGINT, signal.SIGTERM):  # The program sends it to gpu_check as soon as it runs.
            with self.start(fails="run_on_gpu*exclude", how=f"kill -{int(how)} $PPID; {HANGS}", words=ROWS) as one:
                text, _ = one.communicate(timeout=HUNG)
            self.assertTrue(wait_until(lambda: not with_words(str(self.place))))  # The program has ended too.
            self.assertEqual(one.returncode, 130)
            file = json.loads(self.out.read_text())
            self.assertTrue(file["interrupted"])
            self.assertEqual([(r["check"], r["result"]) for r in file["checks"]],
                             [("first look", "ok"), ("kernels", "ok"), ("runs", "interrupted")])
            with tarfile.open(self.out.with_suffix(".tar")) as tar:  # Also then there is one file with all of it.
                self.assertEqual(json.load(tar.extractfile("check.json")), file)
            self.assertRegex(text, r"runs +interrupted")
            self.out.unlink()

    def stopped_after_its_first_word(self, run_at_most, *words):
        """With a limit that doubles until it is long enough for that word."""
        for seconds in (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6):
            output, _, code = run_at_most(seconds, words)
            if output:
                break
        self.assertEqual((output, code), ("here\n", None))

    def test_a_check_that_hangs_ends_with_its_children(self):
        with tempfile.NamedTemporaryFile("r") as file:
            self.stopped_after_its_first_word(load("gpu_check").run_at_most, "sh", "-c",
                                              f"{HANGS} & echo $! >{file.name}; echo here; wait")
            child = int(file.read())
            self.assertTrue(wait_until(lambda: stat(child) is None))

    def test_a_check_that_cannot_be_ended_is_left_behind(self):
        g = load("gpu_check")
        ended = []
        with unittest.mock.patch("os.killpg", lambda process, _: ended.append(process)):
            self.stopped_after_its_first_word(g.run_at_most, "sh", "-c", f"echo here; exec {HANGS}")
        for group in ended:
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
