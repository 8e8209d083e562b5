#!/usr/bin/env python3
"""How far simulations are from runs over real networks, which `stagecraft validate --network namespaces` builds on this machine.

    networks.py STAGECRAFT [--repetitions 3] [--seconds 15] [--queue fair] [--networks star,far] [--schedules 1f1b,gpipe]
                [--set run.transfers=handshake] [--lv08] [--json FILE] [--picture FILE]

Each network of scenarios/boxes with each schedule. Printed: the median of the repetitions of the error of the iteration (the
simulated one over the measured one), the first iteration, the times of messages, and whether the check of the links was
passed; at the end the quantiles of all. With other work on the machine an error says less, so the load is printed too.
--json keeps the times of each case as soon as it has them, and goes on where a file has some; --picture draws the errors of
iterations, and of first ones, a line for each network.
--lv08 adds the error of SimGrid's own model of TCP, LV08 with its default constants, on the same measurements.
With --queue fifo, simulations have one queue in each port; the error of fair sharing on the same measurements is added."""
import argparse
import json
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
        for name, model in others(asked).items():
            period = simgrid_period(asked, network, settings, model, f"{folder}/{name}")
            result[name] = period / result["iteration_s"]["measured"] - 1
        return result, ""


def others(asked):
    """The errors of other models that are asked for, with what tells SimGrid to use each."""
    models = {"lv08_error": {"STAGECRAFT_SIMGRID_MODEL": "LV08"}} if asked.lv08 else {}
    return models | ({"fair_error": {}} if asked.queue == "fifo" else {})


def simgrid_period(asked, network, settings, model, folder):
    subprocess.run([asked.stagecraft, "run", f"scenarios/boxes/{network}.yaml", "-q", "--backend", "simgrid", *settings, "--out", folder],
                   cwd=ROOT, env={**os.environ, **model}, check=True, capture_output=True)
    return json.loads(pathlib.Path(folder, "results.json").read_text())["period_s"]


def is_nominal(result):
    return all(abs(r["measured_bytes_per_s"] / r["nominal_bytes_per_s"] - 1) <= 0.02 for r in result["network"]["rates"])


def percent(x):
    return f"{100 * x:+.1f} %"


def median_of(results, value):
    return statistics.median(value(r) for r in results)


def picture(cases):
    """An SVG: a line for each network, with a dot for the error of each schedule; the grey band is 5 % wide on either side."""
    networks = list(dict.fromkeys(name.split()[0] for name in cases))
    width, line, left, top = 460, 24, 90, 34
    height = line * len(networks)
    low = min(-0.06, min(min(case["error"], case["first_error"]) for case in cases.values()) - 0.01)
    high = max(0.06, max(max(case["error"], case["first_error"]) for case in cases.values()) + 0.01)

    def at(error):
        return left + (error - low) / (high - low) * width

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {top + height + 44}" font-family="sans-serif" '
             'font-size="12"><rect width="100%" height="100%" fill="#fff"/>',
             f'<rect x="{at(-0.05):.1f}" y="{top}" width="{at(0.05) - at(-0.05):.1f}" height="{height}" fill="#e4e7eb"/>',
             f'<path d="M{at(0):.1f} {top}v{height}" stroke="#8a94a0"/>',
             f'<text x="{left}" y="20">simulated over measured iterations; grey: 5 %; empty: the first one</text>']
    for percents in range(-100, 101, 5):
        if low <= percents / 100 <= high:
            parts.append(f'<text x="{at(percents / 100):.1f}" y="{top + height + 18}" text-anchor="middle">{percents and f"{percents:+d}"} %</text>')
    for row, network in enumerate(networks):
        y = top + line * (row + 0.5)
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{network}</text>')
        for kind, fill in (("first_error", "#fff"), ("error", "#3a78bd")):
            for name, case in cases.items():
                if name.split()[0] == network:
                    parts.append(f'<circle cx="{at(case[kind]):.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="#2a5a92"><title>{name}: '
                                 f'{percent(case[kind])}</title></circle>')
    parts.append("</svg>")
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
            "between_instructions_s": median_of(results, lambda r: r["network"]["between_instructions_s"]),
            "nominal": sum(is_nominal(r) for r in results), "repetitions": len(results), "load": round(os.getloadavg()[0], 1)}
    for name in others(asked):
        case[name] = median_of(results, lambda r, name=name: r[name])
    return case


def row(asked, network, schedule, case):
    if isinstance(case, str):
        return f"{network:<10} {schedule:<8} {case}"
    other = "".join(f" {percent(case[name]):>8}" for name in others(asked))
    return (f"{network:<10} {schedule:<8} {percent(case['error']):>8}{other} {percent(case['first_error']):>8}   "
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
    options.add_argument("--picture", help="SVG file that shows the errors")
    asked = options.parse_args()
    headings = "".join(f"{name.split('_')[0]:>9}" for name in others(asked))
    print(f"{'network':<10} {'schedule':<8} {'iteration':>8}{headings} {'first':>8}   messages 10 50 90 %   nominal   load", flush=True)
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
