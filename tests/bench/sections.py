"""What is measured: each section yields its rows as they come."""
import csv
import dataclasses
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
import typing

import powers
import scale
import searches
import validations


@dataclasses.dataclass
class Setting:
    root: pathlib.Path
    build: pathlib.Path
    quick: bool

    @property
    def runs(self):
        return 3 if self.quick else 5

    def program(self, name):
        return self.build / "tests/bench" / name

    @property
    def tool(self):
        return self.build / "bin/stagecraft"


@dataclasses.dataclass
class Row:
    of: str
    size: str
    ours: str
    beside: str = ""
    ratio: typing.Optional[float] = None
    what: str = ""
    count: float = 0  # With seconds: a point of the picture of growth.
    seconds: float = 0


def output(command):
    return subprocess.run([str(w) for w in command], check=True, capture_output=True, text=True).stdout


def contended(setting, *words):
    """CPU seconds of routes and simulation, activities, bytes an activity, makespan."""
    found = re.search(r"([0-9.e+]+) activities, routes ([0-9.]+) s, simulation ([0-9.]+) s.* ([0-9]+) bytes each, makespan ([0-9.]+)",
                      output([setting.program("contended_bench"), *words]))
    activities, routes, run, each, makespan = (float(x) for x in found.groups())
    return routes + run, activities, each, makespan


def sized(r, p, m):
    return f"{r} x {p} x {m}"


def bare(setting):
    """The simgrid backend against a SimGrid loop that knows only this workload."""
    source = pathlib.Path(os.environ.get("STAGECRAFT_PROTOTYPES", "")) / "simgrid/sgbest.cpp"
    if not os.environ.get("STAGECRAFT_PROTOTYPES") or not source.is_file():
        yield Row("simgrid", "", "SKIPPED", what="STAGECRAFT_PROTOTYPES is not set, nothing to compare with")
        return
    loop = setting.build / "sgbest"
    subprocess.run(["g++", "-O2", "-std=c++17", "-Wno-deprecated-declarations", str(source), "-o", str(loop), "-lsimgrid"], check=True)
    same_network = ["--cfg=network/model:CM02", "--cfg=network/crosstraffic:0", "--cfg=network/latency-factor:0",
                    "--cfg=network/TCP-gamma:1e30", "--cfg=surf/precision:1e-12", "--log=root.thres:error"]
    for r, p, m in [(1, 64, 1024), (1, 4096, 32), (16, 64, 64)]:
        theirs, ours = 1e9, 1e9
        for _ in range(setting.runs):
            facts = json.loads(output([loop, f"r={r}", f"p={p}", f"m={m}", *same_network]))
            theirs = min(theirs, facts["plat_s"] + facts["run_s"])
            seconds, _, _, makespan = contended(setting, "simgrid", r, p, m)
            ours = min(ours, seconds)
        if abs(makespan - facts["makespan"]) > 1e-9 * makespan:
            raise SystemExit(f"simgrid: makespan {makespan}, of the bare loop {facts['makespan']}")
        yield Row("simgrid, 1F1B", sized(r, p, m), f"{ours:.3f} s", f"{theirs:.3f} s", theirs / ours, "a bare SimGrid loop, same makespan")


def fluid(setting):
    """fluid compared with simgrid with all devices busy; the last rows have eight devices on each card."""
    sizes = [(1, 8, 8192), (1, 64, 1024), (64, 8, 64), (512, 8, 32)] + ([] if setting.quick else [(2048, 8, 16)])
    for words, workloads in ([], sizes), (["nodes"], [(64, 8, 64), (512, 8, 32)]):
        for r, p, m in workloads:
            seconds, makespan = {"simgrid": 1e9, "fluid": 1e9}, {}
            for _ in range(1 if r * p > 1000 else setting.runs):
                for engine in seconds:
                    took, _, _, makespan[engine] = contended(setting, engine, *words, r, p, m)
                    seconds[engine] = min(seconds[engine], took)
            apart = abs(makespan["fluid"] / makespan["simgrid"] - 1)
            yield Row("fluid" + (", 8 devices a card" if words else ""), sized(r, p, m), f"{seconds['fluid']:.3f} s",
                      f"{seconds['simgrid']:.3f} s", seconds["simgrid"] / seconds["fluid"], f"simgrid; makespans {apart:.0e} apart")


def road(setting):
    """Every step from a schedule to a report, and how it grows: double the size, double the time."""
    before = {}
    for p, m in [(64, 1024), (256, 1024), (1024, 256), (1024, 1024)] + ([] if setting.quick else [(4096, 2048)]):
        text = output([setting.program("road_bench"), p, m, *(["simgrid"] if p * m <= 1 << 18 else [])])
        steps = {s.strip(): (float(t), float(rate)) for s, t, rate in re.findall(r"^(\S[^0-9\n]*?) +([0-9.]+) s +([0-9.]+) M/s", text, re.M)}
        for step, (seconds, rate) in steps.items():
            if step == "ideal, first":
                continue
            ratio = beside = what = None
            if step in before and before[step][1] > 0.02 and p * m > before[step][0]:
                size, earlier = before[step]
                ratio, beside = (p * m / size) / (seconds / earlier), f"{earlier:.3f} s"
                power = math.log(seconds / earlier) / math.log(p * m / size)
                what = f"{p * m / size:g} times smaller: power {power:.2f} of the size"
            yield Row(step, f"{p} x {m}", f"{seconds:.3f} s, {rate:.2f} M/s", beside or "", ratio, what or "", p * m, seconds)
            before[step] = p * m, seconds
        gib, each = re.findall(r"([0-9.]+) GiB", text)[-1], re.search(r"([0-9.]+) bytes each", text).group(1)
        yield Row("memory", f"{p} x {m}", f"{gib} GiB", what=f"{each} bytes an instruction")
    for p, m in [(64, 2048), (64, 16384)] + ([] if setting.quick else [(256, 32768)]):
        yield whole_run(setting, p, m)


PIPELINE = """schema: scenario/2
software: none
title: The whole road
model: {{builder: uniform, layers: {p}, forward: 1 ms, backward: 2 ms, parameters: 1000000, stash: 1 MiB, output: 1 MiB}}
cluster: {{generator: uniform, devices: {p}, network: star, type: h100-sxm, link: {{bandwidth: 50 GB/s, latency: 5 us}}}}
plan: {{planner: balanced, stages: {p}, replicas: 1, micro_batch_size: 1}}
run: {{schedule: 1f1b, micro_batches: {m}, iterations: 1}}
"""


def whole_run(setting, p, m):
    """`run` on `ideal` from the scenario to what it prints. Its bubble is too small for suggestions, which would be simulated too."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "pipeline.yaml"
        command = [setting.tool, "run", file, "--backend", "ideal", "--format", "json"]
        file.write_text(PIPELINE.format(p=p, m=1))
        least = cpu_of(command)[2]  # GiB.
        file.write_text(PIPELINE.format(p=p, m=m))
        runs = [cpu_of(command) for _ in range(1 if p * m > 1 << 22 else setting.runs)]
    count, seconds, memory = json.loads(runs[0][0])["instructions"], min(run[1] for run in runs), min(run[2] for run in runs)
    return Row("stagecraft run", f"{p} x {m}", f"{seconds:.3f} s, {count / seconds / 1e6:.2f} M/s", f"{memory:.2f} GiB", None,
               f"memory: {2**30 * (memory - least) / count:.0f} bytes an instruction more than the {2**10 * least:.0f} MiB of one micro-batch", p * m, seconds)


def lines_of(setting, program):
    return [line.split() for line in output([setting.program(program)]).splitlines()]


def kernels(setting):
    """Linear layers of the cpu backend against bare Eigen on the same shapes, one thread, medians in turn."""
    for words in lines_of(setting, "kernels_bench"):
        if len(words) > 8 and words[0] in ("float", "double"):
            ours, eigen, ratio = words[-3:]
            yield Row(f"{words[0]} {' '.join(words[6:-3])}", " ".join(words[1:6]), f"{ours} GFLOP/s", f"{eigen} GFLOP/s", float(ratio), "bare Eigen")


MLP = ("model: {builder: mlp, widths: [784, 1024, 1024, 10], activation: relu, loss: mean_square}\n", "mlp 784-1024-1024-10", 64)
GPT = ("model: {builder: transformer, kind: gpt, layers: 8, hidden: 256, heads: 8, sequence: 64, vocabulary: 1000, tied: false}\n",
       "gpt, 8 layers of 256, 64 words", 4)


def torch(setting):
    """Training on one thread against PyTorch with Debian's python3-torch, the same shapes with Adam, in turn: least CPU time of each."""
    script, rounds = setting.root / "tests/bench/torch_training.py", 2 if setting.quick else 6
    for name, (model, title, samples) in {"mlp": MLP, "gpt": GPT}.items():
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "scenario.yaml")
            file.write_text("schema: scenario/2\n" + model + "cluster: threads-8\nplan: {planner: balanced, stages: 1, micro_batch_size: "
                            f"{samples}}}\nrun: {{schedule: 1f1b, micro_batches: 2}}\nsoftware: none\n"
                            "training: {task: random, optimizer: adam, learning_rate: 0.001}\n")
            ours, theirs, version = {}, {}, ""
            for _ in range(setting.runs):
                # The interpreter of the system has the package; the one that runs this may not.
                done = subprocess.run(["/usr/bin/python3", script, name, str(samples), str(rounds)], capture_output=True, text=True,
                                      env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
                if done.returncode != 0:
                    yield Row("training", title, "SKIPPED", what=done.stderr.strip() or "PyTorch did not run")
                    return
                others = json.loads(done.stdout)
                version = others["version"]
                mine = json.loads(output([setting.program("training_bench"), file, samples, rounds]))
                if mine["parameters"] != others["parameters"]:
                    raise SystemExit(f"torch: {mine['parameters']} parameters, of the model in PyTorch {others['parameters']}")
                for part in ("forward", "backward", "update"):
                    ours[part] = min(ours.get(part, math.inf), mine[part])
                    theirs[part] = min(theirs.get(part, math.inf), others[part])
            for seconds in (ours, theirs):
                seconds["iteration"] = sum(seconds.values())
            for part in ("forward", "backward", "update", "iteration"):
                yield Row(f"{name}, {part}", f"{samples} samples", f"{1e3 * ours[part]:.2f} ms", f"{1e3 * theirs[part]:.2f} ms",
                          theirs[part] / ours[part], f"PyTorch {version}")


def validated(setting):
    """Simulation against real runs on this machine, as wall time: what `stagecraft validate` says, with the load."""
    for case, errors, sure, load in validations.table(str(setting.tool), 1 if setting.quick else 5, validations.CASES, 1 if setting.quick else 2):
        yield Row(case, sure, errors, what=load)


def interpreter(setting):
    """What the interpreter of real execution adds to an instruction."""
    for line in output([setting.program("interpreter_bench")]).splitlines():
        if found := re.match(r"(.*?) +([0-9]+) instructions +([0-9.]+) us each(.*)", line):
            of, count, each, also = found.groups()
            yield Row(of, f"{count} instructions", f"{each} us each", what=also.strip(", ") or "ops that do nothing")


def schedules(setting):
    """How long each schedule takes to make and to validate, and how that grows: 1 is with the number of ops."""
    few = (2048, 4)  # Micro-batches on many ranks: work for every pair of ranks shows here first.
    large = [few, (1024, 4096, "1f1b"), (16384, 16, "1f1b"), (64, 256, "unequal", "v-adaptive")]
    for p, m, *names in [(16, 512)] + ([] if setting.quick else large):
        costs = " with unequal times" if "unequal" in names else ""
        for line in output([setting.program("schedules_bench"), p, m, *names]).splitlines()[2:]:
            words = line.replace("M/s", "").replace(" s ", " ").split()
            name, ops, made, rate, micro_batches, ranks, validated, checked = words[:8]
            yield Row(f"{name}{costs}, made", f"{p} x {m}", f"{made} s, {rate} M ops/s", what=f"power of ops: {micro_batches} with micro-batches, {ranks} with ranks")
            yield Row(f"{name}{costs}, validated", f"{p} x {m}", f"{validated} s, {checked} M ops/s",
                      what=f"power of ops: {words[8]} with micro-batches, {words[9]} with ranks")


def scenario_for(folder, devices, model="resnet50", bandwidth="100 Gbit/s"):
    file = pathlib.Path(folder) / f"{devices}.yaml"
    file.write_text(f"""schema: scenario/2
software: none
title: Planners timed
model: {model}
cluster: {{generator: uniform, devices: {devices}, type: h100-sxm, link: {{bandwidth: {bandwidth}, latency: 5 us}}}}
plan: {{planner: balanced, stages: 4, micro_batch_size: 32}}
run: {{schedule: 1f1b, micro_batches: {2 * devices}}}
""")
    return file


def planned(setting, file, planner):
    """What `plan` says of one planner, or why it could not."""
    done = subprocess.run([str(w) for w in (setting.tool, "plan", file, "--planner", planner, "--format", "json")], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)["plans"][0]


def cpu_of(command):
    """Output, CPU seconds and peak GiB of a command, from a separate process."""
    done = subprocess.Popen([str(w) for w in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    text = done.stdout.read()
    _, status, usage = os.wait4(done.pid, 0)
    if status != 0:
        raise SystemExit(f"{command} failed")
    return text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def costs(setting):
    """Costs from shapes: Llama 3 405B on 16,384 GPUs as one plan, simulated, and as a search whose candidates share the costs of layers."""
    file = setting.root / "scenarios/examples/llama-3-405b-16384.yaml"
    for words in ["show", file, "--what", "costs"], ["run", file, "--backend", "ideal"], ["run", file, "--backend", "fluid", "--set", "run.collectives=flows"]:
        _, seconds, memory = cpu_of([setting.tool, *words])
        yield Row("show costs" if words[0] == "show" else "run, " + words[3], "Llama 405B on 16,384", f"{seconds:.2f} s", f"{memory:.2f} GiB")
    text, seconds, _ = cpu_of([setting.tool, "search", setting.root / "scenarios/examples/llama-3-8b-4x8.yaml", "--format", "json", "-j", "1"])
    plans = json.loads(text)["plans"]
    yield Row("search", f"Llama 8B on 32, {plans} plans", f"{seconds:.2f} s", f"{1e3 * seconds / plans:.2f} s for 1,000")


def planners(setting):
    """ResNet-50, a graph of 175 layers, cut for growing clusters."""
    with tempfile.TemporaryDirectory() as folder:
        for planner in "balanced pipedream spp 2bw piper graph-exact graphpipe".split():
            for devices in (8, 16) if setting.quick else (8, 16, 32):
                plan = planned(setting, scenario_for(folder, devices), planner)
                took = f"{plan['search_s'] * 1e3:.3g} ms" if plan["ran"] else "refused"
                yield Row(planner, f"{devices} devices", took, what=f"{plan['states']} states" if plan["ran"] else plan["reason"][:80])


def scale_of_planners(setting):
    """Planners for a transformer of 128 layers on thousands of GPUs and on four types of GPU."""
    clusters = ["64 nodes of 4 types"] if setting.quick else list(scale.CLUSTERS)
    for cluster, planner, plan, seconds, memory, _ in scale.rows(setting.tool, clusters=clusters):
        yield Row(planner, cluster, f"{seconds:.1f} s, {memory / 2**30:.2f} GiB", what=scale.summary(plan, cluster))


def searches_by_size(setting):
    """Searches on 32 to 16,384 GPUs with the time that their size may take: both cores, dense and experts, without and with a framework."""
    for model, gpus, software, *result in searches.rows(setting.tool, [32] if setting.quick else list(searches.SECONDS)):
        wall, cpu, memory, rate, period, gap, end = searches.cells(*result)
        yield Row(f"{model}, {software}", f"{gpus:,} GPUs", f"{wall} clock, {cpu} CPU, {memory}",
                  what=f"{rate} plans and simulations for each second of CPU; {period}, at most {gap} above the bound; {end}" if period else end)


def growth_of_steps(setting):
    """How the time of planners and of search grows with layers, devices and micro-batches: 1 is with the size, 2 with its square."""
    for step, axis, sizes, seconds, states in powers.rows(str(setting.tool), setting.quick):
        times, power = powers.text_of(step, axis, sizes, seconds, states)
        yield Row(step, f"{sizes[0]} to {sizes[-1]} {axis}", times, what=power)


SWEEP = """schema: sweep/1
title: Points a second
base: {base}
backend: {backend}
axes:
  model: [gpt2-small, gpt2-medium]
  run.schedule: [gpipe, 1f1b, zb-h1, eager-1f1b]
  run.micro_batches: {{from: 8, to: 64, times: 2}}
  plan.micro_batch_size: [1, 2, 4]
"""


def sweeps(setting):
    """Points a second of the clock with two workers and with one: the tables must be the same."""
    with tempfile.TemporaryDirectory() as folder:
        for backend in ("ideal", "fluid", "simgrid"):
            file = pathlib.Path(folder) / f"{backend}.yaml"
            file.write_text(SWEEP.format(base=setting.root / "scenarios/examples/gpt-1f1b-16.yaml", backend=backend))
            seconds, tables = {}, {}
            for workers in (1, 2):
                start = time.monotonic()
                tables[workers] = output([setting.tool, "sweep", file, "-j", workers, "--out", f"{folder}/{backend}{workers}.db", "--format", "csv"])
                seconds[workers] = time.monotonic() - start
            points = len(tables[1].splitlines()) - 1
            if tables[1] != tables[2]:
                raise SystemExit(f"sweep on {backend}: two workers give another table than one")
            yield Row(f"sweep on {backend}", f"{points} points", f"{points / seconds[2]:.0f} a second", f"{points / seconds[1]:.0f} a second",
                      seconds[1] / seconds[2], "one worker; same table")


MILLION = """schema: scenario/2
software: none
title: A million spans
model: {builder: uniform, layers: 256, forward: 1 ms, backward: 2 ms, output: 16 MiB, stash: 1 MiB}
cluster: {generator: uniform, devices: 256, network: star, type: a100-80, link: {bandwidth: 50 GB/s, latency: 2.5 us}}
plan: {planner: balanced, stages: 256}
run: {schedule: 1f1b, micro_batches: 650, iterations: 1}
"""


def pages(setting):
    """The page of a run with 996,056 spans, opened by a headless Chromium that draws in software; on the clock."""
    with tempfile.TemporaryDirectory() as folder:
        file, html = pathlib.Path(folder) / "million.yaml", pathlib.Path(folder) / "page.html"
        file.write_text(MILLION)
        output([setting.tool, "run", file, "--backend", "fluid", "--no-gantt", "--html", html])
        opened = []
        for _ in range(setting.runs):
            done = subprocess.run(["node", setting.root / "tests/bench/page_paint.mjs", html], capture_output=True, text=True)
            if done.returncode == 77:
                yield Row("page", "", "SKIPPED", what=done.stdout.strip())
                return
            opened.append(json.loads(done.stdout))
        for mark, what in ("drawn", "the first picture, of what is in sight"), ("whole", "everything"):
            yield Row(f"page, {mark}", "996,056 spans", f"{statistics.median(m[mark] for m in opened) / 1e3:.2f} s",
                      what=f"{what}; {html.stat().st_size / 1e6:.1f} MB, median of {len(opened)}")


# Nodes a CPU second of ASTRA-sim (master 518bd51, analytical network) on traces of 1F1B; its messages count twice.
ASTRA_SIM = {8: 74e3, 64: 60e3, 512: 43e3, 1024: 37e3}


def recorded(setting):
    """Figures that others' programs gave on another day and machine."""
    for devices, theirs in ASTRA_SIM.items():
        micro_batches = (1 << 19) // devices
        seconds, activities, _, _ = contended(setting, "fluid", 1, devices, micro_batches)
        ours = activities / seconds
        yield Row("fluid, 1F1B", f"{devices} x {micro_batches}", f"{ours / 1e6:.2f} M activities/s", f"{theirs / 1e6:.3f} M nodes/s", ours / theirs,
                  "ASTRA-sim, analytical, 1e6 nodes; recorded")
    yield from recorded_planner(setting)


def recorded_planner(setting):
    data = pathlib.Path(__file__).resolve().parents[1] / "reference/data"
    profile = json.loads((data / "pipedream_profiles.json").read_text())["resnet50"]
    names = ["forward_compute_time", "backward_compute_time", "activation_size", "parameter_size"]
    layers = [" -- ".join([*words[:2], ", ".join(f"{name}={x}" for name, x in zip(names, words[2:]))]) for words in map(str.split, profile["layers"])]
    edges = ["\t" + edge.replace(" ", " -- ") for edge in profile["edges"]]
    with tempfile.TemporaryDirectory() as folder:
        graph = pathlib.Path(folder) / "graph.txt"
        graph.write_text("\n".join([*layers, *edges, ""]))
        model = pathlib.Path(folder) / "resnet50.yaml"
        model.write_text(output([setting.tool, "import", "pipedream-graph", graph, "--samples", 128]))
        plan = planned(setting, scenario_for(folder, 16, model, "25 Gbit/s"), "pipedream")
    runs = csv.DictReader(line for line in open(data / "pipedream_optimizer.csv") if not line.startswith("#"))
    theirs = next(float(r["cpu_seconds"]) for r in runs if (r["model"], r["setting"], r["straight"]) == ("resnet50", "B16f_3.125", "0"))
    yield Row("pipedream", "ResNet-50 on 16", f"{plan['search_s']:.4f} s", f"{theirs:.2f} s", theirs / plan["search_s"], "PipeDream's own planner; recorded")


ALL = {"bare": bare, "fluid": fluid, "road": road, "schedules": schedules, "planners": planners, "costs": costs,
       "scale": scale_of_planners, "searches": searches_by_size, "growth": growth_of_steps, "sweeps": sweeps, "pages": pages, "kernels": kernels, "torch": torch, "validations": validated,
       "interpreter": interpreter, "recorded": recorded}
