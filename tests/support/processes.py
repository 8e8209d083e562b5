"""Processes that a test starts, signals and waits for, whatever the speed of the machine.

A signal must meet its process, so the process does work that cannot end before (ENDLESS), or the test waits for a mark that
it leaves: a row, a file, a handler of signals. Nothing waits for a fixed time. HUNG is a limit that only a hang reaches."""
import os
import pathlib
import signal
import time

HUNG = 1200 * int(os.environ.get("STAGECRAFT_TEST_PATIENCE", "1"))  # Seconds; more under a checker.
# Seconds that a run waits for silent processes, to be tried until all of them have come to the place where one falls silent.
PATIENCE = (2, 8, 32, 128)

# A search for an order with a million million steps, which takes hours on any machine and little memory.
ENDLESS_SCHEDULE = "{name: synthesised, effort: 1000000, activations: 2}"
ENDLESS = ["--set", f"run.schedule={ENDLESS_SCHEDULE}", "--set", "run.micro_batches=16"]

# A real run that sleeps, for 2.8 s in each iteration and for 47 minutes in all, and computes next to nothing.
ASLEEP = """
schema: scenario/2
software: none
model: {builder: uniform, layers: 4, forward: 200 ms, backward: 200 ms}
cluster: {base: threads-8, override: {devices: 4}}
plan: {planner: balanced, stages: 4, micro_batch_size: 1}
run: {schedule: 1f1b, micro_batches: 4, iterations: 1000, compute: emulated}
"""


def wait_until(holds, program=None):
    """Whether it holds before the program ends. A limit of time ends the test."""
    begin = look = time.monotonic()
    while not holds():
        if program is not None and program.poll() is not None:
            return bool(holds())
        if time.monotonic() - begin > HUNG:
            raise TimeoutError(f"it does not hold after {HUNG} s")
        time.sleep(max(0.002, 9 * (time.monotonic() - look)))  # Looks take a tenth of the time and leave the rest to the program.
        look = time.monotonic()
    return True


def never_signaled():
    """For `preexec_fn`: a shell starts its background jobs without Ctrl-C, and so would the program."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def kill(process, how=signal.SIGKILL):
    """False if there is no such process any more."""
    try:
        os.kill(process, how)
        return True
    except ProcessLookupError:
        return False


def stat(process):
    """State, session and seconds of computing of a process, ended children included; nothing once it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if fields[0] == "Z":
        return None
    return {"state": fields[0], "session": int(fields[3]),
            "seconds": sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")}


def processes(selects):
    """The numbers of all processes that are selected by their number and stat()."""
    numbers = [int(entry.name) for entry in pathlib.Path("/proc").glob("[0-9]*")]
    return [number for number in numbers if (seen := stat(number)) and selects(number, seen)]


def in_session(session):
    return processes(lambda _, seen: seen["session"] == session)


def children(process):
    """The children that its first thread has started, in the order in which it did."""
    try:
        numbers = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [int(number) for number in numbers if stat(number)]


def threads(process):
    try:
        return len(list(pathlib.Path(f"/proc/{process}/task").iterdir()))
    except OSError:
        return 0


def calls_of_write(process):
    try:
        lines = pathlib.Path(f"/proc/{process}/io").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("syscw"))


def with_words(words):
    """Processes that have these words on their command line."""
    def has(number, _):
        try:
            return words.encode() in pathlib.Path(f"/proc/{number}/cmdline").read_bytes()
        except OSError:
            return False
    return processes(has)


def handles(process, number):
    """Whether it has a handler for this signal."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt")), "SigCgt: 0")
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def stopped(process):
    """Stops a process where it is, so that the next signal meets it there. False if it has ended."""
    if not kill(process, signal.SIGSTOP):
        return False
    wait_until(lambda: (seen := stat(process)) is None or seen["state"] == "T")
    return stat(process) is not None
