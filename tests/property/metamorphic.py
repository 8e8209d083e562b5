"""Changes to a scenario with a known effect, over random scenarios: metamorphic.py STAGECRAFT [TRIALS [SEED]].

Scaling all times scales the result. Other units, other names, another order of devices, links and keys, more memory,
`resolve`, and `--set` in place of an edit change nothing. More bandwidth never makes a fixed order longer on `ideal`,
where messages do not meet. The console prints what JSON has."""
import concurrent.futures
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

binary = str(pathlib.Path(sys.argv[1]).resolve())
TRIALS = int(sys.argv[2]) if len(sys.argv) > 2 else 6
if os.environ.get("STAGECRAFT_TRIALS") == "full":
    TRIALS *= 10
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
METRICS = ("makespan_s", "period_s", "bubble", "throughput_samples_per_s")
STREAMS = ("direction", "pair", "single", "none")
folder = pathlib.Path(tempfile.mkdtemp(prefix="stagecraft-metamorphic-"))


def yaml(value):
    """A value on one line. Texts here never need quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml(v)}" for key, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(yaml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


class Quantity:
    """A number in base units that is written in a unit."""
    UNITS = {"s": (("s", 1), ("ms", 1e-3), ("us", 1e-6)), "B": (("B", 1), ("kB", 1e3), ("MB", 1e6), ("KiB", 1024)),
             "B/s": (("B/s", 1), ("MB/s", 1e6), ("GB/s", 1e9), ("Mbit/s", 1.25e5))}

    def __init__(self, value, kind, unit=0):
        self.value, self.kind, self.unit = value, kind, unit

    def __str__(self):
        name, factor = self.UNITS[self.kind][self.unit]
        return f"{self.value / factor!r} {name}"

    def scaled(self, factor):
        return Quantity(self.value * factor, self.kind, self.unit)


def mapped(value, change):
    """The value with `change` applied to each quantity, which also gets the key that it stands under."""
    def walk(v, key):
        if isinstance(v, dict):
            return {k: walk(x, k) for k, x in v.items()}
        if isinstance(v, list):
            return [walk(x, key) for x in v]
        return change(v, key) if isinstance(v, Quantity) else v
    return walk(value, "")


def random_scenario(draw):
    """Devices around a switch or joined in pairs, a chain or a diamond of layers, stages with replicas by name."""
    stages = draw.randint(1, 5)
    counts = [draw.choice((1, 1, 1, 2, 3)) for _ in range(stages)]
    devices = [f"dev{i}" for i in range(sum(counts) + draw.randint(0, 2))]
    seconds = lambda low, high: Quantity(round(draw.uniform(low, high), 9), "s")
    size = lambda low, high: Quantity(float(draw.randint(low, high)), "B")
    layers, branches = [], draw.random() < 0.4
    for i in range(draw.randint(stages, stages + 6)):
        inputs = [f"lay{i - 1}"] if i else []
        if branches and i >= 3 and draw.random() < 0.4:
            inputs.append(f"lay{i - 2}")
        layers.append({"name": f"lay{i}", "inputs": inputs, "forward": seconds(1e-4, 5e-3),
                       "input_gradient": seconds(1e-4, 5e-3),
                       "weight_gradient": seconds(0, 5e-3), "stash": size(0, 9_000_000), "output": size(1000, 9_000_000),
                       "parameters": draw.randint(0, 1_000_000)})
    cuts = sorted(draw.sample(range(1, len(layers)), stages - 1))
    bounds = [0, *cuts, len(layers)]
    chosen = draw.sample(devices, sum(counts))
    plan, micro = [], draw.choice((6, 12))
    for s in range(stages):
        mine, chosen = chosen[:counts[s]], chosen[counts[s]:]
        stage = {"name": f"stg{s}", "layers": [x["name"] for x in layers[bounds[s]:bounds[s + 1]]], "devices": mine,
                 "micro_batch_size": micro}
        if counts[s] > 1 and draw.random() < 0.5:
            stage["share"] = "micro_batches"
        else:
            stage["micro_batch_size"] = micro // counts[s]
        plan.append(stage)
    cable = lambda name, a, b: {"name": name, "between": [a, b], "latency": seconds(0, 1e-4),
                                "bandwidth": Quantity(float(draw.randint(100, 20_000)) * 1e6, "B/s")}
    if draw.random() < 0.6:
        switches, links = ["hub"], [cable(f"cab{i}", d, "hub") for i, d in enumerate(devices)]
    else:
        switches = []
        links = [cable(f"cab{i}x{j}", devices[i], devices[j]) for i in range(len(devices)) for j in range(i)]
    cluster = {"generator": "explicit", "switches": switches, "links": links,
               "types": {"kind0": {"peak": "1 TFLOP/s", "memory_bandwidth": "1 TB/s", "memory": "900 GB"},
                         "kind1": {"peak": "2 TFLOP/s", "memory_bandwidth": "1 TB/s", "memory": "800 GB", "speed": 1.7}},
               "devices": [{"name": d, "type": draw.choice(("kind0", "kind1"))} for d in devices]}
    run = {"schedule": draw.choice(("1f1b", "gpipe", "eager-1f1b")), "micro_batches": 6 * draw.randint(1, 2),
           "iterations": draw.randint(2, 3), "streams": draw.choice(STREAMS), "overlap": draw.random() < 0.8,
           "transfers": draw.choice(("rendezvous", "eager")), "sends": draw.choice(("fifo", "shared"))}
    return {"schema": "scenario/2", "title": "Random", "model": {"builder": "timed", "layers": layers},
            "cluster": cluster, "plan": {"planner": "explicit", "stages": plan}, "run": run, "software": "none"}


def text_of(scenario):
    return "".join(f"{key}: {yaml(value)}\n" for key, value in scenario.items())


def call(*words):
    done = subprocess.run([binary, *words], capture_output=True, text=True, timeout=1200, cwd=folder)
    return done.returncode, done.stdout, done.stderr


class Violation(Exception):
    pass


class Trial:
    def __init__(self, number):
        self.number, self.draw, self.files = number, random.Random(SEED * 1_000_003 + number), 0
        self.checked = 0

    def write(self, scenario):
        self.files += 1
        path = folder / f"t{self.number}-{self.files}.yaml"
        path.write_text(scenario if isinstance(scenario, str) else text_of(scenario))
        return path.name

    def run(self, scenario, *sets, backend="ideal"):
        """The metrics, or the kind of refusal."""
        file = self.write(scenario)
        words = [w for s in sets for w in ("--set", s)]
        code, out, errors = call("run", file, "--backend", backend, "--format", "json", *words)
        if code in (0,):
            result = json.loads(out)
            return {m: result[m] for m in METRICS}
        if code not in (2, 3):
            raise Violation(f"{file} {sets}: exit {code}\n{errors[:600]}")
        return code

    def same(self, name, a, b, tolerance=1e-9):
        self.checked += 1
        if isinstance(a, int) or isinstance(b, int):
            if a != b:
                raise Violation(f"{name}: {a} against {b}")
            return
        for m in METRICS:
            if not math.isclose(a[m], b[m], rel_tol=tolerance, abs_tol=1e-12):
                raise Violation(f"{name}: {m} {a[m]!r} against {b[m]!r}")

    def check(self):
        base = random_scenario(self.draw)
        result = self.run(base)
        self.base = f"t{self.number}-1.yaml"
        for relation in (self.scaled, self.units, self.renamed, self.permuted, self.memory, self.bandwidth,
                         self.peaks, self.resolved, self.set_on_the_command_line, self.console):
            relation(base, result)
        return isinstance(result, dict), self.checked

    def scaled(self, base, result):
        k = self.draw.choice((2.0, 1024.0, 0.125))
        kinds = {"s": k, "B": 1, "B/s": 1 / k}
        other = mapped(base, lambda q, key: q.scaled(kinds[q.kind]))
        for t in other["cluster"]["types"].values():
            t["peak"], t["memory_bandwidth"] = f"{float(t['peak'].split()[0]) / k!r} TFLOP/s", f"{1 / k!r} TB/s"
        expected = result
        if isinstance(result, dict):
            expected = {**result, "makespan_s": k * result["makespan_s"], "period_s": k * result["period_s"],
                        "throughput_samples_per_s": result["throughput_samples_per_s"] / k}
        self.same(f"all times {k:g} times as long", expected, self.run(other))

    def units(self, base, result):
        other = mapped(base, lambda q, key: Quantity(q.value, q.kind, self.draw.randrange(len(Quantity.UNITS[q.kind]))))
        self.same("other units", result, self.run(other))

    def renamed(self, base, result):
        fresh = {}

        def rename(match):
            word = match.group(0)
            if word not in fresh:
                fresh[word] = f"n{self.draw.randrange(10**9)}z{len(fresh)}"
            return fresh[word]
        self.same("other names", result, self.run(re.sub(r"\b(dev|lay|stg|cab|kind)\d+(x\d+)?\b|\bhub\b", rename, text_of(base))))

    def permuted(self, base, result):
        shuffled = lambda items: self.draw.sample(items, len(items))

        def keys(value):
            if isinstance(value, dict):
                return {k: keys(value[k]) for k in shuffled(list(value))}
            return [keys(v) for v in value] if isinstance(value, list) else value
        other = keys(base)
        other["cluster"]["devices"] = shuffled(other["cluster"]["devices"])
        other["cluster"]["links"] = shuffled(other["cluster"]["links"])
        for streams in STREAMS:
            first = {**base, "run": {**base["run"], "streams": streams}}
            second = {**other, "run": {**other["run"], "streams": streams}}
            a = result if streams == base["run"]["streams"] else self.run(first)
            self.same(f"another order of devices, links and keys, streams: {streams}", a, self.run(second))

    def memory(self, base, result):
        text = text_of(base).replace("900 GB", "1900 GB").replace("800 GB", "1800 GB")
        self.same("more memory", result, self.run(text))

    def bandwidth(self, base, result):
        other = self.run(mapped(base, lambda q, key: q.scaled(2) if q.kind == "B/s" else q))
        self.checked += 1
        if isinstance(result, dict) != isinstance(other, dict):
            raise Violation(f"twice the bandwidth: {other} after {result}")
        if isinstance(result, dict) and other["makespan_s"] > result["makespan_s"] * (1 + 1e-9):
            raise Violation(f"twice the bandwidth: {other['makespan_s']} after {result['makespan_s']}")

    def peaks(self, base, result):
        """The simulators with a network compute the same times in different ways; no peak may depend on the rounding."""
        if not isinstance(result, dict):
            return
        found = {}
        for backend in ("fluid", "simgrid"):
            code, out, errors = call("run", self.base, "--backend", backend, "--format", "json")
            if code in (2, 4):  # This build has no such backend.
                return
            found[backend] = [device["peak_memory_bytes"] for device in json.loads(out)["devices"]]
        self.checked += 1
        if found["fluid"] != found["simgrid"]:
            raise Violation(f"peak memory: {found}")

    def resolved(self, base, result):
        code, once, errors = call("resolve", self.base)
        if code != 0:
            raise Violation(f"resolve: exit {code}\n{errors[:600]}") if isinstance(result, dict) else Skip()
        code, twice, errors = call("resolve", self.write(once))
        self.checked += 1
        # Values that the file leaves out are marked as defaults the first time; the values are equal.
        plain = lambda text: [line.split(" #")[0].rstrip() for line in text.splitlines() if not line.startswith("#")]
        if code != 0 or plain(once) != plain(twice):
            raise Violation(f"resolve of its own output differs, exit {code}\n{errors[:600]}")
        self.same("resolved", result, self.run(once))

    def set_on_the_command_line(self, base, result):
        micro = base["run"]["micro_batches"] * 2
        edited = {**base, "run": {**base["run"], "micro_batches": micro, "schedule": "gpipe"}}
        self.same("--set", self.run(edited), self.run(base, f"run.micro_batches={micro}", "run.schedule=gpipe"))

    def console(self, base, result):
        if not isinstance(result, dict):
            return
        code, out, errors = call("run", self.base, "--backend", "ideal", "--no-gantt")
        for label, metric in (("iteration time", "period_s"), ("throughput", "throughput_samples_per_s")):
            found = re.search(rf"(?m)^\s*{label}\s+([\d.e+-]+)\s*(ns|us|ms|s|min|h|/s|k/s|M/s)\b", out) or \
                re.search(rf"(?m)^\s*{label}\s+([\d.e+-]+)(/s)", out)
            self.checked += 1
            if code != 0 or not found:
                raise Violation(f"console: no {label}, exit {code}\n{out[:600]}")
            factor = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "/s": 1}[found.group(2)]
            if not math.isclose(float(found.group(1)) * factor, result[metric], rel_tol=2e-3):
                raise Violation(f"console: {label} {found.group(0)!r}, and JSON has {result[metric]!r}")


class Skip(Exception):
    pass


def one(number):
    trial = Trial(number)
    try:
        return (*trial.check(), None)
    except Skip:
        return False, trial.checked, None
    except Violation as problem:
        return True, trial.checked, f"trial {number}: {problem}"


def main():
    ran = checked = 0
    violations = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for good, count, problem in pool.map(one, range(TRIALS)):
            ran, checked = ran + good, checked + count
            if problem:
                violations.append(problem)
    for problem in violations[:20]:
        print("VIOLATION", problem)
    print(f"{TRIALS} scenarios, {ran} of them ran, {checked} relations checked, {len(violations)} violations")
    if violations:
        print(f"the scenarios are in {folder}")
    else:
        subprocess.run(["rm", "-rf", str(folder)], check=False)
    sys.exit(1 if violations or 2 * ran < TRIALS else 0)


main()
