"""Folders, pipes, devices, empty and huge files where a file is read: refused at once, with what is wrong."""
import os
import threading

from tool import SLOWER, check, finish, folder, refused, root, run

QUICKLY = 2.0 * SLOWER  # Seconds.
READERS = [
    ["run"], ["check"], ["resolve"], ["show"], ["plan"], ["sweep"], ["report"], ["validate"], ["search"], ["profile"],
    ["convergence", "--methods", "sync"], ["compare", "--schedules", "gpipe"], ["schedule", "--file"], ["reproduce"],
    ["sweep-merge", "--out", "merged.db"], ["export", "chakra"], ["export", "simgrid-xml"], ["import", "pytorch-csv"],
    ["import", "onnx"], ["import", "pipedream-graph"], ["import", "piper"], ["import", "simgrid-xml"],
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


def feed(text):
    def write():
        with open(folder / "pipe", "w") as pipe:
            try:
                pipe.write(text)
            except BrokenPipeError:
                pass  # It has seen enough.
    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


SOME = ["huge.yaml", "folder.yaml", "/dev/null", "/dev/zero"]
ALL = [*SOME, "empty", "zeros.yaml", "nowhere.yaml", "round.yaml", "x" * 300, "x/" * 3000, os.fsdecode(b"caf\xe9.yaml")]
for words in READERS:
    for name in ALL if words in (["run"], ["check"], ["import", "onnx"], ["import", "simgrid-xml"]) else SOME:
        taken = refused(named(words, name), 2, "")
        check(taken < QUICKLY, f"{words} {name[:20]}: took {taken:.1f} s")

# A pipe is read once, and none is waited for twice.
for words in (["run", "pipe", "--backend", "ideal"], ["resolve", "pipe"], ["sweep", "pipe"], ["show", "pipe"]):
    writer = feed("schema: scenario/1\nmodel: [\n")
    refused(words, 2, "pipe:")
    writer.join(5)
refused(["check", "pipe"], 2, "read once")
scenario = (root / "scenarios/examples/quickstart.yaml").read_text()
writer = feed((root / "scenarios/sweeps/schedules.yaml").read_text().replace("../", f"{root}/scenarios/"))
code, out, errors, _ = run(["sweep", "pipe", "--only", "run.schedule=gpipe", "--out", "of_pipe.db"])
check(code == 0 and "4 points" in errors, f"a sweep from a pipe: {code} {errors}")
writer.join(5)
writer = feed(scenario)
code, out, errors, _ = run(["run", "pipe", "--backend", "ideal"])
check(code == 0 and "one iteration" in out, f"a scenario from a pipe: {code} {errors}")
writer.join(5)
finish()
