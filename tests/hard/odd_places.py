"""Folders that may not be written, names that are no text, a machine without a home, and commas for points."""
import os
import resource
import shutil
import subprocess

from tool import check, finish, folder, refused, root, run

NO_PLACE = "/proc"  # Not even the administrator may write here.
QUICK = ["run", "examples/quickstart", "--backend", "ideal"]


def without(*names):
    return {k: v for k, v in os.environ.items() if k not in names}


code, expected, _, _ = run(QUICK)
check(code == 0, "the quickstart runs")
for what, options in {
        "without HOME": {"environment": without("HOME")},
        "without any environment": {"environment": {"PATH": "/usr/bin:/bin"}},
        "with a TMPDIR that is not there": {"environment": {**os.environ, "TMPDIR": "/nowhere"}},
        "where nothing may be written": {"cwd": NO_PLACE}}.items():
    for backend in ("ideal", "simgrid", "fluid", "cpu"):
        name = "examples/teacher" if backend == "cpu" else "examples/quickstart"
        code, out, errors, _ = run(["run", name, "--backend", backend], **options)
        check(code == 0 and "iteration time" in out, f"{backend} {what}: {code} {errors}")

for words in (["run", "examples/quickstart", "--backend", "ideal", "--out", "here"], ["sweep", "schedules"],
              ["run", "examples/quickstart", "--backend", "ideal", "--html", "page.html"],
              ["report", "examples/quickstart", "--backend", "ideal"], ["export", "simgrid-xml", "lab-4", "--out", "x"]):
    code, _, errors, _ = run(words, cwd=NO_PLACE)
    said = [line for line in errors.splitlines() if not line.startswith("simulated ")]  # By a report, of what it ran.
    check(code == 2 and len(said) <= 2 and ("cannot be" in errors), f"{words}: {code} {errors}")

# Names of bytes that are no UTF-8.
odd = b"caf\xe9"
shutil.copy(root / "scenarios/examples/quickstart.yaml", os.fsencode(folder) + b"/" + odd + b".yaml")
text = odd.decode(errors="surrogateescape")
for words in ([text + ".yaml", "--format", "json"], [text + ".yaml", "--out", text], [text + ".yaml", "--html", text + ".html"]):
    code, out, errors, _ = run(["run", *words, "--backend", "ideal"])
    check(code == 0, f"a name that is no text: {code} {errors}")
code, out, errors, _ = run(["report", text, "--out", "page.html"])
check(code == 0, f"a page of a folder whose name is no text: {code} {errors}")
code, out, errors, _ = run(["check", "x" + text + ".yaml", "--format", "json"])
check(code == 2 and "there is no such file" in out, f"a missing file whose name is no text, as JSON: {code} {errors}")

# Stacks of a TiB: no thread can be started for devices or for measuring.
HUGE_STACKS = {"limits": [(resource.RLIMIT_STACK, 1 << 40)]}
refused(["run", "examples/teacher", "--backend", "cpu"], 4, "threads can be started", **HUGE_STACKS)
refused(["profile", "examples/teacher", "--out", str(folder / "profile.yaml")], 4, "threads can be started", **HUGE_STACKS)
check(run(QUICK, **HUGE_STACKS)[1] == expected, "a simulation needs no threads")

# A point is a point, whatever people write elsewhere.
made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"], capture_output=True)
if made.returncode == 0:
    german = {**os.environ, "LOCPATH": str(folder), "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}
    shown = subprocess.run(["printf", "%.1f", "1,5"], env=german, capture_output=True, text=True)
    check(run(QUICK, environment=german)[1] == expected, "other numbers where commas are points")
    check(run(["run", "examples/quickstart"], environment=german)[1] == run(["run", "examples/quickstart"])[1],
          "other numbers of SimGrid where commas are points")
else:
    print("SKIPPED: localedef cannot make de_DE.UTF-8, so commas for points were not tried")
finish()
