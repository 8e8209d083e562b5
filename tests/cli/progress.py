#!/usr/bin/env python3
"""Progress of a command that takes longer than two seconds: progress.py STAGECRAFT, from the root of the project.

A profile measures for as long as it is told, so it takes that long on any machine. Elsewhere than on a terminal there are
whole lines; on a terminal one line is rewritten and removed. --quiet and STAGECRAFT_QUIET leave nothing of it."""
import os
import pathlib
import pty
import re
import subprocess
import sys

binary = str(pathlib.Path(sys.argv[1]).resolve())
TIMEOUT = 120 * int(os.environ.get("STAGECRAFT_TEST_PATIENCE", "1"))  # Seconds; more under a checker.
WORDS = [binary, "profile", "examples/cpu-transformer", "--seconds", "2.5", "--set", "plan.stages=1", "--set", "model.layers=2"]  # One thread.
LOUD = {k: v for k, v in os.environ.items() if k != "STAGECRAFT_QUIET"}
LINE = r"measuring layers: \d+ of \d+ micro-batch sizes(, [\d.]+/s(, \d+ s left)?)?"
problems = []


def expect(holds, what, text):
    if not holds:
        problems.append(f"{what}: {text!r}")


def start(words, environment, stderr=subprocess.PIPE):
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=stderr, env=environment)


def on_terminal():
    leader, follower = pty.openpty()
    process = start(WORDS, LOUD, follower)
    os.close(follower)
    text = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:
            part = b""
        if not part:
            break
        text += part
    process.wait(TIMEOUT)
    os.close(leader)
    return text.decode()


programs = {"lines": start(WORDS, LOUD), "--quiet": start([*WORDS, "--quiet"], LOUD),
            "STAGECRAFT_QUIET": start(WORDS, {**LOUD, "STAGECRAFT_QUIET": "1"})}
try:
    terminal = on_terminal()
except OSError as error:
    terminal = None
    print(f"SKIPPED terminals: {error}")
said = {name: program.communicate(timeout=TIMEOUT)[1].decode() for name, program in programs.items()}
expect(said["lines"] and all(re.fullmatch(LINE, line) for line in said["lines"].splitlines()), "lines", said["lines"])
for name in ("--quiet", "STAGECRAFT_QUIET"):
    expect(said[name] == "", name, said[name])
if terminal is not None:
    parts = terminal.split("\r\033[K")
    expect(len(parts) > 2 and all(re.fullmatch(LINE, part) for part in parts[1:-1]), "a line that is rewritten", terminal)
    expect(parts[0] == "" and parts[-1] == "", "nothing is left of it", terminal)
print(f"{len(problems)} problems")
print("\n".join(problems))
sys.exit(1 if problems else 0)
