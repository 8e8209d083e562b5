"""A network of namespaces, as a user builds and leaves it: run.py STAGECRAFT. Skipped (77) where namespaces are refused."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

os.environ["STAGECRAFT_QUIET"] = "1"  # Notices of slow commands depend on the load of the machine.

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import processes  # noqa: E402

TOOL = sys.argv[1]
STAR = "scenarios/boxes/star.yaml"
SHORT = ["--set", "run.micro_batches=4", "--iterations", "3"]


def run(*words, code=0):
    done = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=processes.HUNG)
    assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def require_namespaces(name):
    done = subprocess.run([TOOL, "cluster", "up", STAR, "--name", name, "--no-check"], capture_output=True, text=True)
    if done.returncode == 4 and ("namespaces" in done.stderr or "iproute2" in done.stderr or "/dev/net/tun" in done.stderr):
        print("skipped:", done.stderr.strip())
        sys.exit(77)
    assert done.returncode == 0, done.stderr


def processes_with(*words):
    """The processes whose command line has all these words."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if all(word in line for word in words):
            found.append(int(entry.parent.name))
    return found


def test_life_of_a_network(name):
    assert name in run("cluster", "list")
    assert "is up already" in run("cluster", "up", STAR, "--name", name, code=2)
    assert run("cluster", "exec", f"{name}/b0", "hostname").strip() == "b0"
    hosts = run("cluster", "exec", f"{name}/b0", "--", "cat", "/etc/hosts")
    assert "10.99.0.1 a0" in hosts, hosts
    assert "did you mean 'c0'" in run("cluster", "exec", f"{name}/co", "hostname", code=2)
    run("cluster", "exec", f"{name}/a0", "false", code=1)
    # With two networks a device needs its network, but not in a program that runs in one, such as a launcher.
    run("cluster", "up", STAR, "--name", f"{name}-2", "--no-check")
    assert "several networks are up" in run("cluster", "exec", "b0", "hostname", code=2)
    assert run("cluster", "exec", f"{name}/a0", "--", TOOL, "cluster", "exec", "b0", "hostname").strip() == "b0"
    run("cluster", "down", f"{name}-2")
    # A program of the network ends with it.
    seconds = f"123456.{os.getpid()}"
    sleeper = subprocess.Popen([TOOL, "cluster", "exec", f"{name}/a0", "sleep", seconds])
    processes.wait_until(lambda: any(p != sleeper.pid for p in processes_with("sleep", seconds)), sleeper)
    assert "is down" in run("cluster", "down", name)
    assert sleeper.wait() != 0
    assert name not in run("cluster", "list")


# Each trains on four devices, with a process on each of the box's.
GPT = """
schema: scenario/2
model: {base: gpt2-small, override: {layers: 4, hidden: 32, heads: 4, sequence: 16, vocabulary: 37, tied: false, precision: fp64}}
software: plain
cluster: threads-8
plan: {planner: balanced, stages: 4, micro_batch_size: 2}
run: {schedule: 1f1b, micro_batches: 4, iterations: 3}
training: {task: random, optimizer: adam, evaluate_every: 2}
"""
MLP = """
schema: scenario/2
software: none
model: {builder: mlp, widths: [12, 24, 20, 16, 4], activation: tanh, loss: mean_square, precision: fp64}
cluster: threads-8
plan: {planner: balanced, stages: 4, micro_batch_size: 4}
run: {schedule: 1f1b, micro_batches: 4, iterations: 6}
training: {task: teacher, optimizer: adam, learning_rate: 0.01, evaluate_every: 5}
"""
VIT = """
schema: scenario/2
software: none
model: {builder: transformer, kind: vit, layers: 3, hidden: 32, heads: 4, image: 12, patch: 4, classes: 10, precision: fp64}
cluster: threads-8
plan: {planner: balanced, stages: 4, micro_batch_size: 2}
run: {schedule: 1f1b, micro_batches: 4, iterations: 3}
training: {task: random, optimizer: adam}
"""
TRAININGS = [(GPT,), (VIT,), (GPT, "weights=2bw"), (MLP, "run.schedule=gpipe"),
             (MLP, "run.schedule=pipedream", "run.micro_batches=1", "weights=stash"),
             (MLP, "run.schedule=pipedream", "run.micro_batches=1", "weights=pipeoptim"),
             (MLP, "plan.stages=2", "plan.replicas=2")]


def test_training(name, folder):
    """Models train over the links of the box, and learn what they learn on threads, to the last bit."""
    devices = ["a0", "a1", "b0", "c0"]
    scenario = pathlib.Path(folder, "training.yaml")
    for text, *sets in TRAININGS:
        scenario.write_text(text)
        command = ["run", str(scenario), "--backend", "cpu", "--format", "json", *(word for s in sets for word in ("--set", s))]
        expected = json.loads(subprocess.run([TOOL, *command], stdout=subprocess.PIPE, check=True).stdout)["learnt"]
        ranks = [subprocess.Popen([TOOL, "cluster", "exec", f"{name}/{device}", TOOL, *command, "--hosts", ",".join(devices), "--rank", str(rank)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank, device in enumerate(devices)]
        outputs = [rank.communicate(timeout=processes.HUNG) for rank in ranks]
        assert [rank.returncode for rank in ranks] == [0] * 4, (sets, outputs)
        got = json.loads(outputs[0][0])["learnt"]
        for key in ("losses", "weights_sha256"):
            assert got[key] == expected[key], (sets, key, got[key], expected[key])


UNLIKE = """
schema: scenario/2
model: {builder: uniform, layers: 4, forward: 1 ms, backward: 2 ms}
cluster:
  generator: star
  types: {fast: {peak: 200 GFLOP/s, memory_bandwidth: 1 TB/s, memory: 8 GiB}, slow: {peak: 50 GFLOP/s, memory_bandwidth: 1 TB/s, memory: 8 GiB}}
  links: {cable: {bandwidth: 50 Mbit/s, latency: 0.1 ms}}
  groups: [{name: f, count: 1, type: fast, link: cable}, {name: s, count: 1, type: slow, link: cable}]
plan: {planner: balanced, stages: 2}
run: {schedule: 1f1b, micro_batches: 4}
software: none
"""


def quota_of(text):
    """The quota over the period of the control group that /proc/self/cgroup names for this network."""
    for line in text.splitlines():
        _, controllers, group = line.split(":", 2)
        for root in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
            folder = pathlib.Path(root + group)
            if "stagecraft-" not in group or not folder.exists():
                continue
            if (folder / "cpu.max").exists():
                quota, period = (folder / "cpu.max").read_text().split()
            else:
                quota, period = ((folder / f"cpu.cfs_{what}_us").read_text() for what in ("quota", "period"))
            return folder, int(quota) / int(period)
    raise AssertionError(f"no control group of a network: {text}")


def test_speeds(name, folder):
    """Programs of a slower device get less of a core, by control groups, which are gone with the network, however it ends."""
    scenario = pathlib.Path(folder, "unlike.yaml")
    scenario.write_text(UNLIKE)
    said = run("cluster", "up", str(scenario), "--name", name, "--no-check")
    if "are equally fast" in said:
        print("speeds of devices not tested:", said.strip())
        return run("cluster", "down", name)
    assert "25 % of a core" in said and "100 % of a core" in said, said
    quotas = [quota_of(run("cluster", "exec", f"{name}/{device}", "cat", "/proc/self/cgroup")) for device in ("f0", "s0")]
    assert abs(quotas[1][1] / quotas[0][1] - 0.25) < 1e-3, quotas
    run("cluster", "down", name)
    assert not any(group.exists() for group, _ in quotas), quotas
    run("cluster", "up", str(scenario), "--name", name, "--no-check")
    for process in processes_with("cluster", name):
        processes.kill(process)
    processes.wait_until(lambda: not processes_with("cluster", name))
    run("cluster", "list")
    assert not any(group.exists() for group, _ in quotas), quotas


def test_killed_network(name):
    run("cluster", "up", STAR, "--name", name, "--no-check")
    for process in processes_with("cluster", name):
        processes.kill(process)
    processes.wait_until(lambda: not processes_with("cluster", name))
    assert name not in run("cluster", "list")
    run("cluster", "up", STAR, "--name", name, "--no-check")
    run("cluster", "down", name)


def test_validation(folder):
    """Messages never arrive before the shaped links can have carried them. How late they are depends on this machine."""
    text = run("validate", STAR, "--network", "namespaces", *SHORT, "--out", f"{folder}/out")
    result = json.loads(pathlib.Path(folder, "out/validation.json").read_text())
    iteration = result["iteration_s"]
    assert iteration["measured"] > 0.97 * iteration["simulated"], iteration
    assert len(result["network"]["each_iteration_s"]) == 3 and {l["name"] for l in result["network"]["links_busy_s"]} >= {"a0.link", "b0.link"}
    assert result["network"]["messages_simulated_over_measured"]["p50"] < 1.1, result["network"]["messages_simulated_over_measured"]
    calm = result["network"]["sleeps_late_s"]["p90"] < 0.5e-3 and all(
        abs(r["measured_bytes_per_s"] / r["nominal_bytes_per_s"] - 1) < 0.02 for r in result["network"]["rates"])
    assert not calm or abs(iteration["error"]) < 0.1, text
    print("iteration:", iteration, "calm" if calm else "a machine that is busy with other work")


def test_one_queue(folder):
    """With --queue fifo the simulation has queues, too: on a star with a slow card iterations take longer than with fair sharing."""
    simulated = {}
    for simulator in (["--simulator", "simgrid"], []):
        text = run("validate", STAR, "--network", "namespaces", "--queue", "fifo", *SHORT, *simulator, "--out", f"{folder}/queue", "--force")
        assert ("one queue in each port" in text) == (not simulator), text
        result = json.loads(pathlib.Path(folder, "queue/validation.json").read_text())
        assert result["simulated"]["backend"] == (simulator or ["fluid"])[-1]
        simulated[result["simulated"]["backend"]] = result["iteration_s"]["simulated"]
    assert simulated["fluid"] > simulated["simgrid"], simulated
    own = [f"--set=cluster.links.{link}.queue=fifo" for link in ("fast", "slow")]
    text = run("validate", STAR, "--network", "namespaces", *own, *SHORT, "--out", f"{folder}/queue", "--force")
    result = json.loads(pathlib.Path(folder, "queue/validation.json").read_text())
    assert result["network"]["queues"] == "tbf" and "one queue in each port" in text, text
    assert result["iteration_s"]["simulated"] == simulated["fluid"], (result["iteration_s"], simulated)


def test_changes(folder):
    """The links and devices of the box change as the scenario says: else this run would be much shorter. On a busy machine
    they change late, so an iteration may end before the change that was to make it longer."""
    changing = "scenarios/boxes/changing.yaml"
    run("validate", changing, "--network", "namespaces", "--iterations", "3", "--out", f"{folder}/changing")
    measured = json.loads(pathlib.Path(folder, "changing/validation.json").read_text())["network"]["each_iteration_s"]
    rated = json.loads(run("run", changing, "--backend", "ideal", "--set", "cluster.changes=[]", "--format", "json"))["period_s"]
    print("iterations with changes:", measured, "and as rated:", rated)
    for m in measured:
        assert m["measured"] > 0.97 * rated, measured
    for which in ("simulated", "measured"):
        assert sum(m[which] for m in measured) > 1.1 * 3 * rated, measured


GROUPS = """
schema: scenario/2
model: {builder: transformer, kind: gpt, layers: 2, hidden: 256, heads: 4, sequence: 128, vocabulary: 256}
cluster:
  generator: star
  types: {box: {peak: 100 GFLOP/s, efficiency: 1, memory_bandwidth: 1 TB/s, memory: 8 GiB}}
  links: {cable: {bandwidth: 50 Mbit/s, latency: 0.1 ms}}
  groups: [{name: box, count: 4, type: box, link: cable}]
plan: {planner: balanced, stages: 2, group: {tensor: 2}}
run: {schedule: 1f1b, micro_batches: 4}
software: plain
"""


def test_groups(folder):
    """Devices of tensor groups are processes of their own, and their collectives are on the links."""
    scenario = pathlib.Path(folder, "groups.yaml")
    scenario.write_text(GROUPS)
    text = run("validate", str(scenario), "--network", "namespaces", "--iterations", "3", "--out", f"{folder}/groups")
    assert "are messages over the network" in text, text
    result = json.loads(pathlib.Path(folder, "groups/validation.json").read_text())
    print("iteration of tensor groups:", result["iteration_s"])
    assert result["iteration_s"]["measured"] > 0.97 * result["iteration_s"]["simulated"], result["iteration_s"]
    busy = {link["name"]: link["measured"] for link in result["network"]["links_busy_s"]}
    priced = json.loads(run("run", str(scenario), "--set", "run.collectives=cost", "--format", "json"))
    assert set(busy) == {f"box{n}.link" for n in range(4)} and min(busy.values()) > 0.2 * priced["period_s"], (busy, priced["period_s"])


def end_in_the_middle(with_signal):
    """A validation that a signal ends while its processes exchange messages; they end too. Its process number."""
    mark = f"run.seed={os.getpid()}"  # No other test that runs at the same time has it.
    program = subprocess.Popen([TOOL, "validate", STAR, "--network", "namespaces", "--iterations", "10000", "--set", mark],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=processes.never_signaled)

    def ranks():
        return len(processes_with("run", "run.compute=emulated", mark))

    processes.wait_until(lambda: ranks() == 4, program)
    program.send_signal(with_signal)
    assert program.wait() == -with_signal
    processes.wait_until(lambda: ranks() == 0)
    return program.pid


def folders_of(process):
    return list(pathlib.Path(tempfile.gettempdir()).glob(f"stagecraft-network-{process}-*"))


def test_ended_validation(next_validation):
    """Of runs that are interrupted or killed only a folder is left, which the next run removes."""
    ended = [end_in_the_middle(s) for s in (signal.SIGINT, signal.SIGKILL)]
    assert folders_of(ended[1])
    next_validation()
    assert not any(folders_of(process) for process in ended)


def test_refusals():
    assert "--scale" in run("validate", "scenarios/boxes/nodes.yaml", "--network", "namespaces", code=3)
    assert "at most 64 devices" in run("cluster", "up", "scenarios/examples/gpt-1f1b-16.yaml", "--set", "cluster={base: dgx-a100-x2, override: {nodes: 32}}", code=3)
    assert "namespaces" in run("validate", STAR, "--network", "docker", code=2)


def test_all(folder):
    name = f"test{os.getpid()}"
    require_namespaces(name)
    try:
        test_training(name, folder)
        test_life_of_a_network(name)
        test_killed_network(name)
        test_speeds(name, folder)
    finally:  # The networks of a test that failed.
        for left in (name, f"{name}-2"):
            subprocess.run([TOOL, "cluster", "down", left], stderr=subprocess.DEVNULL)
    test_ended_validation(lambda: test_validation(folder))
    test_one_queue(folder)
    test_changes(folder)
    test_groups(folder)
    test_refusals()


# What a network leaves is in a folder of this test, where no network of another test removes it.
with tempfile.TemporaryDirectory() as own:
    os.environ["TMPDIR"] = tempfile.tempdir = own
    test_all(own)
