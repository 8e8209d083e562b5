#!/usr/bin/env python3
"""A schedule, a planner, a model with its builder, a cluster with its generator, a device type, a collective algorithm and a
backend are each one new file or folder, and a metric is one new line: additions.py BUILD, from the root of the project.

The files of tests/docs/additions are put into a copy of the tree, and the metric into its table. The copy is built. All
additions must be listed, and all but the collective algorithm, which no scenario names, must work in a run or a sweep."""
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

METRIC = """    {"twice_makespan_s", "twice as long", "", Unit::Time, Better::Less, kMain | kCompared, "Twice the makespan.",
     [](const RunView& r) { return 2 * r.report.makespan.value; }},
"""

build = pathlib.Path(sys.argv[1]).resolve()
if not shutil.which("ccache"):
    print("SKIPPED: without ccache this builds everything a second time")
    sys.exit(77)


def out(*words, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr}"
    return done.stdout


def project_files():
    """What git lists; in an unpacked archive, which has no .git, all but build folders and caches."""
    if pathlib.Path(".git").exists():
        return out("git", "ls-files").splitlines()
    left_out = {"build", "__pycache__"}
    return [str(f) for f in sorted(pathlib.Path(".").rglob("*"))
            if f.is_file() and not left_out & set(f.parts) and not f.parts[0].startswith("build")]


def figures(program, backend, folder):
    return json.loads(out(program, "run", "scenarios/my-scenario.yaml", "--backend", backend, "--format", "json", cwd=folder))


def check_metric(program, folder, results):
    """A metric is in each output that has metrics, by its entry alone."""
    assert abs(results["twice_makespan_s"] / results["makespan_s"] - 2) < 1e-9
    for schema in ("results.json", "runs.json", "sweep.csv", "sweep.db"):
        assert "Twice the makespan." in out(program, "schema", schema), f"schema {schema}"
    assert "'twice as long'" in out(program, "explain", "twice_makespan_s")
    run = ["run", "scenarios/my-scenario.yaml", "--backend", "ideal", "--no-gantt"]
    for name in ("a", "b"):
        out(program, *run, "--out", name, cwd=folder)
    assert "twice as long" in out(program, "compare", "a", "b", cwd=folder)
    assert json.loads(out(program, "compare", "a", "b", "--format", "json", cwd=folder))["runs"][1]["twice_makespan_s"] == results["twice_makespan_s"]
    out(program, "report", "scenarios/sweeps/my-sweep.yaml", "--out", "sweep.html", cwd=folder)
    out(program, "sweep", "scenarios/sweeps/my-sweep.yaml", "--draw", "lines", "--metric", "twice as long", "--svg", "lines.svg", cwd=folder)
    for page in ("a/report.html", "sweep.html"):
        assert '"title":"twice as long"' in (folder / page).read_text(), page
    assert ">twice as long, " in (folder / "lines.svg").read_text()


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name) / "copy"
    for file in project_files():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        if pathlib.Path(file).exists():
            shutil.copy2(file, folder / file)
    shutil.copytree("tests/docs/additions", folder, dirs_exist_ok=True)
    table, head = folder / "sim/result/metrics.cpp", "constexpr Metric kMetrics[] = {\n"
    text = table.read_text()
    assert text.count(head) == 1, "the table of metrics has another head"
    table.write_text(text.replace(head, head + METRIC))
    # Paths below the base count as relative, so that the cache knows files of the other tree.
    environment = {**os.environ, "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1"}
    out("cmake", "-S", folder, "-B", folder / "build/ci", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DSTAGECRAFT_TESTS=OFF",
        "-DSTAGECRAFT_WERROR=ON", "-DENABLE_CUDA=OFF", env=environment)
    out("cmake", "--build", folder / "build/ci", "-j2", "--target", "stagecraft", env=environment)
    program = folder / "build/ci/bin/stagecraft"
    for kind, name in [("schedules", "last-in-first-out"), ("planners", "halves"), ("builders", "single"), ("models", "my-model"),
                       ("generators", "cable"), ("collectives", "twice-direct"), ("topologies", "my-cluster"), ("devices", "my-gpu"), ("backends", "twice")]:
        assert name in out(program, "list", kind).split(), f"{name} is not among the {kind}"
    once, twice = figures(program, "ideal", folder), figures(program, "twice", folder)
    assert abs(twice["makespan_s"] / once["makespan_s"] - 2) < 1e-9, (once["makespan_s"], twice["makespan_s"])
    assert abs(figures(program, "simgrid", folder)["makespan_s"] / once["makespan_s"] - 1) < 1e-9
    rows = csv.DictReader(out(program, "sweep", "scenarios/sweeps/my-sweep.yaml", "--format", "csv", cwd=folder).splitlines())
    factors = [float(row["twice_makespan_s"]) / float(row["makespan_s"]) for row in rows]
    assert len(factors) == 2 and all(abs(factor - 2) < 1e-9 for factor in factors), factors
    check_metric(program, folder, once)
print("one new file each: schedule, planner, model, cluster, device type, collective algorithm and backend; one new line: metric")
