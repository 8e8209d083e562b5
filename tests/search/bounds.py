#!/usr/bin/env python3
"""No plan takes less time than its lower bound, on random clusters of up to four types.

    bounds.py STAGECRAFT [SCENARIOS]

Each scenario is planned by every planner that answers quickly. Each plan that runs, with and without shared links, is
compared with `lower_bound_s` of its row.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

PLANNERS = "balanced,spp,pipedream,piper,graphpipe,graph-exact,2bw,layerpipe"
TYPES = ["h100-sxm", "a100-80", "a100-40", "v100-32"]
MODELS = ["vgg16", "{builder: mlp, widths: [1024, 4096, 512, 2048, 8192, 64, 512]}"]
QUIET = {**os.environ, "STAGECRAFT_QUIET": "1"}
ROUNDING = 1 + 1e-9


def scenario(r):
    """Nodes of one to four GPUs of some types; links that may be much slower than the GPUs."""
    gpus = r.choice([1, 1, 2, 4])
    types = r.sample(TYPES, r.randint(1, 4))
    count = r.randint(1, 8 // gpus)
    nodes = "".join(f"    - {{name: n{i}-, gpus: {gpus}, type: {r.choice(types)}, nvlink: nvlink, nic: ndr}}\n"
                    for i in range(count))
    transformer = (f"{{builder: transformer, kind: gpt, layers: {r.randint(2, 8)}, hidden: {256 * r.randint(1, 8)}, heads: 4, "
                   f"sequence: {r.choice([128, 512, 1024])}, vocabulary: {r.choice([1024, 50257])}, precision: mixed}}")
    return f"""schema: scenario/2
software: none
title: random
model: {r.choice([transformer, transformer, *MODELS])}
cluster:
  generator: nvlink_pods
  nodes:
{nodes}  links:
    nvlink: {{bandwidth: {r.choice([30, 300])} GB/s, latency: 1 us}}
    ndr: {{bandwidth: {r.choice([0.1, 1, 10, 100, 400])} Gbit/s, latency: {r.choice([2, 50, 1000])} us}}
plan: {{planner: balanced, stages: {r.randint(1, min(3, count * gpus))}, micro_batch_size: {r.choice([1, 2, 3, 4, 8, 12])}}}
run: {{schedule: {r.choice(["1f1b", "gpipe", "zb-h1", "eager-1f1b", "pipedream", "2bw"])}, micro_batches: {r.choice([1, 2, 4, 8, 16])}, iterations: 5}}
"""


def main():
    stagecraft = sys.argv[1]
    full = os.environ.get("STAGECRAFT_TRIALS") == "full"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 150 if full else 8
    r = random.Random(64)
    plans, below, closest, faster_than_model = 0, [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "s.yaml")
        for number in range(count):
            with open(file, "w", encoding="utf-8") as f:
                f.write(scenario(r))
            done = subprocess.run([stagecraft, "plan", file, "--planner", PLANNERS, "--format", "json", "--replay", "all"],
                                  capture_output=True, text=True, env=QUIET)
            if done.returncode not in (0, 3):
                sys.exit(f"plan of scenario {number}: {done.returncode} {done.stderr}")
            answer = json.loads(done.stdout)
            for row in answer["plans"]:
                if not row["ran"]:
                    continue
                seconds = [row["simulated_s"]]
                if row.get("replayed", {}).get("ran"):
                    seconds.append(row["replayed"]["period_s"] * row["simulated_s"] / row["period_s"])
                plans += 1
                bound = row["lower_bound_s"] or 0
                faster_than_model += (row["model_limit_s"] or 0) > min(seconds) * ROUNDING
                closest = max(closest, bound / min(seconds))
                if bound > min(seconds) * ROUNDING:
                    below.append(f"scenario {number}, {row['planner']}: {min(seconds)} s, and its bound is {bound} s, "
                                 f"{row['lower_bound_reason']}")
    print(f"{count} scenarios, {plans} plans, {len(below)} of them faster than their bound, which is up to {closest:.3f} of the time; "
          f"{faster_than_model} faster than the limit of their planner's model")
    for line in below[:10]:
        print(line)
    sys.exit(1 if below or plans < 3 * count else 0)


if __name__ == "__main__":
    main()
