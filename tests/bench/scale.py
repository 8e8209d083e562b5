#!/usr/bin/env python3
"""Planners on clusters of thousands of GPUs and of mixed types: what each answers, and what the answer costs.

    scale.py STAGECRAFT [PLANNER[,PLANNER...]] [CLUSTER[;CLUSTER...]]

A transformer of 128 layers, each planner in a process by itself: user CPU seconds and peak memory of planning and
simulating, the predicted and the simulated time of a micro-batch, the planner's bound, and the devices that its plan
uses. `run` must take each answer, with the options of its row. `tools/bench scale` prints the same table.
"""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

PLANNERS = ["balanced", "spp", "pipedream", "piper", "graphpipe", "graph-exact"]
MOST_SECONDS, MOST_BYTES = 60, 4 << 30

TYPES = ["h100-sxm", "a100-80", "a100-40", "v100-32"]


def pods(count, gpus):
    """Nodes of as many GPUs behind NVLink, the types in turn."""
    types = TYPES if gpus != 8 or count == 64 else TYPES[:1]
    nodes = "".join(f"    - {{name: n{i}-, gpus: {gpus}, type: {types[i * len(types) // count]}, nvlink: nvlink, nic: ndr}}\n"
                    for i in range(count))
    return ("cluster:\n  generator: nvlink_pods\n  nodes:\n" + nodes +
            "  links:\n    nvlink: {bandwidth: 300 GB/s, latency: 1 us}\n    ndr: {bandwidth: 400 Gbit/s, latency: 2 us}\n")


CLUSTERS = {"1,024 GPUs": lambda: pods(128, 8), "4,096 GPUs": lambda: pods(512, 8), "64 nodes of 4 types": lambda: pods(64, 1),
            "64 nodes of 8 GPUs of 4 types": lambda: pods(64, 8)}
DEVICES = dict(zip(CLUSTERS, [1024, 4096, 64, 512]))


def scenario(cluster, planner):
    """Micro-batches of 64 samples, so that 64 replicas may share one. `balanced` needs numbers of stages and replicas."""
    replicas = DEVICES[cluster] // 64
    options = f"stages: 64, replicas: {replicas}, micro_batch_size: {64 // replicas}" if planner == "balanced" else "micro_batch_size: 64"
    return f"""schema: scenario/2
software: none
title: Planners at scale
model: {{builder: transformer, kind: gpt, layers: 128, hidden: 2048, heads: 16, sequence: 1024, vocabulary: 50257, precision: mixed}}
{CLUSTERS[cluster]()}plan: {{planner: {planner}, {options}}}
run: {{schedule: 1f1b, micro_batches: 128}}
"""


def answer(stagecraft, file, planner):
    """The row of `plan`, user CPU seconds, and peak resident bytes of the process."""
    out_read, out_write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (4 * MOST_SECONDS, 4 * MOST_SECONDS))
        os.dup2(out_write, 1)
        os.close(out_read)
        os.environ["STAGECRAFT_QUIET"] = "1"
        os.execv(stagecraft, [stagecraft, "plan", file, "--planner", planner, "--format", "json", "--replay", "0"])
    os.close(out_write)
    with os.fdopen(out_read) as out:
        text = out.read()
    _, status, usage = os.wait4(child, 0)
    plans = json.loads(text)["plans"] if text else []
    return (plans[0] if plans else None), usage.ru_utime, usage.ru_maxrss * 1024, status


def is_run(stagecraft, file, plan):
    """Whether `run` takes the options of the row. The cell of a table."""
    sets = [word for option in plan["set"] for word in ("--set", option)]
    done = subprocess.run([stagecraft, "run", file, "-b", "ideal", "--format", "json", *sets], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, env={**os.environ, "STAGECRAFT_QUIET": "1"})
    return "yes" if done.returncode == 0 else "refused: " + done.stderr.strip().splitlines()[0]


def rows(stagecraft, planners=PLANNERS, clusters=tuple(CLUSTERS)):
    with tempfile.TemporaryDirectory() as folder:
        for cluster in clusters:
            for planner in planners:
                file = pathlib.Path(folder) / "scale.yaml"
                file.write_text(scenario(cluster, planner))
                plan, *costs = answer(str(stagecraft), str(file), planner)
                if plan and plan["ran"]:
                    plan["run"] = is_run(str(stagecraft), str(file), plan)
                yield (cluster, planner, plan, *costs)


def milliseconds(seconds):
    return f"{1e3 * seconds:.3f} ms"


def answer_text(plan):
    """Predicted, bound and simulated time of a micro-batch, devices and stages, and what the answer is."""
    if plan is None:
        return "| | | | | | | no answer |"
    if not plan["ran"]:
        return f"| | | | | | | {plan['reason']} |"
    what = "; ".join(x for x in (plan["lower_bound_reason"], plan["model_limit_reason"], plan["change"]) if x)
    return (f"| {milliseconds(plan['predicted_s'])} | {milliseconds(plan['lower_bound_s'])} | {milliseconds(plan['simulated_s'])} "
            f"| {plan['devices']} of {{devices}} | {plan['stages']} | {plan['run']} | {what} |")


def summary(plan, cluster):
    """The same in one sentence."""
    if plan is None or not plan["ran"]:
        return "no answer" if plan is None else plan["reason"][:80]
    changed = f"; with {plan['change']}" if plan["change"] else ""
    return (f"{plan['devices']} of {DEVICES[cluster]} devices; a micro-batch takes {milliseconds(plan['simulated_s'])}, predicted "
            f"{milliseconds(plan['predicted_s'])}, bound {milliseconds(plan['lower_bound_s'])}; accepted by run: {plan['run']}; {plan['model_limit_reason']}{changed}")


def main():
    planners = sys.argv[2].split(",") if len(sys.argv) > 2 else PLANNERS
    clusters = sys.argv[3].split(";") if len(sys.argv) > 3 else list(CLUSTERS)
    print("| cluster | planner | CPU | memory | predicted | bound | simulated | devices | stages | run | how |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---|---|")
    missed = []
    for cluster, planner, plan, seconds, memory, _ in rows(sys.argv[1], planners, clusters):
        print(f"| {cluster} | {planner} | {seconds:.1f} s | {memory / 2**30:.2f} GiB " + answer_text(plan).format(devices=DEVICES[cluster]), flush=True)
        if seconds > MOST_SECONDS or memory > MOST_BYTES or plan is None or not plan["ran"]:
            missed.append(f"{planner} on {cluster}")
        elif plan["simulated_s"] < plan["lower_bound_s"] * (1 - 1e-9):
            missed.append(f"{planner} on {cluster}: simulated below the bound of all plans")
        elif plan["run"] != "yes":
            missed.append(f"{planner} on {cluster}: {plan['run']}")
    if missed:
        sys.exit(f"not answered within {MOST_SECONDS} s and 4 GiB: " + "; ".join(missed))


if __name__ == "__main__":
    main()
