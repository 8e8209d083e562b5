"""Reads the output of nvidia-smi, ncu and cuobjdump as values: clocks and what limits them, times of kernels, widths of loads and stores."""
import csv
import re

MICROSECONDS = {"s": 1e6, "second": 1e6, "ms": 1e3, "msecond": 1e3, "us": 1.0, "usecond": 1.0, "ns": 1e-3, "nsecond": 1e-3}
# `Idle` is also a reason of the clock that a GPU has, but limits no work.
REASONS = ("Clocks Event Reasons", "Clocks Throttle Reasons")  # Of drivers since R535, and before.
ACCESS = re.compile(r"\b(?P<kind>LDG|LD|STG|ST)\b(?P<modifiers>(?:\.\w+)*)")
FP64 = re.compile(r"\b(?:D(?:ADD|MUL|FMA|SETP|MNMX|MMA)|MUFU\.\w*64H|[FI]2[FI]\.[\w.]*F64)")
BITS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128}  # A modifier of loads and stores; without one they take 32.
# Mangled names of kernels for doubles have the type as an argument of a template.
OF_DOUBLES = re.compile(r"I[a-z]?d[EILNPST]")


def entries(text):
    """(Titles around it, name, value) of each line `name : value`. Lines belong to the titles that are less indented."""
    titles = []
    for line in text.splitlines():
        name, colon, value = (word.strip() for word in line.partition(" : "))
        indent = len(line) - len(line.lstrip())
        if not name:
            continue
        titles = [title for title in titles if title[0] < indent]
        if colon:
            yield [title for _, title in titles], name, value
        titles.append((indent, name))


def clocks(text):
    """Clocks, power and limits of the first GPU of `nvidia-smi -q -d CLOCK,POWER,PERFORMANCE`, without values that it does not print."""
    seen, reasons, counters = {}, [], {}
    for titles, name, value in entries(text):
        for title in titles:
            seen.setdefault((title, name), value)
        if any(title in REASONS for title in titles) and value == "Active" and name != "Idle":
            reasons.append(name)
        if any(title.endswith(" Reasons Counters") for title in titles) and value.endswith(" us"):
            counters[name] = int(value.removesuffix(" us"))
    power = [(title, name) for name in ("Instantaneous Power Draw", "Power Draw", "Average Power Draw")
             for title in ("GPU Power Readings", "Power Readings")]
    limit = [(title, name) for name in ("Current Power Limit", "Power Limit") for title in ("GPU Power Readings", "Power Readings")]
    places = {"sm_mhz": [("Clocks", "SM")], "largest_sm_mhz": [("Max Clocks", "SM")], "power_w": power, "power_limit_w": limit}
    numbers = {key: re.match(r"[\d.]+", next((seen[place] for place in keys if place in seen), "")) for key, keys in places.items()}
    if not numbers["sm_mhz"]:
        raise ValueError("it has no SM clock")
    return {**{key: float(number[0]) for key, number in numbers.items() if number}, "limited_by": reasons,
            **({"limited_us": counters} if counters else {})}


def kernel_times(text):
    """For each kernel of `ncu --csv --section SpeedOfLight`, the longest first: launches, time, and what it reaches of the speed
    of light of memory and of computation, as a mean over its time. Other lines of ncu begin without quotes."""
    launches = {}
    for row in csv.DictReader(line for line in text.splitlines() if line.startswith('"')):
        of_launch = launches.setdefault((row["ID"], row["Kernel Name"]), {})
        name, unit = row["Metric Name"], row["Metric Unit"]
        if name == "Duration":
            of_launch["us"] = float(row["Metric Value"].replace(",", "")) * MICROSECONDS[unit]
        elif unit == "%" and name in ("Memory Throughput", "Compute (SM) Throughput"):
            of_launch[name.split()[0].lower() + "_percent"] = float(row["Metric Value"].replace(",", ""))
    table = {}
    for (_, name), seen in launches.items():
        kernel = table.setdefault(name, {"kernel": name, "launches": 0, "us": 0.0, "memory_percent": 0.0, "compute_percent": 0.0})
        kernel["launches"] += 1
        kernel["us"] += seen["us"]
        for key in ("memory_percent", "compute_percent"):
            kernel[key] += seen[key] * seen["us"]
    for kernel in table.values():
        for key in ("memory_percent", "compute_percent"):
            kernel[key] /= kernel["us"]
    return sorted(table.values(), key=lambda kernel: -kernel["us"])


def accesses(text):
    """For each kernel that `cuobjdump --dump-sass` prints for the newest GPU: how many loads and stores of global memory or of
    generic addresses it has of each width in bits, and how many instructions with doubles."""
    kernels, gpus = {}, {}
    for line in text.splitlines():
        if code := re.match(r"\s*code for sm_(\d+)", line):
            kernels = gpus.setdefault(int(code[1]), {})
        elif function := re.match(r"\s*Function : (\S+)", line):
            kernel = kernels.setdefault(function[1], {"loads": {}, "stores": {}, "fp64": 0})
        elif kernels:
            if access := ACCESS.search(line):
                bits = next((BITS[m] for m in access["modifiers"].split(".") if m in BITS), 32)
                kind = kernel["loads" if access["kind"].startswith("LD") else "stores"]
                kind[bits] = kind.get(bits, 0) + 1
            kernel["fp64"] += FP64.search(line) is not None
    return gpus[max(gpus)] if gpus else {}
