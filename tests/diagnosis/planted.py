#!/usr/bin/env python3
"""The diagnosis of each scenario in scenarios/examples/diagnosis names the cause that is planted there, and its first
suggestion saves what it says when its options are pasted: planted.py STAGECRAFT, from the root of the project."""
import json
import os
import pathlib
import subprocess
import sys

os.environ["STAGECRAFT_QUIET"] = "1"
binary = str(pathlib.Path(sys.argv[1]).resolve())
FOLDER = pathlib.Path("scenarios/examples/diagnosis")
# The cause that comes first, and what `where` of the finding has in it.
PLANTED = {
    "heavy-head": ("unequal-stages", "stage 3"),
    "loss-only-stage": ("empty-stage", "stage 3"),
    "slow-link": ("slow-link", "cable12"),
    "shared-uplink": ("shared-link", "uplink"),
    "memory-limit": ("memory", "gpu"),
    "needless-recomputation": ("recomputation", ""),
    "uneven-replicas": ("uneven-replicas", "gpu3"),
    "bad-placement": ("placement", ""),
    "few-micro-batches": ("bubble", "1f1b"),
    "straggler": ("slow-device", "h100-0.gpu2"),
    "exposed-all-reduce": ("gradient-sums", "stage 0"),
    "short-and-long": ("unequal-loads", "1f1b"),
    "expert-imbalance": ("expert-imbalance", "experts"),
    "zero-3-slow-fabric": ("gradient-sums", "stage 0"),
    "slow-member": ("slow-device", "gpu3"),
    "wide-tensor-group": ("group-collectives", "16 devices"),
    "expert-exchanges": ("group-collectives", "16 devices"),
    "small-kernels": ("launches", "host"),
    "balanced": ("computation", ""),
}
TOLERANCE = 0.02  # Of what is said; the same simulation gives it, so that only rounding may differ.
problems = []


def expect(holds, name, text):
    if not holds:
        problems.append(f"{name}: {text}")


def results(name, sets=()):
    words = [binary, "run", str(FOLDER / f"{name}.yaml"), "--backend", "fluid", "--format", "json"]
    for one in sets:
        words += ["--set", one]
    done = subprocess.run(words, capture_output=True, text=True, timeout=1200)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return json.loads(done.stdout)


def per_sample(result):
    return 1 / result["throughput_samples_per_s"]


names = {p.stem for p in FOLDER.glob("*.yaml")}
expect(names == set(PLANTED), "files", f"not the same as planted: {sorted(names ^ set(PLANTED))}")
for name, (cause, where) in PLANTED.items():
    before = results(name)
    first = before["diagnosis"][0]
    expect(first["cause"] == cause, name, f"the first cause is {first['cause']}, planted is {cause}")
    expect(where in first["where"], name, f"'{where}' is not in '{first['where']}'")
    if cause == "computation":
        expect(not first["suggestions"], name, f"suggests {first['suggestions']}")
        continue
    if not first["suggestions"]:
        expect(False, name, "no suggestion")
        continue
    best = first["suggestions"][0]
    saved = 1 - per_sample(results(name, best["sets"])) / per_sample(before)
    expect(best["saved"] > 0.05, name, f"saves {best['saved']}")
    expect(abs(saved - best["saved"]) <= TOLERANCE * best["saved"], name, f"said {best['saved']}, simulated {saved}")
    kinds = [s["saved"] for s in first["suggestions"]]
    expect(kinds == sorted(kinds, reverse=True), name, f"not in order: {kinds}")
print(f"{len(PLANTED)} scenarios, {len(problems)} problems")
print("\n".join(problems))
sys.exit(1 if problems else 0)
