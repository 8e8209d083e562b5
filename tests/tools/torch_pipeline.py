#!/usr/bin/env python3
"""Compares a pipeline of PyTorch with its simulation: torch_pipeline.py STAGECRAFT.

Two processes with gloo train a pipeline of two stages on the CPU (GPipe) and profile themselves. Both traces are
imported, each stage gets the times of its layers, and the simulated time of an iteration is printed next to the
measured one. Debian's PyTorch 1.13 has no Kineto, so layers are ranges of record_function(). Exit code 77 says that
PyTorch is missing."""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

LAYERS, WIDTH, SAMPLES, MICRO_BATCHES, ITERATIONS, SKIPPED = 3, 512, 64, 4, 12, 77


def train(rank, folder):
    """One stage: all forwards, then all backwards, layer by layer, so that each has a range of its own."""
    import torch
    import torch.distributed as dist
    from torch.profiler import record_function
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    layers = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()) for _ in range(LAYERS)]
    optimizer = torch.optim.SGD([p for layer in layers for p in layer.parameters()], lr=1e-3)

    def iteration():
        saved = []
        for _ in range(MICRO_BATCHES):
            x = torch.randn(SAMPLES, WIDTH) if rank == 0 else torch.empty(SAMPLES, WIDTH)
            if rank == 1:
                dist.recv(x, 0)
            pairs = []
            for number, layer in enumerate(layers):
                x = x.detach().requires_grad_()
                with record_function(f"block_{number}"):
                    y = layer(x)
                pairs.append((x, y))
                x = y
            saved.append(pairs)
            if rank == 0:
                dist.send(x.detach(), 1)
        for pairs in saved:
            gradient = torch.ones(SAMPLES, WIDTH)
            if rank == 0:
                dist.recv(gradient, 1)
            for number, (x, y) in reversed(list(enumerate(pairs))):
                with record_function(f"block_{number} backward"):
                    torch.autograd.backward(y, gradient)
                gradient = x.grad
            if rank == 1:
                dist.send(gradient, 0)
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()

    for _ in range(3):
        iteration()
    times = []
    with torch.autograd.profiler.profile() as profiler:
        for _ in range(ITERATIONS):
            start = time.perf_counter()
            iteration()
            times.append(time.perf_counter() - start)
    profiler.export_chrome_trace(f"{folder}/trace-{rank}.json")
    pathlib.Path(folder, f"times-{rank}.json").write_text(json.dumps(times))


def imported_layers(program, folder, rank):
    """The layers that `import kineto` makes of one trace, with names that both stages can have in one model."""
    done = subprocess.run([program, "import", "kineto", f"{folder}/trace-{rank}.json", "--layer", "block", "--samples",
                           str(SAMPLES)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(f"rank {rank}: {done.stderr.strip()}")
    assert f"{LAYERS} layers with {ITERATIONS * MICRO_BATCHES} calls each" in done.stderr, done.stderr
    import yaml
    layers = yaml.safe_load(done.stdout)["layers"]
    assert len(layers) == LAYERS and all(float(layer["forward"].split()[0]) > 0 for layer in layers), layers
    return layers


def simulated(program, folder, stages):
    """Seconds of an iteration on two devices with the bandwidth of memory between them."""
    import yaml
    layers = []
    for rank, of_stage in enumerate(stages):
        for layer in of_stage:
            layers.append({**layer, "name": f"stage{rank}_{layer['name']}", "output": f"{4 * WIDTH} B",
                           "inputs": [layers[-1]["name"]] if layers else []})
    names = [layer["name"] for layer in layers]
    cluster = {"schema": "cluster/1", "generator": "uniform", "devices": 2, "prefix": "process", "type": "thread",
               "network": "dedicated", "link": {"bandwidth": "1 GB/s", "latency": "50 us"},
               "types": {"thread": {"peak": "1 GFLOP/s", "memory_bandwidth": "10 GB/s", "memory": "4 GiB"}}}
    scenario = {
        "schema": "scenario/2", "model": "model.yaml", "cluster": "cluster.yaml", "software": "none",
        "plan": {"planner": "explicit", "stages": {
            f"stage{rank}": {"layers": [f"{names[rank * LAYERS]}..{names[rank * LAYERS + LAYERS - 1]}"], "device": f"process{rank}",
                             "micro_batch_size": SAMPLES}
            for rank in range(2)}},
        "run": {"schedule": "gpipe", "micro_batches": MICRO_BATCHES}}
    model = {"schema": "model/1", "builder": "timed", "layers": layers}
    for name, tree in (("model", model), ("cluster", cluster), ("scenario", scenario)):
        pathlib.Path(folder, f"{name}.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    done = subprocess.run([program, "run", f"{folder}/scenario.yaml", "--backend", "fluid", "--format", "json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["period_s"]


def main(program):
    system = sys.executable
    if subprocess.run([system, "-c", "import torch"], capture_output=True).returncode != 0:
        print("SKIPPED: there is no PyTorch; apt install python3-torch")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        started = [subprocess.Popen([system, __file__, program, str(rank), folder]) for rank in range(2)]
        assert [process.wait(timeout=300) for process in started] == [0, 0]
        stages = [imported_layers(program, folder, rank) for rank in range(2)]
        times = [json.loads(pathlib.Path(folder, f"times-{rank}.json").read_text()) for rank in range(2)]
        measured = statistics.mean(max(pair) for pair in zip(*times))  # As the times of layers are means.
        period = simulated(program, folder, stages)
        sums = [sum(float(str(layer[key]).split()[0]) for layer in of_stage for key in ("forward", "input_gradient", "weight_gradient"))
                for of_stage in stages]
        print(f"measured {1e3 * measured:.2f} ms, simulated {1e3 * period:.2f} ms, error {100 * (period / measured - 1):+.1f} %")
        # A pipeline of two stages takes at least the work of its slower stage, whatever its messages cost.
        assert period >= max(sums) * SAMPLES * MICRO_BATCHES * (1 - 1e-9), (period, sums)
        assert 0.5 < period / measured < 2, "the simulation is off by more than a factor of two"
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 4:
        train(int(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main(sys.argv[1]))
