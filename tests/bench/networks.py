#!/usr/bin/env python3
"""How far simulations are from runs over real networks, which `stagecraft validate --network namespaces` builds on this machine.

    networks.py STAGECRAFT [--repetitions 3] [--seconds 15] [--queue fair] [--networks star,far] [--schedules 1f1b,gpipe]
                [--set run.transfers=handshake] [--lv08] [--json FILE] [--picture FILE]

Each network of scenarios/boxes with each schedule. Printed: the median of the repetitions of the error of the iteration (the
simulated one over the measured one), the first iteration, the times of messages, and whether the check of the links was
passed; at the end the quantiles of all. With other work on the machine an error says less, so the load is printed too.
--json keeps the times of each case as soon as it has them, and goes on where a file has some; --picture draws them: each
iteration, and each first one, simulated over measured.
--lv08 adds the error of SimGrid's own model of TCP, LV08 with its default constants, on the same measurements."""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCHEDULES = ["1f1b", "gpipe", "zb-h1", "2bw"]
SCALES = {"nodes": "2000"}  # Of networks that are faster than this machine.


def once(asked, network, schedule):
    """The validation, or the sentence that refuses it."""
    settings = [word for setting in [f"run.schedule={schedule}", *asked.set] for word in ("--set", setting)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [asked.stagecraft, "validate", f"scenarios/boxes/{network}.yaml", "--network", "namespaces", "-q", "--seconds", asked.seconds,
             "--queue", asked.queue, "--scale", SCALES.get(network, "1"), *settings, "--out", f"{folder}/out"],
            cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            return None, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        result = json.loads(pathlib.Path(folder, "out/validation.json").read_text())
        if asked.lv08:
            result["lv08_error"] = lv08_period(asked, network, settings, f"{folder}/lv08") / result["iteration_s"]["measured"] - 1
        return result, ""


def lv08_period(asked, network, settings, folder):
    subprocess.run([asked.stagecraft, "run", f"scenarios/boxes/{network}.yaml", "-q", "--backend", "simgrid", *settings, "--out", folder],
                   cwd=ROOT, env={**os.environ, "STAGECRAFT_SIMGRID_MODEL": "LV08"}, check=True, capture_output=True)
    return json.loads(pathlib.Path(folder, "results.json").read_text())["period_s"]


def is_nominal(result):
    return all(abs(r["measured_bytes_per_s"] / r["nominal_bytes_per_s"] - 1) <= 0.02 for r in result["network"]["rates"])


def percent(x):
    return f"{100 * x:+.1f} %"


def median_of(results, value):
    return statistics.median(value(r) for r in results)


def picture(cases):
    """An SVG: simulated time over measured time of each case, on logarithmic axes; the grey band is 5 % wide on either side."""
    times = [t for case in cases.values() for kind in ("iteration_s", "first_s") for t in case[kind]]
    low, high = math.log10(min(times)) - 0.1, math.log10(max(times)) + 0.1
    size, margin = 360, 50

    def at(seconds):
        return (math.log10(seconds) - low) / (high - low) * size

    def point(x, y):
        return f"{margin + x:.1f},{margin + size - y:.1f}"

    band = math.log10(1.05) / (high - low) * size
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size + 2 * margin} {size + 2 * margin}" font-family="sans-serif" '
             'font-size="12"><rect width="100%" height="100%" fill="#fff"/>',
             f'<polygon fill="#e4e7eb" points="{point(0, -band)} {point(size, size - band)} {point(size, size + band)} {point(0, band)}"/>',
             f'<path d="M{point(0, 0)} L{point(size, size)}" stroke="#8a94a0"/>',
             f'<rect x="{margin}" y="{margin}" width="{size}" height="{size}" fill="none" stroke="#3b4552"/>']
    for power in range(-6, 6):
        for digit in (1, 2, 5):
            seconds = digit * 10.0**power
            if low < math.log10(seconds) < high:
                x, label = at(seconds), f"{seconds:g} s"
                parts.append(f'<text x="{margin + x:.1f}" y="{margin + size + 16}" text-anchor="middle">{label}</text>'
                             f'<text x="{margin - 6}" y="{margin + size - x + 4:.1f}" text-anchor="end">{label}</text>')
    for kind, fill in (("first_s", "#fff"), ("iteration_s", "#3a78bd")):
        for name, case in cases.items():
            simulated, measured = case[kind]
            x, y = point(at(measured), at(simulated)).split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{fill}" stroke="#3a78bd"><title>{name}: simulated {simulated:.4g} s, '
                         f'measured {measured:.4g} s</title></circle>')
    parts.append(f'<text x="{margin + size / 2}" y="{margin + size + 38}" text-anchor="middle">measured; empty: the first iteration</text>'
                 f'<text transform="translate(12 {margin + size / 2}) rotate(-90)" text-anchor="middle">simulated</text>'
                 f'<text x="{margin}" y="{margin - 14}">{len(cases)} runs over networks of namespaces; grey: 5 %</text></svg>')
    return "\n".join(parts) + "\n"


def measured(asked, network, schedule):
    """The times of the case, medians, or the sentence that refuses it."""
    results = []
    for _ in range(asked.repetitions):
        result, why = once(asked, network, schedule)
        if result is None:
            return why
        results.append(result)
    case = {"iteration_s": [median_of(results, lambda r: r["iteration_s"][side]) for side in ("simulated", "measured")],
            "first_s": [median_of(results, lambda r: r["network"]["each_iteration_s"][0][side]) for side in ("simulated", "measured")],
            "error": median_of(results, lambda r: r["iteration_s"]["error"]),
            "first_error": median_of(results, lambda r: r["network"]["each_iteration_s"][0]["error"]),
            "messages": [median_of(results, lambda r: r["network"]["messages_simulated_over_measured"][p]) for p in ("p10", "p50", "p90")],
            "nominal": sum(is_nominal(r) for r in results), "repetitions": len(results), "load": round(os.getloadavg()[0], 1)}
    if asked.lv08:
        case["lv08_error"] = median_of(results, lambda r: r["lv08_error"])
    return case


def row(asked, network, schedule, case):
    if isinstance(case, str):
        return f"{network:<10} {schedule:<8} {case}"
    lv08 = f" {percent(case['lv08_error']):>8}" if asked.lv08 else ""
    return (f"{network:<10} {schedule:<8} {percent(case['error']):>8}{lv08} {percent(case['first_error']):>8}   "
            f"{' '.join(f'{x:.2f}' for x in case['messages'])}   {case['nominal']} of {case['repetitions']}   {case['load']:.1f}")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("stagecraft")
    options.add_argument("--repetitions", type=int, default=3)
    options.add_argument("--seconds", default="15")
    options.add_argument("--queue", default="fair")
    options.add_argument("--networks", default=",".join(sorted(p.stem for p in (ROOT / "scenarios/boxes").glob("*.yaml"))))
    options.add_argument("--schedules", default=",".join(SCHEDULES))
    options.add_argument("--set", action="append", default=[], help="KEY=VALUE of the scenario; may be given several times")
    options.add_argument("--lv08", action="store_true", help="Also the error of SimGrid's model of TCP")
    options.add_argument("--json", help="File for the times of each case")
    options.add_argument("--picture", help="SVG file that shows them")
    asked = options.parse_args()
    print(f"{'network':<10} {'schedule':<8} {'iteration':>8}{'     LV08' if asked.lv08 else ''} {'first':>8}   messages 10 50 90 %   nominal   load", flush=True)
    kept = pathlib.Path(asked.json) if asked.json else None
    cases = json.loads(kept.read_text()) if kept and kept.exists() else {}
    for network in asked.networks.split(","):
        for schedule in asked.schedules.split(","):
            name = f"{network} {schedule}"
            case = cases[name] if name in cases else measured(asked, network, schedule)
            print(row(asked, network, schedule, case), flush=True)
            if isinstance(case, str):
                continue
            cases[name] = case
            if kept:
                kept.write_text(json.dumps(cases, indent=1) + "\n")
    if not cases:
        return 1
    sizes = sorted(abs(case["error"]) for case in cases.values())
    print(f"{len(sizes)} cases: error of the iteration {100 * statistics.median(sizes):.1f} % in the median, "
          f"{100 * sizes[int(0.9 * (len(sizes) - 1))]:.1f} % at 90 %, {100 * sizes[-1]:.1f} % at worst")
    if asked.picture:
        pathlib.Path(asked.picture).write_text(picture(cases))
    return 0


sys.exit(main())
