#!/usr/bin/env python3
"""The check of repositories, as a hook and as a step of a workflow: action.py STAGECRAFT."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECK = ROOT / "tools/action/check"
RIGHT = "schema: scenario/2\nmodel: gpt2-small\ncluster: two-node-mixed\nplan: {planner: balanced, stages: 2}\nrun: {schedule: 1f1b, micro_batches: 4}\n"
WRONG = RIGHT.replace("stages: 2", "stagse: 2")


class Check(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, **files):
        for name, text in files.items():
            (self.root / name.replace("_", ".")).write_text(text)
        subprocess.run(["git", "add", "."], cwd=self.root, check=True)

    def run_check(self, *words, program=PROGRAM):
        return subprocess.run([str(CHECK), *words], cwd=self.root, capture_output=True, text=True,
                              env={**os.environ, "STAGECRAFT": program, "STAGECRAFT_QUIET": "1"})

    def test_right_files(self):
        self.write(a_yaml=RIGHT, other_yaml="name: workflow\n", order_csv="0F0,0B0\n1F0,1B0\n", data_csv="x,y\n1,2\n")
        done = self.run_check()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 YAML files and 1 schedules checked", done.stdout)

    def test_annotations_stand_at_the_line(self):
        self.write(a_yaml=WRONG, b_yaml=RIGHT)
        done = self.run_check("--format", "github")
        self.assertEqual(done.returncode, 2)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 1, done.stdout)
        self.assertTrue(lines[0].startswith("::error file=a.yaml,line=4,col=27,title=stagecraft unknown-field::plan.stagse: "), lines)
        self.assertIn("%0Ahelp: ", lines[0])

    def test_sarif_has_rule_place_and_message(self):
        self.write(a_yaml=WRONG)
        done = self.run_check("--format", "sarif")
        self.assertEqual(done.returncode, 2)
        log = json.loads(done.stdout)
        self.assertEqual(log["version"], "2.1.0")
        run = log["runs"][0]
        self.assertEqual(run["tool"]["driver"]["name"], "stagecraft")
        result = run["results"][0]
        self.assertEqual(result["ruleId"], "unknown-field")
        self.assertIn({"id": "unknown-field"}, run["tool"]["driver"]["rules"])
        place = result["locations"][0]["physicalLocation"]
        self.assertEqual((place["artifactLocation"]["uri"], place["region"]["startLine"]), ("a.yaml", 4))

    def test_sarif_without_problems_has_no_results(self):
        self.write(a_yaml=RIGHT)
        done = self.run_check("--format", "sarif")
        self.assertEqual((done.returncode, json.loads(done.stdout)["runs"][0]["results"]), (0, []))

    def test_a_deadlocked_schedule(self):
        self.write(order_csv="0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n")
        done = self.run_check("--format", "github")
        self.assertEqual(done.returncode, 3)
        self.assertTrue(done.stdout.startswith("::error file=order.csv,title=stagecraft schedule::"), done.stdout)
        self.assertIn("cycle", done.stdout)

    def test_given_files_only(self):
        self.write(a_yaml=WRONG, b_yaml=RIGHT)
        self.assertEqual(self.run_check("b.yaml").returncode, 0)
        self.assertEqual(self.run_check("none.yaml").returncode, 2)

    def test_names_of_files_give_no_commands(self):
        wrong = "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n"
        names = [stem + end for end in (".csv", ".yaml")
                 for stem in ("q\n::warning file=a::INJECTED", "q\r\n::add-mask::x", "::stop-commands::x", "a%0A::warning::x", "b,title=x::y", "c: d")]
        for name in names:
            (self.root / name).write_text(wrong if name.endswith(".csv") else WRONG)
        subprocess.run(["git", "add", "."], cwd=self.root, check=True)
        done = self.run_check("--format", "github")
        lines = [line for line in done.stdout.splitlines() if line]
        escaped = [name.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A").replace(":", "%3A").replace(",", "%2C") for name in names]
        self.assertEqual(len(lines), len(names), done.stdout)
        for line in lines:
            self.assertTrue(any(line.startswith(f"::error file={name},") for name in escaped), line)
        for words in ((), ("--format", "text")):
            done = self.run_check(*words)
            for line in (done.stdout + done.stderr).splitlines():
                self.assertFalse(line.strip().startswith("::"), line)

    def test_names_that_look_like_options_are_checked(self):
        for name in ("--help.csv", "-rf.csv"):
            (self.root / name).write_text("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n")
        for name in ("--help.yaml", "-n.yaml"):
            (self.root / name).write_text(WRONG)
        subprocess.run(["git", "add", "."], cwd=self.root, check=True)
        done = self.run_check("--format", "github")
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        for name in ("--help.csv", "-rf.csv", "--help.yaml", "-n.yaml"):
            self.assertIn(f"::error file={name},", done.stdout)
        self.assertIn("file=-n.yaml,", self.run_check("--format", "github", "--", "-n.yaml").stdout)

    def test_a_missing_program_says_so(self):
        done = self.run_check(program="/nowhere/stagecraft")
        self.assertEqual(done.returncode, 4)
        self.assertIn("install Stagecraft", done.stderr)

    def test_the_files_name_what_is_there(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("there is no Python package yaml")
        action = yaml.safe_load((ROOT / "tools/action/action.yml").read_text())
        step = action["runs"]["steps"][0]
        self.assertIn("$GITHUB_ACTION_PATH/check", step["run"])
        self.assertEqual(set(action["inputs"]), {"files", "format", "stagecraft"})
        environment = {**os.environ, "GITHUB_ACTION_PATH": str(CHECK.parent), "STAGECRAFT": PROGRAM, "FILES": "a.yaml", "FORMAT": "github"}
        self.write(a_yaml=WRONG)
        done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=self.root, capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 2, done.stderr)
        hook = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())[0]
        self.assertTrue(os.access(ROOT / hook["entry"], os.X_OK))


if __name__ == "__main__":
    unittest.main()
