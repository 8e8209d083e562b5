#!/usr/bin/env python3
"""What tools/gpu_check reads from nvidia-smi, ncu, cuobjdump and compute-sanitizer: toolkit_reports.py."""
import fnmatch
import re
import time
import unittest
import unittest.mock

from stand_ins import StandIns, load, root


class Tools(StandIns):
    """Output of tools of the driver and of the toolkit, from files in gpu_reports that were written by hand in their formats."""
    def setUp(self):
        super().setUp()
        self.add_tools()

    def test_clocks_power_and_what_limits_them(self):
        import gpu_reports
        texts = {n: (root / f"tests/tools/gpu_reports/nvidia-smi-{n}.txt").read_text() for n in ("570", "525")}
        self.assertEqual(gpu_reports.clocks(texts["570"]), {
            "sm_mhz": 1755, "largest_sm_mhz": 1980, "power_w": 693.42, "power_limit_w": 700, "limited_by": ["SW Power Cap"],
            "limited_us": {"SW Power Capping": 2500000, "Sync Boost": 0, "SW Thermal Slowdown": 0, "HW Thermal Slowdown": 0, "HW Power Braking": 0}})
        self.assertEqual(gpu_reports.clocks(texts["525"]), {
            "sm_mhz": 345, "largest_sm_mhz": 1980, "power_w": 71.5, "power_limit_w": 700, "limited_by": ["HW Slowdown", "HW Thermal Slowdown"]})
        with self.assertRaises(ValueError):
            gpu_reports.clocks("No devices were found\n")

    def test_the_table_says_when_the_clock_was_limited(self):
        code, text, log, file, rows = self.run_with(words=("--rows", "kernels"))
        self.assertEqual(code, 0, text + log)
        self.assertEqual([file[when]["sm_mhz"] for when in ("clocks_before", "clocks_after")], [1755, 1755])
        self.assertIn("  clocks before: SM 1755 of 1980 MHz, 693 of 700 W", text.splitlines())
        self.assertIn("  clocks were limited: before (SW Power Cap); after (SW Power Cap)", text.splitlines())
        text = self.run_with(words=("--rows", "kernels"), SMI="nvidia-smi-idle.txt")[1]
        self.assertIn("  no throttle reason was active at any look", text.splitlines())
        text = self.run_with(words=("--rows", "kernels"), SMI="sass.txt")[1]
        self.assertIn("are not known: nvidia-smi: it has no SM clock", text)

    def test_clocks_are_looked_at_while_a_row_runs(self):
        """The row ends when it has been looked at."""
        how = 'while [ "$(grep -c nvidia-smi "$NOTES")" -lt 3 ]; do sleep 0.1; done; exit 0'
        code, text, _, _, rows = self.run_with(words=("--rows", "kernels"), fails="kernels_on_gpu", how=how)
        self.assertEqual(rows["kernels"]["clocks"], {"sm_mhz": [1755, 1755], "limited_by": ["SW Power Cap"], "most_power_w": 693.42})
        self.assertIn("before (SW Power Cap); after (SW Power Cap); kernels (SW Power Cap)", text)

    def test_times_of_kernels(self):
        code, text, log, _, rows = self.run_with(words=("--rows", "ncu"))
        self.assertEqual(code, 0, text + log)
        table = rows["ncu"]["kernel_times"]
        self.assertEqual([(k["kernel"].split("(")[0], k["launches"]) for k in table],
                         [("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", 2), ("void each_kernel<__nv_bfloat16, int>", 1)])
        # 1,000.5 us at 40 % and 2 ms at 70 %.
        self.assertAlmostEqual(table[0]["us"], 3000.5)
        self.assertAlmostEqual(table[0]["memory_percent"], (1000.5 * 40 + 2000 * 70) / 3000.5)
        self.assertAlmostEqual(table[0]["compute_percent"], 90)
        self.assertEqual((table[1]["us"], table[1]["memory_percent"], table[1]["compute_percent"]), (0.5, 88.25, 12))
        self.assertRegex(text, r"3000\.5 us +2 x +memory +60 % +computation +90 % +nvjet")
        asked = next(n for n in self.notes() if "/ncu " in n)
        for words in ("--clock-control none --section SpeedOfLight --csv", "--nvtx-include F3 of stage 0/ --nvtx-include B3 of stage 0/",
                      "model.hidden=2048", "model.precision=mixed"):
            self.assertIn(words, asked)
        self.assertNotIn("why", rows["ncu"])
        import gpu_plan
        with unittest.mock.patch.object(gpu_plan, "LAUNCHES", 3):
            check = load("gpu_check").Check(self.place, self.out, self.out, "a", "b", False, {"ncu": 9}, 99, time.monotonic())
            def run(name, *_, read):
                check.add(name, "ok", **read(""))
            check.run = run
            with unittest.mock.patch.object(gpu_plan, "tool", return_value="ncu"), \
                 unittest.mock.patch.object(check, "keep", return_value=root / "tests/tools/gpu_reports/ncu.csv"):
                gpu_plan.kernels_of_mixed(check, "ncu")
        self.assertEqual(check.row("ncu")["why"], "cut at 3 launches")
        for ncu, result, why in (("ncu-refused.txt", "not here", "ERR_NVGPUCTRPERM"), ("ncu-nothing.txt", "no kernels", "")):
            *_, rows = self.run_with(words=("--rows", "ncu"), NCU=ncu)
            self.assertEqual(rows["ncu"]["result"], result)
            self.assertIn(why, rows["ncu"].get("why", ""))

    def test_widths_of_accesses_and_doubles(self):
        code, text, log, _, rows = self.run_with(words=("--rows", "sass"))
        self.assertEqual(code, 0, text + log)
        kernels = rows["sass"]["kernels"]
        self.assertEqual(sorted(k[:20] for k in kernels), ["_Z11copy_kernelI13__", "_Z11copy_kernelIdEvP", "_Z20cross_entropy_ke"])
        self.assertEqual(kernels["_Z11copy_kernelI13__nv_bfloat16EvPKT_PS1_"], {"loads": {"128": 2, "16": 1}, "stores": {"128": 1}, "fp64": 0})
        self.assertIn("1 of 3 kernels access 128 bits at once", text)
        *_, rows = self.run_with(words=("--rows", "sass"), SASS="sass-doubles.txt")
        self.assertEqual((rows["sass"]["result"], rows["sass"]["why"]), ("fp64", "doubles in _Z10add_kernelIfEvPKT_PS0_"))
        *_, rows = self.run_with(words=("--rows", "sass"), SASS="ncu-nothing.txt")
        self.assertEqual(rows["sass"]["result"], "exit 1")  # That of grep, which finds no line.

    def test_kernels_run_under_each_tool_of_compute_sanitizer(self):
        code, text, log, _, _ = self.run_with(words=("--rows", "*check"))
        self.assertEqual(code, 0, text + log)
        asked = [n.split("compute-sanitizer ")[1] for n in self.notes() if "/compute-sanitizer " in n]
        self.assertEqual([n.split(f"{self.place}")[0] for n in asked],
                         ["--tool memcheck --report-api-errors no --error-exitcode 9 ", "--tool racecheck --error-exitcode 9 ",
                          "--tool initcheck --error-exitcode 9 "])

    def test_what_rows_name_in_the_sources_is_there(self):
        """A filter of tests that matches none passes, and so do names of kernels and ranges."""
        import gpu_plan

        def sources(pattern):
            return "".join(file.read_text() for file in root.glob(pattern))

        cases = re.findall(r'TEST_CASE\("([^"]*)"', sources("tests/backends/cuda/kernels/*.cpp"))
        for _, case in gpu_plan.SANITIZERS.values():
            self.assertEqual(sum(fnmatch.fnmatchcase(name, case.removeprefix("--test-case=")) for name in cases), 1, case)
        runs = re.findall(r'TEST_CASE\("([^"]*)"', sources("tests/backends/cuda/run/device_test.cpp"))
        self.assertEqual({"NCCL" in name for name in runs}, {True, False})
        for kernel in gpu_plan.FP64_ON_PURPOSE:
            self.assertIn(kernel, sources("backends/cuda/kernels/*.cu"))
        self.assertIn('"{}{} of stage {}"', sources("backends/cuda/enqueue.cpp"))


if __name__ == "__main__":
    unittest.main()
