#!/usr/bin/env python3
"""Every scenario, sweep, model and topology of the project loads, resolves, runs, keeps to its schema and begins with the
line that names this schema to editors: tree.py STAGECRAFT, from the root of the project.

Every scenario runs; the first of each folder is also resolved and held against its schema, with STAGECRAFT_TRIALS=full all.
STAGECRAFT_UPDATE_GOLDEN=1 writes the schemas into scenarios/schema, where they differ."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["STAGECRAFT_QUIET"] = "1"  # Notices of slow commands depend on the load of the machine.

binary = str(pathlib.Path(sys.argv[1]).resolve())
FOLDERS = {"scenario": "scenarios", "model": "models", "cluster": "topologies", "profile": "models/profiles", "sweep": "scenarios/sweeps",
           "published": "scenarios/papers", "device": "topologies/devices", "collectives": "topologies/collectives",
           "predictions": "scenarios/predictions"}
EDITOR_LINE = "# yaml-language-server: $schema="
update = os.environ.get("STAGECRAFT_UPDATE_GOLDEN") == "1"
all_resolved = os.environ.get("STAGECRAFT_TRIALS") == "full"
passed, problems, resolved_scenarios = 0, [], {}


def stagecraft(*words):
    return subprocess.run([binary, *words], capture_output=True, text=True, timeout=1200 * int(os.environ.get("STAGECRAFT_TEST_PATIENCE", "1")))


def expect(holds, what, text=""):
    global passed
    passed += bool(holds)
    if not holds:
        problems.append(f"{what}\n{text}")


def is_kind(kind, lines):
    return any(f"schema: {kind}/{version}" in lines for version in (1, 2))


def files(kind):
    """A folder may hold files of other kinds: profiles, sweeps."""
    every = sorted(pathlib.Path(FOLDERS[kind]).rglob("*.yaml"))
    return [f for f in every if is_kind(kind, f.read_text().splitlines())]


def check(kind):
    """One process checks all files of a kind."""
    done = stagecraft("check", *map(str, files(kind)))
    said = done.stdout.splitlines()
    for file in files(kind):
        expect(any(line.startswith(f"{file}: ok, {kind}") for line in said), f"check {file}", done.stderr)
    expect(done.returncode == 0, f"check of each {kind}", done.stderr)


def resolve(file):
    done = stagecraft("resolve", str(file), "--format", "json")
    resolved_scenarios[file] = json.loads(done.stdout) if done.returncode == 0 else {}
    expect(resolved_scenarios[file].get("schema", "").startswith("scenario/"), f"resolve {file}", done.stderr)


def check_scenario(file):
    if all_resolved or all(file.parent != other.parent for other in resolved_scenarios):
        resolve(file)
    done = stagecraft("run", str(file), "--backend", "ideal", "--format", "json")
    results = json.loads(done.stdout) if done.returncode == 0 else {"makespan_s": 0}
    expect(results["makespan_s"] > 0, f"run {file}", done.stderr)
    if done.returncode == 0:
        check_time(file, results)


def check_time(file, results):
    """Every moment of a period belongs to one class, on each device and in the mean; the bubble is one of them."""
    used, period = [d for d in results["devices"] if d["used"]], results["period_s"]
    for name, times in [("the mean", results["time"])] + [(d["name"], d["time"]) for d in used]:
        expect(abs(sum(times.values()) / period - 1) < 1e-9, f"classes of {name} in {file} sum to the period", str(times))
    shares = [d["time"]["bubble_s"] / period for d in used]
    expect(abs(sum(shares) / len(shares) - results["bubble"]) < 1e-9, f"bubble of {file}", str(shares))
    expect(abs(results["time"]["bubble_s"] / period - results["bubble"]) < 1e-9, f"bubble in time of {file}", str(shares))


def check_sweep(file):
    done = stagecraft("sweep", str(file), "--list")
    count = int(done.stdout.splitlines()[-1].split()[0])
    expect(done.returncode == 0 and count == len(done.stdout.splitlines()) - 1, f"list {file}", done.stderr)
    with tempfile.TemporaryDirectory() as folder:
        done = stagecraft("sweep", str(file), "--shard", f"1/{count}", "--out", f"{folder}/a.db", "--format", "json")
        points = json.loads(done.stdout)["points"] if done.returncode == 0 else []
        expect([p["status"] for p in points] == ["ok"], f"a point of {file}", done.stderr)


def check_committed_schemas():
    """scenarios/schema holds what `stagecraft schema` prints, for editors."""
    for kind in FOLDERS:
        file, text = pathlib.Path(f"scenarios/schema/{kind}.json"), stagecraft("schema", kind).stdout
        if update and text and (not file.is_file() or file.read_text() != text):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            print(f"wrote {file}")
        expect(file.is_file() and file.read_text() == text, f"{file} differs from `stagecraft schema {kind}`",
               "STAGECRAFT_UPDATE_GOLDEN=1 tests/cli/tree.py writes it")


def check_editor_line(file):
    """Editors with yaml-language-server find the schema by the first line, relative to the file."""
    first, *lines = file.read_text().splitlines()
    kind = next((k for k in FOLDERS if is_kind(k, lines)), None)
    named = file.parent / first.removeprefix(EDITOR_LINE)
    wanted = pathlib.Path(f"scenarios/schema/{kind}.json")
    expect(first.startswith(EDITOR_LINE) and named.is_file() and named.resolve() == wanted.resolve(),
           f"the first line of {file} names its schema",
           f"it should be: {EDITOR_LINE}{os.path.relpath(wanted, file.parent)}")


def check_schemas():
    """Files as they are written, and scenarios as they are resolved, against `stagecraft schema`."""
    missing = [name for name in ("jsonschema", "yaml") if not importlib.util.find_spec(name)]
    if missing:
        return print(f"SKIPPED the schemas: {sys.executable} has no {' and no '.join(missing)}; "
                     "apt install python3-jsonschema python3-yaml")
    import jsonschema
    import yaml
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # Ten times as fast where libyaml is there.
    for kind in FOLDERS:
        schema = json.loads(stagecraft("schema", kind).stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        for file in files(kind):
            wrong = [e.message[:300] for e in validator.iter_errors(yaml.load(file.read_text(), Loader=loader))]
            expect(not wrong, f"{file} against the schema", "\n".join(wrong))
            if file in resolved_scenarios:
                wrong = [e.message[:300] for e in validator.iter_errors(resolved_scenarios[file])]
                expect(not wrong, f"{file}, resolved, against the schema", "\n".join(wrong))
        nonsense = {"schema": f"{kind}/1", "nonsense": 1}
        expect(not validator.is_valid(nonsense), f"the schema of a {kind} refuses nonsense")


for kind in FOLDERS:
    if kind == "scenario":
        for file in files(kind):
            check_scenario(file)
    else:
        check(kind)
for file in files("sweep"):
    check_sweep(file)
check_committed_schemas()
for folder in ("models", "scenarios", "topologies"):
    for file in sorted(pathlib.Path(folder).rglob("*.yaml")):
        check_editor_line(file)
check_schemas()
print("\n".join(problems))
print(f"{passed} passed, {len(problems)} failed")
sys.exit(1 if problems or passed < 30 else 0)
