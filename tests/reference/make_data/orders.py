"""Schedules of other systems and their times; GraphPipe's orders and graphs of layers."""
import json
import re

from texts import compact, digest, document, listed, mapped, number, rows_of, table


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
