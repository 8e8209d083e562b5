"""Readers that go away, as head does: the tool ends by SIGPIPE without a word, whatever it prints."""
import signal
import subprocess

from tool import PATIENCE, binary, check, finish, folder

for words in (["show", "examples/quickstart", "--what", "program"], ["run", "examples/quickstart", "--format", "json"],
              ["list", "models"], ["resolve", "examples/quickstart"], ["schema", "scenario"], ["manual"],
              ["schedule", "1f1b", "-p", "64", "-m", "512"], ["run", "examples/teacher", "--backend", "cpu"],
              ["sweep", "schedules", "--only", "run.schedule=gpipe"], ["--help"]):
    program = subprocess.Popen([binary, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    program.stdout.close()
    errors = program.stderr.read().decode(errors="replace")
    code = program.wait(PATIENCE)
    said = [line for line in errors.splitlines() if not line.startswith(" ") and "points on" not in line]
    check(code == -signal.SIGPIPE and not any("fail" in line or "error" in line or "bug" in line for line in said),
          f"{words}: ended with {code} and said {errors[:300]}")
finish()
