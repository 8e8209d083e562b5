"""Disks that are full and files that may not grow: one line says so, and no half file has the name of a whole one."""
import pathlib
import resource

from tool import check, finish, folder, leftovers, refused, root, run

SMALL = [(resource.RLIMIT_FSIZE, 100)]  # No file of ours has as few bytes.
QUICK = ["examples/quickstart", "--backend", "ideal"]

# What writes files: the words in front of the name, the name, and the files that may not be there afterwards.
WRITERS = [
    (["run", *QUICK, "--out"], "kept", "kept/results.json"),
    (["run", *QUICK, "--html"], "run.html", "run.html"),
    (["report", *QUICK, "--out"], "report.html", "report.html"),
    (["compare", "--schedules", "gpipe,1f1b", "examples/quickstart", "--svg"], "orders.svg", "orders.svg"),
    (["export", "chakra", "examples/quickstart", "--out"], "traces", "traces/rank.0.et"),
    (["export", "simgrid-xml", "lab-4", "--out"], "platform.xml", "platform.xml"),
    (["export", "pytorch-csv", "examples/quickstart", "--out"], "order.csv", "order.csv"),
    (["import", "pytorch-csv", str(root / "scenarios/examples/csv-order.csv"), "--out"], "order.yaml", "order.yaml"),
    (["reproduce", "pippy", "--html"], "reproduced.html", "reproduced.html"),
    (["sweep", "schedules", "--only", "run.micro_batches=4", "--only", "run.schedule=gpipe", "--out"], "all.db", None),
    (["profile", "examples/teacher", "--backend", "cpu", "--out"], "profile.yaml", "profile.yaml"),
]
# What prints, a line or many.
PRINTERS = [
    ["--version"], ["--help"], ["run", "--help"], ["run", *QUICK], ["run", *QUICK, "--format", "json"], ["manual"],
    ["completion", "bash"], ["list", "schedules"], ["explain", "run"], ["schema", "scenario"], ["doctor"],
    ["schedule", "1f1b", "-p", "4", "-m", "8", "--format", "csv"], ["show", "examples/quickstart", "--what", "program"],
    ["resolve", "examples/quickstart"], ["check", "examples/quickstart"], ["plan", "examples/quickstart"],
    ["export", "pytorch-csv", "examples/quickstart"], ["compare", "--schedules", "gpipe,1f1b", "examples/quickstart"],
]

for words, name, whole in WRITERS:
    refused([*words, name], 4, "disk" if words[0] == "sweep" else "cannot be written: File too large", limits=SMALL)
    check(not whole or not (folder / whole).exists(), f"{words}: {whole} is there, and cannot be whole")
check(not leftovers(folder), f"half files are left: {leftovers(folder)}")
for words in PRINTERS:
    with open("/dev/full", "w") as full:
        refused(words, 4, "No space left on device", out=full)

# A sweep whose disk becomes full in the middle says so, and goes on with what it has when there is room again.
sweep = ["sweep", "schedules", "--only", "run.schedule=gpipe", "-j", "1", "--out", "later.db"]
refused(sweep, 4, "disk", limits=[(resource.RLIMIT_FSIZE, 60_000)])
code, out, errors, _ = run(sweep)
check(code == 0 and "4 points" in out + errors, f"a sweep does not go on behind a full disk: {code} {errors[:300]}")

# Devices stay what they are when they are named as files.
for words, name, _ in WRITERS[1:3]:
    refused([*words, "/dev/full"], 2, "is a device or a pipe, not a file")
check(pathlib.Path("/dev/full").is_char_device(), "/dev/full is no device any more")
finish()
