"""A sweep shared by processes of mpirun, held against the same in one: sweep_together.py STAGECRAFT MPIRUN [lost]."""
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

os.environ["STAGECRAFT_QUIET"] = "1"  # Notices of slow commands depend on the load of the machine.

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from mpirun import SLOWER, check, environment, finish  # noqa: E402

stagecraft, mpirun = sys.argv[1:3]
environment = {**environment, "OMPI_MCA_hwloc_base_binding_policy": "none"}  # Workers of a process have their own cores.
folder = pathlib.Path(tempfile.mkdtemp())
POINTS = 24


def write(name, text):
    (folder / name).write_text("schema: sweep/1\nbase: examples/quickstart\nbackend: ideal\n" + text)
    return str(folder / name)


def command(file, out, *words, program=stagecraft):
    return [program, "sweep", file, "--out", str(folder / out), "--format", "csv", *words]


def on(ranks, words, *launcher):
    return [mpirun, *launcher, "-n", str(ranks), *words]


def start(words):
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(words):
    program = start(words)
    stdout, stderr = program.communicate(timeout=120 * SLOWER)
    return program.returncode, stdout, stderr


def rows(out):
    try:
        with sqlite3.connect(f"file:{folder / out}?mode=ro", uri=True, timeout=10) as file:
            return {row[0]: row for row in file.execute("SELECT * FROM result")}
    except sqlite3.OperationalError:  # Not even its tables are there yet.
        return {}


def children(pid):
    return [int(c) for c in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def under_way(out, ranks, *launcher):
    """A sweep of which some points are there, with its processes."""
    known = len(rows(out))
    program = start(on(ranks, command(long, out), *launcher))
    while len(rows(out)) < known + 3 and program.poll() is None:
        time.sleep(0.01)
    return program, children(program.pid)


def kill_workers(program, rank, out):
    """Until one had a point: between two points there is none to lose."""
    while program.poll() is None and not any(row[3] == "crash" for row in rows(out).values()):
        for worker in [w for crew in children(rank) for w in children(crew)]:
            try:
                os.kill(worker, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


def none_left(out):
    for _ in range(300):
        words = [p.read_bytes() for p in pathlib.Path("/proc").glob("[0-9]*/cmdline") if p.exists()]
        if not any(str(folder / out).encode() in w for w in words):
            return True
        time.sleep(0.01)
    return False


# Points that end well, cannot be resolved, do not fit, and take too long.
mixed = write("mixed.yaml", """axes: {run.micro_batches: {from: 4, to: 64, times: 2}, run.schedule: [gpipe, 1f1b, zb-h1]}
also: [{run.micro_batches: 200000}, {run.micro_batches: 3, plan.stages: 5}]
""")
long = write("long.yaml", f"axes: {{run.micro_batches: [2000], run.seed: {{from: 1, to: {POINTS}, by: 1}}}}\n")


def the_same():
    code, alone, _ = run(command(mixed, "alone.db", "-j", "1", "--timeout", "1.5"))
    check(code == 3 and alone.count(",ok,") > 10 and ",timeout," in alone and ",infeasible," in alone, "alone", alone)
    for ranks, words in ((2, ()), (4, ()), (3, ("-j", "2"))):
        code, table, said = run(on(ranks, command(mixed, f"on{ranks}.db", "--timeout", "1.5", *words)))
        check((code, table) == (3, alone), f"the table of {ranks} {words} is that of one", said)
        check(said.count("17 points on ideal: 0 there before, 17 now") == 1, f"{ranks} {words}: said once", said)
        code, table, said = run(on(ranks, command(mixed, f"on{ranks}.db", "--timeout", "1.5", *words)))
        check(table == alone and "17 there before, 0 now" in said, f"{ranks} {words} again", said)
    for i in (1, 2):
        run(on(2, command(mixed, f"part{i}.db", "--timeout", "1.5", "--shard", f"{i}/2")))
    parts = [str(folder / f"part{i}.db") for i in (1, 2)]
    whole = run([stagecraft, "sweep-merge", *parts, "--into", str(folder / "whole.db"), "--format", "csv"])
    check(whole[1] == alone, "shards on 2 processes each", whole[2])


def refused():
    code, table, said = run(on(3, command(str(folder / "nothing.yaml"), "a.db")))
    check(code == 2 and table == "" and said.count("there is no such file") == 1, "no such file", said)
    code, table, said = run(on(3, [stagecraft, "sweep", mixed, "--list"]))
    check(code == 0 and table.endswith("17 points\n") and table.count("17 points") == 1, "--list", said)
    for rank, expected in (("0", 4), ("1", 0)):
        program = subprocess.run(command(mixed, "c.db"), capture_output=True, text=True,
                                 env={**environment, "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": "2"})
        said = "2 processes were started, but MPI joins 1 of them" in program.stderr
        check((program.returncode, said) == (expected, rank == "0"), f"another launcher, process {rank}", program.stderr)
    other = folder / "other"
    other.write_text(f'#!/bin/sh\nif [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then shift 2; set -- sweep {mixed} "$@"; fi\n'
                     f'exec {stagecraft} "$@"\n')
    other.chmod(0o755)
    code, table, said = run(on(3, command(long, "b.db", program=str(other))))
    check(code == 4 and table == "" and said.count("process 1 of 3 has read another sweep") == 1, "another sweep", said)


def killed():
    alone = run(command(long, "one.db", "-j", "1"))[1]
    program, ranks = under_way("k.db", 3)
    os.kill(ranks[1], signal.SIGKILL)
    said = program.communicate(timeout=60 * SLOWER)[1]
    kept = rows("k.db")
    check(program.returncode != 0 and none_left("k.db"), "a process is killed: mpirun ends all", said)
    check(3 <= len(kept) < POINTS, "a process is killed: what was there is kept", said)

    code, table, said = run(on(2, command(long, "k.db")))
    check((code, table) == (0, alone), "in the end it is the table of one", said)
    check(all(rows("k.db")[key] == row for key, row in kept.items()), "rows that were there are as they were")

    program, ranks = under_way("w.db", 3)
    kill_workers(program, ranks[2], "w.db")
    said = program.communicate(timeout=60 * SLOWER)[1]
    now = rows("w.db").values()
    crashed = [row for row in now if row[3] == "crash"]
    check(program.returncode == 3 and len(now) == POINTS, "a worker is killed: the others go on", said)
    check(crashed and "signal 9, Killed" in crashed[0][5], "a worker is killed: its point says so", said)
    code, table, said = run(on(2, command(long, "w.db", "--retry")))
    check((code, table) == (0, alone), "tried again it is the table of one", said)

    for rank in (2, 0):
        program, ranks = under_way(f"c{rank}.db", 3)
        os.kill(children(ranks[rank])[0], signal.SIGKILL)
        table, said = program.communicate(timeout=60 * SLOWER)
        check((program.returncode, table) == (0, alone), f"all workers of process {rank} die: the others finish", said)
        check(f"process {rank} of 3: the process that the workers belong to has died" in said, f"workers of {rank}: said", said)
        check(none_left(f"c{rank}.db"), f"all workers of process {rank} die: none is left", said)

    program, ranks = under_way("n.db", 2)
    for rank in ranks:
        os.kill(children(rank)[0], signal.SIGKILL)
    said = program.communicate(timeout=60 * SLOWER)[1]
    check(program.returncode == 4 and "no process has workers left" in said, "no workers are left: it ends", said)
    check("the same command goes on" in said and none_left("n.db"), "no workers are left: what is there is said", said)
    code, table, said = run(on(2, command(long, "n.db")))
    check((code, table) == (0, alone), "no workers were left: the same command goes on", said)


def lost():
    """With an mpirun that keeps the other processes, a lost process is detected by its silence."""
    alone = run(command(long, "one.db", "-j", "1"))[1]
    program, ranks = under_way("l.db", 3, "--enable-recovery")
    os.kill(ranks[2], signal.SIGKILL)
    table, said = program.communicate(timeout=60 * SLOWER)
    check((program.returncode, table) == (0, alone), "a process is lost: the others finish", said)
    check("process 2 of 3 was lost" in said and none_left("l.db"), "a process is lost: it is said", said)

    program, ranks = under_way("m.db", 3, "--enable-recovery")
    os.kill(ranks[2], signal.SIGKILL)
    time.sleep(7)  # The loss is detected after 10 s; then its points are written, for which SQLite waits 5 s.
    with sqlite3.connect(folder / "m.db", timeout=10, isolation_level=None) as file:
        file.execute("BEGIN IMMEDIATE")
        said = program.communicate(timeout=60 * SLOWER)[1]
        file.execute("ROLLBACK")
    check("database is locked" in said, "a process is lost, then the file fails: it ends", said)
    check(none_left("m.db"), "a process is lost, then the file fails: none is left", said)


if sys.argv[3:] == ["lost"]:
    said = run([mpirun, "--version"])[1]  # mpiexec calls itself OpenRTE.
    if "(Open MPI) 4" not in said and "(OpenRTE) 4" not in said:
        print("SKIPPED: only Open MPI 4 has --enable-recovery")
        sys.exit(77)
    lost()
else:
    the_same()
    refused()
    killed()
finish()
