#!/usr/bin/env python3
"""tools/gpu_file with archives that were written by hand: filed_results.py."""
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

from stand_ins import root


class File(unittest.TestCase):
    """What gpu_file takes, and what it refuses."""
    HEAD = {"schema": "gpu_check/1", "device": "NVIDIA H0", "driver": "580.1", "date": "2026-01-02", "commit": "1.2.3 (abcdef0)",
            "checks": [{"check": "runs", "result": "ok"}, {"check": "graphs", "result": "over 5 s"}]}
    RUN = {"schema": "validation/1", "device": HEAD["device"], "driver": HEAD["driver"], "date": HEAD["date"],
           "commit": HEAD["commit"],
           "measured": {"backend": "cuda", "clock": "device", "machine": "4 partitions of 32 of the 132 multiprocessors of NVIDIA H0"},
           "iteration_s": {"simulated": 1.1, "measured": 1.0, "error": 0.1}}
    PROFILE = 'schema: profile/1\nmachine: "a machine, 4 partitions of 32 of the 132 multiprocessors of NVIDIA H0"\ndate: "2026-01-02"\n'

    def filed(self, head=None, run=None, profile=None, more=(), words=()):
        files = {"first.json": json.dumps({**self.HEAD, **(head or {})}), "ncu.csv": "", "nvidia-smi-before.txt": "", "nccl-a-1.log": "",
                 "profiles/h0-4-parts.yaml": self.PROFILE if profile is None else profile,
                 "validated/h0-gpipe-4-parts.json": json.dumps({**self.RUN, **(run or {})}), **dict(more)}
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / "old").mkdir()
            with tarfile.open(place / "a.tar", "w") as tar:
                for name, text in files.items():
                    member = tarfile.TarInfo(name)
                    member.size = len(text.encode())
                    tar.addfile(member, io.BytesIO(text.encode()))
            for _ in range(2):  # The second time, files of the first are there.
                done = subprocess.run([sys.executable, str(root / "tools/gpu_file"), "--root", folder, *words, str(place / "a.tar")],
                                      capture_output=True, text=True)
            written = {str(p.relative_to(place)): p.read_text() for p in place.rglob("*.*") if p.name != "a.tar"}
        return done, written

    def test_a_sound_result_is_filed_with_its_origin(self):
        done, written = self.filed()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(written), ["models/profiles/h0-4-parts.yaml", "scenarios/validated/h0-first.json",
                                           "scenarios/validated/h0-gpipe-4-parts.json"])
        self.assertEqual(done.stdout.splitlines()[:2], ["NVIDIA H0, driver 580.1, 2026-01-02, 1.2.3 (abcdef0)", "  graphs: over 5 s"])
        self.assertEqual(json.loads(written["scenarios/validated/h0-gpipe-4-parts.json"]), self.RUN)
        done, written = self.filed(words=("--check",))
        self.assertEqual((done.returncode, written), (0, {}))

    def test_what_is_not_sound_is_refused_and_nothing_is_written(self):
        for more, what in (({"head": {"emulated": True}}, "emulated"), ({"head": {"schema": "x"}}, "gpu_check/1"),
                           ({"head": {"driver": "unknown"}}, "its driver"), ({"head": {"commit": "1 (abc-dirty)"}}, "commit them"),
                           ({"head": {"device": "NVIDIA H1"}}, "another device"), ({"head": {"date": "today"}}, "no date"),
                           ({"run": {"driver": "1"}}, "its driver"), ({"run": {"measured": {"machine": "x"}}}, "not measured on a GPU"),
                           ({"run": {"measured": {**self.RUN["measured"], "machine": "4 x NVIDIA H0"}}}, "not on parts"),
                           ({"run": {"iteration_s": {"simulated": 1.1, "measured": 1.0, "error": 0.0}}}, "does not follow"),
                           ({"run": {"iteration_s": {"simulated": float("nan"), "measured": 1.0, "error": 0.0}}}, "no number"),
                           ({"run": {"iteration_s": {}}}, "KeyError"), ({"profile": "schema: model/1\n"}, "no profile"),
                           ({"profile": self.PROFILE.replace("H0", "H9")}, "not of NVIDIA H0"),
                           ({"more": {"../evil.json": "{}"}}, "does not write"), ({"more": {"other.json": "{}"}}, "2 tables")):
            done, written = self.filed(**more)
            self.assertEqual((done.returncode, written), (1, {}), what)
            self.assertIn(what, done.stderr)

    def test_an_earlier_result_is_kept_unless_it_is_to_be_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            old = place / "scenarios/validated/h0-gpipe-4-parts.json"
            old.parent.mkdir(parents=True)
            old.write_text("old")
            with tarfile.open(place / "a.tar", "w") as tar:
                for name, one in (("first.json", self.HEAD), ("validated/h0-gpipe-4-parts.json", self.RUN)):
                    member = tarfile.TarInfo(name)
                    member.size = len(json.dumps(one))
                    tar.addfile(member, io.BytesIO(json.dumps(one).encode()))
            for words, code in (((), 1), (("--replace",), 0)):
                done = subprocess.run([sys.executable, str(root / "tools/gpu_file"), "--root", folder, *words, str(place / "a.tar")],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(old.read_text() == "old", code == 1)


if __name__ == "__main__":
    unittest.main()
