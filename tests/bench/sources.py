#!/usr/bin/env python3
"""How far predictions are off by source, with and without the numbers that were fitted to that source.

    sources.py STAGECRAFT [FOLDER]

Prints Markdown: errors of each file of scenarios/predictions, next to one rate for each device type and to the closed form that was
here before (tests/sim/published/closed_form_predictions.csv); the same with the numbers that were fitted to a source replaced by what
one would take without it, and how many of its runs the 80 % interval holds that is printed then; errors of scenarios/unseen; ranking; and each
fitted number with the errors without it. FOLDER keeps simulations, so that a second run is quick; without one they are in that of the user."""
import csv
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SETS, UNSEEN = ROOT / "scenarios/predictions", ROOT / "scenarios/unseen/predictions"
BRIDGE = ("nemo", "megatron-bridge", "megatron-bridge-experts")  # Tables of one document.
COVERAGE = 0.8
SMALL = 1.4e9  # Parameters; as in sim/published/error_classes.cpp.
FEWEST = 5

# Each fitted number: what it is, to which runs, in which files of runs it counts as fitted to their source, and what takes its
# place. (device type, text, text) replaces text in its file; (None, field, value) sets a field of all rows.
FITS = [
    ("share of H100 in fp8, 0.56", "23 of NeMo and Megatron-Bridge", BRIDGE,
     "that of 16 bits, 0.58", [("h100-sxm", "share: 0.56,", "share: 0.58,")]),
    ("shares of B200 in fp8 and mxfp8, 0.50 and 0.495", "2 of Megatron-Bridge", BRIDGE,
     "that of 16 bits, 0.44", [("b200", "share: 0.50,", "share: 0.44,"), ("b200", "share: 0.495,", "share: 0.44,")]),
    ("shares of GB200, fp8 0.49, mxfp8 0.495, nvfp4 0.425", "13, 8 and 7 of Megatron-Bridge", BRIDGE, "that of 16 bits, 0.44",
     [("gb200", f"share: {share},", "share: 0.44,") for share in ("0.49", "0.495", "0.425")]),
    ("shares of GB300, fp8 0.675, mxfp8 0.635, nvfp4 0.445", "11, 7 and 4 of Megatron-Bridge", BRIDGE, "that of 16 bits, 0.44",
     [("gb300", f"share: {share},", "share: 0.44,") for share in ("0.675", "0.635", "0.445")]),
    ("hop of GB200, 4 us", "the fits of its shares", BRIDGE, "as B200, 17 us", [("gb200", "hop: 4 us", "hop: 17 us")]),
    ("share of B200 in 16 bits, 0.44", "19 of SimuMax", ("simumax-dense", "simumax-deepseek"),
     "its table of kernels, 0.508", [("b200", "share: 0.44,", "share: 0.508,")]),
    ("shares of H100 of 500 W, bf16 0.52 and fp8 0.50", "3 and 4 of torchtitan", ("torchtitan", "torchtitan-405b"),
     "as H100 SXM, 0.58 and 0.56", [("h100-hbm2e", "share: 0.52,", "share: 0.58,"), ("h100-hbm2e", "share: 0.50,", "share: 0.56,")]),
    ("factor of NeMo on H100 in 16 bits before 25.09, 1.095", "21 of dgxc", ("dgxc", "dgxc-experts"),
     "1", [("h100-sxm", "bf16: {peak: 989 TFLOP/s, share: 0.58,", f"bf16: {{peak: 989 TFLOP/s, share: {0.58 / 1.095:.9},")]),
    ("factor on GB200 in 16 bits, 1.09", "6 of dgxc", ("dgxc", "dgxc-experts"),
     "1", [("gb200", "bf16: {peak: 2500 TFLOP/s, share: 0.44,", f"bf16: {{peak: 2500 TFLOP/s, share: {0.44 / 1.09:.9},")]),
    ("factor on GB200 in fp8 before 25.09, 0.857", "3 of dgxc", ("dgxc", "dgxc-experts"),
     "1", [("gb200", "share: 0.49,", f"share: {0.49 / 0.857:.9},")]),
    ("FlashAttention 1 in Triton: A100 0.354 and 0.306, H100 0.224 and 0.185", "39 and 16 of llm-foundry", ("llm-foundry",),
     "FlashAttention 2 over 1.4 on A100 and 2 on H100",
     [("a100-80", "forward: {share: 0.354,", "forward: {share: 0.404,"), ("a100-80", "backward: {share: 0.306,", "backward: {share: 0.35,"),
      ("h100-sxm", "forward: {share: 0.224,", "forward: {share: 0.19,"), ("h100-sxm", "backward: {share: 0.185,", "backward: {share: 0.165,")]),
    ("overlap of FSDP1 with its passes, 0", "the same runs", ("llm-foundry",), "all of it", [(None, "fsdp_overlap", 1)]),
    ("launch of Megatron-DeepSpeed and older Megatron-LM, 54 us", "872 of vTrain", ("vtrain-small", "vtrain-large"),
     "10 us", [(None, "launch", 10e-6)]),
    ("launch of Megatron-LM 0.20, 150 us", "32 of megatron-ci", ("megatron-ci",), "as Megatron-Bridge, 110 us", [(None, "launch", 110e-6)]),
    ("launch of NeMo and Megatron-Bridge, 110 us", "64 of Megatron-Bridge with experts", ("megatron-bridge-experts",),
     "as Megatron-LM, 150 us", [(None, "launch", 150e-6)]),
    ("overlap of exchanges of experts, 0.9, and across nodes 0.3655", "85 of Megatron-Bridge with experts", ("megatron-bridge-experts",),
     "0", [(None, "expert_overlap", 0)]),
    ("rate of BLOOM's cards, 1.3 GB/s a GPU, and 0.85 before 25 February 2022", "58 of BLOOM", ("bloom",), "4 x 100 Gbit/s for 8 GPUs, 6.25 GB/s", [(None, "card", "6.25 GB/s")]),
    ("penalty of unaligned attention, 12", "2 of BLOOM", ("bloom",), "1", [("a100-80", "attention_penalty: 12", "attention_penalty: 1")]),
    ("torchtitan: bytes of norms, 5, and overlap of asynchronous TP, 0.45", "the rows' own benchmark", ("torchtitan",),
     "1 and 0.8", [(None, "norm_traffic", 1), (None, "tensor_overlap", lambda own: 0.8 if own > 0 else 0)]),
]
BASES = {"nemo-2024": "nemo", "megatron-bridge-overlap": "megatron-bridge", "megatron-fsdp": "megatron-bridge",
         "torchtitan-async-tp": "torchtitan"}


def read_rows(name):
    """The file of a set, and its rows as maps of all their fields."""
    folder = next(f for f in (SETS, UNSEEN) if (f / f"{name}.yaml").exists())
    file = yaml.safe_load((folder / f"{name}.yaml").read_text())
    rows = [{**file["run"], **dict(zip(file["columns"], row))} for row in file["rows"]]
    return file, [{**file.get("models", {}).get(row.get("model"), {}), **row} for row in rows]


def with_field(file, field, value):
    """The file with a field of all rows replaced; a function makes it from what the row has."""
    rows, columns = file["rows"], file["columns"]
    if field not in columns:
        own = file["run"].get(field, 0)
        return {**file, "run": {**file["run"], field: value(own) if callable(value) else value}}
    at = columns.index(field)
    return {**file, "rows": [[*row[:at], value(row[at]) if callable(value) else value, *row[at + 1:]] for row in rows]}


def replace_text(file, old, new):
    text = file.read_text()
    if old not in text:
        sys.exit(f"{file.name} has no '{old}': correct the list of fits in {__file__}")
    file.write_text(text.replace(old, new))


class Simulations:
    def __init__(self, tool, cache):
        self.tool = tool
        self.environment = {**os.environ, **({"XDG_CACHE_HOME": str(cache)} if cache else {})}

    def text(self, *arguments, **environment):
        done = subprocess.run([self.tool, "reproduce", *arguments, "-q"], cwd=ROOT, capture_output=True, text=True,
                              env={**self.environment, **environment})
        if done.returncode != 0:
            sys.exit(done.stderr)
        return done.stdout

    def errors(self, names, edits=()):
        """Errors of the runs of each set, with these numbers replaced."""
        with tempfile.TemporaryDirectory() as folder:
            devices = pathlib.Path(folder, "topologies/devices")
            shutil.copytree(ROOT / "topologies/devices", devices)  # All: relatives read what is next to them.
            for device, old, new in edits:
                if device is not None:
                    replace_text(devices / f"{device}.yaml", old, new)
            for name in names:
                file, _ = read_rows(name)
                for device, field, value in edits:
                    if device is None:
                        file = with_field(file, field, value)
                pathlib.Path(folder, f"{name}.yaml").write_text(yaml.safe_dump(file, sort_keys=False, width=1e9))
            rows = list(csv.DictReader(self.text(*(f"{folder}/{name}.yaml" for name in names), "--format", "csv",
                                                 STAGECRAFT_PATH=folder).splitlines()))
        errors = {name: [] for name in names}
        for row in rows:
            errors[row["runs"]].append(float(row["error"]))
        return errors


def summary(errors):
    sizes = sorted(abs(e) for e in errors)
    n = len(sizes)
    return {"n": n, "median": 100 * statistics.median(sizes), "p90": 100 * sizes[min(n - 1, n * 9 // 10)],
            "mape": 100 * statistics.fmean(sizes), "bias": 100 * statistics.fmean(errors),
            "within": 100 * sum(s <= 0.1 for s in sizes) / n}


def closed_form_errors(name, rows):
    """Of the runs that the closed form predicted, in the order of the rows; files that were given apart have other names."""
    prefix = {"dgxc-experts": "dgxc"}.get(name, name)
    lines = [line.split(",") for line in (ROOT / "tests/sim/published/closed_form_predictions.csv").read_text().splitlines()]
    known = [(float(c[2]), float(c[3])) for c in lines if c[0] == name or c[0].startswith(prefix + "-") and name != "megatron-bridge"]
    errors = []
    for row in rows:
        at = next((i for i, (measured, _) in enumerate(known) if abs(measured / row["seconds"] - 1) < 1e-6), None)
        if at is not None:
            measured, predicted = known.pop(at)
            errors.append(predicted / measured - 1)
    return errors


def parameters(row):
    hidden, heads = row["hidden"], row["heads"]
    keys = row.get("key_value_heads") or heads
    width = row.get("width") or 4 * hidden
    layer = hidden * hidden * (2 + 2 * keys / heads) + (3 if row.get("gated") else 2) * hidden * width
    return row["layers"] * layer + (1 if row.get("tied", True) else 2) * row["vocabulary"] * hidden


def class_of(row):
    software = BASES.get(row["software"], row["software"])
    return row["device"], software, "experts" if "experts" in row else "small" if parameters(row) < SMALL else "large"


def half_width(sizes):
    sizes = sorted(sizes)
    return sizes[min(math.ceil(COVERAGE * (len(sizes) + 1) - 1e-9), len(sizes)) - 1]


def publication(name):
    return BRIDGE if name in BRIDGE else (name,)


def coverage_left_out(name, errors, shipped, rows):
    """How many runs of a source the interval holds that is printed without it, and the median half width. Errors are without the
    numbers that were fitted to it; a class that no other source has takes the recorded interval of unknown software."""
    unknown = {line.split(",")[3]: float(line.split(",")[5])
               for line in (ROOT / "scenarios/predictions/intervals.csv").read_text().splitlines() if line.startswith(",,unknown,")}
    others = {}
    for other, list_of in shipped.items():
        if other not in publication(name):
            for error, row in zip(list_of, rows[other]):
                others.setdefault(class_of(row), []).append(abs(1 / (1 + error) - 1))
    widths, held = [], 0
    for error, row in zip(errors, rows[name]):
        kind = class_of(row)
        alike = others.get(kind, [])
        widths.append(half_width(alike) if len(alike) >= FEWEST else unknown[kind[2]])
        held += abs(1 / (1 + error) - 1) <= widths[-1]
    return held, statistics.median(widths)


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    return [order.index(i) for i in range(len(values))]


def utilization_ranks(rows, errors):
    """Rank correlation (Spearman) of predicted with measured MFU on each device type."""
    by_device = {}
    for row, error in zip(rows, errors):
        tokens = row["micro_batch"] * row["micro_batches"] * row.get("replicas", 1) * row["sequence"]
        flops = tokens * (6 * parameters(row) + 6 * row["layers"] * row["hidden"] * row["sequence"])
        measured = flops / row["seconds"] / row.get("replicas", 1)
        by_device.setdefault((row["device"], row["format"]), []).append((measured, measured / (1 + error)))
    lines = {}
    for key, pairs in sorted(by_device.items()):
        a, b = (ranks([p[i] for p in pairs]) for i in (0, 1))
        lines[key] = (len(pairs), statistics.correlation(a, b) if len(pairs) > 2 else None)
    return lines


def table(heading, rows):
    print("| " + " | ".join(heading) + " |\n|" + "---|" * len(heading))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def cells(s):
    return [f"{s['median']:.1f}", f"{s['p90']:.1f}", f"{s['mape']:.1f}", f"{s['bias']:+.1f}", f"{s['within']:.0f} %"]


def by_kind(errors_of, rows):
    """Errors of all sources together, by kind of model."""
    kinds = {"large": "large dense models", "experts": "models with experts", "small": "small dense models"}
    pooled = {text: [] for text in kinds.values()}
    for name, errors in errors_of.items():
        for error, row in zip(errors, rows[name]):
            pooled[kinds[class_of(row)[2]]].append(error)
    return pooled


def print_errors(shipped, rows, one_rate):
    print("## Errors by source\n\nAbsolute errors in percent; the last columns are MAPEs.\n")
    lines = []
    for name, errors in shipped.items():
        closed = closed_form_errors(name, rows[name])
        lines.append([name, str(len(errors)), *cells(summary(errors)), one_rate[name], f"{summary(closed)['mape']:.1f}" if closed else "-"])
    lines += [[kind, str(len(errors)), *cells(summary(errors)), "", ""] for kind, errors in by_kind(shipped, rows).items()]
    table(["source", "n", "median", "90 %", "MAPE", "mean", "within 10 %", "one rate", "closed form"], lines)


def print_left_out(simulations, shipped, rows):
    print("## Errors of a source without the numbers that were fitted to it\n\nThe interval is the one that is printed without the source: "
          "of another source with the same device type and framework, or of\nunknown software.\n")
    lines, held_all, n_all, left_out = [], 0, 0, {}
    for name in shipped:
        edits = [edit for _, _, sets, _, list_of in FITS if name in sets for edit in list_of]
        errors = simulations.errors([name], edits)[name] if edits else shipped[name]
        left_out[name] = errors
        held, width = coverage_left_out(name, errors, shipped, rows)
        held_all, n_all = held_all + held, n_all + len(errors)
        lines.append([name, str(len(errors)), *cells(summary(errors)), f"{100 * width:.1f} %", f"{held}, {100 * held / len(errors):.0f} %"])
    lines += [[kind, str(len(errors)), *cells(summary(errors)), "", ""] for kind, errors in by_kind(left_out, rows).items()]
    lines.append(["all", str(n_all), *[""] * 6, f"{held_all}, {100 * held_all / n_all:.0f} %"])
    table(["source", "n", "median", "90 %", "MAPE", "mean", "within 10 %", "half width", "held"], lines)


def print_unseen(simulations, shipped, rows):
    print("## Sources that nothing had seen before; facts were added since (see unseen/README.md)\n\nThe files of scenarios/unseen as they are; "
          "the interval is that of another source with the same device type and framework,\nor of unknown software.\n\n"
          "Two files have rows that a number was chosen on: fms-fsdp (norm_traffic 14, fitted to 14 of 22, and data_overlap 0.9, put into 6) "
          "and nemo-long\n(attention of NeMo 24.03, 9 of 17).\n")
    names = sorted(p.stem for p in UNSEEN.glob("*.yaml"))
    errors_of, rows_of = simulations.errors(names), {name: read_rows(name)[1] for name in names}
    lines, held_all = [], 0
    for name, errors in errors_of.items():
        held, width = coverage_left_out(name, errors, shipped, {**rows, **rows_of})
        held_all += held
        lines.append([name, str(len(errors)), *cells(summary(errors)), f"{100 * width:.1f} %", f"{held}, {100 * held / len(errors):.0f} %"])
    every = [e for errors in errors_of.values() for e in errors]
    lines.append(["all", str(len(every)), *cells(summary(every)), "", f"{held_all}, {100 * held_all / len(every):.0f} %"])
    table(["source", "n", "median", "90 %", "MAPE", "mean", "within 10 %", "half width", "held"], lines)


def print_fits(simulations, shipped):
    print("## Fitted numbers\n\nMAPE in percent of the runs of these files, with the number and without it.\n")
    lines = []
    for number, origin, sets, instead, edits in FITS:
        without = simulations.errors(list(sets), edits)
        changes = [f"{name} {summary(shipped[name])['mape']:.1f}, {summary(without[name])['mape']:.1f}" for name in sets]
        lines.append([number, origin, instead, "; ".join(changes)])
    table(["number", "runs", "without it", "MAPE with it, without it"], lines)


def main():
    sys.stdout.reconfigure(line_buffering=True)  # The last table takes minutes.
    simulations = Simulations(os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None)
    names = sorted(p.stem for p in SETS.glob("*.yaml"))
    rows = {name: read_rows(name)[1] for name in names}
    shipped = simulations.errors(names)
    text = simulations.text("predictions", "--wide")
    tables = [line.split() for line in text.splitlines()]
    one_rate = {line[0]: line[-2] for line in tables if "|" in line and line[0] in rows}
    print_errors(shipped, rows, one_rate)
    print_left_out(simulations, shipped, rows)
    print_unseen(simulations, shipped, rows)
    print("## Ranking\n\n```\n" + text[text.index("Which of two divisions"):text.index("Memory of the fullest")].strip() + "\n```\n")
    for (device, number_format), (n, rank) in utilization_ranks(rows["llm-foundry"], shipped["llm-foundry"]).items():
        print(f"llm-foundry on {device} in {number_format}, {n} runs: rank correlation of MFU {'-' if rank is None else f'{rank:.2f}'}")
    print()
    print_fits(simulations, shipped)


if __name__ == "__main__":
    main()
