#!/usr/bin/env python3
"""seeds.py NAME FOLDER writes a small corpus for a fuzzer; the corpus of `results` needs the program that the environment
variable STAGECRAFT names. Where its first byte chooses, each choice is a file. The texts
are also what tests/hard/hostile_inputs.py damages."""
import gzip
import io
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).parents[2]

SCHEDULES = (
    "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n",
    "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n",
    "0F0,0I0,0W0\n",
    "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n",
    "0F0,3F1,3B1,0B0\n1F0,2F1,2B1,1B0\n",
    "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n",
    "\ufeff\"0F0\",\"0F1\"\r\n,(1F0;1F1)OVERLAP_F_B\r\n",
    "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n",
    "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n",
)
UNITS = ("0", "-0", "+1.5e3", ".5", "5.", "25 GB/s", "100Gbit/s", "40 us", "16 GiB", "989 TFLOP/s", "50 %", "1e308 TB",
         "4.9e-324 s", "007 s", "Infinity", "10 Gbps", "5 min")
OVERRIDES = (
    "run.micro_batches=8\nrun: {micro_batches: 4}\n",
    "links.nv.latency=2 us\nlinks:\n  - name: nv\n    latency: 1 us\n  - {name: ib}\n",
    "links[1]={latency: 3 us}\nlinks: [{name: a}, {name: b}]\n",
    "links.a={latency: 3 us}\nlinks: [{name: a}, {name: b}]\n",
    "model.gpt-1.3b.x=[1, ~, \"2\"]\nmodel: {gpt-1.3b: {x: y}}\n",
    "a.b.c=1\na.b: {c: {d: 1}}\na: {b: 2}\n",
    "a[0][1]=~\na: [[1, 2], 3]\n",
)
YAML = (
    "a: [1, \"2\", ~, {b: c}]\n'd e': |\n  text\n  more\nf: >-\n  folded\n  text\n",
    "generator: star\ndevices: 4\nchanges:\n  - {devices: [d1], from: 1 ms, speed: 50 %}\njitter: {most: 10 %}\n",
    "builder: mlp\nwidths: [16, 32, 8]\n",
)
GRAPH = ("node1 -- Input0 -- forward_compute_time=9.0, backward_compute_time=0.0, activation_size=0.0, parameter_size=0.0\n"
         "node2 -- LSTM(2048, 1024) -- forward_compute_time=3.0, backward_compute_time=6.0, "
         "activation_size=[600.0; 40.0], parameter_size=80.000\n"
         "node3 -- ReLU -- forward_compute_time=0.5, backward_compute_time=0.25, activation_size=8, parameter_size=0\n"
         "\tnode1 -- node2\n\tnode2 -- node3\n",)
PIPER = ('{"maxDevices": 2, "maxMemoryPerDevice": 1e9, "bandwidth": 1e9, "mbsInBatch": 4, "nodes": [{"id": 0, "name": "a", '
         '"TMPCs": {"1": [{"id": "v", "timePerSample": 24, "parameterSize": 4e3, "memoryUsageA": 6e7, "memoryUsageB": 8e3, '
         '"syncTimeFw": {}, "syncTimeBw": {"1": 0}}]}}, {"id": 1, "TMPCs": {"1": [{"id": "v", "timePerSample": 9, '
         '"parameterSize": 4e8, "memoryUsageA": 4e3, "memoryUsageB": 8e8, "syncTimeFw": {"0": 0}, "syncTimeBw": {}}], '
         '"2": []}}], "edges": [{"sourceId": 0, "destId": 1, "communicationCost": 6e7}]}',)
DNN_PARTITIONING = (
    '{"maxSizePerFPGA": 1000, "maxFPGAs": 3, "maxCPUs": 1, "nodes": ['
    '{"id": 1, "name": "a", "supportedOnFpga": 1, "cpuLatency": 0, "fpgaLatency": 8, "isBackwardNode": 0, "colorClass": 7, "size": 160}, '
    '{"id": 2, "name": "b", "supportedOnFpga": 1, "cpuLatency": 0, "fpgaLatency": 4, "isBackwardNode": 0, "colorClass": 9, "size": 0}, '
    '{"id": 3, "name": "a", "supportedOnFpga": 1, "cpuLatency": 0, "fpgaLatency": 10, "isBackwardNode": 1, "colorClass": 7, "size": 160}, '
    '{"id": 4, "name": "b", "supportedOnFpga": 1, "cpuLatency": 0, "fpgaLatency": 6, "isBackwardNode": 1, "colorClass": 9, "size": 0}], '
    '"edges": [{"sourceId": 1, "destId": 2, "cost": 2, "size": 4194304}, {"sourceId": 2, "destId": 4, "cost": 1}, '
    '{"sourceId": 4, "destId": 3, "cost": 3}]}',
    '{"maxSizePerFPGA": 1000.5, "maxFPGAs": 2, "nodes": [{"id": 1, "supportedOnFpga": true, "fpgaLatency": 1, "colorClass": 5, "size": 4}, '
    '{"id": 2, "fpgaLatency": 2}, {"id": 3, "fpgaLatency": 3, "colorClass": 5}, {"id": 4, "fpgaLatency": 1e-3}], '
    '"edges": [{"sourceId": 1, "destId": 2, "cost": 0}, {"sourceId": 2, "destId": 3, "cost": 0.5}, {"sourceId": 1, "destId": 4, "cost": 1}]}',
)
PIPEEDGE = (
    "toy:\n  layers: 2\n  parameters_in: 1000\n  parameters_out: [10, 5]\n  mem_MB: [10, 10.5]\n%%%\n"
    "fast:\n  bw_Mbps: 1\n  mem_MB: 64\n  model_profiles:\n    toy:\n"
    "    - {batch_size: 8, dtype: torch.float32, time_s: [2, 1]}\n    - {batch_size: 1, dtype: torch.float32, time_s: [1, 1]}\n"
    "slow: {bw_Mbps: 1, mem_MB: 0}\n%%%\nfast: [edge, 7, edge]\nslow: [b]\n",
)


def kept_device(name):
    zero = ("busy_s", "exposed_communication_s", "utilisation", "energy_J", "peak_memory_bytes", "memory_capacity_bytes",
            "resident_bytes", "stash_bytes", "received_bytes", "outgoing_bytes", "peak_activations")
    idle = ("start_up_s", "input_s", "drain_s", "transfer_s", "receiver_s", "other_s")
    return {"name": name, "type": "cpu-core", "used": True, "peak_memory_at": "", "idle": dict.fromkeys(idle, 0), **dict.fromkeys(zero, 0)}


RESULTS = {
    "schema": "results/1", "title": "three", "setup": None, "iterations": 1, "instructions": 3, "fits": True, "drains": True,
    "provenance": {"backend": "ideal", "backend_version": "", "clock": "simulated", "stagecraft": "0.1.0", "scenario_sha256": "",
                   "seed": 1, "machine": ""},
    **dict.fromkeys(("makespan_s", "period_s", "length_s", "bubble", "steady_bubble", "throughput_samples_per_s", "energy_J"), 1e-9),
    "critical_path": {"instructions": 1, "compute_s": 0, "transfer_s": 0, "wait_s": 0},
    "devices": [kept_device("d0"), kept_device("d1")], "links": [{"name": "l", "traffic_bytes": 8, "utilisation": 0.5}]}
KEPT_RUN = (
    json.dumps(RESULTS) + "\n%%%\n"
    "instruction,kind,device,stage,micro_batch,iteration,version,bytes,start_ns,end_ns,critical\n"
    "0F0,forward,d0,0,0,0,0,0,0.000,1.500,1\n0>1:0F0,send,d0,0,0,0,0,8,1.500,2.000,1\n1F0,forward,d1,1,0,0,0,0,2.000,3.000,0\n"
    "%%%\ndevice,time_ns,resident_bytes,stash_bytes,received_bytes,outgoing_bytes\nd0,0.000,64,0,0,0\nd0,1.000,64,8,0,0.5\n",
)

PLATFORM = (
    "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n"
    "<zone id=\"w\" routing=\"Full\">\n<host id=\"a\" speed=\"1Gf\" core=\"2\"><prop id=\"memory\" value=\"2 GiB\"/></host>\n"
    "<host id=\"b\" speed=\"2Gf\"/>\n<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\"/>\n"
    "<link id=\"m\" bandwidth=\"1GBps\" latency=\"1us\" sharing_policy=\"FATPIPE\"/>\n"
    "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/><link_ctn id=\"m\"/></route>\n</zone>\n</platform>\n",
    "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n"
    "<cluster id=\"c\" prefix=\"n\" radical=\"0-3\" suffix=\"\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\" bb_bw=\"2GBps\" "
    "bb_lat=\"1us\" topology=\"TORUS\" topo_parameters=\"2,2\" sharing_policy=\"SPLITDUPLEX\"/>\n</platform>\n",
)


def papers():
    """With whole paths, because an input has no folder."""
    for file in sorted((root / "scenarios/papers").glob("*/published.yaml")):
        if file.stat().st_size < 3000:
            yield re.sub(r"scenario: ([a-z])", rf"scenario: {file.parent}/\1", file.read_text())


def results(binary):
    """The database of a sweep with two points, in small pages."""
    sweep = (f"schema: sweep/1\ntitle: Two\nbase: {root}/scenarios/examples/quickstart.yaml\nbackend: ideal\n"
             "axes:\n  run.schedule: [gpipe, 1f1b]\n")
    with tempfile.TemporaryDirectory() as place:
        (pathlib.Path(place) / "two.yaml").write_text(sweep)
        subprocess.run([binary, "sweep", "two.yaml", "--out", "results.db"], cwd=place, check=True, capture_output=True)
        file = pathlib.Path(place) / "results.db"
        database = sqlite3.connect(file, isolation_level=None)
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA page_size = 512")
        database.execute("VACUUM")
        database.close()
        return file.read_bytes()


def nsight():
    """An export of Nsight Systems, in small pages."""
    with tempfile.TemporaryDirectory() as place:
        file = pathlib.Path(place) / "run.sqlite"
        subprocess.run([sys.executable, root / "tests/support/nsight_file.py", file], check=True)
        database = sqlite3.connect(file, isolation_level=None)
        database.execute("PRAGMA page_size = 512")
        database.execute("VACUUM")
        database.close()
        return file.read_bytes()


def beside(folder, most=1500):
    return [file.read_text() for file in sorted((root / folder).glob("*.yaml")) if file.stat().st_size < most]


def presets():
    """Models first: with the odd bytes."""
    for number, place in ((1, "models"), (0, "topologies")):
        for file in sorted((root / place).glob("*.yaml")):
            if file.stat().st_size < 1500:
                yield number, file.read_text()


NCCL_TESTS = (
    "# nThread 1 nGpus 2 minBytes 8 maxBytes 1024\n# Using devices\n"
    "#  Rank  0 Group  0 Pid    149 on     node1 device  0 [0x56] NVIDIA A100\n"
    "#  Rank  1 Group  0 Pid    149 on     node2 device  1 [0x57] NVIDIA A100\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    "           8             2     float     sum      -1    12.50    0.00    0.00      0    12.40    0.00    0.00      0\n"
    "        1024           256     float     sum      -1    14.70    0.07    0.07      0    14.60    0.07    0.07      0\n",
)
COLLECTIVES = ("schema: collectives/1\ntitle: t\nsource: s\ncurves:\n"
               "  - {system: two, source: here, kind: all_gather, ranks: 2, nodes: 1, points: [[8, 10], [1024, 11.5], [4096, 11]]}\n",)

FRAMEWORKS = (
    "GPUS=8\nARGS=(--num-layers 24 --hidden-size 1024 # c\n --num-attention-heads 16 --seq-length 2048 --vocab-size 50304\n)\n"
    "torchrun --nproc_per_node $GPUS --nnodes ${NODES:-2} t.py ${ARGS[@]} --tensor-model-parallel-size \"2\" --swiglu \\\n"
    " --pipeline-model-parallel-size=4 --num-layers-per-virtual-pipeline-stage 3 --micro-batch-size 1 --global-batch-size 64 "
    "--num-experts 8 --moe-router-topk 2 --recompute-granularity full --fp8-format hybrid --lr 1e-4 "
    "--pipeline-model-parallel-layout 'Et*3|(tt|)*29,m|L'\n",
    "[model]\nname = \"llama3\"\nflavor = '8B'\n[training]\nlocal_batch_size = 8 # c\nglobal_batch_size = -1\nseq_len = 4_096\n"
    "[parallelism]\ndata_parallel_shard_degree = -1\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
    "[a.b]\nc = [1, [2.5, true],\n\"x\"]\n[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n",
    '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8, "zero_optimization": '
    '{"stage": 1, "overlap_comm": true}, "bf16": {"enabled": true}, "pipeline": {"stages": 4}, "optimizer": {}}',
    '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "zero_optimization": '
    '{"stage": 1, "overlap_comm": true, "reduce_bucket_size": 2e8}}',
    "--num-layers 16 --hidden-size 512 --num-attention-heads 8 --seq-length 128 --vocab-size 50257 --micro-batch-size 1 --global-batch-size 16 "
    "--make-vocab-size-divisible-by 128 --pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 "
    "--decoder-first-pipeline-num-layers 2 --decoder-last-pipeline-num-layers 6 --overlap-grad-reduce --ddp-bucket-size 40000000 "
    "--use-distributed-optimizer --num-distributed-optimizer-instances 2 --recompute-granularity selective --recompute-modules [layernorm,mlp] "
    "--moe-token-dispatcher-type flex --attention-dropout 0.0 --DDP-impl local\n",
    '{"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2, '
    '"intermediate_size": 128, "vocab_size": 1000, "hidden_act": "silu", "max_position_embeddings": 128, "rope_scaling": null, '
    '"torch_dtype": "bfloat16", "attention_dropout": 0.1, "use_cache": true}',
    '{"model_type": "gpt_oss", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 8, '
    '"intermediate_size": 128, "vocab_size": 1000, "max_position_embeddings": 128, "num_local_experts": 4, "num_experts_per_tok": 2, '
    '"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]}',
)


def trace_event(category, name, thread, start, duration, **arguments):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": duration, "args": arguments}


TRACES = (
    json.dumps({"traceEvents": [
        trace_event("python_function", "nn.Module: Block_0", 1, 0, 50),
        trace_event("cpu_op", "aten::mm", 1, 5, 9, **{"Sequence number": 7}),
        trace_event("cuda_runtime", "cudaLaunchKernel", 1, 6, 1, correlation=3),
        trace_event("kernel", "gemm", 7, 9, 30, correlation=3),
        trace_event("cpu_op", "autograd::engine::evaluate_function: Mm", 2, 60, 20, **{"Sequence number": 7}),
        trace_event("cuda_runtime", "cudaLaunchKernel", 2, 61, 1, correlation=4),
        trace_event("kernel", "gemm", 7, 70, 60, correlation=4)]}),
    json.dumps([{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "gpu"}},
                trace_event("compute", "0F0", 1, 1.5, 2.25, id=0, iteration=0, version=0, stage=0, micro_batch=7),
                trace_event("communication", "0>1:0F0", 2, 3.75, 1, id=1, iteration=0, version=0, stage=0, bytes=8)]),
)

MEGATRON_TIMING = (
    (root / "tests/cli/models/task_durations.json").read_text(),
    json.dumps({str(rank): [{"pp_rank": rank, "microbatch_id": 0, "model_chunk_id": chunk, "task_type": kind, "duration": 1.5 + rank}
                            for chunk in range(2) for kind in ("forward", "backward")] for rank in range(2)}),
)


def gzip_files():
    """An empty file, a short one, one with a name, one that is stored, two in one."""
    for data, level in ((b"", 9), (b"[1, 2]\n" * 3, 9), (bytes(range(256)), 0)):
        yield gzip.compress(data, level, mtime=0)
    named = io.BytesIO()
    with gzip.GzipFile("trace.json", "wb", 9, named, 0) as file:
        file.write(b"{}" * 50)
    yield named.getvalue()
    yield gzip.compress(b"a", mtime=0) + gzip.compress(b"b" * 1000, mtime=0)


SCENARIOS = [text.replace("csv: ", f"csv: {root}/scenarios/examples/")
             for text in beside("scenarios/examples", 600)]
SMALL_SCENARIOS = [
    "schema: scenario/2\nmodel: {builder: uniform, layers: 4, forward: 1 ms, backward: 2 ms, output: 1 MB, stash: 1 MB}\n"
    "cluster: {generator: uniform, devices: 4, network: star, type: a100-80, link: {bandwidth: 1 GB/s, latency: 1 us}}\n"
    f"plan: {plan}\nrun: {{schedule: {schedule}, micro_batches: 8, iterations: {iterations}}}\nsoftware: none\n"
    for plan, schedule, iterations in (
        ("{planner: balanced, stages: 4, micro_batch_size: 1}", "1f1b", 2), ("{planner: balanced, stages: 2, replicas: 2, micro_batch_size: 1}", "gpipe", 1),
        ("{planner: pipedream, micro_batch_size: 1}", "zb-h1", 1), ("{planner: balanced, stages: 4}", "pipedream", 4), ("{planner: balanced, stages: 4}", "dualpipev", 1))]
SMALL_SCENARIOS.append(
    "schema: scenario/2\nmodel: {builder: transformer, layers: 4, hidden: 64, heads: 4, sequence: 32, vocabulary: 100}\ncluster: lab-4\nsoftware: megatron-no-overlap\n"
    "plan: {planner: balanced, stages: 2, replicas: 2, shard: optimizer, recompute: full}\nrun: {schedule: 1f1b, micro_batches: 4, precision: bf16}\n")
RUNS = ["name,software,format,card,sequence,layers,hidden,heads,vocabulary,tensor,stages,replicas,micro_batch,micro_batches,recompute,seconds\n"
        "a,megatron-no-overlap,bf16,50 GB/s,2048,24,4096,32,51200,8,2,1,1,16,none,1.5\nb,megatron-no-overlap,bf16,50 GB/s,2048,32,4096,32,51200,8,2,1,2,16,full,3.5\n"
        "c,megatron-no-overlap,bf16,50 GB/s,2048,48,4096,32,51200,8,2,4,4,16,none,9.5\nd,megatron-no-overlap,bf16,50 GB/s,2048,40,4096,32,51200,4,1,2,1,16,none,5\n"]
SWEEPS = [text.replace("../", f"{root}/scenarios/") for text in beside("scenarios/sweeps", 500)]



def main(name, folder):
    texts, choices = {
        "schedule": (SCHEDULES, (0, 8, 6, 88)), "yaml": (YAML, (0, 1, 2)), "pipedream": (GRAPH, (0, 2)),
        "pipeedge": (PIPEEDGE, range(8)), "units": (UNITS, None), "override": (OVERRIDES, None), "piper": (PIPER, None), "dnn_partitioning": (DNN_PARTITIONING, None),
        "kept_run": (KEPT_RUN, None), "frameworks": (FRAMEWORKS, range(16)), "traces": (TRACES, None), "megatron_timing": (MEGATRON_TIMING, None), "gzip": ((), None),
        "platform": (PLATFORM, None), "scenario": (SCENARIOS, (0, 1)), "planned": ((*SCENARIOS, *SMALL_SCENARIOS), (0, 1)), "sweep": (SWEEPS, None),
        "published": (list(papers()), None), "profile": (beside("models/profiles", 5000), None), "results": ((), None), "nsight": ((), None),
        "costs": ((*NCCL_TESTS, *COLLECTIVES, *beside("topologies/devices"), *beside("scenarios/predictions", 1000), *RUNS), range(5))}[name]
    first = [bytes([choice]) for choice in choices] if choices else [b""]
    seeds = [byte + text.encode() for text in texts for byte in first]
    if name == "yaml":
        seeds += [bytes([choice]) + text.encode() for choice, text in presets()]
    if name == "results":
        seeds.append(results(os.environ["STAGECRAFT"]))
    if name == "nsight":
        seeds.append(nsight())
    if name == "gzip":
        seeds = list(gzip_files())
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (folder / f"seed-{number}").write_bytes(seed)


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
