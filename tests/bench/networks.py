#!/usr/bin/env python3
"""How far simulations are from runs over real networks, which `stagecraft validate --network namespaces` builds on this machine.

    networks.py STAGECRAFT [--repetitions 3] [--seconds 15] [--queue fair] [--networks star,far] [--schedules 1f1b,gpipe]
                [--set run.transfers=handshake] [--lv08] [--json FILE]

Each network of scenarios/boxes with each schedule. Printed: the median of the repetitions of the error of the iteration (the
simulated one over the measured one), the first iteration, the times of messages, and whether the check of the links was
passed; at the end the quantiles of all. With other work on the machine an error says less, so the load is printed too.
--lv08 adds the error of SimGrid's own model of TCP, LV08 with its default constants, on the same measurements."""
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


def row(asked, network, schedule):
    """The line that is printed, and the error of the iteration if the runs were made."""
    results = []
    for _ in range(asked.repetitions):
        result, why = once(asked, network, schedule)
        if result is None:
            return f"{network:<10} {schedule:<8} {why}", None
        results.append(result)
    error = statistics.median(r["iteration_s"]["error"] for r in results)
    first = statistics.median(r["network"]["each_iteration_s"][0]["error"] for r in results)
    messages = [statistics.median(r["network"]["messages_simulated_over_measured"][p] for r in results) for p in ("p10", "p50", "p90")]
    lv08 = f" {percent(statistics.median(r['lv08_error'] for r in results)):>8}" if asked.lv08 else ""
    return (f"{network:<10} {schedule:<8} {percent(error):>8}{lv08} {percent(first):>8}   {messages[0]:.2f} {messages[1]:.2f} {messages[2]:.2f}   "
            f"{sum(is_nominal(r) for r in results)} of {len(results)}   {os.getloadavg()[0]:.1f}"), error


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
    options.add_argument("--json", help="File for the errors")
    asked = options.parse_args()
    print(f"{'network':<10} {'schedule':<8} {'iteration':>8}{'     LV08' if asked.lv08 else ''} {'first':>8}   messages 10 50 90 %   nominal   load", flush=True)
    errors = {}
    for network in asked.networks.split(","):
        for schedule in asked.schedules.split(","):
            line, error = row(asked, network, schedule)
            print(line, flush=True)
            if error is not None:
                errors[f"{network} {schedule}"] = error
    if not errors:
        return 1
    sizes = sorted(abs(e) for e in errors.values())
    print(f"{len(sizes)} cases: error of the iteration {100 * statistics.median(sizes):.1f} % in the median, "
          f"{100 * sizes[int(0.9 * (len(sizes) - 1))]:.1f} % at 90 %, {100 * sizes[-1]:.1f} % at worst")
    if asked.json:
        pathlib.Path(asked.json).write_text(json.dumps(errors, indent=1) + "\n")
    return 0


sys.exit(main())
