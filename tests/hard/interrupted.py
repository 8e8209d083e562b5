"""Ctrl-C at any moment: it ends within a second as a shell expects, with no half file and no process left."""
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

from tool import PATIENCE, SLOWER, binary, check, finish, folder, leftovers, run

AGAIN = 10 if os.environ.get("STAGECRAFT_TRIALS") == "full" else 1  # Times each, at moments that are drawn.
ATTEMPTS = 10  # Until one is stopped between two files.
LONGEST = 1.0 * SLOWER  # Seconds until it has ended.
ENDED = (130, -signal.SIGINT)  # A shell shows both as 130.

LARGE = ["--set", "run.micro_batches=200000"]
LONG = {
    "run on ideal": ["run", "examples/quickstart", "--backend", "ideal", *LARGE, "--out", "ideal"],
    "run on simgrid": ["run", "examples/quickstart", "--backend", "simgrid", *LARGE, "--out", "simgrid"],
    "run on fluid": ["run", "examples/quickstart", "--backend", "fluid", *LARGE, "--out", "fluid"],
    "run on cpu": ["run", "examples/teacher", "--backend", "cpu", "--set", "run.iterations=100000", "--out", "cpu"],
    "validate": ["validate", "examples/cpu-transformer", "--out", "validated"],
    "profile": ["profile", "examples/cpu-transformer", "--backend", "cpu", "--out", "profile.yaml"],
    "compare": ["compare", "examples/quickstart", "--schedules", "all", "--set", "run.micro_batches=500"],
    "search": ["search", "examples/gpt-1f1b-16"],
    "synthesise": ["run", "examples/synthesised", "--set", "run.micro_batches=64"],
    "plan": ["plan", "examples/pipeline-16384", "--planner", "all"],
    "sweep": ["sweep", "topologies", "--out", "sweep.db"],
    "convergence": ["convergence", "examples/teacher", "--methods", "sync,2bw,pipeoptim", "--target", "1e-9"],
    "reproduce": ["reproduce"],
}


def start(words):
    """Starts the tool in its own process group and waits until it handles Ctrl-C."""
    program = subprocess.Popen([binary, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    caught = 0
    while not caught & 1 << (signal.SIGINT - 1) and program.poll() is None:
        status = pathlib.Path(f"/proc/{program.pid}/status").read_text()
        caught = int(next(line for line in status.splitlines() if line.startswith("SigCgt"))[7:], 16)
    return program


def end(program, name):
    os.killpg(program.pid, signal.SIGINT)
    begin = time.monotonic()
    errors = program.communicate(timeout=PATIENCE)[1].decode(errors="replace")
    taken = time.monotonic() - begin
    check(program.returncode in ENDED, f"{name}: ended with {program.returncode}: {errors[:300]}")
    check(taken < LONGEST, f"{name}: took {taken:.1f} s to end")
    check("error" not in errors and "a bug" not in errors, f"{name}: said {errors[:300]}")
    said = [line for line in errors.splitlines() if line.startswith("interrupted")]
    check(len(said) == 1 and errors.splitlines()[-1] == said[0], f"{name}: did not end on what was kept: {errors[-300:]}")
    time.sleep(0.05)
    check(not processes_of(program.pid), f"{name}: processes are left")
    check(not leftovers(folder), f"{name}: half files are left: {leftovers(folder)}")
    return errors


def processes_of(group):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # It has just gone.
        if int(its) == group and state != "Z":
            found.append(stat.parent.name)
    return found


draw = random.Random(20261122)
for name, words in LONG.items():
    for _ in range(AGAIN):
        program = start(words)
        time.sleep(draw.uniform(0.02, 0.6))
        early = program.poll()
        check(early is None, f"{name}: had ended with {early} before it could be interrupted")
        if early is None:
            end(program, name)


def interrupted_at(seen, into):
    """What a run into this folder says that is stopped when such a file is there; None where it had ended before."""
    program = start([*QUICK, "--set", "run.micro_batches=3000", "--out", str(into)])
    while not list(into.glob(seen)) and program.poll() is None:
        time.sleep(0.0005)
    if program.poll() is not None:
        program.communicate()
        return None
    return end(program, f"half of the results in {into.name}")


WHOLE = "has a whole run only if it has a results.json"
QUICK = ["run", "examples/quickstart", "--backend", "ideal"]
SMALL = [*QUICK, "--set", "report.trace=false", "--out"]
HALF, MADE = ".stagecraft-*.tmp", "trace.json"
# While a file is half written, and while the page after the trace is made; into a new folder, and over a run before.
for seen, before in [(HALF, False), (MADE, False), (HALF, True), (MADE, True)]:
    where = f"{seen}, {'a run' if before else 'none'} before"
    for attempt in range(ATTEMPTS):
        written = pathlib.Path(tempfile.mkdtemp(dir=folder))
        check(not before or run([*SMALL, str(written)])[0] == 0, "a folder with a run in it cannot be made")
        said = interrupted_at(seen, written)
        if said is None or (written / "results.json").exists():
            continue
        check(WHOLE in said and "nothing was kept" not in said, f"{where}: {sorted(written.iterdir())}, but: {said}")
        check(("the run before was being replaced" in said) == before, f"{where}: {said}")
        code, _, errors, _ = run([*SMALL, str(written)])
        names = {file.name for file in written.iterdir()}
        check(code == 0 and "results.json" in names and "trace.json" not in names, f"{where}: {code} {names} {errors}")
        break
    else:
        check(False, f"{where}: in {ATTEMPTS} attempts none was stopped while it wrote")
finish()
