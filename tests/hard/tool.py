"""Starts the tool under faults and checks its end, for the tests of this folder: NAME.py STAGECRAFT."""
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile

os.environ["STAGECRAFT_QUIET"] = "1"  # Notices of slow commands depend on the load of the machine.

root = pathlib.Path(__file__).parents[2]
binary = str(pathlib.Path(sys.argv[1]).resolve())
folder = pathlib.Path(tempfile.mkdtemp(prefix="stagecraft-hard-"))
SLOWER = int(os.environ.get("STAGECRAFT_TEST_PATIENCE", "1"))  # How much longer than usual all may take, under a checker.
PATIENCE = 1200 * SLOWER  # Seconds until something counts as hung.
failures = checks = 0


def check(good, what):
    global failures, checks
    checks += 1
    if not good:
        failures += 1
        print(f"FAILED: {what}")


def computed():
    """Seconds of all programs that have ended, which other work on the machine does not change."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def run(words, environment=None, limits=(), cwd=folder, out=subprocess.PIPE, **rest):
    """The exit code (below zero: a signal), what it said, and for how many seconds it computed."""
    def prepare():
        for kind, amount in limits:
            resource.setrlimit(kind, (amount, amount))
    before = computed()
    program = subprocess.Popen([binary, *map(os.fsencode, words)], cwd=cwd, env=environment or os.environ, stdout=out,
                               stderr=subprocess.PIPE, stdin=rest.pop("stdin", subprocess.DEVNULL), preexec_fn=prepare,
                               start_new_session=True, **rest)
    try:
        said, errors = program.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        said, errors = program.communicate()
        errors += b"(hung)\n"
    return program.returncode, (said or b"").decode(errors="replace"), errors.decode(errors="replace"), computed() - before


def refused(words, code, text, **options):
    """It ends with this code and says this, in a few lines and without a word of a bug."""
    got, _, errors, seconds = run(words, **options)
    lines = errors.splitlines()
    said = text in errors and "a bug in" not in errors and "hung" not in errors and len(lines) <= 6
    check(got == code and said, f"{words}: {got} instead of {code}, and said: {errors[:400]}")
    return seconds


def leftovers(place):
    return [str(f) for f in pathlib.Path(place).rglob("*.tmp")]


def finish():
    subprocess.run(["rm", "-rf", str(folder)], check=False)
    print(f"{checks} checks, {failures} failed")
    sys.exit(1 if failures or not checks else 0)
