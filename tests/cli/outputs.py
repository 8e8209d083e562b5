#!/usr/bin/env python3
"""Files and tables that commands write are as `stagecraft schema` says: outputs.py STAGECRAFT, from the root of the project.

A CSV file has the listed columns in their order, and each cell has the type of its column; JSON is valid for its schema; the
database of a sweep has the listed tables. Every schema in the list of `stagecraft schema` is compared with something written."""
import csv
import importlib.util
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

os.environ["STAGECRAFT_QUIET"] = "1"  # Notices of slow commands depend on the load of the machine.
os.environ["XDG_CACHE_HOME"] = "/nonexistent"  # Nothing that a user has is read or written.

binary = str(pathlib.Path(sys.argv[1]).resolve())
TIMEOUT = 1200 * int(os.environ.get("STAGECRAFT_TEST_PATIENCE", "1"))  # Seconds; more under a checker.
WITHOUT_SCHEMA = {"scenario.yaml", "timeline.svg", "report.html", "convergence.svg", "profile.yaml", ".stagecraft-files"}
has_jsonschema = bool(importlib.util.find_spec("jsonschema"))
passed, problems, compared = 0, [], set()


def stagecraft(*words, codes=(0,)):
    done = subprocess.run([binary, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT)
    expect(done.returncode in codes, f"stagecraft {' '.join(map(str, words))} ended with {done.returncode}", done.stderr[-2000:])
    return done.stdout


def expect(holds, what, text=""):
    global passed
    passed += bool(holds)
    if not holds:
        problems.append(f"{what}\n{text}")
    return holds


def is_of(kind, text):
    if text == "" or kind == "string":
        return True
    if kind == "boolean":
        return text in "01"
    try:
        int(text) if kind == "integer" else float(text)
    except ValueError:
        return False
    return True


def fields_in(table):
    for f in table["fields"]:
        expect(f["name"] and len(f["description"]) > 3 and f["type"] in ("string", "integer", "number", "boolean"),
               f"{table['title']}: {f['name']} is documented")
    return table["fields"]


def columns_agree(fields, header):
    """Columns with a `presence` may lack, and a name with <> stands for any number of columns."""
    possible = {0}
    for f in fields:
        fits = lambda i: i < len(header) and (header[i] == f["name"] or "<" in f["name"])
        here = {i + 1 for i in possible if fits(i)}
        while "<" in f["name"] and (more := {i + 1 for i in here if fits(i)} - here):
            here |= more
        possible = here | (possible if "presence" in f else set())
    return len(header) in possible


def check_csv(name, text):
    compared.add(name)
    fields = fields_in(json.loads(stagecraft("schema", name)))
    rows = list(csv.reader(text.splitlines()))
    if not expect(rows and columns_agree(fields, rows[0]), f"the header of {name}", f"{rows[:1]}\n{[f['name'] for f in fields]}"):
        return
    expect(len(rows) > 1, f"{name} has rows")
    kinds = {f["name"]: f["type"] for f in fields}
    others = next((f["type"] for f in fields if "<" in f["name"]), None)
    for row in rows[1:]:
        wrong = [(h, c) for h, c in zip(rows[0], row) if not is_of(kinds.get(h, others), c)]
        expect(len(row) == len(rows[0]) and not wrong, f"a row of {name}", f"{wrong} in {row}")


def form(value):
    """What a schema can tell apart of an event of a trace: its keys, the types of their values, and its fixed words."""
    if isinstance(value, dict):
        words = [value.get(key) for key in ("ph", "cat", "bp") if key in value] + [value.get("name") if value.get("ph") == "M" else None]
        return tuple((key, form(item)) for key, item in sorted(value.items())) + tuple(map(str, words))
    return (type(value), value < 0) if isinstance(value, (int, float)) else type(value)


def check_valid(name, text):
    """The schema and the value, of which nothing is checked without jsonschema."""
    schema, value = json.loads(stagecraft("schema", name)), json.loads(text)
    if name == "trace.json":  # Thousands of events of a few forms: one of each is enough.
        value["traceEvents"] = list({form(event): event for event in value["traceEvents"]}.values())
    if has_jsonschema:
        import jsonschema
        jsonschema.Draft202012Validator.check_schema(schema)
        wrong = [f"{list(e.absolute_path)}: {e.message[:300]}" for e in jsonschema.Draft202012Validator(schema).iter_errors(value)]
        expect(not wrong, f"{name} against its schema", "\n".join(wrong[:5]))
    return schema, value


def check_json(name, text):
    compared.add(name)
    schema, value = check_valid(name, text)
    if not has_jsonschema:
        return
    import jsonschema
    nonsense = [{"nonsense": 1}] if isinstance(value, list) else {**value, "nonsense": 1}
    expect(not jsonschema.Draft202012Validator(schema).is_valid(nonsense), f"the schema {name} refuses nonsense")


def check_lines(name, text):
    """JSON lines, each valid for the schema; lines that begin with # are comments."""
    for line in text.splitlines():
        if not line.startswith("#"):
            check_json(name, line)


def check_database(file):
    compared.add("sweep.db")
    connection = sqlite3.connect(file)
    found = {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
             for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")}
    found["sweep"].remove("one")  # It keeps the table to one row.
    listed = {r["name"]: [f["name"] for f in fields_in(r["schema"])]
              for r in json.loads(stagecraft("schema", "sweep.db"))["resources"]}
    expect(found == listed, "the tables of sweep.db", f"{found}\n{listed}")


def check_folder(folder):
    for file in sorted(folder.iterdir()):
        if file.suffix == ".csv":
            check_csv(file.name, file.read_text())
        elif file.suffix == ".json":
            check_json(file.name, file.read_text())
        else:
            expect(file.name in WITHOUT_SCHEMA, f"{file} has neither a schema nor a reason to have none")


def check_runs(folder):
    """Runs on two backends, with changes of the cluster, replicas, a schedule that is searched for, and a real one."""
    quickstart = ("run", "examples/quickstart")
    stagecraft(*quickstart, "-b", "ideal", "--out", folder / "a")
    stagecraft(*quickstart, "-s", "run.schedule=synthesised", "--out", folder / "b")
    stagecraft("run", "examples/straggler", "--out", folder / "c")
    stagecraft("run", "examples/pipedream-replicas", "-b", "fluid", "--out", folder / "d")
    stagecraft("run", "examples/teacher", "-b", "cpu", "--out", folder / "e")
    for name in "abcde":
        check_folder(folder / name)
    for scenario in ("quickstart", "llama-3-8b-4x8"):
        check_csv("ranks.csv", stagecraft("run", f"examples/{scenario}", "-b", "ideal", "--format", "csv"))
    check_csv("runs.csv", stagecraft("compare", folder / "a", folder / "b", "--format", "csv"))
    check_json("runs.json", stagecraft("compare", folder / "a", folder / "c", folder / "e", "--format", "json"))


def check_tables(folder):
    both = {"csv": check_csv, "json": check_json}
    for form, check in both.items():
        for more in ([], ["--replay", "0"]):
            check(f"schedules.{form}", stagecraft("compare", "examples/quickstart", "--schedules", "1f1b,zb-v,synthesised,pipedream",
                                                  "--format", form, *more))
            check(f"plans.{form}", stagecraft("plan", "examples/quickstart", "--format", form, *more))
            check(f"choices.{form}", stagecraft("search", "examples/quickstart", "--schedules", "1f1b", "--most", "20",
                                                "--format", form, *more))
        check(f"reproduced.{form}", stagecraft("reproduce", "pippy", "interleaved", "--format", form))
    stagecraft("search", "examples/quickstart", "--schedules", "1f1b", "--most", "5", "--resume", folder / "state.jsonl")
    check_lines("search-state.jsonl", (folder / "state.jsonl").read_text())
    check_csv("predictions.csv", stagecraft("reproduce", "predictions", "sc21", "--format", "csv"))


def check_sweeps(folder):
    """Two axes, one of them with maps; a point that fails; and points that have not run."""
    (folder / "s.yaml").write_text("schema: sweep/1\nbase: examples/quickstart\nbackend: ideal\naxes:\n"
                                   "  run.schedule: [gpipe, {name: interleaved, chunks: 2}]\n  plan.stages: [4, 5]\n")
    words = ("sweep", folder / "s.yaml", "--out", folder / "s.db", "--format")
    for form, check in (("csv", check_csv), ("json", check_json)):
        text = stagecraft(*words, form, codes=(3,))
        check(f"sweep.{form}", text)
        expect("gpipe" in text and "infeasible" in text or "input" in text, "a point failed", text)
        stagecraft("sweep", folder / "s.yaml", "--out", folder / f"part_{form}.db", "--shard", "1/2", codes=(0, 3))
        check(f"sweep.{form}", stagecraft("sweep-merge", folder / f"part_{form}.db", "--into", folder / f"all_{form}.db",
                                          "--format", form, codes=(3,)))
    check_database(folder / "s.db")


def check_others(folder):
    stagecraft("validate", "examples/teacher", "--seconds", "0", "--no-control", "--iterations", "21", "--out", folder / "v")
    check_folder(folder / "v")
    stagecraft("convergence", "examples/teacher", "--methods", "sync,naive", "--updates", "40", "--seeds", "2", "--target", "100",
               "--out", folder / "c")
    check_folder(folder / "c")
    check_json("order.json", stagecraft("schedule", "1f1b", "-p", "4", "-m", "8", "--lint", "--format", "json"))
    check_json("order.json", stagecraft("schedule", "synthesised", "-p", "2", "-m", "4", "--format", "json"))
    check_json("order.json", stagecraft("schedule", "--file", "tests/cli/bad/deadlock.csv", "--format", "json", codes=(2, 3)))
    for kind in ("schedules", "planners", "devices", "models", "backends"):
        check_json("list.json", stagecraft("list", kind, "--format", "json"))
    check_valid("scenario", stagecraft("resolve", "examples/quickstart", "--format", "json"))
    check_json("problems.json", stagecraft("check", "tests/cli/bad/unknown_key.yaml", "--format", "json", codes=(2,)))


with tempfile.TemporaryDirectory() as name:
    for n, check in enumerate((check_runs, check_tables, check_sweeps, check_others)):
        folder = pathlib.Path(name) / str(n)
        folder.mkdir()
        check(folder)
listed = {line.split()[0] for line in stagecraft("schema").split("that it writes")[1].splitlines()[1:]}
expect(compared == listed, "each schema of a file that is written is compared with one", f"{compared ^ listed}")
if not has_jsonschema:
    print(f"SKIPPED the schemas of JSON: {sys.executable} has no jsonschema; apt install python3-jsonschema")
print("\n".join(problems[:20]))
print(f"{passed} passed, {len(problems)} failed")
sys.exit(1 if problems or passed < 100 else 0)
