#!/usr/bin/env python3
"""How far simulations of real runs on this machine are off: `stagecraft validate` on the CPU, several times each.

    validations.py STAGECRAFT [REPETITIONS] [CASE[,CASE...]]

Each repetition profiles, simulates and runs again. Printed: the median and the worst error of the iteration; of the model,
which simulates each iteration with the operation times measured in it, the median over the repetitions and the worst single
iteration; the error of updates and messages; how many runs were sure of their answer; and the load of the machine, because
with other work on it the error of the costs says little. Cases: transformer and mlp in two stages, dag with two branches on two threads, of which the second
joins them, tensor in a group of two; stages4 and stages8 have more threads than a machine with two cores. A run that is refused says why.
`tools/bench validations` prints the same table."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TRANSFORMER = ("scenarios/examples/cpu-transformer.yaml",)
MLP = ("scenarios/examples/cpu-transformer.yaml",
       "model={builder: mlp, widths: [784, 1024, 1024, 1024, 1024, 10], activation: relu, loss: mean_square}",
       "plan.micro_batch_size=32")
BRANCH = "input: 784, widths: [1024, 1024]"
DAG = ("scenarios/examples/cpu-transformer.yaml",
       f"model={{builder: branched_mlp, dense: [{{name: left, {BRANCH}}}, {{name: right, {BRANCH}}}], top: [64, 10]}}",
       "plan={planner: explicit, stages: {left: {layers: [left.in..left.ff1], device: thread0, micro_batch_size: 32}, "
       "right: {layers: [right.in..right.ff1, concat..loss], device: thread1, micro_batch_size: 32}}}", "run.schedule=graph")
CASES = {  # A scenario, then settings.
    "transformer": TRANSFORMER,
    "mlp": MLP,
    "dag": DAG,
    "tensor": (*TRANSFORMER, "plan.stages=1", "plan.group={tensor: 2}", "software=plain"),
    "stages4": (*TRANSFORMER, "plan.stages=4"),
    "stages8": (*TRANSFORMER, "plan.stages=8"),
}


def once(tool, case, seconds):
    """The validation, or the sentence that refuses it."""
    scenario, *sets = CASES[case]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([tool, "validate", scenario, "--no-control", "-q", "--seconds", str(seconds), "--out", f"{folder}/out",
                               *(word for s in sets for word in ("--set", s))], cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            return None, done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit code {done.returncode}"
        return json.loads(pathlib.Path(folder, "out/validation.json").read_text()), ""


def percent(x):
    return f"{100 * x:+.1f} %"


def kind_of(validation, name):
    """The error of one kind of instruction, if the run had any."""
    found = [i["error"] for i in validation["instructions_s"] if i["name"] == name]
    return found[0] if found else None


def summary(validations):
    errors = [v["iteration_s"]["error"] for v in validations]
    parts = [f"median {percent(statistics.median(errors))}", f"worst {percent(max(errors, key=abs))}"]
    if models := [v["model_error"] for v in validations if "model_error" in v]:
        parts.append(f"model median {percent(statistics.median(m['median'] for m in models))}")
        parts.append(f"worst {percent(max((m['worst'] for m in models), key=abs))}")
    for name in ("U", "message"):
        kinds = [e for v in validations if (e := kind_of(v, name)) is not None]
        if kinds:
            parts.append(f"{name} {percent(statistics.median(kinds))}")
    return ", ".join(parts), f"{sum(v['sure'] for v in validations)} of {len(validations)} sure"


def table(tool, repetitions, cases, seconds=2):
    """Rows of a name, the errors, how many are sure, and the load before and after."""
    for case in cases:
        load, found, why = os.getloadavg()[0], [], ""
        for _ in range(repetitions):
            validation, why = once(tool, case, seconds)
            if validation is None:
                break
            found.append(validation)
        loads = f"load {load:.1f} to {os.getloadavg()[0]:.1f}"
        if found:
            yield (case, *summary(found), loads)
        else:
            yield case, f"refused: {why}", "", loads


def asked():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", metavar="STAGECRAFT")
    parser.add_argument("repetitions", metavar="REPETITIONS", type=int, nargs="?", default=5)
    parser.add_argument("cases", metavar="CASE[,CASE...]", nargs="?", default=",".join(CASES))
    words = parser.parse_args()
    if words.repetitions < 1:
        parser.error("at least one repetition is needed")
    if unknown := [case for case in words.cases.split(",") if case not in CASES]:
        parser.error(f"there is no case '{unknown[0]}'; there are {', '.join(CASES)}")
    return words


def main():
    words = asked()
    tool = str(pathlib.Path(words.tool).resolve())
    for name, errors, sure, load in table(tool, words.repetitions, words.cases.split(",")):
        print(f"{name:<12} {errors}  {sure}  {load}", flush=True)


if __name__ == "__main__":
    main()
