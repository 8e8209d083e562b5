#!/usr/bin/env python3
"""tools/gpu_check, tools/gpu_torch and tools/gpu_file where there is no GPU: gpu_tools.py. Programs and PyTorch are stand-ins that note what they
are asked for, so this says what would be run and how results are read, and nothing of speed."""
import fnmatch
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import unittest.mock

root = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(root / "tests/support"), str(root / "tools")]
from processes import HUNG, never_signaled, stat, wait_until, with_words  # noqa: E402

HANGS = "sleep 1000000"
ROWS = "--rows", "first look/kernels/runs"


def gpu_check_with(**seconds):
    """Words that start gpu_check with these seconds for rows, and for all others more than any machine takes."""
    script = (f"import sys; sys.argv[0] = 'gpu_check'; sys.path.insert(0, {str(root / 'tests/tools')!r})\n"
              f"import gpu_tools; g = gpu_tools.load('gpu_check')\n"
              f"g.PLAN.update({{name: row._replace(seconds={seconds}.get(name, {HUNG})) for name, row in g.PLAN.items()}})\nsys.exit(g.main())")
    return [sys.executable, "-B", "-c", script, "--limit", str(1000 * HUNG)]


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
echo "$0 $* on GPU ${CUDA_VISIBLE_DEVICES:-any}${STAGECRAFT_EMULATED_GPUS:+ of $STAGECRAFT_EMULATED_GPUS}" >>"$NOTES"
case "$0 $* " in *$FAILS*) eval "$HOW" ;; esac
out() { while [ $# -gt 0 ]; do [ "$1" = --out ] && echo "$2"; shift; done; }
case "$0 $* " in
  *" doctor "*) echo "           CUDA 13.0, driver for 13.0"; echo "           GPU 0: ${GPU:-NVIDIA Stand-in}, 1 GiB, 100 multiprocessors in 12 groups" ;;
  *" --version "*) echo 'stagecraft 1.2.3 (abcdef0)' ;;
  *" profile "*) printf 'schema: profile/1\\noperation: 1.5 us\\nmachine: "%s"\\ndate: "%s"\\n' "$MACHINE" "$(date -u +%F)" >"$(out "$@")" ;;
  *" validate "*) mkdir -p "$(out "$@")"
    echo '{"schema": "validation/1", "title": "a", "iteration_s": {"simulated": 1.1, "measured": 1.0, "error": 0.1},' \
      '"measured": {"backend": "cuda", "clock": "device", "machine": "'"$MACHINE"'"}}' >"$(out "$@")/validation.json" ;;
  *" run "*) echo '{"period_s": 0.5, "learnt": {"losses": [3.0, 4.0], "weights_sha256": "00"},' \
      '"provenance": {"machine": "'"$MACHINE"'"}, "enqueued": {"by_calls_s": 0.25, "by_graph_s": 0.125, "graph_launches": 5,' \
      '"timed_products": ["a: 1 of 8"], "attention": ["b: cuDNN 9"]}}' ;;
  *first_run*) echo '{"events": {"a": true}, "gaps": {"one_stream": {"eager_us": 3.0, "in_graph_us": 2.0}}, "ceilings":'
    echo '[{"precision": "bf16", "best_flops_per_s": 1e13}, {"precision": "stored_bf16", "best_flops_per_s": 4e13}], "matrix_products": {"points": ['
    echo '{"precision": "bf16", "target": 16, "partitions": 8, "multiprocessors": 16, "all_busy_flops_per_s_each": 8e12},'
    echo '{"precision": "bf16", "target": 32, "partitions": 4, "multiprocessors": 32, "all_busy_flops_per_s_each": 2e13}]}'; eval "$LATER"
    echo '}' ;;
esac
"""

# Tools of the driver and of the toolkit. Their words are in tests/tools/gpu_reports.
TOOLS = {"nvidia-smi": f'cat "{root}/tests/tools/gpu_reports/${{SMI:-nvidia-smi-570.txt}}"',
         "ncu": f"""while [ "$1" != --log-file ]; do shift; done; cp "{root}/tests/tools/gpu_reports/${{NCU:-ncu.csv}}" "$2" """,
         "cuobjdump": f'cat "{root}/tests/tools/gpu_reports/${{SASS:-sass.txt}}"', "compute-sanitizer": ":"}


def load(name):
    sys.dont_write_bytecode = True
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


class StandIns(unittest.TestCase):
    """Runs gpu_check with programs that are stand-ins."""
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.place = pathlib.Path(self.folder.name)
        self.out = self.place / "out/check.json"
        (self.place / "tools").mkdir()
        for name in load("gpu_check").PROGRAMS:
            self.add_program(self.place / name, PROGRAM)

    def tearDown(self):
        self.folder.cleanup()

    @staticmethod
    def add_program(file, text):
        file.write_text(text)
        file.chmod(0o755)

    def add_tools(self):
        for name, text in TOOLS.items():
            self.add_program(self.place / "tools" / name, f'#!/bin/sh\necho "$0 $* on GPU any" >>"$NOTES"\n{text}\n')

    def start(self, torch=NO_TORCH, fails="none", how="echo broken; exit 1", later="", runs=HUNG, words=(), **more):
        """Starts gpu_check with `runs` seconds for the runs."""
        (self.place / "torch.py").write_text(torch)
        return subprocess.Popen([*gpu_check_with(runs=runs), "--bin", str(self.place), "--out", str(self.out), *words],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=never_signaled,
                                env={**os.environ, "PYTHONPATH": str(self.place), "NOTES": str(self.place / "notes"), "FAILS": fails,
                                     "HOW": how, "LATER": later, "CUDA_VISIBLE_DEVICES": "", "STAGECRAFT_EMULATED_GPUS": "", "OUT": "",
                                     "CUDA_HOME": "/nowhere",
                                     "MACHINE": "4 partitions of 32 of the 132 multiprocessors of NVIDIA Stand-in", **more,
                                     "PATH": f"{self.place}/tools:{os.path.dirname(sys.executable)}:/usr/bin:/bin"})

    def notes(self):
        """The words with which stand-ins were started."""
        return (self.place / "notes").read_text().splitlines()

    def run_with(self, **how):
        with self.start(**how) as one:
            one.text = one.communicate(timeout=HUNG)
        file = json.loads(self.out.read_text()) if self.out.exists() else None
        return one.returncode, *one.text, file, {row["check"]: row for row in file["checks"]} if file else {}

    def expect_only(self, name, result, rows=None, **how):
        """One row fails in this way, and no other of `rows`, or of some rows of each kind. That all rows can pass is shown in
        test_a_whole_run_ends_with_a_table_and_files."""
        some = rows or f"{name}/kernels/losses, fp32*/*2 parts/exact, one stream"
        code, text, _, _, rows = self.run_with(words=("--rows", some), **how)
        self.assertEqual(code, 1)
        self.assertEqual({n: r["result"] for n, r in rows.items() if r["result"] not in ("ok", "not here")}, {name: result})
        self.assertIn(name, text)
        return rows[name]


class Check(StandIns):
    def test_both_calls_end_with_a_table_and_files(self):
        code, text, log, file, rows = self.run_with()
        self.assertEqual(code, 0, text + log)
        lines = text.splitlines()
        self.assertEqual(lines[:2], ["NVIDIA Stand-in", "  clocks before: there is no nvidia-smi"])
        self.assertEqual([line.split("  ")[1].strip() for line in lines[2:len(rows) + 2]], list(rows))
        self.assertEqual((file["device"], file["commit"], "emulated" in file), ("NVIDIA Stand-in", "1.2.3 (abcdef0)", False))
        self.assertRegex(file["date"], r"^20\d\d-\d\d-\d\d$")
        self.assertEqual(list(rows), list(load("gpu_check").PLAN))
        self.assertEqual({name: (row["result"], row["why"]) for name, row in rows.items() if row["result"] != "ok"},
                         {"PyTorch": ("not here", "no PyTorch here"), "ncu": ("not here", "there is no ncu"),
                          "sass": ("not here", "there is no cuobjdump"),
                          **{name: ("not here", "there is no compute-sanitizer") for name in ("memcheck", "racecheck", "initcheck")}})
        self.assertIn("clocks, power and throttle reasons are not known: there is no nvidia-smi", text)
        self.assertEqual(file["loopback"], True)
        self.assertIn("kernel", file)
        self.assertEqual((rows["gpipe, 8 parts"]["simulated_ms"], rows["gpipe, 8 parts"]["error"]), (1100, 0.1))
        self.assertEqual(rows["whole numbers on cuda"]["largest_difference"], 0)
        self.assertEqual(rows["run, mixed"]["attention"], ["b: cuDNN 9"])
        self.assertEqual(rows["mixed, 8 parts"]["timed_products"], ["a: 1 of 8"])
        self.assertEqual(sorted(p.name for p in (self.out.parent / "profiles").iterdir()),
                         [f"stand-in-{n}.yaml" for n in ("2-parts", "4-parts-big", "4-parts-nccl", "4-parts", "8-parts")])
        one = json.loads((self.out.parent / "validated/stand-in-gpipe-2-parts.json").read_text())
        self.assertEqual({key: one[key] for key in ("schema", "device", "driver", "commit", "date")},
                         {"schema": "validation/1", "device": "NVIDIA Stand-in", "driver": file["driver"],
                          "commit": "1.2.3 (abcdef0)", "date": file["date"]})
        self.expect_words()
        self.expect_figures(text, file)

    def expect_words(self):
        """Words with which programs have to be started."""
        notes = self.notes()
        for words in ("cluster.parts=8", "run.gpu.precision=bf16", "run.gpu={timing: off, graph: true}", "run.gpu.messages=nccl",
                      "cluster.multiprocessors=100"):
            self.assertTrue([n for n in notes if words in n], words)
        for words in notes:  # Where all GPUs were seen rows on parts would take whole ones.
            parts = "carved-gpu" in words
            self.assertTrue(words.endswith("on GPU 0" if parts else "on GPU any"), words)
        big = [n for n in notes if "model.hidden=2048" in n]
        self.assertTrue(all("run.micro_batches=8" in n and ("carved-gpu" not in n or "precision=tf32" in n or "precision=mixed" in n)
                            for n in big))
        self.assertEqual(sum("cpu-transformer" in n for n in big), 6)  # Mixed three times.
        self.assertEqual(sum("validate" in n for n in big), 3)

    def test_rows_that_ran_on_whole_gpus_fail_and_leave_no_files(self):
        code, text, *_, rows = self.run_with(MACHINE="4 x Stand-in", CUDA_VISIBLE_DEVICES="3,5", words=("--rows", "* 2 parts/* 4 parts, NCCL/mixed*"))
        self.assertEqual(code, 1)
        wrong = [name for name, row in rows.items() if row["result"] not in ("ok", "not here")]
        self.assertEqual(wrong, [name for name in rows if " parts" in name])
        self.assertEqual({(rows[name]["result"], rows[name]["why"]) for name in wrong}, {("not on parts", "it ran on 4 x Stand-in")})
        self.assertEqual([list((self.out.parent / kind).iterdir()) for kind in ("profiles", "validated")], [[], []])
        self.assertEqual({n.split(" on GPU ")[1] for n in self.notes() if "carved-gpu" in n}, {"3"})

    def expect_figures(self, text, file):
        # 3 * 32 samples * (4 layers * (24 * 1024 * 2048^2 + 4 * 1024^2 * 2048) + 2 * 1024 * 2048 * 8000 words) in 0.5 s, of 1e13.
        share = 3 * 32 * (4 * (24 * 1024 * 2048**2 + 4 * 1024**2 * 2048) + 2 * 1024 * 2048 * 8000) / 0.5 / 1e13
        rows = {row["check"]: row for row in file["checks"]}
        self.assertAlmostEqual(rows["bf16, one stream"]["share_of_gemm"], share)
        self.assertAlmostEqual(rows["mixed, one stream, run 3"]["share_of_gemm"], share / 4)  # Its ceiling is of numbers stored in bf16.
        self.assertNotIn("share_of_gemm", rows["exact, one stream"])  # Its ceiling was not measured.
        self.assertEqual(file["facts"]["bf16_over_stored_bf16"], 0.25)
        self.assertAlmostEqual(file["facts"]["products_on_8_parts_over_4"], (8 / 16) / (20 / 32))
        self.assertEqual(file["facts"]["period_without_events_ms"], {"calls, no events": 500, "graphs": 500})
        self.assertEqual((file["facts"]["launch_eager_us"], file["facts"]["launch_in_graph_us"]), (3, 2))
        self.assertEqual((file["facts"]["enqueue_calls_ms"], file["facts"]["enqueue_graph_ms"]), (250, 125))

    def test_rows_that_repeat_each_other_have_a_smallest_a_median_and_a_largest(self):
        how = """echo "{\\"period_s\\": 0.$(grep -c precision=mixed "$NOTES"), \\"learnt\\": {}, \\"enqueued\\": {}}"; exit 0"""
        code, text, log, file, rows = self.run_with(words=("--rows", "mixed, one stream*/1f1b, 4 parts*"), fails="precision=mixed", how=how)
        self.assertEqual(code, 0, text + log)
        facts = file["facts"]
        self.assertEqual(facts["mixed, one stream, repeated"], {"runs": 3, "min_ms": 100, "median_ms": 200, "max_ms": 300})
        self.assertEqual(facts["1f1b, 4 parts, repeated"]["runs"], 3)
        self.assertIn("mixed, one stream, repeated: runs 3, min_ms 100, median_ms 200, max_ms 300", text)

    def test_our_time_over_that_of_pytorch(self):
        line = '{"torch": "9.9", "precision": "bf16", "how": "one stream", "seconds": 0.25}'
        other = line.replace("one stream", "one stream, CUDA graph").replace("0.25", "null")
        fast = line.replace("one stream", "one stream, compiled (max-autotune)").replace("0.25", "0.125")
        torch = f"import sys\nprint(sys.argv, file=open({str(self.place / 'asked')!r}, 'w'))\n"
        torch += "".join(f"print('{x}')\n" for x in (line, other, fast)) + "sys.exit(0)"
        code, text, _, file, rows = self.run_with(torch=torch, words=("--rows", "mixed, one stream/PyTorch"))
        self.assertEqual(code, 0, text)
        self.assertEqual(file["facts"]["ours_over_pytorch"], {"bf16, one stream": 2, "bf16, one stream, compiled (max-autotune)": 4})
        self.assertEqual((rows["PyTorch, bf16, one stream, CUDA graph"]["result"], rows["PyTorch"]["version"]), ("not run", "9.9"))
        self.assertIn("'--precisions', 'bf16', '--ways', 'eager', 'compiled'", (self.place / "asked").read_text())
        # What was measured before it came to an end is kept.
        torch = f"import os\nprint('{line}', flush=True)\nos.abort()"
        _, _, _, file, rows = self.run_with(torch=torch, words=("--rows", "mixed, one stream/PyTorch"))
        self.assertEqual((rows["PyTorch"]["result"], rows["PyTorch, bf16, one stream"]["ours_over_theirs"]), ("exit -6", 2))
        # Alone it has nothing to be compared with.
        code, text, _, file, rows = self.run_with(torch=f"print('{line}')\nimport sys\nsys.exit(0)", words=("--rows", "PyTorch"))
        self.assertEqual((code, rows["PyTorch, bf16, one stream"]["why"]),
                         (0, "no ratio: mixed, one stream was not measured in this call"))
        self.assertNotIn("ours_over_pytorch", file["facts"])

    def test_what_needs_a_profile_runs_in_its_call_and_after_it(self):
        import gpu_plan as g
        names = list(g.PLAN)
        for name, row in g.PLAN.items():
            if row.run is g.validated:
                (maker,) = [n for n, other in g.PLAN.items() if other.run is g.profile and other.arguments[0] == row.arguments[0]
                            and other.arguments[1:] == row.arguments[2:]]
                self.assertEqual(g.PLAN[maker].call, row.call, name)
                self.assertLess(names.index(maker), names.index(name))

    def test_output_that_is_cut_marks_its_row(self):
        how = "head -c 9000000 /dev/zero | tr '\\0' x; exit 0"
        _, text, *_, rows = self.run_with(words=("--rows", "kernels/losses, fp32*"), fails="kernels_on_gpu", how=how)
        self.assertEqual((rows["kernels"]["result"], rows["kernels"]["cut"]), ("ok", "its output is cut after 8 MiB"))
        self.assertIn("its output is cut after 8 MiB", text)
        self.assertNotIn("cut", rows["losses, fp32 on cuda"])
        how = """echo '{"learnt": {"losses": [3.0, 4.0], "weights_sha256": "00"}}'; """ + how
        row = self.expect_only("losses, fp32 on cuda", "unreadable", fails="backend cuda*precision=fp32", how=how, rows="losses, fp32*")
        self.assertIn("cut", row)
        self.add_tools()  # Lines that were read are no answer where there were more.
        lines = f'cat "{root}/tests/tools/gpu_reports/sass.txt"; yes "LDG.E R0, [R2.64] ;" | head -c 9000000'
        self.add_program(self.place / "tools/cuobjdump", f"#!/bin/sh\n{lines}\n")
        self.expect_only("sass", "output cut", rows="sass")

    def test_what_fails_costs_its_row_and_the_exit_code(self):
        self.assertIn("broken", self.expect_only("runs", "exit 1", fails="run_on_gpu*exclude")["output"])
        self.expect_only("kernels", "exit 77", fails="kernels_on_gpu", how="exit 77")
        self.expect_only("runs", "exit -11", fails="run_on_gpu*exclude", how="kill -11 $$")
        self.expect_only("graphs", "unreadable", fails="graph:", how="head -c 100000 /dev/urandom; exit 0")
        self.expect_only("gpipe, 2 parts", "unreadable", fails="parts=2*schedule=gpipe", how="exit 0")
        self.expect_only("exact, one stream", "unreadable", fails="precision=exact",
                         how="echo '{\"period_s\": \"x\"}'; exit 0")

    def test_a_profile_that_fails_leaves_validations_to_measure_themselves(self):
        self.expect_only("profile, 8 parts", "exit 4", rows="*4 parts/*8 parts", fails="profile*parts=8", how="exit 4")
        notes = self.notes()
        self.assertFalse([n for n in notes if "validate" in n and "parts=8" in n and "--set profile=" in n])
        self.assertTrue([n for n in notes if "validate" in n and "parts=4" in n and "--set profile=" in n])

    def test_a_program_that_is_missing_costs_its_row(self):
        (self.place / "backends_cuda_kernels_on_gpu").unlink()
        self.assertIn("No such file", self.expect_only("kernels", "exit 127")["output"])

    def test_other_losses_and_other_weights(self):
        text = json.dumps({"learnt": {"losses": [3.0, 4.1], "weights_sha256": "00"}})
        self.expect_only("losses, fp32 on cuda", "other losses", fails="teacher*backend cuda*precision=fp32", rows="losses*/whole*",
                         how=f"echo '{text}'; exit 0")
        text = json.dumps({"learnt": {"losses": [3.0, 4.0], "weights_sha256": "01"}})
        self.expect_only("whole numbers on cuda", "other weights", fails="teacher*backend cuda*integers", rows="losses*/whole*",
                         how=f"echo '{text}'; exit 0")

    def test_losses_without_the_cpu_are_not_compared(self):
        code, text, *_, rows = self.run_with(words=("--rows", "losses, fp32 on cuda/whole numbers on cuda"), fails="teacher*backend cpu",
                                             how="exit 4")
        on_cuda = {name: (row["result"], row["why"]) for name, row in rows.items() if name.endswith(" on cuda")}
        self.assertEqual(on_cuda, {f"{what} on cuda": ("not compared", f"{what} on cpu has no losses") for what in ("losses, fp32", "whole numbers")})
        self.assertEqual(code, 1)
        self.assertIn("whole numbers on cpu has no losses", text)

    def test_a_row_on_the_gpu_comes_with_its_row_on_the_cpu(self):
        code, text, log, _, rows = self.run_with(words=("--rows", "losses, fp32 on cuda"))
        self.assertEqual((code, list(rows)), (0, ["losses, fp32 on cpu", "losses, fp32 on cuda"]), text + log)

    def test_what_a_first_look_saw_is_kept_where_it_did_not_get_through(self):
        seen = {"eager_us": 3.0, "in_graph_us": 2.0}
        for later, result in (("echo '}'; exit 1", "exit 1"), ("kill -9 $$", "exit -9")):
            row = self.expect_only("first look", result, later=later)
            self.assertEqual(row["facts"]["gaps"], {"one_stream": seen})
        self.expect_only("first look", "events do not hold", later="echo ', \"events\": {\"a\": false}'")
        for what in ("sum_is_the_same_on_all", "sum_repeats_its_bits"):
            self.expect_only("first look", "sums differ", later=f"echo ', \"several_gpus\": {{\"{what}\": false}}'")
        self.expect_only("first look", "sums differ",
                         later="echo ', \"several_gpus\": {\"sum_is_the_same_on_all\": true, \"sum_repeats_its_bits\": null}'")
        for disjoint, used in ((False, 8), (True, 4)):
            carving = json.dumps([{"launched": {"disjoint": disjoint, "partitions": [{"granted": 8, "used": used}]}}])
            self.expect_only("first look", "parts are not apart", later=f"echo ', \"carving\": '; echo '{carving}'")

    def test_a_late_row_keeps_its_time_and_rows_at_the_end_are_left_out(self):
        check = load("gpu_check").Check(self.place, self.out, self.out, "a", "b", False, {}, 40, 100.0)

        def time_for(seconds, to_come, elapsed):
            check.to_come = to_come
            with unittest.mock.patch("gpu_rows.time.monotonic", return_value=100.0 + elapsed):
                return check.time_for(seconds)

        self.assertEqual(time_for(10, {"b": 20, "c": 5}, 0), 15)  # Its 10 and the 5 that are spare.
        self.assertEqual(time_for(5, {}, 0), 15)  # At most 3 times its own.
        self.assertEqual(time_for(20, {"c": 5}, 15), 20)
        self.assertEqual(time_for(10, {"c": 5, "d": 10, "e": 1}, 15), 10)  # 25 are left, so e has no time, and d none to give away.
        self.assertEqual(time_for(30, {}, 15), 0)

    def test_each_call_fits_its_time_and_the_smoke_test_25_seconds(self):
        g = load("gpu_check")
        for call, calls in g.CALLS.items():
            self.assertLessEqual(sum(row.seconds for row in g.PLAN.values() if row.call in calls), g.LIMIT, call)
            self.assertLessEqual(g.LIMIT, 330)
            done = subprocess.run([sys.executable, str(root / "tools/gpu_check"), call, "--list"], capture_output=True, text=True)
            rows = [name for name, row in g.PLAN.items() if row.call in calls]
            self.assertEqual([line.split(" s  ")[1] for line in done.stdout.splitlines()], [*rows, "expected for all"])
            seconds = sum(g.PLAN[name].seconds for name in rows)
            self.assertEqual(int(done.stdout.splitlines()[-1].split()[0]), seconds)
            self.assertRegex((root / "backends/cuda/README.md").read_text(), rf"(?m)^\| `\./check {call}` .*\| {seconds} \|$")
        self.assertLessEqual(sum(row.seconds for row in g.PLAN.values() if row.call == "smoke"), 25)
        self.assertEqual({row.call for row in g.PLAN.values()}, {call for calls in g.CALLS.values() for call in calls})

    def test_what_is_emulated_says_so_everywhere(self):
        self.add_tools()
        code, text, log, file, rows = self.run_with(words=("--dry-run", "second", "--rows", "PyTorch/ncu/sass"), GPU="Emulated GPU",
                                                    torch="raise SystemExit(3)")
        self.assertEqual(code, 0, text + log)
        lines = text.splitlines()
        self.assertEqual([line.split(" s  ")[1] for line in lines[:len(rows)]], list(rows))  # The rows that are expected.
        self.assertFalse([n for n in self.notes() if "/tools/" in n])
        self.assertTrue(all(row["emulated"] for row in file["checks"]))
        self.assertEqual({rows[name]["result"] for name in ("PyTorch", "ncu", "sass", "memcheck")}, {"not here"})
        parts = [n for n in self.notes() if "carved-gpu" in n]
        self.assertTrue(parts and all(n.endswith("on GPU any of 1") for n in parts))
        self.assertTrue(file["emulated"])
        self.assertIn("no time here means anything", file["warning"])
        device = lines.index("Emulated GPU")
        self.assertEqual((file["device"], lines[device + 1]), ("Emulated GPU", "  clocks before: an emulated GPU has no clocks"))
        for line in lines[device + 2:device + 2 + len(rows)]:
            self.assertTrue(line.endswith("EMULATED"), line)
        for file in (self.out.parent / "validated").iterdir():
            self.assertTrue(file.name.startswith("emulated-gpu-"))
            one = json.loads(file.read_text())
            self.assertEqual((one["device"], "EMULATED" in one["emulated"]), ("Emulated GPU", True))

    def test_one_file_has_all_that_is_worth_keeping(self):
        self.add_tools()
        self.out = self.place / "out/first.json"
        code, text, log, file, _ = self.run_with(words=("first",), OUT=str(self.place))
        self.assertEqual(code, 0, text + log)
        archive = self.place / "first.tar"  # In $OUT; what takes more files is beside the table.
        self.assertFalse((self.out.parent / "first.tar").exists())
        with tarfile.open(archive) as tar:
            names = tar.getnames()
            self.assertEqual(json.load(tar.extractfile("first.json")), file)
        self.assertEqual(sorted(n.split("/")[0] for n in names), ["first.json", "nvidia-smi-after.txt", "nvidia-smi-before.txt",
                                                                  "profiles"] + 6 * ["validated"])
        self.assertIn("first.tar", text.splitlines()[-1])
        done = subprocess.run([sys.executable, str(root / "tools/gpu_file"), "--root", str(self.place), str(archive)],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        filed = sorted(str(p.relative_to(self.place)) for kind in ("models", "scenarios") for p in (self.place / kind).rglob("*.*"))
        self.assertEqual(len(filed), 1 + 6 + 1)
        self.assertIn("scenarios/validated/stand-in-first.json", filed)

    def test_what_an_earlier_call_left_is_not_taken_for_a_result(self):
        for _ in range(2):  # The second time, files of the first are there.
            code, text, *_ = self.run_with(words=("--rows", "profile, 2 parts/gpipe, 2 parts"), fails=" validate ", how="exit 1")
            self.assertEqual(code, 1)
            with tarfile.open(self.out.with_suffix(".tar")) as tar:
                self.assertEqual(sorted(tar.getnames()), ["check.json", "profiles/stand-in-2-parts.yaml"])
            (self.out.parent / "validated").mkdir(exist_ok=True)
            (self.out.parent / "validated/stand-in-gpipe-2-parts.json").write_text("{}")

    def test_rows_that_were_asked_for(self):
        code, text, log, file, rows = self.run_with(words=("--rows", "kernels/*, 2 parts"))
        self.assertEqual(code, 0, text + log)
        self.assertEqual(list(rows), ["kernels", "profile, 2 parts", "1f1b, 2 parts", "gpipe, 2 parts"])
        self.assertFalse([n for n in self.notes() if "first_run" in n or "cluster.parts=4" in n])
        done = subprocess.run([sys.executable, str(root / "tools/gpu_check"), "second", "--rows", "runs", "--list"],
                              capture_output=True, text=True)
        self.assertEqual([line.split(" s  ")[1] for line in done.stdout.splitlines()[:2]], ["runs", "ncu"])
        code, _, log, *_ = self.run_with(words=("--rows", "nothing"))
        self.assertEqual(code, 1)
        self.assertIn("no row is like nothing", log)

    def test_the_shapes_have_the_work_that_is_said_of_them(self):
        import gpu_plan as g
        for name, tera in (("large", 5.8), ("big", 46)):  # Tera operations in an iteration.
            self.assertAlmostEqual(g.flops(g.SHAPES[name]) / 1e12, tera, delta=0.03 * tera)

    def test_a_gpu_that_is_not_divided_runs_its_other_rows(self):
        doctor = "echo '           GPU 0: NVIDIA Stand-in, 1 GiB, 132 multiprocessors not divided: the driver has no cuGreenCtxCreate'; exit 0"
        code, text, _, file, rows = self.run_with(fails=" doctor ", how=doctor)
        self.assertEqual((code, file["not_divided"]), (1, "the driver has no cuGreenCtxCreate"))
        self.assertIn("run, 4 parts ", text)
        self.assertEqual({r["result"] for n, r in rows.items() if " parts" in n}, {"skipped"})
        self.assertEqual({r["result"] for n, r in rows.items() if " parts" not in n}, {"ok", "not here"})

    def test_without_a_loopback_interface_nothing_that_needs_it_starts(self):
        import gpu_plan
        with unittest.mock.patch.object(gpu_plan.socket, "create_server", side_effect=OSError), \
             unittest.mock.patch.object(gpu_plan.subprocess, "run") as run, unittest.mock.patch.dict(os.environ):
            check = load("gpu_check").Check(self.place, self.out, self.out, "a", "b", False,
                                            {"runs": 1, "runs, NCCL": 1, "1f1b, 4 parts, NCCL": 1}, 10, time.monotonic())
            gpu_plan.prepare_nccl(check)
            self.assertEqual(run.call_args.args[0], ["ip", "link", "set", "lo", "up"])
        self.assertEqual(list(check.to_come), ["runs"])
        self.assertEqual({row["result"] for row in check.rows}, {"skipped"})
        self.assertFalse(check.head["loopback"])

    def test_what_cannot_be(self):
        code, text, log, *_ = self.run_with(words=("--dry-run",))
        self.assertEqual((code, text), (2, ""))
        self.assertIn("sees NVIDIA Stand-in", log)
        self.out = root / "models/profiles/check.json"
        code, _, log, file, _ = self.run_with()
        self.assertEqual((code, file), (2, None))
        self.assertIn("tools/gpu_file", log)
        self.out = self.place / "out/check.json"
        code, text, *_ = self.run_with(fails=" doctor ", how="echo '  cuda     there is no driver here'; exit 0")
        self.assertEqual(code, 77)
        self.assertIn("--dry-run", text)
        code, _, log, *_ = self.run_with(fails=" doctor ")
        self.assertEqual(code, 1)
        self.assertIn("broken\n\ngpu_check: stagecraft doctor ended with 1", log)
        done = subprocess.run([str(root / "tools/gpu_check"), "--bin", "/nowhere"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.splitlines()),
                         (1, ["gpu_check: [Errno 2] No such file or directory: '/nowhere/stagecraft'"]))


class Smoke(StandIns):
    """The beginning of the first call, which must succeed."""
    def test_its_first_failure_stops_everything_after_one_rerun_that_waits_for_each_call(self):
        how = 'for i in $(seq 40); do echo "line $i of ${STAGECRAFT_CUDA_SYNC:-none}"; done; exit 4'
        code, text, _, file, rows = self.run_with(words=("first",), fails="run examples/carved-gpu", how=how)
        self.assertEqual(code, 1)
        self.assertEqual({name: row["result"] for name, row in rows.items()},
                         {"losses, fp64 on cpu": "ok", "losses, fp64 on cuda": "ok", "run, 4 parts": "exit 4"})
        lines = text.splitlines()
        for sync in ("none", "1"):  # The last 30 lines, and of the run that waits for each call its own.
            self.assertNotIn(f"line 10 of {sync}", lines)
            self.assertEqual([f"line {i} of {sync}" in lines for i in (11, 40)], [True, True])
        self.assertEqual(rows["run, 4 parts"]["synchronous"], {"exit": 4, "output": [f"line {i} of 1" for i in range(11, 41)]})
        self.assertIn("again with STAGECRAFT_CUDA_SYNC=1: exit 4", lines)
        self.assertEqual(file["not_run"][:2], ["run, mixed", "first look"])
        self.assertTrue([line for line in lines if line.startswith("the smoke test failed") and "first look" in line])
        self.assertEqual([("carved-gpu" in n, "first_run" in n) for n in self.notes()[-2:]], [(True, False), (True, False)])
        with tarfile.open(self.out.with_suffix(".tar")) as tar:
            self.assertEqual(json.load(tar.extractfile("check.json")), file)

    def test_other_losses_stop_it_too(self):
        text = json.dumps({"learnt": {"losses": [3.0, 4.0001], "weights_sha256": "00"}})
        code, text, _, _, rows = self.run_with(words=("first",), fails="teacher*backend cuda", how=f"echo '{text}'; exit 0")
        self.assertEqual((code, list(rows)), (1, ["losses, fp64 on cpu", "losses, fp64 on cuda"]))
        self.assertEqual(rows["losses, fp64 on cuda"]["result"], "other losses")
        self.assertIn("again with STAGECRAFT_CUDA_SYNC=1: exit 0", text)


class Tools(StandIns):
    """Output of tools of the driver and of the toolkit, from files in gpu_reports that were written by hand in their formats."""
    def setUp(self):
        super().setUp()
        self.add_tools()

    def test_clocks_power_and_what_limits_them(self):
        import gpu_reports
        texts = {n: (root / f"tests/tools/gpu_reports/nvidia-smi-{n}.txt").read_text() for n in ("570", "525")}
        self.assertEqual(gpu_reports.clocks(texts["570"]), {
            "sm_mhz": 1755, "largest_sm_mhz": 1980, "power_w": 693.42, "power_limit_w": 700, "limited_by": ["SW Power Cap"],
            "limited_us": {"SW Power Capping": 2500000, "Sync Boost": 0, "SW Thermal Slowdown": 0, "HW Thermal Slowdown": 0, "HW Power Braking": 0}})
        self.assertEqual(gpu_reports.clocks(texts["525"]), {
            "sm_mhz": 345, "largest_sm_mhz": 1980, "power_w": 71.5, "power_limit_w": 700, "limited_by": ["HW Slowdown", "HW Thermal Slowdown"]})
        with self.assertRaises(ValueError):
            gpu_reports.clocks("No devices were found\n")

    def test_the_table_says_when_the_clock_was_limited(self):
        code, text, log, file, rows = self.run_with(words=("--rows", "kernels"))
        self.assertEqual(code, 0, text + log)
        self.assertEqual([file[when]["sm_mhz"] for when in ("clocks_before", "clocks_after")], [1755, 1755])
        self.assertIn("  clocks before: SM 1755 of 1980 MHz, 693 of 700 W", text.splitlines())
        self.assertIn("  clocks were limited: before (SW Power Cap); after (SW Power Cap)", text.splitlines())
        text = self.run_with(words=("--rows", "kernels"), SMI="nvidia-smi-idle.txt")[1]
        self.assertIn("  no throttle reason was active at any look", text.splitlines())
        text = self.run_with(words=("--rows", "kernels"), SMI="sass.txt")[1]
        self.assertIn("are not known: nvidia-smi: it has no SM clock", text)

    def test_clocks_are_looked_at_while_a_row_runs(self):
        """The row ends when it has been looked at."""
        how = 'while [ "$(grep -c nvidia-smi "$NOTES")" -lt 3 ]; do sleep 0.1; done; exit 0'
        code, text, _, _, rows = self.run_with(words=("--rows", "kernels"), fails="kernels_on_gpu", how=how)
        self.assertEqual(rows["kernels"]["clocks"], {"sm_mhz": [1755, 1755], "limited_by": ["SW Power Cap"], "most_power_w": 693.42})
        self.assertIn("before (SW Power Cap); after (SW Power Cap); kernels (SW Power Cap)", text)

    def test_times_of_kernels(self):
        code, text, log, _, rows = self.run_with(words=("--rows", "ncu"))
        self.assertEqual(code, 0, text + log)
        table = rows["ncu"]["kernel_times"]
        self.assertEqual([(k["kernel"].split("(")[0], k["launches"]) for k in table],
                         [("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", 2), ("void each_kernel<__nv_bfloat16, int>", 1)])
        # 1,000.5 us at 40 % and 2 ms at 70 %.
        self.assertAlmostEqual(table[0]["us"], 3000.5)
        self.assertAlmostEqual(table[0]["memory_percent"], (1000.5 * 40 + 2000 * 70) / 3000.5)
        self.assertAlmostEqual(table[0]["compute_percent"], 90)
        self.assertEqual((table[1]["us"], table[1]["memory_percent"], table[1]["compute_percent"]), (0.5, 88.25, 12))
        self.assertRegex(text, r"3000\.5 us +2 x +memory +60 % +computation +90 % +nvjet")
        asked = next(n for n in self.notes() if "/ncu " in n)
        for words in ("--clock-control none --section SpeedOfLight --csv", "--nvtx-include F3 of stage 0/ --nvtx-include B3 of stage 0/",
                      "model.hidden=2048", "model.precision=mixed"):
            self.assertIn(words, asked)
        self.assertNotIn("why", rows["ncu"])
        import gpu_plan
        with unittest.mock.patch.object(gpu_plan, "LAUNCHES", 3):
            check = load("gpu_check").Check(self.place, self.out, self.out, "a", "b", False, {"ncu": 9}, 99, time.monotonic())
            def run(name, *_, read):
                check.add(name, "ok", **read(""))
            check.run = run
            with unittest.mock.patch.object(gpu_plan, "tool", return_value="ncu"), \
                 unittest.mock.patch.object(check, "keep", return_value=root / "tests/tools/gpu_reports/ncu.csv"):
                gpu_plan.kernels_of_mixed(check, "ncu")
        self.assertEqual(check.row("ncu")["why"], "cut at 3 launches")
        for ncu, result, why in (("ncu-refused.txt", "not here", "ERR_NVGPUCTRPERM"), ("ncu-nothing.txt", "no kernels", "")):
            *_, rows = self.run_with(words=("--rows", "ncu"), NCU=ncu)
            self.assertEqual(rows["ncu"]["result"], result)
            self.assertIn(why, rows["ncu"].get("why", ""))

    def test_widths_of_accesses_and_doubles(self):
        code, text, log, _, rows = self.run_with(words=("--rows", "sass"))
        self.assertEqual(code, 0, text + log)
        kernels = rows["sass"]["kernels"]
        self.assertEqual(sorted(k[:20] for k in kernels), ["_Z11copy_kernelI13__", "_Z11copy_kernelIdEvP", "_Z20cross_entropy_ke"])
        self.assertEqual(kernels["_Z11copy_kernelI13__nv_bfloat16EvPKT_PS1_"], {"loads": {"128": 2, "16": 1}, "stores": {"128": 1}, "fp64": 0})
        self.assertIn("1 of 3 kernels access 128 bits at once", text)
        *_, rows = self.run_with(words=("--rows", "sass"), SASS="sass-doubles.txt")
        self.assertEqual((rows["sass"]["result"], rows["sass"]["why"]), ("fp64", "doubles in _Z10add_kernelIfEvPKT_PS0_"))
        *_, rows = self.run_with(words=("--rows", "sass"), SASS="ncu-nothing.txt")
        self.assertEqual(rows["sass"]["result"], "exit 1")  # That of grep, which finds no line.

    def test_kernels_run_under_each_tool_of_compute_sanitizer(self):
        code, text, log, _, _ = self.run_with(words=("--rows", "*check"))
        self.assertEqual(code, 0, text + log)
        asked = [n.split("compute-sanitizer ")[1] for n in self.notes() if "/compute-sanitizer " in n]
        self.assertEqual([n.split(f"{self.place}")[0] for n in asked],
                         ["--tool memcheck --report-api-errors no --error-exitcode 9 ", "--tool racecheck --error-exitcode 9 ",
                          "--tool initcheck --error-exitcode 9 "])

    def test_what_rows_name_in_the_sources_is_there(self):
        """A filter of tests that matches none passes, and so do names of kernels and ranges."""
        import gpu_plan

        def sources(pattern):
            return "".join(file.read_text() for file in root.glob(pattern))

        cases = re.findall(r'TEST_CASE\("([^"]*)"', sources("tests/backends/cuda/kernels/*.cpp"))
        for _, case in gpu_plan.SANITIZERS.values():
            self.assertEqual(sum(fnmatch.fnmatchcase(name, case.removeprefix("--test-case=")) for name in cases), 1, case)
        runs = re.findall(r'TEST_CASE\("([^"]*)"', sources("tests/backends/cuda/run/device_test.cpp"))
        self.assertEqual({"NCCL" in name for name in runs}, {True, False})
        for kernel in gpu_plan.FP64_ON_PURPOSE:
            self.assertIn(kernel, sources("backends/cuda/kernels/*.cu"))
        self.assertIn('"{}{} of stage {}"', sources("backends/cuda/enqueue.cpp"))


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
