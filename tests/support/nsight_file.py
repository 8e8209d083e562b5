#!/usr/bin/env python3
"""nsight_file.py FILE [--schema 2022.4] [--without TABLE] [--cpu [--all-tables]] [--graph] writes a small database with
the tables and columns of `nsys export --type sqlite`: of Nsight Systems 2024.6 (export schema 3.16), or of 2022.4 (3.0),
which has no green contexts and no binary payloads. Nsight Systems 2022.4 itself wrote a file with these columns of 2022.4.
--cpu: of a machine without a GPU, whose tables the export leaves out, or with --lazy=false (--all-tables) writes empty.
--graph: a CUDA graph that was traced as a whole.

Two layers, each with one kernel of 30 and 31 us launched in its forward, and one of 60 and 61 us in its backward; a
kernel of 5 us in the loss; and 40 us of NCCL on another stream at the same time as 20 us of the first kernels. Next to
ranges, NVTX has a mark, a category, and the domain of NCCL with a range; one range ends on another thread. A copy of 3 us
is launched in the forward of the second layer. Ranges that the program never ends have the end of the session, where
the export of 2022.4 puts it."""
import argparse
import sqlite3

arguments = argparse.ArgumentParser()
arguments.add_argument("file")
arguments.add_argument("--schema", default="2024.6", choices=["2022.4", "2024.6"])
arguments.add_argument("--without")
for flag in ("--cpu", "--all-tables", "--graph"):
    arguments.add_argument(flag, action="store_true")
arguments = arguments.parse_args()

PROCESS, SESSION = 7 << 24, 1_000_000
# NvtxCategory, NvtxMark, NvtxPushPopRange, NvtxStartEndRange and NvtxDomainCreate of ENUM_NSYS_EVENT_TYPE.
CATEGORY, MARK, PUSH_POP, START_END, DOMAIN = 33, 34, 59, 60, 75

# Columns in the order of the export; a star follows those that are never null.
TABLES = {
    "StringIds": "id* value*",
    "TARGET_INFO_GPU": "vmId* id* name busLocation isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount "
                       "pwGpuId uuid luid chipName cuDevice",
    "CUPTI_ACTIVITY_KIND_KERNEL":
        "start* end* deviceId* contextId* greenContextId streamId* correlationId globalPid demangledName* shortName* "
        "mangledName launchType cacheConfig registersPerThread* gridX* gridY* gridZ* blockX* blockY* blockZ* "
        "staticSharedMemory* dynamicSharedMemory* localMemoryPerThread* localMemoryTotal* gridId* sharedMemoryExecuted "
        "graphNodeId sharedMemoryLimitConfig",
    "CUPTI_ACTIVITY_KIND_MEMCPY":
        "start* end* deviceId* contextId* streamId* correlationId globalPid bytes* copyKind* deprecatedSrcId srcKind dstKind "
        "srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId virtualAddress",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start* end* deviceId* contextId* streamId* correlationId globalPid graphId* graphExecId*",
    "ANALYSIS_DETAILS": "globalVid* duration* startTime* stopTime*",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start* end* eventClass* globalTid correlationId nameId* returnValue* callchainId",
    "NVTX_EVENTS": "start* end eventType* rangeId category color text globalTid endGlobalTid textId domainId uint64Value "
                   "int64Value doubleValue uint32Value int32Value floatValue jsonTextId jsonText binaryData",
}
NEW = {"greenContextId", "binaryData"}
TEXTS = {"value", "name", "text", "busLocation", "uuid", "chipName", "jsonText", "binaryData"}

rows = {name: [] for name in TABLES}
strings = {}


def string(text):
    return strings.setdefault(text, len(strings))


def launch(function, table, at, start, duration, stream, thread, **more):
    number = len(rows["CUPTI_ACTIVITY_KIND_RUNTIME"])
    rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append(
        {"start": at, "end": at + 2000, "globalTid": PROCESS + thread, "correlationId": number, "nameId": string(function)})
    rows["CUPTI_ACTIVITY_KIND_" + table].append(
        {"start": start, "end": start + duration, "streamId": stream, "correlationId": number, "globalPid": PROCESS, **more})


def kernel(name, *when):
    launch("cudaLaunchKernel_v7000", "KERNEL", *when, shortName=string(name), demangledName=string(f"void {name}<float>()"))


def nvtx(text, start, end, thread=1, kind=PUSH_POP, by_number=False, **more):
    rows["NVTX_EVENTS"].append({"start": start, "end": end, "eventType": kind, "globalTid": PROCESS + thread, "domainId": 0,
                                **({"textId": string(text)} if by_number else {"text": text}), **more})


rows["TARGET_INFO_GPU"].append({"vmId": 0, "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalMemory": 85029158912, "smCount": 132})
for layer in range(2):
    at = 100_000 * layer
    # The first range has its text in the row, the second by its number.
    nvtx(f"layer {layer}", at, at + 50_000, by_number=layer == 1)
    nvtx(f"layer {layer} backward", 500_000 - at, 540_000 - at, thread=2, kind=START_END, rangeId=layer)
    kernel("gemm", at + 12_000, at + 20_000, 30_000 + 1000 * layer, 7, 1)
    kernel("gemm", 505_000 - at, 510_000 - at, 60_000 + 1000 * layer, 7, 2)
nvtx("iteration", 0, 900_000)
nvtx("open", 950_000, None)
nvtx("layer 7", 955_000, SESSION)
nvtx("layer 9", 960_000, 970_000, kind=START_END, endGlobalTid=PROCESS + 2)
nvtx("epoch 3", 0, None, kind=MARK)
nvtx("category 1", 0, None, kind=CATEGORY, category=1)
nvtx("NCCL", 0, None, kind=DOMAIN, domainId=1)
nvtx("ncclAllReduce", 900, 3_100, by_number=True, domainId=1)
kernel("loss", 900_000, 910_000, 5000, 7, 1)
kernel("ncclDevKernel_AllReduce", 1_000, 30_000, 40_000, 27, 1)
launch("cudaMemcpyAsync_v3020", "MEMCPY", 115_000, 160_000, 3_000, 7, 1, bytes=4096, copyKind=1)
if arguments.graph:
    launch("cudaGraphLaunch_v10000", "GRAPH_TRACE", 880_000, 920_000, 8_000, 7, 1, graphId=1, graphExecId=2)
rows["ANALYSIS_DETAILS"].append({"globalVid": 1 << 48, "duration": SESSION, "startTime": 300_000_000, "stopTime": 300_000_000 + SESSION})
rows["StringIds"] = [{"id": number, "value": text} for text, number in strings.items()]

database = sqlite3.connect(arguments.file)
for table, columns in TABLES.items():
    columns = [c for c in columns.split() if arguments.schema != "2022.4" or c.strip("*") not in NEW]
    if table == arguments.without or (table.endswith("GRAPH_TRACE") and not arguments.graph):
        continue
    if arguments.cpu and table.startswith(("CUPTI", "TARGET_INFO_GPU")):
        rows[table] = []
        if not arguments.all_tables:
            continue
    names = [c.strip("*") for c in columns]
    kinds = [("TEXT" if n in TEXTS else "REAL" if n in ("doubleValue", "floatValue") else "INTEGER") + " NOT NULL" * c.endswith("*")
             for n, c in zip(names, columns)]
    database.execute(f"CREATE TABLE {table} ({', '.join(map(' '.join, zip(names, kinds)))})")
    absent = [0 if c.endswith("*") else None for c in columns]
    database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})",
                         [[row.get(n, a) for n, a in zip(names, absent)] for row in rows[table]])
database.commit()
