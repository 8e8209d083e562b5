#!/usr/bin/env python3
"""Both calls of tools/gpu_check --dry-run from end to end: gpu_dry_run.py BUILD. Every row ends well, all of it says that it was
emulated, what it writes has the form that the project's folders want, and the seconds that are expected on a GPU fit a call.

Without STAGECRAFT_TRIALS=full these rows are omitted: the programs of kernels and runs, which are tests by themselves, and
what differs from other rows only in the number of parts."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "gpu_tools"))
from stand_ins import load, root  # noqa: E402

full = os.environ.get("STAGECRAFT_TRIALS") == "full"
OMITTED = () if full else ("kernels", "runs", "gpipe, 4 parts", "1f1b, 4 parts, run 3", "mixed, one stream, run 3", "gpipe, 4 parts, big",
                           "2bw, 4 parts, big", "gpipe, 2 parts", "profile, 8 parts", "1f1b, 8 parts", "gpipe, 8 parts", "tf32, one stream",
                           "bf16, one stream", "2bw, 4 parts", "graph, 4 parts")
SECONDS = 330  # Of a call on a GPU.


def bytes_of_tree():
    return {file: file.read_bytes() for folder in ("models/profiles", "scenarios/validated") for file in (root / folder).iterdir()}


def require(holds, what):
    if not holds:
        sys.exit(f"gpu_dry_run: {what}")


def look_at_several(build):
    """The first look where there are two GPUs, which gpu_check shows it only where a machine has them."""
    done = subprocess.run([str(build / "tests/gpu_first_run_emulated")], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "STAGECRAFT_EMULATED_GPUS": "2", "STAGECRAFT_EMULATED_PRODUCTS": "2e-6 -1 1e-6",
                               "STAGECRAFT_CUDA_LIBRARIES": str(build / "emulated_gpu")})
    require(done.returncode == 0, f"the first look at two GPUs: exit code {done.returncode}")
    timed = {ceiling["algorithms"] for ceiling in json.loads(done.stdout)["ceilings"]}
    require(timed == {2}, f"of three algorithms that cuBLASLt names, one of them without support, {timed} were timed")
    seen = json.loads(done.stdout)["several_gpus"]
    right = {"gpus": 2, "peer_access": True, "captures_peer_copies": True, "sum_is_the_same_on_all": True,
             "sum_repeats_its_bits": True}
    require(seen == right, f"the first look at two GPUs: {seen}")


def dry_run(bins, out, call):
    """The table of a call."""
    script = (f"import sys; sys.argv[0] = 'gpu_check'; sys.path.insert(0, {str(root / 'tests/tools/gpu_tools')!r})\n"
              f"import stand_ins; g = stand_ins.load('gpu_check')\n"
              f"for name in {OMITTED}: del g.PLAN[name]\nsys.exit(g.main())")
    done = subprocess.run([sys.executable, "-B", "-c", script, call, "--dry-run", "--bin", str(bins), "--out", str(out / f"{call}.json")],
                          stdout=subprocess.PIPE, text=True,  # With one GPU per part, whole GPUs must not replace the parts.
                          env={**os.environ, "STAGECRAFT_EMULATED_GPUS": "4", "OUT": ""})
    print(done.stdout)
    table = json.loads((out / f"{call}.json").read_text())
    for row in table["checks"]:
        require(row["result"] in ("ok", "not here"), f"{row['check']}: {row.get('why', '')}{row.get('output', '')}")
        require(row["emulated"], f"{row['check']} does not say that it was emulated")
    require(done.returncode == 0, f"exit code {done.returncode}")
    require(table["emulated"] and table["device"] == "Emulated GPU", "the file does not say that it was emulated")
    gpu_check = load("gpu_check")
    rows = [name for name, row in gpu_check.PLAN.items() if row.call in gpu_check.CALLS[call] and name not in OMITTED]
    require([row["check"] for row in table["checks"]] == rows, f"the rows of {call} are not in the plan's order")
    lines = done.stdout.splitlines()
    require([line.split(" s  ")[1] for line in lines[:len(rows) + 1]] == [*rows, "expected for all"],
            "the expected seconds are not printed first")
    expected = sum(gpu_check.PLAN[name].seconds for name in rows)
    require(int(lines[len(rows)].split()[0]) == expected <= SECONDS, f"{expected} s are expected of {call}, and it has {SECONDS} s")
    return {row["check"]: row for row in table["checks"]}


def look_at_files(out, stagecraft):
    profiles, validated = (sorted((out / kind).iterdir()) for kind in ("profiles", "validated"))
    # Profiles of 4 parts, also with the big model and with NCCL, of 2 parts and (in full) of 8.
    expected = (5, 14) if full else (4, 5)
    require((len(profiles), len(validated)) == expected, f"{len(profiles)} profiles and {len(validated)} validations")
    for profile in profiles:
        checked = subprocess.run([str(stagecraft), "check", str(profile)], capture_output=True, text=True)
        require(checked.returncode == 0 and "ok, profile" in checked.stdout, checked.stdout + checked.stderr)
        require("Emulated GPU" in profile.read_text(), f"{profile.name} does not say that it was emulated")
    known = json.loads((root / "scenarios/validated/cpu-transformer.json").read_text())
    for one in map(lambda path: json.loads(path.read_text()), validated):
        require(set(known) <= set(one), f"a validation has no {set(known) - set(one)}")
        require(one["device"] == "Emulated GPU" and "EMULATED" in one["emulated"], "a validation does not say it was emulated")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    look_at_several(build)
    with tempfile.TemporaryDirectory() as folder:
        bins, out = pathlib.Path(folder) / "bin", pathlib.Path(folder) / "out"
        bins.mkdir()
        for name, program in load("gpu_check").EMULATED.items():
            (bins / name).symlink_to(build / program)
        before = bytes_of_tree()
        rows = {**dry_run(bins, out, "first"), **dry_run(bins, out, "second")}
        require(any("cuDNN" in choice for choice in rows["run, mixed"]["attention"]), "cuDNN computed no attention")
        look_at_files(out, bins / "stagecraft")
        require(bytes_of_tree() == before, "profiles or validated runs of the project have changed")


if __name__ == "__main__":
    main()
