#!/usr/bin/env python3
"""Reads DeepSeek-V3's published trace with `import kineto --overlap`: deepseek_trace.py STAGECRAFT [FILE].

FILE is train.json of deepseek-ai/profile-data, or a table of its kernels with the columns start_us, dur_us, stream and kernel, of
which a trace with the same kernels is made; without it, $STAGECRAFT_DEEPSEEK_TRACE. Exit code 77 says that there is none. The
expected times are the union of intervals on streams 7 and 23 (computation) and 27 (communication) of the published trace, computed
from the table without Stagecraft."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
EXPECTED = {"span": 129.01, "computation": 124.26, "communication": 114.52, "both": 110.28}  # Milliseconds.


def trace_of(table, folder):
    """Kernels alone: the table has no calls of the host."""
    events = [{"ph": "X", "cat": "kernel", "name": row["kernel"], "pid": 0, "tid": int(row["stream"]), "ts": float(row["start_us"]),
               "dur": float(row["dur_us"]), "args": {"device": 0, "stream": int(row["stream"])}}
              for row in csv.DictReader(table.read_text().splitlines())]
    file = pathlib.Path(folder) / "train.json"
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return file


def main(program, given):
    if not given or not pathlib.Path(given).is_file():
        print("SKIPPED: there is no trace of DeepSeek; set STAGECRAFT_DEEPSEEK_TRACE to train.json of deepseek-ai/profile-data")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        file = trace_of(pathlib.Path(given), folder) if given.endswith(".csv") else given
        done = subprocess.run([program, "import", "kineto", file, "--overlap"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    found = {row["what"]: float(row["milliseconds"]) for row in csv.DictReader(done.stdout.splitlines())}
    for what, milliseconds in EXPECTED.items():
        assert abs(found[what] - milliseconds) < 0.02, (what, found[what], milliseconds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.environ.get("STAGECRAFT_DEEPSEEK_TRACE", "")))
