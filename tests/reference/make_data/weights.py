"""Weights and losses of a prototype under each weights policy."""
import csv
import re

from texts import number, rows_of, table


POLICIES = {"sync": "sync", "naive": "naive", "stash": "stash", "vsync": "vertical-sync", "2bw": "2bw", "spectrain": "spectrain", "xpipe": "xpipe",
            "spectrain_v2": "spectrain-v2", "pipeoptim": "pipeoptim", "pipeoptim_code": "pipeoptim:as_released", "geo": "geometric", "pb_sc": "spike-compensation",
            "pipeoptim_xs": "pipeoptim", "layerpipe2": "layerpipe2"}
PROTOTYPE = "A prototype of the recurrences that the policies' papers state, which drew other random numbers."


def policy(name):
    first, at, micro = name.partition("@")
    return POLICIES[first] + at + micro if first in POLICIES else None


def weight_versions(data):
    names = "stages,each,micro_batch,stage,forward,backward,staleness,paper_horizon,exact_horizon,spectrain_forward,spectrain_backward,vertical,two_bw".split(",")
    rows = [list(row.values()) for row in rows_of(data / "weights/golden_versions.csv")]
    return table(["Weight versions and horizons on 1F1B without a flush, counted op by op by a prototype: an update after every `each` micro-batches.",
                  "2BW needs each = stages, so other cells are empty."], names, rows)


def weight_predictions(data):
    names = ["optimizer", "rate", "decay", "steps", "flavor", "ahead", "w0", "w1", "w2"]
    rows = [[*list(row.values())[:6], *(number(x) for x in list(row.values())[6:])] for row in rows_of(data / "weights/golden_predictions.csv")]
    return table(["Weights [1, -2, 0.5] after some steps, predicted some updates ahead as PipeOptim's paper and code, geometric sums and SpecTrain do; a prototype in Python."],
                 names, rows)


def stability_limits(data):
    pattern = r"mu (\S+) tau +(\d+) +delayed (\S+) \(theory \S+\) +\+prediction s=tau (\S+) +spike comp (\S+) +both (\S+)"
    rows = re.findall(pattern, (data / "weights/stability_limits.txt").read_text())
    return table(["Largest stable learning rate on a quadratic of curvature one with gradients tau updates old; a prototype, by bisection."],
                 ["momentum", "tau", "plain", "predicted", "compensated", "both"], rows)


def weight_distances(data):
    rows = [[r["task"], r["opt"], r["lr"], policy(r["method"]), r["min"], r["median_ratio_to_naive"], r["max"]]
            for r in rows_of(data / "weights/traj.csv") if r["n"] == "100" and r["method"] != "naive"]
    return table([PROTOTYPE, "Distance from training without a pipeline after 100 updates, relative to naive stale weights: least, median and most of 20 seeds."],
                 ["task", "optimizer", "rate", "method", "least", "median", "most"], rows)


# The settings at which methods differ clearly; at larger rates most runs are near instability.
LOSSES = {"teacher_sgdm_D8": ["0.002", "0.0005", "0.005"], "teacher_sgd_mu0": ["0.005", "0.02"], "glyph_adamw_D8": ["0.001", "0.0003", "0.003"],
          "glyph_sgdm_D8": ["0.003", "0.01", "0.02"], "charlm_adamw_lr1e-3": ["0.001"], "accum_teacher": ["0.005"], "depth_teacher": ["0.002"]}


def runs(data, name):
    for row in csv.reader(open(data / f"weights/{name}.csv")):
        task, depth, _, optimizer, rate, momentum, samples, updates, method, seed, loss, _, _, diverged = row[:14]
        if policy(method):
            curve = next((cell for cell in row if cell.startswith("curve;")), "")
            yield (task, int(depth), optimizer, rate, momentum, samples, updates, policy(method)), "inf" if diverged == "1" else loss, curve


def weight_losses(data):
    found = {}
    for name, rates in LOSSES.items():
        for key, loss, _ in runs(data, name):
            if key[3] in rates and key[1] >= 8:
                found.setdefault(key, []).append(loss)
    return table([PROTOTYPE, "Last losses of each seed (inf: diverged); tasks of scenarios/papers/pipeoptim. depth: number of stages; samples: number in an update."],
                 ["task", "depth", "optimizer", "rate", "momentum", "samples", "updates", "method", "losses"], [[*key, " ".join(x)] for key, x in found.items()])


def weight_curves(data):
    rows = []
    for key, _, curve in runs(data, "glyph_adamw_D8"):
        if key[3] in ["0.001", "0.003", "0.006"]:
            points = [p.split(":") for p in curve.split(";")[1:]]
            assert [int(u) for u, _ in points] == list(range(0, 601, 20))
            rows.append([key[3], key[-1], " ".join(loss for _, loss in points)])
    return table([PROTOTYPE, "Losses of the task glyph with AdamW, 8 stages: one line for each seed, before the first update and after each 20."],
                 ["rate", "method", "losses"], rows)
