#!/usr/bin/env python3
"""Results, errors and tables of the Python module against the command line: results.py STAGECRAFT."""
import gc
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import support

PROGRAM = sys.argv.pop(1)
support.start(PROGRAM, "numpy", "pandas", "matplotlib")
import matplotlib.pyplot
import numpy

import stagecraft as sc
from stagecraft import _process

SCENARIO = "scenarios/examples/quickstart.yaml"
LONG = {"scenario": "examples/search-mixed-gpus", "seconds": 3600.0, "schedules": ["synthesised"]}  # Until it is stopped.


def command(*words):
    """Standard output of the command line, as JSON."""
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    return json.loads(done.stdout)


class Results(unittest.TestCase):
    def test_numbers_are_those_of_the_command_line(self):
        for backend in ("ideal", "fluid"):
            ours = sc.run(SCENARIO, backend=backend, sets={"run.micro_batches": 16})
            theirs = command("run", SCENARIO, "--backend", backend, "--set", "run.micro_batches=16", "--format", "json")
            self.assertEqual(ours.results, theirs)

    def test_spans_are_those_of_the_command_line(self):
        run = sc.run(SCENARIO, backend="fluid")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PROGRAM, "run", SCENARIO, "--backend", "fluid", "--out", folder + "/a"], check=True, capture_output=True)
            text = (pathlib.Path(folder) / "a/spans.csv").read_text()
        self.assertEqual(run.spans_csv(), text)
        self.assertEqual(len(run.spans["start"]), len(text.splitlines()) - 1)

    def test_views_have_no_copy_and_keep_the_memory(self):
        run = sc.run(SCENARIO, backend="ideal")
        start, again = run.spans["start"], run.spans["start"]
        self.assertTrue(numpy.shares_memory(start, again))
        self.assertFalse(start.flags.writeable)
        with self.assertRaises(ValueError):
            start[0] = 1
        end, length = run.spans["end"], run["length_s"]
        del run, again
        gc.collect()
        sc.run(SCENARIO, backend="ideal", sets={"run.micro_batches": 4})  # The process forgets the first one's file.
        self.assertAlmostEqual(end.max() - start.min(), length, delta=1e-12)

    def test_memory_over_time_has_the_peak_of_the_report(self):
        run = sc.run(SCENARIO, backend="ideal")
        for number, device in enumerate(run.devices):
            report = next((d for d in run["devices"] if d["name"] == device), None)
            if report is None or not report["peak_memory_bytes"]:
                continue
            curve = run.memory(number)
            moving = curve["stash"] + curve["received"] + curve["outgoing"]
            self.assertEqual(run.resident_bytes[number] + moving.max(), report["peak_memory_bytes"])

    def test_a_million_spans_reach_pandas_without_a_copy(self):
        # A rank has F, B and up to four messages for each micro-batch; five iterations.
        run = sc.schedule("1f1b", ranks=64, micro_batches=540)
        frame = run.to_pandas()
        self.assertGreater(len(frame), 1_000_000)
        for name, column in (("start", "start"), ("end", "end"), ("micro_batch", "number"), ("planned", "planned")):
            self.assertTrue(numpy.shares_memory(frame[name].to_numpy(), run.spans[column]), name)
        self.assertTrue(numpy.shares_memory(frame["kind"].cat.codes.to_numpy(), run.spans["kind"]))
        forwards = frame[frame.kind == "forward"]
        self.assertEqual(len(forwards), 64 * 540 * 5)
        self.assertTrue((forwards.end - forwards.start == 1).all())

    def test_pictures(self):
        run = sc.run(SCENARIO, backend="ideal")
        page = run._repr_html_()
        self.assertIn("<svg", page)
        self.assertIn(run.headline(), page)
        self.assertIn("period", run.headline())
        picture = run.plot()
        self.assertEqual(picture._repr_svg_(), run.svg()[run.svg().index("<svg"):])
        with tempfile.TemporaryDirectory() as folder:
            picture.save(folder + "/a.pdf")
            picture.save(folder + "/a.svg")
            self.assertTrue(pathlib.Path(folder, "a.pdf").read_bytes().startswith(b"%PDF-1.4"))
            self.assertEqual(pathlib.Path(folder, "a.svg").read_text(), run.svg())
            self.assertRaises(ValueError, picture.save, folder + "/a.png")
        axes = run.plot(matplotlib.pyplot.subplots()[1])
        computes = numpy.count_nonzero(run.spans["kind"] < run.kinds.index("send"))
        self.assertEqual(len(axes.patches), computes)
        self.assertIn("<html", run.html())
        self.assertIn("traceEvents", run.trace()[:200])


class Errors(unittest.TestCase):
    def test_diagnostics_are_those_of_the_command_line(self):
        file = "tests/python/wrong.yaml"
        with self.assertRaises(sc.InputError) as caught:
            sc.load(file)
        theirs = command("check", file, "--format", "json")
        ours = caught.exception.diagnostics
        self.assertEqual([(d.file, d.line, d.column, d.path, d.message, d.help, d.code) for d in ours],
                         [tuple(d[k] for k in ("file", "line", "column", "path", "message", "help", "code")) for d in theirs])
        self.assertEqual(len(ours), 2)
        checked = sc.check(file, SCENARIO)
        self.assertFalse(checked)
        self.assertEqual((checked.diagnostics, checked.exit_code), (ours, 2))
        self.assertIn("4 stages", checked.summaries[SCENARIO])

    def test_too_little_memory_is_infeasible(self):
        with self.assertRaises(sc.Infeasible) as caught:
            sc.run(SCENARIO, backend="ideal", sets={"model": "gpt-175b"})
        done = subprocess.run([PROGRAM, "run", SCENARIO, "--backend", "ideal", "--set", "model=gpt-175b"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn(caught.exception.diagnostics[0].message, done.stderr)

    def test_a_missing_program_is_a_backend_error(self):
        server = _process.Server()
        kept = os.environ["STAGECRAFT"]
        os.environ["STAGECRAFT"] = "/nowhere/stagecraft"
        try:
            with self.assertRaisesRegex(sc.BackendError, "cannot be started"):
                server.request("version", {})
        finally:
            os.environ["STAGECRAFT"] = kept

    def test_wrong_arguments_are_refused_before_anything_is_sent(self):
        sc.version()
        process = _process.server._process
        run = sc.run(SCENARIO, backend="ideal")
        for wrong in (float("nan"), float("inf")):
            with self.assertRaisesRegex(sc.InputError, "no[tn]? .*finite"):
                sc.schedule("1f1b", ranks=4, micro_batches=4, forward=wrong)
        for error, call in (
                (TypeError, lambda: sc.run(123)), (TypeError, lambda: sc.run(None)), (sc.InputError, lambda: sc.run("nonexistent")),
                (sc.InputError, lambda: sc.run("/tmp")), (sc.InputError, lambda: sc.run({})), (ValueError, lambda: sc.compare([])),
                (sc.InputError, lambda: sc.run(SCENARIO, backend="fluidd")), (TypeError, lambda: sc.run(SCENARIO, schedule=5)),
                (TypeError, lambda: sc.run(SCENARIO, planner=5)), (TypeError, lambda: sc.run(SCENARIO, sets="run.micro_batches=4")),
                (sc.InputError, lambda: sc.run(SCENARIO, sets={"run.micro_batchess": 4})), (IndexError, lambda: run.memory(99)),
                (IndexError, lambda: run.memory(-1)), (sc.InputError, lambda: sc.schedule("1f1b", ranks=10**7, micro_batches=4)),
                (sc.InputError, lambda: sc.schedule("1f1b", ranks="4", micro_batches=4))):
            with self.assertRaises(error) as caught:
                call()
            self.assertTrue(str(caught.exception))
        self.assertIs(_process.server._process, process)
        self.assertIn("<svg", run.svg())

    def test_a_name_that_is_not_text_is_an_input_error_and_earlier_results_stay(self):
        run = sc.run(SCENARIO, backend="ideal")
        process = _process.server._process
        name = os.fsdecode(b"/tmp/\xff.yaml")
        for call in (lambda: sc.check(name), lambda: sc.run(name), lambda: sc.load(SCENARIO, sets={"title": "a\ud800b"}), lambda: sc.explain("\udcff"),
                     lambda: sc.sweep(SCENARIO, out=name), lambda: sc.schedule(name, ranks=1, micro_batches=1), lambda: sc.load({"title": "\udcff"})):
            with self.assertRaises(sc.InputError) as caught:
                call()
            self.assertTrue(str(caught.exception))
        with self.assertRaisesRegex(sc.InputError, "lone surrogate.*rename the file"):
            sc.check(name)
        self.assertIs(_process.server._process, process)
        self.assertIn("<svg", run.svg())
        self.assertEqual(sc.load(SCENARIO, sets={"title": "'é\U0001F600'"}).title, "é\U0001F600")


class Behavior(unittest.TestCase):
    def test_threads_take_turns(self):
        periods = {}
        def ask(count):
            periods[count] = sc.run(SCENARIO, backend="ideal", sets={"run.micro_batches": count}).period
        threads = [threading.Thread(target=ask, args=(count,)) for count in (4, 6, 8, 10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(periods, {count: sc.run(SCENARIO, backend="ideal", sets={"run.micro_batches": count}).period for count in periods})

    def test_a_forked_process_has_a_simulator_of_its_own(self):
        run = sc.run(SCENARIO, backend="ideal")
        searches, forked = threading.Event(), threading.Event()

        def hold_the_lock(news):
            searches.set()
            forked.wait()
        amid = threading.Thread(target=lambda: sc.search(**{**LONG, "seconds": 1.0}, progress=hold_the_lock))
        amid.start()
        searches.wait()
        child = os.fork()  # The lock is held by a thread that the child does not have.
        if child == 0:
            code = 1
            try:
                code = 0 if sc.run(SCENARIO, backend="ideal").period == run.period and run.spans["end"].max() > 0 else 2
            finally:
                _process.server.stop()
                os._exit(code)
        forked.set()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        amid.join()
        self.assertIn("<svg", run.svg())  # The parent's process has gone on.

    def test_a_request_within_a_request_is_refused(self):
        @sc.schedule_function
        def order(rank, pipeline):
            sc.run(SCENARIO, backend="ideal")
            yield sc.F(0)
        with self.assertRaisesRegex(RuntimeError, "one request at a time"):
            sc.schedule(order, ranks=1, micro_batches=1)
        self.assertEqual(sc.schedule("gpipe", ranks=1, micro_batches=1).makespan, 3)

    def test_progress_tells_of_a_search(self):
        class Enough(Exception):
            pass

        def stop_at_first_count(news):
            if "done" in news:
                raise Enough
        with self.assertRaises(Enough):  # On a busy machine the first count may come late.
            sc.search(**LONG, progress=stop_at_first_count)

    def test_a_run_needs_no_more_processor_time_than_the_command(self):
        def user_time(process):
            return int(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11]) / os.sysconf("SC_CLK_TCK")
        sets = {"run.micro_batches": 1000}
        sc.run(SCENARIO, backend="ideal", sets=sets, diagnose=True)  # What is read once has been read.
        process = _process.server._process.pid
        before = user_time(process)
        for _ in range(3):
            sc.run(SCENARIO, backend="ideal", sets=sets)
        ours = user_time(process) - before
        start = os.times()
        for _ in range(3):
            subprocess.run([PROGRAM, "run", SCENARIO, "--backend", "ideal", "--set", "run.micro_batches=1000", "--format", "json"],
                           capture_output=True, check=True)
        theirs = os.times().children_user - start.children_user
        print(f"three runs: {ours:.2f} s in the module's process, {theirs:.2f} s by the command line")
        self.assertLess(ours, 1.5 * theirs + 0.1)

    def test_every_public_name_has_types_and_a_line_in_the_readme(self):
        import inspect
        readme = pathlib.Path("tools/python/README.md").read_text()
        for name in ("load", "check", "run", "schedule", "compare", "plan", "search", "sweep", "explain"):
            self.assertIn(f"`{name}(", readme)
        self.assertEqual(dir(sc), sorted(sc.__all__))
        for name in sc.__all__:
            value = getattr(sc, name)
            if inspect.isfunction(value):
                signature = inspect.signature(value)
                self.assertIsNot(signature.return_annotation, inspect.Signature.empty, name)
                for parameter in signature.parameters.values():
                    self.assertIsNot(parameter.annotation, inspect.Parameter.empty, f"{name}({parameter.name})")
                self.assertTrue(value.__doc__, name)


class Page(unittest.TestCase):
    def test_the_examples_of_the_page_run(self):
        page = pathlib.Path("tools/python/README.md").read_text()
        names = {}
        blocks = re.findall(r"```python\n(.*?)```", page, re.S)
        self.assertEqual(len(blocks), 4)
        for number, block in enumerate(blocks):
            exec(compile(block, f"README block {number}", "exec"), names)
        self.assertEqual(names["run"].results["setup"]["model"], "gpt2-medium")


class Tables(unittest.TestCase):
    def test_compare(self):
        table = sc.compare(SCENARIO, schedules=["gpipe", "1f1b"])
        theirs = command("compare", "--schedules", "gpipe,1f1b", SCENARIO, "--replay", "0", "--format", "json")
        self.assertEqual(table.document["schedules"], theirs["schedules"])
        self.assertEqual(list(table.to_pandas()["name"]), [row["name"] for row in theirs["schedules"]])

    def test_compare_functions_and_files(self):
        def mine(rank, pipeline):
            for micro_batch in range(pipeline.micro_batches):
                yield sc.F(micro_batch)
            for micro_batch in range(pipeline.micro_batches):
                yield sc.B(micro_batch)

        table = sc.compare(SCENARIO, schedules=["gpipe", mine])
        periods = {row["name"]: row["period_s"] for row in table}
        self.assertEqual(set(periods), {"gpipe", "mine"})
        self.assertAlmostEqual(periods["mine"], periods["gpipe"], delta=1e-9 * periods["gpipe"])
        self.assertEqual([row["name"] for row in sc.compare(SCENARIO, schedules=[mine])], ["mine"])
        self.assertRaises(ValueError, sc.compare, SCENARIO, schedules=[mine, mine])
        latex = table.to_latex(["name", "period_s"])
        self.assertIn(r"name & period\_s \\", latex)
        self.assertIn("mine & ", latex)

    def test_compare_runs(self):
        first, second = (sc.run(SCENARIO, backend="ideal", schedule=name) for name in ("1f1b", "gpipe"))
        text = str(first.compare(second))
        self.assertIn("1f1b", text)
        self.assertIn("gpipe", text)
        self.assertIn("+", text)
        runs = [sc.run(SCENARIO, backend="ideal", sets={"run.micro_batches": m}) for m in (4, 8)]
        table = sc.compare(runs)
        self.assertEqual([row["period_s"] for row in table], [run.period for run in runs])

    def test_plan(self):
        table = sc.plan(SCENARIO, planners=["balanced"])
        theirs = command("plan", SCENARIO, "--planner", "balanced", "--replay", "0", "--format", "json")
        drop = ("search_s", "planning_s", "seconds")
        self.assertEqual([{k: v for k, v in row.items() if k not in drop} for row in table],
                         [{k: v for k, v in row.items() if k not in drop} for row in theirs["plans"]])

    def test_the_best_scenario_of_a_search_runs_as_its_row_says(self):
        result = sc.search(SCENARIO, schedules=["1f1b", "gpipe"], contended=False)
        run = sc.run(result.best, backend="ideal")
        self.assertAlmostEqual(run.period, result[0]["period_s"], delta=1e-9 * run.period)

    def test_sweep(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "s.yaml"
            file.write_text(f"schema: sweep/1\nbase: {os.path.abspath(SCENARIO)}\naxes:\n  run.micro_batches: [4, 8]\nbackend: ideal\n")
            table = sc.sweep(file, out=folder + "/s.db")
            self.assertEqual(len(table), 2)
            again = sc.sweep(file, out=folder + "/s.db")
            self.assertEqual(table.rows, again.rows)

    def test_explain_and_dicts(self):
        self.assertIn("bubble", sc.explain("bubble"))
        with self.assertRaises(sc.InputError):
            sc.explain("no-such-word-at-all")
        scenario = sc.load({"schema": "scenario/2", "model": "gpt2-medium", "cluster": "two-node-mixed",
                            "plan": {"planner": "balanced", "stages": 2}, "run": {"schedule": "1f1b", "micro_batches": 4}})
        self.assertEqual(scenario.with_sets({"run.micro_batches": 6}).micro_batches, 6)
        file = scenario.file
        self.assertTrue(os.path.exists(file))
        del scenario
        gc.collect()
        self.assertFalse(os.path.exists(file))


if __name__ == "__main__":
    unittest.main()
