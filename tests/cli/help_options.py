#!/usr/bin/env python3
"""What an error tells to write exists: help_options.py STAGECRAFT, from the root of the project.

Each line "= help: ..." that the tests of commands expect is read with the command of its case. An option in it must be an
option of the command that the line names ("stagecraft run --what-if"), or else of the command of the case; an option of one
KIND of `import` must be of the kind of the case. What follows --set must be a field that `stagecraft explain` knows. Options
in the sources' texts must be options of some command."""
import pathlib
import re
import subprocess
import sys

binary = str(pathlib.Path(sys.argv[1]).resolve())
HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]+)")
# Options of Nsight Systems, Megatron-LM, SimGrid and ASTRA-sim, and names that users take for options of ours.
FOREIGN = {"cuda-graph-trace", "simulate-result-dir", "pipeline-model-parallel-layout", "cfg", "log", "workload-configuration",
           "comm-group-configuration", "output", "json", "csv", "silent"}
# Programs of others, whose options follow them.
OTHERS = re.compile(r"(?:nsys|gunzip|ulimit|torchrun|mpirun|perf|pip|git|cmake)\b[^;,]*")


def run(*words):
    return subprocess.run([binary, *words], capture_output=True, text=True, timeout=60)


COMMANDS = [m[1] for m in re.finditer(r"^  ([a-z][a-z-]*)  ", run("--help").stdout, re.M)]
options_of = {}


def options(command):
    """Each option of a command, with the kinds that it is for, or None for all."""
    if command not in options_of:
        found, kind = {"help": None}, None
        for line in run(command, "--help").stdout.splitlines():
            if heading := re.match(r"(?:Only for (.*)|[A-Z].*):?$", line):
                kind = heading[1].rstrip(":") if heading[1] else None
            elif match := re.match(r"  +(?:-\w,)?\s*--([a-z-]+)", line):
                found[match[1]] = kind
        options_of[command] = found
    return options_of[command]


def cases(path):
    """The command of each case of a file, with its lines of help."""
    command, helps = "", []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("$ "):
            command = line[2:]
        elif match := re.match(r"[>~] +(?:=|\.\*) help: (.*)", line):
            helps.append((number, command, match[1]))
    return helps


def invocations(text):
    """(command, kind) of each `stagecraft COMMAND KIND` in a text."""
    return [(m[1], m[2] or "") for m in re.finditer(r"stagecraft ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", text) if m[1] in COMMANDS]


def is_of_framework(name, of):
    """Whether an import, an export or a check by rules tells to change an option of the framework itself."""
    return any(kind in ("megatron", "deepspeed") or command == "check" for command, kind in of) and all(
        name not in options(c) for c, _ in of)


problems, checked = [], 0


def check_option(where, name, text, of):
    global checked
    checked += 1
    known = [(c, k) for c, k in of if name in options(c) and options(c)[name] in (None, k)]
    if not known:
        problems.append(f"{where}: --{name} is no option of {' or '.join(' '.join(filter(None, o)) for o in of)}: {text}")


fields = {}


def is_field(path):
    """Names of files, devices and items are no fields: the steps before the first of these are."""
    if path not in fields:
        fields[path] = run("explain", path).returncode == 0
    return fields[path]


for path in sorted(HERE.rglob("*.test")):
    for number, command, text in cases(path):
        where, of = f"{path.relative_to(ROOT)}:{number}", invocations(command)
        bare = OTHERS.sub("", text)
        for part in re.split(r"; |, (?=or )", bare):
            named = invocations(part)
            for name in set(OPTION.findall(part)) - FOREIGN:
                if is_of_framework(name, of):
                    continue
                check_option(where, name, text, named or of or [("run", "")])
        for field in re.findall(r"--set '?([a-z_]+(?:\.[\w-]+)*)=", bare):
            checked += 1
            kind = of[0] if of else ("run", "")
            if kind[0] != "import" and not is_field(field):
                problems.append(f"{where}: '{field}' is no field: {text}")

# Texts of the sources: an option that no command has misleads everywhere.
EVERY = {name for command in COMMANDS for name in options(command)} | {"version", "reference"}
# Options of frameworks, of nvcc.
SKIPPED = ("sim/interchange/bridge", "sim/interchange/imports/", "sim/interchange/exports/", "sim/interchange/rules/", "sim/cost/software.cpp", "backends/cuda/")
for folder in ("sim", "models", "topologies", "backends", "tools/stagecraft"):
    for path in sorted((ROOT / folder).rglob("*.cpp")):
        name = str(path.relative_to(ROOT))
        if name.startswith(SKIPPED):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', line.split("//")[0]):
                for option in set(OPTION.findall(OTHERS.sub("", literal))) - FOREIGN:
                    checked += 1
                    if option not in EVERY:
                        problems.append(f"{name}:{number}: no command has an option --{option}: {literal}")

print("\n".join(problems))
print(f"{checked} options and fields, {len(problems)} problems")
sys.exit(1 if problems or checked < 150 else 0)
