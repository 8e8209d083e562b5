#!/usr/bin/env python3
"""Transfers at once in a box, by iperf3, next to the rates of `fluid`: transfers.py STAGECRAFT [--queue fifo] [--seconds S].

The box is scenarios/boxes/star.yaml. Each set of transfers runs three times; printed is the rate of each in Mbit/s, simulated
and measured (median; smallest and largest), without the first second, in which TCP starts. Needs iperf3 and namespaces."""
import argparse
import csv
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import tempfile
import time

import yaml

STAR = pathlib.Path("scenarios/boxes/star.yaml")
SETS = ("a0>b0", "a0>c0", "a0>b0 a1>b0", "a0>b0 a1>b0 a1>c0", "a0>b0 b0>a0", "a0>c0 c0>a0", "a0>c0 a1>c0 c0>a1")
MEGABYTES = 12.5
BOX = "transfers"


def simulated(tool, pairs):
    """The rate of each transfer: its bytes over its time, which is that of the whole set while no other one ends before it."""
    scenario = yaml.safe_load(STAR.read_text())
    amounts = {"forward": "1 FLOP", "input_gradient": "1 FLOP", "weight_gradient": "1 FLOP", "parameters": 1, "stash": "1 B"}
    layers, stages = [], {}
    for end, output in enumerate((f"{MEGABYTES} MB", "1 B")):  # Stages are in this order: those that send are 0, 1, ...
        for i, pair in enumerate(pairs):
            name = f"{'from to'.split()[end]}{i}"
            layers.append({"name": name, "inputs": [f"from{i}"] if end else [], "output": output, **amounts})
            stages[name] = {"layers": [name], "device": pair[end]}
    scenario |= {"model": {"builder": "listed", "layers": layers}, "plan": {"planner": "explicit", "stages": stages},
                 "run": {"schedule": "inference", "micro_batches": 1, "iterations": 1, "sends": "shared"}}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "transfers.yaml")
        file.write_text(yaml.safe_dump(scenario))
        subprocess.run([tool, "run", file, "--backend", "fluid", "-q", "--out", f"{folder}/out"], check=True, stdout=subprocess.DEVNULL)
        spans = list(csv.DictReader(open(f"{folder}/out/spans.csv")))
    times = {int(s["stage"]): (float(s["end_ns"]) - float(s["start_ns"])) / 1e9 for s in spans if s["kind"] == "send"}
    return [8 * MEGABYTES / times[i] for i in range(len(pairs))]


def measured(tool, pairs, seconds):
    """The rate of each transfer, all at once: payload that has arrived."""
    inside = lambda device, *words: [tool, "cluster", "exec", f"{BOX}/{device}", "--", "iperf3", *words]
    servers = [subprocess.Popen(inside(target, "-s", "-1", "-p", str(5201 + i)), stdout=subprocess.DEVNULL) for i, (_, target) in enumerate(pairs)]
    time.sleep(0.5)
    clients = [subprocess.Popen(inside(source, "-c", target, "-p", str(5201 + i), "-t", str(seconds), "-O", "1", "-J"), stdout=subprocess.PIPE)
               for i, (source, target) in enumerate(pairs)]
    answers = [json.loads(client.communicate()[0]) for client in clients]
    for server in servers:
        server.wait()
    return [answer["end"]["sum_received"]["bits_per_second"] / 1e6 for answer in answers]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("tool")
    options.add_argument("--queue", default="fair")
    options.add_argument("--seconds", type=int, default=5)
    given = options.parse_args()
    tool = str(pathlib.Path(given.tool).resolve())
    version = re.search(r"iperf (\S+)", subprocess.run(["iperf3", "--version"], capture_output=True, text=True, check=True).stdout)[1]
    print(f"Linux {platform.release()}, iperf3 {version}, queues: {given.queue}, load {os.getloadavg()[0]:.1f}\n")
    print("| transfers at once | fluid | iperf3 | of three |\n|---|---:|---:|---|")
    subprocess.run([tool, "cluster", "up", STAR, "--name", BOX, "--queue", given.queue, "--no-check"], check=True, stdout=subprocess.DEVNULL)
    try:
        for text in SETS:
            pairs = [pair.split(">") for pair in text.split()]
            rates = list(zip(*(measured(tool, pairs, given.seconds) for _ in range(3))))
            print("| {} | {} | {} | {} |".format(
                ", ".join(" to ".join(pair) for pair in pairs),
                ", ".join(f"{r:.1f}" for r in simulated(tool, pairs)), ", ".join(f"{statistics.median(r):.1f}" for r in rates),
                ", ".join(f"{min(r):.1f} to {max(r):.1f}" for r in rates)), flush=True)
    finally:
        subprocess.run([tool, "cluster", "down", BOX], stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
