"""Threads of stages, workers that train in parallel, and the threads of a large simulation, for a race detector:
threads.py STAGECRAFT.

Whatever stands in whose way, every point of a sweep is done and what is learnt is the same."""
import csv
import io
import json
import re

from tool import check, finish, folder, run

sweep = folder / "threads.yaml"
sweep.write_text("schema: sweep/1\nbase: examples/teacher\nbackend: cpu\n"
                 "axes: {run.schedule: [gpipe, 1f1b], plan.stages: [2, 8]}\nalso:\n"
                 "  - {run.schedule: pipedream, weights: pipeoptim}\n  - {run.schedule: 2bw, weights: 2bw}\n")
code, said, errors, _ = run(["sweep", str(sweep), "-j", "3", "--format", "csv", "--out", "threads.db"])
ends = [row["status"] for row in csv.DictReader(io.StringIO(said))]
check(code == 0 and ends == ["ok"] * 6, f"the sweep ended with {code} and {ends}\n{errors[:8000]}")


def learnt(*words):
    code, said, errors, _ = run(["run", "examples/teacher", "--backend", "cpu", "--format", "json", *words])
    wrong = [line for line in errors.splitlines() if not line.startswith("note: ")]
    check(code == 0 and not wrong, f"{words}: ended with {code}\n{errors[:8000]}")
    return json.loads(said)["learnt"]["weights_sha256"] if code == 0 else None


alone = learnt("--set", "plan.stages=1")
for words in ((), ("--set", "run.schedule=gpipe"), ("--set", "run.transfers=eager"), ("--set", "run.overlap=false")):
    check(learnt(*words) == alone, f"{words}: other weights than one thread learns")


def text_of(threads):
    """A run of at least 200,000 instructions, which several threads compute."""
    code, said, errors, _ = run(["run", "examples/quickstart", "--backend", "ideal", "--set", "run.micro_batches=4000", "-j", threads])
    check(code == 0, f"-j {threads}: ended with {code}\n{errors[:8000]}")
    check(int(re.search(r"(\d+) instructions", said)[1]) >= 200_000, f"the run is too small:\n{said}")
    return said


check(text_of("3") == text_of("1"), "three threads print another answer than one")
finish()
