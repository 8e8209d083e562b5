#!/usr/bin/env python3
"""A search that is interrupted at any time resumes with the same answer.

    interrupted.py STAGECRAFT

Ctrl-C and SIGTERM print the best so far, save the state and exit with 130 and 143. After SIGKILL the state is that of at most
a few seconds before: the first lines of a state stand for it, at any time.
"""

import hashlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from processes import HUNG, handles, never_signaled, stopped, wait_until  # noqa: E402

FULL = os.environ.get("STAGECRAFT_TRIALS") == "full"
FILE = "scenarios/examples/search-branches.yaml"
OPTIONS = ["--schedules", "1f1b,zb-h1,interleaved,zb-v", "-j", "2", *([] if FULL else ["--most", "40"])]
QUIET = {**os.environ, "STAGECRAFT_QUIET": "1"}


def start(stagecraft, *options):
    return subprocess.Popen([stagecraft, "search", FILE, *OPTIONS, *options], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=QUIET, preexec_fn=never_signaled)


def answer(stagecraft, *options):
    whole = start(stagecraft, *options)
    out, err = whole.communicate(timeout=HUNG)
    assert whole.returncode == 0, err
    return out


def stopped_amid(stagecraft, state, share, length):
    """A search that is stopped after a share of its length, or after half of that where it was faster this time."""
    while True:
        search = start(stagecraft, "--resume", str(state))
        wait_until(lambda: handles(search.pid, signal.SIGTERM), search)
        time.sleep(share * length)
        if stopped(search.pid) and handles(search.pid, signal.SIGTERM):
            return search
        search.kill()
        search.communicate()
        state.unlink(missing_ok=True)
        share /= 2


def check_signal(stagecraft, sent, state, draw, length):
    """Until a signal has met the search itself: it may come while the scenario is read or the table is printed."""
    for _ in range(100):
        search = stopped_amid(stagecraft, state, draw.uniform(0.1, 0.9), length)
        search.send_signal(sent)
        search.send_signal(signal.SIGCONT)
        out, err = search.communicate(timeout=HUNG)
        if sent == signal.SIGKILL:
            assert search.returncode == -sent, (search.returncode, err)
            return
        if search.returncode != -sent:
            break
        assert "nothing was kept" in err or "whole" in err, err
        state.unlink(missing_ok=True)
    assert search.returncode == 128 + sent, (search.returncode, err)
    word = "terminated" if sent == signal.SIGTERM else "interrupted"
    complete = f"{word} after the search was complete" in err  # While the rows were diagnosed.
    assert complete or f"{word}; the same command resumes the search" in err, err
    assert "samples in an iteration" in out, out


def main():
    stagecraft = sys.argv[1]
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        expected = answer(stagecraft)
        length = time.monotonic() - begin
        for sent in [signal.SIGINT, signal.SIGTERM, signal.SIGKILL] * (10 if FULL else 1):
            state = pathlib.Path(folder, f"state{sent.name}")
            check_signal(stagecraft, sent, state, draw, length)
            resumed = answer(stagecraft, "--resume", str(state))
            assert resumed == expected, f"after {sent.name} another answer:\n{resumed}\n{expected}"
            lines = state.read_text().splitlines(keepends=True)
            state.unlink()
            print(f"{sent.name}: the same answer")
        for _ in range(10 if FULL else 2):
            some = draw.randrange(2, len(lines))
            state = pathlib.Path(folder, f"first{some}")
            text = "".join(lines[1:some])
            mark = hashlib.sha256(text.encode()).hexdigest()  # Of what the program has written itself.
            state.write_text(re.sub("[0-9a-f]{16}", mark[:16], lines[0]) + text)
            assert answer(stagecraft, "--resume", str(state)) == expected, f"after {some} of {len(lines)} lines another answer"
            print(f"{some} of {len(lines)} lines: the same answer")


if __name__ == "__main__":
    main()
