#!/usr/bin/env python3
"""No setting that a person might type is faster than what `search` finds.

    by_hand.py STAGECRAFT [SETTINGS [SCENARIO ...]]

For each scenario, draws settings (stages, replicas, devices and their order, micro-batch size, schedule, recomputation,
groups), any or near the first row of the search, with as many samples in an iteration until SETTINGS of them run, and compares the period of each on `fluid` with
that of the scenario that `search --out` writes, by the same `run`. The draws depend on the name of the scenario alone.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

EXAMPLES = ["quickstart", "search-mixed-gpus", "search-slow-link", "search-little-memory", "search-branches",
            "search-groups"]
QUICK = ["search-slow-link", "search-groups"]  # Each is found in three seconds.
CHUNKED = {"interleaved", "interleaved-zb", "looped-bfs", "zb-v", "zb-v-auto", "v-half", "v-min", "1f1b-v", "hanayo"}
PLAIN = {"1f1b", "gpipe", "eager-1f1b", "zb-h1", "zb-h2", "zb-1p", "zb-2p"}
ROUNDING = 1 + 1e-9
MARGIN = 0.06  # Of memory, which `search` leaves free by default.


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "STAGECRAFT_QUIET": "1"})


def period(stagecraft, file, sets=(), filled=1):
    """Seconds of one more iteration on `fluid`; None where the settings are refused, or a device has less memory free than it may."""
    options = [word for s in (*sets, "run.iterations=5") for word in ("--set", s)]
    result = output(stagecraft, "run", file, "-b", "fluid", "--format", "json", *options)
    if result.returncode == 70 or result.returncode < 0:
        sys.exit(f"run {file} {' '.join(options)} failed: {result.stderr}")
    if result.returncode != 0:
        return None
    answer = json.loads(result.stdout)
    fits = all(d["peak_memory_bytes"] <= filled * (d["memory_capacity_bytes"] - d["memory_reserved_bytes"])
               for d in answer["devices"] if d["memory_capacity_bytes"])
    return answer["period_s"] if fits else None


def divisors(number):
    return [n for n in range(1, number + 1) if number % n == 0]


class Question:
    """What the scenario leaves to choose."""

    def __init__(self, stagecraft, name):
        self.file = f"scenarios/examples/{name}.yaml"
        result = json.loads(output(stagecraft, "run", self.file, "-b", "fluid", "--format", "json").stdout)
        self.samples = round(result["throughput_samples_per_s"] * result["period_s"])
        self.devices = [(d["name"], d["type"]) for d in result["devices"]]
        self.groups = name == "search-groups"
        self.random = random.Random(name)

    def device_list(self, count):
        """Some devices in some order: of the cluster, of the types, or any."""
        r, devices = self.random, list(self.devices)
        kind = r.randrange(4)
        if kind == 1:
            types = sorted({t for _, t in devices})
            r.shuffle(types)
            devices.sort(key=lambda d: types.index(d[1]))
        elif kind == 2:
            r.shuffle(devices)
        elif kind == 3:
            first = r.randrange(len(devices) - count + 1)
            devices = devices[first:first + count]
        return ", ".join(f'"{name}"' for name, _ in devices[:count])

    def chain(self):
        r = self.random
        ranks = r.randint(1, len(self.devices))
        replicas = r.randint(1, max(1, len(self.devices) // ranks))
        schedule = r.choice(sorted(CHUNKED | PLAIN | {"synthesised"}))
        chunks = 1 if schedule not in CHUNKED else r.choice([2, 2, 3, 4]) if "interleaved" in schedule else 2
        size = r.choice(divisors(self.samples))  # Of all replicas together.
        if size % replicas != 0:
            return None
        plan = (f"{{planner: balanced, stages: {ranks * chunks}, replicas: {replicas}, micro_batch_size: {size // replicas}, "
                f"recompute: {r.choice(['none', 'none', 'selective', 'full'])}, "
                f"devices: [{self.device_list(ranks * replicas)}]}}")
        return [f"plan={plan}", f"run.schedule={schedule}", f"run.micro_batches={self.samples // size}"]

    def group(self):
        r = self.random
        tensor = r.choice([t for t in (1, 2, 4, 8) if t <= len(self.devices)])
        ranks = r.choice(divisors(len(self.devices) // tensor))
        replicas = len(self.devices) // (tensor * ranks)
        if self.samples % replicas != 0:
            return None
        size = r.choice(divisors(self.samples // replicas))
        schedule = r.choice(["1f1b", "interleaved"])
        chunks = 1 if schedule == "1f1b" else r.choice([2, 4])
        group = f"{{tensor: {tensor}, sequence: {'true' if tensor > 1 else 'false'}}}"
        plan = (f"{{planner: balanced, stages: {ranks * chunks}, replicas: {replicas}, micro_batch_size: {size}, "
                f"group: {group}, recompute: {r.choice(['none', 'selective', 'layers'])}, "
                f"shard: {r.choice(['none', 'optimizer'] if replicas > 1 else ['none'])}}}")
        return [f"plan={plan}", f"run.schedule={schedule}", f"run.global_batch={self.samples}"]

    def neighbor(self, best):
        """The first row of the search with one thing or two changed, as a person would go on from it."""
        r = self.random
        ranks = max(1, best["devices"] // max(1, best["replicas"]))
        replicas, size, schedule = best["replicas"], best["micro_batch_size"], best["schedule"]
        placed = best["placement"] != "linear"
        recompute = best["recompute"]
        for _ in range(r.randint(1, 2)):
            kind = r.randrange(4)
            if kind == 0:
                size = r.choice(divisors(self.samples))
            elif kind == 1:
                schedule = r.choice(sorted(CHUNKED if placed else PLAIN))
            elif kind == 2:
                ranks = r.randint(max(1, ranks - 2), min(len(self.devices), ranks + 2))
                replicas = min(replicas, len(self.devices) // ranks)
            else:
                recompute = r.choice(["none", "selective"])
        replicas = max(1, min(replicas, len(self.devices) // ranks))
        chunks = 2 if schedule in CHUNKED or (placed and schedule == "synthesised") else 1
        if schedule == "synthesised" and placed:
            schedule = f"{{name: synthesised, placement: {best['placement']}, chunks: 2}}"
        if size % replicas != 0:
            return None
        plan = (f"{{planner: balanced, stages: {ranks * chunks}, replicas: {replicas}, micro_batch_size: {size // replicas}, "
                f"recompute: {recompute}, devices: [{self.device_list(ranks * replicas)}]}}")
        return [f"plan={plan}", f"run.schedule={schedule}", f"run.micro_batches={self.samples // size}"]

    def settings(self, best):
        if self.groups:
            return self.group()
        return self.neighbor(best) if self.random.randrange(2) else self.chain()


def compare(stagecraft, name, wanted):
    question = Question(stagecraft, name)
    with tempfile.TemporaryDirectory() as folder:
        best = os.path.join(folder, "best.yaml")
        search = output(stagecraft, "search", question.file, "--out", best, "--format", "json")
        if search.returncode != 0:
            sys.exit(f"search {question.file}: {search.stderr}")
        found = period(stagecraft, best)
        choice = json.loads(search.stdout)["choices"][0]
        first = choice["replayed"]["period_s"]
    if found is None or abs(found - first) > 1e-9 * first:
        sys.exit(f"{name}: search says {first} s, and the scenario of --out takes {found}")
    shortest, which, ran, tried = float("inf"), None, 0, 0
    while ran < wanted and tried < 50 * wanted:
        tried += 1
        settings = question.settings(choice)
        # What the search leaves free, a person leaves free too.
        seconds = period(stagecraft, question.file, settings, 1 if "tight" in (choice["remark"] or "") else 1 - MARGIN) if settings else None
        if seconds is None:
            continue
        ran += 1
        if seconds < shortest:
            shortest, which = seconds, settings
    print(f"{name}: {1e3 * found / question.samples:.4f} ms a sample by search, "
          f"{1e3 * shortest / question.samples:.4f} ms by the best of {ran} settings")
    if ran < wanted:
        sys.exit(f"{name}: only {ran} of {tried} settings ran")
    if shortest * ROUNDING < found:
        print("  beaten by " + " ".join(f"--set '{s}'" for s in which))
    return found <= shortest * ROUNDING


def main():
    stagecraft = sys.argv[1]
    full = os.environ.get("STAGECRAFT_TRIALS") == "full"
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 100 if full else 3
    results = [compare(stagecraft, name, wanted) for name in sys.argv[3:] or (EXAMPLES if full else QUICK)]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
