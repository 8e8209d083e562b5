#!/usr/bin/env python3
"""Which tests tools/test omits: omitted_tests.py, from the root of the project. A small repository has tools/test of this tree;
stand-ins for cmake and ctest note what they are asked for."""
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = {"CUDA": "backends/cuda/run/device", "MPI": "mpi", "published": "sim/published/predictions", "reference": "reference/weights"}
ALWAYS = ("sim/core/activity", "cli/reproduce", "backends/real/groups")
FILES = {
    "README.md": "", "CMakeLists.txt": "", ".gitignore": "/build/\n", "scenarios/one.yaml": "",
    "backends/cuda/run.cpp": '#include "backends/cuda/run.hpp"\n', "backends/cuda/run.hpp": '#include "sim/core/clock.hpp"\n',
    "sim/core/clock.hpp": "", "sim/core/clock.cpp": '#include "sim/weights/policy.hpp"\n', "sim/weights/policy.hpp": "", "sim/weights/policy.cpp": "",
    "backends/real/mpi/wire.cpp": "", "tests/cli/sweep_together.py": "from helpers import run\n", "tests/support/helpers.py": "",
    "sim/published/rows.cpp": '#include "sim/cost/price.hpp"\n', "sim/cost/price.hpp": "",
    "tests/reference/orders_test.cpp": '#include "reference/orders.hpp"\n#include "sim/cost/price.hpp"\n',
    "tests/reference/orders.hpp": "", "sim/output/page.cpp": '#include "sim/core/clock.hpp"\n',
}
STAND_INS = {
    "cmake": 'mkdir -p build/ci; printf "// a comment\\nCMAKE_CXX_COMPILER:STRING=clang++\\nFLAGS:STRING=%s\\n" "${FLAGS-}" >build/ci/CMakeCache.txt',
    "ctest": 'printf "%s\\n" "$@" >"$NOTE"; eval "${WHILE_TESTING-}"; exit "${TESTS_EXIT-0}"',
}


def load_unchanged():
    specification = importlib.util.spec_from_file_location("unchanged", ROOT / "tests/unchanged.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


unchanged = load_unchanged()


def git(folder, *words):
    subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.org", *words], check=True, capture_output=True)


def write(root, name, text):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


class OmittedTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for name in [name for name in os.environ if name.startswith(("GIT_", "STAGECRAFT_"))]:
            del os.environ[name]
        os.environ.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null", PYTHONDONTWRITEBYTECODE="1")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        project, programs = (pathlib.Path(cls.folder.name) / name for name in ("project", "bin"))
        for name, text in FILES.items():
            write(project, name, text)
        for name in ("tools/test", "tests/unchanged.py"):
            write(project, name, "")
            shutil.copy(ROOT / name, project / name)
        for file, text in [(project / "tools/setup", "true"), *((programs / name, text) for name, text in STAND_INS.items())]:
            write(file.parent, file.name, f"#!/bin/sh\n{text}\n")
            file.chmod(0o755)
        git(project.parent, "init", "--quiet", "project")
        git(project, "add", "--all")
        git(project, "commit", "--quiet", "--message", "first")

    def setUp(self):
        folder = pathlib.Path(self.folder.name)
        self.root, self.note, self.programs = folder / self._testMethodName, folder / "note", folder / "bin"
        shutil.copytree(folder / "project", self.root)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.root)

    def omitted(self, expression):
        self.assertFalse([test for test in ALWAYS if re.search(expression, test)])
        return {group for group, test in TESTS.items() if re.search(expression, test)}

    def run_tests(self, *words, **environment):
        """Runs tools/test; returns the groups that it omits."""
        self.note.unlink(missing_ok=True)
        environment = {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}", "NOTE": str(self.note), **environment}
        done = subprocess.run(["tools/test", *words], env=environment, capture_output=True, text=True)
        self.output = done.stdout + done.stderr
        self.assertEqual(done.returncode, int(environment.get("TESTS_EXIT", 0)), self.output)
        asked = self.note.read_text().splitlines()
        omitted = self.omitted(asked[asked.index("-E") + 1] if "-E" in asked else "^$")
        self.assertEqual("`tools/test all` runs everything" in self.output, bool(omitted), self.output)
        return omitted

    def omit(self):
        """The groups that `unchanged.py omit` names, and its explanation."""
        with contextlib.redirect_stdout(io.StringIO()) as expression, contextlib.redirect_stderr(io.StringIO()) as explanation:
            unchanged.omit("build/ci")
        return self.omitted(expression.getvalue().strip() or "^$"), explanation.getvalue()

    def runs_after(self, change, text="// changed\n"):
        """The groups that run again when `change` is the only file that differs from the recorded commit; None removes it."""
        before = pathlib.Path(change).read_text() if pathlib.Path(change).exists() else None
        if text is None:
            pathlib.Path(change).unlink()
        else:
            write(self.root, change, text)
        omitted, explanation = self.omit()
        self.assertEqual(explanation.count(f"{change} changed"), len(TESTS) - len(omitted), explanation)
        if before is None:
            pathlib.Path(change).unlink()
        else:
            pathlib.Path(change).write_text(before)
        return set(TESTS) - omitted

    def test_unchanged_groups_are_omitted(self):
        self.assertEqual(self.run_tests(), set())
        self.assertIn("no run that passed is recorded", self.output)
        self.assertEqual(self.run_tests(), set(TESTS))
        self.assertEqual(self.run_tests("all"), set())
        for change in ("README.md", "tests/reference/README.md", "sim/output/page.cpp", "tests/support/other.hpp"):
            self.assertEqual(self.runs_after(change), set(), change)

    def test_groups_run_when_what_they_use_changed(self):
        self.run_tests()
        for change, groups in [
                ("backends/cuda/new.cpp", {"CUDA"}), ("backends/cuda/run.hpp", {"CUDA"}), ("backends/real/mpi/wire.cpp", {"MPI", "CUDA"}),
                ("tests/support/helpers.py", {"MPI"}), ("tests/reference/orders.hpp", {"reference"}), ("sim/published/rows.cpp", {"published"}),
                ("sim/core/clock.hpp", {"CUDA"}), ("sim/core/clock.cpp", {"CUDA"}), ("sim/cost/price.hpp", {"published", "reference"}),
                ("sim/cost/prices/new.cpp", {"published", "reference"})]:
            self.assertEqual(self.runs_after(change), groups, change)
        # sim/core links sim/weights, so a removed file of it matters to tests that use sim/core.
        self.assertEqual(self.runs_after("sim/weights/policy.cpp", None), {"CUDA"})

    def test_data_and_build_files_count_for_all(self):
        self.run_tests()
        for change in ("scenarios/one.yaml", "models/new.yaml", "topologies/new.csv", "sim/core/CMakeLists.txt", "tools/cmake/new.cmake",
                       "CMakePresets.json", "tools/test"):
            self.assertEqual(self.runs_after(change), set(TESTS), change)

    def test_a_failed_run_is_not_recorded(self):
        self.assertEqual(self.run_tests(TESTS_EXIT="8"), set())
        self.assertEqual(self.run_tests(), set())
        write(self.root, "backends/cuda/run.cpp", "// changed\n")
        git(self.root, "commit", "--all", "--message", "second")
        for result in ("8", "0"):
            self.assertEqual(self.run_tests(TESTS_EXIT=result), set(TESTS) - {"CUDA"})
        self.assertEqual(self.omit()[0], set(TESTS))

    def test_only_a_clean_work_tree_is_recorded(self):
        write(self.root, "backends/cuda/new.cpp", "")
        self.run_tests()
        self.assertIn("is not recorded", self.output)
        git(self.root, "add", "--all")
        git(self.root, "commit", "--message", "second")
        self.run_tests(WHILE_TESTING="echo >>sim/core/clock.cpp")
        self.assertIn("is not recorded", self.output)
        git(self.root, "stash")
        self.run_tests(WHILE_TESTING="git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m third")
        self.assertIn("is not recorded", self.output)
        self.assertEqual(self.omit()[0], set())

    def test_a_record_in_doubt_runs_everything(self):
        self.run_tests()
        record = pathlib.Path("build/tests_passed.json")
        good = record.read_text()
        unknown = re.sub('(?<="commit": ")[0-9a-f]+', "0" * 40, good)
        foreign = [good.replace(f'"{key}": "', f'"{key}": "0') for key in ("commit", "configuration")]
        for text in ("", "[]", "{}", "\0", unknown, *foreign):
            record.write_text(text)
            omitted, explanation = self.omit()
            self.assertEqual(omitted, set(), text)
            self.assertIn("Every test runs: ", explanation)
        record.write_text(good)
        self.assertEqual(self.omit()[0], set(TESTS))
        with unittest.mock.patch.dict(os.environ, STAGECRAFT_TRIALS="full"):
            self.assertEqual(self.omit()[0], set())
        self.assertEqual(self.run_tests(FLAGS="-O3"), set())

    def test_all_tests_run_without_git(self):
        self.run_tests()
        shutil.rmtree(".git")
        self.assertEqual(self.run_tests(), set())
        self.assertIn("is not recorded", self.output)

    def test_folders_of_groups_exist(self):
        for group in unchanged.GROUPS:
            for folder in group.folders:
                self.assertTrue(list(ROOT.glob(f"{folder}*")), folder)


if not shutil.which("git"):
    print("SKIPPED: there is no git")
    sys.exit(77)
unittest.main()
