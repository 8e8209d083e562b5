#!/usr/bin/env python3
"""Fails when a file includes a header of a room it may not know, or a library outside its one folder."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
core = {"sim/core"}
config = core | {"sim/config"}
cluster = config | {"sim/cluster"}
training = config | {"sim/model", "sim/training"}
cost = cluster | {"sim/model", "sim/cost"}
plan = cost | {"sim/plan"}
planners = plan | {"sim/planners"}
schedule = plan | {"sim/schedule"}
schedule_file = schedule | {"sim/schedule_file"}
weights = schedule_file | {"sim/training", "sim/weights"}
program = weights | {"sim/program"}
result = program | {"sim/result"}
output = result | {"sim/output"}
backend = {"sim/core", "sim/cluster", "sim/program", "backends"}
real = backend | {"sim/model", "sim/cost", "sim/training", "sim/weights", "backends/real"}
experiment = output | planners | {"backends", "models", "topologies", "sim/training", "sim/experiment"}
interchange = experiment | {"sim/interchange"}
diagnosis = interchange | {"sim/diagnosis"}
farm = {"sim/core", "backends", "sim/farm"}
ends = {name: diagnosis | farm | {f"sim/{name}"} for name in ("search", "sweep", "published")}
playground = diagnosis | {"sim/published", "tools/playground"}
tools = playground.union(*ends.values()) | {"backends/box", "tools/stagecraft"}
allowed = {
    "sim/core": core, "sim/config": config, "sim/training": training, "sim/model": config | {"sim/model"}, "sim/cluster": cluster,
    "sim/cost": cost, "sim/plan": plan, "sim/planners": planners, "sim/schedule": schedule, "sim/schedule_file": schedule_file, "sim/weights": weights, "sim/program": program,
    "sim/result": result, "sim/output": output, "sim/experiment": experiment, "sim/interchange": interchange, "sim/diagnosis": diagnosis, "sim/farm": farm, "sim/search": ends["search"], "sim/sweep": ends["sweep"],
    "sim/published": ends["published"], "tools/stagecraft": tools, "tools/playground": playground,
    "models": config | {"sim/model", "models"}, "topologies": cluster | {"topologies"},
    "backends/ideal": backend, "backends/des": backend | {"backends/des"},
    "backends/simgrid": backend | {"backends/des", "backends/simgrid"},
    "backends/cuda": real | {"backends/cuda"},
    "backends/fluid": backend | {"backends/des", "backends/fluid"},
    "backends/box": backend | {"backends/fluid", "backends/box"},
    "backends/real": real, "backends/cpu": real | {"backends/cpu"}, "backends": backend | {"sim/cost"},
}
# What a room may not include of a room that it knows: a Program says all that backends have to know of a model.
forbidden = {"backends": "sim/model/model_graph.hpp"}
# A library, and the only folders whose files may include it.
libraries = {r"simgrid/": ("backends/simgrid",), r"yaml-cpp/": ("sim/config",), r"CLI/": ("tools/stagecraft",),
             r"(sqlite3\.h|SQLiteCpp/)": ("sim/sweep",), r"protozero/": ("models/onnx", "sim/interchange"), r"toml\+\+/": ("sim/interchange/imports",), r"mpi\.h": ("backends/real",),
             r"charconv$": ("sim/core",),  # The libc++ of the playground has no from_chars for doubles; sim/core/from_chars.hpp has.
             r"(Eigen/|unsupported/)": ("backends/cpu",), r"(cuda|cublas|nccl)": ("backends/cuda",)}


def room_of(path):
    for room in sorted(allowed, key=len, reverse=True):
        if path == room or path.startswith(room + "/"):
            return room
    return None


problems = []
checked = 0
for folder in ("sim", "backends", "models", "topologies", "tools"):
    for file in sorted((root / folder).rglob("*.[hc]pp")):
        name = file.relative_to(root).as_posix()
        room = room_of(name)
        checked += 1
        for line, text in enumerate(file.read_text().splitlines(), 1):
            if match := re.match(r'#include "([^"]+)"', text):
                other = room_of(match[1])
                if other is None:
                    problems.append(f"{name}:{line}: {match[1]} is in no room that this test knows")
                elif any(room.startswith(a) and match[1] == header for a, header in forbidden.items()):
                    problems.append(f"{name}:{line}: {room} may not use {match[1]}")
                elif not any(other == a for a in allowed[room]):
                    problems.append(f"{name}:{line}: {room} may not use {match[1]}")
            elif match := re.match(r"#include <([^>]+)>", text):
                for library, homes in libraries.items():
                    if re.match(library, match[1]) and not name.startswith(tuple(home + "/" for home in homes)):
                        problems.append(f"{name}:{line}: <{match[1]}> belongs in {' and '.join(homes)} only")
for problem in problems:
    print(problem)
print(f"{checked} files checked, {len(problems)} problems")
sys.exit(1 if problems or checked < 50 else 0)
