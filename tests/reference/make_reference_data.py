#!/usr/bin/env python3
"""Makes the files of tests/reference/data from the folder of originals: what the reference systems printed, and their inputs.

make_reference_data.py [--check [PROGRAM]]

The environment variable STAGECRAFT_REFERENCE_DATA names the folder. With --check the script writes nothing, names each file that differs
and runs PROGRAM, which reads the originals with Stagecraft's readers; it exits with 77, "skipped", where the variable is not set.
"""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent / "data"
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "make_data"))
import measurements  # noqa: E402
import orders  # noqa: E402
import planners  # noqa: E402
import weights  # noqa: E402

FILES = {"schedules.json": orders.schedules,
         "dualpipe_batches.json": orders.batches,
         "deadlocks.csv": orders.deadlocks,
         "integer_program.csv": orders.integer_program,
         "graph_schedules.json": orders.graph_schedules,
         "layer_graphs.csv": orders.layer_graphs,
         "pipedream_orders.json": planners.pipedream_orders,
         "pipedream_profiles.json": planners.pipedream_profiles,
         "pipedream_optimizer.csv": planners.pipedream_optimizer,
         "piper_input.json": planners.piper,
         "piper_runs.csv": planners.piper_runs,
         "dnn_partitioning_input.json": planners.dnn_partitioning,
         "dnn_partitioning_runs.csv": planners.dnn_partitioning_runs,
         "two_bw_paper.csv": planners.two_bw,
         "edgepipe.json": planners.edgepipe,
         "edgepipe_random.json": planners.edgepipe_random,
         "edgepipe_odd.json": planners.edgepipe_odd,
         "weight_versions.csv": weights.weight_versions,
         "weight_predictions.csv": weights.weight_predictions,
         "stability_limits.csv": weights.stability_limits,
         "weight_distances.csv": weights.weight_distances,
         "weight_losses.csv": weights.weight_losses,
         "weight_curves.csv": weights.weight_curves,
         "closed_forms.csv": measurements.closed_forms,
         "product_shares.csv": measurements.product_shares,
         "all_reduces.csv": measurements.all_reduces,
         "chakra_example.csv": measurements.chakra}


def main():
    originals = os.environ.get("STAGECRAFT_REFERENCE_DATA", "")
    if not originals:
        print("SKIPPED: STAGECRAFT_REFERENCE_DATA is not set; tests compare with tests/reference/data alone")
        return 77
    made = {name: make(pathlib.Path(originals)) for name, make in FILES.items()}
    if "--check" not in sys.argv:
        for name, text in made.items():
            (HERE / name).write_text(text)
        return 0
    wrong = [name for name, text in made.items() if (HERE / name).read_text() != text]
    print(f"{len(made)} files, {len(wrong)} differ from what the originals give:", *wrong)
    return max([bool(wrong), *(subprocess.run([program], check=False).returncode for program in sys.argv[2:])])


if __name__ == "__main__":
    sys.exit(main())
