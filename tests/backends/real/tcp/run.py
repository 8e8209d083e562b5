#!/usr/bin/env python3
"""Real runs of several processes over TCP: run.py STAGECRAFT TOGETHER [interrupted], from the root of the project. TOGETHER is
the program of processes/together.cpp."""
import concurrent.futures
import contextlib
import functools
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import sys
import tempfile

os.environ["STAGECRAFT_QUIET"] = "1"  # Notices of slow commands depend on the load of the machine.

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from mpirun import check, finish, run, start  # noqa: E402
import real_runs  # noqa: E402
from processes import ASLEEP, HUNG, PATIENCE, children, kill, stat, stopped, threads, wait_until  # noqa: E402
from real_runs import check_stuck, fails, read_results, same_results, uncertainty_ns  # noqa: E402

stagecraft, together = sys.argv[1:3]
scenario_run = functools.partial(real_runs.scenario_run, stagecraft)

SCENARIOS = {
    "gpt": """
schema: scenario/2
model: {base: gpt2-small, override: {layers: 4, hidden: 32, heads: 4, sequence: 16, vocabulary: 37, tied: false, precision: fp64}}
software: plain
cluster: threads-8
plan: {planner: balanced, stages: 4, micro_batch_size: 2}
run: {schedule: 1f1b, micro_batches: 4, iterations: 3}
training: {task: random, optimizer: adam, evaluate_every: 2}
""",
    "chain": real_runs.CHAIN, "experts": real_runs.EXPERTS, "asleep": ASLEEP,
}
REPLICAS = ("plan.stages=2", "plan.replicas=4", "plan.micro_batch_size=1")
TENSOR = ("plan.stages=2", "plan.replicas=2", "plan.group={tensor: 2, sequence: true}", "plan.micro_batch_size=1")
BITS = [("gpt", (2, 4)), ("gpt", (3,), "run.schedule=gpipe"), ("gpt", (3,), "run.schedule=gpipe", "run.transfers=eager"),
        ("gpt", (2,), "run.schedule=interleaved", "cluster={base: threads-8, override: {devices: 2}}"),
        ("gpt", (4,), "weights=2bw", "run.schedule=1f1b"), ("gpt", (4,), "run.buffers=1"),
        ("gpt", (2, 3, 8), *REPLICAS), ("gpt", (8,), *REPLICAS, "run.transfers=eager", "training.gradient_sum=slots"),
        ("gpt", (4,), *REPLICAS, "run.gradient_buckets=10 KiB"), ("gpt", (2, 8), *TENSOR), ("gpt", (4,), *TENSOR, "plan.shard=optimizer"),
        ("gpt", (3,), *TENSOR, "plan.shard={state: weights, reshard: true}"), ("experts", (3, 8)),
        ("gpt", (3, 8), *TENSOR, "model.override.precision=mixed", "plan.shard=optimizer"),
        ("gpt", (3,), "plan.stages=2", "plan.group={tensor: 2, context: 2, context_type: p2p}", "model.override.precision=mixed"),
        ("gpt", (2, 4), "plan.vocabulary=all", "run.schedule=vocab-1"), ("gpt", (3,), "plan.vocabulary=all", "run.schedule=vocab-2"),
        ("gpt", (4,), "plan.vocabulary=all", "run.schedule=vocab-1", "model.override.tied=true", "run.micro_batches=12"),
        ("gpt", (3, 8), *TENSOR, "plan.vocabulary=all", "run.schedule=vocab-2", "model.override.precision=mixed"),
        ("gpt", (3,), *REPLICAS, "plan.vocabulary=all", "run.schedule=vocab-1", "plan.shard={state: weights, reshard: true}"),
        ("gpt", (4,), *TENSOR, "plan.vocabulary=all", "run.schedule=vocab-1", "plan.shard=gradients", "model.override.precision=mixed"),
        ("chain", (3,), "run.streams=none"), ("chain", (4,), "run.sends=shared", "run.streams=single"),
        ("chain", (3,), "run.overlap=false", "run.transfers=eager", "run.schedule=gpipe"),
        ("chain", (4,), "run.schedule=pipedream", "run.micro_batches=1", "weights=stash", "run.streams=pair"),
        ("chain", (2,), "model.widths=[64,512,512,512,512,10]", "plan.micro_batch_size=32", "run.iterations=3")]


# Below those that the system gives to outgoing connections, so that none takes one before a process listens there, and
# others for each run of this test.
PORTS = itertools.count(10_000 + os.getpid() * 64 % 20_000)


def free_ports(count):
    """Ports that nothing listens at."""
    found = []
    while len(found) < count:
        with socket.socket() as s, contextlib.suppress(OSError):
            port = next(PORTS)
            s.bind(("127.0.0.1", port))
            found.append(port)
    return found


def local_hosts(count):
    return ",".join(f"127.0.0.1:{port}" for port in free_ports(count))


def start_each(count, command_of):
    """Starts a process for each rank by the environment; command_of(rank) is its command."""
    hosts = local_hosts(count)
    return [start(command_of(rank), {"STAGECRAFT_HOSTS": hosts, "STAGECRAFT_RANK": str(rank)}) for rank in range(count)]


def ends(programs):
    """The exit code, stdout and stderr of each."""
    with concurrent.futures.ThreadPoolExecutor(len(programs)) as pool:
        outputs = list(pool.map(lambda p: p.communicate(timeout=HUNG), programs))
    return [(p.returncode, *output) for p, output in zip(programs, outputs)]


def run_each(count, command_of):
    return ends(start_each(count, command_of))


def same_bits(folder, name, processes, *sets):
    what = f"{name} {' '.join(sets)}"
    expected = read_results(f"{what} alone", run(scenario_run(folder, name, *sets)))
    for n in processes if expected else ():
        same_results(f"{what} in {n}", run([*scenario_run(folder, name, *sets), "--processes", str(n)]), expected, n)


def by_hosts(folder):
    """Options in place of the environment. Names are resolved."""
    hosts = ",".join(f"localhost:{port}" for port in free_ports(3))
    command = scenario_run(folder, "chain")
    alone = json.loads(run(command).stdout)
    out = folder / "by_hosts"
    programs = [start([*command, "--out", str(out), "--hosts", hosts, "--rank", str(rank)]) for rank in range(3)]
    results = ends(programs)
    check([code for code, _, _ in results] == [0, 0, 0], "by hosts: exit codes", str(results))
    check(results[1][1:] == results[2][1:] == ("", ""), "by hosts: others print", str(results[1:]))
    check(json.loads(results[0][1] or "{}").get("learnt", {}).get("weights_sha256") == alone["learnt"]["weights_sha256"], "by hosts: weights differ")
    check((out / "spans.csv").exists(), "by hosts: no spans.csv")


def sends_are_taken(folder):
    """The span of a send ends when the receiver has the data, and a receive that waits for a buffer holds up its send."""
    for sets in ((), ("run.transfers=eager",), ("run.buffers=1",)):
        out = folder / f"taken-{len(sets)}-{abs(hash(sets))}"
        done = run([*scenario_run(folder, "chain", *sets), "--processes", "4", "--out", str(out)])
        check(done.returncode == 0, f"sends {sets}", done.stderr)
        rows = [line.split(",") for line in (out / "spans.csv").read_text().splitlines()]
        at = {name: i for i, name in enumerate(rows[0])}
        uncertainty = uncertainty_ns(done.stderr)
        sends, begins, checked = {}, {}, 0
        for row in rows[1:]:
            if row[at["kind"]] == "send":
                a, rest = row[at["instruction"]].split(">")
                sends[(a, *rest.split(":"))] = float(row[at["end_ns"]])
                begins[(a, *rest.split(":"))] = float(row[at["start_ns"]])
        for row in rows[1:]:
            if row[at["kind"]] == "receive":
                b, rest = row[at["instruction"]].split("<")
                a, letter = rest.split(":")
                start_of_send, end_of_send = begins[(a, b, letter)], sends[(a, b, letter)]
                check(float(row[at["end_ns"]]) >= start_of_send - uncertainty, f"{sets}: {row} ends before its send begins")
                if sets != ("run.transfers=eager",):  # The receive begins with its send, and its data are taken after that.
                    check(end_of_send >= float(row[at["start_ns"]]) - uncertainty, f"{sets}: {row} begins after its send has ended")
                checked += 1
        check(checked > 100, f"{sets}: {checked} messages in spans.csv")


def refused(folder):
    command = scenario_run(folder, "chain")
    a, b = free_ports(2)
    for what, words, code, text in (
            ("no such name", ["--hosts", f"127.0.0.1:{a},no.such.host.invalid", "--rank", "0"], 2, "the host 'no.such.host.invalid' cannot be resolved"),
            ("no such name for another", ["--hosts", f"no.such.host.invalid,127.0.0.1:{a}", "--rank", "1"], 2, "the host 'no.such.host.invalid' cannot be resolved"),
            ("rank too large", ["--hosts", f"127.0.0.1:{a},127.0.0.1:{b}", "--rank", "2"], 2, "there is no process 2 of 2"),
            ("no rank", ["--hosts", f"127.0.0.1:{a},127.0.0.1:{b}"], 2, "--hosts needs --rank"),
            ("no hosts", ["--rank", "1"], 2, "--rank needs --hosts"),
            ("no port", ["--hosts", "127.0.0.1:99999,127.0.0.1", "--rank", "1"], 2, "a port is a whole number from 1 to 65535"),
            ("an empty host", ["--hosts", "127.0.0.1,,", "--rank", "1"], 2, "it has no host"),
            ("one port twice", ["--hosts", f"127.0.0.1:{a},127.0.0.1:{a}", "--rank", "1"], 2, f"two processes have the address 127.0.0.1:{a}"),
            ("both ways", ["--hosts", "a,b", "--rank", "1", "--processes", "2"], 2, "--processes starts or joins processes, but --hosts and --rank do so, too"),
            ("too many", ["--processes", "5"], 2, "5 processes were started, but only 4 devices have anything to do"),
            ("no processes", ["--processes", "0"], 2, "--processes: '0' is not a whole number from 1 to 256")):
        fails(what, [*command, *words], code, text)
    fails("simulated", [stagecraft, "run", str(folder / "chain.yaml"), "--backend", "ideal", "--processes", "2"], 2, "--processes is for work that processes share, and one does this alone")
    fails("no rank in the environment", command, 2, "STAGECRAFT_RANK does not say which of them this is", {"STAGECRAFT_HOSTS": "127.0.0.1,127.0.0.2"})
    fails("diverged", [*scenario_run(folder, "chain", "training.learning_rate=1000000", "run.iterations=1000", "training.optimizer=sgd"),
                       "--processes", "4"], 3, "is not a finite number")
    fails("bad input", [*scenario_run(folder, "chain", "run.micro_batches=x"), "--processes", "2"], 2, "error")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        fails("a port that is taken", [*command, "--hosts", f"127.0.0.1:{port},127.0.0.1:{a}", "--rank", "0"], 4, f"cannot listen at 127.0.0.1:{port}: Address already in use")
        fails("another's port that is taken", [*command, "--hosts", f"127.0.0.1:{a},127.0.0.1:{port}", "--rank", "1"], 4, f"cannot listen at 127.0.0.1:{port}")
    alone = run([*command, "--processes", "1"])
    check(alone.returncode == 0 and "ran it together" not in alone.stderr, "one process", alone.stderr)


def unequal(folder):
    """Processes that are not equal say so, and all of them end."""
    results = run_each(2, lambda rank: scenario_run(folder, "chain", f"run.iterations={12 - rank}"))
    check([r[0] for r in results] == [4, 4], "different scenarios: exit codes", str(results))
    check("the processes have read different scenarios" in results[0][2], "different scenarios", str(results))
    data = pathlib.Path(stagecraft).read_bytes()
    version = run([stagecraft, "--version"]).stdout.split("(")[1].split(")")[0].encode()
    other = folder / "other"
    other.write_bytes(data.replace(version, version[::-1]))
    other.chmod(0o755)
    results = run_each(2, lambda rank: [str(other) if rank == 1 else stagecraft, *scenario_run(folder, "chain")[1:]])
    check([r[0] for r in results] == [4, 4], "different builds: exit codes", str(results))
    check("the processes are different builds of stagecraft" in results[0][2] and results[1][2] == "", "different builds", str(results))
    a, b, c = free_ports(3)
    first = start([*scenario_run(folder, "chain"), "--hosts", f"127.0.0.1:{a},127.0.0.1:{b}", "--rank", "0"])
    second = run([*scenario_run(folder, "chain"), "--hosts", f"127.0.0.1:{a},127.0.0.1:{c}", "--rank", "1"])
    check(second.returncode == 4 and f"process 0 of 2 (127.0.0.1:{a}) was started with other --hosts" in second.stderr, "different hosts", second.stderr)
    (code, _, said), = ends([first])
    check(code == 4 and f"no answer from process 1 of 2 (127.0.0.1:{b})" in said, "a host that never answers", said)


def strangers(folder):
    """What connects and is no process of the world is ignored."""
    ports = free_ports(2)
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    command = [*scenario_run(folder, "chain"), "--hosts", hosts, "--rank"]
    first = start([*command, "0"])
    talk = None

    def connected():
        nonlocal talk
        try:
            talk = socket.create_connection(("127.0.0.1", ports[0]))
        except ConnectionRefusedError:
            return False
        return True

    wait_until(connected, first)
    talk.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)
    silent = socket.create_connection(("127.0.0.1", ports[0]))
    results = ends([first, start([*command, "1"])])
    check([r[0] for r in results] == [0, 0], "strangers: exit codes", str(results))
    talk.close()
    silent.close()


def goes_wrong():
    """Programs that do not go on, and failures in the middle."""
    def run_stuck(timeout):
        (first_code, _, first_said), (code, _, said) = run_each(2, lambda rank: [together, "stuck", str(timeout)])
        return (first_code, code, said) == (4, 4, ""), first_said

    check_stuck(run_stuck)
    results = run_each(2, lambda rank: [together, "broken", str(HUNG)])
    check([r[0] for r in results] == [4, 4] and results[0][2].count("the second computation is broken") == 1, "broken", str(results))
    for where in ("run", "report"):
        results = run_each(3, lambda rank: [together, "silent", f"memory-{where}", str(HUNG)])
        check([r[0] for r in results] == [4] * 3 and results[0][2].count("not enough memory for it") == 1, f"no memory in its {where}", str(results))


def collectives(count, seed):
    results = run_each(count, lambda rank: [together, "collectives", str(seed)])
    check([r[0] for r in results] == [0] * count, f"collectives {seed} of {count}", str(results))


def traffic(count):
    results = run_each(count, lambda rank: [together, "traffic"])
    check([r[0] for r in results] == [0] * count, f"traffic of {count}", str(results))


def shared_work(folder):
    """Sweeps and searches distribute their work over TCP as over MPI."""
    points = ["scenarios/sweeps/schedules.yaml", "--format", "csv"]
    alone = run([stagecraft, "sweep", *points, "--out", str(folder / "alone.db")]).stdout
    hosts = local_hosts(2)
    results = ends([start([stagecraft, "sweep", *points, "--out", str(folder / f"{rank}.db"), "--hosts", hosts, "--rank", str(rank)]) for rank in range(2)])
    check([r[0] for r in results] == [0, 0] and results[0][1] == alone != "" and results[1][1] == "", "a sweep over TCP", str(results))
    command = [stagecraft, "search", "scenarios/examples/quickstart.yaml", "--schedules", "1f1b,gpipe", "--most", "30", "--format", "csv"]
    alone = run(command).stdout
    results = run_each(2, lambda rank: command)
    check([r[0] for r in results] == [0, 0] and results[0][1] == alone != "", "a search over TCP", str(results))


def emulated(folder):
    """Sleeps end late, and say by how much."""
    for words in ([], ["--processes", "4"]):
        command = [*scenario_run(folder, "asleep", "run.iterations=1", "model.forward=2 ms", "model.backward=2 ms"), *words]
        done = run(command)
        sleeps = json.loads(done.stdout)["sleeps"]
        check(sleeps["count"] == 32 and 0 <= sleeps["late_median_s"] <= sleeps["late_worst_s"], f"emulated {words}: {sleeps}", done.stderr)
        text = run([word for word in command if word not in ("--format", "json")]).stdout
        check(re.search(r"sleeps ended late by +[0-9.e-]+ \w+ +in the median, [0-9.e-]+ \w+ at worst", text), f"emulated {words}", text)


def all_run(ranks):
    return all(threads(rank) >= 2 for rank in ranks)


def asleep(folder, *words):
    """A run in four processes that sleeps for 47 minutes, and its processes."""
    program = start([*scenario_run(folder, "asleep"), "--processes", "4", *words])
    wait_until(lambda: len(children(program.pid)) == 3 and all_run([program.pid, *children(program.pid)]), program)
    return program, [program.pid, *children(program.pid)]


def all_gone(what, ranks):
    check(wait_until(lambda: not any(stat(rank) for rank in ranks)), f"{what}: processes are left")


def killed(folder):
    program, ranks = asleep(folder)
    kill(ranks[2])
    stdout, stderr = program.communicate(timeout=HUNG)
    said = re.search(r"process 2 of 4 \(127\.0\.0\.1:\d+\) has ended: killed by signal 9", stderr)
    check(program.returncode == 4 and said and stdout == "", f"killed: ends with {program.returncode}", stderr)
    check("device 0: " in stderr and "device 3: " in stderr, "killed: does not say what was waited for", stderr)
    all_gone("killed", ranks)


def first_killed(folder):
    program, ranks = asleep(folder)
    kill(ranks[0])
    _, stderr = program.communicate(timeout=HUNG)
    check(stderr == "", "the first is killed: the others speak", stderr)
    all_gone("the first is killed", ranks)


def interrupted(folder):
    program, ranks = asleep(folder, "--out", str(folder / "interrupted"))
    for rank in ranks:  # As a terminal does.
        kill(rank, signal.SIGINT)
    stdout, stderr = program.communicate(timeout=HUNG)
    check(program.returncode == -signal.SIGINT and stdout == "", f"interrupted: ends with {program.returncode}", stderr)
    check(stderr.strip() == "interrupted; nothing was kept", "interrupted: says something else", stderr)
    check(not (folder / "interrupted").exists(), "interrupted: a folder is left")
    all_gone("interrupted", ranks)


def by_hosts_killed(folder):
    """Without a common parent: the others hear it from their connections."""
    programs = start_each(3, lambda rank: scenario_run(folder, "asleep"))
    wait_until(lambda: all_run([p.pid for p in programs]), programs[0])
    kill(programs[1].pid)
    results = ends(programs)
    check([r[0] for r in results] == [4, -signal.SIGKILL, 4], "one of three is killed: exit codes", str(results))
    check("process 1 of 3" in results[0][2] and "has ended" in results[0][2] and "device 3: " in results[0][2], "one of three is killed", str(results))
    programs = start_each(3, lambda rank: scenario_run(folder, "asleep"))
    wait_until(lambda: all_run([p.pid for p in programs]), programs[0])
    kill(programs[0].pid)
    results = ends(programs)
    check([r[0] for r in results] == [-signal.SIGKILL, 4, 4], "the first of three is killed: exit codes", str(results))
    check(all("process 0 of 3" in r[2] and "has ended" in r[2] for r in results[1:]), "the first of three is killed", str(results))


def silent():
    """The second process stops where the first waits for what it says next. Others that are slow may be silent for a while, too."""
    for where in ("run", "report"):
        for timeout in PATIENCE:
            programs = start_each(3, lambda rank: [together, "silent", where, str(timeout)])
            results = ends([programs[0], programs[2]])
            kill(programs[1].pid)
            stops = "the second stops here" in ends([programs[1]])[0][2]
            is_named = f"has not answered for {timeout} s" in results[0][2] and "no answer from process 1 of 3" in results[0][2]
            if stops and is_named:
                break
        check([r[0] for r in results] == [4, 4], f"silent in its {where}: exit codes", str(results))
        check(is_named, f"silent in its {where}", str(results))
    results = run_each(3, lambda rank: [together, "silent", "nowhere", str(HUNG)])
    check([r[0] for r in results] == [0, 0, 0], "none is silent", str(results))


def lost():
    """A process that is killed where the others wait for its report is not one that does not answer."""
    programs = start_each(3, lambda rank: [together, "silent", "report", str(HUNG)])
    wait_until(lambda: (stat(programs[1].pid) or {}).get("state") == "T", programs[1])
    kill(programs[1].pid)
    results = ends(programs)
    check([r[0] for r in results] == [4, -signal.SIGKILL, 4], "lost before its report: exit codes", str(results))
    check("process 1 of 3" in results[0][2] and "has ended" in results[0][2] and "has not answered" not in results[0][2], "lost before its report", str(results))


def stopped_amid(folder, rank):
    """A process that is stopped in the middle of the run: the others end, and the first ends it."""
    program, ranks = asleep(folder)
    stopped(ranks[rank])
    stdout, stderr = program.communicate(timeout=HUNG)
    check(program.returncode == 4 and "another process has not answered for 30 s" in stderr and stdout == "", f"process {rank} is stopped: {program.returncode}", stderr)
    check(f"no answer from process {rank} of 4" in stderr, f"process {rank} is stopped: is not named", stderr)
    check(all(f"device {d}: " in stderr for d in range(4) if d != rank), f"process {rank} is stopped: does not say what was waited for", stderr)
    all_gone(f"process {rank} is stopped", ranks)


with tempfile.TemporaryDirectory() as temporary:
    here = pathlib.Path(temporary)
    for title, scenario in SCENARIOS.items():
        (here / f"{title}.yaml").write_text(scenario)
    if sys.argv[3:] == ["interrupted"]:
        jobs = [lambda: stopped_amid(here, 2), silent, lost, lambda: killed(here), lambda: first_killed(here), lambda: interrupted(here),
                lambda: by_hosts_killed(here)]
    else:
        jobs = [lambda: unequal(here)] + [lambda case=case: same_bits(here, *case) for case in BITS]
        jobs += [lambda n=n, seed=seed: collectives(n, seed) for n in (2, 3, 5) for seed in (1, 2)]
        jobs += [lambda n=n: traffic(n) for n in (2, 4)]
        jobs += [lambda: by_hosts(here), lambda: sends_are_taken(here), lambda: refused(here), lambda: strangers(here), lambda: shared_work(here), goes_wrong, lambda: emulated(here)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(job) for job in jobs]:
            job.result()
finish()
