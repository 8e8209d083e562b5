"""Programs of several processes, and checks of them that are counted."""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile

from processes import HUNG, never_signaled

environment = {**os.environ, "LC_ALL": "C.UTF-8", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
checked = []  # Whether each held.


def check(holds, what, more=""):
    checked.append(bool(holds))
    if not holds:
        print(f"FAILED: {what}\n{more}")


def start(command, extra={}):
    # When two mpirun of Open MPI 4.1 begin at once in one folder for temporary files, one fails to make its own there.
    alone = tempfile.mkdtemp(dir=environment.get("TMPDIR"))
    atexit.register(shutil.rmtree, alone, ignore_errors=True)
    return subprocess.Popen(command, env={**environment, "TMPDIR": alone, **extra}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, preexec_fn=never_signaled)


def run(command, extra={}):
    program = start(command, extra)
    stdout, stderr = program.communicate(timeout=HUNG)
    return subprocess.CompletedProcess(command, program.returncode, stdout, stderr)


def finish():
    print(f"{len(checked)} checks, {checked.count(False)} failed")
    if not checked or not all(checked):
        sys.exit(1)
