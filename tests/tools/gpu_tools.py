#!/usr/bin/env python3
"""tools/gpu_check and tools/gpu_torch where there is no GPU: gpu_tools.py. Programs and PyTorch are stand-ins that note what they
are asked for, so this says what would be run and how results are read, and nothing of speed."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

root = pathlib.Path(__file__).resolve().parent.parent.parent

NO_TORCH = "raise ImportError('not here')\n"

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

PROGRAM = """#!/bin/sh
echo "$0 $*" >>"$NOTES"
case "$0 $* " in
  *" doctor "*) echo '  cuda     GPU 0: Stand-in' ;;
  *" run "*) echo '{"period_s": 0.5, "learnt": {"losses": [1.0]}}' ;;
  *" validate "*) echo 'as measured' ;;
  *first_run*) printf '{"gaps": {"error": "no"}'; case "$FAILS" in first_run_dies) kill -9 $$ ;; esac
    echo '}'; case "$FAILS" in first_run) exit "$CODE" ;; esac ;;
  *$FAILS*) echo 'broken'; exit "$CODE" ;;
esac
"""


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, str(root / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Torch(unittest.TestCase):
    def run_with(self, torch, *words):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "torch.py").write_text(torch)
            notes = pathlib.Path(folder) / "notes"
            done = subprocess.run([sys.executable, str(root / "tools/gpu_torch"), *words], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": folder, "NOTES": str(notes)}, timeout=60)
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
        rows = json.loads(done.stdout)["rows"]
        self.assertEqual([(r["precision"], r["how"]) for r in rows],
                         [(p, h) for p in ("exact", "tf32", "bf16") for h in ("one stream", "pipelining")])
        for row in rows[::2]:
            self.assertGreater(row["seconds"], 0)
        for row in rows[1::2]:
            self.assertEqual(row["why_not"], "RuntimeError: pipelining is measured on GPUs only")
        iterations = 3 * (4 + 2)  # Of three precisions, two more than count.
        self.assertEqual((seen["backward"], seen["steps"]), (3 * iterations, iterations))
        self.assertEqual(seen["products"][::18], ["highest", "high", "highest"])
        self.assertEqual(seen["rounded"][::18], [False, False, True])
        one = [[8, 32]] + 2 * [[8, 24], [8, 8], [8, 32], [32, 8]]  # The head is made first.
        self.assertEqual(seen["linear"], 3 * one)


class Check(unittest.TestCase):
    def run_with(self, torch, fails="none", code=1):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / "torch.py").write_text(torch)
            for name in load("gpu_check").PROGRAMS:
                (place / name).write_text(PROGRAM)
                (place / name).chmod(0o755)
            done = subprocess.run([sys.executable, str(root / "tools/gpu_check"), "--bin", folder, "--out", f"{folder}/out/check.json"],
                                  capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "PYTHONPATH": folder, "NOTES": f"{folder}/notes", "FAILS": fails, "CODE": str(code),
                                       "PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin"})
            return done, json.loads((place / "out/check.json").read_text()), (place / "notes").read_text()

    def test_a_whole_run_ends_with_a_table_and_a_file(self):
        done, file, notes = self.run_with(NO_TORCH)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "cuda     GPU 0: Stand-in")
        self.assertEqual(len(lines), len(file["checks"]) + 2)
        results = {row["check"]: row["result"] for row in file["checks"]}
        self.assertEqual(results["PyTorch"], "not here")
        self.assertEqual(results["simulated, 4 parts"], "ok")
        self.assertEqual(sum(name.startswith(("gpipe", "1f1b", "2bw", "graph")) for name in results), 12)
        self.assertIn("cluster.parts=8", notes)
        self.assertIn("run.gpu.precision=bf16", notes)
        self.assertNotIn("compute-sanitizer", notes)

    def test_what_fails_is_in_the_table_and_in_the_exit_code(self):
        done, file, _ = self.run_with(NO_TORCH, "run_on_gpu")
        self.assertEqual(done.returncode, 1)
        row = next(r for r in file["checks"] if r["check"] == "runs")
        self.assertEqual(row["result"], "exit 1")
        self.assertIn("broken", row["output"])
        done, file, _ = self.run_with(NO_TORCH, "kernels_on_gpu", 77)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(next(r for r in file["checks"] if r["check"] == "kernels")["result"], "exit 77")

    def test_what_a_first_look_saw_is_kept_where_one_of_its_checks_failed(self):
        done, file, _ = self.run_with(NO_TORCH, "first_run")
        self.assertEqual(done.returncode, 1)
        row = file["checks"][0]
        self.assertEqual((row["result"], row["facts"]), ("exit 1", {"gaps": {"error": "no"}}))
        row = self.run_with(NO_TORCH, "first_run_dies")[1]["checks"][0]
        self.assertEqual((row["result"], row["facts"]), ("exit -9", {"gaps": {"error": "no"}}))

    def test_a_check_that_hangs_ends_with_its_children(self):
        start = time.monotonic()
        with tempfile.NamedTemporaryFile() as file:
            output, _, code = load("gpu_check").run_at_most(0.5, ["sh", "-c", f"echo here; sleep 60 & echo $! >{file.name}; wait"])
            self.assertEqual((output, code), ("here\n", None))
            self.assertLess(time.monotonic() - start, 20)
            child = pathlib.Path(f"/proc/{pathlib.Path(file.name).read_text().strip()}/stat")
            for _ in range(100):
                if not child.exists() or child.read_text().split()[2] == "Z":
                    return
                time.sleep(0.05)
            self.fail("the child still runs")


if __name__ == "__main__":
    unittest.main()
