#!/usr/bin/env python3
"""Speed-ups of papers, simulated and measured over networks that `stagecraft validate --network namespaces` builds here.

    speedups.py STAGECRAFT [--repetitions 3] [--seconds 12] [--cases edge,graph,...] [--json FILE]

A case compares two runs: the time of a micro-batch, or of an iteration, of the second over that of the first. Printed: that
ratio as published, simulated and measured (the median of the repetitions), the times behind it, how late sleeps ended at 90 %,
and the load of the machine. Devices sleep for the time of their layers, so a measured ratio shows what partition, order and
network do, and nothing of what a board loses by more than that. --json keeps each case as soon as it has its times, and goes on
where a file has some.

The boards of PipeEdge are on Gigabit Ethernet and compute for seconds. Their scenarios are made smaller here: with times
divided by `faster`, rates by `slower` and sizes by both, all simulated times are divided by `faster`, as latencies are zero."""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAPER = ROOT / "scenarios/papers/edgepipe"
TYPE = "peak: 1 TFLOP/s, memory: 8 GiB, memory_bandwidth: 25.6 GB/s"
TYPES = f"cluster.types={{rcc: {{{TYPE}}}, minnow: {{{TYPE}, speed: 0.805}}, slow: {{{TYPE}, speed: 0.1}}}}"


def smaller(text, times, sizes):
    """A scenario of PipeEdge whose times and sizes are divided."""
    text = re.sub(r"forward: ([\d.]+) ms", lambda m: f"forward: {float(m[1]) / times:.6g} ms", text)
    return re.sub(r"output: ([\d.]+) MB", lambda m: f"output: {float(m[1]) * 1e3 / sizes:.6g} kB", text)


class Boards:
    """A model of PipeEdge on groups of boards, each as (name, type, count, Mbit/s), in its best stages or for equal boards."""

    def __init__(self, model, groups, faster, micro_batches=8, equal=False, slower=None):
        self.model, self.groups, self.micro_batches, self.equal = model, groups, micro_batches, equal
        self.faster, self.slower = faster, slower or faster

    def per(self):
        return self.micro_batches

    def settings(self, stagecraft, scenario):
        links = ", ".join(f"{name}: {{bandwidth: {rate / self.slower:g} Mbit/s, latency: 0 s}}" for name, _, _, rate in self.groups)
        groups = ", ".join(f"{{name: {name}, type: {kind}, count: {count}, link: {name}}}" for name, kind, count, _ in self.groups)
        sets = [TYPES, f"cluster.links={{{links}}}", f"cluster.groups=[{groups}]", f"run.micro_batches={self.micro_batches}"]
        return sets + ([f"plan={{planner: explicit, stages: [{self.stages(stagecraft, scenario)}]}}"] if self.equal else [])

    def stages(self, stagecraft, scenario):
        """What PipeDream's planner makes for as many equal boards: for these models as many layers on each."""
        names = re.findall(r"- \{name: ([\w.]+),", scenario.read_text())
        boards = [f"{name}{n}" for name, _, count, _ in self.groups for n in range(count)]
        shown = subprocess.run([stagecraft, "show", scenario, "--set", "plan={planner: pipedream}", "--set", f"cluster.groups.board.count={len(boards)}"],
                               cwd=ROOT, capture_output=True, text=True, check=True).stdout
        counts = [int(n) for n in re.findall(r"': (\d+) layer", shown)]
        firsts = [sum(counts[:n]) for n in range(len(counts))]
        return ", ".join(f"{{layers: [{names[f]}..{names[f + n - 1]}], device: {board}}}" for f, n, board in zip(firsts, counts, boards))

    def write(self, stagecraft, folder):
        scenario = pathlib.Path(folder, f"{self.model}.yaml")
        scenario.write_text(smaller((PAPER / scenario.name).read_text(), self.faster, self.faster * self.slower))
        return scenario, self.settings(stagecraft, scenario)


class Box:
    """A scenario of scenarios/boxes with settings."""

    def __init__(self, name, *sets):
        self.name, self.sets = name, list(sets)

    def per(self):
        return 1

    def write(self, _stagecraft, _folder):
        return ROOT / f"scenarios/boxes/{self.name}.yaml", self.sets


def alike(count):
    return [("board", "rcc", count, 1000)]


UNLIKE = [("rcc", "rcc", 4, 1000), ("minnow", "minnow", 4, 1000), ("slow", "slow", 8, 1000)]
SLOW_LINKS = [("rcc", "rcc", 8, 50), ("minnow", "minnow", 8, 5)]
CASES = {  # Published ratio, the first run, and the run whose time is divided by that of the first.
    "ViT-Large: 16 boards over 1": (10.59, Boards("vit-large", alike(16), 20), Boards("vit-large", alike(1), 20, 1)),
    "ViT-Huge: 16 boards over 1": (11.88, Boards("vit-huge", alike(16), 40), Boards("vit-huge", alike(1), 40, 1)),
    "BERT-Large: 16 boards over 1": (12.78, Boards("bert-large", alike(16), 40), Boards("bert-large", alike(1), 40, 1)),
    "ViT-Huge: 16 boards over 4": (3.93, Boards("vit-huge", alike(16), 40), Boards("vit-huge", alike(4), 40, 2)),
    "ViT-Large: 16 unlike boards, best over PipeDream's stages": (4.16, Boards("vit-large", UNLIKE, 20), Boards("vit-large", UNLIKE, 20, 2, equal=True)),
    "ViT-Huge: 16 unlike boards, best over PipeDream's stages": (4.16, Boards("vit-huge", UNLIKE, 40), Boards("vit-huge", UNLIKE, 40, 2, equal=True)),
    "BERT-Large: 16 unlike boards, best over PipeDream's stages": (4.16, Boards("bert-large", UNLIKE, 40), Boards("bert-large", UNLIKE, 40, 2, equal=True)),
    "ViT-Large: 8 boards at 50, 8 at 5 Mbit/s, best over PipeDream's": (None, Boards("vit-large", SLOW_LINKS, 10, 4, slower=1),
                                                                       Boards("vit-large", SLOW_LINKS, 10, 2, equal=True, slower=1)),
    "two branches: GraphPipe over 1F1B": (None, Box("branches"), Box("branches", "plan.sequential=true", "run.schedule=1f1b")),
    **{f"{box}: 2BW over GPipe": (None, Box(box, "run.schedule=2bw"), Box(box, "run.schedule=gpipe")) for box in ("star", "mixed")},
    **{f"{box}: ZB-H1 over 1F1B": (None, Box(box, "run.schedule=zb-h1"), Box(box, "run.schedule=1f1b")) for box in ("star", "mixed")},
}


def once(asked, run):
    """The validation of a run."""
    with tempfile.TemporaryDirectory() as folder:
        scenario, sets = run.write(asked.stagecraft, folder)
        done = subprocess.run([asked.stagecraft, "validate", scenario, "--network", "namespaces", "-q", "--seconds", asked.seconds, "--out", f"{folder}/out",
                               *(word for s in sets for word in ("--set", s))], cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0])
        return json.loads(pathlib.Path(folder, "out/validation.json").read_text())


def measured(asked, published, first, second):
    """Medians of the repetitions of both runs, which take turns."""
    results = [(once(asked, first), once(asked, second)) for _ in range(asked.repetitions)]

    def seconds(side):
        return [[r["iteration_s"][side] / run.per() for r, run in zip(pair, (first, second))] for pair in results]

    times = {side: [statistics.median(column) for column in zip(*seconds(side))] for side in ("simulated", "measured")}
    ratios = [b / a for a, b in seconds("measured")]
    both = [r for pair in results for r in pair]
    return {"published": published, "simulated": times["simulated"][1] / times["simulated"][0], "measured": statistics.median(ratios),
            "each_measured": sorted(ratios), "seconds": times,
            "sleeps_late_p90_s": max(r["network"]["sleeps_late_s"]["p90"] for r in both),
            "nominal": sum(all(abs(x["measured_bytes_per_s"] / x["nominal_bytes_per_s"] - 1) <= 0.02 for x in r["network"]["rates"]) for r in both),
            "runs": len(both), "sure": sum(r["sure"] for r in both), "load": round(os.getloadavg()[0], 1)}


def row(name, case):
    published = f"{case['published']:.2f}" if case["published"] else ""
    return (f"{name:<64} {published:>9} {case['simulated']:>9.3f} {case['measured']:>9.3f} {case['each_measured'][0]:>7.3f}..{case['each_measured'][-1]:.3f} "
            f"{1e3 * case['sleeps_late_p90_s']:>6.1f} ms {case['sure']:>3} of {case['runs']} {case['load']:>6.1f}")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("stagecraft")
    options.add_argument("--repetitions", type=int, default=3)
    options.add_argument("--seconds", default="12")
    options.add_argument("--cases", default="", help="Words of the names of cases, with commas between; default: all")
    options.add_argument("--json", help="File for the times of each case")
    asked = options.parse_args()
    kept = pathlib.Path(asked.json) if asked.json else None
    cases = json.loads(kept.read_text()) if kept and kept.exists() else {}
    print(f"{'case':<64} {'published':>9} {'simulated':>9} {'measured':>9} {'from..to':>14}  late 90 %  sure of   load", flush=True)
    for name, case in CASES.items():
        if not any(word in name for word in asked.cases.split(",")):
            continue
        try:
            cases[name] = cases.get(name) or measured(asked, *case)
        except RuntimeError as refused:
            print(f"{name:<64} {refused}", flush=True)
            continue
        print(row(name, cases[name]), flush=True)
        if kept:
            kept.write_text(json.dumps(cases, indent=1) + "\n")


main()
