"""A run of each backend and a sweep under valgrind's memcheck, children included: valgrind.py STAGECRAFT [EMULATED_GPU].

EMULATED_GPU is the tool with a GPU that is emulated. The kernels have to be built without STAGECRAFT_NATIVE, since valgrind does
not know all that a processor can."""
import pathlib
import shutil
import subprocess
import sys

from tool import binary, check, finish, folder

if not shutil.which("valgrind"):
    print("SKIPPED: there is no valgrind")
    sys.exit(77)
PATIENCE = 900  # Seconds; some twenty to fifty times what the tool takes alone.
DEFINITE = "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"


def clean(name, words, program=binary):
    """It ends with 0, and valgrind has nothing to say of it or of any child."""
    logs = folder / f"memcheck-{name}"
    logs.mkdir()
    done = subprocess.run(["valgrind", "-q", *DEFINITE, "--trace-children=yes", f"--log-file={logs}/%p", program, *words],
                          cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    said = "".join(log.read_text() for log in sorted(logs.iterdir()))
    check(done.returncode == 0 and not said, f"{name}: ended with {done.returncode}\n{said[:4000]}{done.stderr[:1000]}")


for backend in ("ideal", "simgrid", "fluid"):
    clean(backend, ["run", "examples/quickstart", "--backend", backend, "--out", str(folder / backend)])
clean("cpu", ["run", "examples/teacher", "--backend", "cpu", "--set", "plan.stages=2"])
clean("sweep", ["sweep", "schedules", "--only", "run.schedule=gpipe", "-j", "2", "--out", str(folder / "sweep.db")])
if len(sys.argv) > 2:
    clean("cuda", ["run", "examples/teacher", "--backend", "cuda", "--set", "plan.stages=2"], pathlib.Path(sys.argv[2]).resolve())
finish()
