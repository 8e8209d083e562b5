"""The rows of gpu_check: what each runs and makes of it, its seconds, and the call in which it runs, by value within each call."""
import json
import math
import os
import re
import shutil
import socket
import statistics
import subprocess
import typing

from gpu_reports import OF_DOUBLES, accesses, kernel_times
from gpu_rows import Check, WARNING, root, sets

SHAPES = {"large": ({"layers": 16, "hidden": 512, "heads": 8, "sequence": 256, "vocabulary": 8000}, 4, 16),  # 16 micro-batches of 4.
          "big": ({"layers": 4, "hidden": 2048, "heads": 16, "sequence": 1024, "vocabulary": 8000}, 4, 8)}
# 2BW on four parts needs 4 micro-batches, and attention by cuDNN heads 8 wide and more than two words.
SMALL = {"layers": 4, "hidden": 16, "heads": 2, "sequence": 4, "vocabulary": 16}, 1, 4
# Tests ask for more memory than there is, which the driver reports without a bug: so errors of calls are no errors here.
SANITIZERS = {"memcheck": (("--report-api-errors", "no"), "--test-case=in mixed precision all operations*"),
              "racecheck": ((), "--test-case=gradients are added*"), "initcheck": ((), "--test-case=gradients are added*")}
# Losses are doubles, and rotations take the sine and cosine of an angle in doubles.
LAUNCHES = 130  # At most as many are measured by ncu.
FP64_ON_PURPOSE = ("cross_entropy_kernel", "divided_gradient_kernel", "squares_kernel", "weighted_sum_kernel", "TurnRows")


class Row(typing.NamedTuple):
    call: str
    seconds: int  # Expected on one H200; estimated, not measured yet.
    run: typing.Callable  # Called with the Check, the name of the row, and the arguments.
    arguments: tuple = ()


def model(check, shape):
    sizes, samples, micro_batches = SMALL if check.emulated else SHAPES[shape]
    return [*(f"model.{key}={value}" for key, value in sizes.items()), f"plan.micro_batch_size={samples}",
            f"run.micro_batches={micro_batches}"]


def on_one_stream(check, shape, stages=1):
    return [*model(check, shape), "cluster.types.cpu-thread.memory=60 GiB", f"plan.stages={stages}", "run.schedule=1f1b"]


def on_parts(check, parts, shape):
    """Parts of the big shape run in tf32, or 21 iterations would take too long."""
    return [*model(check, shape), *check.multiprocessors, f"cluster.parts={parts}", f"plan.stages={parts}",
            *(["run.gpu.precision=tf32"] if shape == "big" else [])]


def flops(shape):
    """Operations of matrix products in an iteration; backward has twice as many as forward (Narayanan et al., SC 2021, appendix)."""
    sizes, samples, micro_batches = shape
    s, h = sizes["sequence"], sizes["hidden"]
    return 3 * samples * micro_batches * (sizes["layers"] * (24 * s * h * h + 4 * s * s * h) + 2 * s * h * sizes["vocabulary"])


def train(check, name, scenario, values, backend="cuda", read=None, environment=None):
    check.run(name, "stagecraft", "run", scenario, "--backend", backend, "--format", "json", *sets(values), read=read,
              environment=environment)


def one_gpu(check):
    """Where there are as many GPUs as parts a run takes whole ones."""
    if check.emulated:
        return {"STAGECRAFT_EMULATED_GPUS": "1"}
    return {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"}


def divided(machine):
    """The failure of a row that did not run on parts of a GPU."""
    return {} if " partitions of " in machine else {"result": "not on parts", "why": f"it ran on {machine or 'an unnamed machine'}"}


WHOLE_NUMBERS = ["training.task=integers", "training.optimizer=integer", "model.activation=relu", "model.loss=sum_square",
                 "model.widths=[4, 4, 4, 4, 2]", "plan.stages=4", "run.iterations=6"]


def losses(check, name, most, values):
    """Losses on the GPU are within `most` of the CPU's in the norm; with 0 weights are equal, too. The row on the CPU comes first, and
    without its losses the row on the GPU fails, because it shows nothing."""
    what, where = name.split(" on ")

    def read(text):
        learnt = json.loads(text)["learnt"]
        facts = {key: learnt[key] for key in ("losses", "weights_sha256")}
        theirs = check.row(f"{what} on cpu")
        if where == "cuda" and "losses" not in theirs:
            facts.update(result="not compared", why=f"{what} on cpu has no losses")
        elif where == "cuda":
            apart = math.hypot(*(a - b for a, b in zip(theirs["losses"], facts["losses"], strict=True)))
            facts["largest_difference"] = apart / (math.hypot(*theirs["losses"]) or 1)
            if not facts["largest_difference"] <= most:
                facts["result"] = "other losses"
            elif most == 0 and facts["weights_sha256"] != theirs["weights_sha256"]:
                facts["result"] = "other weights"
        return facts

    train(check, name, "examples/teacher", values, where, read)


def run_on_parts(check, name):
    def read(text):
        seen = json.loads(text)
        return {"period_ms": 1e3 * float(seen["period_s"]), **divided(seen["provenance"]["machine"])}

    train(check, name, "examples/carved-gpu", [*on_parts(check, 4, "large"), "run.iterations=2"], read=read, environment=one_gpu(check))


def run_in_mixed(check, name):
    """Without cuDNN it is no failure: then the kernels compute attention, and `attention` says why."""
    def read(text):
        seen = json.loads(text)
        attention = seen["enqueued"].get("attention", [])
        finite = all(map(math.isfinite, seen["learnt"]["losses"]))
        return {"attention": attention, "why": "; ".join(attention) or "no attention", **({} if finite else {"result": "not finite"})}

    train(check, name, "examples/cpu-transformer", [*on_one_stream(check, "large"), "run.iterations=2", "model.precision=mixed"], read=read)


def as_list(seen, *names):
    for name in names:
        seen = seen.get(name, {}) if isinstance(seen, dict) else {}
    return seen if isinstance(seen, list) else []


def products_on_parts(seen):
    """Speed of products on each multiprocessor of 8 parts over that of 4 parts. Where 8 parts are cut through clusters, kernels that
    need clusters cannot run, or are replaced by slower ones."""
    points = {p["partitions"]: p["all_busy_flops_per_s_each"] / p["multiprocessors"]
              for p in as_list(seen, "matrix_products", "points") if p["precision"] == "bf16" and p["target"] > 0}
    return {"products_on_8_parts_over_4": points[8] / points[4]} if {4, 8} <= set(points) else {}


def first_look(check, name):
    """Results are kept also where the last look did not end: only its last brace is missing then."""
    def read(text):
        try:
            seen = json.loads(text)
        except ValueError:
            seen = json.loads(text + "}")
        ceilings = {p["precision"]: float(p["best_flops_per_s"]) for p in as_list(seen, "ceilings")}
        check.facts.update(gemm_ceiling_flops_per_s=ceilings)
        if "bf16" in ceilings and "stored_bf16" in ceilings:  # Near 1 only if the mode computes in bf16; see the README of kernels.
            check.facts["bf16_over_stored_bf16"] = ceilings["bf16"] / ceilings["stored_bf16"]
        check.facts.update(products_on_parts(seen))
        gaps = seen.get("gaps", {}).get("one_stream", {})
        check.facts.update({f"launch_{how}": float(gaps[how])
                            for how in ("eager_us", "in_graph_us", "host_eager_us", "host_graph_us") if how in gaps})
        looks = [look for c in as_list(seen, "carving") for look in (c["launched"], c.get("captured")) if look]
        apart = all(look["disjoint"] and all(p["used"] == p["granted"] for p in look["partitions"]) for look in looks)
        in_order = all(value is True for value in seen.get("events", {}).values())
        several = seen.get("several_gpus", {})
        equal = all(several.get(what, True) is True for what in ("sum_is_the_same_on_all", "sum_repeats_its_bits"))
        wrong = [what for what, right in (("events do not hold", in_order), ("parts are not apart", apart), ("sums differ", equal))
                 if not right]
        return {"facts": seen, **({"result": wrong[0]} if wrong else {})}

    # Without the sweep of copies, which takes longest and which no other row needs; tools/gpu_first_run has it.
    check.run(name, "stagecraft_gpu_first_run", "copies", read=read, partly=True)


def loopback():
    """Whether this machine reaches itself. NCCL needs an interface, also for one process."""
    for again in (False, True):
        try:
            with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 5):
                return True
        except OSError:
            if not again:
                subprocess.run(["ip", "link", "set", "lo", "up"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return False


def prepare_nccl(check):
    """Messages of NCCL go to a file: a program's output is read as JSON."""
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    os.environ.setdefault("NCCL_DEBUG", "WARN")
    os.environ.setdefault("NCCL_DEBUG_FILE", str(check.file.parent / "nccl-%h-%p.log"))
    check.head["loopback"] = loopback()
    if not check.head["loopback"]:
        check.skip("lo is down, and NCCL needs it: ip link set lo up", "*, NCCL")


def summarize_runs(check, name, key):
    """The smallest, median and largest of rows that repeat each other, as one of the facts."""
    base = name.split(", run ")[0]
    values = [row[key] for row in check.rows if row["check"].split(", run ")[0] == base and row["result"] == "ok" and key in row]
    if len(values) > 1:
        check.facts[f"{base}, repeated"] = {"runs": len(values), "min_ms": min(values), "median_ms": statistics.median(values),
                                            "max_ms": max(values)}


def profile_of(check, parts, shape, messages):
    return check.place("profiles", f"{parts}-parts{', NCCL' if messages == 'nccl' else ''}{', big' if shape == 'big' else ''}.yaml")


def profile(check, name, parts, shape="large", messages="copy"):
    """Costs on parts of the GPU."""
    file = check.keep(profile_of(check, parts, shape, messages))

    def read(_):
        text = file.read_text()
        machine = re.search(r'^machine: "?(.*?)"?$', text, re.M)
        wrong = divided(machine[1] if machine else "")
        if wrong:
            file.unlink()
        return {"operation_us": float(re.search(r"^operation: ([\d.e+-]+) us$", text, re.M)[1]), **wrong}

    check.run(name, "stagecraft", "profile", "examples/carved-gpu", "--backend", "cuda", "--seconds",
              0.01 if check.emulated else 2, "--out", file, *sets([*on_parts(check, parts, shape), f"run.gpu.messages={messages}"]),
              read=read, environment=one_gpu(check))


def validated(check, name, parts, schedule, shape="large", messages="copy"):
    """Simulated and measured; the file for scenarios/validated with the date, which tells when it was true."""
    folder = check.file.parent / "runs" / name.replace(", ", "-").replace(" ", "-").lower()
    result, file, costs = folder / "validation.json", check.keep(check.place("validated", f"{name}.json")), profile_of(check, parts, shape, messages)
    result.unlink(missing_ok=True)

    def read(_):
        found = json.loads(result.read_text())
        dated = {"schema": found.pop("schema"), "title": found.pop("title"),
                 **{key: check.head[key] for key in ("device", "driver", "date", "commit")}, **found}
        if check.emulated:
            dated["emulated"] = WARNING
        wrong = divided(found["measured"]["machine"])
        if not wrong:
            file.write_text(json.dumps(dated, indent=2) + "\n")
        simulated, measured, error = (float(found["iteration_s"][key]) for key in ("simulated", "measured", "error"))
        return {"simulated_ms": 1e3 * simulated, "measured_ms": 1e3 * measured, "error": error, **wrong}

    values = [*on_parts(check, parts, shape), f"title={check.head['device']}, {name}", f"run.schedule={schedule}",
              f"run.gpu.messages={messages}", *([f"profile={costs}"] if costs.exists() else [])]
    check.run(name, "stagecraft", "validate", "examples/carved-gpu", "--backend", "cuda", "--simulator", "fluid", "--seconds", "1",
              "--iterations", "21", "--no-control", "--out", folder, *sets(values), read=read, environment=one_gpu(check))
    summarize_runs(check, name, "measured_ms")


def in_precision(precision):
    return ["model.precision=mixed"] if precision == "mixed" else [f"run.gpu.precision={precision}"]


def one_stream(check, name, precision):
    """The big model on the whole GPU, and the share of what matrix products reach alone."""
    def read(text):
        seen = json.loads(text)
        seconds = float(seen["period_s"])
        speed = flops(SMALL if check.emulated else SHAPES["big"]) / seconds
        facts = {"period_ms": 1e3 * seconds, "flops_per_s": speed, **{key: seen["enqueued"][key] for key in ("attention", "timed_products", "calls")
                                                                      if key in seen.get("enqueued", {})}}
        ceiling = check.facts.get("gemm_ceiling_flops_per_s", {}).get("stored_bf16" if precision == "mixed" else precision)
        if ceiling:
            facts["share_of_gemm"] = speed / ceiling
        return facts

    train(check, name, "examples/cpu-transformer", [*on_one_stream(check, "big"), "run.iterations=6", *in_precision(precision)], read=read)
    summarize_runs(check, name, "period_ms")


def mixed_on_8_parts(check, name):
    """Whether the products of 16-bit numbers that cuBLASLt chooses run where parts are cut through clusters of multiprocessors. Eight
    layers, so that each part has one."""
    def read(text):
        seen = json.loads(text)
        return {"period_ms": 1e3 * float(seen["period_s"]), "timed_products": seen["enqueued"].get("timed_products", []),
                **divided(seen["provenance"]["machine"])}

    values = [*model(check, "big"), "model.layers=8", *check.multiprocessors, "cluster.parts=8", "plan.stages=8", "run.iterations=2",
              "model.precision=mixed"]
    train(check, name, "examples/carved-gpu", values, read=read, environment=one_gpu(check))


def enqueued(check, name, options):
    """Time of an iteration on the host and the device without events: call by call, and as a graph."""
    def read(text):
        seen = json.loads(text)
        facts = {"period_ms": 1e3 * seen["period_s"], "enqueued": seen["enqueued"]}
        check.facts.setdefault("period_without_events_ms", {})[name] = facts["period_ms"]
        if "graph:" not in options:
            check.facts["enqueue_calls_ms"] = 1e3 * seen["enqueued"]["by_calls_s"]
        elif seen["enqueued"].get("graph_launches", 0) > 0:
            check.facts["enqueue_graph_ms"] = 1e3 * seen["enqueued"]["by_graph_s"]
        else:
            facts["result"] = "no graph"
        return facts

    train(check, name, "examples/cpu-transformer", [*on_one_stream(check, "large", 4), "run.iterations=6", f"run.gpu={{{options}}}"], read=read)


def pytorch(check, name, precision):
    """The big model there: our time over that of PyTorch, with weights of 32 bits and products of 16 in both."""
    if check.emulated:
        return check.add(name, "not here", why="PyTorch needs a GPU")
    (sizes, samples, micro_batches), ours = SHAPES["big"], "mixed" if precision == "bf16" else precision
    words = [word for key, value in sizes.items() for word in (f"--{key}", value)]

    def read(text):
        seen = {}
        for line in map(json.loads, text.splitlines()):
            seen["version"] = line["torch"]
            what, theirs = f"{line['precision']}, {line['how']}", float(line.pop("seconds", None) or 0)
            mine = check.facts.get(f"{ours}, one stream, repeated", {}).get("median_ms") or check.row(f"{ours}, one stream").get("period_ms")
            if theirs:
                line["period_ms"] = 1e3 * theirs
            if theirs and not mine:
                line["why"] = f"no ratio: {ours}, one stream was not measured in this call"
            elif theirs:
                line["ours_over_theirs"] = check.facts.setdefault("ours_over_pytorch", {})[what] = 1e-3 * mine / theirs
            check.add(f"PyTorch, {what}", "ok" if theirs else "not run", **line)
        return seen

    check.run(name, root / "tools/gpu_torch", *words, "--micro-batch", samples, "--micro-batches", micro_batches, "--precisions", precision,
              "--ways", "eager", "compiled", read=read, partly=True)


def tool(check, name, program):
    """Where a tool of the toolkit is; without it the row says so."""
    path = shutil.which(program) or os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", program)
    if not check.emulated and os.path.exists(path):
        return path
    check.add(name, "not here", why=f"an emulated GPU needs no {program}" if check.emulated else f"there is no {program}")
    return None


def kernels_of_mixed(check, name):
    """Times of the kernels of one micro-batch of the big model in mixed precision, at the clocks that the GPU has. They are found by the
    ranges of instructions: the first launches of a run are those that choose algorithms, and their number differs."""
    if not (ncu := tool(check, name, "ncu")):
        return
    file = check.keep(check.file.parent / "ncu.csv")

    def read(_):
        kernels = kernel_times(file.read_text())
        cut = {"why": f"cut at {LAUNCHES} launches"} if sum(kernel["launches"] for kernel in kernels) == LAUNCHES else {}
        return {"kernel_times": kernels, **cut} if kernels else {"result": "no kernels"}

    ranges = [word for op in "FB" for word in ("--nvtx-include", f"{op}3 of stage 0/")]
    check.run(name, ncu, "--clock-control", "none", "--section", "SpeedOfLight", "--csv", "--log-file", file, "--nvtx", *ranges,
              "--launch-count", LAUNCHES, check.bins / "stagecraft", "run", "examples/cpu-transformer", "--backend", "cuda",
              *sets([*on_one_stream(check, "big"), "run.iterations=2", *in_precision("mixed")]), read=read)
    row = check.row(name)
    if "ERR_NVGPUCTRPERM" in (file.read_text() if file.exists() else "") + row.get("output", ""):
        row.update(result="not here", why="this user may not read the counters of the GPU (ERR_NVGPUCTRPERM)")


def sass(check, name):
    """Widths of loads and stores of each kernel, and whether one for 16 or 32 bits computes with doubles."""
    if not (cuobjdump := tool(check, name, "cuobjdump")):
        return

    def read(text):
        kernels = accesses(text)
        if not kernels:
            return {"result": "no kernels"}
        wide = [kernel for kernel, seen in kernels.items() if 128 in seen["loads"] or 128 in seen["stores"]]
        wrong = [kernel for kernel, seen in kernels.items() if seen["fp64"] and not OF_DOUBLES.search(kernel)
                 and not any(purpose in kernel for purpose in FP64_ON_PURPOSE)]
        return {"kernels": kernels, "why": f"{len(wide)} of {len(kernels)} kernels access 128 bits at once",
                **({"result": "fp64", "why": f"doubles in {', '.join(wrong)}"} if wrong else {})}

    # All instructions would be a hundred times as long.
    lines = 'LDG|STG|LD[.]|ST[.]|F64|MUFU|D(ADD|MUL|FMA|SETP|MNMX|MMA)|code for|Function :'
    check.run(name, "/bin/sh", "-c", f'"$0" --dump-sass "$1" | grep -E "{lines}"', cuobjdump, check.bins / "stagecraft", read=read)


def sanitized(check, name):
    """Memory accesses of the kernels are checked in one case of their tests, because a kernel takes many times as long under it."""
    words, case = SANITIZERS[name]
    if path := tool(check, name, "compute-sanitizer"):
        check.run(name, path, "--tool", name, *words, "--error-exitcode", "9", check.bins / "backends_cuda_kernels_on_gpu", case)


def on_all(rows):
    """A row on the CPU before each on the GPU, which is compared with it."""
    return {f"{what} on {where}": row for what, row in rows.items() for where in ("cpu", "cuda")}


RUNS = "backends_cuda_run_on_gpu", "--source-file=*device_test.cpp"
# `smoke` is the beginning of `first`: if one of its rows fails nothing else runs.
PLAN = {
    **on_all({"losses, fp64": Row("smoke", 4, losses, (1e-9, ["run.iterations=20"]))}),
    "run, 4 parts": Row("smoke", 6, run_on_parts),
    "run, mixed": Row("smoke", 8, run_in_mixed),
    "first look": Row("first", 25, first_look),
    "kernels": Row("first", 20, Check.run, ("backends_cuda_kernels_on_gpu",)),
    "runs": Row("first", 40, Check.run, (*RUNS, "--test-case-exclude=*NCCL*")),
    **on_all({"losses, fp32": Row("first", 3, losses, (1e-3, ["run.iterations=20", "model.precision=fp32"])),
              "whole numbers": Row("first", 3, losses, (0, WHOLE_NUMBERS))}),
    "profile, 4 parts": Row("first", 8, profile, (4,)),
    "1f1b, 4 parts": Row("first", 8, validated, (4, "1f1b")),
    "gpipe, 4 parts": Row("first", 8, validated, (4, "gpipe")),
    "mixed, one stream": Row("first", 10, one_stream, ("mixed",)),
    "exact, one stream": Row("first", 14, one_stream, ("exact",)),
    "1f1b, 4 parts, run 2": Row("first", 8, validated, (4, "1f1b")),
    "mixed, one stream, run 2": Row("first", 10, one_stream, ("mixed",)),
    "1f1b, 4 parts, run 3": Row("first", 8, validated, (4, "1f1b")),
    "mixed, one stream, run 3": Row("first", 10, one_stream, ("mixed",)),
    **{f"{schedule}, 4 parts": Row("first", 8, validated, (4, schedule)) for schedule in ("2bw", "graph")},
    # The last one has the time that others left: the first compilation, without a cache, measures every kernel that it may take.
    "PyTorch": Row("first", 100, pytorch, ("bf16",)),
    "ncu": Row("second", 25, kernels_of_mixed),
    "sass": Row("second", 5, sass),
    "profile, 4 parts, big": Row("second", 20, profile, (4, "big")),
    **{f"{schedule}, 4 parts, big": Row("second", 20, validated, (4, schedule, "big")) for schedule in ("1f1b", "gpipe", "2bw")},
    "calls, no events": Row("second", 8, enqueued, ("timing: off",)),
    "graphs": Row("second", 8, enqueued, ("timing: off, graph: true",)),
    **{f"{what}, {parts} parts": Row("second", 8, *run) for parts in (2, 8) for what, run in
       (("profile", (profile, (parts,))), ("1f1b", (validated, (parts, "1f1b"))), ("gpipe", (validated, (parts, "gpipe"))))},
    "mixed, 8 parts": Row("second", 10, mixed_on_8_parts),
    "runs, NCCL": Row("second", 20, Check.run, (*RUNS, "--test-case=*NCCL*")),
    "profile, 4 parts, NCCL": Row("second", 8, profile, (4, "large", "nccl")),
    "1f1b, 4 parts, NCCL": Row("second", 8, validated, (4, "1f1b", "large", "nccl")),
    "memcheck": Row("second", 45, sanitized),
    "tf32, one stream": Row("second", 10, one_stream, ("tf32",)),
    "bf16, one stream": Row("second", 10, one_stream, ("bf16",)),
    "racecheck": Row("second", 10, sanitized),
    "initcheck": Row("second", 10, sanitized),
}
