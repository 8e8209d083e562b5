"""What the tests of real runs in several processes share, over TCP and over MPI."""
import json
import re

from mpirun import check, run

CHAIN = """
schema: scenario/2
software: none
model: {builder: mlp, widths: [12, 24, 20, 16, 4], activation: tanh, loss: mean_square, precision: fp64}
cluster: threads-8
plan: {planner: balanced, stages: 4, micro_batch_size: 4}
run: {schedule: 1f1b, micro_batches: 6, iterations: 12}
training: {task: teacher, optimizer: adam, learning_rate: 0.01, evaluate_every: 5}
"""
EXPERTS = """
schema: scenario/2
model:
  {builder: transformer, kind: gpt, layers: 4, hidden: 32, heads: 4, sequence: 16, vocabulary: 37, positions: rotary, norm: rms,
   gated: true, bias: false, tied: false, precision: fp64, experts: {count: 4, active: 2, width: 16}}
software: plain
cluster: threads-8
plan: {planner: balanced, stages: 2, replicas: 2, group: {tensor: 2, sequence: true, expert: 4}}
run: {schedule: 1f1b, micro_batches: 4, iterations: 3}
training: {task: random, optimizer: adam, evaluate_every: 2}
"""


def scenario_run(stagecraft, folder, name, *sets):
    return [stagecraft, "run", str(folder / f"{name}.yaml"), "--backend", "cpu", "--format", "json",
            *(word for s in sets for word in ("--set", s))]


def fails(what, command, code, text, extra={}):
    done = run(command, extra)
    check(done.returncode == code, f"{what}: exit code {done.returncode}, not {code}", done.stderr)
    check(done.stderr.count(text) == 1, f"{what}: says '{text}' {done.stderr.count(text)} times", done.stderr)
    check(done.stdout == "", f"{what}: prints results", done.stdout)


def read_results(what, done):
    """The results of a run that has ended well; else nothing."""
    check(done.returncode == 0, what, done.stderr)
    return None if done.returncode else json.loads(done.stdout)


def same_results(what, done, expected, processes):
    """The results of a run, which have the bits of `expected`; nothing if it has failed."""
    got = read_results(what, done)
    if got is not None:
        for key in ("losses", "weights_sha256", "evaluations"):
            check(got["learnt"][key] == expected["learnt"][key], f"{what}: {key} differ")
        check(got["instructions"] == expected["instructions"], f"{what}: another program")
        check(f"{processes} processes ran it together" in done.stderr, f"{what}: not together", done.stderr)
    return got


def uncertainty_ns(said):
    """Nanoseconds between times of two processes whose order is not known: each of two clocks may be off by as much as was said."""
    amount, unit = re.search(r"their clocks agree to ([0-9.e+-]+) (ns|us|ms|s)\n", said).groups()
    return 2 * float(amount) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def check_stuck(run_stuck):
    """Each process says what it waits for, if nothing has moved for long enough: it takes a while until both wait. `run_stuck` gets
    that time in seconds, and returns whether the processes ended as they should, and what they said."""
    waits = ["device 0: 0<1:1B0 has not ended", "device 1: 1<0:0F0 has not ended"]
    for timeout in (0.5, 1, 2, 4, 8, 16, 32, 64):
        has_ended_well, said = run_stuck(timeout)
        if all(line in said for line in waits):
            break
    check(has_ended_well, "stuck: exit codes", said)
    for line in [f"nothing has moved for {timeout:g} s, so the run is stuck", *waits]:
        check(said.count(line) == 1, f"stuck: does not say '{line}' once", said)
