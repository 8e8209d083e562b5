#!/usr/bin/env python3
"""Runs every command of tools/docs/SKILL.md as an agent would: skill.py STAGECRAFT, from the root of the project.

What the page says about fields and exit codes is checked against the answers."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

program = pathlib.Path(sys.argv[1]).resolve()
page = pathlib.Path("tools/docs/SKILL.md").read_text()
folder = tempfile.TemporaryDirectory()
environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "TMP": folder.name, "STAGECRAFT_QUIET": "1"}


def run(command):
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout, done.stderr


head = re.match(r"---\nname: ([a-z-]+)\ndescription: (.+)\n---\n", page)
assert head and len(head[2]) < 1024, "the page begins with a name and a description"
commands = [line for block in re.findall(r"```sh\n(.*?)```", page, re.S) for line in block.splitlines()]
assert len(commands) >= 15, commands
answers = {}
for command in commands:
    # A few plans in place of a limit of time, in which a slow machine may try none.
    code, out, err = run(command.replace("--time 5s", "--most 20"))
    assert code == 0, f"{command}: {code}\n{out}\n{err}"
    if "--format json" in command:
        answers[command] = json.loads(out)
runs = [a for c, a in answers.items() if c.startswith("stagecraft run")]
assert len(runs) == 2 and runs[0]["period_s"] != runs[1]["period_s"]
for name in re.findall(r"`([a-z_]+(?:_s|_bytes|_per_s)|bubble)`", page):
    assert name in runs[0] or name in runs[0]["devices"][0], f"{name} is no field of a run"
for name in re.findall(r"`devices\[\]\.([a-z_]+)`", page):
    assert name in runs[0]["devices"][0], name
assert {"sentence", "suggestions"} <= set(runs[0]["diagnosis"][0])
assert answers["stagecraft check scenarios/examples/quickstart.yaml --format json"] == []
assert all(a["choices"] for c, a in answers.items() if c.startswith("stagecraft search"))

wrong = pathlib.Path(folder.name) / "wrong.yaml"
wrong.write_text("schema: scenario/2\nmodel: gpt2-small\ncluster: two-node-mixed\nplan: {planner: balanced, stagse: 2}\nrun: {schedule: 1f1b, micro_batches: 4}\n")
code, out, _ = run(f"stagecraft check {wrong} --format json")
fields = re.search(r"Each problem has (.*)\.\n", page)[1]
assert code == 2 and set(json.loads(out)[0]) == set(re.findall(r"`(\w+)`", fields)), out
(pathlib.Path(folder.name) / "crossed.csv").write_text("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n")
code, _, err = run("stagecraft schedule --file $TMP/crossed.csv --format grid")
assert code == 3 and "cycle" in err, err
codes = {int(c) for row in re.findall(r"^\| (\d[\d, ]*) \|", page, re.M) for c in row.split(", ")}
assert {0, 2, 3, 4, 70, 129, 130, 143} == codes, codes

python = re.search(r"```python\n(.*?)```", page, re.S)[1]
try:
    import numpy  # noqa: F401
    done = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True,
                          env={**environment, "PYTHONPATH": "tools/python", "STAGECRAFT": str(program), "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[0]) == runs[1]["period_s"], (done.stdout, runs[1]["period_s"])
except ImportError:
    print("SKIPPED the Python lines: there is no numpy")
print(f"{len(commands)} commands of the page do what it says")
