"""Presses Ctrl-C in the middle of a long run: interrupt.py STAGECRAFT FOLDER."""
import os
import pathlib
import signal
import subprocess
import sys
import time

folder = pathlib.Path(sys.argv[2]) / "interrupted"
command = [sys.argv[1], "run", "examples/quickstart", "--set", "run.micro_batches=100000", "--out", str(folder)]
program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
                           preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
while not folder.exists() and program.poll() is None:
    time.sleep(0.01)
time.sleep(0.3)
os.killpg(program.pid, signal.SIGINT)
print("stopped" if program.wait(30) in (130, -signal.SIGINT) else f"ended with {program.returncode}")
print("it says:", program.stderr.read().decode().strip())
print("results.json is", "there" if (folder / "results.json").exists() else "not there")
print("half a file is there" if list(folder.glob("*.tmp")) else "no half-written file")


def left_behind():
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # It has just gone.
        if int(group) == program.pid and state != "Z":
            yield stat.parent.name


latest = time.monotonic() + 0.2 * int(os.environ.get("STAGECRAFT_TEST_PATIENCE", "1"))
while (left := list(left_behind())) and time.monotonic() < latest:
    time.sleep(0.01)
print(f"processes are left: {left}" if left else "no process is left")
