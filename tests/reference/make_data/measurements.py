"""What other simulators predict, and measured products and collectives."""
import csv
import re

from texts import number, rows_of, table


def closed_forms(data):
    rows = [[x.strip("+%") for x in row] for row in csv.reader(open(data / "simulators/closed_form_vs_des.csv"))][1:]
    return table(["Errors of two closed forms of 1F1B against an event simulation, in percent, means of random pipelines on 4, 8 or 16 devices:",
                  "with messages as Sailor's runtime_simulator.py adds them, and (m + p - 1) times the longest stage."],
                 ["spread", "delay", "pipelines", "with_messages", "equal_stages"], [[r[0], r[1], r[2], r[3], r[5]] for r in rows])


def chakra(data):
    rows = []
    for rank in range(2):
        for line in (data / f"simulators/chakra_example_2rank/pp2.{rank}.txt").read_text().splitlines():
            if line.startswith("Node"):
                value = lambda pattern: (re.search(pattern, line) or ["", "0"])[1]
                rows.append([rank, value(r" id: (\d+)"), value(r'Node .*?name: "(\w+)"'), value(r"type: (\w+)_NODE"), value(r"duration_micros: (\d+)"),
                             " ".join(re.findall(r"(?:data|ctrl)_deps: (\d+)", line)),
                             *(value(rf'name: "{key}" uint\d+_val: (\d+)') for key in ["comm_src", "comm_dst", "comm_tag", "comm_size"])])
    return table(["1F1B of two stages and four micro-batches as nodes of a Chakra trace (schema 0.0.4), replayed by ASTRA-sim's analytical backend: it ends after",
                  "15076504 ns on rank 0 and 13076504 ns on rank 1 with 500 ns and 50 GB/s."],
                 ["rank", "id", "name", "type", "microseconds", "after", "comm_src", "comm_dst", "comm_tag", "comm_size"], rows)


def product_shares(data):
    rows = []
    for row in rows_of(data / "parallelism/kernel_efficiency_simumax.csv"):
        if row["op"] == "matmul":
            size = dict(re.findall(r"(\w+)=(\d+)", row["shape"]))
            rows.append([row["system"], *(size[key] for key in ["m", "n", "k", "b"]), f'{float(row["efficiency"]):.6g}'])
    return table(["Measured shares of the peak of matrix products by shape, MooreThreads/SimuMax, configs/system, to six digits."],
                 ["system", "m", "n", "k", "batch", "share"], rows)


def all_reduces(data):
    found = {}
    for row in rows_of(data / "parallelism/nccl_allreduce_a100_v100_vtrain.csv"):
        assert int(row["bytes"]) % 1048576 == 0
        found.setdefault((row["gpu"], row["gpus"]), []).append(f'{int(row["bytes"]) // 1048576}:{number(row["us"])}')
    return table(["Measured all-reduces of NCCL, the trace of VIA-Research/vTrain. times: MiB and microseconds."],
                 ["device", "ranks", "times"], [[*key, " ".join(times)] for key, times in found.items()])
