#!/usr/bin/env python3
"""tools/gpu_check --dry-run from end to end: gpu_dry_run.py BUILD. Every row ends well, all of it says that it was emulated, and
what it writes has the form that the project's folders want.

Without STAGECRAFT_TRIALS=full these rows are omitted: the programs of kernels and runs, which are tests by themselves, and
what differs from other rows only in the number of parts."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from gpu_tools import UNLIMITED, load, root  # noqa: E402

full = os.environ.get("STAGECRAFT_TRIALS") == "full"
OMITTED = () if full else ("kernels", "runs", "profile, 8 parts", "1f1b, 8 parts", "gpipe, 4 parts", "2bw, 4 parts", "graph, 4 parts")


def bytes_of_tree():
    return {file: file.read_bytes() for folder in ("models/profiles", "scenarios/validated") for file in (root / folder).iterdir()}


def require(holds, what):
    if not holds:
        sys.exit(f"gpu_dry_run: {what}")


def look_at_several(build):
    """The first look where there are two GPUs, which gpu_check shows it only where a machine has them."""
    done = subprocess.run([str(build / "tests/gpu_first_run_emulated")], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "STAGECRAFT_EMULATED_GPUS": "2",
                               "STAGECRAFT_CUDA_LIBRARIES": str(build / "emulated_gpu")})
    require(done.returncode == 0, f"the first look at two GPUs: exit code {done.returncode}")
    seen = json.loads(done.stdout)["several_gpus"]
    right = {"gpus": 2, "peer_access": True, "captures_peer_copies": True, "sum_is_the_same_on_all": True,
             "sum_repeats_its_bits": True}
    require(seen == right, f"the first look at two GPUs: {seen}")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    look_at_several(build)
    with tempfile.TemporaryDirectory() as folder:
        bins, out = pathlib.Path(folder) / "bin", pathlib.Path(folder) / "out"
        bins.mkdir()
        gpu_check = load("gpu_check")
        rows = [row for row in gpu_check.PLAN if row not in OMITTED]
        for name, program in gpu_check.EMULATED.items():
            (bins / name).symlink_to(build / program)
        before = bytes_of_tree()
        done = subprocess.run([*UNLIMITED, "--dry-run", "--rows", "/".join(rows), "--bin", str(bins), "--out", str(out / "a.json")],
                              stdout=subprocess.PIPE, text=True,  # With one GPU per part, whole GPUs must not replace the parts.
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "STAGECRAFT_EMULATED_GPUS": "4"})
        print(done.stdout)
        file = json.loads((out / "a.json").read_text())
        for row in file["checks"]:
            require(row["result"] in ("ok", "not here"), f"{row['check']}: {row.get('why', '')}{row.get('output', '')}")
            require(row["emulated"], f"{row['check']} does not say that it was emulated")
        require(done.returncode == 0, f"exit code {done.returncode}")
        require(file["emulated"] and file["device"] == "Emulated GPU", "the file does not say that it was emulated")
        profiles, validated = (sorted((out / kind).iterdir()) for kind in ("profiles", "validated"))
        # Profiles of 2, 4 and (in full) 8 parts, and of 4 with NCCL.
        expected = (4, 10) if full else (3, 6)
        require((len(profiles), len(validated)) == expected, f"{len(profiles)} profiles and {len(validated)} validations")
        for profile in profiles:
            checked = subprocess.run([str(bins / "stagecraft"), "check", str(profile)], capture_output=True, text=True)
            require(checked.returncode == 0 and "ok, profile" in checked.stdout, checked.stdout + checked.stderr)
            require("Emulated GPU" in profile.read_text(), f"{profile.name} does not say that it was emulated")
        known = json.loads((root / "scenarios/validated/cpu-transformer.json").read_text())
        for one in map(lambda path: json.loads(path.read_text()), validated):
            require(set(known) <= set(one), f"a validation has no {set(known) - set(one)}")
            require(one["device"] == "Emulated GPU" and "EMULATED" in one["emulated"], "a validation does not say it was emulated")
        require(bytes_of_tree() == before, "profiles or validated runs of the project have changed")


if __name__ == "__main__":
    main()
