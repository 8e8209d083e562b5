#!/usr/bin/env python3
"""nsight_file.py FILE [without TABLE] writes a small database as `nsys export --type sqlite` does.

Two layers, each with one kernel of 30 and 31 us launched in its forward, and one of 60 and 61 us in its backward; a
kernel of 5 us in the loss; and 40 us of NCCL on another stream at the same time as 20 us of the first kernels."""
import sqlite3
import sys

PROCESS = 7 << 24
file, missing = sys.argv[1], sys.argv[3] if len(sys.argv) > 3 else ""
database = sqlite3.connect(file)
strings = {}


def string(text):
    return strings.setdefault(text, len(strings))


tables = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT, shortName INT",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INT, end INT, globalTid INT, correlationId INT, nameId INT",
    "NVTX_EVENTS": "start INT, end INT, eventType INT, text TEXT, globalTid INT, textId INT",
    "StringIds": "id INT, value TEXT"}
rows = {name: [] for name in tables}


def kernel(name, launch, start, duration, stream, thread):
    number = len(rows["CUPTI_ACTIVITY_KIND_KERNEL"])
    rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append((launch, launch + 2000, PROCESS + thread, number, string("cudaLaunchKernel")))
    rows["CUPTI_ACTIVITY_KIND_KERNEL"].append((start, start + duration, 0, stream, number, PROCESS, string(name)))


for layer in range(2):
    at = 100_000 * layer
    # The first range has its text in the row, the second by its number.
    text = (f"layer {layer}", None) if layer == 0 else (None, string(f"layer {layer}"))
    rows["NVTX_EVENTS"].append((at, at + 50_000, 59, text[0], PROCESS + 1, text[1]))
    rows["NVTX_EVENTS"].append((500_000 - at, 540_000 - at, 59, f"layer {layer} backward", PROCESS + 2, None))
    kernel("gemm", at + 12_000, at + 20_000, 30_000 + 1000 * layer, 7, 1)
    kernel("gemm", 505_000 - at, 510_000 - at, 60_000 + 1000 * layer, 7, 2)
rows["NVTX_EVENTS"] += [(0, 900_000, 59, "iteration", PROCESS + 1, None), (950_000, None, 59, "open", PROCESS + 1, None)]
kernel("loss", 900_000, 910_000, 5000, 7, 1)
kernel("ncclDevKernel_AllReduce", 1_000, 30_000, 40_000, 27, 1)
rows["StringIds"] = [(number, text) for text, number in strings.items()]
for name, columns in tables.items():
    if name != missing:
        database.execute(f"CREATE TABLE {name} ({columns})")
        database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * (columns.count(',') + 1))})", rows[name])
database.commit()
