#!/usr/bin/env python3
"""No plan that `plan` or `search` offers is refused by `run`.

    plans_run.py STAGECRAFT [SCENARIOS]

Random scenarios with little memory. Each row of `plan` that ran is run on `fluid` with what the row says that had to
change, and so is the first row of `search`.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

QUIET = {**os.environ, "STAGECRAFT_QUIET": "1"}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, env=QUIET)


def scenario(r):
    """Layers with a stash that is large beside the memory of a device, and messages that share links."""
    layers = r.randint(4, 10)
    devices = r.randint(2, 6)
    stash, weights = r.randint(1, 64), r.randint(1, 64)
    memory = r.randint(2, 12) * (layers * weights * 4 + layers * stash * 2) // devices // 4 + 64
    return f"""schema: scenario/2
title: random
model: {{builder: uniform, layers: {layers}, forward: {r.randint(1, 9)} ms, backward: {r.randint(2, 18)} ms,
  stash: {stash} MiB, output: {r.randint(1, 32)} MiB, parameters: {weights * 250000}}}
cluster: {{generator: uniform, devices: {devices}, type: any, link: {{bandwidth: {r.choice([1, 5, 25])} GB/s, latency: 5 us}},
  types: {{any: {{peak: 1 TFLOP/s, memory: {memory} MiB, memory_bandwidth: 100 GB/s}}}}}}
plan: {{planner: balanced, stages: {min(devices, layers)}, micro_batch_size: {r.choice([1, 2, 4])}}}
run: {{schedule: {r.choice(["1f1b", "gpipe", "zb-h1", "eager-1f1b"])}, micro_batches: {r.choice([2, 4, 8])}}}
software: none
"""


def main():
    stagecraft = sys.argv[1]
    full = os.environ.get("STAGECRAFT_TRIALS") == "full"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 500 if full else 25
    r = random.Random(500)
    offered, refused = 0, []
    with tempfile.TemporaryDirectory() as folder:
        file, best = os.path.join(folder, "s.yaml"), os.path.join(folder, "best.yaml")
        for number in range(count):
            with open(file, "w", encoding="utf-8") as f:
                f.write(scenario(r))
            planned = output(stagecraft, "plan", file, "--format", "json")
            if planned.returncode not in (0, 3):
                sys.exit(f"plan of scenario {number}: {planned.returncode} {planned.stderr}")
            for row in json.loads(planned.stdout)["plans"]:
                if not row["ran"] or row["planner"] == "layerpipe":
                    continue
                offered += 1
                result = output(stagecraft, "run", file, "-b", "fluid", "--set", "run.iterations=5",
                                *[word for s in row["set"] for word in ("--set", s)])
                if result.returncode != 0:
                    refused.append(f"scenario {number}, {row['planner']}: {result.stderr}")
            if number % 5 == 0:
                searched = output(stagecraft, "search", file, "--schedules", "1f1b,zb-h1,interleaved", "--out", best,
                                  "--force")
                if searched.returncode == 0:
                    offered += 1
                    result = output(stagecraft, "run", best, "-b", "fluid")
                    if result.returncode != 0:
                        refused.append(f"scenario {number}, search: {result.stderr}")
    print(f"{count} scenarios, {offered} plans offered, {len(refused)} of them refused by run")
    for line in refused[:10]:
        print(line)
    sys.exit(1 if refused or offered < count else 0)


if __name__ == "__main__":
    main()
