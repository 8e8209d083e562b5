#!/usr/bin/env python3
"""tools/gpu_torch with a PyTorch that is a stand-in: baseline.py."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from stand_ins import HUNG, NO_TORCH, root

TORCH = """
import atexit, json, os, sys
from unittest.mock import MagicMock

class Module:
    def __init__(self): pass

words = MagicMock()
words.chunk.side_effect = lambda count: [MagicMock()] * count
loss = MagicMock()
loss.__truediv__.side_effect = lambda count: loss
nn = MagicMock(Module=Module)
nn.functional.cross_entropy.return_value = loss
this = MagicMock(nn=nn, __version__='0.0', __spec__=None, __path__=[])
this.randint.return_value = words
this.cuda.is_available.return_value = False
sys.modules['torch'], sys.modules['torch.nn'] = this, nn

@atexit.register
def note():
    seen = {'backward': loss.backward.call_count, 'steps': this.optim.Adam.return_value.step.call_count,
            'products': [c.args[0] for c in this.set_float32_matmul_precision.call_args_list],
            'rounded': [c.kwargs['enabled'] for c in this.autocast.call_args_list],
            'linear': [list(c.args) for c in nn.Linear.call_args_list]}
    open(os.environ['NOTES'], 'w').write(json.dumps(seen))
"""


class Torch(unittest.TestCase):
    def run_with(self, torch, *words):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "torch.py").write_text(torch)
            notes = pathlib.Path(folder) / "notes"
            done = subprocess.run([sys.executable, str(root / "tools/gpu_torch"), *words], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": folder, "NOTES": str(notes)}, timeout=HUNG)
            return done, json.loads(notes.read_text()) if notes.exists() else None

    def test_says_what_is_missing(self):
        done, _ = self.run_with(NO_TORCH)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (77, "", "no PyTorch here\n"))
        done, _ = self.run_with(TORCH)
        self.assertEqual((done.returncode, done.stderr), (77, "PyTorch 0.0 sees no GPU\n"))

    def test_runs_the_model_that_was_asked_for(self):
        done, seen = self.run_with(TORCH, "--device", "cpu", "--layers", "2", "--hidden", "8", "--vocabulary", "32",
                                   "--micro-batches", "3", "--iterations", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(r["torch"], r["precision"], r["how"]) for r in rows],
                         [("0.0", p, h) for h in ("one stream", "one stream, CUDA graph", "one stream, compiled (max-autotune)")
                          for p in ("exact", "tf32", "bf16")])
        for row in rows[:3]:
            self.assertGreater(row["seconds"], 0)
        for first, what in ((3, "CUDA graphs are"), (6, "compiled models are")):
            for row in rows[first:first + 3]:
                self.assertEqual(row["why_not"], f"RuntimeError: {what} measured on GPUs only")
        iterations = 3 * (4 + 2)  # Of three precisions, two more than count.
        self.assertEqual((seen["backward"], seen["steps"]), (3 * iterations, iterations))
        self.assertEqual(seen["products"][::6], ["highest", "high", "highest"])  # Once in an iteration.
        self.assertEqual(seen["rounded"][::6], [False, False, True])
        one = [[8, 32]] + 2 * [[8, 24], [8, 8], [8, 32], [32, 8]]  # The head is made first.
        self.assertEqual(seen["linear"], 3 * one)

    def test_runs_the_precisions_and_ways_that_were_asked_for(self):
        done, seen = self.run_with(TORCH, "--device", "cpu", "--precisions", "bf16", "--ways", "eager", "compiled")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(r["precision"], r["how"]) for r in rows],
                         [("bf16", "one stream"), ("bf16", "one stream, compiled (max-autotune)")])
        self.assertEqual((set(seen["products"]), set(seen["rounded"])), ({"highest"}, {True}))


if __name__ == "__main__":
    unittest.main()
