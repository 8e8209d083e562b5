"""Disturbs a sweep in every way, and compares its results with an undisturbed sweep: sweep_kill.py STAGECRAFT FOLDER.

One point of the sweep never ends, so that every signal comes before the end of the sweep."""
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from processes import ENDLESS_SCHEDULE, HUNG, children, kill, never_signaled, wait_until, with_words  # noqa: E402

stagecraft, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
POINTS, PART = 25, 5  # Points that end, and how many of them each disturbed sweep has.
ENDLESS_SEED = 1000
sweep, results = folder / "disturbed.yaml", folder / "disturbed.db"
sweep.write_text(f"""schema: sweep/1
base: examples/quickstart
backend: ideal
axes:
  run.micro_batches: [100]
  run.seed: {{from: 1, to: {POINTS}, by: 1}}
also:
  - {{run.micro_batches: 16, run.seed: {ENDLESS_SEED}, run.schedule: {ENDLESS_SCHEDULE}}}
""")
SHORT = ["--only", "run.micro_batches=100"]


def start(*words, out=results):
    return subprocess.Popen([stagecraft, "sweep", str(sweep), "--out", str(out), "--format", "csv", *words], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=never_signaled)


def run(*words, **more):
    program = start(*words, **more)
    return *program.communicate(timeout=HUNG), program.returncode


def part(number):
    """Selects some points that no sweep has run so far, and the one that never ends."""
    seeds = [*range(number * PART + 1, (number + 1) * PART + 1), ENDLESS_SEED]
    return [word for seed in seeds for word in ("--only", f"run.seed={seed}")]


def rows():
    """What the file has: for each finished scenario its status, figures, and the time of that run."""
    if not results.exists():
        return {}
    file = sqlite3.connect(f"file:{results}?mode=ro", uri=True, timeout=HUNG)
    try:
        return {row[0]: row for row in file.execute("SELECT * FROM result")}
    except sqlite3.OperationalError:  # Not even its tables are there yet.
        return {}
    finally:
        file.close()


def wait_for_more(program, more):
    there = len(rows())
    if not wait_until(lambda: len(rows()) >= there + more, program):
        sys.exit(f"the sweep has ended: {program.communicate()}")


def none_left():
    wait_until(lambda: not with_words(str(results)))
    return "no process is left"


def as_before(earlier, now, more):
    good = len(now) >= len(earlier) + more and all(now[key] == row for key, row in earlier.items())
    return "its results are there" if good else "results are lost"


alone = run("-j", "1", *SHORT, out=folder / "alone.db")[0]
before = {}
for number in range(3):
    program = start("-j", "2", *part(number))
    wait_for_more(program, 2)
    program.kill()
    program.communicate()
    left = none_left()
    now = rows()
    print(f"killed: {as_before(before, now, 2)}, {left}")
    before = now

program = start("-j", "2", *part(3))
wait_for_more(program, 2)
os.killpg(program.pid, signal.SIGINT)
said = program.communicate(timeout=HUNG)[1]
now = rows()
print(f"interrupted: exit {program.returncode}, {as_before(before, now, 2)}, {none_left()}")
to_go = f"interrupted: {PART + 1 - (len(now) - len(before))} to go"
print("interrupted: it says how many are to go" if to_go in said else said)
before = now

# A worker is killed: its point is a row with the reason, and another worker takes its place. The point that never ends
# is the last one, so it is at work once all others of this part have a row.
program = start("-j", "1", *part(4))
wait_for_more(program, PART)


def a_point_crashed():
    """A worker that waits for its next point has none to lose."""
    if any(row[3] == "crash" for row in rows().values()):
        return True
    for worker in children(program.pid):
        kill(worker)
    return False


wait_until(a_point_crashed, program)
table, said = program.communicate(timeout=HUNG)
now = rows()
crashed = [row for row in now.values() if row[3] == "crash"]
print(f"a worker killed: exit {program.returncode}, {len(now) - len(before)} rows, "
      f"{len(crashed)} crashed: {crashed[0][5] if crashed else ''}")
print("rows that were there are as they were:", all(now[key] == row for key, row in before.items()))

table, said, code = run("-j", "2", *part(4))
print(f"again: exit {code}, nothing is run: {f'{PART + 1} there before, 0 now' in said}")
table, said, code = run("-j", "2", *part(4), "--retry", "--timeout", "0.1")
print(f"with --retry: exit {code}, the crashed point is run again: {f'{PART} there before, 1 now' in said}")
now = rows()
print("its row has the new result:", [row[3] for key, row in now.items() if row[3] != "ok"] == ["timeout"])

# All points that end, of which one had crashed.
file = sqlite3.connect(results, timeout=HUNG)
with file:
    file.execute("UPDATE result SET status = 'crash' WHERE hash IN (SELECT hash FROM result WHERE status = 'ok' LIMIT 1)")
file.close()
known = {key: row for key, row in rows().items() if row[3] == "ok"}
table, said, code = run("-j", "2", "--retry", *SHORT)
now = rows()
print(f"the rest: exit {code}, all others are run: {f'{len(known)} there before, {POINTS - len(known)} now' in said}")
print("rows that were there are as they were:", all(now[key] == row for key, row in known.items()))
print("the table is that of a sweep left alone:", table == alone and table.count("\n") == POINTS + 1)
