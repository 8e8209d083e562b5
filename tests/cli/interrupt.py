"""Presses Ctrl-C in the middle of a long run: interrupt.py STAGECRAFT FOLDER."""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from processes import HUNG, in_session, never_signaled, wait_until  # noqa: E402

# SimGrid simulates in a process of its own. When that is there, the folder is too, and the simulation is yet to come.
folder = pathlib.Path(sys.argv[2]) / "interrupted"
command = [sys.argv[1], "run", "examples/quickstart", "--set", "run.micro_batches=100000", "--out", str(folder)]
program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
                           preexec_fn=never_signaled, env={**os.environ, "STAGECRAFT_QUIET": "1"})
wait_until(lambda: len(in_session(program.pid)) > 1, program)
os.killpg(program.pid, signal.SIGINT)
said = program.communicate(timeout=HUNG)[1].decode().strip()
print("stopped" if program.returncode in (130, -signal.SIGINT) else f"ended with {program.returncode}")
print("it says:", said)
print("results.json is", "there" if (folder / "results.json").exists() else "not there")
print("half a file is there" if list(folder.glob("*.tmp")) else "no half-written file")
wait_until(lambda: not in_session(program.pid))
print("no process is left")
