"""Stops `convergence` by signals, before its first run is complete and later: convergence_stopped.py STAGECRAFT FOLDER.

Later means after the second of 2,000 runs: the others take minutes on any machine, and the signal comes with the next line
of progress. Before means while the order of work of the first method is searched for, which takes hours."""
import collections
import csv
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from processes import ENDLESS, HUNG, never_signaled  # noqa: E402

LOUD = {name: value for name, value in os.environ.items() if name != "STAGECRAFT_QUIET"}
stagecraft, folder = sys.argv[1], pathlib.Path(sys.argv[2])


def start(*words):
    return subprocess.Popen([stagecraft, "convergence", "examples/teacher", "--methods", "sync,2bw", "--no-measure", "--updates", "600",
                             "--seeds", "1000", *words], text=True, env=LOUD, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=never_signaled)


def stopped(program, number, words):
    """What it prints and its last words, after a signal when a line of progress has these words."""
    for line in program.stderr:
        if re.search(words, line):
            break
    else:
        sys.exit(f"it ended before it said {words!r}")
    program.send_signal(number)
    table, said = program.communicate(timeout=HUNG)
    return table, said.splitlines()[-1]


for number in (signal.SIGINT, signal.SIGTERM):
    out = folder / number.name
    program = start("--target", "1", "--out", str(out))
    table, said = stopped(program, number, r"\b([2-9]|\d\d+) of 2000 runs")
    runs = re.search(r"have (\d+) of 2000 runs", said)[1]
    with open(out / "convergence.csv") as file:
        rows = collections.Counter((row["method"], int(row["seed"])) for row in csv.DictReader(file))
    counts = [sorted(seed for method, seed in rows if method == name) for name in ("sync", "2bw")]
    print(f"{number.name}: exit {program.returncode}; {said.replace(runs, 'N', 1)}")
    print("the head has as many:", table.startswith(f"600 updates of 32 samples, {runs} of 2000 runs;"))
    print("all of them are in convergence.csv, whole:", len(rows) == int(runs), set(rows.values()) == {600 // 20 + 1})
    print("both methods have the first seeds:", all(seeds == list(range(1, len(seeds) + 1)) for seeds in counts),
          len(counts[0]) - len(counts[1]) in (0, 1))

program = start(*ENDLESS)
table, said = stopped(program, signal.SIGINT, "synthesised")
print(f"before the first run: exit {program.returncode}, {table!r}; {said}")
