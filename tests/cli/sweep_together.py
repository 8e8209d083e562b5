"""A sweep shared by processes of mpirun, compared with the same in one: sweep_together.py STAGECRAFT MPIRUN [interrupted|lost].

A sweep that is disturbed has points that never end, so that every signal comes before its end. Their workers are killed when
it may end."""
import contextlib
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

os.environ["STAGECRAFT_QUIET"] = "1"  # Notices of slow commands depend on the load of the machine.

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from mpirun import check, environment, finish, start  # noqa: E402
from processes import ENDLESS_SCHEDULE, HUNG, children, kill, wait_until, with_words  # noqa: E402

stagecraft, mpirun = sys.argv[1:3]
environment["OMPI_MCA_hwloc_base_binding_policy"] = "none"  # Workers of a process have their own cores.
folder = pathlib.Path(tempfile.mkdtemp())
POINTS = 12


def write(name, text):
    (folder / name).write_text("schema: sweep/1\nbase: examples/quickstart\nbackend: ideal\n" + text)
    return str(folder / name)


def command(file, out, *words, program=stagecraft):
    return [program, "sweep", file, "--out", str(folder / out), "--format", "csv", *words]


def on(ranks, words, *launcher):
    return [mpirun, *launcher, "-n", str(ranks), *words]


def run(words):
    program = start(words)
    stdout, stderr = program.communicate(timeout=HUNG)
    return program.returncode, stdout, stderr


def database(out, mode):
    return contextlib.closing(sqlite3.connect(f"file:{folder / out}?mode={mode}", uri=True, timeout=HUNG, isolation_level=None))


def rows(out):
    try:
        with database(out, "ro") as file:
            return {row[0]: row for row in file.execute("SELECT * FROM result")}
    except sqlite3.OperationalError:  # Not even its tables are there yet.
        return {}


def started(out, file, ranks, *launcher, words=()):
    """A sweep, and its processes, which have all started the process that their workers belong to."""
    program = start(on(ranks, command(file, out, *words), *launcher))

    def all_there():
        there = children(program.pid)
        return len(there) == ranks and all(children(rank) for rank in there)
    met = wait_until(all_there, program)
    check(met, f"{out}: all processes start", met or program.communicate()[1])
    return program, children(program.pid)


def workers(rank):
    """Workers belong to a process without MPI, which belongs to the process of mpirun."""
    return [worker for parent in children(rank) for worker in children(parent)]


def kill_all(processes):
    for process in processes:
        kill(process)


def kill_parent(rank):
    """Kills the process that the workers of a process belong to. What the system lists as children may lack one that it has."""
    there = []
    check(wait_until(lambda: there.extend(children(rank)) or there), f"{rank}: its workers have a parent")
    kill_all(there)


def wait_for_rows(program, out, count):
    check(wait_until(lambda: len(rows(out)) >= count, program), f"{out}: it goes on until it has {count} rows")


def crashed(out):
    return [row for row in rows(out).values() if row[3] == "crash"]


def kill_until_one_crashed(program, ranks, out):
    """Kills workers until one had a point: between two points there is none to lose."""
    def one_has():
        if crashed(out):
            return True
        for rank in ranks:
            kill_all(workers(rank))
        return False
    check(wait_until(one_has, program), f"{out}: a point has crashed")


def none_left(out):
    return wait_until(lambda: not with_words(str(folder / out)))


def endless(seed):
    return f"{{run.micro_batches: 17, run.seed: {seed}, run.schedule: {ENDLESS_SCHEDULE}}}"


# Points that end well, cannot be resolved and do not fit, and one that takes too long.
mixed = write("mixed.yaml", f"""axes: {{run.micro_batches: {{from: 4, to: 64, times: 2}}, run.schedule: [gpipe, 1f1b, zb-h1]}}
also: [{endless(1)}, {{run.micro_batches: 3, plan.stages: 5}}]
""")
long = write("long.yaml", f"axes: {{run.micro_batches: [200], run.seed: {{from: 1, to: {POINTS}, by: 1}}}}\nalso: [{endless(1000)}]\n")
# Three points that end, and more endless ones than two workers can lose.
endless_rest = write("endless_rest.yaml", f"axes: {{run.micro_batches: [200], run.seed: [1, 2, 3]}}\nalso: [{', '.join(endless(seed) for seed in range(6))}]\n")
two_endless = write("two_endless.yaml", f"also: [{endless(1)}, {endless(2)}]\n")
SHORT = ["--only", "run.micro_batches=200"]


def run_mixed(out, *words, ranks=0):
    """The point that never ends with a limit of time, and then the others without, which end however long they take."""
    launcher = [mpirun, "-n", str(ranks)] if ranks else []
    run([*launcher, *command(mixed, out, *words, "--only", "run.micro_batches=17", "--timeout", "0.2")])
    return run([*launcher, *command(mixed, out, *words)])


def the_same():
    code, alone, _ = run_mixed("alone.db", "-j", "1")
    check(code == 3 and alone.count(",ok,") > 10 and alone.count(",timeout,") == 1 and ",infeasible," in alone, "alone", alone)
    for ranks, words in ((2, ()), (4, ()), (3, ("-j", "2"))):
        code, table, said = run_mixed(f"on{ranks}.db", *words, ranks=ranks)
        check((code, table) == (3, alone), f"the table of {ranks} {words} is that of one", said)
        check(said.count("17 points on ideal: 1 there before, 16 now") == 1, f"{ranks} {words}: said once", said)
        code, table, said = run(on(ranks, command(mixed, f"on{ranks}.db", *words)))
        check(table == alone and "17 there before, 0 now" in said, f"{ranks} {words} again", said)
    for i in (1, 2):
        run_mixed(f"part{i}.db", "--shard", f"{i}/2", ranks=2)
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


def the_rest(out, *words):
    """All points that end, by the same command."""
    return run(on(2, command(long, out, *SHORT, *words)))


def killed():
    alone = run(command(long, "one.db", "-j", "1", *SHORT))[1]
    program, ranks = started("k.db", long, 3)
    wait_for_rows(program, "k.db", 3)
    kill(ranks[1])
    said = program.communicate(timeout=HUNG)[1]
    kept = rows("k.db")
    check(program.returncode != 0 and none_left("k.db"), "a process is killed: mpirun ends all", said)
    check(3 <= len(kept) <= POINTS, "a process is killed: what was there is kept", said)
    code, table, said = the_rest("k.db")
    check((code, table) == (0, alone), "in the end it is the table of one", said)
    check(all(rows("k.db")[key] == row for key, row in kept.items()), "rows that were there are as they were")

    program, ranks = started("w.db", long, 3)
    wait_for_rows(program, "w.db", POINTS)
    kill_until_one_crashed(program, ranks, "w.db")
    said = program.communicate(timeout=HUNG)[1]
    ends = crashed("w.db")
    check(program.returncode == 3 and len(rows("w.db")) == POINTS + 1, "a worker is killed: the others go on", said)
    check(len(ends) == 1 and "signal 9, Killed" in ends[0][5], "a worker is killed: its point says so", said)
    with database("w.db", "rw") as file:
        file.execute("UPDATE result SET status = 'crash' WHERE hash IN (SELECT hash FROM result WHERE status = 'ok' LIMIT 2)")
    code, table, said = the_rest("w.db", "--retry")
    check((code, table) == (0, alone) and f"{POINTS - 2} there before, 2 now" in said, "tried again it is the table of one", said)

    for rank in (2, 0):
        out = f"c{rank}.db"
        program, ranks = started(out, long, 3)
        wait_for_rows(program, out, 3)
        kill_parent(ranks[rank])
        wait_for_rows(program, out, POINTS)
        kill_until_one_crashed(program, ranks, out)
        said = program.communicate(timeout=HUNG)[1]
        check(f"process {rank} of 3: the process that the workers belong to has died" in said, f"workers of {rank}: said", said)
        check(program.returncode == 3 and none_left(out), f"all workers of process {rank} die: none is left", said)
        code, table, said = the_rest(out)
        check((code, table) == (0, alone) and f"{POINTS} there before, 0 now" in said,
              f"all workers of process {rank} die: the others finish", said)

    program, ranks = started("n.db", endless_rest, 2, words=("-j", "1"))
    wait_for_rows(program, "n.db", 3)
    for rank in ranks:
        kill_parent(rank)
    said = program.communicate(timeout=HUNG)[1]
    check(program.returncode == 4 and "no process has workers left" in said, "no workers are left: it ends", said)
    check("the same command goes on" in said and none_left("n.db"), "no workers are left: what is there is said", said)
    code, _, said = run(on(2, command(endless_rest, "n.db", *SHORT)))
    check(code == 0 and "3 there before, 0 now" in said, "no workers were left: the same command goes on", said)


def loses_a_process(out):
    """A sweep whose second process was killed, once the first one has noticed and does its point."""
    program, ranks = started(out, two_endless, 2, "--enable-recovery")
    check(wait_until(lambda: all(workers(rank) for rank in ranks), program), f"{out}: each process has a point")
    kill(ranks[1])
    kill_until_one_crashed(program, ranks[:1], out)  # Then the first one has nothing to do.
    check(wait_until(lambda: workers(ranks[0]), program), f"{out}: the point of the lost process is taken over")
    return program, ranks


def lost():
    """With an mpirun that keeps the other processes, a lost process is detected by its silence."""
    program, ranks = loses_a_process("l.db")
    kill_all(workers(ranks[0]))
    said = program.communicate(timeout=HUNG)[1]
    ends = crashed("l.db")
    check(len(ends) == 2 and all("signal 9, Killed" in end[5] for end in ends), "a process is lost: the other finishes", said)
    check("process 1 of 2 was lost" in said and none_left("l.db"), "a process is lost: it is said", said)

    program, ranks = loses_a_process("m.db")
    with database("m.db", "rw") as file:
        file.execute("BEGIN IMMEDIATE")
        kill_all(workers(ranks[0]))
        said = program.communicate(timeout=HUNG)[1]
        file.execute("ROLLBACK")
    check("database is locked" in said, "a process is lost, then the file fails: it ends", said)
    check(none_left("m.db"), "a process is lost, then the file fails: none is left", said)


if sys.argv[3:] == ["lost"]:
    said = run([mpirun, "--version"])[1]  # mpiexec calls itself OpenRTE.
    if "(Open MPI) 4" not in said and "(OpenRTE) 4" not in said:
        print("SKIPPED: only Open MPI 4 has --enable-recovery")
        sys.exit(77)
    lost()
elif sys.argv[3:] == ["interrupted"]:
    killed()
else:
    the_same()
    refused()
finish()
