#!/usr/bin/env python3
"""Makes the files of tests/reference/data from the folder of originals: what the reference systems printed, and their inputs.

make_reference_data.py [--check [PROGRAM]]

The environment variable STAGECRAFT_REFERENCE_DATA names the folder. With --check the script writes nothing, names each file that differs
and runs PROGRAM, which reads the originals with Stagecraft's readers; it exits with 77, "skipped", where the variable is not set.
"""

import csv
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent / "data"


def compact(value):
    def tidy(x):
        if isinstance(x, dict):
            return {key: tidy(item) for key, item in x.items()}
        if isinstance(x, (list, tuple)):
            return [tidy(item) for item in x]
        return int(x) if isinstance(x, float) and x == int(x) and abs(x) < 1e15 else x
    return json.dumps(tidy(value), separators=(",", ":"))


def number(text):
    """The shortest text of the same number."""
    return compact(float(text))


def table(source, names, rows):
    return "".join(f"# {line}\n" for line in source) + "\n".join(",".join(map(str, row)) for row in [names, *rows]) + "\n"


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def listed(entries, indent=1):
    """A JSON list with one entry a line."""
    pad = " " * indent
    return "[\n" + ",\n".join(pad + e for e in entries) + "\n" + " " * (indent - 1) + "]"


def mapped(entries):
    return "{" + listed([f"{compact(key)}: {compact(value)}" for key, value in entries.items()])[1:-1] + "}"


def document(source, **parts):
    """A JSON object of texts that are JSON already."""
    return "{\n" + ",\n".join(f'"{key}": {text}' for key, text in [("source", compact(source)), *parts.items()]) + "\n}\n"


def digest(text):
    """64-bit FNV-1a, as tests/support/reference.hpp computes it."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


# ---- schedules ----

SCHEDULE_SOURCES = {
    "torch_": "PyTorch 2.8.0, torch.distributed.pipelining, run without devices",
    "torchtest_": "PyTorch, schedule_registry.py of its pipelining tests, transcribed",
    "DualPipeV": "PyTorch 2.11, ScheduleDualPipeV, transcribed; DeepSeek's dualpipev.py gives the same",
    "DualPipe": "deepseek-ai/DualPipe 3da1bbea, run with recording stubs",
    "Chimera": "Shigangli/Chimera, run; rank orders in lock step",
    "megatron_": "NVIDIA/Megatron-LM d98e8a64, its tables run",
    "zb_ILP": "sail-sg zero-bubble v0.1.0, its integer program solved with CBC 2.10.8",
    "zb_light_H1": "sail-sg zero-bubble v0.1.0, run",
    "zb_": "sail-sg/zero-bubble-pipeline-parallelism 39f2c186, run",
    "1F1B_recompute": "written from Megatron-LM's full recomputation",
    "1F1B": "sail-sg zero-bubble, basic1f1b.py, run",
    "": "written from the paper of its name",
}


def cells(path):
    return [[cell for cell in line.split(",") if cell] for line in path.read_text().splitlines()]


def schedule_entry(folder, e):
    rows = cells(folder / e["file"])
    facts = {"name": e["file"].removesuffix(".csv"), "family": e["name"], "p": e["p"], "v": e["v"], "m": e["m"],
             "slices": e["seq_slices"], "torch": e["torch_loadable"],
             "ranks": [e["stage_to_rank"][str(s)] for s in range(e["num_stages"])]}
    if "mem_limit_chunks" in e:
        facts["limit"] = e["mem_limit_chunks"]
    if "costs_used" in e:
        facts["costs"] = {key: value for key, value in e["costs_used"].items() if key != "mem"}
    if "measured_result" in e:
        facts["spans"] = {ours: e["measured_result"][theirs] for ours, theirs in
                          [("optimum", "ilp_objective"), ("heuristic", "heuristic_objective"), ("longest", "span_max")] if theirs in e["measured_result"]}
    parts = [compact(facts)[:-1]]
    parts += [f'"{key}":{compact(e[theirs])}' for key, theirs in
              [("peaks", "peak_act_chunks_alpha0"), ("peaks_half_freed", "peak_act_chunks_alpha0.5")]]
    figures = {model: [x["makespan"], x["busy_max"], x["bubble_makespan"], *([x["steady_period_nosync"]] if "steady_period_nosync" in x else [])]
               for model, x in e["metrics"].items()}
    parts.append(f'"times":{compact(figures)}')
    if "comms_file" in e:
        lowered = cells(folder / e["comms_file"])
        parts.append('"lowered":' + compact([f"{len(row)} {digest(','.join(row))}" for row in lowered]))
    parts.append('"order":' + listed([compact(",".join(row)) for row in rows], 2) + "}")
    return ",\n ".join(parts)


def schedules(data):
    folder = data / "schedules"
    index = json.loads((folder / "index.json").read_text())
    families = sorted({e["name"] for e in index["entries"]})
    sources = {f: next(text for start, text in SCHEDULE_SOURCES.items() if f.startswith(start)) for f in families}
    models = {name: [x["cost"]["F"], x["cost"]["I"], x["cost"]["W"], x["comm"]] for name, x in index["cost_models"].items()}
    return document("Orders of work that other systems made, a row for each rank. times: makespan, busiest rank, bubble, period under each of the "
                    "cost models (forward, input gradient, weight gradient, message). lowered: number of actions of each rank after PyTorch 2.11's "
                    "lowering, and their FNV-1a digest. peaks: stashed activations. invalid: torch280 is PyTorch 2.8.0's, the others are made by hand.",
                    families=mapped(sources),
                    cost_models=compact(models),
                    invalid=listed([compact({"name": e["file"].removeprefix("invalid/").removesuffix(".csv"),
                                             "order": (folder / e["file"]).read_text().splitlines()}) for e in index["invalid"]]),
                    schedules=listed([schedule_entry(folder, e) for e in index["entries"]]))


def batches(data):
    """Messages that DualPipe sends as one batch, before which cell of its order."""
    parts = {}
    for name in ["DualPipe_p4_v2_m8", "DualPipe_p8_v2_m20"]:
        ranks = json.loads((data / "schedules" / f"{name}_p2p_batches.json").read_text())
        parts[name] = listed([compact([[b["before_op"], ",".join(f"{op[1]}{op[0]}{op[2]}" for op in b["ops"])] for b in rank]) for rank in ranks])
    return document("deepseek-ai/DualPipe 3da1bbea, run with recording stubs: for each rank, the cell of the order and the messages batched before it", **parts)


def deadlocks(data):
    results = json.loads((data / "schedules/published/nccl_results.json").read_text())
    return table(["How many orders of a family pass when messages block until both ends meet, of how many tried; counted by a model of NCCL's streams",
                  "over the families of schedules.json, with more sizes than are restated there. Variant: placement of messages/streams[/grouped]."],
                 ["family", "variant", "passed", "tried"], [[f, v, *counts] for f, row in results.items() for v, counts in row.items()])


def integer_program(data):
    points = json.loads((data / "schedules/published/ilp_results.json").read_text())
    return table(["Optimal spans of equal stages: integer program of sail-sg zero-bubble v0.1.0 (Qi et al., arXiv 2401.10241), solved with CBC 2.10.8.",
                  "A forward takes two units of memory, and each gradient frees one."],
                 ["p", "m", "forward", "input_gradient", "weight_gradient", "message", "memory", "optimum"],
                 [[*pt["pt"], number(pt["ilp"])] for pt in points])


# ---- GraphPipe and layer graphs ----

def quoted_list(text):
    return [int(x) for x in re.findall(r"-?\d+", text)]


def graph_schedules(data):
    entries = []
    for block in (data / "graphpipe/schedule_fixtures.yaml").read_text().split("- name: ")[1:]:
        field = lambda key: re.search(rf"^  {key}: (.*)$", block, re.M).group(1)
        edges = quoted_list(field("edges"))
        entries.append(compact({"name": block.split("\n")[0].strip(), "mini_batch": int(field("mini_batch")), "micro_batches": quoted_list(field("micro_batch")),
                                "groups": quoted_list(field("k")), "edges": list(zip(edges[::2], edges[1::2])), "forward": float(field("tF")),
                                "backward": float(field("tB")), "in_flight": quoted_list(field("inflight_samples")), "makespan": float(field("makespan")),
                                "orders": re.findall(r'^    - "(.*)"$', block, re.M)}))
    strategies = []
    for line in (data / "graphpipe/flexflow_pr308_strategies.yaml").read_text().splitlines():
        if line.startswith("- {"):
            stages = [quoted_list(x) for x in re.findall(r"\[(\d[\d,]*)\]", line.split("stages:")[1])]
            strategies.append(compact({"file": re.search(r"file: ([^,]*)", line).group(1), "stages": stages}))
    return document("Orders, samples in flight and makespans of GraphPipe's rules (Jeon et al., ASPLOS 2025, sections 5 and 6), by a separate generator; "
                    "strategies: micro-batch, buffer in samples, group and devices of each stage in the files of flexflow-train, pull request 308 (210b0c7be)",
                    schedules=listed(entries), strategies=listed(strategies))


def layer_graphs(data):
    names = ["name", "type", "inputs", "output", "parameters", "forward", "backward", "stash", "tie"]
    theirs = ["name", "type", "inputs", "out_elems", "params", "fwd_flops", "bwd_flops", "stash_elems", "tie"]
    rows = [[path.stem, *(row[key] for key in theirs)] for path in sorted((data / "graphpipe/models").glob("*.csv"))
            if path.stem != "models_summary" for row in rows_of(path)]
    return table(["Layers of models, counted by a separate program from the papers' sizes. Elements of the output and the stash, FLOP of a sample."],
                 ["model", *names], rows)


# ---- PipeDream, Piper, PipeDream-2BW ----

def pipedream_orders(data):
    entries = []
    for v in json.loads((data / "msr/schedule_vectors.json").read_text())["vectors"]:
        facts = {key: v[key] for key in ["schedule", "replication", "minibatches", "depth", "microbatches", "microbatches_per_batch", "batches"] if key in v}
        if "makespan_zero_comm" in v:
            facts["makespans"] = list(v["makespan_zero_comm"].values())
            assert list(v["makespan_zero_comm"]) == ["F=1,B=2", "F=1,B=1", "F=s+1,B=2(s+1)"]
        workers = []
        for w in v["workers"]:
            ops = " ".join(f"{op[0]}{op[1]}" + (f"@{op[2]}" if len(op) > 2 and op[2] is not None else "") for op in w["ops"])
            workers.append(compact([w["stage"], w.get("replica", 0), w.get("weight_versions_stashed", 0), ops]))
        entries.append(compact(facts)[:-1] + ',"workers":' + listed(workers, 2) + "}")
    return document("Orders of the runtimes of msr-fiddle/pipedream 7db6a1c and its branch pipedream_2bw d6e2538, by an emulation of their control flow. "
                    "Workers: stage, replica, stashed weight versions (0: not said), ops with @ the weight version; makespans without messages for forwards and "
                    "backwards of (1, 2), (1, 1) and (s + 1, 2 s + 2) in stage s", vectors=listed(entries))


def pipedream_profiles(data):
    parts = {}
    for path in sorted((data / "msr/profiles").glob("*.graph.txt")):
        layers, edges = [], []
        for line in path.read_text().splitlines():
            words = line.strip().split(" -- ")
            if line.startswith("\t"):
                edges.append(" ".join(words))
            elif line.strip():
                figures = [re.search(rf"{key}=(\[[^\]]*\]|[^,\s]*)", words[2]).group(1) for key in
                           ["forward_compute_time", "backward_compute_time", "activation_size", "parameter_size"]]
                figures[2] = ";".join(number(x) for x in figures[2].strip("[]").split(";"))
                layers.append(" ".join([words[0], words[1].split("(")[0], *(x if ";" in x else number(x) for x in figures)]))
        parts[path.name.removesuffix(".graph.txt")] = f'{{"layers": {listed(map(compact, layers))},\n "edges": {compact(edges)}}}'
    return document("Measured layers of a mini-batch, profiles of msr-fiddle/pipedream 7db6a1c (Narayanan et al., SOSP 2019). Layer: name, kind, forward and backward "
                    "milliseconds, bytes of the outputs, bytes of the parameters. Edge: from, to", **parts)


def pipedream_optimizer(data):
    names = ["model", "batch_scale", "setting", "machines", "bandwidths", "straight", "transfers", "memory", "fewer", "states", "seconds", "data_parallel_seconds",
             "cpu_seconds", "error"]
    theirs = ["model", "batch_scale", "setting", "machines", "bw_Bps", "straight", "activation_comm", "mem_limit", "use_fewer", "states", "bottleneck_s", "dp_s",
              "cpu_s", "error"]
    rows = []
    for row in rows_of(data / "msr/pipedream_optimizer_runs.csv"):
        if (data / f"msr/profiles/{row['model']}.graph.txt").exists():
            row["error"] = "stopped after 200 s" if "timeout" in row["error"] else row["error"].split("(")[0]
            rows.append([row[key] for key in theirs])
    return table(["Answers of PipeDream's optimizer (msr-fiddle/pipedream 7db6a1c, optimizer_graph_hierarchical.py) on the profiles of pipedream_profiles.json:",
                  "the slowest stage in seconds of a mini-batch, of data parallelism too. Bandwidths are bytes a second of each level."], names, rows)


def piper(data):
    given = json.loads((data / "msr/piper_bert32a100.json").read_text())
    cost = {(e["sourceId"], e["destId"]): e["communicationCost"] for e in given["edges"]}
    layers = []
    for i, n in enumerate(given["nodes"]):
        assert n["id"] == i
        outs = {k: v for k, v in n["TMPCs"]["2"][0]["syncTimeBw"].items()}
        for degree, variants in n["TMPCs"].items():
            for v in variants:
                assert {int(k): x for k, x in v["syncTimeFw"].items()} == {a: 0 if degree == "1" else c for (a, b), c in cost.items() if b == i}
                assert v["syncTimeBw"] == {k: 0 if degree == "1" else x for k, x in outs.items()}
        figures = {d: [[v[key] for key in ["timePerSample", "parameterSize", "memoryUsageA", "memoryUsageB"]] for v in vs] for d, vs in n["TMPCs"].items()}
        layers.append(compact({"name": n["name"], "variants": figures, "gradient_bytes": outs}))
    edges = [[a, b, int(c)] for (a, b), c in cost.items()]
    names = {"maxDevices": "devices", "maxMemoryPerDevice": "memory", "bandwidth": "bandwidth", "mbsInBatch": "micro_batches"}
    return document("Piper's input of BERT with 32 layers on A100 (msr-fiddle/piper d7fc8cf; Tarnawski et al., NeurIPS 2021). Variants for each degree of tensor parallelism, "
                    "without and with recomputation: seconds of a sample, bytes of parameters, of memory for each micro-batch in flight and besides. With a degree above 1 each edge "
                    "is gathered forward, its bytes, and backward, gradient_bytes by reader",
                    limits=compact({ours: given[key] for key, ours in names.items()}), layers=listed(layers), edges=compact(edges))


def piper_runs(data):
    names = ["layers", "devices", "memory_GiB", "micro_batches", "cuts", "seconds", "without_data", "without_tensor", "without_recomputation", "cpu_seconds"]
    theirs = ["layers", "k", "memGiB", "mbs", "ideals", "tps", "noDP", "noTP", "noAR", "cpu_s"]
    return table(["Answers of Piper (msr-fiddle/piper d7fc8cf) on piper_input.json, to which transformer layers are added: seconds of a micro-batch, also without data",
                  "parallelism, tensor parallelism or recomputation; 1e+30: nothing fits."],
                 names, [[row[key] for key in theirs] for row in rows_of(data / "msr/piper_bert_runs.csv")])


def dnn_partitioning(data):
    given = json.loads((data / "msr/dnn_partitioning_bert24_training.json").read_text())
    halves = {backward: {n["colorClass"]: n for n in given["nodes"] if n["isBackwardNode"] == backward} for backward in (0, 1)}
    color = {n["id"]: n["colorClass"] for n in given["nodes"]}
    edges = {backward: {(color[e["sourceId"]], color[e["destId"]]): [e["cost"], e["size"]] for e in given["edges"] if e["sourceId"] in ids}
             for backward, ids in ((b, {n["id"] for n in half.values()}) for b, half in halves.items())}
    assert all(n["supportedOnFpga"] == 1 for n in given["nodes"]) and halves[0].keys() == halves[1].keys() and edges[0].keys() == edges[1].keys()
    layers = [compact([c, *(x for half in halves.values() for x in (half[c]["id"], half[c]["fpgaLatency"], half[c]["size"]))]) for c in halves[0]]
    return document("Input of dnn-partitioning for training BERT with 24 layers (msr-fiddle/dnn-partitioning, throughput-inputs/LayerGraphs; Tarnawski et al., NeurIPS 2020). "
                    "Layers: class; id, milliseconds and bytes of the forward node; the same of the backward node. Edges between classes: cost and bytes of the tensor; of its gradient",
                    limits=compact({"devices": given["maxFPGAs"], "memory": given["maxSizePerFPGA"]}), layers=listed(layers),
                    edges=listed([compact([*ends, *edges[0][ends], *edges[1][ends]]) for ends in edges[0]]))


def dnn_partitioning_runs(data):
    return table(["Answers of dnn-partitioning (msr-fiddle/dnn-partitioning) on dnn_partitioning_input.json: the largest load of an accelerator, in its milliseconds."],
                 ["method", "load"],
                 [[row["mode"], row["objective"]] for row in rows_of(data / "msr/dnn_partitioning_runs.csv")
                  if row["file"] == "throughput-inputs/LayerGraphs/bert24_training.json"])


def two_bw(data):
    return table(["Claims of Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training (PipeDream-2BW), ICML 2021."],
                 ["section", "claim", "model", "value", "condition", "kind"],
                 [[r["source"].removeprefix("ICML21 "), r["claim"], r["model"], r["value"], r["condition"], r["kind"]]
                  for r in csv.DictReader(open(data / "msr/published_2bw.csv")) if None not in r and r["kind"] is not None])


# ---- PipeEdge ----

def numbers_in(text):
    return [json.loads(x) for x in re.findall(r"[-+.\de]+", text)]


def edgepipe(data):
    models, times, cases = {}, {}, []
    for folder in sorted((data / "edgepipe/cases").iterdir()):
        expected = json.loads((folder / "expected.json").read_text())
        name, text = expected["model"], (folder / "models.yml").read_text()
        models[name] = [int(re.search(r"parameters_in: (\d+)", text).group(1)),
                        *(numbers_in(re.search(rf"{key}: \[(.*?)\]", text, re.S).group(1)) for key in ["parameters_out", "mem_MB"])]
        devices = dict(re.findall(r"^(\S+): \[(.*?)\]", (folder / "devices.yml").read_text(), re.M | re.S))
        types = []
        for kind, rate, memory, model, batch, seconds in re.findall(
                r"^(\S+):\n  bw_Mbps: (\S+)\n  mem_MB: (\S+)\n  model_profiles:\n    (\S+):\n    - batch_size: (\d+)\n      dtype: torch.float32\n      time_s: \[(.*?)\]",
                (folder / "device_types.yml").read_text(), re.M | re.S):
            assert model == name and int(batch) == expected["batch_size"] == 8
            key = times.setdefault(compact(numbers_in(seconds)), f"t{len(times)}")
            types.append([kind, json.loads(rate), json.loads(memory), key, devices.pop(kind).count(",") + 1])
        assert not devices
        optimum = expected["optimum"] or {}
        assert expected["buffers_in"] == expected["buffers_out"]
        cases.append(compact({"name": folder.name, "model": name, "buffers": expected["buffers_in"], "types": types, "optimum": optimum.get("bottleneck_s"),
                              "latency": optimum.get("one_microbatch_latency_s")}))
    return document("Inputs of PipeEdge's scheduler (usc-isi/PipeEdge 1a68bbb) with measured layer times of 8 samples, and variations of them; optimal slowest stage in seconds "
                    "(null: nothing fits) and a latency, proven by exhaustive search or a second program. Model: elements of the input and of the output of each "
                    "layer, MB of each layer. Type: name, Mbps, MB, times, hosts",
                    models=mapped(models),
                    times=mapped({key: json.loads(text) for text, key in times.items()}), cases=listed(cases))


def edgepipe_random(data):
    models, times, cases = {}, {}, []
    for name in ["small_multi_200", "small_onehost_100"]:
        for line in (data / f"edgepipe/random/{name}.jsonl").read_text().splitlines():
            i = json.loads(line)
            name, m, types = f"random-{len(models)}", i["model"], []
            models[name] = [m["parameters_in"], m["parameters_out"], m["mem_MB"]]
            for kind, x in i["device_types"].items():
                times[f"{name}-{kind}"] = x["model_profiles"]["toy"][0]["time_s"]
                types.append([kind, x["bw_Mbps"], x["mem_MB"], f"{name}-{kind}", len(i["devices"][kind])])
            cases.append(compact({"name": name, "model": name, "buffers": 2, "types": types, "optimum": i["exact"]["bottleneck_s"] if i["exact"]["feasible"] else None,
                                  "latency": None}))
    return document("Random inputs of PipeEdge's scheduler with the optimum of an exhaustive search, fields as in edgepipe.json",
                    models=mapped(models), times=mapped(times), cases=listed(cases))


def edgepipe_odd(data):
    folder = data / "edgepipe/interop"
    files = ["models", "device_types", "devices"]
    entries = []
    for released in json.loads((folder / "released_behaviour.json").read_text()):
        arguments = dict(zip(released["args"][::2], released["args"][1::2]))
        changed = {f: text for f in files if (text := (folder / released["name"] / f"{f}.yml").read_text()) != (folder / "ok" / f"{f}.yml").read_text()
                   or released["name"] == "ok"}
        entries.append(compact({"name": released["name"], "model": arguments["-m"], "batch": int(arguments.get("-b", 8)),
                                "dtype": arguments.get("-d", "torch.float32"), **changed}))
    return document("Small odd inputs for PipeEdge's scheduler; a file that is missing is that of the first", inputs=listed(entries))


# ---- weights ----

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


# ---- other simulators ----

def closed_forms(data):
    rows = [[x.strip("+%") for x in row] for row in csv.reader(open(data / "simulators/closed_form_vs_des.csv"))][1:]
    return table(["Errors of two closed forms of 1F1B against an event simulation, in percent, means of random pipelines on 4, 8 or 16 devices:",
                  "with messages as Sailor's runtime_simulator.py adds them, and (m + p - 1) times the longest stage."],
                 ["spread", "delay", "pipelines", "with_messages", "equal_stages"], [[r[0], r[1], r[2], r[3], r[5]] for r in rows])


def chakra(data):
    rows = []
    for rank in range(2):
        for line in (data / f"simulators/chakra_example_2rank/pp2.{rank}.txt").read_text().splitlines():
            if line.startswith("Node"):
                value = lambda pattern: (re.search(pattern, line) or ["", "0"])[1]
                rows.append([rank, value(r" id: (\d+)"), value(r'Node .*?name: "(\w+)"'), value(r"type: (\w+)_NODE"), value(r"duration_micros: (\d+)"),
                             " ".join(re.findall(r"(?:data|ctrl)_deps: (\d+)", line)),
                             *(value(rf'name: "{key}" uint\d+_val: (\d+)') for key in ["comm_src", "comm_dst", "comm_tag", "comm_size"])])
    return table(["1F1B of two stages and four micro-batches as nodes of a Chakra trace (schema 0.0.4), replayed by ASTRA-sim's analytical backend: it ends after",
                  "15076504 ns on rank 0 and 13076504 ns on rank 1 with 500 ns and 50 GB/s."],
                 ["rank", "id", "name", "type", "microseconds", "after", "comm_src", "comm_dst", "comm_tag", "comm_size"], rows)


# ---- kernels and collectives ----

def product_shares(data):
    rows = []
    for row in rows_of(data / "parallelism/kernel_efficiency_simumax.csv"):
        if row["op"] == "matmul":
            size = dict(re.findall(r"(\w+)=(\d+)", row["shape"]))
            rows.append([row["system"], *(size[key] for key in ["m", "n", "k", "b"]), f'{float(row["efficiency"]):.6g}'])
    return table(["Measured shares of the peak of matrix products by shape, MooreThreads/SimuMax, configs/system, to six digits."],
                 ["system", "m", "n", "k", "batch", "share"], rows)


def all_reduces(data):
    found = {}
    for row in rows_of(data / "parallelism/nccl_allreduce_a100_v100_vtrain.csv"):
        assert int(row["bytes"]) % 1048576 == 0
        found.setdefault((row["gpu"], row["gpus"]), []).append(f'{int(row["bytes"]) // 1048576}:{number(row["us"])}')
    return table(["Measured all-reduces of NCCL, the trace of VIA-Research/vTrain. times: MiB and microseconds."],
                 ["device", "ranks", "times"], [[*key, " ".join(times)] for key, times in found.items()])


FILES = {"schedules.json": schedules, "dualpipe_batches.json": batches, "deadlocks.csv": deadlocks, "integer_program.csv": integer_program,
         "graph_schedules.json": graph_schedules, "layer_graphs.csv": layer_graphs, "pipedream_orders.json": pipedream_orders,
         "pipedream_profiles.json": pipedream_profiles, "pipedream_optimizer.csv": pipedream_optimizer, "piper_input.json": piper, "piper_runs.csv": piper_runs,
         "dnn_partitioning_input.json": dnn_partitioning, "dnn_partitioning_runs.csv": dnn_partitioning_runs,
         "two_bw_paper.csv": two_bw, "edgepipe.json": edgepipe, "edgepipe_random.json": edgepipe_random, "edgepipe_odd.json": edgepipe_odd,
         "weight_versions.csv": weight_versions, "weight_predictions.csv": weight_predictions, "stability_limits.csv": stability_limits,
         "weight_distances.csv": weight_distances, "weight_losses.csv": weight_losses, "weight_curves.csv": weight_curves,
         "closed_forms.csv": closed_forms, "product_shares.csv": product_shares, "all_reduces.csv": all_reduces, "chakra_example.csv": chakra}


def main():
    originals = os.environ.get("STAGECRAFT_REFERENCE_DATA", "")
    if not originals:
        print("SKIPPED: STAGECRAFT_REFERENCE_DATA is not set; tests compare with tests/reference/data alone")
        return 77
    made = {name: make(pathlib.Path(originals)) for name, make in FILES.items()}
    if "--check" not in sys.argv:
        for name, text in made.items():
            (HERE / name).write_text(text)
        return 0
    wrong = [name for name, text in made.items() if (HERE / name).read_text() != text]
    print(f"{len(made)} files, {len(wrong)} differ from what the originals give:", *wrong)
    return max([bool(wrong), *(subprocess.run([program], check=False).returncode for program in sys.argv[2:])])


if __name__ == "__main__":
    sys.exit(main())
