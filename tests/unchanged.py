#!/usr/bin/env python3
"""Which tests need not run again, because nothing that they use changed since a commit at which they passed.

    unchanged.py commit              prints the commit, when the work tree equals it, and nothing otherwise
    unchanged.py omit BUILD          prints a regular expression for `ctest -E`, and explains it on the standard error output
    unchanged.py record BUILD COMMIT writes the record, build/tests_passed.json, when the work tree still equals COMMIT

Run it from the root of the project; BUILD is a configured build folder. tools/test calls it. A record names a commit, so only a
run of a clean work tree is recorded: what passed can then be looked up.

A group of tests uses the files of its folders, and what they include or import. A header stands for its whole room, because a
test that includes it links the library of the room. Every group uses data and build files. Other rooms of a program that a
test starts do not count: their own tests always run. Any doubt about the record runs every test."""
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys


@dataclasses.dataclass
class Group:
    name: str
    tests: str  # A regular expression for the names of tests in CTest.
    folders: tuple  # Files that begin with one of these.


GROUPS = (
    Group("CUDA", "^(backends/cuda/|support/emulated_gpu/|gpu_(tools/|(dry_run|kernels|run|first_run)$))",
          ("backends/cuda/", "backends/real/mpi/", "backends/real/processes/", "tests/backends/cuda/", "tests/support/emulated_gpu/", "tests/cli/run.py",
           "tools/gpu_", "tests/tools/gpu_")),
    Group("MPI", "^(mpi|(sweep|search)_together)(_interrupted|_lost)?$",
          ("backends/real/mpi/", "backends/real/processes/", "tests/backends/real/mpi/", "tests/backends/real/processes/", "sim/farm/", "sim/search/", "sim/sweep/", "tests/cli/sweep_together.py",
           "tests/search/together.py")),
    Group("published", "^(sim/published/|reproduce(_trained)?$)",
          ("sim/published/", "tests/sim/published/", "tools/stagecraft/commands/reproduce")),
    Group("reference", "^reference/", ("tests/reference/",)),
)
RECORD = pathlib.Path("build/tests_passed.json")
CODE = {".hpp", ".cuh", ".h", ".cpp", ".cu", ".py"}
INCLUDE, IMPORT = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M), re.compile(r"^\s*(?:from|import)\s+(\w+)", re.M)
# Tests of all groups read scenarios, whose models and clusters are built by name from these folders.
FOLDERS_OF_ALL = ("scenarios/", "models/", "topologies/", "tests/main.cpp", "tests/unchanged.py", "tools/setup", "tools/test")
BUILD_FILES = ("CMakeLists.txt", ".cmake", "CMakePresets.json")


class Doubt(Exception):
    """Why every test has to run."""


def git(*words):
    try:
        done = subprocess.run(["git", *words], capture_output=True)
    except FileNotFoundError:
        raise Doubt("there is no git") from None
    if done.returncode != 0:
        raise Doubt(f"git {words[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="replace")


def check_work_tree():
    if git("rev-parse", "--show-prefix").strip():
        raise Doubt("the folder is a part of another repository")


def clean_commit():
    """The commit that the work tree equals; otherwise an empty text."""
    check_work_tree()
    return "" if git("status", "--porcelain", "--untracked-files=all") else git("rev-parse", "HEAD").strip()


def configuration(build):
    """A hash of what tests depend on besides the project's files: options, compilers, libraries, GPUs and variables STAGECRAFT_*."""
    build = pathlib.Path(build)
    # CMake rewrites its internal entries, and how it spells the compiler, whenever it configures.
    entries = [line for line in (build / "CMakeCache.txt").read_text().splitlines()
               if re.match(r"[\w.-]+:(?!INTERNAL)\w+=", line) and not re.match(r"CMAKE_\w+_COMPILER:", line)]
    compilers = [file.read_text() for file in sorted(build.glob("CMakeFiles/*/CMake*Compiler.cmake"))]
    environment = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("STAGECRAFT_")]
    gpus = [str(file) for file in sorted(pathlib.Path("/dev").glob("nvidia[0-9]*"))]
    return hashlib.sha256("\n".join([str(build), *entries, *compilers, *environment, *gpus]).encode()).hexdigest()


def passed_commit(build):
    """The commit of the record."""
    try:
        record = json.loads(RECORD.read_text())
        commit, recorded = record["commit"], record["configuration"]
    except FileNotFoundError:
        raise Doubt("no run that passed is recorded") from None
    except (ValueError, KeyError, TypeError):
        raise Doubt(f"{RECORD} is not a record") from None
    if recorded != configuration(build):
        raise Doubt("compilers, options, libraries, GPUs or variables STAGECRAFT_* differ from the run that passed")
    if not re.fullmatch("[0-9a-f]{40,64}", str(commit)):
        raise Doubt(f"{RECORD} names no commit")
    check_work_tree()
    git("cat-file", "-e", f"{commit}^{{commit}}")
    return commit


def listed(*words):
    return {name for name in git(*words).split("\0") if name}


def kind(name):
    return pathlib.PurePath(name).suffix


def place(name):
    """What a file that is used stands for: itself in tests; elsewhere its room, as sim/plan or models, whose library is linked."""
    parts = pathlib.PurePath(name).parts[:-1]
    if not parts or parts[0] == "tests":
        return name
    return "/".join(parts[:1] if parts[0] in ("models", "topologies") else parts[:2]) + "/"


class Uses:
    """Which of the files of the project use which."""

    def __init__(self, files):
        self.files, self.python, self.places_of_file = files, {}, {}
        for name in files:
            if kind(name) == ".py":
                self.python.setdefault(pathlib.PurePath(name).stem, []).append(name)

    def places(self, name):
        """The places of what a file includes or imports."""
        if name not in self.places_of_file:
            text = pathlib.Path(name).read_text(errors="replace") if os.path.isfile(name) and kind(name) in CODE else ""
            if kind(name) == ".py":
                used = [file for module in IMPORT.findall(text) for file in self.python.get(module, ())]
            else:
                used = [file for header in INCLUDE.findall(text)
                        for file in (header, os.path.normpath(f"{os.path.dirname(name)}/{header}"), f"tests/{header}") if file in self.files]
            self.places_of_file[name] = {place(file) for file in used}
        return self.places_of_file[name]

    def closure(self, folders):
        """All places that the files of `folders` use, directly or not; `folders` are among them."""
        waiting, visited = list(folders), set(folders)
        while waiting:
            folder = waiting.pop()
            following = set().union(*(self.places(name) for name in self.files if name.startswith(folder))) - visited
            waiting += following
            visited |= following
        return visited


def reasons(commit):
    """For each group a changed file that its tests use, or None."""
    untracked = listed("ls-files", "-z", "--others", "--exclude-standard")
    changed = sorted(name for name in listed("diff", "--name-only", "--no-renames", "-z", commit) | untracked if kind(name) != ".md")
    uses = Uses(listed("ls-files", "-z") | untracked)
    for group in GROUPS:
        places = tuple(uses.closure(group.folders + FOLDERS_OF_ALL))
        yield group, next((name for name in changed if name.startswith(places) or name.endswith(BUILD_FILES)), None)


def omit(build):
    def tell(text):
        print(text, file=sys.stderr)
    try:
        commit = passed_commit(build)
        groups = list(reasons(commit))
    except Doubt as doubt:
        return tell(f"Every test runs: {doubt}.")
    omitted = [group for group, reason in groups if not reason]
    if omitted:
        tell(f"These tests are omitted: {', '.join(group.name for group in omitted)}, because nothing that they use changed since they passed "
             f"at {commit[:10]}; `tools/test all` runs everything.")
        print("|".join(group.tests for group in omitted))
    for group, reason in groups:
        if reason:
            tell(f"The {group.name} tests run: {reason} changed since {commit[:10]}.")


def record(build, commit):
    try:
        if not commit or clean_commit() != commit:
            return print("The run is not recorded, because the work tree differs from its commit.")
    except Doubt as doubt:
        return print(f"The run is not recorded: {doubt}.")
    RECORD.write_text(json.dumps({"commit": commit, "configuration": configuration(build)}) + "\n")
    print(f"The run is recorded: tests passed at {commit[:10]}.")


def main():
    command, *words = sys.argv[1:]
    if command == "commit":
        try:
            print(clean_commit())
        except Doubt:
            print()
    else:
        {"omit": omit, "record": record}[command](*words)


if __name__ == "__main__":
    main()
