"""Programs of several processes, and checks of them that are counted."""
import os
import subprocess
import sys
import tempfile

from processes import HUNG

environment = {**os.environ, "LC_ALL": "C.UTF-8", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
checked = []  # Whether each held.


def check(holds, what, more=""):
    checked.append(bool(holds))
    if not holds:
        print(f"FAILED: {what}\n{more}")


def run(command, extra={}):
    # When two mpirun of Open MPI 4.1 begin at once in one folder for temporary files, one fails to make its own there.
    with tempfile.TemporaryDirectory(dir=environment.get("TMPDIR")) as alone:
        return subprocess.run(command, env={**environment, "TMPDIR": alone, **extra}, capture_output=True, text=True, timeout=HUNG)


def finish():
    print(f"{len(checked)} checks, {checked.count(False)} failed")
    if not checked or not all(checked):
        sys.exit(1)
