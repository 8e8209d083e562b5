#!/usr/bin/env python3
"""Runs of several processes on emulated GPUs: run.py STAGECRAFT TOGETHER MPIRUN FOLDER [interrupted], from the
root of the project. STAGECRAFT is the tool with such GPUs, TOGETHER the program of together.cpp, FOLDER that of the emulated
libraries. With `interrupted`: a run of which a process is killed."""
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from mpirun import check, environment, finish, run, start  # noqa: E402
from processes import HUNG, children, kill, wait_until  # noqa: E402

stagecraft, together, mpirun, libraries = sys.argv[1:5]
environment.update(STAGECRAFT_CUDA_LIBRARIES=libraries, STAGECRAFT_EMULATED_CLOCK="real")

whole = """
schema: scenario/2
software: none
model: {builder: mlp, widths: [6, 12, 12, 12, 4], activation: relu, loss: sum_square, precision: fp64}
cluster: threads-8
plan: {planner: balanced, stages: 2, replicas: 2, micro_batch_size: 2}
run: {schedule: 1f1b, micro_batches: 4, iterations: 4}
training: {task: integers, optimizer: integer, learning_rate: 1}
"""

groups = """
schema: scenario/2
model: {base: gpt2-small, override: {layers: 2, hidden: 16, heads: 4, sequence: 8, vocabulary: 37, tied: false, precision: fp64}}
software: plain
cluster: threads-8
plan: {planner: balanced, stages: 2, replicas: 2, group: {tensor: 2, sequence: true}}
run: {schedule: 1f1b, micro_batches: 2, iterations: 3}
training: {task: random, optimizer: adam, evaluate_every: 2}
"""

experts = """
schema: scenario/2
model:
  {builder: transformer, kind: gpt, layers: 2, hidden: 16, heads: 4, sequence: 8, vocabulary: 37, tied: false, precision: fp64,
   experts: {count: 4, active: 2, width: 8}}
software: plain
cluster: threads-8
plan: {planner: balanced, stages: 1, replicas: 2, group: {tensor: 2, sequence: true, expert: 4}, shard: weights}
run: {schedule: 1f1b, micro_batches: 2, iterations: 3}
training: {task: random, optimizer: adam}
"""


def on(ranks, *words):
    return [mpirun, "-n", str(ranks), *words]


def only(rank, variable, value, *words):
    """The words, with a variable that one process has."""
    script = f'if [ "$OMPI_COMM_WORLD_RANK" = {rank} ]; then export {variable}={value}; fi; exec "$@"'
    return ["sh", "-c", script, "sh", *words]


def same_bits(name, ranks, gpus, even=True, says=""):
    done = run(on(ranks, together, name, str(gpus), str(HUNG)))
    what = f"{name} on {ranks} with {gpus} GPUs"
    check(done.returncode == 0, f"{what}: exit code {done.returncode}", done.stderr)
    check(f"{name} on {ranks} processes: the same bits; {ranks} processes{', in each' if even else ':'} " in done.stdout, what, done.stdout)
    check(says in done.stdout, f"{what}: does not say '{says}'", done.stdout)
    check("ends before it starts" not in done.stdout and " took " not in done.stdout, f"{what}: times", done.stdout)
    if name in ("1f1b", "iterations"):  # Pairs among three ends: nothing follows the last of four iterations.
        check("3 times between iterations held" in done.stdout, f"{what}: times of iterations", done.stdout)


def fails(what, command, lines, code=4, extra={}):
    done = run(command, extra)
    check(done.returncode == code, f"{what}: exit code {done.returncode}, not {code}", done.stderr)
    for line in lines:
        check(done.stderr.count(line) == 1, f"{what}: says '{line}' {done.stderr.count(line)} times", done.stderr)
    check(done.stdout == "", f"{what}: prints results", done.stdout)


def hangs(what, command_with, waits):
    """Each process says what it waits for, if nothing has ended for long enough: it takes a while until all wait."""
    for timeout in (1, 2, 4, 8, 16, 32, 64):
        done = run(command_with(str(timeout)))
        if all(line in done.stderr for line in waits):
            break
    check((done.returncode, done.stdout) == (4, ""), f"{what}: ends with {done.returncode}", done.stderr)
    for line in [f"nothing has ended for {timeout} s, so the GPU is stuck", *waits]:
        check(done.stderr.count(line) == 1, f"{what}: does not say '{line}' once", done.stderr)


def killed(folder):
    """In the middle of a run that hangs, so that there is something to be in the middle of. Not sooner: of a process that
    is killed within MPI_Init the mpirun of Open MPI 4.1.4 never ends (PMIx_server_finalize)."""
    mark = folder / "hangs"
    program = start(on(2, together, "1f1b", "2", str(HUNG), "1", str(mark)))
    if not wait_until(mark.exists, program):
        return check(False, "killed: it ended before", program.communicate()[1])
    kill(children(program.pid)[1])
    stdout, stderr = program.communicate(timeout=HUNG)
    check(program.returncode == 137, f"killed: exit code {program.returncode}", stderr)
    check("told to stop in the middle of the run" in stderr and "has not ended" in stderr, "killed: says nothing", stderr)
    check(stdout == "", "killed: prints results", stdout)


def tool(folder):
    path = folder / "whole.yaml"
    path.write_text(whole)
    command = [stagecraft, "run", str(path), "--format", "json", "--backend"]
    cpu = json.loads(run([*command, "cpu"]).stdout)
    for ranks in (2, 4):
        done = run(on(ranks, *command, "cuda"), {"STAGECRAFT_EMULATED_GPUS": "4"})
        check(done.returncode == 0, f"the tool on {ranks}", done.stderr)
        if done.returncode:
            continue
        got = json.loads(done.stdout)
        check(got["learnt"]["weights_sha256"] == cpu["learnt"]["weights_sha256"], f"the tool on {ranks}: weights differ")
        check(got["learnt"]["losses"] == cpu["learnt"]["losses"], f"the tool on {ranks}: losses differ")
        check(f"{ranks} processes ran it together" in done.stderr, f"the tool on {ranks}: not together", done.stderr)
    summed = run(on(4, *command, "cuda", "--set", "run.gpu.sums=collective"), {"STAGECRAFT_EMULATED_GPUS": "4"})
    check(summed.returncode == 0 and json.loads(summed.stdout)["learnt"]["weights_sha256"] == cpu["learnt"]["weights_sha256"],
          "the tool with sums by NCCL: weights differ", summed.stderr)
    scenario = [*command, "cuda"]
    four = {"STAGECRAFT_EMULATED_GPUS": "4"}
    fails("too few GPUs", on(2, *scenario), ["process 1 of 2 finds no GPU for itself"])
    fails("no GPU", on(2, *only(1, "STAGECRAFT_EMULATED_GPUS", 0, *scenario)), ["cuda: no CUDA-capable device is detected"])
    fails("another NCCL", on(2, *only(1, "STAGECRAFT_EMULATED_NCCL_VERSION", 22703, *scenario)),
          ["process 1 of 2 has NCCL 2.27.3, and the first has 2.28.9"], extra=four)
    bare = folder / "without_nccl"
    bare.mkdir()
    for name in ("libcublasLt.so.13", "libnccl.so.2"):  # The second has nothing of NCCL: else one of the machine is found.
        (bare / name).symlink_to(pathlib.Path(libraries, "libcublasLt.so.13").resolve())
    fails("no NCCL", on(2, *only(1, "STAGECRAFT_CUDA_LIBRARIES", str(bare), *scenario)),
          ["process 1 of 2 finds no libnccl.so.2"], extra=four)
    fails("too many", on(5, *scenario), ["5 processes were started, but only 4 devices have anything to do"], 2, four)
    off = run(on(2, *scenario, "--set", "run.gpu={timing: off, graph: true}"), four)
    check(off.returncode == 0, "the tool, iterations timed", off.stderr)
    if off.returncode == 0:
        got = json.loads(off.stdout)
        check(got["learnt"]["weights_sha256"] == cpu["learnt"]["weights_sha256"], "the tool, iterations timed: weights differ")
        check("a graph with NCCL is on one GPU, and a process has several" in off.stdout, "the tool: no word on graphs", off.stdout)
        check(got["makespan_s"] > 0, "the tool, iterations timed: no time", off.stdout)


def divided(folder):
    """With the kernels for GPUs: groups in several processes have the numbers of one process."""
    eight = {"STAGECRAFT_EMULATED_GPUS": "8"}
    for name, text in (("groups", groups), ("experts", experts)):
        path = folder / f"{name}.yaml"
        path.write_text(text)
        command = [stagecraft, "run", str(path), "--format", "json", "--backend", "cuda"]
        alone = json.loads(run(command, eight).stdout)["learnt"]
        for ranks in (2, 4):
            done = run(on(ranks, *command), eight)
            check(done.returncode == 0, f"the tool with {name} on {ranks}", done.stderr)
            if done.returncode:
                continue
            got = json.loads(done.stdout)["learnt"]
            for key in ("losses", "weights_sha256", "evaluations"):
                check(got.get(key) == alone.get(key), f"the tool with {name} on {ranks}: {key} differ")


def all_cases(folder):
    runs = [(case, 2, 4) for case in ("gpipe", "1f1b", "2bw", "eager", "nccl-inside")]
    runs += [(case, 4, 4) for case in ("interleaved", "pipedream", "replicas", "streamless", "sums")]
    for way in range(4):  # Sums by scatter and gather, exchanges and broadcasts.
        runs += [(f"steps{way}", 2 + way % 2, 5, False), (f"whole-steps{way}", 2, 4)]
    for ranks in (2, 4):  # Two GPUs a process, or one.
        runs += [("one-stage", ranks, 4), ("iterations", ranks, 4)]
    runs += [(case, 2, 2) for case in ("pipedream", "nccl-inside")]  # Two devices of the plan share each GPU.
    full = os.environ.get("STAGECRAFT_TRIALS") == "full"
    # Groups of devices.
    runs += [(case, 2, 8) for case in ("tensor", "zero-3")]
    runs += [(case, 4, 8) for case in ("heads", "experts-unequal")]
    runs += [("crossed", 2, 4)]  # Hangs if a device that waits holds up the other one of its process.
    runs += [("mixed+sequence", 4, 8), ("mixed+zero-1", 2, 8)] + [(f"mixed+{case}", 2, 8) for case in ("ring", "zero-2") if full]
    runs += [("single", 2, 2)]  # Devices share GPUs: this hangs if processes enqueue in two orders.
    # Iterations as graphs: these hang if kernels of NCCL are not in one order, or processes do not launch alike.
    runs += [("graph-1f1b", 4, 4, True, "5 launches of 0 graphs, 3 recorded"), ("graph+pair", 4, 4, True, "3 launches of 0 graphs"),
             ("graph-uneven", 4, 4, True, "9 launches of 3 graphs, 9 recorded an iteration could not be captured"),
             ("graph-1f1b", 2, 4, True, "0 recorded a graph with NCCL is on one GPU, and a process has several"),
             ("graph+tensor", 2, 2, True, "0 recorded groups are in several processes, and a process has several devices")]
    if full:
        runs += [(case, 2, 8) for case in ("ring", "zero-1", "experts")] + [(case, 4, 8) for case in ("zero-2", "zero-3-reshard")]
        runs += [("experts-unequal", 3, 8, False)] + [(case, 2, 2) for case in ("single-eager", "sequence")]
        runs += [(f"graph-{case}", 4, 4, True, "5 launches of 0 graphs, 3 recorded") for case in ("eager", "replicas", "replicas-sums")]
        runs += [("graph-1f1b", 2, 2, True, "5 launches of 0 graphs, 3 recorded")]
    runs += [(f"group{trial}", 2 + 2 * (trial % 2), 16) for trial in range(100 if full else 1)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(same_bits, *words) for words in runs]:
            job.result()
    hangs("a GPU hangs", lambda timeout: on(2, together, "1f1b", "2", timeout, "1"),
          ["device 0: 0B2 waits for 0<1:1B2\n", "device 2: 2F3 has not ended\n"])
    hangs("a GPU hangs in a group", lambda timeout: on(2, together, "crossed", "4", timeout, "1"),
          ["device 0: 0F0 has not ended", "device 3: 0F0 has not ended"])
    fails("a message never sent", on(2, *only(1, "STAGECRAFT_EMULATED_NCCL_SILENT", 5, together, "1f1b", "2", "1")),
          ["nothing has ended for 1 s, so the GPU is stuck"])
    hangs("a rank that never comes to a sum",
          lambda timeout: on(4, *only(1, "STAGECRAFT_EMULATED_NCCL_SILENT", 1, together, "one-stage", "4", timeout)),
          ["device 0: 0AR0 has not ended", "device 3: 0AR0 has not ended"])
    fails("replicas on one GPU", on(2, together, "one-stage", "2", "1"),
          ["devices 0 and 1 of the plan, whose gradients an all-reduce of NCCL is to add up, share GPU 0"], 2)
    tool(folder)
    divided(folder)


with tempfile.TemporaryDirectory() as name:
    environment["TMPDIR"] = name
    folder = pathlib.Path(name)
    killed(folder) if sys.argv[5:] == ["interrupted"] else all_cases(folder)
finish()
