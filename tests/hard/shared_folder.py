"""Outputs that meet: several commands write to one folder at once, the disk is full, nothing may be written there.

Whatever they do, the folder has what one of them wrote, each says what is true, and the next run needs no --force. A
command that fails changes nothing that is there, and leaves no folder that it made."""
import json
import os
import pathlib
import resource
import subprocess
import sys

from tool import binary, check, finish, folder, leftovers, refused, root, run

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from processes import HUNG  # noqa: E402

ROUNDS = 40 if os.environ.get("STAGECRAFT_TRIALS") == "full" else 3
QUICK = str(root / "scenarios/examples/quickstart.yaml")
RUN = ["run", QUICK, "-b", "ideal", "--out", "at-once"]


def at_once(commands):
    programs = [subprocess.Popen([binary, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for words in commands]
    return [(program.communicate(timeout=HUNG)[1].decode(errors="replace"), program.returncode) for program in programs]


def contents(place):
    return {str(f.relative_to(place)): f.read_bytes() for f in place.rglob("*") if f.is_file()}


# Different runs, of which some write files that others do not, into one folder.
for number in range(ROUNDS):
    sizes = [4 + 3 * number + k for k in range(4)]
    ended = at_once([[*RUN, "--set", f"run.micro_batches={size}", "--set", f"report.trace={'true' if size % 2 else 'false'}"] for size in sizes])
    codes = [code for _, code in ended]
    fine = all(code == 0 or (code == 2 and "another process" in errors) for errors, code in ended)
    check(fine and 0 in codes, f"round {number}: {codes}: {[errors for errors, code in ended if code]}")
    results = json.loads((folder / "at-once/results.json").read_text())
    size = results["setup"]["micro_batches"]
    check(f"micro_batches: {size}" in (folder / "at-once/scenario.yaml").read_text(), f"round {number}: the folder has files of two runs")
    check((folder / "at-once/trace.json").exists() == bool(size % 2), f"round {number}: a file of another run is there")
    code, _, errors, _ = run([*RUN, "--set", "run.micro_batches=5"])
    check(code == 0, f"round {number}: the next run is refused: {errors[:300]}")
check(not leftovers(folder), f"half files are left: {leftovers(folder)}")

# Commands that list their files in one manifest, and one sweep.
convergence = ["convergence", "examples/teacher", "--methods", "sync", "--updates", "20", "--seeds", "1", "--no-measure", "--out", "mixed"]
for number in range(ROUNDS):
    ended = at_once([convergence, ["run", QUICK, "-b", "ideal", "--out", "mixed"], ["export", "chakra", QUICK, "--out", "mixed"], convergence])
    check(all(code == 0 for _, code in ended), f"mixed, round {number}: {ended}")
    for words in (convergence, ["run", QUICK, "-b", "ideal", "--out", "mixed"], ["export", "chakra", QUICK, "--out", "mixed"]):
        code, _, errors, _ = run(words)
        check(code == 0, f"mixed, round {number}: {words[0]} is refused afterwards: {errors[:300]}")
ended = at_once([["sweep", "schedules", "--only", "run.schedule=gpipe", "--out", "one.db"]] * 3)
check(0 in [code for _, code in ended] and all(code == 0 or (code == 2 and "another process" in errors) for errors, code in ended), f"sweeps: {ended}")

# A disk that is full in the middle: what was there stays, and no folder is left where there was none.
WRITERS = [["run", QUICK, "-b", "ideal", "--out"], convergence[:-1], ["export", "chakra", QUICK, "--out"], ["validate", "examples/teacher", "--seconds", "0.01", "--no-control", "--out"],
           ["import", "pipeedge", "models.yml", "types.yml", "devices.yml", "--model", "toy", "--out"]]
(folder / "models.yml").write_text("toy:\n  layers: 2\n  parameters_in: 1000\n  parameters_out: [10, 5]\n  mem_MB: [10, 10.5]\n")
(folder / "types.yml").write_text("fast:\n  bw_Mbps: 1\n  mem_MB: 64\n  model_profiles:\n    toy:\n    - {batch_size: 8, dtype: torch.float32, time_s: [2, 1]}\n")
(folder / "devices.yml").write_text("fast: [a, b]\n")
for words in WRITERS:
    before = folder / f"before-{words[0]}-{words[1]}"
    check(run([*words, str(before)])[0] == 0, f"{words}: does not run")
    kept = contents(before)
    largest = max(len(data) for data in kept.values())
    for size in (100, largest // 2):
        limits = [(resource.RLIMIT_FSIZE, size)]
        refused([*words, str(before)], 4, "File too large", limits=limits)
        check(contents(before) == kept, f"{words}: a file limit of {size} changes what was there: {sorted(contents(before))}")
        refused([*words, str(folder / "new/deep")], 4, "File too large", limits=limits)
        check(not (folder / "new").exists(), f"{words}: a file limit of {size} leaves {list((folder / 'new').rglob('*'))}")
    check(run([*words, str(before)])[0] == 0, f"{words}: is refused after a full disk")
code = run(["run", QUICK, "--set", "model=gpt-175b", "-b", "ideal", "--out", str(folder / "new/deep")])[0]
check(code == 3 and not (folder / "new").exists(), "a run that cannot be done leaves its folder")

# A place where nothing may be written is an error of its name, whatever the option.
OPTIONS = [["run", QUICK, "-b", "ideal", "--out", "PLACE/kept"], ["run", QUICK, "-b", "ideal", "--html", "PLACE/x.html"], ["run", QUICK, "-b", "ideal", "--trace", "PLACE/x.json"],
           ["report", QUICK, "-b", "ideal", "--out", "PLACE/x.html"], ["sweep", "schedules", "--only", "run.schedule=gpipe", "--out", "PLACE/x.db"],
           ["search", QUICK, "--most", "2", "--out", "PLACE/x.yaml"], ["search", QUICK, "--most", "2", "--html", "PLACE/x.html"], ["search", QUICK, "--most", "2", "--resume", "PLACE/x"],
           ["compare", "--schedules", "gpipe,1f1b", QUICK, "--svg", "PLACE/x.svg"], ["compare", "--schedules", "gpipe,1f1b", QUICK, "--pdf", "PLACE/x.pdf"],
           ["export", "chakra", QUICK, "--out", "PLACE/traces"], ["export", "simgrid-xml", "lab-4", "--out", "PLACE/p.xml"], ["export", "pytorch-csv", QUICK, "--out", "PLACE/o.csv"],
           ["import", "pytorch-csv", str(root / "scenarios/examples/csv-order.csv"), "--out", "PLACE/o.csv"], ["reproduce", "pippy", "--html", "PLACE/r.html"],
           ["profile", "examples/teacher", "--seconds", "0.01", "--out", "PLACE/p.yaml"], [*convergence[:-1], "PLACE/c"], ["validate", "examples/teacher", "--out", "PLACE/v"]]
(folder / "closed").mkdir()
(folder / "closed").chmod(0o555)
user = {}
if os.geteuid() == 0:  # The administrator may write everywhere but in /proc.
    if all(path.stat().st_mode & 0o001 for path in [*pathlib.Path(binary).parents, *pathlib.Path(QUICK).parents]):
        folder.chmod(0o755)
        user = {"user": 65534, "extra_groups": []}
for place in ["/proc", *([str(folder / "closed")] if user or os.geteuid() else [])]:
    for words in OPTIONS:
        words = [word.replace("PLACE", place) for word in words]
        refused(words, 2, "", **(user if place != "/proc" else {}))
finish()
