#!/usr/bin/env python3
"""Progress of a command that takes longer than two seconds: progress.py STAGECRAFT, from the root of the project.

The command sleeps for three quarters of an hour, until it has said enough. Elsewhere than on a terminal there are whole
lines; on a terminal one line is rewritten and removed. --quiet and STAGECRAFT_QUIET leave nothing of it."""
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from processes import ASLEEP, HUNG, never_signaled  # noqa: E402

binary = str(pathlib.Path(sys.argv[1]).resolve())
folder = tempfile.TemporaryDirectory()
place = pathlib.Path(folder.name)
(place / "asleep.yaml").write_text(ASLEEP)
(place / "sweep.yaml").write_text("schema: sweep/1\nbase: asleep.yaml\nbackend: cpu\naxes: {run.iterations: {from: 1, to: 1000, by: 1}}\n")
LONG = [binary, "run", str(place / "asleep.yaml"), "--backend", "cpu"]
SHORT = [*LONG, "--set", "run.iterations=1"]  # 2.8 s.
COUNTED = [binary, "sweep", str(place / "sweep.yaml"), "--out", str(place / "sweep.db")]
LOUD = {k: v for k, v in os.environ.items() if k != "STAGECRAFT_QUIET"}
STEP = r"(planning with|building the schedule|lowering|running) .+"  # A slow machine may show the steps before the run.
LINE = re.compile(STEP)
COUNT = r": \d+ of 1000 points(, [\d.]+/s(, [\d a-z]+ left)?)?"  # It is not there before the points are known.
COUNTED_LINE = re.compile(rf"running points({COUNT})?(; {STEP})?")
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


def on_terminal(words, enough=None):
    leader, follower = pty.openpty()
    process = start(words, LOUD, follower)
    os.close(follower)
    try:
        return text_of(leader, process, enough)
    finally:
        os.close(leader)


def check_terminal():
    parts = on_terminal(LONG, (b"\r\033[Krunning ", 3)).split("\r\033[K")
    expect(len(parts) > 4 and all(LINE.fullmatch(part) for part in parts[1:-1]), "a line that is rewritten", parts)
    expect(parts[0] == "" and parts[-1].strip() == "interrupted; nothing was kept", "the line is removed before anything else is said", parts)
    # How much of its progress is shown depends on the machine. Nothing of it is left.
    parts = on_terminal(SHORT).split("\r\033[K")
    expect(all(LINE.fullmatch(part) for part in parts[1:-1]), "a line that is rewritten, to the end", parts)
    expect(parts[0] == "" and parts[-1] == "", "nothing is left of it", parts)


quiet = {"--quiet": start([*SHORT, "--quiet"], LOUD), "STAGECRAFT_QUIET": start(SHORT, {**LOUD, "STAGECRAFT_QUIET": "1"})}
loud = start(COUNTED, LOUD)
lines = text_of(loud.stderr.fileno(), loud, (b" of 1000 points", 1)).splitlines()
expect(len(lines) > 2 and all(COUNTED_LINE.fullmatch(line) for line in lines[:-2]), "lines", lines)
expect(lines[-1].startswith("interrupted: "), "the last line says what is kept", lines)
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
