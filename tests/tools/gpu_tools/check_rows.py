#!/usr/bin/env python3
"""The rows of tools/gpu_check with programs that are stand-ins: check_rows.py. What each row asks for, what it says of what it read, and
what a row that fails costs."""
import json
import os
import subprocess
import sys
import tarfile
import time
import unittest
import unittest.mock

from stand_ins import StandIns, load, root


class Check(StandIns):
    def test_both_calls_end_with_a_table_and_files(self):
        code, text, log, file, rows = self.run_with()
        self.assertEqual(code, 0, text + log)
        lines = text.splitlines()
        self.assertEqual(lines[:2], ["NVIDIA Stand-in", "  clocks before: there is no nvidia-smi"])
        self.assertEqual([line.split("  ")[1].strip() for line in lines[2:len(rows) + 2]], list(rows))
        self.assertEqual((file["device"], file["commit"], "emulated" in file), ("NVIDIA Stand-in", "1.2.3 (abcdef0)", False))
        self.assertRegex(file["date"], r"^20\d\d-\d\d-\d\d$")
        self.assertEqual(list(rows), list(load("gpu_check").PLAN))
        self.assertEqual({name: (row["result"], row["why"]) for name, row in rows.items() if row["result"] != "ok"},
                         {"PyTorch": ("not here", "no PyTorch here"), "ncu": ("not here", "there is no ncu"),
                          "sass": ("not here", "there is no cuobjdump"),
                          **{name: ("not here", "there is no compute-sanitizer") for name in ("memcheck", "racecheck", "initcheck")}})
        self.assertIn("clocks, power and throttle reasons are not known: there is no nvidia-smi", text)
        self.assertEqual(file["loopback"], True)
        self.assertIn("kernel", file)
        self.assertEqual((rows["gpipe, 8 parts"]["simulated_ms"], rows["gpipe, 8 parts"]["error"]), (1100, 0.1))
        self.assertEqual(rows["whole numbers on cuda"]["largest_difference"], 0)
        self.assertEqual(rows["run, mixed"]["attention"], ["b: cuDNN 9"])
        self.assertEqual(rows["mixed, 8 parts"]["timed_products"], ["a: 1 of 8"])
        self.assertEqual(sorted(p.name for p in (self.out.parent / "profiles").iterdir()),
                         [f"stand-in-{n}.yaml" for n in ("2-parts", "4-parts-big", "4-parts-nccl", "4-parts", "8-parts")])
        one = json.loads((self.out.parent / "validated/stand-in-gpipe-2-parts.json").read_text())
        self.assertEqual({key: one[key] for key in ("schema", "device", "driver", "commit", "date")},
                         {"schema": "validation/1", "device": "NVIDIA Stand-in", "driver": file["driver"],
                          "commit": "1.2.3 (abcdef0)", "date": file["date"]})
        self.expect_words()
        self.expect_figures(text, file)

    def expect_words(self):
        """Words with which programs have to be started."""
        notes = self.notes()
        for words in ("cluster.parts=8", "run.gpu.precision=bf16", "run.gpu={timing: off, graph: true}", "run.gpu.messages=nccl",
                      "cluster.multiprocessors=100"):
            self.assertTrue([n for n in notes if words in n], words)
        for words in notes:  # Where all GPUs were seen rows on parts would take whole ones.
            parts = "carved-gpu" in words
            self.assertTrue(words.endswith("on GPU 0" if parts else "on GPU any"), words)
        big = [n for n in notes if "model.hidden=2048" in n]
        self.assertTrue(all("run.micro_batches=8" in n and ("carved-gpu" not in n or "precision=tf32" in n or "precision=mixed" in n)
                            for n in big))
        self.assertEqual(sum("cpu-transformer" in n for n in big), 6)  # Mixed three times.
        self.assertEqual(sum("validate" in n for n in big), 3)

    def test_rows_that_ran_on_whole_gpus_fail_and_leave_no_files(self):
        code, text, *_, rows = self.run_with(MACHINE="4 x Stand-in", CUDA_VISIBLE_DEVICES="3,5", words=("--rows", "* 2 parts/* 4 parts, NCCL/mixed*"))
        self.assertEqual(code, 1)
        wrong = [name for name, row in rows.items() if row["result"] not in ("ok", "not here")]
        self.assertEqual(wrong, [name for name in rows if " parts" in name])
        self.assertEqual({(rows[name]["result"], rows[name]["why"]) for name in wrong}, {("not on parts", "it ran on 4 x Stand-in")})
        self.assertEqual([list((self.out.parent / kind).iterdir()) for kind in ("profiles", "validated")], [[], []])
        self.assertEqual({n.split(" on GPU ")[1] for n in self.notes() if "carved-gpu" in n}, {"3"})

    def expect_figures(self, text, file):
        # 3 * 32 samples * (4 layers * (24 * 1024 * 2048^2 + 4 * 1024^2 * 2048) + 2 * 1024 * 2048 * 8000 words) in 0.5 s, of 1e13.
        share = 3 * 32 * (4 * (24 * 1024 * 2048**2 + 4 * 1024**2 * 2048) + 2 * 1024 * 2048 * 8000) / 0.5 / 1e13
        rows = {row["check"]: row for row in file["checks"]}
        self.assertAlmostEqual(rows["bf16, one stream"]["share_of_gemm"], share)
        self.assertAlmostEqual(rows["mixed, one stream, run 3"]["share_of_gemm"], share / 4)  # Its ceiling is of numbers stored in bf16.
        self.assertNotIn("share_of_gemm", rows["exact, one stream"])  # Its ceiling was not measured.
        self.assertEqual(file["facts"]["bf16_over_stored_bf16"], 0.25)
        self.assertAlmostEqual(file["facts"]["products_on_8_parts_over_4"], (8 / 16) / (20 / 32))
        self.assertEqual(file["facts"]["period_without_events_ms"], {"calls, no events": 500, "graphs": 500})
        self.assertEqual((file["facts"]["launch_eager_us"], file["facts"]["launch_in_graph_us"]), (3, 2))
        self.assertEqual((file["facts"]["enqueue_calls_ms"], file["facts"]["enqueue_graph_ms"]), (250, 125))

    def test_rows_that_repeat_each_other_have_a_smallest_a_median_and_a_largest(self):
        how = """echo "{\\"period_s\\": 0.$(grep -c precision=mixed "$NOTES"), \\"learnt\\": {}, \\"enqueued\\": {}}"; exit 0"""
        code, text, log, file, rows = self.run_with(words=("--rows", "mixed, one stream*/1f1b, 4 parts*"), fails="precision=mixed", how=how)
        self.assertEqual(code, 0, text + log)
        facts = file["facts"]
        self.assertEqual(facts["mixed, one stream, repeated"], {"runs": 3, "min_ms": 100, "median_ms": 200, "max_ms": 300})
        self.assertEqual(facts["1f1b, 4 parts, repeated"]["runs"], 3)
        self.assertIn("mixed, one stream, repeated: runs 3, min_ms 100, median_ms 200, max_ms 300", text)

    def test_our_time_over_that_of_pytorch(self):
        line = '{"torch": "9.9", "precision": "bf16", "how": "one stream", "seconds": 0.25}'
        other = line.replace("one stream", "one stream, CUDA graph").replace("0.25", "null")
        fast = line.replace("one stream", "one stream, compiled (max-autotune)").replace("0.25", "0.125")
        torch = f"import sys\nprint(sys.argv, file=open({str(self.place / 'asked')!r}, 'w'))\n"
        torch += "".join(f"print('{x}')\n" for x in (line, other, fast)) + "sys.exit(0)"
        code, text, _, file, rows = self.run_with(torch=torch, words=("--rows", "mixed, one stream/PyTorch"))
        self.assertEqual(code, 0, text)
        self.assertEqual(file["facts"]["ours_over_pytorch"], {"bf16, one stream": 2, "bf16, one stream, compiled (max-autotune)": 4})
        self.assertEqual((rows["PyTorch, bf16, one stream, CUDA graph"]["result"], rows["PyTorch"]["version"]), ("not run", "9.9"))
        self.assertIn("'--precisions', 'bf16', '--ways', 'eager', 'compiled'", (self.place / "asked").read_text())
        # What was measured before it came to an end is kept.
        torch = f"import os\nprint('{line}', flush=True)\nos.abort()"
        _, _, _, file, rows = self.run_with(torch=torch, words=("--rows", "mixed, one stream/PyTorch"))
        self.assertEqual((rows["PyTorch"]["result"], rows["PyTorch, bf16, one stream"]["ours_over_theirs"]), ("exit -6", 2))
        # Alone it has nothing to be compared with.
        code, text, _, file, rows = self.run_with(torch=f"print('{line}')\nimport sys\nsys.exit(0)", words=("--rows", "PyTorch"))
        self.assertEqual((code, rows["PyTorch, bf16, one stream"]["why"]),
                         (0, "no ratio: mixed, one stream was not measured in this call"))
        self.assertNotIn("ours_over_pytorch", file["facts"])

    def test_what_needs_a_profile_runs_in_its_call_and_after_it(self):
        import gpu_plan as g
        names = list(g.PLAN)
        for name, row in g.PLAN.items():
            if row.run is g.validated:
                (maker,) = [n for n, other in g.PLAN.items() if other.run is g.profile and other.arguments[0] == row.arguments[0]
                            and other.arguments[1:] == row.arguments[2:]]
                self.assertEqual(g.PLAN[maker].call, row.call, name)
                self.assertLess(names.index(maker), names.index(name))

    def test_output_that_is_cut_marks_its_row(self):
        how = "head -c 9000000 /dev/zero | tr '\\0' x; exit 0"
        _, text, *_, rows = self.run_with(words=("--rows", "kernels/losses, fp32*"), fails="kernels_on_gpu", how=how)
        self.assertEqual((rows["kernels"]["result"], rows["kernels"]["cut"]), ("ok", "its output is cut after 8 MiB"))
        self.assertIn("its output is cut after 8 MiB", text)
        self.assertNotIn("cut", rows["losses, fp32 on cuda"])
        how = """echo '{"learnt": {"losses": [3.0, 4.0], "weights_sha256": "00"}}'; """ + how
        row = self.expect_only("losses, fp32 on cuda", "unreadable", fails="backend cuda*precision=fp32", how=how, rows="losses, fp32*")
        self.assertIn("cut", row)
        self.add_tools()  # Lines that were read are no answer where there were more.
        lines = f'cat "{root}/tests/tools/gpu_reports/sass.txt"; yes "LDG.E R0, [R2.64] ;" | head -c 9000000'
        self.add_program(self.place / "tools/cuobjdump", f"#!/bin/sh\n{lines}\n")
        self.expect_only("sass", "output cut", rows="sass")

    def test_what_fails_costs_its_row_and_the_exit_code(self):
        self.assertIn("broken", self.expect_only("runs", "exit 1", fails="run_on_gpu*exclude")["output"])
        self.expect_only("kernels", "exit 77", fails="kernels_on_gpu", how="exit 77")
        self.expect_only("runs", "exit -11", fails="run_on_gpu*exclude", how="kill -11 $$")
        self.expect_only("graphs", "unreadable", fails="graph:", how="head -c 100000 /dev/urandom; exit 0")
        self.expect_only("gpipe, 2 parts", "unreadable", fails="parts=2*schedule=gpipe", how="exit 0")
        self.expect_only("exact, one stream", "unreadable", fails="precision=exact",
                         how="echo '{\"period_s\": \"x\"}'; exit 0")

    def test_a_profile_that_fails_leaves_validations_to_measure_themselves(self):
        self.expect_only("profile, 8 parts", "exit 4", rows="*4 parts/*8 parts", fails="profile*parts=8", how="exit 4")
        notes = self.notes()
        self.assertFalse([n for n in notes if "validate" in n and "parts=8" in n and "--set profile=" in n])
        self.assertTrue([n for n in notes if "validate" in n and "parts=4" in n and "--set profile=" in n])

    def test_a_program_that_is_missing_costs_its_row(self):
        (self.place / "backends_cuda_kernels_on_gpu").unlink()
        self.assertIn("No such file", self.expect_only("kernels", "exit 127")["output"])

    def test_other_losses_and_other_weights(self):
        text = json.dumps({"learnt": {"losses": [3.0, 4.1], "weights_sha256": "00"}})
        self.expect_only("losses, fp32 on cuda", "other losses", fails="teacher*backend cuda*precision=fp32", rows="losses*/whole*",
                         how=f"echo '{text}'; exit 0")
        text = json.dumps({"learnt": {"losses": [3.0, 4.0], "weights_sha256": "01"}})
        self.expect_only("whole numbers on cuda", "other weights", fails="teacher*backend cuda*integers", rows="losses*/whole*",
                         how=f"echo '{text}'; exit 0")

    def test_losses_without_the_cpu_are_not_compared(self):
        code, text, *_, rows = self.run_with(words=("--rows", "losses, fp32 on cuda/whole numbers on cuda"), fails="teacher*backend cpu",
                                             how="exit 4")
        on_cuda = {name: (row["result"], row["why"]) for name, row in rows.items() if name.endswith(" on cuda")}
        self.assertEqual(on_cuda, {f"{what} on cuda": ("not compared", f"{what} on cpu has no losses") for what in ("losses, fp32", "whole numbers")})
        self.assertEqual(code, 1)
        self.assertIn("whole numbers on cpu has no losses", text)

    def test_a_row_on_the_gpu_comes_with_its_row_on_the_cpu(self):
        code, text, log, _, rows = self.run_with(words=("--rows", "losses, fp32 on cuda"))
        self.assertEqual((code, list(rows)), (0, ["losses, fp32 on cpu", "losses, fp32 on cuda"]), text + log)

    def test_what_a_first_look_saw_is_kept_where_it_did_not_get_through(self):
        seen = {"eager_us": 3.0, "in_graph_us": 2.0}
        for later, result in (("echo '}'; exit 1", "exit 1"), ("kill -9 $$", "exit -9")):
            row = self.expect_only("first look", result, later=later)
            self.assertEqual(row["facts"]["gaps"], {"one_stream": seen})
        self.expect_only("first look", "events do not hold", later="echo ', \"events\": {\"a\": false}'")
        for what in ("sum_is_the_same_on_all", "sum_repeats_its_bits"):
            self.expect_only("first look", "sums differ", later=f"echo ', \"several_gpus\": {{\"{what}\": false}}'")
        self.expect_only("first look", "sums differ",
                         later="echo ', \"several_gpus\": {\"sum_is_the_same_on_all\": true, \"sum_repeats_its_bits\": null}'")
        for disjoint, used in ((False, 8), (True, 4)):
            carving = json.dumps([{"launched": {"disjoint": disjoint, "partitions": [{"granted": 8, "used": used}]}}])
            self.expect_only("first look", "parts are not apart", later=f"echo ', \"carving\": '; echo '{carving}'")

    def test_a_late_row_keeps_its_time_and_rows_at_the_end_are_left_out(self):
        check = load("gpu_check").Check(self.place, self.out, self.out, "a", "b", False, {}, 40, 100.0)

        def time_for(seconds, to_come, elapsed):
            check.to_come = to_come
            with unittest.mock.patch("gpu_rows.time.monotonic", return_value=100.0 + elapsed):
                return check.time_for(seconds)

        self.assertEqual(time_for(10, {"b": 20, "c": 5}, 0), 15)  # Its 10 and the 5 that are spare.
        self.assertEqual(time_for(5, {}, 0), 15)  # At most 3 times its own.
        self.assertEqual(time_for(20, {"c": 5}, 15), 20)
        self.assertEqual(time_for(10, {"c": 5, "d": 10, "e": 1}, 15), 10)  # 25 are left, so e has no time, and d none to give away.
        self.assertEqual(time_for(30, {}, 15), 0)

    def test_each_call_fits_its_time_and_the_smoke_test_25_seconds(self):
        g = load("gpu_check")
        for call, calls in g.CALLS.items():
            self.assertLessEqual(sum(row.seconds for row in g.PLAN.values() if row.call in calls), g.LIMIT, call)
            self.assertLessEqual(g.LIMIT, 330)
            done = subprocess.run([sys.executable, str(root / "tools/gpu_check"), call, "--list"], capture_output=True, text=True)
            rows = [name for name, row in g.PLAN.items() if row.call in calls]
            self.assertEqual([line.split(" s  ")[1] for line in done.stdout.splitlines()], [*rows, "expected for all"])
            seconds = sum(g.PLAN[name].seconds for name in rows)
            self.assertEqual(int(done.stdout.splitlines()[-1].split()[0]), seconds)
            self.assertRegex((root / "backends/cuda/README.md").read_text(), rf"(?m)^\| `\./check {call}` .*\| {seconds} \|$")
        self.assertLessEqual(sum(row.seconds for row in g.PLAN.values() if row.call == "smoke"), 25)
        self.assertEqual({row.call for row in g.PLAN.values()}, {call for calls in g.CALLS.values() for call in calls})

    def test_what_is_emulated_says_so_everywhere(self):
        self.add_tools()
        code, text, log, file, rows = self.run_with(words=("--dry-run", "second", "--rows", "PyTorch/ncu/sass"), GPU="Emulated GPU",
                                                    torch="raise SystemExit(3)")
        self.assertEqual(code, 0, text + log)
        lines = text.splitlines()
        self.assertEqual([line.split(" s  ")[1] for line in lines[:len(rows)]], list(rows))  # The rows that are expected.
        self.assertFalse([n for n in self.notes() if "/tools/" in n])
        self.assertTrue(all(row["emulated"] for row in file["checks"]))
        self.assertEqual({rows[name]["result"] for name in ("PyTorch", "ncu", "sass", "memcheck")}, {"not here"})
        parts = [n for n in self.notes() if "carved-gpu" in n]
        self.assertTrue(parts and all(n.endswith("on GPU any of 1") for n in parts))
        self.assertTrue(file["emulated"])
        self.assertIn("no time here means anything", file["warning"])
        device = lines.index("Emulated GPU")
        self.assertEqual((file["device"], lines[device + 1]), ("Emulated GPU", "  clocks before: an emulated GPU has no clocks"))
        for line in lines[device + 2:device + 2 + len(rows)]:
            self.assertTrue(line.endswith("EMULATED"), line)
        for file in (self.out.parent / "validated").iterdir():
            self.assertTrue(file.name.startswith("emulated-gpu-"))
            one = json.loads(file.read_text())
            self.assertEqual((one["device"], "EMULATED" in one["emulated"]), ("Emulated GPU", True))

    def test_one_file_has_all_that_is_worth_keeping(self):
        self.add_tools()
        self.out = self.place / "out/first.json"
        code, text, log, file, _ = self.run_with(words=("first",), OUT=str(self.place))
        self.assertEqual(code, 0, text + log)
        archive = self.place / "first.tar"  # In $OUT; what takes more files is beside the table.
        self.assertFalse((self.out.parent / "first.tar").exists())
        with tarfile.open(archive) as tar:
            names = tar.getnames()
            self.assertEqual(json.load(tar.extractfile("first.json")), file)
        self.assertEqual(sorted(n.split("/")[0] for n in names), ["first.json", "nvidia-smi-after.txt", "nvidia-smi-before.txt",
                                                                  "profiles"] + 6 * ["validated"])
        self.assertIn("first.tar", text.splitlines()[-1])
        done = subprocess.run([sys.executable, str(root / "tools/gpu_file"), "--root", str(self.place), str(archive)],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        filed = sorted(str(p.relative_to(self.place)) for kind in ("models", "scenarios") for p in (self.place / kind).rglob("*.*"))
        self.assertEqual(len(filed), 1 + 6 + 1)
        self.assertIn("scenarios/validated/stand-in-first.json", filed)

    def test_what_an_earlier_call_left_is_not_taken_for_a_result(self):
        for _ in range(2):  # The second time, files of the first are there.
            code, text, *_ = self.run_with(words=("--rows", "profile, 2 parts/gpipe, 2 parts"), fails=" validate ", how="exit 1")
            self.assertEqual(code, 1)
            with tarfile.open(self.out.with_suffix(".tar")) as tar:
                self.assertEqual(sorted(tar.getnames()), ["check.json", "profiles/stand-in-2-parts.yaml"])
            (self.out.parent / "validated").mkdir(exist_ok=True)
            (self.out.parent / "validated/stand-in-gpipe-2-parts.json").write_text("{}")

    def test_rows_that_were_asked_for(self):
        code, text, log, file, rows = self.run_with(words=("--rows", "kernels/*, 2 parts"))
        self.assertEqual(code, 0, text + log)
        self.assertEqual(list(rows), ["kernels", "profile, 2 parts", "1f1b, 2 parts", "gpipe, 2 parts"])
        self.assertFalse([n for n in self.notes() if "first_run" in n or "cluster.parts=4" in n])
        done = subprocess.run([sys.executable, str(root / "tools/gpu_check"), "second", "--rows", "runs", "--list"],
                              capture_output=True, text=True)
        self.assertEqual([line.split(" s  ")[1] for line in done.stdout.splitlines()[:2]], ["runs", "ncu"])
        code, _, log, *_ = self.run_with(words=("--rows", "nothing"))
        self.assertEqual(code, 1)
        self.assertIn("no row is like nothing", log)

    def test_the_shapes_have_the_work_that_is_said_of_them(self):
        import gpu_plan as g
        for name, tera in (("large", 5.8), ("big", 46)):  # Tera operations in an iteration.
            self.assertAlmostEqual(g.flops(g.SHAPES[name]) / 1e12, tera, delta=0.03 * tera)

    def test_a_gpu_that_is_not_divided_runs_its_other_rows(self):
        doctor = "echo '           GPU 0: NVIDIA Stand-in, 1 GiB, 132 multiprocessors not divided: the driver has no cuGreenCtxCreate'; exit 0"
        code, text, _, file, rows = self.run_with(fails=" doctor ", how=doctor)
        self.assertEqual((code, file["not_divided"]), (1, "the driver has no cuGreenCtxCreate"))
        self.assertIn("run, 4 parts ", text)
        self.assertEqual({r["result"] for n, r in rows.items() if " parts" in n}, {"skipped"})
        self.assertEqual({r["result"] for n, r in rows.items() if " parts" not in n}, {"ok", "not here"})

    def test_without_a_loopback_interface_nothing_that_needs_it_starts(self):
        import gpu_plan
        with unittest.mock.patch.object(gpu_plan.socket, "create_server", side_effect=OSError), \
             unittest.mock.patch.object(gpu_plan.subprocess, "run") as run, unittest.mock.patch.dict(os.environ):
            check = load("gpu_check").Check(self.place, self.out, self.out, "a", "b", False,
                                            {"runs": 1, "runs, NCCL": 1, "1f1b, 4 parts, NCCL": 1}, 10, time.monotonic())
            gpu_plan.prepare_nccl(check)
            self.assertEqual(run.call_args.args[0], ["ip", "link", "set", "lo", "up"])
        self.assertEqual(list(check.to_come), ["runs"])
        self.assertEqual({row["result"] for row in check.rows}, {"skipped"})
        self.assertFalse(check.head["loopback"])

    def test_what_cannot_be(self):
        code, text, log, *_ = self.run_with(words=("--dry-run",))
        self.assertEqual((code, text), (2, ""))
        self.assertIn("sees NVIDIA Stand-in", log)
        self.out = root / "models/profiles/check.json"
        code, _, log, file, _ = self.run_with()
        self.assertEqual((code, file), (2, None))
        self.assertIn("tools/gpu_file", log)
        self.out = self.place / "out/check.json"
        code, text, *_ = self.run_with(fails=" doctor ", how="echo '  cuda     there is no driver here'; exit 0")
        self.assertEqual(code, 77)
        self.assertIn("--dry-run", text)
        code, _, log, *_ = self.run_with(fails=" doctor ")
        self.assertEqual(code, 1)
        self.assertIn("broken\n\ngpu_check: stagecraft doctor ended with 1", log)
        done = subprocess.run([str(root / "tools/gpu_check"), "--bin", "/nowhere"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.splitlines()),
                         (1, ["gpu_check: [Errno 2] No such file or directory: '/nowhere/stagecraft'"]))


class Smoke(StandIns):
    """The beginning of the first call, which must succeed."""
    def test_its_first_failure_stops_everything_after_one_rerun_that_waits_for_each_call(self):
        how = 'for i in $(seq 40); do echo "line $i of ${STAGECRAFT_CUDA_SYNC:-none}"; done; exit 4'
        code, text, _, file, rows = self.run_with(words=("first",), fails="run examples/carved-gpu", how=how)
        self.assertEqual(code, 1)
        self.assertEqual({name: row["result"] for name, row in rows.items()},
                         {"losses, fp64 on cpu": "ok", "losses, fp64 on cuda": "ok", "run, 4 parts": "exit 4"})
        lines = text.splitlines()
        for sync in ("none", "1"):  # The last 30 lines, and of the run that waits for each call its own.
            self.assertNotIn(f"line 10 of {sync}", lines)
            self.assertEqual([f"line {i} of {sync}" in lines for i in (11, 40)], [True, True])
        self.assertEqual(rows["run, 4 parts"]["synchronous"], {"exit": 4, "output": [f"line {i} of 1" for i in range(11, 41)]})
        self.assertIn("again with STAGECRAFT_CUDA_SYNC=1: exit 4", lines)
        self.assertEqual(file["not_run"][:2], ["run, mixed", "first look"])
        self.assertTrue([line for line in lines if line.startswith("the smoke test failed") and "first look" in line])
        self.assertEqual([("carved-gpu" in n, "first_run" in n) for n in self.notes()[-2:]], [(True, False), (True, False)])
        with tarfile.open(self.out.with_suffix(".tar")) as tar:
            self.assertEqual(json.load(tar.extractfile("check.json")), file)

    def test_other_losses_stop_it_too(self):
        text = json.dumps({"learnt": {"losses": [3.0, 4.0001], "weights_sha256": "00"}})
        code, text, _, _, rows = self.run_with(words=("first",), fails="teacher*backend cuda", how=f"echo '{text}'; exit 0")
        self.assertEqual((code, list(rows)), (1, ["losses, fp64 on cpu", "losses, fp64 on cuda"]))
        self.assertEqual(rows["losses, fp64 on cuda"]["result"], "other losses")
        self.assertIn("again with STAGECRAFT_CUDA_SYNC=1: exit 0", text)


if __name__ == "__main__":
    unittest.main()
