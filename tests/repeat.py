#!/usr/bin/env python3
"""Repeats tests while they may use only a part of the CPU time: repeat.py [-n TIMES] [--cpu PERCENTS] [-j JOBS] [TEST...]

    tests/repeat.py -n 50 --cpu 200,100,30 -j 8     as root, from the root of the project

TEST is a name of CTest; without one they are those with the label `signals`. 100 percent is one core. Each repetition has a
control group for itself, so the system needs the controller `cpu` of cgroups (version 1 or 2) and leave to make groups. Prints
how often each test failed, and what the first failure said; the exit code is 1 if any did."""
import argparse
import collections
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

PERIOD = 100_000  # Microseconds in which a group may compute for its share.
LEFT = 60  # Seconds after a test until a process counts as left.
GROUPS = itertools.count()


def controller():
    """The folder in which groups are made, and whether it is of version 2 of cgroups."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            return pathlib.Path(place), False
        if kind == "cgroup2" and "cpu" in pathlib.Path(place, "cgroup.controllers").read_text().split():
            return pathlib.Path(place), True
    sys.exit("repeat.py: there is no controller 'cpu' of cgroups on this system")


def group_with(percent):
    """A new control group with this share of the CPU time."""
    folder, is_second = controller()
    group = folder / f"stagecraft-repeat-{os.getpid()}-{next(GROUPS)}"
    quota = percent * PERIOD // 100
    try:
        if is_second and "cpu" not in (folder / "cgroup.subtree_control").read_text().split():
            (folder / "cgroup.subtree_control").write_text("+cpu")
        group.mkdir()
        if is_second:
            (group / "cpu.max").write_text(f"{quota} {PERIOD}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
    except OSError as error:
        sys.exit(f"repeat.py: no control group can be made: {error}")
    return group


def remove(group):
    """The processes that a test has left, which are ended. Those that were killed may need some time to be gone."""
    end, left = time.monotonic() + LEFT, []
    while True:
        processes = (group / "cgroup.procs").read_text().split()
        with contextlib.suppress(OSError):
            group.rmdir()
            return left
        if processes and time.monotonic() > end:
            for process in processes:
                with contextlib.suppress(OSError):
                    left.append(pathlib.Path(f"/proc/{process}/cmdline").read_text().replace("\0", " "))
                    os.kill(int(process), signal.SIGKILL)
        time.sleep(0.05)


def repeat(test, percent, build):
    """"passed", "skipped" or "failed", and what CTest said. A test that leaves processes has failed."""
    group = group_with(percent)

    def enter():
        (group / "cgroup.procs").write_text(str(os.getpid()))
    with tempfile.TemporaryFile("w+") as said:
        code = subprocess.run(["ctest", "--test-dir", build, "-R", f"^{test}$", "--no-tests=error", "--output-on-failure",
                               "--timeout", "36000"], stdout=said, stderr=subprocess.STDOUT, preexec_fn=enter).returncode
        said.seek(0)
        text = said.read()
    if left := remove(group):
        return "failed", text + "\n".join(["processes are left:", *left, ""])
    return "failed" if code != 0 else "skipped" if "(Skipped)" in text else "passed", text


def tests_with_signals(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "-L", "^signals$", "-LE", "^full$", "--show-only=json-v1"], capture_output=True, check=True)
    return [test["name"] for test in json.loads(listed.stdout)["tests"]]


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("-n", type=int, default=50, help="repetitions of each test at each share (default: 50)")
    words.add_argument("--cpu", default="100", help="shares in percent of a core, with commas between (default: 100)")
    words.add_argument("-j", type=int, default=1, help="repetitions at once, each with its share (default: 1)")
    words.add_argument("--build", default="build/dev", help="the build folder (default: build/dev)")
    words.add_argument("tests", nargs="*", metavar="TEST", help="names of CTest (default: those with the label signals)")
    asked = words.parse_args()
    any_failed = False
    with concurrent.futures.ThreadPoolExecutor(asked.j) as pool:
        repetitions = [(test, percent, [pool.submit(repeat, test, percent, asked.build) for _ in range(asked.n)])
                       for test in asked.tests or tests_with_signals(asked.build) for percent in map(int, asked.cpu.split(","))]
        for test, percent, runs in repetitions:
            ends = [run.result() for run in runs]
            counts = collections.Counter(end for end, _ in ends)
            print(f"{test}, {percent} %: " + ", ".join(f"{counts[end]} {end}" for end in ("passed", "skipped", "failed")), flush=True)
            failed = [text for end, text in ends if end == "failed"]
            any_failed = any_failed or bool(failed)
            print("".join(failed[:1]), end="", flush=True)
    return 1 if any_failed else 0


if __name__ == "__main__":
    sys.exit(main())
