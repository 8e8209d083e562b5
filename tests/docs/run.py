#!/usr/bin/env python3
"""Pages of the project say what is true: run.py STAGECRAFT, from the root of the project.

The scripts of a Slurm array give the results of the whole sweep.
In a block, "$ command" is run and what follows is compared; a line "..." stands for any lines. Blocks of tools/docs/commands.md
list commands, which have to end with 0; FILE is the quickstart there. All run in a copy of the scenarios. A block that builds a
network is left out where namespaces are refused. README and the pages of tasks have a length, and errors that they quote are those
that are printed.
CONCEPTS quotes in each *Here* what the commands of that page print, and so does its picture.
CONTRIBUTING follows values through the code; the names in its steps have to be in the files that it names.
READMEs of folders name every source file (maps.py).
Numbers of schedules, planners, scenarios and such in the text are counted."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

import maps

os.environ["STAGECRAFT_QUIET"] = "1"  # Notices of slow commands depend on the load of the machine.

binary = pathlib.Path(sys.argv[1]).resolve()
root = pathlib.Path.cwd()
passed, problems = 0, []
TIMEOUT = 1200 * int(os.environ.get("STAGECRAFT_TEST_PATIENCE", "1"))  # Seconds; more under a checker.


def blocks(page):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.M | re.S)
    return [text for language, text in fenced if not language]


def run(command, folder):
    environment = {**os.environ, "PATH": f"{binary.parent}:{os.environ['PATH']}", "STAGECRAFT_PATH": str(root)}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
    return done.returncode, done.stdout + done.stderr


def agrees(expected, came):
    """Lines of `came` are those expected, with any number of lines for each "..."."""
    at = 0
    anything = False
    for line in expected:
        if line.strip() == "...":
            anything = True
        elif anything:
            while at < len(came) and came[at] != line:
                at += 1
            if at == len(came):
                return f"nowhere: {line}"
            at, anything = at + 1, False
        elif at == len(came) or came[at] != line:
            return f"instead of: {line}\ncame:       {came[at] if at < len(came) else 'nothing'}"
        else:
            at += 1
    return "" if anything or at == len(came) else f"more came: {came[at]}"


def note(where, command, problem):
    global passed
    passed += not problem
    if problem:
        problems.append(f"{where}: $ {command}\n{problem}\n")


def may_build_networks():
    """Whether namespaces may be made here. Networks of pages are called `rehearsal`, to which the number of this process is added."""
    name = f"try{os.getpid()}"
    code, text = run(f"stagecraft cluster up boxes/star --name {name} --no-check", root)
    if is_refused := code == 4 and re.search("namespaces|iproute2|/dev/net/tun", text):
        print(f"skipped what builds networks: {text.strip()}")
    else:
        note("boxes/star", "stagecraft cluster up", code != 0 and text)
        run(f"stagecraft cluster down {name}", root)
    return not is_refused


def check_sessions(page, folder):
    """Returns the commands and all that they print."""
    said = []
    for block in blocks(page):
        if re.search(r"stagecraft cluster|--network namespaces", block) and not has_namespaces:
            continue
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *expected = part.rstrip("\n").split("\n")
            code, text = run(command.replace("rehearsal", f"rehearsal{os.getpid()}"), folder)
            text = text.replace(f"rehearsal{os.getpid()}", "rehearsal")
            said += [command, text]
            came = [line.rstrip() for line in text.rstrip("\n").split("\n")] if text else []
            wrong = agrees([line.rstrip() for line in expected], came)
            note(page, command, wrong or (code != 0 and f"it ended with {code}"))
    return " ".join(" ".join(said).split())


def is_said(text, said):
    """Whether the commands print it, or it is right arithmetic such as "4 * 2 = 8 samples" whose result or whose numbers they print."""
    text = " ".join(text.split())
    if equation := re.fullmatch(r"([\d.()+*/ -]+) = ([\d.]+)( ?.*)", text):
        left, result, unit = equation.groups()
        value = eval(left) * (100 if unit == " %" else 1)
        is_right = f"{value:.{len(result.partition('.')[2])}f}" == result
        return is_right and (is_said(result + unit, said) or all(is_said(number, said) for number in re.findall(r"[\d.]+", left)))
    return re.search(rf"(?<![\w.]){re.escape(text)}(?!\w|\.\d)", said) is not None


def check_words(page, said):
    """Each word has an instance, "*Here*: ...", with code that the commands print; before its definition a word is a link."""
    before = ""
    for section in re.sub(r"^```.*?^```$|^\|.*?$", "", page.read_text(), flags=re.M | re.S).split("\n## "):
        passed_on = ""
        for item in re.split(r"\n\n|\n(?=- )", section):
            definition, has_instance, here = item.partition("*Here*")
            for code in re.findall(r"`([^`]+)`", here):
                note(page, code, not is_said(code, said) and "no command of the page prints it")
            text = re.sub(r"`[^`]+`|\[[^\]]*\]\([^)]*\)", "", item)
            for number in re.findall(r"\d+", text.partition("*Here*")[2]):
                note(page, number, "it is not in code type, so nothing compares it")
            for word in re.findall(r"\*\*([\w -]+)\*\*", text):
                used = re.search(rf"\b{word}(e?s)?\b[^.]*", before)
                note(page, word, used and f"before its definition it is used without a link: {used[0]}" or not has_instance and "it has no instance")
            if item.startswith("- "):
                before += text
            else:
                passed_on += text
        before += passed_on


def check_picture(picture, drawing, said):
    """The inner svg is the drawing of the program as it is, and the commands print all other texts with numbers."""
    drawn = drawing.read_text().partition("</title>")[2].strip()
    note(picture, "timeline", drawn not in picture.read_text() and f"its inner svg is not what the program draws:\n{drawn}")
    for label in ElementTree.parse(picture).getroot().findall("{http://www.w3.org/2000/svg}text"):
        note(picture, label.text, re.search(r"\d", label.text) and not is_said(label.text, said) and "no command of the page prints it")


def check_lists(page, folder):
    """Has two runs to compare, an order to check, a script, times and a graph to import; other files and commands of other tests are skipped."""
    shutil.copy("scenarios/examples/csv-order.csv", folder / "order.csv")
    shutil.copy("tests/cli/models/task_durations.json", folder)
    (folder / "bert24.json").write_text('{"maxSizePerFPGA": 9e9, "maxFPGAs": 2, "nodes": [{"id": 1, "fpgaLatency": 1, "size": 4e9}, '
                                        '{"id": 2, "fpgaLatency": 4, "size": 4e9}], "edges": [{"sourceId": 1, "destId": 2, "cost": 0.5}]}')
    run("stagecraft run examples/quickstart --out out/b", folder)
    subprocess.run([sys.executable, root / "tests/support/nsight_file.py", folder / "run.sqlite"], check=True)
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 8, "intermediate_size": 128, "vocab_size": 1000,
        "max_position_embeddings": 128}))
    (folder / "train.sh").write_text("torchrun pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 "
                                     "--vocab-size 50304 --micro-batch-size 1 --global-batch-size 64 --bf16\n")
    (folder / "all_reduce.log").write_text(
        "# Collective test starting: all_reduce_perf\n#  Rank  0 on node0\n#  Rank  1 on node0\n# size count type redop root time\n"
        "1048576 262144 float sum -1 38.2\n16777216 4194304 float sum -1 130.1\n268435456 67108864 float sum -1 1120.4\n")
    for line in "".join(blocks(page)).split("\n"):
        command = line.split(" #")[0].strip().replace("FILE", "examples/quickstart")
        if not command.startswith("stagecraft ") or re.search(r"pipeedge|reproduce|validate|cluster (up|down)|convergence|\.onnx|simgrid-xml|kineto", command):
            continue
        # The answer is not looked at: a few plans in place of a limit of time, in which a slow machine may try none.
        code, text = run(command.replace("--time 60s", "--most 5").replace("--objective", "--most 5 --objective"), folder)
        note(page, command, code != 0 and f"it ended with {code}\n{text}")


def check_array(page, folder):
    """The scripts for Slurm, run for each task of a smaller array, and the table without them."""
    array, merge = [text for text in blocks(page) if text.startswith("#!/bin/bash")]
    name = "scenarios/sweeps/schedules.yaml"
    for task in (1, 2, 3):
        command = f"export SLURM_ARRAY_TASK_ID={task} SLURM_ARRAY_TASK_COUNT=3 SLURM_CPUS_PER_TASK=1\n{array.replace('FILE', name)}"
        code, text = run(command, folder)
        note(page, command, code not in (0, 3) and f"it ended with {code}\n{text}")  # 3: some of its points do not fit into memory.
    code, text = run(merge, folder)
    whole = run(f"stagecraft sweep {name} --out whole.db 2>/dev/null", folder)[1]
    note(page, merge, not whole or not text.startswith(whole) and f"{text}\ninstead of\n{whole}")


def check_names(page):
    """A numbered step such as "1. `FILE`: `name` does this" names what the file really has."""
    for path, text in re.findall(r"^\d+\. `([^`]+)`: (.*)$", page.read_text(), re.M):
        file = pathlib.Path(path)
        source = file.read_text() if file.is_file() else ""
        for name in re.findall(r"`([^`]+)`", text):
            missing = not re.search(rf"\b{re.escape(name.split('::')[-1])}\b", source)
            note(page, path, missing and f"'{name}' is not in the file")


def check_links():
    """What a page of the project names in a relative link is there."""
    for folder in (".", "sim", "backends", "models", "topologies", "scenarios", "tests", "tools"):
        for page in sorted((root / folder).glob("*.md" if folder == "." else "**/*.md")):
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
                missing = not re.match(r"\w+:", target) and not (page.parent / target).exists()
                note(page.relative_to(root), target, missing and "there is no such file")


def check_maps():
    for problem in maps.problems() or [""]:
        note("maps", "tests/docs/maps.py", problem)


NUMBERS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen "
           "twenty").split()


def count_of(kind):
    code, text = run(f"stagecraft list {kind} --format json", root)
    return len(json.loads(text)) if code == 0 else text


def count_of_predictions():
    return sum(len(re.findall(r"^ *- \[", file.read_text().split("\nrows:")[1], re.M)) for file in root.glob("scenarios/predictions/*.yaml"))


def check_counts():
    """Each pattern finds all places of a number in a page, and at least one."""
    measured = count_of_predictions()
    counted = [
        ("tools/docs/comparison.md", r"\| pipeline schedules \| (\w+),", count_of("schedules")),
        ("tools/docs/comparison.md", r"\| stale weights .*? \| (\w+) policies", count_of("weights")),
        ("tools/docs/comparison.md", r"\| planners \| (\w+),", count_of("planners")),
        ("tools/docs/commands.md", r"and\s+(\w+)\s+\[notebooks\]", len(list(root.glob("tools/python/notebooks/*.ipynb")))),
        ("README.md", r"([\d,]+) measured iterations", measured),
        ("tools/docs/commands.md", r"([\d,]+) published runs", measured),
        ("tools/docs/commands.md", r"\[(\w+) scenarios\]\(../../scenarios/examples/diagnosis\)", len(list(root.glob("scenarios/examples/diagnosis/*.yaml"))) - 1),  # In one, nothing is planted.
        ("tools/docs/trust.md", r"([\d,]+) (?:published|measured) iterations", measured),
        ("sim/MODEL.md", r"([\d,]+) measured iterations", measured)]
    for page, pattern, count in counted:
        found = re.findall(pattern, pathlib.Path(page).read_text())
        for number in found or ["nothing"]:
            value = NUMBERS.index(number.lower()) if number.lower() in NUMBERS else number.replace(",", "")
            note(page, pattern, str(value) != str(count) and f"it says {number}, but there are {count}")


def check_lengths():
    for page, most in {"README.md": 1200, **{page: 600 for page in TASKS}}.items():
        words = len(pathlib.Path(page).read_text().split())
        note(page, "length", words > most and f"{words} words, and at most {most} are read to the end")


def quoted(page, pattern):
    """The numbers in the one place of a page that matches."""
    found = re.findall(pattern, " ".join(pathlib.Path(page).read_text().split()))
    return found[0] if len(found) == 1 else found


def check_errors():
    """Pages quote the errors that `reproduce predictions` prints, and on unknown software the medians that `run` prints from intervals.csv."""
    code, text = run("stagecraft reproduce predictions", root)
    printed = re.search(r"^all +\d+ +([\d.]+) +([\d.]+)", text, re.M)
    for page in ("README.md", "tools/docs/trust.md"):
        said = quoted(page, r"The median error is ([\d.]+) %, and 90 % (?:of the errors )?are (?:with|be)(?:in|low) ([\d.]+) %")
        note(page, "stagecraft reproduce predictions", code != 0 or not printed or said != printed.groups() and f"it says {said}, and {printed.groups()} are printed")
    medians = dict(re.findall(r"^,,unknown,(\w+),\d+,[\d.]+,([\d.]+)$", (root / "scenarios/predictions/intervals.csv").read_text(), re.M))
    here = tuple(f"{100 * float(medians[kind]):.1f}" for kind in ("large", "experts", "small"))
    said = quoted("README.md", r"the median is ([\d.]+) % for large dense models, ([\d.]+) % with experts, and ([\d.]+) % for small")
    note("README.md", "intervals.csv", said != here and f"it says {said}, and the medians are {here}")


REFERENCE = {"commands", "comparison", "trust"}  # Pages that are looked into, and not read to the end.
pages = [page for page in sorted(pathlib.Path("tools/docs").glob("*.md")) if page.stem != "SKILL"]
TASKS = [page for page in pages if page.stem not in REFERENCE] + [pathlib.Path("scenarios/guide/edge/README.md")]
has_namespaces = may_build_networks()
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    shutil.copytree("scenarios", folder / "scenarios")
    check_sessions(pathlib.Path("scenarios/guide/README.md"), folder / "scenarios/guide")
    check_sessions(pathlib.Path("scenarios/guide/edge/README.md"), folder / "scenarios/guide/edge")
    check_sessions(pathlib.Path("README.md"), folder)
    for page in pages:
        (folder / page.stem).mkdir()
        check_sessions(page, folder / page.stem)
    check_sessions(pathlib.Path("sim/MODEL.md"), folder)
    said = check_sessions(pathlib.Path("sim/CONCEPTS.md"), folder)
    check_words(pathlib.Path("sim/CONCEPTS.md"), said)
    check_picture(pathlib.Path("sim/concepts.svg"), folder / "timeline.svg", said)
    check_lists(pathlib.Path("tools/docs/commands.md"), folder)
    check_array(pathlib.Path("sim/sweep/README.md"), folder)
check_names(pathlib.Path("CONTRIBUTING.md"))
check_counts()
check_lengths()
check_errors()
check_links()
check_maps()
print("\n".join(problems))
print(f"{passed} passed, {len(problems)} failed")
sys.exit(1 if problems or passed < 40 else 0)
