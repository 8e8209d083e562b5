"""Disturbs a sweep in every way, and compares its results with an undisturbed sweep: sweep_kill.py STAGECRAFT FOLDER."""
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

stagecraft, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
POINTS = 60
sweep, results = folder / "disturbed.yaml", folder / "disturbed.db"
sweep.write_text(f"""schema: sweep/1
base: examples/quickstart
backend: ideal
axes:
  run.micro_batches: [600]
  run.seed: {{from: 1, to: {POINTS}, by: 1}}
""")


def start(*words, out=results):
    return subprocess.Popen([stagecraft, "sweep", str(sweep), "--out", str(out), "--format", "csv", *words], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def rows():
    """What the file has: for each finished scenario its status, figures, and the time of that run."""
    if not results.exists():
        return {}
    file = sqlite3.connect(f"file:{results}?mode=ro", uri=True, timeout=10)
    try:
        return {row[0]: row for row in file.execute("SELECT * FROM result")}
    except sqlite3.OperationalError:  # Not even its tables are there yet.
        return {}
    finally:
        file.close()


def wait_for_more(program, more):
    known = len(rows())
    while len(rows()) < known + more and program.poll() is None:
        time.sleep(0.002)


def processes():
    """Those that have the name of our file on their command line, with their parents."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words, stat = (entry / "cmdline").read_bytes(), (entry / "stat").read_text()
        except OSError:
            continue  # It has just gone.
        state, parent = stat.rpartition(")")[2].split()[:2]
        if str(results).encode() in words and state != "Z":
            found[int(entry.name)] = int(parent)
    return found


def none_left():
    for _ in range(200):
        if not processes():
            return "no process is left"
        time.sleep(0.01)
    return f"processes are left: {processes()}"


alone = start("-j", "1", out=folder / "alone.db").communicate()[0]
kept = {}
for kill in range(3):
    program = start("-j", "2")
    wait_for_more(program, 5)
    program.kill()
    program.communicate()
    left = none_left()
    now = rows()
    good = len(now) >= len(kept) + 5 and all(now[key] == row for key, row in kept.items())
    print(f"killed: {'its results are there' if good else 'results are lost'}, {left}")
    kept = now

program = start("-j", "2")
wait_for_more(program, 3)
os.killpg(program.pid, signal.SIGINT)
said = program.communicate()[1]
now = rows()
good = len(now) >= len(kept) + 3 and all(now[key] == row for key, row in kept.items())
print(f"interrupted: exit {program.returncode}, {'its results are there' if good else 'results are lost'}, {none_left()}")
print("interrupted: it says how many are to go" if f"interrupted: {POINTS - len(now)} to go" in said else said)
kept = now

# A worker is killed: its point is a row with the reason, and another worker takes its place.
program = start("-j", "1")
wait_for_more(program, 1)
workers = [id for id, parent in processes().items() if parent == program.pid]
os.kill(workers[0], signal.SIGKILL)
table, said = program.communicate()
now = rows()
crashed = [row for row in now.values() if row[3] == "crash"]
print(f"a worker killed: exit {program.returncode}, {len(now)} rows, {len(crashed)} crashed: {crashed[0][5] if crashed else ''}")
print("rows that were there are as they were:", all(now[key] == row for key, row in kept.items()))
print(f"{len(kept)} there before" in said)
kept = {key: row for key, row in now.items() if row[3] == "ok"}

program = start("-j", "2")
said = program.communicate()[1]
print(f"again: exit {program.returncode}, nothing is run: {f'{POINTS} there before, 0 now' in said}")
program = start("-j", "2", "--retry")
table, said = program.communicate()
now = rows()
print(f"with --retry: exit {program.returncode}, {len(now) - len(kept)} run")
print("rows that were there are as they were:", all(now[key] == row for key, row in kept.items()))
print("the table is that of a sweep left alone:", table == alone and table.count("\n") == POINTS + 1)
