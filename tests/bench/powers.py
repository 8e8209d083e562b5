#!/usr/bin/env python3
"""How time grows with layers, devices and micro-batches: the power of each, for every planner and the search.

    powers.py STAGECRAFT [quick]

One of the three is doubled twice while the others stay. The power is log(time ratio) / log(size ratio): 1 grows with the
size, 2 with its square. Planners tell the time of their own search, and the least of several counts; `search` is the
CPU time of a process, less what a small `run` takes. `tools/bench road` has the steps of a run. `tools/bench growth`
prints the same rows.
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

PLANNERS = ["balanced", "spp", "pipedream", "piper", "graphpipe", "graph-exact", "2bw"]
AXES = {"layers": 0, "devices": 1, "micro-batches": 2}
PLANNED, SEARCHED = (32, 8, 32), (8, 2, 8)  # Smallest layers, devices and micro-batches.


def scenario(layers, devices, micro_batches, plan):
    return f"""schema: scenario/2
software: none
title: Growth
model: {{builder: transformer, kind: gpt, layers: {layers}, hidden: 512, heads: 8, sequence: 256, vocabulary: 8192, precision: mixed}}
cluster: {{generator: uniform, devices: {devices}, network: star, type: h100-sxm, link: {{bandwidth: 50 GB/s, latency: 5 us}}}}
plan: {{{plan}, micro_batch_size: 8}}
run: {{schedule: 1f1b, micro_batches: {micro_batches}}}
"""


def cpu_of(words):
    """What a command prints and its CPU seconds, from a separate process."""
    done = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "STAGECRAFT_QUIET": "1"})
    text = done.stdout.read()
    _, status, usage = os.wait4(done.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, words))} failed")
    return text, usage.ru_utime + usage.ru_stime


def sizes_along(first, axis, steps):
    """The smallest size with one of its numbers doubled again and again."""
    return [tuple(n << step if i == AXES[axis] else n for i, n in enumerate(first)) for step in range(steps)]


def power_of(values):
    """The power between the first and the last; nothing where the first takes no time that could be measured."""
    return math.log(values[-1] / values[0]) / math.log(2 ** (len(values) - 1)) if values[0] > 0 and values[-1] > 0 else None


def power_text(power):
    return "-" if power is None else f"{power:.1f}"


def planned(stagecraft, file, planner, runs):
    """Least seconds of the planner's search, and the states that it visits."""
    rows = [json.loads(cpu_of([stagecraft, "plan", file, "--planner", planner, "--format", "json", "--replay", "0"])[0])["plans"][0]
            for _ in range(runs)]
    if not rows[0]["ran"]:
        raise SystemExit(f"{planner}: {rows[0]['reason']}")
    return min(row["search_s"] for row in rows), rows[0]["states"]


def rows(stagecraft, quick=False):
    """Step, axis, sizes along it, seconds at each, and the states of planners."""
    runs, steps = (2, 2) if quick else (5, 3)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "growth.yaml"

        def measured(first, axis, plan_for, measure):
            for size in sizes_along(first, axis, steps):
                file.write_text(scenario(*size, plan_for(size)))
                yield size[AXES[axis]], measure()

        for planner in PLANNERS:
            for axis in AXES:
                points = list(measured(PLANNED, axis, lambda _: "planner: balanced, stages: 2", lambda: planned(stagecraft, str(file), planner, runs)))
                yield planner, axis, [n for n, _ in points], [t for _, (t, _) in points], [s for _, (_, s) in points]
        file.write_text(scenario(8, 2, 2, "planner: balanced, stages: 2"))
        start = min(cpu_of([stagecraft, "run", str(file), "-b", "ideal", "--format", "json"])[1] for _ in range(runs))
        command = [stagecraft, "search", str(file), "-j", "1", "--schedules", "1f1b,zb-h1,interleaved", "--format", "json"]
        for axis in AXES:
            points = list(measured(SEARCHED, axis, lambda _: "planner: balanced, stages: 2", lambda: max(0, cpu_of(command)[1] - start)))
            yield "search", axis, [n for n, _ in points], [t for _, t in points], []


def text_of(step, axis, sizes, seconds, states):
    times = " to ".join(f"{1e3 * t:.3g} ms" for t in (seconds[0], seconds[-1]))
    power = f"power {power_text(power_of(seconds))} of {axis}"
    return times, power + (f", of states {power_text(power_of(states))}" if states and states[0] else "")


def main():
    print("| step | size | time | power |\n|---|---|---:|---|")
    for step, axis, sizes, seconds, states in rows(sys.argv[1], sys.argv[2:] == ["quick"]):
        times, power = text_of(step, axis, sizes, seconds, states)
        print(f"| {step} | {sizes[0]} to {sizes[-1]} {axis} | {times} | {power} |", flush=True)


if __name__ == "__main__":
    main()
