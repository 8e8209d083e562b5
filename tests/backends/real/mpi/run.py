#!/usr/bin/env python3
"""Real runs of several processes: run.py STAGECRAFT MPIRUN TOGETHER, from the root of the project. TOGETHER is the
program of processes/together.cpp. Without MPIRUN: what a build without MPI says; exit code 77."""
import concurrent.futures
import csv
import functools
import json
import os
import pathlib
import random
import re
import sys
import tempfile

os.environ["STAGECRAFT_QUIET"] = "1"  # Notices of slow commands depend on the load of the machine.

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from mpirun import check, environment, finish, run  # noqa: E402
import real_runs  # noqa: E402
from processes import HUNG  # noqa: E402
from real_runs import check_stuck, fails, read_results, same_results, uncertainty_ns  # noqa: E402

stagecraft = sys.argv[1]
scenario_run = functools.partial(real_runs.scenario_run, stagecraft)
mpirun = sys.argv[2:3]
together = sys.argv[3:4]

whole = """
schema: scenario/2
software: none
model: {builder: mlp, widths: [6, 12, 12, 12, 4], activation: relu, loss: sum_square, precision: fp64}
cluster: threads-8
plan: {planner: balanced, stages: 2, replicas: 4, micro_batch_size: 1}
run: {schedule: 1f1b, micro_batches: 4, iterations: 12}
training: {task: integers, optimizer: integer, learning_rate: 1}
"""
forked = """
schema: scenario/2
software: none
model: {builder: multi_branch, branches: 2, layers: 1, hidden: 16, heads: 2, sequence: 4, precision: fp32}
cluster: threads-8
plan:
  planner: explicit
  stages:
    left: {layers: [in0..b0.l0.ff2], device: thread0, micro_batch_size: 4}
    right: {layers: [in1..b1.l0.ff2], device: thread1, micro_batch_size: 2}
    join: {layers: [concat, loss], device: thread2, micro_batch_size: 4}
run: {schedule: graph, micro_batches: 4, iterations: 6}
training: {task: random, optimizer: momentum, learning_rate: 0.01}
"""

groups = """
schema: scenario/2
model: {base: gpt2-small, override: {layers: 4, hidden: 32, heads: 4, sequence: 16, vocabulary: 37, tied: false, precision: fp64}}
software: plain
cluster: threads-8
plan: {planner: balanced, stages: 2, replicas: 2, group: {tensor: 2, sequence: true}}
run: {schedule: 1f1b, micro_batches: 4, iterations: 3}
training: {task: random, optimizer: adam, evaluate_every: 2}
"""

def on(ranks, *words):
    return [*mpirun, "-n", str(ranks), *words]


def spans_are_sane(folder, what, said):
    """No receive ends before its send has started, on the one clock of all processes, and nothing is negative."""
    uncertainty = uncertainty_ns(said)
    rows = [line.split(",") for line in (folder / "spans.csv").read_text().splitlines()]
    columns = {name: i for i, name in enumerate(rows[0])}
    at = lambda row, name: row[columns[name]]
    sends = {}
    for row in rows[1:]:
        start, end = float(at(row, "start_ns")), float(at(row, "end_ns"))
        check(0 <= start <= end, f"{what}: {at(row, 'instruction')} from {start} to {end}")
        if at(row, "kind") == "send":
            a, rest = at(row, "instruction").split(">")
            sends[(a, *rest.split(":"))] = start
        if at(row, "kind") == "receive":
            b, rest = at(row, "instruction").split("<")
            a, letter = rest.split(":")
            check(end >= sends[(a, b, letter)] - uncertainty, f"{what}: {at(row, 'instruction')} before its send")
    check(len(sends) > 0, f"{what}: no message in spans.csv")


def same_numbers(folder, name, ranks, *sets):
    what = f"{name} {' '.join(sets)}"
    expected = read_results(f"{what} alone", run(scenario_run(folder, name, *sets)))
    for n in ranks if expected else ():
        out = folder / f"{name}-{n}-{abs(hash(sets))}"
        done = run(on(n, *scenario_run(folder, name, *sets), "--out", str(out)))
        got = same_results(f"{what} on {n}", done, expected, n)
        if got is None:
            continue
        used = [m for m in got["learnt"]["memory"] if m["total_bytes"] > 0]
        group = got.get("devices_per_group", 1)  # Devices that each device of the report stands for.
        check(len(used) == group * len([d for d in got["devices"] if d["used"]]), f"{what} on {n}: memory is missing")
        spans_are_sane(out, f"{what} on {n}", done.stderr)


def few_buffers(folder, buffers):
    """The same numbers as without a limit, and each receive begins after the op that frees its buffer has ended. It begins
    with its send, which another process times."""
    same_numbers(folder, "chain", (2, 4), f"run.buffers={buffers}", "run.iterations=3")
    out = folder / f"buffers-{buffers}"
    done = run(on(4, *scenario_run(folder, "chain", f"run.buffers={buffers}", "run.iterations=3"), "--out", str(out)))
    free = run(scenario_run(folder, "chain", "run.iterations=3"))
    check(done.returncode == 0 and free.returncode == 0, f"{buffers} buffers", done.stderr + free.stderr)
    check(json.loads(done.stdout)["learnt"]["losses"] == json.loads(free.stdout)["learnt"]["losses"],
          f"{buffers} buffers: other losses than without a limit")
    with open(out / "spans.csv", newline="") as file:
        spans = {row["instruction"]: (float(row["start_ns"]), float(row["end_ns"])) for row in csv.DictReader(file)}
    checked, uncertainty = 0, uncertainty_ns(done.stderr)
    for name, (start, _) in spans.items():
        message = re.fullmatch(r"(\d)<\d:\d([FB])(\d+)", name)  # Stages and devices of the chain have the same numbers.
        if message and int(message[3]) >= buffers:
            frees = f"{message[1]}{message[2]}{int(message[3]) - buffers}"
            check(start >= spans[frees][1] - uncertainty, f"{buffers} buffers: {name} begins before {frees} ends")
            checked += 1
    check(checked > 20, f"{buffers} buffers: {checked} receives in spans.csv")


REASONS = ("memory", "threads can be started", "joined in time", "has not answered", "ERROR", "error")


def little_memory(folder):
    """One of two processes has an address space that ends somewhere: in MPI, while it starts its threads, in the run."""
    wrapper = folder / "little"
    wrapper.write_text('#!/bin/bash\n[ "$OMPI_COMM_WORLD_RANK" = "$LITTLE_RANK" ] && ulimit -v $LITTLE_KIB\nexec "$@"\n')
    wrapper.chmod(0o755)
    large = scenario_run(folder, "chain", "model.widths=[512,1024,1024,1024,10]", "plan.micro_batch_size=64", "run.iterations=2")
    sizes = range(40_000, 640_000, 20_000) if os.environ.get("STAGECRAFT_TRIALS") == "full" else (120_000, 300_000, 600_000)
    codes = []
    for size in sizes:
        for rank in (0, 1):
            done = run(on(2, str(wrapper), *large), {"LITTLE_RANK": str(rank), "LITTLE_KIB": str(size)})
            what = f"process {rank} of 2 has {size} KiB"
            codes.append(done.returncode)
            check(done.returncode == 0 or any(reason in done.stderr for reason in REASONS), f"{what}: ended with {done.returncode} without a reason", done.stderr)
            check("terminate called" not in done.stderr and "a bug in" not in done.stderr, f"{what}: ended with {done.returncode}", done.stderr)
            check(done.returncode == 0 or done.stdout == "", f"{what}: prints results", done.stdout)
    check(0 in codes and any(codes), f"little memory: exit codes {codes}")


def different_builds(folder):
    """The second process is a program with another version, or with another build ID."""
    data = pathlib.Path(stagecraft).read_bytes()
    note = data.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
    version = run([stagecraft, "--version"]).stdout.split("(")[1].split(")")[0].encode()
    changed = {"version": data.replace(version, version[::-1])}
    if note >= 0:
        changed["build"] = data[:note + 16] + bytes([data[note + 16] ^ 1]) + data[note + 17:]
    for name, program in changed.items():
        other = folder / f"other-{name}"
        other.write_bytes(program)
        other.chmod(0o755)
        for rank in (0, 1):
            wrapper = folder / f"{name}-on-{rank}"
            wrapper.write_text(f'#!/bin/bash\nprogram=$1; shift\n[ "$OMPI_COMM_WORLD_RANK" = {rank} ] && program={other}\nexec "$program" "$@"\n')
            wrapper.chmod(0o755)
            fails(f"another {name} on {rank}", on(2, str(wrapper), *scenario_run(folder, "chain")), 4, "the processes are different builds of stagecraft")


def alone_under_mpirun():
    """Only the first process answers what is not shared."""
    done = run(on(3, stagecraft, "run", "examples/quickstart", "--backend", "ideal"))
    check(done.returncode == 0 and done.stdout.count("simulated by ideal") == 1, "simulated on 3", done.stdout)
    done = run(on(3, stagecraft, "list", "tasks"))
    check(done.returncode == 0 and done.stdout.count("glyph") == 1, "list on 3", done.stdout)


def stuck():
    def run_stuck(timeout):
        done = run(on(2, *together, "stuck", str(timeout)))
        return (done.returncode, done.stdout) == (4, ""), done.stderr

    check_stuck(run_stuck)


def random_groups(folder, trial):
    """Any division, in any number of processes, has the numbers of one process."""
    rng = random.Random(f"groups over processes {trial}")
    name = rng.choice(["groups", "experts"])
    tensor, context = rng.choice([1, 2]), rng.choice([1, 2])
    replicas = rng.choice([r for r in (1, 2, 4) if tensor * context * r in (2, 4)])
    group = {"tensor": tensor, "context": context, "context_type": rng.choice(["p2p", "all_gather", "a2a"])}
    if tensor > 1:
        group["sequence"] = "true" if name == "experts" else rng.choice(["true", "false"])
    if name == "experts":
        group["expert"] = rng.choice([e for e in (1, 2, 4) if e <= tensor * context * replicas])
    shard = rng.choice(["none", "optimizer", "gradients", "weights", "{state: weights, reshard: true}"])
    same_numbers(folder, name, (rng.randint(2, 2 * tensor * context * replicas),), "run.iterations=2",
                 f"plan.replicas={replicas}", f"plan.shard={shard}", f"run.schedule={rng.choice(['1f1b', 'gpipe', 'zb-h1'])}",
                 "plan.group={" + ", ".join(f"{k}: {v}" for k, v in group.items()) + "}")


def collectives(ranks, seed):
    done = run(on(ranks, *together, "collectives", str(seed)))
    check(done.returncode == 0, f"collectives {seed} on {ranks}: exit code {done.returncode}", done.stderr)


def without_mpi():
    command = [stagecraft, "run", "examples/cpu-transformer", "--backend", "cpu"]
    for names in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")):
        first = run(command, dict(zip(names, ("0", "2"))))
        check(first.returncode == 4 and "2 processes were started, but this is built without MPI" in first.stderr,
              "without MPI: the first says so", first.stderr)
        second = run(command, dict(zip(names, ("1", "2"))))
        check((second.returncode, second.stdout, second.stderr) == (0, "", ""), "without MPI: the second is silent",
              second.stderr)


def with_mpi(folder):
    chain_sets = [((), (2, 4)), (("run.schedule=gpipe", "run.transfers=eager"), (4,)),
                  (("run.overlap=false", "run.transfers=eager", "run.schedule=gpipe"), (3,)),
                  (("run.streams=none", "run.iterations=60", "training.evaluate_every=0"), (3,)),
                  (("plan.stages=2", "plan.replicas=4"), (3,)),
                  (("plan.stages=2", "plan.replicas=4", "training.gradient_sum=slots", "run.transfers=eager"), (4,)),
                  (("model.widths=[64,512,512,512,512,10]", "plan.micro_batch_size=32", "run.iterations=3"), (4,)),
                  (("run.schedule=pipedream", "run.micro_batches=1", "weights=stash", "run.streams=pair"), (2, 4))]
    full = os.environ.get("STAGECRAFT_TRIALS") == "full"
    jobs = [lambda s=s, n=n: same_numbers(folder, "chain", n, *s) for s, n in (chain_sets if full else chain_sets[1::2])]
    jobs += [lambda: few_buffers(folder, 1), lambda: same_numbers(folder, "forked", (3,)),
             lambda: fails("no buffer", on(2, stagecraft, "run", "examples/teacher", "--backend", "cpu", "--set", "run.schedule=wpipe",
                                           "--set", "run.buffers=1"), 3, "messages block forever with 1 buffer for each edge"),
             # Eight devices: with two and four processes groups are whole, with three and eight they are not.
             lambda: same_numbers(folder, "groups", (2, 3, 8) if full else (3,)),
             lambda: same_numbers(folder, "groups", (3,), "plan.shard=optimizer"),
             lambda: same_numbers(folder, "groups", (4,), "plan.shard={state: weights, reshard: true}"),
             lambda: same_numbers(folder, "groups", (4,), "plan.replicas=1", "plan.group={context: 4, context_type: a2a}", "plan.shard=gradients"),
             lambda: same_numbers(folder, "groups", (3,), "plan.replicas=1", "plan.group={tensor: 2, context: 2, context_type: p2p}"),
             lambda: same_numbers(folder, "groups", (3,), "model.override.precision=mixed", "plan.shard=gradients"),
             lambda: same_numbers(folder, "groups", (3,), "plan={planner: balanced, stages: 4, vocabulary: all}", "run.schedule=vocab-1"),
             lambda: same_numbers(folder, "groups", (3,), "plan.vocabulary=all", "run.schedule=vocab-2", "plan.shard=weights",
                                  "model.override.precision=mixed"),
             lambda: same_numbers(folder, "groups", (2,), "plan={planner: balanced, stages: 4, vocabulary: all}", "run.schedule=vocab-2",
                                  "model.override.tied=true", "run.micro_batches=12"),
             lambda: same_numbers(folder, "experts", (2, 3, 8) if full else (3,)),
             lambda: same_numbers(folder, "experts", (4,), "run.schedule=zb-h1", "plan.shard=gradients",
                                  "plan.group={tensor: 2, sequence: true, expert: 2, expert_tensor: 2}"),
             lambda: same_numbers(folder, "whole", (3,)),
             lambda: same_numbers(folder, "whole", (4,), "run.transfers=eager", "model.precision=fp32"),
             lambda: fails("diverged", on(4, *scenario_run(folder, "chain", "training.learning_rate=1000000",
                                                           "run.iterations=1000", "training.optimizer=sgd")), 3, "is not a finite number"),
             lambda: fails("too many", on(5, *scenario_run(folder, "chain")), 2,
                           "5 processes were started, but only 4 devices have anything to do"),
             lambda: fails("bad input", on(2, *scenario_run(folder, "chain", "run.micro_batches=x")), 2, "error"),
             lambda: fails("broken", on(2, *together, "broken", str(HUNG)), 4, "the second computation is broken"),
             lambda: little_memory(folder), lambda: different_builds(folder), stuck, alone_under_mpirun]
    jobs += [lambda trial=trial: random_groups(folder, trial) for trial in range(100 if full else 2)]
    jobs += [lambda n=n, seed=seed: collectives(n, seed) for n in (2, 3, 5) for seed in ((1, 2) if full else (1,))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(job) for job in jobs]:
            job.result()


with tempfile.TemporaryDirectory() as name:
    for title, text in (("chain", real_runs.CHAIN), ("whole", whole), ("forked", forked), ("groups", groups), ("experts", real_runs.EXPERTS)):
        (pathlib.Path(name) / f"{title}.yaml").write_text(text)
    with_mpi(pathlib.Path(name)) if mpirun else without_mpi()
finish()
if not mpirun:
    print("SKIPPED: not built with MPI; only what it says about that was looked at")
    sys.exit(77)
