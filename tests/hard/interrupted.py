"""Ctrl-C at any moment: it ends at once as a shell expects, with no half file and no process left. TERM and HUP do the same.

At random moments of every command; when SimGrid's process is there; while results are written; in the middle of a run whose
stderr is a pipe, closed or full."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from tool import SLOWER, binary, check, computed, finish, folder, leftovers, run

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from processes import (ASLEEP, ENDLESS, HUNG, calls_of_write, children, handles, in_session, kill, never_signaled,  # noqa: E402
                       stat, stopped, wait_until)

FULL = os.environ.get("STAGECRAFT_TRIALS") == "full"
AGAIN, LATEST = (10, 0.6) if FULL else (1, 0.3)  # Times each, at random moments up to LATEST seconds after the start.
MOST = 1.0 * SLOWER  # Seconds of computing until it has ended. How long that takes depends on what else computes.
ENDED = (130, -signal.SIGINT)  # A shell shows both as 130.

LARGE = ["--set", "run.micro_batches=200000"]
LONG = {
    "run on ideal": ["run", "examples/quickstart", "--backend", "ideal", *LARGE, "--out", "ideal"],
    "run on simgrid": ["run", "examples/quickstart", "--backend", "simgrid", *LARGE, "--out", "simgrid"],
    "run on fluid": ["run", "examples/quickstart", "--backend", "fluid", *LARGE, "--out", "fluid"],
    "run on cpu": ["run", "examples/teacher", "--backend", "cpu", "--set", "run.iterations=100000", "--out", "cpu"],
    "validate": ["validate", "examples/cpu-transformer", "--out", "validated"],
    "profile": ["profile", "examples/cpu-transformer", "--backend", "cpu", "--seconds", "3600", "--out", "profile.yaml"],
    "compare": ["compare", "examples/quickstart", "--schedules", "all", "--set", "run.micro_batches=500"],
    "search": ["search", "examples/gpt-1f1b-16"],
    "synthesise": ["run", "examples/quickstart", *ENDLESS],
    "plan": ["plan", "examples/pipeline-16384", "--planner", "all"],
    "sweep": ["sweep", "topologies", "--out", "sweep.db"],
    "convergence": ["convergence", "examples/teacher", "--methods", "sync,2bw,pipeoptim", "--target", "1e-9"],
    "reproduce": ["reproduce"],
}


def start(words):
    """Starts the tool in its own session and waits until it handles Ctrl-C."""
    program = subprocess.Popen([binary, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, start_new_session=True, preexec_fn=never_signaled)
    wait_until(lambda: handles(program.pid, signal.SIGINT), program)
    return program


def end(program, name):
    """Ctrl-C to a program that is stopped, and what it says."""
    before = computed() + sum(seen["seconds"] for process in in_session(program.pid) if (seen := stat(process)))
    os.killpg(program.pid, signal.SIGINT)
    os.kill(program.pid, signal.SIGCONT)
    errors = program.communicate(timeout=HUNG)[1].decode(errors="replace")
    taken = computed() - before
    check(program.returncode in ENDED, f"{name}: ended with {program.returncode}: {errors[:300]}")
    check(taken < MOST, f"{name}: computed for {taken:.1f} s until it ended")
    check("error" not in errors and "a bug" not in errors, f"{name}: said {errors[:300]}")
    said = [line for line in errors.splitlines() if line.startswith("interrupted")]
    check(len(said) == 1 and errors.splitlines()[-1] == said[0], f"{name}: did not end on what was kept: {errors[-300:]}")
    wait_until(lambda: not in_session(program.pid))
    check(not leftovers(folder), f"{name}: half files are left: {leftovers(folder)}")
    return errors


def interrupted_after(delay, words, name):
    """Where the program ends earlier, which depends on the machine, after half of the time. None of them ends at once."""
    for _ in range(20):
        program = start(words)
        time.sleep(delay)
        if stopped(program.pid):
            return end(program, name)
        program.communicate()
        delay /= 2
    return check(False, f"{name}: ended with {program.returncode} before it could be interrupted")


draw = random.Random(20261122)
for name, words in LONG.items():
    for _ in range(AGAIN):
        interrupted_after(draw.uniform(0.02, LATEST), words, name)


def interrupted_in_simgrid():
    """SimGrid simulates in another process. When that is there, the folder is too, and no results are."""
    into = folder / "in-simgrid"
    for size in (5000, 10000, 20000, 40000, 80000, 160000):  # A larger one where the simulation has ended before it is stopped.
        program = start(["run", "examples/quickstart", "--backend", "simgrid", "--set", f"run.micro_batches={size}", "--out", str(into)])
        wait_until(lambda: len(in_session(program.pid)) > 1, program)
        if stopped(program.pid) and len(in_session(program.pid)) > 1:
            errors = end(program, "in SimGrid's process")
            return check(errors == "interrupted; nothing was kept\n" and not into.exists(), f"in SimGrid's process: said {errors!r}")
        kill(program.pid, signal.SIGCONT)
        program.communicate()
        shutil.rmtree(into, ignore_errors=True)
    return check(False, "SimGrid's process was never met")


interrupted_in_simgrid()


def contents(place):
    return {file.name: file.read_bytes() for file in place.iterdir() if not file.name.endswith(".tmp")}


def interrupted_at(seen, into, size, kept):
    """What a run into this folder says that is stopped when such a file is there, and nothing else has changed; None
    where it had gone on before."""
    program = start([*QUICK, "--set", f"run.micro_batches={size}", "--out", str(into)])
    wait_until(lambda: list(into.glob(seen)), program)
    if stopped(program.pid) and list(into.glob(seen)) and contents(into) == kept:
        return end(program, f"half of the results in {into.name}")
    kill(program.pid)
    program.communicate()
    return None


QUICK = ["run", "examples/quickstart", "--backend", "ideal"]
SMALL = [*QUICK, "--set", "report.trace=false", "--out"]
HALF = ".stagecraft-*.tmp"
SIZES = [1000, 3000, 6000, 12000, 24000, *[48000] * 5]  # The more there is to write, the longer it takes.
# While files are written under temporary names: a new folder goes away, and a run before stays as it was.
for before in (False, True):
    where = f"{'a run' if before else 'none'} before"
    for size in SIZES:
        written = pathlib.Path(tempfile.mkdtemp(dir=folder))
        check(not before or run([*SMALL, str(written)])[0] == 0, "a folder with a run in it cannot be made")
        kept = contents(written)
        said = interrupted_at(HALF, written, size, kept)
        if said is None:
            continue
        last = "has a whole run only if it has a results.json"  # The files were about to take their places.
        check(("has the run before" if before else "nothing was kept") in said or last in said, f"{where}: {sorted(written.iterdir())}, but: {said}")
        check((contents(written) if written.exists() else {}) == kept, f"{where}: it is another one now")
        code, _, errors, _ = run([*SMALL, str(written)])
        names = {file.name for file in written.iterdir()}
        check(code == 0 and "results.json" in names and "trace.json" not in names, f"{where}: {code} {names} {errors}")
        break
    else:
        check(False, f"{where}: none was stopped while it wrote")

(folder / "asleep.yaml").write_text(ASLEEP)
SLEEPS = [binary, "run", "asleep.yaml", "--backend", "cpu"]
# Signals that ask for an end say a line, and a shell that waits for the command ends with the usual code.
for number, word in ((signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated"), (signal.SIGHUP, "hung up")):
    place = folder / f"ended-{int(number)}"
    shell = subprocess.Popen(["bash", "-c", '"$@"; exit $?', "bash", *SLEEPS, "--out", str(place)], cwd=folder, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             preexec_fn=lambda: [signal.signal(s, signal.SIG_DFL) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)])
    wait_until(place.exists, shell)
    program = children(shell.pid)[0]
    check(handles(program, number), f"{word}: the program has no handler")
    kill(program, number)
    errors = shell.communicate(timeout=HUNG)[1].decode()
    check(shell.returncode == 128 + number or (number == signal.SIGINT and shell.returncode == -number), f"{word}: a shell shows {shell.returncode}")
    check(f"{word}; nothing was kept\n" in errors, f"{word}: said {errors!r}")
    check(not place.exists(), f"{word}: a folder without results is left")

# Progress, which another thread writes, and the line of Ctrl-C, where neither can be written.
loud = {name: value for name, value in os.environ.items() if name != "STAGECRAFT_QUIET"}
for form in ("closed", "/dev/full"):
    def prepare():
        never_signaled()
        if form == "closed":
            os.close(2)
        else:
            os.dup2(os.open(form, os.O_WRONLY), 2)
    program = subprocess.Popen(SLEEPS, cwd=folder, env=loud, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=prepare)
    wait_until(lambda: calls_of_write(program.pid) >= 2, program)
    check(program.poll() is None, f"progress with stderr {form}: ended with {program.poll()}")
    kill(program.pid, signal.SIGINT)
    program.communicate(timeout=HUNG)
    check(program.returncode == -signal.SIGINT, f"Ctrl-C with stderr {form}: ended with {program.returncode}")
finish()
