#!/usr/bin/env python3
"""Processes of mpirun that share a search find the answer of one: together.py STAGECRAFT MPIRUN [interrupted].

With `interrupted`: also after an interrupt; with STAGECRAFT_TRIALS=full in a larger search, where all processes are interrupted
at once, and where one is lost."""

import os
import pathlib
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from mpirun import check, environment, finish, start  # noqa: E402
from processes import HUNG, children, handles, kill, stopped, threads, wait_until  # noqa: E402

stagecraft, mpirun = sys.argv[1:3]
environment["STAGECRAFT_QUIET"] = "1"
folder = pathlib.Path(tempfile.mkdtemp())
full = os.environ.get("STAGECRAFT_TRIALS") == "full"
DISTURBED = ("quickstart", "--schedules", "1f1b,zb-h1,gpipe") if full else ("search-slow-link", "--schedules", "1f1b,gpipe")


def words(name, *more, ranks=0, launcher=()):
    start = [mpirun, *launcher, "-n", str(ranks)] if ranks else []
    return [*start, stagecraft, "search", f"scenarios/examples/{name}.yaml", "--format", "json", *more]


def run(command):
    program = start(command)
    stdout, stderr = program.communicate(timeout=HUNG)
    return program.returncode, stdout, stderr


def amid_search(count, state, command):
    """A search that has begun, and its processes, of which the first one is stopped in it. A large one saves its state before,
    unless it ends too early."""
    for waits_for_state in (full, *[False] * 99):
        program = start(command)

        def is_amid():
            there = children(program.pid)  # Each has a main thread, two of MPI, and one that the search has started.
            begun = len(there) == count and all(threads(one) >= 4 and handles(one, signal.SIGTERM) for one in there)
            return begun and (state.exists() or not waits_for_state)
        if wait_until(is_amid, program):
            processes = children(program.pid)
            if len(processes) == count and stopped(processes[0]) and handles(processes[0], signal.SIGTERM):
                return program, processes
        for process in [*children(program.pid), program.pid]:
            kill(process)
        program.communicate()
        state.unlink(missing_ok=True)
    sys.exit(f"{command}: it always ended before it could be disturbed")


def the_same():
    for name, more in (("search-slow-link", ()), ("search-groups", ("--most", "60"))):
        alone = run(words(name, "-j", "1", *more))
        check(alone[0] == 0 and '"choices"' in alone[1], f"{name} alone", alone[2])
        for ranks in (2, 3) if full else (2,) if name == "search-slow-link" else (3,):
            best = folder / f"{name}-{ranks}.yaml"
            code, answer, said = run(words(name, "--out", str(best), *more, ranks=ranks))
            check((code, answer) == (0, alone[1]), f"{name}: {ranks} processes answer as one", said)
            check(best.exists() and said.count("wrote") <= 1, f"{name}: {ranks} processes write once", said)
    code, answer, said = run(words("nothing", ranks=3))
    check(code == 2 and answer == "" and said.count("there is no such file") == 1, "no such file", said)
    other = folder / "other"
    other.write_text('#!/bin/sh\nif [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then set -- "$@" --seed 7; fi\n'
                     f'exec {stagecraft} "$@"\n')
    other.chmod(0o755)
    code, answer, said = run([mpirun, "-n", "2", str(other), "search", "scenarios/examples/search-slow-link.yaml"])
    check(code == 4 and said.count("process 1 of 2 searches for another answer") == 1, "another question", said)


def interrupted():
    """A signal to mpirun, or to a process: the best so far is printed, and the search resumes to the same answer."""
    alone = run(words(*DISTURBED, "-j", "1"))[1]
    cases = ((0, signal.SIGTERM), (None, signal.SIGINT), (1, signal.SIGTERM))
    for number, (process, what) in enumerate(cases[:3 if full else 1]):
        state = folder / f"state{number}"
        command = words(*DISTURBED, "--resume", str(state), ranks=2)
        program, ranks = amid_search(2, state, command)
        kill(program.pid if process is None else ranks[process], what)
        kill(ranks[0], signal.SIGCONT)
        answer, said = program.communicate(timeout=HUNG)
        check(program.returncode != 0 and '"choices"' in answer, f"{what.name}: the best so far is printed", said)
        if process == 0:  # Else mpirun may end before it passes that on.
            may_say = ("the same command resumes the search", "after the search was complete")
            check(any(text in said for text in may_say), f"{what.name}: it is said", said)
        code, answer, said = run(command)
        check((code, answer) == (0, alone), f"{what.name}: resumed it is the answer of one", said)


def lost():
    """With an mpirun that keeps the other processes, the first one does what a lost process had."""
    said = run([mpirun, "--version"])[1]
    if "(Open MPI) 4" not in said and "(OpenRTE) 4" not in said:
        return
    alone = run(words(*DISTURBED, "-j", "1"))[1]
    state = folder / "lost"
    command = words(*DISTURBED, "--resume", str(state), ranks=3, launcher=["--enable-recovery"])
    program, ranks = amid_search(3, state, command)
    kill(ranks[2])
    kill(ranks[0], signal.SIGCONT)
    answer, said = program.communicate(timeout=HUNG)
    check(answer == alone, "a process is lost: the others find the same", said)


if sys.argv[3:] == ["interrupted"]:
    interrupted()
    if full:
        lost()
else:
    the_same()
finish()
