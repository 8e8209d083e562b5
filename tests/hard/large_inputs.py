"""Inputs of up to a megabyte that are made to cost most: nested, wide, long, compressed, or with huge numbers.

    large_inputs.py STAGECRAFT [PART]

PART is a part of the names of the cases to run. SECURITY.md promises that none of them takes 2 GiB or 20 seconds of
computing time: the limits are set for the process, and an input that is refused is refused with exit code 2 or 3.
"""
import functools
import json
import os
import pathlib
import resource
import sqlite3
import sys
import zlib

import tool
from tool import binary, check, finish, folder, run

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / part) for part in ("fuzz", "support")]
import onnx_files  # noqa: E402
import seeds  # noqa: E402

SIZE = 900_000
tool.PATIENCE = 900  # Seconds of the clock, which depend on the machine; LIMITS has the seconds that count.
LIMITS = [(resource.RLIMIT_AS, 2 << 30), (resource.RLIMIT_CPU, 20)]
SCENARIO = "schema: scenario/2\nmodel: {MODEL}\ncluster: {CLUSTER}\nplan: {PLAN}\nrun: {schedule: 1f1b, micro_batches: 4}\n"
UNIFORM = "{builder: uniform, layers: 2, forward: 1 ms, backward: 2 ms, output: 1 kB}"
PAIR = "{generator: uniform, devices: 2, network: star, type: a100-80, link: {bandwidth: 1 GB/s, latency: 1 us}}"
BALANCED = "{planner: balanced, stages: 2}"
wanted = sys.argv[2] if len(sys.argv) > 2 else ""


def is_wanted(name):
    """The gate takes a sixteenth of the cases, always the same."""
    takes_all = wanted or os.environ.get("STAGECRAFT_TRIALS") == "full"
    return wanted in name and (takes_all or zlib.crc32(name.encode()) % 16 == 0)


def scenario(model=UNIFORM, cluster=PAIR, plan=BALANCED, more=""):
    return SCENARIO.replace("{MODEL}", model).replace("{CLUSTER}", cluster).replace("{PLAN}", plan) + more


def filled(text, size=SIZE):
    return text * (size // len(text))


def numbered(pattern, size=SIZE, separator=""):
    """The pattern with # replaced by 0, 1, 2, ... until the size is reached."""
    parts, length, number = [], 0, 0
    while length < size:
        parts.append(pattern.replace("#", f"{number:x}"))
        length += len(parts[-1]) + len(separator)
        number += 1
    return separator.join(parts)


def nested(open_, close):
    return filled(open_, SIZE // 2) + filled(close, SIZE // 2)


@functools.cache
def packed(begin, piece, count, end):
    """A text with a piece many times, as gzip makes it, without the text itself in memory."""
    compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
    many = 1 << 16
    parts = [compressor.compress(begin.encode())]
    parts += [compressor.compress(piece.encode() * many) for _ in range(count // many)]
    return b"".join(parts) + compressor.compress(piece.encode() * (count % many) + end.encode()) + compressor.flush()


def yaml_shapes():
    """Texts that cost a reader of YAML most."""
    yield "lists", "a: " + nested("[", "]")
    yield "maps", "a: " + nested("{a: ", "}")
    yield "lists without an end", "a: " + filled("[")
    yield "blocks", "\n".join(" " * i + f"k{i}:" for i in range(1300))
    yield "dashes", "a:\n" + filled("- ") + "\n"
    yield "keys", numbered("k#: 0\n")
    yield "keys in one line", "{" + numbered("k#: 0", separator=", ") + "}"
    yield "equal keys", filled("k: 0\n")
    yield "items", "a: [" + filled("0,") + "0]"
    yield "nulls", "a: [" + filled(",") + "]"
    yield "empty maps", "a: [" + filled("{},") + "{}]"
    yield "text", "a: " + filled("x")
    yield "key", filled("x") + ": 1"
    yield "quoted", 'a: "' + filled("\\n") + '"'
    yield "lines of text", "a: |\n" + filled("  x\n")
    yield "plain lines", "a:\n" + filled("  x\n")
    yield "blank lines", "a: 1\n" + filled("\n") + "b: 1\n"
    yield "comments", filled("# x\n")
    yield "anchors", numbered("k#: &a# 0\n")
    yield "aliases", "a: &a [x, x]\n" + numbered("k#: *a\n")
    yield "merges", filled("<<: {a: 1}\n")
    yield "tags", numbered("k#: !t 0\n")
    yield "documents", filled("---\na: 1\n")
    yield "quotes", "a: " + filled("'")
    yield "questions", filled("? ")
    yield "colons", filled("a: ")
    yield "tabs", filled("\t")
    yield "spaces", filled(" ") + "a: 1"
    yield "numbers", "a: " + filled("9")
    yield "escapes", 'a: "' + filled("\\x41") + '"'


def json_shapes():
    """Texts that cost a reader of JSON most."""
    yield "lists", nested("[", "]")
    yield "objects", filled('{"a":', SIZE // 2) + "0" + filled("}", SIZE // 10)
    yield "lists without an end", filled("[")
    yield "keys", "{" + numbered('"#":0', separator=",") + "}"
    yield "equal keys", "{" + filled('"a":0,') + '"a":0}'
    yield "items", "[" + filled("0,") + "0]"
    yield "empty objects", "[" + filled("{},") + "{}]"
    yield "text", '{"a":"' + filled("x") + '"}'
    yield "escapes", '{"a":"' + filled("\\u0041") + '"}'
    yield "number", '{"a":' + filled("9") + "}"
    yield "spaces", filled(" ") + "{}"


def yaml_cases():
    commands = {"scenario": "check x.yaml", "model": "check x.yaml", "cluster": "check x.yaml", "sweep": "sweep x.yaml -b ideal --out x.db",
                "published": "reproduce x.yaml", "profile": "check x.yaml", "device": "check x.yaml", "collectives": "check x.yaml", "predictions": "check x.yaml"}
    for kind, command in commands.items():
        version = 2 if kind == "scenario" else 1
        for name, text in yaml_shapes():
            if kind == "scenario" or name in ("keys", "items"):
                yield f"yaml {kind}: {name}", {"x.yaml": f"schema: {kind}/{version}\n{text}"}, command
    for path in ("plan", "run", "report", "costs", "data"):
        keys = "{" + numbered("k#: 0", separator=", ") + "}"
        yield f"yaml unknown keys of {path}", {"x.yaml": scenario() + f"{path}: {keys}\n"}, "check x.yaml"
    for number in ("1e308", "-1e308", "9" * 4000, "1e-320", "2147483648", "9223372036854775808"):
        for setting in ("run.micro_batches", "run.iterations", "plan.stages", "model.layers", "cluster.devices", "plan.micro_batch_size"):
            yield f"yaml number {setting}={number[:20]}", {"x.yaml": scenario()}, f"run x.yaml -b ideal --set {setting}={number}"


def model_cases():
    layers = numbered("  - {name: l#, forward: 1 ms, backward: 1 ms, output: 1 kB}\n")
    listed = "schema: model/1\ntitle: t\nbuilder: timed\nlayers:\n"
    yield "model: many layers", {"x.yaml": scenario("m.yaml"), "m.yaml": listed + layers}, "run x.yaml -b ideal"
    inputs = ", ".join(f"l{i:x}" for i in range(2000))
    head = "".join(f"  - {{name: l{i:x}, forward: 1 ms, backward: 1 ms, output: 1 kB}}\n" for i in range(2000))
    wide = "".join(f"  - {{name: w{i}, inputs: [{inputs}], forward: 1 ms, backward: 1 ms, output: 1 kB}}\n" for i in range(60))
    yield "model: many inputs", {"x.yaml": scenario("m.yaml"), "m.yaml": listed + head + wide}, "run x.yaml -b ideal"
    yield "model: equal names", {"x.yaml": scenario("m.yaml"), "m.yaml": listed + filled("  - {name: l, forward: 1 ms}\n")}, "run x.yaml -b ideal"


def cluster_cases():
    types = "schema: cluster/1\ntitle: t\ngenerator: explicit\ntypes: {t: {peak: 1 TFLOP/s, memory: 1 GiB, memory_bandwidth: 1 TB/s}}\n"
    devices = "devices:\n" + numbered("  - {name: d#, type: t}\n", SIZE // 3)
    count = devices.count("\n") - 1
    links = [f"  - {{between: [d{i:x}, d{i + 1:x}], bandwidth: 1 GB/s, latency: 1 us}}\n" for i in range(count - 1)]
    run_it = "run x.yaml -b ideal"
    yield "cluster: a chain", {"x.yaml": scenario(cluster="c.yaml"), "c.yaml": types + devices + "links:\n" + "".join(links)[:2 * SIZE // 3].rsplit("\n", 1)[0] + "\n"}, run_it
    yield "cluster: devices without links", {"x.yaml": scenario(cluster="c.yaml"), "c.yaml": types + "devices:\n" + numbered("  - {name: d#, type: t}\n") + "links: []\n"}, run_it
    yield "cluster: many types", {"x.yaml": scenario(cluster="c.yaml"), "c.yaml": types.split("types")[0] + "types:\n" + numbered("  t#: {peak: 1 TFLOP/s, memory: 1 GiB, memory_bandwidth: 1 TB/s}\n") + "devices: [{name: a, type: t0}]\nlinks: []\n"}, run_it
    pair = types + "devices: [{name: a, type: t}, {name: b, type: t}]\nlinks:\n"
    yield "cluster: many links of a pair", {"x.yaml": scenario(cluster="c.yaml"), "c.yaml": pair + numbered("  - {name: w#, between: [a, b], bandwidth: 1 GB/s, latency: 1 us}\n")}, run_it
    changes = "changes:\n" + numbered("  - {devices: [d0], from: # us, speed: 50 %}\n".replace("#", "1"))
    yield "cluster: many changes", {"x.yaml": scenario(cluster="{base: c.yaml}"), "c.yaml": "schema: cluster/1\ntitle: t\ngenerator: uniform\ndevices: 2\nnetwork: star\ntype: a100-80\nlink: {bandwidth: 1 GB/s, latency: 1 us}\n" + changes}, run_it


def sweep_cases():
    base = {"s.yaml": scenario()}
    head = "schema: sweep/1\ntitle: t\nbase: s.yaml\n"
    out = "sweep x.yaml -b ideal --out x.db --shard 1/100000"
    yield "sweep: many values", {**base, "x.yaml": head + "axes: {run.seed: [" + numbered("#", separator=", ").replace("a", "1").replace("b", "1") + "]}\n"}, out
    yield "sweep: many axes", {**base, "x.yaml": head + "axes:\n" + numbered("  x-#: [1, 2]\n")}, out
    yield "sweep: product", {**base, "x.yaml": head + "axes:\n" + numbered("  x-#: [1, 2, 3, 4, 5, 6, 7, 8]\n", 2000)}, out
    yield "sweep: range", {**base, "x.yaml": head + "axes: {run.seed: {from: 1, to: 1e15, by: 1}}\n"}, out
    yield "sweep: expression", {**base, "x.yaml": head + "axes: {run.seed: [1, 2]}\nwhere: " + filled("(") + "\n"}, out
    yield "sweep: long expression", {**base, "x.yaml": head + "axes: {run.seed: [1, 2]}\nwhere: 1" + filled(" + 1") + "\n"}, out
    yield "sweep: expression of one value", {**base, "x.yaml": head + "axes: {run.seed: [1, 2], run.micro_batches: ['= 1" + filled(" + 1") + "']}\n"}, out


def schedule_cases():
    for name, text in (("one row", ",".join(f"0F{i}" for i in range(110_000)) + "\n"), ("rows", "".join(f"{i}F0,{i}B0\n" for i in range(60_000))),
                       ("blank rows", "0F0,0B0\n" + filled("\n")), ("commas", "0F0" + filled(",") + "\n"), ("quotes", filled('"')),
                       ("a cell", "0F" + filled("1")), ("high micro-batches", "".join(f"{i}F{2**31 - 2}\n" for i in range(4000))),
                       ("distant micro-batches", "".join(f"{i}F1048575,{i}B1048575\n" for i in range(4000))),
                       ("high stages", "2147483646F0,2147483646B0\n"), ("million stages", "1048575F0,1048575B0\n"), ("pairs", filled("(0F0;0B0)OVERLAP_F_B,")),
                       ("equal cells", filled("0F0,"))):
        for command in ("schedule --file o.csv", "schedule --file o.csv --lint --streams direction --torch 2.8", "export pytorch-csv o.csv --comms"):
            yield f"schedule: {name}: {command}", {"o.csv": text}, command


def framework_cases():
    options = "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 "
    import_it = "import megatron x.sh --cluster lab-4"
    shell = {"one variable": "A=" + filled("x", 60_000) + "\n" + filled("$A", 100_000), "words of a variable": "A='" + filled("x ", 60_000) + "'\n" + filled("$A ", 100_000),
             "variables of variables": "A0=" + filled("x", 60_000) + "\n" + "".join(f"A{i + 1}=$A{i}$A{i}\n" for i in range(1000)),
             "variables": "A=" + filled("x", 60_000) + "\n" + numbered("B#=$A\n"), "quoted": '"' + filled("$A") + '"', "braces": filled("${"), "defaults": filled("${A:-" + "x" * 1000 + "}"),
             "words": filled("x "), "options": numbered("--o# "), "equal options": filled("--o 1 "), "values": "--o " + filled("1 "), "word": filled("x"),
             "nested quotes": "'--a A=" + filled("x", 50_000) + " " + filled("$A ", 100_000) + "'", "lines": filled("\\\n"), "comments": filled("# x\n"),
             "layout": "--pipeline-model-parallel-layout " + filled("(t|)*9"), "layout of brackets": "--pipeline-model-parallel-layout " + filled("("),
             "layout of numbers": "--pipeline-model-parallel-layout t*" + filled("9"), "frequency": "--num-experts 8 --moe-layer-freq ([0]*1+[1]*999999999)*999999999",
             "frequency of brackets": "--num-experts 8 --moe-layer-freq " + filled("("), "frequency of items": "--num-experts 8 --moe-layer-freq [" + filled("1,") + "1]"}
    for name, text in shell.items():
        yield f"megatron: {name}", {"x.sh": options + text}, import_it
        yield f"megatron: {name} first", {"x.sh": text + "\n" + options}, import_it
    for name, text in (("brackets", "a = " + nested("[", "]")), ("items", "a = [" + filled("1,") + "1]"), ("keys", numbered("a# = 1\n")), ("dots", "a" + filled(".a") + " = 1"),
                       ("tables", numbered("[t#]\na = 1\n")), ("text", 'a = "' + filled("x") + '"'), ("deep tables", "[a" + filled(".a") + "]\nb = 1"),
                       ("many deep keys", "".join(f"a{'.b' * 300}{i} = 1\n" for i in range(1400)))):
        yield f"torchtitan: {name}", {"x.toml": text}, "import torchtitan x.toml --cluster lab-4"
    readers = {"deepspeed": "import deepspeed x.json --cluster lab-4 --model-name gpt2-small", "kineto": "import kineto x.json --layer B", "trace": "import trace x.json",
               "huggingface": "import huggingface x.json", "piper": "import piper x.json", "dnn-partitioning": "import dnn-partitioning x.json",
               "megatron-timing": "import megatron-timing x.json"}
    for reader, command in readers.items():
        for name, text in json_shapes():
            yield f"{reader}: {name}", {"x.json": text}, command
    for reader in ("kineto", "trace", "megatron-timing"):
        for name, text in (("zeros", ("[", "0,", 60_000_000, "0]")), ("events of zeros", ('{"traceEvents":[', "0,", 60_000_000, "0]}")),
                           ("zeros in an event", ('{"traceEvents":[{"a":[', "0,", 30_000_000, "0]}]}")), ("empty lists", ("[", "[],", 10_000_000, "[]]")), ("brackets", ("", "[", 60_000_000, "")),
                           ("spaces", ("", " ", 60_000_000, "")), ("a text", ('"', "x", 60_000_000, '"')), ("keys of an event", ('[{"ph":"X"', ',"k":0', 10_000_000, "}]")), ("events", ("[", '{"ph":"X","ts":1,"dur":1},', 2_500_000, "0]"))):
            yield f"{reader}: compressed {name}", {"x.json.gz": functools.partial(packed, *text)}, readers[reader].replace("x.json", "x.json.gz")
    dictionary = {"a": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2**31 - 1, "intermediate_size": 64, "vocab_size": 64},
                  "many types": {"model_type": "gpt_oss", "layer_types": ["full_attention"] * 40_000, "num_hidden_layers": 40_000, "hidden_size": 64, "num_attention_heads": 4}}
    for name, value in dictionary.items():
        yield f"huggingface: {name}", {"x.json": json.dumps(value)}, readers["huggingface"]


def events(pattern):
    count = SIZE // (len(pattern) + 5 * pattern.count("#"))
    return '{"traceEvents":[' + ",".join(pattern.replace("#", str(i)) for i in range(count)) + "]}"


def trace_cases():
    for name, pattern in (("ranges", '{"ph":"X","name":"layer_#","ts":#,"dur":1}'), ("modules", '{"ph":"X","name":"nn.Module: B_#","ts":#,"dur":1}'),
                          ("nested ranges", '{"ph":"X","name":"layer_#","ts":1,"dur":9}'), ("kernels", '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":#,"ts":#,"dur":1,"args":{"correlation":#}}'),
                          ("processes", '{"ph":"M","name":"process_name","pid":#,"args":{"name":"p#"}}'), ("spans", '{"ph":"X","name":"F","ts":#,"dur":1,"args":{"id":#,"iteration":0,"stage":0}}')):
        text = events(pattern)
        for command in ("import kineto x.json --layer layer", "import kineto x.json --layer B", "import kineto x.json --overlap", "import trace x.json"):
            yield f"trace: {name}: {command}", {"x.json": text}, command


def graph_cases():
    node = 'node# -- Linear -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1\n'
    chain = "".join(node.replace("#", str(i)) for i in range(5000)) + "".join(f"\tnode{i} -- node{i + 1}\n" for i in range(4999))
    dense = "".join(node.replace("#", str(i)) for i in range(1000)) + "".join(f"\tnode{i % 1000} -- node{i * 7 % 1000}\n" for i in range(40_000) if i % 1000 < i * 7 % 1000)
    sizes = node.replace("#", "1").replace("activation_size=1", "activation_size=[" + filled("1; ") + "1]")
    for name, text in (("a chain", chain), ("many edges", dense), ("many sizes", sizes), ("equal nodes", filled(node.replace("#", "1"))), ("edges only", numbered("\tnode# -- node#\n")), ("words", filled("x -- "))):
        yield f"pipedream: {name}", {"graph.txt": text}, "import pipedream-graph graph.txt"
    piper = json.loads(seeds.PIPER[0])
    first = piper["nodes"][0]
    chain = dict(piper, nodes=[dict(first, id=i) for i in range(3500)], edges=[{"sourceId": i, "destId": i + 1, "communicationCost": 1} for i in range(3499)])
    yield "piper: a chain", {"x.json": json.dumps(chain)[:1 << 20]}, "import piper x.json"
    dense = dict(piper, nodes=[dict(first, id=i) for i in range(300)], edges=[{"sourceId": i, "destId": k, "communicationCost": 1} for i in range(150) for k in range(i + 1, 300, 3)])
    yield "piper: many edges", {"x.json": json.dumps(dense)}, "import piper x.json"
    dnn = json.loads(seeds.DNN_PARTITIONING[1])
    nodes = [{"id": i, "supportedOnFpga": True, "fpgaLatency": 1, "size": 4} for i in range(7000)]
    yield "dnn-partitioning: a chain", {"x.json": json.dumps(dict(dnn, nodes=nodes, edges=[{"sourceId": i, "destId": i + 1, "cost": 0} for i in range(6999)]))}, "import dnn-partitioning x.json"
    edges = [{"sourceId": i, "destId": k, "cost": 0} for i in range(200) for k in range(i + 1, 200)]
    yield "dnn-partitioning: many edges", {"x.json": json.dumps(dict(dnn, nodes=nodes[:200], edges=edges))}, "import dnn-partitioning x.json"
    colors = [dict(node, colorClass=i % 3) for i, node in enumerate(nodes)]
    yield "dnn-partitioning: colors", {"x.json": json.dumps(dict(dnn, nodes=colors, edges=[{"sourceId": i, "destId": i + 1, "cost": 0} for i in range(6999)]))}, "import dnn-partitioning x.json"
    models, types, devices = seeds.PIPEEDGE[0].split("%%%\n")
    pipeedge = {"models.yml": models, "types.yml": types, "devices.yml": devices}
    import_it = "import pipeedge models.yml types.yml devices.yml --out out"
    yield "pipeedge: hosts", {**pipeedge, "devices.yml": "fast: [" + numbered("h#", separator=", ") + "]\n"}, import_it
    yield "pipeedge: types", {**pipeedge, "types.yml": types + numbered("t#: {bw_Mbps: 1, mem_MB: 1}\n")}, import_it
    yield "pipeedge: layers", {**pipeedge, "models.yml": "toy:\n  layers: 2000000000\n  parameters_in: 1\n  parameters_out: [1]\n  mem_MB: [1]\n"}, import_it
    many = "[" + "1, " * 50_000 + "1]"
    long_types = f"fast:\n  bw_Mbps: 1\n  mem_MB: 640000\n  model_profiles:\n    toy:\n    - {{batch_size: 8, dtype: torch.float32, time_s: {many}}}\n"
    yield "pipeedge: many layers", {"models.yml": f"toy:\n  layers: 50001\n  parameters_in: 1000\n  parameters_out: {many}\n  mem_MB: {many}\n", "types.yml": long_types, "devices.yml": "fast: [a, b]\n"}, import_it


def platform_cases():
    head, end = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">', "</platform>"
    zone = head + '<zone id="z" routing="Full">'
    import_it = "import simgrid-xml p.xml --set memory=1GiB"
    hosts = numbered('<host id="h#" speed="1Gf"/>')
    links = '<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/>' + numbered('<link id="l#" bandwidth="1GBps" latency="1us"/>', SIZE // 2)
    route = '<route src="a" dst="b">' + numbered('<link_ctn id="l#"/>', SIZE // 3) + "</route>"
    for name, text in (("zones", head + filled('<zone id="z" routing="Full">', SIZE // 2) + filled("</zone>", SIZE // 8) + end), ("hosts", zone + hosts + "</zone>" + end),
                       ("links", zone + links + "</zone>" + end), ("a long route", zone + links + route + "</zone>" + end), ("a radical", head + '<cluster id="c" prefix="p" suffix="s" radical="0-99999999" speed="1Gf" bw="1GBps" lat="1us"/>' + end),
                       ("many radicals", head + '<cluster id="c" prefix="p" suffix="s" radical="' + filled("0-9999,") + '1" speed="1Gf" bw="1GBps" lat="1us"/>' + end),
                       ("a fat tree", head + '<cluster id="c" prefix="p" suffix="s" radical="0-65535" speed="1Gf" bw="1GBps" lat="1us" topology="FAT_TREE" topo_parameters="4;64,64,64,64;1,8,8,8;1,8,8,8"/>' + end),
                       ("a torus", head + '<cluster id="c" prefix="p" suffix="s" radical="0-262143" speed="1Gf" bw="1GBps" lat="1us" topology="TORUS" topo_parameters="64,64,64"/>' + end),
                       ("a dragonfly", head + '<cluster id="c" prefix="p" suffix="s" radical="0-262143" speed="1Gf" bw="1GBps" lat="1us" topology="DRAGONFLY" topo_parameters="64,3;64,2;64,1;1"/>' + end),
                       ("attributes", head + "<zone " + numbered('a#="x" ') + "/>" + end), ("comments", head + filled("<!-- x -->") + end), ("text", head + filled("x") + end),
                       ("entities", '<?xml version="1.0"?><!DOCTYPE p [' + "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(30)) + "]><platform>&e30;</platform>"),
                       ("many cores", zone + '<host id="h" speed="1Gf" core="2000000000"/></zone>' + end), ("a list of speeds", zone + '<host id="h" speed="' + filled("1Gf,") + '1Gf"/></zone>' + end)):
        yield f"platform: {name}", {"p.xml": text}, import_it


def measured_cases():
    log = "# nThread 1\n#  Rank  0 on h\n#  Rank  1 on h\n#  size count type redop root time algbw busbw\n"
    lines = "".join(f"{i + 1} 1 float sum -1 {i % 97 + 1} 1 1\n" for i in range(35_000))
    for name, text in (("lines", log + lines), ("ranks", log + numbered("#  Rank # on h#\n")), ("words", log + filled("1 ")), ("heading", filled("# size time ")),
                       ("sizes of 1e300", log + "1e300 1 f s -1 1 1 1\n2e300 1 f s -1 1 1 1\n3e300 1 f s -1 1 1 1\n"), ("times of 1e300", log + "1 1 f s -1 1e300 1 1\n2 1 f s -1 1e300 1 1\n3 1 f s -1 1e-300 1 1\n"),
                       ("sizes of 1e-300", log + "1e-300 1 f s -1 1 1 1\n2e-300 1 f s -1 1 1 1\n3e-300 1 f s -1 1 1 1\n"), ("extremes", log + "1 1 f s -1 1e15 1 1\n2 1 f s -1 1e-3 1 1\n1e18 1 f s -1 1e-3 1 1\n")):
        yield f"nccl-tests: {name}", {"log.txt": text}, "calibrate log.txt --collective all_reduce"
    head = ("name,software,format,card,sequence_parallel,shard,micro_batch,layers,hidden,heads,key_value_heads,width,gated,vocabulary,tied,sequence,tensor,context,"
            "stages,replicas,micro_batches,seconds\n")
    row = "r,megatron-no-overlap,bf16,50 GB/s,true,optimizer,1,12,8192,64,8,28672,true,128256,false,4096,2,1,1,4,4,{}\n"
    for name, text in (("1000 rows", head + "".join(row.format(0.5 + i % 89 / 100) for i in range(1000))), ("rows", head + "".join(row.format(0.5 + i % 89 / 100) for i in range(8000))),
                       ("equal rows", head + row.format(0.7) * 400), ("different rows", head + "".join(row.format(0.7).replace(",12,", f",{12 + i},") for i in range(380))),
                       ("1000 different rows", head + "".join(row.format(0.7).replace(",12,", f",{12 + i},") for i in range(1000))),
                       ("many devices", head + row.format(0.7).replace(",4,4,", ",20000,4,") + row.format(0.7).replace(",4,4,", ",19999,4,")),
                       ("many ops", head + "".join(row.format(0.7).replace(",4,4,", f",4,{20000 + i},") for i in range(4))), ("columns", numbered("c#,") + "\n1\n"), ("one cell", head + filled("1") + "\n"), ("huge numbers", head + row.format("1e300").replace("8192", "1e300") * 10)):
        for fit in ("", " --fit share,card"):
            yield f"runs: {name}{fit}", {"runs.csv": text}, f"calibrate runs.csv --device h100-sxm{fit}"


def kept_run_cases():
    made = folder / "kept"
    (folder / "made.yaml").write_text(scenario())
    code, _, errors, _ = run(["run", str(folder / "made.yaml"), "-b", "ideal", "--out", str(made)])
    assert code == 0, errors
    files = {f"kept/{name}": (made / name).read_text() for name in ("results.json", "spans.csv", "memory.csv", "scenario.yaml")}
    results = json.loads(files["kept/results.json"])
    for command in ("report kept --out x.html", "compare kept kept"):
        for name, text in json_shapes():
            yield f"results: {name}: {command}", {**files, "kept/results.json": text.replace("{", '{"schema":"results/1",', 1)}, command
        devices = [dict(results["devices"][0], name=f"d{i}") for i in range(1200)]
        yield f"results: devices: {command}", {**files, "kept/results.json": json.dumps(dict(results, devices=devices))}, command
        spans = files["kept/spans.csv"]
        line = spans.splitlines()[1]
        yield f"results: spans: {command}", {**files, "kept/spans.csv": spans.splitlines()[0] + "\n" + filled(line + "\n")}, command
        yield f"results: columns: {command}", {**files, "kept/spans.csv": numbered("c#,") + "\n"}, command
        memory = files["kept/memory.csv"].splitlines()
        yield f"results: memory: {command}", {**files, "kept/memory.csv": memory[0] + "\n" + filled(memory[1] + "\n")}, command


def database(path, script):
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.commit()
    connection.close()
    return path.read_bytes()


def database_cases():
    numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT {}) "
    nsight = ("CREATE TABLE StringIds (id INTEGER, value TEXT); CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, text TEXT, textId INTEGER);"
              f"INSERT INTO NVTX_EVENTS {numbers.format(12_000)} SELECT x, x + 1, 1, 'layer_' || x, NULL FROM c;")
    for name, script in (("ranges", nsight), ("strings", f"CREATE TABLE StringIds (id INTEGER, value TEXT); INSERT INTO StringIds {numbers.format(40_000)} SELECT x, 'n' FROM c;")):
        yield f"nsight: {name}", {"n.sqlite": database(folder / "n.sqlite", script)}, "import nsight n.sqlite --layer layer"
    good = folder / "good.db"
    good.write_bytes(seeds.results(binary))
    rows = sqlite3.connect(good)
    rows.executescript(f"PRAGMA journal_mode = DELETE; INSERT INTO point {numbers.format(12_000)} SELECT x + 10, 'l', '{{}}', 'h' || x FROM c;")
    rows.close()
    for command in ("report r.db --out r.html", "sweep-merge r.db --into m.db", "sweep-merge r.db --into m.db --format json"):
        yield f"database: points: {command}", {"r.db": good.read_bytes()}, command


def onnx_cases():
    yield "onnx: bytes", {"net.onnx": b"\x0a" * SIZE}, "import onnx net.onnx"
    yield "onnx: nested messages", {"net.onnx": b"\x3a\xff\xff\x7f" * (SIZE // 4)}, "import onnx net.onnx"
    yield "onnx: repeated", {"net.onnx": onnx_files.mlp() * (SIZE // len(onnx_files.mlp()))}, "import onnx net.onnx"


def serve_cases():
    order = {"name": "f", "file": "x.py", "line": 1}
    request = {"id": 1, "method": "schedule", "params": {"name": "f", "ranks": 4096, "microbatches": 1048576, "order": order}}
    answer = {"rows": [[0, 0, 0, 0, 1, 0, 0, 0]] * 4096}
    yield "serve: an order of a thousand million ops", {"stdin": json.dumps(request) + "\n" + json.dumps(answer) + "\n"}, "serve"
    for name, text in json_shapes():
        yield f"serve: {name}", {"stdin": json.dumps({"id": 1, "method": "check", "params": 0}).replace("0}", text + "}") + "\n"}, "serve"


SOURCES = (yaml_cases, model_cases, cluster_cases, sweep_cases, schedule_cases, framework_cases, trace_cases, graph_cases, platform_cases, measured_cases, kept_run_cases, database_cases, onnx_cases, serve_cases)
place = folder / "case"
for source in SOURCES:
    for name, files, command in source():
        if not is_wanted(name):
            continue
        for file in sorted(place.rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
        for file, content in files.items():
            content = content() if callable(content) else content
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_bytes(content if isinstance(content, bytes) else content.encode())
            assert file == "stdin" or len(content) <= 1 << 20, name
        place.mkdir(exist_ok=True)
        stdin = open(place / "stdin", "rb") if "stdin" in files else None
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        code, said, errors, _ = run(command.split(" "), cwd=place, limits=LIMITS, **({"stdin": stdin} if stdin else {}))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if stdin:
            stdin.close()
        if "-v" in sys.argv:
            print(f"{after.ru_utime - before.ru_utime:6.2f} s {code} {name}", flush=True)
        allowed = (0, 2, 3, 4) if command == "serve" else (0, 2, 3)  # 4 is a machine that has too little memory.
        check(code in allowed and "bad_alloc" not in said + errors, f"{name}: exit code {code}: {ascii(errors[-300:])}")
finish()
