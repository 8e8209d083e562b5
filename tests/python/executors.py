#!/usr/bin/env python3
"""Sweeps and searches of the Python module by executors, compared with the same without one: executors.py STAGECRAFT."""
import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import pathlib
import signal
import sqlite3
import sys
import tempfile
import threading
import unittest

import support

if __name__ == "__main__":  # Processes that are spawned read this file again.
    support.start(sys.argv.pop(1))

import stagecraft as sc
from stagecraft import _executors, _process

try:
    import distributed
except ImportError:
    distributed = None

SCENARIO = os.path.abspath("scenarios/examples/quickstart.yaml")
SEARCH = {"scenario": "examples/search-slow-link", "schedules": ["1f1b", "gpipe"]}
# One point exceeds memory, and one has too many stages: both are results like others.
SWEEP = f"""schema: sweep/1
base: {SCENARIO}
backend: ideal
axes: {{run.micro_batches: {{from: 2, to: 9, by: 1}}, run.schedule: [gpipe, 1f1b]}}
also: [{{model: gpt-175b}}, {{run.micro_batches: 3, plan.stages: 5}}]
"""


class OneAfterTheOther:
    """The least that an executor has to be: its futures have result() alone."""

    class Future:
        def __init__(self, call):
            self.result = call

    def submit(self, function, /, *arguments):
        return self.Future(lambda: function(*arguments))


class Recording:
    """Threads, whose futures are kept; the call with this number is made by `instead`."""

    def __init__(self, threads, number, instead):
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.futures, self.number, self.instead = [], number, instead

    def submit(self, function, /, *arguments):
        self.futures.append(self.pool.submit(self.instead if len(self.futures) == self.number else function, *arguments))
        return self.futures[-1]


def fail(*arguments):
    raise ValueError("no such luck")


def die(*arguments):
    os._exit(7)


class Executors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "sweep.yaml"
        self.file.write_text(SWEEP)

    def rows(self, out):
        """The results without times of the day and of the wall."""
        with contextlib.closing(sqlite3.connect(out)) as file:
            file.row_factory = sqlite3.Row
            return [{key: value for key, value in dict(row).items() if key not in ("wall_s", "finished")}
                    for row in file.execute("SELECT * FROM result ORDER BY hash")]

    def finished(self, out):
        with contextlib.closing(sqlite3.connect(out)) as file:
            return dict(file.execute("SELECT hash, finished || ' ' || wall_s FROM result"))

    def sweep_is_the_same(self, executor, name):
        alone, out = self.folder / "alone.db", self.folder / f"{name}.db"
        plain = sc.sweep(self.file, out=alone)
        self.assertEqual((len(plain), {row["status"] for row in plain}), (18, {"ok", "infeasible"}))
        news = []
        table = sc.sweep(self.file, out=out, executor=executor, parts=4, progress=news.append)
        self.assertEqual(json.dumps(table.document), json.dumps(plain.document))
        self.assertEqual((table.text, self.rows(out)), (plain.text, self.rows(alone)))
        self.assertEqual([one["done"] for one in news if "parts" in one.get("progress", "")], [1, 2, 3, 4])

    def search_is_the_same(self, executor):
        plain = sc.search(**SEARCH)
        result = sc.search(**SEARCH, executor=executor)
        self.assertGreater(len(plain), 1)
        self.assertEqual(json.dumps(result.document), json.dumps(plain.document))
        self.assertEqual((result.text, result.best.sets), (plain.text, plain.best.sets))

    def test_the_least_executor(self):
        self.sweep_is_the_same(OneAfterTheOther(), "least")
        self.search_is_the_same(OneAfterTheOther())

    def test_threads(self):
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            self.sweep_is_the_same(executor, "threads")
            self.search_is_the_same(executor)

    def test_processes(self):
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            with concurrent.futures.ProcessPoolExecutor(2, context) as executor:
                self.sweep_is_the_same(executor, method)
                self.search_is_the_same(executor)

    @unittest.skipUnless(distributed, "there is no Python package distributed; apt install python3-distributed")
    def test_dask(self):
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            with distributed.Client(cluster) as executor:
                self.sweep_is_the_same(executor, "dask")
                self.search_is_the_same(executor)

    def test_a_scenario_that_is_a_dict_reaches_the_workers(self):
        scenario = sc.load({"schema": "scenario/2", "model": "gpt2-medium", "cluster": "two-node-mixed",
                            "plan": {"planner": "balanced", "stages": 2}, "run": {"schedule": "1f1b", "micro_batches": 4}})
        question = {"scenario": scenario, "schedules": ["gpipe"], "contended": False}
        self.assertEqual(sc.search(**question, executor=OneAfterTheOther()).document, sc.search(**question).document)

    def test_a_search_that_is_out_of_time_ends_with_its_best(self):
        result = sc.search(**{**SEARCH, "seconds": 1e-9}, executor=OneAfterTheOther())
        self.assertIn("the time is over", result.text)

    def test_results_that_are_there_are_not_computed_again(self):
        out = self.folder / "s.db"
        sc.sweep(self.file, out=out, only=["run.schedule=gpipe"])
        before = self.finished(out)
        self.assertTrue(before)
        table = sc.sweep(self.file, out=out, executor=OneAfterTheOther(), parts=3)
        after = self.finished(out)
        self.assertEqual({key: after[key] for key in before}, before)
        self.assertEqual(table.document, sc.sweep(self.file, out=self.folder / "alone.db").document)
        refusing = Recording(1, 0, fail)
        self.assertEqual(sc.sweep(self.file, out=out, executor=refusing).document, table.document)
        self.assertEqual(refusing.futures, [])

    def test_an_error_names_its_part_and_the_others_are_kept(self):
        out = self.folder / "s.db"
        with self.assertRaisesRegex(sc.BackendError, "part 3 of 4 of the sweep: ValueError: no such luck"):
            sc.sweep(self.file, out=out, executor=Recording(1, 2, fail), parts=4)
        before = self.finished(out)
        self.assertTrue(0 < len(before) < 18)
        table = sc.sweep(self.file, out=out, executor=OneAfterTheOther())
        self.assertEqual(table.document, sc.sweep(self.file, out=self.folder / "alone.db").document)
        self.assertEqual({key: self.finished(out)[key] for key in before}, before)
        with self.assertRaisesRegex(sc.BackendError, r"task 1 of \d+ in a batch of the search: ValueError: no such luck"):
            sc.search(**SEARCH, executor=Recording(1, 0, fail))
        self.assertIn("bubble", sc.explain("bubble"))

    def test_a_worker_that_dies_is_an_error_of_its_part(self):
        class Dying:
            def submit(self, function, /, *arguments):
                return pool.submit(die, *arguments)
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            with self.assertRaisesRegex(sc.BackendError, r"part [12] of 2 of the sweep: BrokenProcessPool"):
                sc.sweep(self.file, out=self.folder / "s.db", executor=Dying(), parts=2)

    def test_what_is_wrong_is_said_before_anything_is_sent(self):
        executor = Recording(1, 0, fail)
        self.file.write_text(SWEEP.replace("run.micro_batches", "run.micro_batchess"))
        with self.assertRaises(sc.InputError):
            sc.sweep(self.file, out=self.folder / "s.db", executor=executor)
        with self.assertRaises(sc.InputError):
            sc.search("nonexistent", executor=executor)
        with self.assertRaises(ValueError):
            sc.sweep(self.file, out=self.folder / "s.db", executor=executor, parts=0)
        self.assertEqual(executor.futures, [])

    def test_a_worker_with_another_scenario_is_refused(self):
        with self.assertRaisesRegex(sc.InputError, "another scenario than the search"):
            _executors.search_task(json.dumps({"file": SCENARIO, "sets": [], "question": "another", "left": None}), "", "{}")

    def test_a_task_that_is_none_is_refused(self):
        class Changing(OneAfterTheOther):
            def submit(self, function, params, scenario, task):
                return super().submit(function, params, scenario, tasks.pop() if tasks else task)
        wrong = ["{", "[]", "{}", '{"variant": -1}', '{"variant": 1e9}', '{"variant": 0.5}', '{"variant": 0, "policy": 0}']
        for text in wrong:
            tasks = [text]
            with self.assertRaisesRegex(sc.InputError, "task 1 of .*a task|task 1 of .*the task"):
                sc.search(**SEARCH, executor=Changing())

    def test_an_interrupt_cancels_what_has_not_begun(self):
        def interrupt(number, frame):
            raise KeyboardInterrupt

        interrupted = threading.Event()

        def press(*arguments):
            os.kill(os.getpid(), signal.SIGALRM)
            interrupted.wait()
            return b""
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            for call in (lambda executor: sc.sweep(self.file, out=self.folder / "s.db", executor=executor, parts=5),
                         lambda executor: sc.search(**SEARCH, executor=executor)):
                executor = Recording(1, 1, press)
                with self.assertRaises(KeyboardInterrupt):
                    call(executor)
                first, second, *others = executor.futures
                self.assertTrue(first.done() and others)
                self.assertTrue(all(future.cancelled() for future in others))
                interrupted.set()
                second.result()
                interrupted.clear()
        finally:
            interrupted.set()
            signal.signal(signal.SIGALRM, before)
        table = sc.sweep(self.file, out=self.folder / "s.db", executor=OneAfterTheOther())
        self.assertEqual(table.document, sc.sweep(self.file, out=self.folder / "alone.db").document)

    def test_workers_that_mpirun_has_started_are_not_taken_for_its_processes(self):
        os.environ.update(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2")
        try:
            server = _process.Server()
            self.assertIn("version", server.request("version", {}))
            server.stop()
            self.sweep_is_the_same(OneAfterTheOther(), "mpi")
        finally:
            del os.environ["OMPI_COMM_WORLD_RANK"], os.environ["OMPI_COMM_WORLD_SIZE"]


if __name__ == "__main__":
    unittest.main()
