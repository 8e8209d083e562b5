"""A system that starts no thread, or has little memory for them: commands go on with fewer threads, or say what is missing.

The address space is limited from what the program needs to start up to 100 MiB more: threads, rows of data and results
run out at every point of a convergence study and of a search."""
import os
import pathlib
import resource

from tool import binary, check, finish, folder, refused, root, run

MIB = 1 << 20
FULL = os.environ.get("STAGECRAFT_TRIALS") == "full"
NO_THREADS = {"limits": [(resource.RLIMIT_STACK, 1 << 40)]}  # Each thread would have a stack of a TiB.
QUICK = str(root / "scenarios/examples/quickstart.yaml")
SEARCH = ["search", QUICK, "--most", "10", "--schedules", "1f1b,gpipe", "--format", "json"]

# What threads only make faster has the same answer without them.
for words in ([*SEARCH, "-j", "4"], [*SEARCH, "-j", "1"], ["compare", QUICK, "--schedules", "gpipe,1f1b", "--format", "json"],
              ["run", QUICK, "-b", "simgrid", "--format", "json"], ["reproduce", "pippy"]):
    usual = run(words)
    got = run(words, **NO_THREADS)
    check(usual[0] == 0 and got[:3] == usual[:3], f"{words} without threads: {got[0]} instead of {usual[0]}: {got[2][:300]}")
code, out, errors, _ = run(["sweep", "schedules", "--only", "run.schedule=gpipe", "-j", "3", "--out", "few.db"], **NO_THREADS)
check(code == 0 and "4 points" in errors, f"a sweep without threads: {code} {errors[:300]}")

# Each device of a real run needs a thread.
for words in (["run", "examples/teacher", "--backend", "cpu"], ["validate", "examples/teacher"], ["profile", "examples/teacher"],
              ["convergence", "examples/teacher", "--methods", "sync", "--updates", "20", "--seeds", "1"]):
    refused(words, 4, "threads can be started", **NO_THREADS)

# A server answers without the thread that sends its news.
request = folder / "request"
request.write_text('{"method": "run", "params": {"file": "%s", "backend": "ideal", "diagnose": false}}\n' % QUICK)
with open(request) as stdin:
    code, out, errors, _ = run(["serve"], stdin=stdin, **NO_THREADS)
check(code == 0 and out.startswith('{"result"'), f"serve without threads: {code} {out[:300]} {errors[:300]}")

# A user may have a limited number of processes. The administrator has no such limit, so this becomes another user.
if os.geteuid() == 0:
    other_user = 65534
    open_to_all = all(path.stat().st_mode & 0o001 for path in [*pathlib.Path(binary).parents, *pathlib.Path(QUICK).parents])
    if open_to_all:
        folder.chmod(0o755)
        for most in (1, 2, 3, 5):
            got = run([*SEARCH, "-j", "4"], limits=[(resource.RLIMIT_NPROC, most)], user=other_user, extra_groups=[])
            check(got[:2] == run([*SEARCH, "-j", "4"])[:2], f"search as a user who has {most} processes: {got[0]} {got[2][:300]}")
    else:
        print("SKIPPED: another user cannot read this folder, so a limit of processes was not tried")


def starts(size):
    return run(["--version"], limits=[(resource.RLIMIT_AS, size)])[0] == 0


least = next((size for size in range(8 * MIB, 4096 * MIB, MIB) if starts(size)), None)
steps = 200 if FULL else 8
for words in (["convergence", "examples/teacher", "--methods", "sync,2bw", "--updates", "20", "--seeds", "1"], [*SEARCH, "-j", "4"],
              ["convergence", "examples/teacher", "--methods", "sync", "--updates", "20", "--seeds", "1", "--no-measure"], ["run", "examples/teacher", "-b", "cpu"]):
    for step in range(steps if least else 0):  # A sanitizer needs terabytes of address space.
        size = least + MIB + 100 * MIB * step // steps
        code, _, errors, _ = run(words, limits=[(resource.RLIMIT_AS, size)])
        check(code in (0, 4) and "a bug in" not in errors, f"{words[0]} in {size >> 10} KiB: ended with {code}: {errors[-300:]}")
finish()
