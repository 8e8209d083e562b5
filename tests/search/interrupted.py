#!/usr/bin/env python3
"""A search that is interrupted at any time resumes with the same answer.

    interrupted.py STAGECRAFT

Ctrl-C and SIGTERM print the best so far, save the state and exit with 130. After SIGKILL the state is that of at most
a few seconds before.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time

FILE = "scenarios/examples/search-branches.yaml"
OPTIONS = ["--schedules", "1f1b,zb-h1,interleaved,zb-v", "-j", "2"]
QUIET = {**os.environ, "STAGECRAFT_QUIET": "1"}


def start(stagecraft, *options):
    return subprocess.Popen([stagecraft, "search", FILE, *OPTIONS, *options], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=QUIET)


def main():
    stagecraft = sys.argv[1]
    repeats = 10 if os.environ.get("STAGECRAFT_TRIALS") == "full" else 1
    times = random.Random(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell starts its background jobs without Ctrl-C.
    interrupted = 0
    begin = time.monotonic()
    whole = start(stagecraft)
    expected = whole.communicate()[0]
    length = time.monotonic() - begin
    assert whole.returncode == 0, whole.returncode
    with tempfile.TemporaryDirectory() as folder:
        for number, (sent, code) in enumerate([(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)] * repeats):
            state = os.path.join(folder, f"state{number}")
            search = start(stagecraft, "--resume", state)
            time.sleep(times.uniform(0.1, 0.9) * length)
            search.send_signal(sent)
            out, err = search.communicate()
            if search.returncode == 0:  # It ended before the signal came.
                continue
            assert search.returncode == code or search.returncode == -sent, (search.returncode, err)
            if search.returncode == 130:
                complete = "interrupted after the search was complete" in err  # While the rows were diagnosed.
                assert complete or "interrupted; the same command resumes the search" in err, err
                assert "samples in an iteration" in out, out
            resumed = start(stagecraft, "--resume", state)
            answer, err = resumed.communicate()
            assert resumed.returncode == 0, err
            assert answer == expected, f"after {sent.name} another answer:\n{answer}\n{expected}"
            interrupted += 1
            print(f"{sent.name}: the same answer")
    print(f"{interrupted} of {3 * repeats} searches were interrupted before their end")
    assert interrupted > 0 or repeats == 1  # A busy machine may end a single search before its signal.


if __name__ == "__main__":
    main()
