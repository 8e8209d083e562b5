#!/usr/bin/env python3
"""Tables fit where they are printed: widths.py STAGECRAFT, from the root of the project.

Every command with a table runs at 80, 120 and 200 columns, and without a limit. No line is longer than it may be, unless a
single word is: a path, or an option to paste into a shell. Columns that have no room are named below the table, and --wide
has all of them."""
import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

binary = str(pathlib.Path(sys.argv[1]).resolve())
TIMEOUT = 1200 * int(os.environ.get("STAGECRAFT_TEST_PATIENCE", "1"))  # Seconds; more under a checker.
QUICKSTART = "examples/quickstart"
passed, problems = 0, []


def environment(columns=None, **more):
    values = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    return {**values, "STAGECRAFT_QUIET": "1", "TERM": "xterm", **({"COLUMNS": str(columns)} if columns else {}), **more}


def expect(holds, what, text=""):
    global passed
    passed += bool(holds)
    if not holds:
        problems.append(f"{what}\n{text}")


def stagecraft(words, columns=None, code=0, **more):
    done = subprocess.run([binary, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT,
                          env=environment(columns, **more))
    expect(done.returncode == code, f"{' '.join(map(str, words))} ended with {done.returncode}", done.stderr[-2000:])
    return done.stdout


def has_terminals():
    try:
        for side in pty.openpty():
            os.close(side)
        return True
    except OSError:
        return False


def on_terminal(words, columns):
    """What the command prints on a terminal of this width."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([binary, *words], stdout=follower, stderr=subprocess.DEVNULL, env=environment())
    os.close(follower)
    text = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # The other side is closed.
            break
        if not part:
            break
        text += part
    process.wait(TIMEOUT)
    os.close(leader)
    return text.decode().replace("\r\n", "\n")


def too_long(text, columns):
    """Lines that could have been broken and were not."""
    return [line for line in text.splitlines()
            if len(line) > columns and not line.lstrip().startswith("--set ") and len(line.split()) > 1]


def headings_of(text, dropped):
    """The first line that has all of these headings, else nothing."""
    return next((line for line in text.splitlines() if all(h in cells_of(line) for h in dropped)), "")


def cells_of(line):
    return re.split(r"  +", line.strip())


def dropped_in(text):
    """Headings that the table says it does not show."""
    found = re.search(r"columns not shown: (.*?) \(--wide, or\s+--columns\)", text, re.S)
    return [" ".join(h.split()) for h in found[1].split(",")] if found else []


def check(words, narrow_drops):
    whole = stagecraft([*words, "--wide"], columns=80)
    expect(not dropped_in(whole), f"--wide of {words[0]} shows all columns", whole[:500])
    expect(stagecraft(words) == whole, f"{words[0]} into a pipe is that of --wide")
    for columns in (80, 120, 200):
        text = stagecraft(words, columns=columns)
        long = too_long(text, columns)
        expect(not long, f"{' '.join(map(str, words))} fits in {columns} columns", "\n".join(long[:5]))
        dropped = dropped_in(text)
        if columns == 80:
            expect(bool(dropped) == narrow_drops, f"{words[0]} names the columns without room", text[:2000])
        if dropped:
            headings = headings_of(whole, dropped)
            expect(headings, f"--wide of {words[0]} has {dropped}", whole[:500])
            kept = [h for h in cells_of(headings) if h not in dropped]
            expect(any(cells_of(line) == kept for line in text.splitlines()), f"{words[0]} has all others: {kept}", text[:500])


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    for name, micro_batches in (("a", 4), ("b", 8), ("c", 16)):
        stagecraft(["run", QUICKSTART, "-b", "ideal", "--set", f"run.micro_batches={micro_batches}", "--out", folder / name])
    sweep = folder / "s.yaml"
    sweep.write_text(f"schema: sweep/1\nbase: {QUICKSTART}\naxes:\n  run.micro_batches: [4, 8]\n"
                     "  run.schedule: [gpipe, 1f1b, {name: interleaved, chunks: 2}]\n  plan.recompute: [none, full]\n")
    check(["run", QUICKSTART, "-b", "ideal"], True)  # The reserve, which the summary names too.
    check(["compare", "--schedules", "all", QUICKSTART, "--gantt"], True)
    check(["compare", folder / "a", folder / "b", folder / "c"], False)
    check(["search", QUICKSTART, "--most", "60", "--schedules", "gpipe,1f1b"], True)
    check(["search", QUICKSTART, "--most", "60", "--schedules", "gpipe,1f1b", "--set", "report={price: 2, tokens: 1e12}"], True)
    check(["sweep", sweep, "-b", "ideal", "--out", folder / "s.db"], True)
    check(["schedule", "1f1b", "-p", "4", "-m", "40"], False)
    check(["schedule", "zb-h1", "-p", "4", "-m", "8", "--format", "gantt"], False)
    check(["reproduce", "pippy"], False)
    for kind in ("schedules", "planners", "weights", "backends", "devices", "software", "scenarios", "models", "published"):
        check(["list", kind], False)
    plan = ["plan", QUICKSTART, "--planner", "balanced,brute,edgepipe"]
    for columns in (80, 120, 200):  # Its last column is the wall-clock time of the planner, so no two outputs are equal.
        text = stagecraft(plan, columns=columns)
        expect(not too_long(text, columns), f"plan fits in {columns} columns", text[:2000])
        expect(headings_of(stagecraft([*plan, "--wide"], columns=columns), dropped_in(text)), "--wide of plan has all columns")
    expect(dropped_in(stagecraft(plan, columns=80)), "plan names the columns without room")

    if has_terminals():
        text = on_terminal(["compare", "--schedules", "gpipe,1f1b", QUICKSTART], 80)
        plain = re.sub("\033\\[[0-9]*m", "", text)
        expect("\033[1m" in text and "\033" not in plain, "a terminal gets color, and nothing but color", repr(text[:500]))
        expect(not too_long(plain, 80) and dropped_in(plain), "the width of the terminal counts", plain)
    else:
        print("SKIPPED the width of a terminal: this system has no pseudo-terminals")
    expect("\033" not in stagecraft(["list", "schedules"]), "a pipe gets no color")
    always = ["compare", "--schedules", "gpipe", QUICKSTART, "--color", "always"]
    expect("\033[1m" in stagecraft(always, NO_COLOR="1"), "--color always is stronger than NO_COLOR")

    chosen = stagecraft(["plan", QUICKSTART, "--planner", "balanced", "--columns", "planner,room,peak_memory_bytes"])
    expect(re.search(r"^  planner +room +memory$", chosen, re.M), "--columns takes headings and names of the CSV", chosen)
    table = stagecraft(["list", "backends", "--format", "csv", "--columns", "source,name"])
    expect(table.splitlines()[0] == "source,name", "--columns chooses the columns of CSV", table)
    table = stagecraft(["list", "backends", "--format", "markdown"]).splitlines()
    expect(table[1] == "| --- | --- |" and len(table) > 5, "markdown has a rule below the headings", "\n".join(table))
    stagecraft(["list", "backends", "--columns", "nonsense"], code=2)

    for problem in problems:
        print(problem)
    print(f"{passed} checks passed, {len(problems)} failed")
    return 1 if problems else 0


sys.exit(main())
