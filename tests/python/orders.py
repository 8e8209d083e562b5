#!/usr/bin/env python3
"""Schedules and planners as Python functions: orders.py STAGECRAFT."""
import concurrent.futures
import pathlib
import sys
import tempfile
import unittest

import support

support.start(sys.argv.pop(1), "numpy")
import numpy

import stagecraft as sc

SCENARIO = "scenarios/examples/quickstart.yaml"


@sc.schedule_function
def one_f_one_b(rank, pipeline):
    warmup = min(pipeline.ranks - rank - 1, pipeline.micro_batches)
    for m in range(warmup):
        yield sc.F(m)
    for m in range(pipeline.micro_batches - warmup):
        yield sc.F(warmup + m)
        yield sc.B(m)
    for m in range(pipeline.micro_batches - warmup, pipeline.micro_batches):
        yield sc.B(m)


def interleaved(rank, pipeline):
    """Breadth first over the chunks of a rank: all forwards of its first stage, then of its second."""
    for stage in pipeline.stages[rank]:
        for m in range(pipeline.micro_batches):
            yield sc.F(m, stage)
    for stage in reversed(pipeline.stages[rank]):
        for m in range(pipeline.micro_batches):
            yield sc.B(m, stage)


def line_with(mark):
    """The line of this file that ends with the mark."""
    lines = pathlib.Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


class Schedules(unittest.TestCase):
    def test_a_function_equals_the_built_in_schedule_op_by_op(self):
        for ranks, micro_batches in ((1, 3), (4, 8), (6, 2), (5, 5)):
            ours = sc.schedule(one_f_one_b, ranks=ranks, micro_batches=micro_batches)
            theirs = sc.schedule("1f1b", ranks=ranks, micro_batches=micro_batches)
            self.assertEqual(ours.grid(), theirs.grid())
            self.assertEqual(ours.makespan, theirs.makespan)

    def test_numbers_of_ops_are_whole(self):
        def gives(op):
            return lambda rank, pipeline: [op, sc.B(0)]
        for wrong in (0.5, 2**70, "0", None):
            with self.assertRaisesRegex(TypeError, "whole number"):
                sc.schedule(gives(sc.F(wrong)), ranks=1, micro_batches=1)
        with self.assertRaisesRegex(TypeError, "the stage 0.5"):
            sc.schedule(gives(sc.F(0, 0.5)), ranks=1, micro_batches=1)
        self.assertEqual(sc.schedule(gives(sc.F(numpy.int64(0))), ranks=1, micro_batches=1).makespan, 3)

    def test_a_function_in_a_scenario_gives_the_spans_of_the_built_in_schedule(self):
        ours = sc.run(SCENARIO, backend="fluid", schedule=one_f_one_b)
        theirs = sc.run(SCENARIO, backend="fluid")
        self.assertEqual(ours["setup"]["schedule"], "one_f_one_b")
        for name in theirs.spans:
            numpy.testing.assert_array_equal(ours.spans[name], theirs.spans[name])

    def test_makespan_of_1f1b_is_its_closed_form(self):
        run = sc.schedule(one_f_one_b, ranks=4, micro_batches=8, forward=1, backward=2)
        self.assertEqual(run.makespan, (8 + 4 - 1) * (1 + 2))  # (m + p - 1)(f + b) with free messages.

    def test_several_stages_on_a_rank(self):
        looped = sc.schedule_function(interleaved, placement="loop", chunks=2)
        run = sc.schedule(looped, ranks=2, micro_batches=4, chunks=2)
        self.assertEqual(run.grid(), sc.schedule("looped-bfs", ranks=2, micro_batches=4, chunks=2).grid())

    def test_an_op_without_a_stage_is_refused_where_a_rank_has_several(self):
        @sc.schedule_function(placement="loop", chunks=2)
        def no_stage(rank, pipeline):
            yield sc.F(0)  # no stage
        with self.assertRaises(sc.InputError) as caught:
            sc.schedule(no_stage, ranks=2, micro_batches=1, chunks=2)
        self.assertEqual(caught.exception.diagnostics[0].line, line_with("no stage"))

    def test_a_missing_backward_is_named_at_the_definition(self):
        def forgets(rank, pipeline):  # forgets
            for m in range(pipeline.micro_batches):
                yield sc.F(m)
        with self.assertRaises(sc.InputError) as caught:
            sc.schedule(forgets, ranks=2, micro_batches=2)
        problem = caught.exception.diagnostics[0]
        self.assertEqual((problem.code, problem.line), ("missing", line_with("forgets")))
        self.assertEqual(problem.file, __file__)

    def test_a_repeated_op_is_named_at_its_line(self):
        def twice(rank, pipeline):
            yield sc.F(0)
            yield sc.F(0)  # twice
            yield sc.B(0)
        with self.assertRaises(sc.InputError) as caught:
            sc.schedule(twice, ranks=1, micro_batches=1)
        problem = caught.exception.diagnostics[0]
        self.assertEqual((problem.code, problem.line), ("duplicate", line_with("twice")))

    def test_a_backward_before_its_forward_is_named_at_its_line(self):
        def early(rank, pipeline):
            yield sc.B(0)  # early
            yield sc.F(0)
        with self.assertRaises(sc.InputError) as caught:
            sc.schedule(early, ranks=1, micro_batches=1)
        self.assertEqual(caught.exception.diagnostics[0].line, line_with("early"))

    def test_a_deadlock_is_infeasible_and_shows_its_cycle(self):
        def crossed(rank, pipeline):
            if rank == 0:
                yield sc.F(0)
                yield sc.B(0)  # crossed
                yield sc.F(1)
                yield sc.B(1)
            else:
                yield sc.F(1)
                yield sc.B(1)
                yield sc.F(0)
                yield sc.B(0)
        with self.assertRaises(sc.Infeasible) as caught:
            sc.schedule(crossed, ranks=2, micro_batches=2)
        problem = caught.exception.diagnostics[0]
        self.assertEqual(problem.code, "cycle")
        self.assertIn("0B0", problem.message)
        self.assertEqual(problem.file, __file__)

    def test_a_function_has_the_diagnosis_of_the_built_in_schedule(self):
        ours = sc.run(SCENARIO, backend="ideal", schedule=one_f_one_b)["diagnosis"]
        theirs = sc.run(SCENARIO, backend="ideal")["diagnosis"]
        self.assertTrue(theirs)
        for name in ("cause", "lost_s"):
            self.assertEqual([finding[name] for finding in ours], [finding[name] for finding in theirs])

    def test_suggestions_keep_the_order_of_a_function(self):
        calls = []

        def counted(rank, pipeline):
            calls.append(pipeline.micro_batches)
            return one_f_one_b.order(rank, pipeline)
        suggestions = sc.run(SCENARIO, backend="ideal", schedule=counted)["diagnosis"][0]["suggestions"]
        more = next(s for s in suggestions if any(word.startswith("run.micro_batches=") for word in s["sets"]))
        count = int(next(word for word in more["sets"] if word.startswith("run.micro_batches=")).split("=")[1])
        self.assertIn(count, calls)
        again = sc.run(SCENARIO, backend="ideal", sets=more["sets"], schedule=one_f_one_b)
        self.assertAlmostEqual(more["period_s"], again.period, delta=1e-12)

    def test_stages_of_a_function_have_a_diagnosis_and_no_suggestion_changes_them(self):
        def halves(problem):
            names = [layer.name for layer in problem.layers]
            middle = len(names) // 2
            return [sc.stage(names[:middle], problem.devices[0]), sc.stage(names[middle:], problem.devices[1])]
        findings = sc.run(SCENARIO, backend="ideal", planner=halves)["diagnosis"]
        self.assertTrue(findings)
        for suggestion in findings[0]["suggestions"]:
            self.assertFalse([word for word in suggestion["sets"] if word.startswith("plan.")])

    def test_an_exception_of_the_function_arrives_and_the_next_request_works(self):
        def fails(rank, pipeline):
            yield sc.F(0)
            raise ZeroDivisionError("of the test")
        with self.assertRaisesRegex(ZeroDivisionError, "of the test"):
            sc.schedule(fails, ranks=2, micro_batches=1)
        self.assertEqual(sc.schedule("1f1b", ranks=1, micro_batches=1).makespan, 3)

    def test_a_wrong_value_is_refused(self):
        with self.assertRaisesRegex(TypeError, "write F\\(0\\)"):
            sc.schedule(lambda rank, pipeline: ["0F0"], ranks=1, micro_batches=1)

    def test_costs_reach_the_function(self):
        seen = []

        def looks(rank, pipeline):
            seen.append(pipeline.costs[rank])
            yield from one_f_one_b.order(rank, pipeline)
        sc.schedule(looks, ranks=2, micro_batches=2, forward=3, input_gradient=4, weight_gradient=5)
        self.assertEqual([(c["forward"], c["backward"]) for c in seen[:2]], [(3, 9), (3, 9)])


class Tables(unittest.TestCase):
    """A function and a file in compare, plan, search and sweep, next to the built-in schedule that has the same order."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        order = sc.schedule(one_f_one_b, ranks=4, micro_batches=8).grid()
        rows = [",".join(cell for cell in line.split("|")[1].split() if "U" not in cell) for line in order.splitlines() if "|" in line]
        self.file = self.folder / "written.csv"
        self.file.write_text("\n".join(rows) + "\n")

    def test_compare(self):
        table = sc.compare(SCENARIO, schedules=["1f1b", self.file, one_f_one_b])
        periods = {row["name"]: row["period_s"] for row in table}
        self.assertEqual(periods["written"], periods["1f1b"])
        self.assertEqual(periods["one_f_one_b"], periods["1f1b"])

    def test_plan(self):
        for schedule, name in ((one_f_one_b, "one_f_one_b"), (self.file, "written")):
            ours = sc.plan(SCENARIO, planners=["balanced", "brute"], schedule=schedule)
            theirs = sc.plan(SCENARIO, planners=["balanced", "brute"])
            self.assertEqual({row["schedule"] for row in ours}, {name})
            self.assertEqual([row["period_s"] for row in ours], [row["period_s"] for row in theirs])

    def test_search_asks_a_function_for_the_order_of_each_plan(self):
        ours = sc.search("examples/search-slow-link", schedules=[one_f_one_b])
        theirs = sc.search("examples/search-slow-link", schedules=["1f1b"])
        self.assertEqual({row["schedule"] for row in ours}, {"one_f_one_b"})
        self.assertEqual([row["period_s"] for row in ours], [row["period_s"] for row in theirs])
        self.assertAlmostEqual(sc.run(ours.best, backend="ideal").period, ours[0]["period_s"], delta=1e-12)

    def test_search_by_an_executor_with_a_function(self):
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            ours = sc.search("examples/search-slow-link", schedules=[one_f_one_b], executor=executor)
        self.assertEqual(ours.text, sc.search("examples/search-slow-link", schedules=[one_f_one_b]).text)

    def test_search_runs_a_file_on_plans_of_its_shape(self):
        table = sc.search(SCENARIO, schedules=[self.file], sets={"plan.micro_batch_size": 2})
        self.assertEqual({(row["schedule"], row["stages"], row["micro_batches"]) for row in table}, {("written", 4, 8)})

    def test_an_exception_of_the_function_ends_the_search(self):
        def fails(rank, pipeline):
            raise ZeroDivisionError("of the test")
            yield
        with self.assertRaisesRegex(ZeroDivisionError, "of the test"):
            sc.search("examples/search-slow-link", schedules=[fails])

    def test_a_function_named_as_a_built_in_schedule_is_refused(self):
        with self.assertRaisesRegex(sc.InputError, "built-in schedule 'gpipe'"):
            sc.search("examples/search-slow-link", schedules=[sc.schedule_function(one_f_one_b.order, name="gpipe")])

    def swept(self, values, **more):
        file = self.folder / "sweep.yaml"
        file.write_text(f"schema: sweep/1\nbase: {pathlib.Path(SCENARIO).absolute()}\nbackend: ideal\n"
                        f"axes: {{run.schedule: {values}, run.micro_batches: [4, 8]}}\n")
        return sc.sweep(file, out=self.folder / "out.db", **more)

    def test_sweep(self):
        table = self.swept("[1f1b, one_f_one_b]", schedules=[one_f_one_b])
        rows = {(row["settings"]["run.schedule"], row["settings"]["run.micro_batches"]): row["period_s"] for row in table}
        for micro_batches in (4, 8):
            self.assertEqual(rows["one_f_one_b", micro_batches], rows["1f1b", micro_batches])
        self.assertIn("one_f_one_b", table.text)
        self.assertEqual(self.swept("[1f1b, {csv: written.csv}]")[3]["period_s"], rows["1f1b", 8])

    def test_a_sweep_without_the_function_refuses_its_name(self):
        with self.assertRaisesRegex(sc.InputError, "'one_f_one_b' is not known"):
            self.swept("[1f1b, one_f_one_b]")

    def test_a_point_without_a_plan_says_so_and_a_wrong_order_ends_the_sweep(self):
        table = self.swept("[1f1b, one_f_one_b]", schedules=[one_f_one_b], sets={"plan.stages": 5})
        self.assertEqual([row["message"] for row in table[:2]], [row["message"] for row in table[2:]])
        with self.assertRaisesRegex(sc.InputError, "missing"):
            self.swept("[forgets]", schedules=[sc.schedule_function(lambda rank, pipeline: [sc.F(0)], name="forgets")])


class Planners(unittest.TestCase):
    def test_a_function_equals_the_same_stages_in_a_scenario(self):
        def thirds(problem):
            names = [layer.name for layer in problem.layers]
            k = len(names) // 3
            parts = [names[:k], names[k:2 * k], names[2 * k:]]
            return [sc.stage(part, device) for part, device in zip(parts, problem.devices)]
        ours = sc.run(SCENARIO, backend="ideal", planner=thirds)
        details = sc.load(SCENARIO).details()
        stages = [{"layers": list(s.layers), "devices": list(s.devices), "micro_batch_size": 2} for s in thirds(details)]
        theirs = sc.run(SCENARIO, backend="ideal", sets={"plan": {"planner": "explicit", "stages": stages}})
        numpy.testing.assert_array_equal(ours.spans["end"], theirs.spans["end"])
        self.assertEqual(ours["setup"]["planner"], "explicit")

    def test_a_layer_twice_is_refused_at_the_line_of_its_stage(self):
        def overlaps(problem):
            names = [layer.name for layer in problem.layers]
            return [sc.stage(names, problem.devices[0]),
                    sc.stage(names[-1], problem.devices[1])]  # overlaps
        with self.assertRaises(sc.InputError) as caught:
            sc.run(SCENARIO, backend="ideal", planner=overlaps)
        problem = caught.exception.diagnostics[0]
        self.assertEqual((problem.file, problem.line), (__file__, line_with("overlaps")))

    def test_a_planner_sees_times_and_memory(self):
        problem = sc.load(SCENARIO).details()
        self.assertEqual(problem.micro_batches, 8)
        layer, device = problem.layers[1], problem.devices[0]
        self.assertGreater(problem.seconds(layer, device), 0)
        self.assertGreater(device.memory_bytes, 2**30)

    def test_the_name_of_a_planner(self):
        self.assertEqual(sc.run(SCENARIO, backend="ideal", planner="balanced")["setup"]["planner"], "balanced")


if __name__ == "__main__":
    unittest.main()
