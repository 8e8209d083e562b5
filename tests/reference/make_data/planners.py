"""Inputs and answers of other planners: PipeDream, Piper, dnn-partitioning, PipeDream-2BW and PipeEdge."""
import csv
import json
import re

from texts import compact, document, listed, mapped, number, rows_of, table


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
