#!/usr/bin/env python3
"""tools/gpu_check and tools/gpu_torch where there is no GPU: gpu_tools.py. Programs and PyTorch are stand-ins that note what they
are asked for, so this says what would be run and how results are read, and nothing of speed."""
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock

root = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(root / "tests/support"))
from processes import HUNG, never_signaled, stat, wait_until, with_words  # noqa: E402

HANGS = "sleep 1000000"


def gpu_check_with(**seconds):
    """Words that start gpu_check with these seconds for rows, and for all others more than any machine takes."""
    script = (f"import sys; sys.argv[0] = 'gpu_check'; sys.path.insert(0, {str(root / 'tests/tools')!r})\n"
              f"import gpu_tools; g = gpu_tools.load('gpu_check')\n"
              f"g.PLAN.update({{name: {HUNG} for name in g.PLAN}}, **{seconds})\nsys.exit(g.main())")
    return [sys.executable, "-B", "-c", script, "--limit", str(1000 * HUNG)]


UNLIMITED = gpu_check_with()

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
  *" doctor "*) echo "           CUDA 13.0, driver for 13.0"; echo "           GPU 0: ${GPU:-NVIDIA Stand-in}, 1 GiB" ;;
  *" --version "*) echo 'stagecraft 1.2.3 (abcdef0)' ;;
  *" run "*) echo '{"period_s": 0.5, "learnt": {"losses": [3.0, 4.0], "weights_sha256": "00"},'
    echo '"enqueued": {"by_calls_s": 0.25, "by_graph_s": 0.125, "graph_launches": 5}}'
    folder=$(out "$@"); [ -z "$folder" ] || { mkdir -p "$folder"; echo "$SPANS" >"$folder/spans.csv"; } ;;
  *" profile "*) printf 'schema: profile/1\\noperation: 1.5 us\\nmachine: "%s"\\ndate: "%s"\\n' "$MACHINE" "$(date -u +%F)" >"$(out "$@")" ;;
  *" validate "*) mkdir -p "$(out "$@")"
    echo '{"schema": "validation/1", "title": "a", "iteration_s": {"simulated": 1.1, "measured": 1.0, "error": 0.1},' \
      '"measured": {"backend": "cuda", "clock": "device", "machine": "'"$MACHINE"'"}}' >"$(out "$@")/validation.json" ;;
  *first_run*) echo '{"events": {"a": true}, "gaps": {"one_stream": {"eager_us": 3.0, "in_graph_us": 2.0}}, "ceilings":'
    echo '[{"precision": "bf16", "best_flops_per_s": 1e13}, {"precision": "stored_bf16", "best_flops_per_s": 4e13}]'; eval "$LATER"
    echo '}' ;;
esac
"""

SPANS = """kind,start_ns,end_ns
forward,0,1000
message,900,1500
backward,3000,4000
forward,9000,9500
backward,11500,12000"""


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
                         [("0.0", p, h) for h in ("one stream", "one stream, CUDA graph", "pipelining, 1 process",
                                                  "one stream, compiled") for p in ("exact", "tf32", "bf16")])
        for row in rows[:3]:
            self.assertGreater(row["seconds"], 0)
        for first, what in ((3, "CUDA graphs are"), (6, "pipelining is"), (9, "compiled models are")):
            for row in rows[first:first + 3]:
                self.assertEqual(row["why_not"], f"RuntimeError: {what} measured on GPUs only")
        iterations = 3 * (4 + 2)  # Of three precisions, two more than count.
        self.assertEqual((seen["backward"], seen["steps"]), (3 * iterations, iterations))
        self.assertEqual(seen["products"][::6], ["highest", "high", "highest"])  # Once in an iteration.
        self.assertEqual(seen["rounded"][::6], [False, False, True])
        one = [[8, 32]] + 2 * [[8, 24], [8, 8], [8, 32], [32, 8]]  # The head is made first.
        self.assertEqual(seen["linear"], 3 * one)


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
        files = {"check.json": json.dumps({**self.HEAD, **(head or {})}),
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
        self.assertEqual(sorted(written), ["models/profiles/h0-4-parts.yaml", "scenarios/validated/h0-check.json",
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
                for name, one in (("check.json", self.HEAD), ("validated/h0-gpipe-4-parts.json", self.RUN)):
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
        for name in load("gpu_check").PROGRAMS:
            (self.place / name).write_text(PROGRAM)
            (self.place / name).chmod(0o755)

    def tearDown(self):
        self.folder.cleanup()

    def start(self, torch=NO_TORCH, fails="none", how="echo broken; exit 1", later="", runs=HUNG, words=(), **more):
        """Starts gpu_check with `runs` seconds for the runs."""
        (self.place / "torch.py").write_text(torch)
        return subprocess.Popen([*gpu_check_with(runs=runs), "--bin", str(self.place), "--out", str(self.out), *words],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=never_signaled,
                                env={**os.environ, "PYTHONPATH": str(self.place), "NOTES": str(self.place / "notes"), "FAILS": fails,
                                     "HOW": how, "LATER": later, "SPANS": SPANS, "CUDA_VISIBLE_DEVICES": "", "STAGECRAFT_EMULATED_GPUS": "",
                                     "MACHINE": "4 partitions of 32 of the 132 multiprocessors of NVIDIA Stand-in", **more,
                                     "PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin"})

    def run_with(self, **how):
        with self.start(**how) as one:
            one.text = one.communicate(timeout=HUNG)
        file = json.loads(self.out.read_text()) if self.out.exists() else None
        return one.returncode, *one.text, file, {row["check"]: row for row in file["checks"]} if file else {}

    def expect_only(self, name, result, rows=None, **how):
        """One row fails in this way, and no other of `rows`, or of some rows of each kind. That all rows can pass is shown in
        test_a_whole_run_ends_with_a_table_and_files."""
        some = rows or f"{name}/kernels/losses, fp64*/*2 parts/exact, one stream"
        code, text, _, _, rows = self.run_with(words=("--rows", some), **how)
        self.assertEqual(code, 1)
        self.assertEqual({n: r["result"] for n, r in rows.items() if r["result"] not in ("ok", "not here")}, {name: result})
        self.assertIn(name, text)
        return rows[name]


class Check(StandIns):
    def test_a_whole_run_ends_with_a_table_and_files(self):
        code, text, log, file, rows = self.run_with()
        self.assertEqual(code, 0, text + log)
        lines = text.splitlines()
        self.assertEqual(lines[0], "NVIDIA Stand-in")
        self.assertEqual([line.split("  ")[1].strip() for line in lines[1:len(rows) + 1]], list(rows))
        self.assertEqual((file["device"], file["commit"], "emulated" in file), ("NVIDIA Stand-in", "1.2.3 (abcdef0)", False))
        self.assertRegex(file["date"], r"^20\d\d-\d\d-\d\d$")
        self.assertEqual(list(rows), list(load("gpu_check").PLAN))
        self.assertEqual(rows["PyTorch"]["result"], "not here")
        self.assertEqual(sum(name.startswith(("gpipe", "1f1b", "2bw", "graph,")) for name in rows), 13)
        self.assertEqual((file["shape"], file["loopback"]), ("large", True))
        self.assertIn("kernel", file)
        self.assertEqual((rows["2bw, 8 parts"]["simulated_ms"], rows["2bw, 8 parts"]["error"]), (1100, 0.1))
        self.assertEqual(rows["whole numbers on cuda"]["largest_difference"], 0)
        self.assertEqual(sorted(p.name for p in (self.out.parent / "profiles").iterdir()),
                         [f"stand-in-{n}.yaml" for n in ("2-parts", "4-parts-nccl", "4-parts", "8-parts")])
        one = json.loads((self.out.parent / "validated/stand-in-gpipe-2-parts.json").read_text())
        self.assertEqual({key: one[key] for key in ("schema", "device", "driver", "commit", "date")},
                         {"schema": "validation/1", "device": "NVIDIA Stand-in", "driver": file["driver"],
                          "commit": "1.2.3 (abcdef0)", "date": file["date"]})
        notes = (self.place / "notes").read_text()
        for words in ("cluster.parts=8", "run.gpu.precision=bf16", "run.gpu={timing: off, graph: true}", "run.gpu.messages=nccl"):
            self.assertIn(words, notes)
        for words in notes.splitlines():  # Where all GPUs were seen those rows would take whole ones.
            parts = "carved-gpu" in words
            self.assertTrue(words.endswith("on GPU 0" if parts else "on GPU any"), words)
        self.expect_figures(text, file)

    def test_rows_that_ran_on_whole_gpus_fail_and_leave_no_files(self):
        code, text, *_, rows = self.run_with(MACHINE="4 x Stand-in", CUDA_VISIBLE_DEVICES="3,5")
        self.assertEqual(code, 1)
        wrong = [name for name, row in rows.items() if row["result"] not in ("ok", "not here")]
        self.assertEqual(wrong, [name for name in rows if " parts" in name])
        self.assertEqual({(rows[name]["result"], rows[name]["why"]) for name in wrong}, {("not on parts", "it ran on 4 x Stand-in")})
        self.assertEqual([list((self.out.parent / kind).iterdir()) for kind in ("profiles", "validated")], [[], []])
        notes = (self.place / "notes").read_text().splitlines()
        self.assertEqual({n.split(" on GPU ")[1] for n in notes if "carved-gpu" in n}, {"3"})

    def expect_figures(self, text, file):
        # 3 * 64 samples * (16 layers * (24 * 256 * 512^2 + 4 * 256^2 * 512) + 2 * 256 * 512 * 8000 words) in 0.5 s, of 1e13.
        share = 3 * 64 * (16 * (24 * 256 * 512**2 + 4 * 256**2 * 512) + 2 * 256 * 512 * 8000) / 0.5 / 1e13
        self.assertAlmostEqual(file["facts"]["share_of_gemm_ceiling"]["bf16, one stream"], share)
        self.assertNotIn("exact, one stream", file["facts"]["share_of_gemm_ceiling"])  # Its ceiling was not measured.
        self.assertEqual(file["facts"]["bf16_over_stored_bf16"], 0.25)
        row = next(r for r in file["checks"] if r["check"] == "bf16, one stream")
        self.assertAlmostEqual(row["share_of_stored_bf16"], share / 4)
        self.assertEqual(file["facts"]["period_without_events_ms"], {"calls, no events": 500, "graphs": 500})
        self.assertEqual(file["facts"]["gap_between_ops_us"]["exact"], 2)  # The median of 2, 5 and 2.
        self.assertEqual((file["facts"]["launch_eager_us"], file["facts"]["launch_in_graph_us"]), (3, 2))
        self.assertEqual((file["facts"]["enqueue_calls_ms"], file["facts"]["enqueue_graph_ms"]), (250, 125))
        self.assertIn("gap 2 us", next(line for line in text.splitlines() if "exact, one stream" in line))

    def test_our_time_over_that_of_pytorch(self):
        line = '{"torch": "9.9", "precision": "tf32", "how": "one stream", "seconds": 0.25}'
        other = line.replace("one stream", "pipelining").replace("0.25", "null")
        graph = line.replace("one stream", "one stream, CUDA graph").replace("0.25", "0.125")
        torch = f"import sys\nprint('{line}')\nprint('{other}')\nprint('{graph}')\nsys.exit(0)"
        code, text, _, file, rows = self.run_with(torch=torch)
        self.assertEqual(code, 0, text)
        self.assertEqual(file["facts"]["ours_over_pytorch"], {"tf32, one stream": 2, "tf32, one stream, CUDA graph": 4})
        self.assertEqual((rows["PyTorch, tf32, pipelining"]["result"], rows["PyTorch"]["version"]), ("not run", "9.9"))
        # What was measured before it came to an end is kept.
        torch = f"import os\nprint('{line}', flush=True)\nos.abort()"
        _, _, _, file, rows = self.run_with(torch=torch)
        self.assertEqual((rows["PyTorch"]["result"], rows["PyTorch, tf32, one stream"]["ours_over_theirs"]), ("exit -6", 2))

    def test_what_fails_costs_its_row_and_the_exit_code(self):
        self.assertIn("broken", self.expect_only("runs", "exit 1", fails="run_on_gpu*exclude")["output"])
        self.expect_only("kernels", "exit 77", fails="kernels_on_gpu", how="exit 77")
        self.expect_only("runs", "exit -11", fails="run_on_gpu*exclude", how="kill -11 $$")
        self.expect_only("graphs", "unreadable", fails="graph:", how="head -c 100000 /dev/urandom; exit 0")
        self.expect_only("2bw, 2 parts", "unreadable", fails="parts=2*schedule=2bw", how="exit 0")
        self.expect_only("exact, one stream", "unreadable", fails="exact-1*precision=exact",
                         how="echo '{\"period_s\": \"x\"}'; exit 0")

    def test_a_profile_that_fails_leaves_validations_to_measure_themselves(self):
        self.expect_only("profile, 8 parts", "exit 4", rows="*4 parts/*8 parts", fails="profile*parts=8", how="exit 4")
        notes = (self.place / "notes").read_text().splitlines()
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

    def test_the_plan_fits_its_time_and_a_late_check_keeps_its_own(self):
        g = load("gpu_check")
        self.assertLessEqual(sum(g.PLAN.values()), g.LIMIT)
        check = g.Check(self.place, self.out, "a", "b", False, {"a": 10, "b": 20, "c": 5}, 40, {}, 1, 1)
        self.assertAlmostEqual(check.time_for("a"), 15, delta=1)  # Its 10 and the 5 that are spare; at most 3 times its own.
        check.begin -= 15
        self.assertAlmostEqual(check.time_for("b"), 20, delta=1)
        self.assertAlmostEqual(check.time_for("c"), 15, delta=1)

    def test_what_is_emulated_says_so_everywhere(self):
        code, text, log, file, rows = self.run_with(words=("--dry-run",), GPU="Emulated GPU",
                                                torch="raise SystemExit(3)")
        self.assertEqual(code, 0, text + log)
        self.assertTrue(all(row["emulated"] for row in file["checks"]))
        self.assertEqual(rows["PyTorch"]["result"], "not here")
        parts = [n for n in (self.place / "notes").read_text().splitlines() if "carved-gpu" in n]
        self.assertTrue(parts and all(n.endswith("on GPU any of 1") for n in parts))
        self.assertTrue(file["emulated"])
        self.assertIn("no time here means anything", file["warning"])
        self.assertEqual((file["device"], text.splitlines()[0]), ("Emulated GPU", "Emulated GPU"))
        for line in text.splitlines()[1:len(rows) + 1]:
            self.assertTrue(line.endswith("EMULATED"), line)
        for file in (self.out.parent / "validated").iterdir():
            self.assertTrue(file.name.startswith("emulated-gpu-"))
            one = json.loads(file.read_text())
            self.assertEqual((one["device"], "EMULATED" in one["emulated"]), ("Emulated GPU", True))

    def test_one_file_has_all_that_is_worth_keeping(self):
        code, text, log, file, _ = self.run_with()
        self.assertEqual(code, 0, text + log)
        with tarfile.open(self.out.with_suffix(".tar")) as tar:
            names = tar.getnames()
            self.assertEqual(json.load(tar.extractfile("check.json")), file)
        self.assertEqual(sorted(n.split("/")[0] for n in names), ["check.json"] + 4 * ["profiles"] + 13 * ["validated"])
        self.assertIn("check.tar", text.splitlines()[-1])
        done = subprocess.run([sys.executable, str(root / "tools/gpu_file"), "--root", str(self.place), str(self.out.with_suffix(".tar"))],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        filed = sorted(str(p.relative_to(self.place)) for kind in ("models", "scenarios") for p in (self.place / kind).rglob("*.*"))
        self.assertEqual(len(filed), 4 + 13 + 1)
        self.assertIn("scenarios/validated/stand-in-check.json", filed)

    def test_rows_that_were_asked_for(self):
        code, text, log, file, rows = self.run_with(words=("--rows", "kernels/*, 2 parts"))
        self.assertEqual(code, 0, text + log)
        self.assertEqual(list(rows), ["kernels", "profile, 2 parts", *(f"{s}, 2 parts" for s in ("gpipe", "1f1b", "2bw", "graph"))])
        notes = (self.place / "notes").read_text()
        self.assertNotIn("first_run", notes)
        self.assertNotIn("cluster.parts=4", notes)
        code, _, log, *_ = self.run_with(words=("--rows", "nothing"))
        self.assertEqual(code, 1)
        self.assertIn("no row is like nothing", log)

    def test_the_big_shape_has_rows_and_a_model_of_its_own(self):
        code, text, log, file, rows = self.run_with(words=("--shape", "big"))
        self.assertEqual(code, 0, text + log)
        self.assertEqual(list(rows), list(load("gpu_check").BIG_PLAN))
        self.assertEqual(file["shape"], "big")
        notes = [n for n in (self.place / "notes").read_text().splitlines() if "model.hidden" in n]
        self.assertTrue(notes and all("model.hidden=2048" in n and "run.micro_batches=8" in n for n in notes))
        parts = [n for n in notes if "carved-gpu" in n]
        self.assertTrue(parts and all("run.gpu.precision=tf32" in n for n in parts))

    def test_the_shapes_have_the_work_that_is_said_of_them(self):
        g = load("gpu_check")
        for name, tera in (("large", 5.8), ("big", 46)):  # Tera operations in an iteration.
            shape, samples, micro_batches = g.SHAPES[name]
            self.assertAlmostEqual(g.flops(shape, samples * micro_batches) / 1e12, tera, delta=0.03 * tera)

    def test_a_gpu_that_is_not_divided_runs_its_other_rows(self):
        doctor = "echo '           GPU 0: NVIDIA Stand-in, 1 GiB, 132 multiprocessors not divided: the driver has no cuGreenCtxCreate'; exit 0"
        code, _, _, file, rows = self.run_with(fails=" doctor ", how=doctor)
        self.assertEqual((code, file["not_divided"]), (1, "the driver has no cuGreenCtxCreate"))
        self.assertEqual({r["result"] for n, r in rows.items() if " parts" in n}, {"skipped"})
        self.assertEqual({r["result"] for n, r in rows.items() if " parts" not in n}, {"ok", "not here"})

    def test_without_a_loopback_interface_nothing_that_needs_it_starts(self):
        g = load("gpu_check")
        with unittest.mock.patch.object(g.socket, "create_server", side_effect=OSError), \
             unittest.mock.patch.object(g.subprocess, "run") as run, unittest.mock.patch.dict(os.environ):
            check = g.Check(self.place, self.out, "a", "b", False, {"runs": 1, "runs, NCCL": 1, "PyTorch": 1,
                                                                    "1f1b, 4 parts, NCCL": 1}, 10, {}, 1, 1)
            g.prepare_nccl(check)
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


class Interrupted(StandIns):
    """Programs that hang until they are ended, by a limit of time or with gpu_check itself."""
    def test_a_program_that_hangs_or_never_stops_printing_costs_its_row(self):
        for how in (HANGS, "exec cat /dev/urandom"):
            self.expect_only("runs", "over 1 s", fails="run_on_gpu*exclude", how=how, runs=0.4)

    def test_interrupted_it_says_what_it_knows(self):
        for how in (signal.SIGINT, signal.SIGTERM):  # The program sends it to gpu_check as soon as it runs.
            with self.start(fails="run_on_gpu*exclude", how=f"kill -{int(how)} $PPID; {HANGS}") as one:
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
