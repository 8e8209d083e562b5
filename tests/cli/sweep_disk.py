"""A sweep whose results have no room or may not be written, and goes on when they may: sweep_disk.py STAGECRAFT FOLDER."""
import pathlib
import resource
import subprocess
import sys

stagecraft, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
POINTS = 60
sweep, results = folder / "full.yaml", folder / "full.db"
sweep.write_text(f"""schema: sweep/1
base: examples/quickstart
backend: ideal
axes:
  run.micro_batches: {{from: 1, to: {POINTS}, by: 1}}
""")


def run(out, most=resource.RLIM_INFINITY):
    """With files that hold no more bytes than that, as a full disk would."""
    return subprocess.run([stagecraft, "sweep", str(sweep), "--out", str(out), "--format", "csv", "-j", "2"], text=True,
                          capture_output=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY)))


whole = run(folder / "room.db")
alone = whole.stdout
print(f"with room from the start: exit {whole.returncode}")
size = (folder / "room.db").stat().st_size
ended = run(results, size // 2)
said = ended.stderr.strip().split("\n")
print(f"no room: exit {ended.returncode}, {len(said)} line, results on stdout: {len(ended.stdout)}")
print("it says which file and that it goes on:", said[-1].startswith(f"failed: {results}: ") and "the same command goes on" in said[-1])
ended = run(results)
there = int(ended.stderr.split(" there before")[0].split()[-1])
print(f"with room: exit {ended.returncode}, some were there: {0 < there < POINTS}, the same table: {ended.stdout == alone}")
early = [run(folder / f"early{most}.db", most).returncode for most in (1000, 5000, 20000)]  # Before there are tables.
again = [run(folder / f"early{most}.db").stdout == alone for most in (1000, 5000, 20000)]
print(f"no room for a table: exits {early}, with room the same: {again}")
ended = run(folder / "nothing" / "a.db")
print(f"no folder: exit {ended.returncode}, {'there is no folder' in ended.stderr}")
with open("/dev/full", "w") as full:
    ended = subprocess.run([stagecraft, "sweep", str(sweep), "--out", str(results), "--format", "csv"], text=True, stdout=full,
                           stderr=subprocess.PIPE)
print(f"a full disk for the table: exit {ended.returncode}, {'cannot be written: No space left' in ended.stderr}")
