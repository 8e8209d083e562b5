#!/usr/bin/env python3
"""Equal devices and one slow link: no rule of the diagnosis blames a device or a stage for what a link does, and the link
is named where it is the cause. Devices that really are slower are named with the right factor, whatever the links do.

    equal_devices.py STAGECRAFT, from the root of the project
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ["STAGECRAFT_QUIET"] = "1"
binary = str(pathlib.Path(sys.argv[1]).resolve())
# Causes that say that a device, or the work of a stage, is not like the others.
BLAMES = {"slow-device", "uneven-replicas", "unequal-stages", "empty-stage"}
problems = []
scenarios = 0


def expect(holds, name, text):
    if not holds:
        problems.append(f"{name}: {text}")


def run(name, text, *options):
    global scenarios
    scenarios += 1
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "s.yaml"
        file.write_text("schema: scenario/2\n" + text, encoding="utf-8")
        done = subprocess.run([binary, "run", str(file), "--format", "json", *options], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr}")
    return json.loads(done.stdout)["diagnosis"]


def sites(slow, west="a", east="b", types="a: {preset: h100-sxm}, b: {preset: h100-sxm}", of_west="lan", changes=""):
    """Two sites of four equal GPUs, under two names of their type. One has a slow network."""
    return f"""cluster:
  generator: wan
  types: {{{types}}}
  sites:
    - {{name: west, type: {west}, devices: 4, lan: {of_west}}}
    - {{name: east, type: {east}, devices: 4, lan: {"slow" if of_west == "lan" else "lan"}}}
  links:
    lan: {{bandwidth: 400 Gbit/s, latency: 5 us}}
    slow: {{bandwidth: {slow}, latency: 5 us}}
    wan: {{bandwidth: 400 Gbit/s, latency: 5 us}}
{changes}"""


def ports(slow_port, slow="4 Gbit/s", count=4, types=("a", "b")):
    """Equal GPUs around a switch, under two names of their type. The port of one is slow."""
    devices = "".join(f"    - {{name: gpu{i}, type: {types[i % len(types)]}}}\n" for i in range(count))
    links = "".join(f"    - {{name: port{i}, between: [gpu{i}, switch], latency: 2 us, "
                    f"bandwidth: {slow if i == slow_port else '400 Gbit/s'}}}\n" for i in range(count))
    return f"""cluster:
  generator: explicit
  types: {{a: {{preset: h100-sxm}}, b: {{preset: h100-sxm}}}}
  devices:
{devices}  switches: [switch]
  links:
{links}"""


LLAMA = "model: {base: llama-3-8b, override: {layers: 8}}\nsoftware: megatron-no-overlap\n"
UNIFORM = "model: {builder: uniform, layers: 8, forward: 1 ms, backward: 2 ms, output: 16 MB, parameters: 1e6}\nsoftware: none\n"
MIXTRAL = "model: {base: mixtral-8x7b, override: {layers: 4, sequence: 4096}}\nsoftware: megatron-bridge\n"
TENSOR = "plan: {planner: balanced, stages: 2, group: {tensor: 4, sequence: true}}\nrun: {schedule: 1f1b, micro_batches: 8}\n"
FLOWS = TENSOR.replace("micro_batches: 8", "micro_batches: 8, collectives: flows")
DATA = "plan: {planner: balanced, stages: 1, replicas: 4}\nrun: {schedule: 1f1b, micro_batches: 4}\n"
CHAIN = "plan: {planner: balanced, stages: 4}\nrun: {schedule: 1f1b, micro_batches: 16}\n"

# Name, scenario, and what the first finding names: None where the link may be one cause of several.
SLOW_LINK = [
    ("stages, tensor groups", LLAMA + sites("40 Gbit/s") + TENSOR, "east"),
    ("stages, tensor groups, one name of the type", LLAMA + sites("40 Gbit/s", east="a") + TENSOR, "east"),
    ("stages, tensor groups, the first site is slow", LLAMA + sites("40 Gbit/s", of_west="slow") + TENSOR, "west"),
    ("stages, a very slow network", LLAMA + sites("4 Gbit/s") + TENSOR, "east"),
    ("stages, tensor groups whose collectives are messages", LLAMA + sites("40 Gbit/s") + FLOWS, "east"),
    ("exchanges of experts", MIXTRAL + sites("40 Gbit/s") +
     "plan: {planner: balanced, stages: 2, replicas: 4, group: {expert: 4}, shard: optimizer}\n"
     "run: {schedule: 1f1b, global_batch: 32}\n", "east"),
    ("pairs that hide exchanges", MIXTRAL.replace("megatron-bridge", "deepseek-v3") + sites("40 Gbit/s") +
     "plan: {planner: balanced, stages: 4, replicas: 4, group: {expert: 4}, shard: optimizer}\n"
     "run: {schedule: dualpipev, global_batch: 64}\n", "east"),
    ("uneven experts", MIXTRAL.replace("sequence: 4096", "sequence: 4096, experts.imbalance: 2") + sites("40 Gbit/s") +
     "plan: {planner: balanced, stages: 2, replicas: 4, group: {expert: 4}, shard: optimizer}\n"
     "run: {schedule: 1f1b, global_batch: 32}\n", None),
    ("few micro-batches", LLAMA + sites("40 Gbit/s") + TENSOR.replace("micro_batches: 8", "micro_batches: 2"), None),
    ("recomputation", LLAMA + sites("40 Gbit/s") + TENSOR.replace("stages: 2", "stages: 2, recompute: layers"), "east"),
    ("one slow member of a tensor group", LLAMA + ports(2, "20 Gbit/s", types=("a",)) +
     "plan: {planner: balanced, stages: 1, group: {tensor: 4, sequence: true}}\nrun: {schedule: 1f1b, micro_batches: 4}\n",
     "port2"),
    ("replicas of one stage", LLAMA + ports(2) + DATA, "port2"),
    ("replicas of one stage, divided weights", LLAMA + ports(2) +
     DATA.replace("replicas: 4", "replicas: 4, shard: weights"), "port2"),
    ("replicas of one stage without software", UNIFORM.replace("1e6", "1e8") + ports(2) + DATA, "port2"),
    ("replicas of two stages in both sites", LLAMA + sites("4 Gbit/s") +
     "plan: {planner: balanced, stages: 2, replicas: 4, group: {order: tp-cp-ep-pp-dp}}\n"
     "run: {schedule: 1f1b, global_batch: 64}\n", None),
    ("replicas that send over one link", UNIFORM + sites("400 Gbit/s").replace("wan: {bandwidth: 400", "wan: {bandwidth: 4") +
     "plan: {planner: balanced, stages: 2, replicas: 4}\nrun: {schedule: 1f1b, global_batch: 64}\n", None),
    ("stages that alternate between sites", UNIFORM + sites("4 Gbit/s") +
     "plan: {planner: balanced, stages: 4, devices: [west.0, east.0, west.1, east.1]}\n"
     "run: {schedule: 1f1b, micro_batches: 16}\n", "east"),
    ("messages between stages", UNIFORM + ports(2) + CHAIN, "port2"),
    ("messages between stages with a price", LLAMA + ports(2) + CHAIN, "port2"),
]
for name, text, named in SLOW_LINK:
    for options in ((), ("--backend", "ideal")):
        findings = run(name, text, *options)
        for f in findings:
            expect(f["cause"] not in BLAMES, name, f"blames equal devices or stages: {f['sentence']}")
        first = findings[0]
        expect(named is None or (first["cause"] == "slow-link" and named in first["where"] and named in first["sentence"]),
               name, f"'{named}' should be the first cause: {first['cause']} {first['where']}: {first['sentence']}")


def times_as_long(findings, device):
    """How much longer the findings say that the device computes; None where none names it."""
    for f in findings:
        found = re.search(re.escape(device) + r" computes ([0-9.]+) times as long as the fastest", f["sentence"])
        if found and f["cause"] in ("slow-device", "uneven-replicas"):
            return float(found[1])
    return None


# Name, scenario, the device that is slower, and how much.
HALF = "  changes: [{devices: [east.1], speed: 50 %}]\n"
TYPES = "a: {preset: h100-sxm}, b: {preset: h100-sxm, speed: 0.5}"
PEAKS = ("a: {peak: 200 TFLOP/s, memory: 80 GiB, memory_bandwidth: 2 TB/s}, "
         "b: {peak: 100 TFLOP/s, memory: 80 GiB, memory_bandwidth: 1 TB/s}")
REPLICAS = "plan: {planner: balanced, stages: 1, replicas: 8}\nrun: {schedule: 1f1b, micro_batches: 8}\n"
GIVEN = UNIFORM.replace("16 MB", "1 kB").replace("layers: 8", "layers: 16")
SLOWER = [
    ("half the speed in one replica", GIVEN + sites("400 Gbit/s", types=TYPES) + REPLICAS, "east.0", 2),
    ("half the speed in one replica, slow network", GIVEN + sites("4 Gbit/s", types=TYPES) + REPLICAS, "east.0", 2),
    ("half the peak and the bandwidth of memory", LLAMA.replace("megatron-no-overlap", "plain").replace("layers: 8", "layers: 2") +
     sites("400 Gbit/s", types=PEAKS) + REPLICAS, "east.0", 2),
    ("a device of a group slows down", LLAMA + sites("400 Gbit/s", east="a", changes=HALF) + TENSOR, "east.1", 2),
    ("a device of a group slows down, slow network", LLAMA + sites("40 Gbit/s", east="a", changes=HALF) + TENSOR, "east.1", 2),
    ("a device of a group slows down, two names of its type", LLAMA + sites("40 Gbit/s", changes=HALF) + TENSOR, "east.1", 2),
]
for name, text, device, factor in SLOWER:
    findings = run(name, text, "--backend", "ideal")
    found = times_as_long(findings, device)
    expect(found is not None, name, f"'{device}' is not named: {[f['sentence'] for f in findings]}")
    expect(found is None or abs(found - factor) < 0.011, name, f"{found} times as long, planted {factor}")
print(f"{scenarios} runs, {len(problems)} problems")
print("\n".join(problems))
sys.exit(1 if problems else 0)
