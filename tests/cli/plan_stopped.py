"""Stops `plan` by signals while its second planner never ends, and by --time: plan_stopped.py STAGECRAFT.

layerpipe brings its own schedule. The plan of balanced waits for an order that no machine finds in hours, so every signal
comes before its end."""
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from processes import ENDLESS, HUNG, never_signaled  # noqa: E402

LOUD = {name: value for name, value in os.environ.items() if name != "STAGECRAFT_QUIET"}


def start(planners, *words):
    return subprocess.Popen([sys.argv[1], "plan", "examples/quickstart", "--planner", planners, "--format", "json", "--replay", "0",
                             "--set", "plan.micro_batch_size=1", *ENDLESS, *words], text=True, env=LOUD, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, preexec_fn=never_signaled)


def said_until(program, words):
    """Reads what it says until a line of progress has these words."""
    for line in program.stderr:
        if words in line:
            return
    sys.exit(f"it ended before it said {words!r}")


def rows(text):
    return [f"{row['planner']} {'has a plan' if row['ran'] else row['reason']}" for row in json.loads(text)["plans"]]


for number in (signal.SIGINT, signal.SIGTERM):
    program = start("layerpipe,balanced", "--time", "10h")
    said_until(program, "1 of 2 planners")
    program.send_signal(number)
    table, said = program.communicate(timeout=HUNG)
    print(f"{number.name}: exit {program.returncode}, {', '.join(rows(table))}; {said.splitlines()[-1]}")

program = start("balanced", "--time", "10h")
said_until(program, "0 of 1 planners")
program.send_signal(signal.SIGINT)
table, said = program.communicate(timeout=HUNG)
print(f"before the first plan: exit {program.returncode}, {table!r}; {said.splitlines()[-1]}")

program = start("balanced", "--time", "100ms")
table, said = program.communicate(timeout=HUNG)
print(f"by --time: exit {program.returncode}, {', '.join(rows(table))}")
