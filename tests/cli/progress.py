#!/usr/bin/env python3
"""Progress of a command that takes longer than two seconds: progress.py STAGECRAFT, from the root of the project.

The command measures for an hour, until it has said enough. Elsewhere than on a terminal there are whole lines; on a
terminal one line is rewritten and removed. --quiet and STAGECRAFT_QUIET leave nothing of it."""
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from processes import HUNG, never_signaled  # noqa: E402

binary = str(pathlib.Path(sys.argv[1]).resolve())
WORDS = [binary, "profile", "examples/cpu-transformer", "--set", "plan.stages=1", "--set", "model.layers=2", "--seconds"]  # One thread.
LOUD = {k: v for k, v in os.environ.items() if k != "STAGECRAFT_QUIET"}
LINE = r"measuring layers: \d+ of \d+ micro-batch sizes(, [\d.]+/s(, \d+ s left)?)?"
ENDED = "interrupted; nothing was kept"
problems = []


def expect(holds, what, text):
    if not holds:
        problems.append(f"{what}: {text!r}")


def start(words, environment, stderr=subprocess.PIPE):
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=stderr, env=environment, preexec_fn=never_signaled)


def text_of(file, process, enough=None):
    """All that is said there. Interrupts the process once that is enough."""
    text = b""
    while True:
        try:
            part = os.read(file, 4096)
        except OSError:  # The other side of a terminal is closed.
            break
        if not part:
            break
        text += part
        if enough and text.count(enough[0]) >= enough[1]:
            process.send_signal(signal.SIGINT)
            enough = None
    process.wait(HUNG)
    return text.decode()


def on_terminal(seconds, enough=None):
    leader, follower = pty.openpty()
    process = start([*WORDS, seconds], LOUD, follower)
    os.close(follower)
    try:
        return text_of(leader, process, enough)
    finally:
        os.close(leader)


def check_terminal():
    parts = on_terminal("3600", (b"\r\033[K", 3)).split("\r\033[K")
    expect(len(parts) > 4 and all(re.fullmatch(LINE, part) for part in parts[1:-1]), "a line that is rewritten", parts)
    expect(parts[0] == "" and parts[-1].strip() == ENDED, "the line is removed before anything else is said", parts)
    # How much of its progress is shown depends on the machine. Nothing of it is left.
    parts = on_terminal("2.5").split("\r\033[K")
    expect(all(re.fullmatch(LINE, part) for part in parts[1:-1]), "a line that is rewritten, to the end", parts)
    expect(parts[0] == "" and parts[-1] == "", "nothing is left of it", parts)


quiet = {"--quiet": start([*WORDS, "2.5", "--quiet"], LOUD), "STAGECRAFT_QUIET": start([*WORDS, "2.5"], {**LOUD, "STAGECRAFT_QUIET": "1"})}
loud = start([*WORDS, "3600"], LOUD)
lines = text_of(loud.stderr.fileno(), loud, (b"\n", 1)).splitlines()
expect(len(lines) > 1 and all(re.fullmatch(LINE, line) for line in lines[:-1]) and lines[-1] == ENDED, "lines", lines)
for name, program in quiet.items():
    said = program.communicate(timeout=HUNG)[1].decode()
    expect(said == "", name, said)
try:
    pty.openpty()
except OSError as error:
    print(f"SKIPPED terminals: {error}")
else:
    check_terminal()
print(f"{len(problems)} problems")
print("\n".join(problems))
sys.exit(1 if problems else 0)
