#!/usr/bin/env python3
"""What `search` takes on 32 to 16,384 GPUs, for a dense model and one with experts, with the facts of a framework and without.

    searches.py STAGECRAFT [SIZE[,SIZE...]]

Each search has the time that its size may take (`--time`) and both cores. Its row: seconds on the clock and of the processor, plans and
simulations for each second of the processor, the period of the first row, and its gap: how far it is above the bound that no plan in this
search beats. `tools/bench searches` prints the same table.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SECONDS = {32: 60, 256: 60, 1024: 60, 4096: 120, 16384: 300}  # Of each size, as `--time`.
MODELS = {"dense": lambda gpus: "llama-3-70b", "experts": lambda gpus: "qwen3-235b-a22b" if gpus >= 256 else "qwen3-30b-a3b"}
SOFTWARE = ["none", "megatron-core"]


def scenario(model, gpus, software):
    """Sequences of 4,096 tokens; one of an iteration for each GPU, and 256 at least."""
    return f"""schema: scenario/2
title: Search of {model} on {gpus} H100
model: {{base: {model}, override: {{sequence: 4096}}}}
cluster: superpod-h100-{gpus}
software: {software}
plan: {{planner: balanced, stages: 1, replicas: 8}}
run: {{schedule: 1f1b, global_batch: {max(256, gpus)}}}
"""


def answer(stagecraft, file, seconds):
    """The JSON of a search, seconds on the clock and of the processor, bytes at the peak, and what it says is wrong."""
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.Popen([str(stagecraft), "search", str(file), "--time", f"{seconds}s", "--format", "json"], stdout=subprocess.PIPE,
                                stderr=errors, text=True, env={**os.environ, "STAGECRAFT_QUIET": "1"})
        text = done.stdout.read()
        _, status, usage = os.wait4(done.pid, 0)
        done.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        problem = errors.read().strip()
    return (json.loads(text) if text else None), time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, problem


def rows(stagecraft, sizes=tuple(SECONDS)):
    """Model, GPUs, software, and what the search says."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "search.yaml"
        for gpus in sizes:
            for kind, model in MODELS.items():
                for software in SOFTWARE:
                    file.write_text(scenario(model(gpus), gpus, software))
                    yield (f"{kind} ({model(gpus)})", gpus, software, *answer(stagecraft, file, SECONDS[gpus]))


def cells(table, wall, cpu, memory, problem):
    """Seconds, rate, period, gap and end, as texts."""
    times = [f"{wall:.1f} s", f"{cpu:.1f} s", f"{memory / 2**30:.2f} GiB"]
    if table is None:
        return [*times, "", "", "", problem.splitlines()[0]]
    if not table["choices"]:
        return [*times, "", "", "", "nothing found"]
    tried = table["plans"] + table["simulated"]
    gap = table["gap"]
    return [*times, f"{tried / cpu:.0f}", f"{table['choices'][0]['period_s']:.4g} s", "" if gap is None else f"{100 * gap:.1f} %",
            table["stopped"] or "complete"]


def main():
    sizes = [int(size) for size in sys.argv[2].split(",")] if len(sys.argv) > 2 else list(SECONDS)
    print("| model | GPUs | software | clock | CPU | memory | tried/CPU s | period | gap | end |\n|---|---:|---|---:|---:|---:|---:|---:|---:|---|")
    for model, gpus, software, *result in rows(sys.argv[1], sizes):
        print(f"| {model} | {gpus:,} | {software} | " + " | ".join(cells(*result)) + " |", flush=True)


if __name__ == "__main__":
    main()
