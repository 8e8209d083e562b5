"""What the tests of tools/gpu_* share: programs and PyTorch as stand-ins that note what they are asked for. Tests with them say what
would be run and how results are read, and nothing of speed."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

root = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(root / "tests/support"), str(root / "tools")]
from processes import HUNG, never_signaled  # noqa: E402


def gpu_check_with(**seconds):
    """Words that start gpu_check with these seconds for rows, and for all others more than any machine takes."""
    script = (f"import sys; sys.argv[0] = 'gpu_check'; sys.path.insert(0, {str(root / 'tests/tools/gpu_tools')!r})\n"
              f"import stand_ins; g = stand_ins.load('gpu_check')\n"
              f"g.PLAN.update({{name: row._replace(seconds={seconds}.get(name, {HUNG})) for name, row in g.PLAN.items()}})\nsys.exit(g.main())")
    return [sys.executable, "-B", "-c", script, "--limit", str(1000 * HUNG)]


NO_TORCH = "raise ImportError('not here')\n"

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
