"""Folders, pipes, devices, empty and huge files where a file is read: refused at once, with what is wrong."""
import os

from tool import SLOWER, check, finish, folder, refused, root, run

QUICKLY = 2.0 * SLOWER  # Seconds of computing.
READERS = [
    ["run"], ["check"], ["resolve"], ["show"], ["plan"], ["sweep"], ["report"], ["validate"], ["search"], ["profile"],
    ["convergence", "--methods", "sync"], ["compare", "--schedules", "gpipe"], ["schedule", "--file"], ["reproduce"],
    ["sweep-merge", "--out", "merged.db"], ["export", "chakra"], ["export", "simgrid-xml"], ["import", "pytorch-csv"],
    ["import", "onnx"], ["import", "pipedream-graph"], ["import", "piper"], ["import", "dnn-partitioning"], ["import", "simgrid-xml"],
    ["run", "examples/csv-order", "--set"],
]
(folder / "empty").touch()
(folder / "empty.yaml").touch()
(folder / "zeros.yaml").write_bytes(bytes(4096))
with open(folder / "huge.yaml", "w") as file:
    file.truncate(1 << 30)  # Sparse.
(folder / "folder.yaml").mkdir()
(folder / "nowhere.yaml").symlink_to("none")
(folder / "round.yaml").symlink_to("round.yaml")
os.mkfifo(folder / "pipe")


def named(words, name):
    return [*words, f"run.schedule={{csv: {name}}}"] if words[-1] == "--set" else [*words, name]


SOME = ["huge.yaml", "folder.yaml", "/dev/null", "/dev/zero"]
ALL = [*SOME, "empty", "zeros.yaml", "nowhere.yaml", "round.yaml", "x" * 300, "x/" * 3000, os.fsdecode(b"caf\xe9.yaml")]
for words in READERS:
    for name in ALL if words in (["run"], ["check"], ["import", "onnx"], ["import", "simgrid-xml"]) else SOME:
        taken = refused(named(words, name), 2, "")
        check(taken < QUICKLY, f"{words} {name[:20]}: computed for {taken:.1f} s")

# A named pipe is refused at once, because it may never have a writer. What the shell opened is read, and read once.
for words in READERS:
    taken = refused(named(words, "pipe"), 2, "")
    check(taken < QUICKLY, f"{words} of a pipe: computed for {taken:.1f} s")


def fed(words, text):
    """Gives a text to the standard input of the tool, through a pipe."""
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    with os.fdopen(reader) as stdin:
        return run(words, stdin=stdin)


for words in (["run", "/dev/stdin", "--backend", "ideal"], ["resolve", "/dev/stdin"], ["sweep", "/dev/stdin"], ["show", "/dev/stdin"]):
    code, _, errors, _ = fed(words, "schema: scenario/2\nmodel: [\n")
    check(code == 2 and "/dev/stdin:" in errors, f"{words}: {code} {errors}")
code, _, errors, _ = fed(["check", "/dev/stdin"], "schema: scenario/2\n")
check(code == 2 and "read once" in errors, f"check of a pipe: {code} {errors}")
code, out, errors, _ = fed(["sweep", "/dev/stdin", "--only", "run.schedule=gpipe", "--out", "of_pipe.db"],
                           (root / "scenarios/sweeps/schedules.yaml").read_text().replace("../", f"{root}/scenarios/"))
check(code == 0 and "4 points" in errors, f"a sweep from a pipe: {code} {errors}")
code, out, errors, _ = fed(["run", "/dev/stdin", "--backend", "ideal"], (root / "scenarios/examples/quickstart.yaml").read_text())
check(code == 0 and "iteration time" in out, f"a scenario from a pipe: {code} {errors}")
finish()
