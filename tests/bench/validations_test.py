#!/usr/bin/env python3
"""tests/bench/validations.py with a stand-in for `stagecraft validate`, so nothing is timed here."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("validations.py")

STAND_IN = """#!/usr/bin/env python3
import json, os, pathlib, sys
place, words = pathlib.Path(__file__).parent, " ".join(sys.argv)
if "plan.stages=8" in words:
    sys.exit(print("error: too many threads", file=sys.stderr) or 2)
count = place / "count"
n = len(count.read_text()) if count.exists() else 0
count.write_text("x" * (n + 1))
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir(parents=True)
out.joinpath("validation.json").write_text(json.dumps({
    "iteration_s": {"error": [0.01, -0.2, 0.03][n]}, "sure": n > 0, "instructions_s": [{"name": "U", "error": 0.5}],
    "model_error": {"median": [0.004, -0.002, 0.001][n], "worst": [0.02, -0.03, 0.01][n]}}))
"""


class Validations(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tool = pathlib.Path(folder.name, "stagecraft")
        self.tool.write_text(STAND_IN)
        self.tool.chmod(0o755)

    def run_with(self, *words):
        done = subprocess.run([sys.executable, SCRIPT, self.tool, *words], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def test_wrong_words_name_the_right_ones(self):
        for words, message in ((("1", "nothing"), "no case 'nothing'; there are transformer, mlp, dag, tensor, stages4, stages8"),
                               (("1", "mlp,"), "no case ''"), (("x",), "invalid int value: 'x'"), (("0",), "at least one repetition")):
            code, out, err = self.run_with(*words)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(message, err)
            self.assertNotIn("Traceback", err)

    def test_median_worst_and_sure(self):
        code, out, err = self.run_with("3", "mlp")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("median +1.0 %, worst -20.0 %, model median +0.1 %, worst -3.0 %, U +50.0 %  2 of 3 sure", out)

    def test_a_refusal_says_why(self):
        code, out, _ = self.run_with("2", "stages8")
        self.assertEqual(code, 0)
        self.assertIn("refused: error: too many threads", out)


if __name__ == "__main__":
    unittest.main()
