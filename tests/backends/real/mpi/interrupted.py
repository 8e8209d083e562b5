#!/usr/bin/env python3
"""Real runs of several processes of which one is killed or stopped: interrupted.py STAGECRAFT MPIRUN TOGETHER, from the root of
the project. TOGETHER is the program of processes/together.cpp."""
import concurrent.futures
import os
import pathlib
import signal
import sys
import tempfile
import time

os.environ["STAGECRAFT_QUIET"] = "1"  # Notices of slow commands depend on the load of the machine.

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from mpirun import check, finish, run, start  # noqa: E402
from processes import ASLEEP, HUNG, PATIENCE, children, kill, stat, stopped, threads, wait_until  # noqa: E402

stagecraft, mpirun, together = sys.argv[1:4]


def on(ranks, *words):
    return [mpirun, "-n", str(ranks), *words]


def start_asleep(folder, *more):
    return start(on(4, stagecraft, "run", str(folder / "asleep.yaml"), "--backend", "cpu", "--format", "json", *more))


def all_run(program):
    ranks = children(program.pid)  # Each has the main thread, two of MPI, and that of a device.
    return len(ranks) == 4 and all(threads(rank) >= 4 for rank in ranks)


def killed(folder):
    """A process that is killed in the middle of a run that sleeps for half an hour."""
    program = start_asleep(folder)
    if not wait_until(lambda: all_run(program), program):
        return check(False, "killed: it ended before", program.communicate()[1])
    ranks = children(program.pid)
    kill(ranks[1])
    stdout, stderr = program.communicate(timeout=HUNG)
    check(program.returncode == 137, f"killed: exit code {program.returncode}", stderr)
    check(stdout == "", "killed: prints results", stdout)
    check("told to stop in the middle of the run" in stderr and "has not ended" in stderr, "killed: says nothing", stderr)
    check(wait_until(lambda: not any(stat(rank) for rank in ranks)), "killed: processes are left")


def silent():
    """The second process stops, or has no memory, where the first waits for what it says next."""
    for where in ("run", "report"):
        for timeout in PATIENCE:
            done = run(on(2, together, "silent", where, str(timeout)))
            if "the second stops here" in done.stderr:
                break
        check(done.returncode == 4 and f"has not answered for {timeout} s" in done.stderr and "no answer from process 1 of 2" in done.stderr,
              f"silent in its {where}: ends with {done.returncode}", done.stderr)
        done = run(on(2, together, "silent", f"memory-{where}", str(HUNG)))
        check(done.returncode == 4 and done.stderr.count("not enough memory for it") == 1, f"no memory in its {where}: ends with {done.returncode}", done.stderr)
    done = run(on(2, together, "silent", "nowhere", str(HUNG)))
    check(done.returncode == 0, "none is silent", done.stderr)


def stopped_amid(folder, rank, seconds):
    """A run of which a process is stopped for a number of seconds, or forever."""
    for iterations in (3, 30, 300):
        program = start_asleep(folder, "--set", f"run.iterations={iterations}")
        if wait_until(lambda: all_run(program), program) and stopped((ranks := children(program.pid))[rank]):
            break
        program.communicate()
    else:
        return check(False, f"process {rank} is stopped: each run ended before")
    if seconds is not None:
        time.sleep(seconds)
        kill(ranks[rank], signal.SIGCONT)
    stdout, stderr = program.communicate(timeout=HUNG)
    check(wait_until(lambda: not any(stat(one) for one in ranks)), f"process {rank} is stopped: processes are left")
    if seconds is not None:
        return check(program.returncode == 0 and '"instructions"' in stdout, f"process {rank} sleeps for {seconds} s: {program.returncode}", stderr)
    said = "another process has not answered for 30 s" in stderr
    check(program.returncode == 4 and said and stdout == "", f"process {rank} is stopped: ended with {program.returncode}", stderr)


def launcher_stopped():
    """A launcher that does not answer, as behind a cut link, keeps no process after the end of its patience."""
    for timeout in PATIENCE:
        program = start(on(2, together, "stuck", str(timeout)))
        wait_until(lambda: len(children(program.pid)) == 2 and all(threads(rank) >= 4 for rank in children(program.pid)), program)
        ranks = children(program.pid)
        if len(ranks) == 2 and stopped(program.pid) and all(stat(rank) for rank in ranks):
            break
        kill(program.pid, signal.SIGCONT)
        program.communicate(timeout=HUNG)
    else:
        return check(False, "the launcher is stopped: each run ended before")
    check(wait_until(lambda: not any(stat(rank) for rank in ranks)), "the launcher is stopped: processes are left")
    kill(program.pid, signal.SIGCONT)
    stdout, stderr = program.communicate(timeout=HUNG)
    check(program.returncode == 4 and f"nothing has moved for {timeout} s" in stderr, f"the launcher is stopped: ended with {program.returncode}", stderr)


def cut(folder):
    """With an mpirun that keeps the other processes, a word that is never complete holds up none of them."""
    said = run([mpirun, "--version"]).stdout
    if "(Open MPI) 4" not in said and "(OpenRTE) 4" not in said:
        return
    done = run([mpirun, "--enable-recovery", *on(3, together, "cut", str(folder / "second"))[1:]])
    check("heard third" in done.stderr, "a process is lost in the middle of a word: the first hears the others", done.stderr)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "asleep.yaml").write_text(ASLEEP)
    jobs = [lambda: stopped_amid(folder, 2, None), lambda: stopped_amid(folder, 1, 3), lambda: stopped_amid(folder, 0, 3), silent, launcher_stopped,
            lambda: cut(folder), lambda: killed(folder)]
    if os.environ.get("STAGECRAFT_TRIALS") == "full":
        jobs += [lambda: stopped_amid(folder, 0, None), lambda: stopped_amid(folder, 3, 20)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(job) for job in jobs]:
            job.result()
finish()
