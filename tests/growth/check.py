#!/usr/bin/env python3
"""The product may not grow in concepts: check.py, from the root of the project.

budgets.tsv has the most types for each 1,000 lines of a room, and the functions that are longer than 50 lines, each with a
reason. A type is the definition of a struct, class, enum or union, also inside of another. A function is counted from its
first line to its closing brace. A budget that is not used any more is an error too, so that budgets fall with the code.

    check.py --write    writes the budgets as they are now; reasons are kept
    check.py --counts   prints what else says how much there is to know: files, casts, headers with few users, and answers
                        to one question in several places"""
import collections
import pathlib
import re
import sys

FOLDERS = ("sim", "backends", "models", "topologies", "tools")
MOST_LINES, SLACK = 50, 1.0  # A budget of types may be this much above what a room has.
TYPE = re.compile(r"^\s*(?:template\s*<[^;{]*>\s*)?(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+"
                  r"(?:alignas\([^)]*\)\s*|\[\[[^\]]*\]\]\s*)?\w[\w:<>, ]*?\s*(?:final\s*)?(?::[^:;{][^;{]*)?\{", re.M)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
FUNCTION = re.compile(r"(  )?[A-Za-z_\[~].*\)[^;=]*\{$")
NO_FUNCTION = re.compile(r"\s*(?:namespace|struct|class|enum|union|if|for|while|switch|else|return|do)\b")


def sources():
    return [f for folder in FOLDERS for f in sorted(pathlib.Path(folder).rglob("*")) if f.suffix in (".cpp", ".hpp", ".cu", ".cuh")]


def room_of(file):
    """sim/plan, backends/cpu; models and topologies are one room each."""
    return "/".join(file.parts[:2]) if file.parts[0] in ("sim", "backends") and len(file.parts) > 2 else file.parts[0]


def long_functions(file, lines):
    begin = None
    for number, line in enumerate(lines, 1):
        if begin is None:
            if FUNCTION.match(line) and not NO_FUNCTION.match(line):
                begin = number, len(line) - len(line.lstrip()), line
        elif line.startswith(" " * begin[1] + "}"):
            if number - begin[0] - 1 > MOST_LINES:
                name = re.search(r"([\w:~]+)\(", begin[2])
                yield f"{file}:{name[1] if name else begin[2].strip()}", number - begin[0] - 1
            begin = None


def measured():
    """{room: types for each 1,000 lines}, and {file:function: lines} of those that are too long."""
    types, lines, long = {}, {}, {}
    for file in sources():
        text, room = file.read_text(), room_of(file)
        types[room] = types.get(room, 0) + len(TYPE.findall(COMMENT.sub("", text)))
        lines[room] = lines.get(room, 0) + text.count("\n")
        long.update(long_functions(file, text.split("\n")))
    types["all rooms"], lines["all rooms"] = sum(types.values()), sum(lines.values())
    return {room: 1000 * types[room] / lines[room] for room in types}, long


def users_of_headers(texts):
    """{header: how many files of the product include it, besides the source of the same name}."""
    users = collections.Counter({str(f): 0 for f in texts if f.suffix in (".hpp", ".cuh")})
    for file, text in texts.items():
        users.update(h for h in re.findall(r'#include "([^"]+)"', text) if h in users and pathlib.Path(h).with_suffix("") != file.with_suffix(""))
    return users


def counts():
    """(What, how many) of the whole product, in the order in which they are printed."""
    texts = {f: f.read_text() for f in sources()}
    everything = "".join(texts.values())
    scripts = [f for folder in ("report", "python", "playground") for f in pathlib.Path("tools", folder).rglob("*") if f.suffix in (".js", ".py")]
    users = users_of_headers(texts).values()
    named = lambda pattern, files: sum(bool(re.search(pattern, f.read_text())) for f in files)
    yield "types", sum(len(TYPE.findall(COMMENT.sub("", text))) for text in texts.values())
    yield "files of C++ and CUDA", len(texts)
    yield "lines of C++ and CUDA", everything.count("\n")
    yield "headers that one file or none includes", sum(n <= 1 for n in users)
    yield "headers that two files at most include", sum(n <= 2 for n in users)
    yield "casts to std::size_t", everything.count("static_cast<std::size_t>")
    yield "sources that name peak_memory_bytes", named("peak_memory_bytes", texts)
    yield "scripts of pages and Python that name it", named("peak_memory_bytes", scripts)
    yield "sources that price a collective by its curve or constants", named(r"(?<!Seconds )\b(collective_time|curve_time)\((?!Collective|std)", [f for f in texts if f.parts[1] != "cluster"])
    rows = r"^struct (?:ScheduleRow|PlanRow|Choice|SweepRow|Reproduced|NumberRow)\s*\{"
    yield "rows of runs that are no RunRow", len(re.findall(rows, everything, re.M))


def problems(budgets, rooms, long):
    for name, (most, _) in budgets.items():
        now = rooms.get(name, long.get(name))
        if now is None:
            yield f"budgets.tsv: there is no '{name}' any more, or it is short enough: remove the line"
        elif name in rooms and now > most:
            yield f"{name}: {now:.1f} types for each 1,000 lines, and its budget is {most}: find the type that already answers the question"
        elif name in rooms and now + SLACK < most:
            yield f"{name}: {now:.1f} types for each 1,000 lines: lower its budget of {most}"
        elif name in long and now > most:
            yield f"{name}: {now} lines, and its budget is {most:.0f}"
    for name in (rooms | long).keys() - budgets.keys():
        yield f"{name}: {'a room without a budget' if name in rooms else f'{long[name]} lines, and {MOST_LINES} are the most'}"


table = pathlib.Path(__file__).parent / "budgets.tsv"
rows = [line.split("\t") for line in table.read_text().splitlines()[1:]] if table.exists() else []
budgets = {name: (float(most), reason) for name, most, reason in rows}
rooms, long = measured()
if "--write" in sys.argv:
    now = {name: f"{value + 0.05:.1f}" for name, value in sorted(rooms.items())} | {name: str(value) for name, value in sorted(long.items())}
    table.write_text("room or function\tmost\treason\n" + "".join(
        f"{name}\t{most}\t{budgets.get(name, (0, 'as it is'))[1]}\n" for name, most in now.items()))
    sys.exit(0)
if "--counts" in sys.argv:
    for what, number in (*counts(), (f"functions of more than {MOST_LINES} lines", len(long)), ("types for each 1,000 lines", round(rooms["all rooms"], 1))):
        print(f"{number:>8}  {what}")
    sys.exit(0)
found = list(problems(budgets, rooms, long))
print("\n".join(found))
print(f"{len(rooms) - 1} rooms, {rooms['all rooms']:.1f} types for each 1,000 lines, {len(long)} functions of more than {MOST_LINES} lines, {len(found)} problems")
sys.exit(1 if found else 0)
