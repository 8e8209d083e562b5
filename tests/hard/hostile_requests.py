"""Damaged and malicious requests to `stagecraft serve`:

    hostile_requests.py STAGECRAFT [REQUESTS [SEED]]

Valid requests of every kind get values of other types, numbers of other sizes, damaged bytes, and answers of a function
that are no orders. What has to hold, whatever the line:

- it gets one answer, a result or an error, after any news and questions, within LIMIT seconds of computing time;
- the error is of the input, the machine or the scenario: never `internal`, and never two for one line;
- the process goes on, within 2 GiB, and a run that it has answered before can still be drawn;
- its answers are UTF-8.
"""
import copy
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from processes import stat  # noqa: E402

root = pathlib.Path(__file__).resolve().parents[2]
binary = str(pathlib.Path(sys.argv[1]).resolve())
count = int(sys.argv[2]) if len(sys.argv) > 2 else 60
if os.environ.get("STAGECRAFT_TRIALS") == "full":
    count *= 10
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
LIMIT = 20 * int(os.environ.get("STAGECRAFT_TEST_PATIENCE", "1"))
MEMORY = 2 << 30
place = pathlib.Path(tempfile.mkdtemp(prefix="stagecraft-requests-"))
(place / "s.yaml").write_text("""schema: scenario/2
model: {builder: uniform, layers: 4, forward: 1 ms, backward: 2 ms}
cluster: threads-8
plan: {planner: balanced, stages: 2, micro_batch_size: 1}
run: {schedule: 1f1b, micro_batches: 4, iterations: 2}
software: none
""")
(place / "w.yaml").write_text("schema: sweep/1\nbase: s.yaml\nbackend: ideal\naxes: {run.micro_batches: [2, 4]}\n")

ORDER = {"name": "mine", "placement": "linear", "chunks": 1, "file": "order.py", "line": 3}
PLAN = {"file": "plan.py", "line": 7, "stages": [{"name": "a", "layers": ["l0", "l1"], "devices": ["thread0"], "line": 8, "micro_batch_size": 1},
                                                 {"name": "b", "layers": ["l2", "l3"], "devices": ["thread1"], "line": 9, "micro_batch_size": 1}]}
REQUESTS = [
    ("version", {}), ("explain", {"path": "bubble"}), ("load", {"file": "s.yaml", "sets": ["run.micro_batches=8"], "details": True}),
    ("check", {"files": ["s.yaml", "w.yaml"], "sets": []}), ("run", {"file": "s.yaml", "sets": [], "backend": "ideal", "diagnose": True, "memory": True}),
    ("run", {"file": "s.yaml", "backend": "fluid", "diagnose": False, "order": ORDER}), ("run", {"file": "s.yaml", "backend": "ideal", "diagnose": False, "plan": PLAN}),
    ("schedule", {"name": "zb-h1", "ranks": 4, "microbatches": 8, "f": 1, "i": 1, "w": 0.5, "comm": 0.1, "recompute": "full", "sets": []}),
    ("schedule", {"name": "mine", "ranks": 2, "microbatches": 4, "chunks": 1, "order": ORDER}), ("draw", {"run": 1, "what": "gantt", "width": 80}),
    ("draw", {"run": 1, "what": "svg"}), ("draw", {"run": 1, "what": "html"}), ("draw", {"run": 2, "what": "memory.csv"}),
    ("compare", {"file": "s.yaml", "sets": [], "schedules": "gpipe,1f1b", "backend": "ideal", "by": "period", "replay": 1}),
    ("plan", {"file": "s.yaml", "sets": [], "planners": "balanced", "backend": "ideal", "replay": 1}),
    ("search", {"file": "s.yaml", "sets": [], "schedules": ["1f1b"], "weights": ["flush"], "objective": "time", "most": 10, "contended": True, "front": 3, "threads": 1, "orders": 2}),
    ("search", {"file": "s.yaml", "sets": [], "schedules": ["1f1b"], "most": 10, "contended": False, "front": 3, "orders": 2, "seconds": 5, "executor": True}),
    ("search_task", {"file": "s.yaml", "sets": [], "schedules": ["1f1b"], "most": 10, "contended": False, "question": "another", "task": "{}", "left": 1}),
    ("compare", {"file": "s.yaml", "sets": [], "schedules": "1f1b", "functions": [ORDER], "backend": "ideal"}),
    ("plan", {"file": "s.yaml", "sets": [], "planners": "balanced", "backend": "ideal", "order": ORDER}),
    ("search", {"file": "s.yaml", "sets": [], "schedules": [], "functions": [ORDER], "most": 10, "contended": False, "front": 3, "threads": 2}),
    ("sweep", {"file": "w.yaml", "sets": ["run.schedule=mine"], "functions": [ORDER], "backend": "ideal", "jobs": 1, "out": "f.db"}),
    ("sweep", {"file": "w.yaml", "sets": [], "only": [], "backend": "ideal", "jobs": 1, "out": "w.db"}),
    ("sweep", {"file": "w.yaml", "sets": [], "only": [], "backend": "ideal", "out": "v.db", "run": False, "parts": ["w.db"]}), ("release", {"runs": [3, 4]}),
]
ODD = [None, True, False, 0, 1, 2, 3, -1, -0.0, 0.5, 1e300, -1e300, 1e-300, 2**31, -2**31 - 1, 2**40, 2**63, 2**64, 10**40, "", "x", "1", "nan", [], {}, [[]], [None], [1, "a"],
       {"name": 5}, {"a": {"b": []}}, "\ud800", "\udcff", "a\u0000b", "\u202e", "\x1b[31m", "é" * 300, "x" * 100000, "/dev/zero", "/dev/full", ".", "..", "/nowhere/x",
       [0] * 1000, ["s.yaml"] * 50, "s.yaml", "run.micro_batches=1", "=", "==", "plan.stages=two", "model={builder: nothing}", "all", "html", "ideal", "cpu?", 1.7976931348623157e308]
WORDS = [b"\xff", b"\x00", b"\xed\xa0\x80", b"\xc3\x28", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\\u", b"\\ud800", b"nan", b"Infinity", b"1e999", b"-", b"//", b"\xef\xbb\xbf",
         b"[" * 600, b'{"a":' * 600, b"9" * 400, b" " * 3000, b"null"]
ROWS = [[[0, 0, m, 5, 1, 0, m, 6] for m in range(1)], "no rows", 5, {}, None, [], [[]], [[], []], [["F", 0, 0, 0]], [[0, 0]], [[1e300, 0, 0, 0]], [[0, 2**31, 0, 0]], [[0, 0, -1, 0]],
        [[0, 0, 2**31 - 1, 0], [0, 1, 2**31 - 1, 0]], [[4, 0, 0, 0.5]], [[0, 0, 0, 2**40]], [{"a": 1}], [[[0, 0, 0, 0]]], [[None] * 4], [[9, 0, 0, 0]], [[-1, 0, 0, 0]]]


def containers(value):
    """All lists and objects in a value."""
    if isinstance(value, (list, dict)):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from containers(item)


def mutated(draw):
    method, params = draw.choice(REQUESTS)
    request = json.loads(json.dumps({"method": method, "params": params}))
    for _ in range(draw.choice((0, 0, 1, 1, 1, 2))):
        target = draw.choice(list(containers(request)))
        value = copy.deepcopy(draw.choice(ODD))
        if isinstance(target, dict) and target:
            key = draw.choice(list(target))
            if draw.random() < 0.1:
                del target[key]
            elif draw.random() < 0.05:
                target[draw.choice(("", "x", "file", "order", "plan", "runs"))] = value
            else:
                target[key] = value
        elif isinstance(target, list):
            target.insert(draw.randrange(len(target) + 1), value)
    if draw.random() < 0.03:
        request = draw.choice(ODD)
    line = json.dumps(request).encode()
    if draw.random() < 0.2:
        for _ in range(draw.choice((1, 1, 3))):
            at = draw.randrange(len(line) + 1)
            word = draw.choice(WORDS)
            line = draw.choice((line[:at], line[at:], line[:at] + word + line[at:], line[:at] + word + line[at + 1:]))
    return line.replace(b"\n", b" ").replace(b"\r", b" ")


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def start():
    return subprocess.Popen([binary, "serve"], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=limits,
                            env={**os.environ, "STAGECRAFT_QUIET": "1", "STAGECRAFT_PATH": str(root / "scenarios"), "HOME": str(place)})


class Gone(Exception):
    pass


def exchange(process, line, draw):
    """All messages for one line, of which the last is its answer."""
    messages = []
    process.stdin.write(line + b"\n")
    process.stdin.flush()
    while True:
        text = process.stdout.readline()
        if not text:
            raise Gone()
        message = json.loads(text.decode("utf-8"))
        messages.append(message)
        if "call" in message:
            if message["call"] == "search_tasks":
                count = len(message["tasks"])
                answer = draw.choice([{"results": [text] * count} for text in ("", "{}", "[", '{"candidate": null, "too_large": false}')] +
                                     [{"results": ["x"] * (count + 1)}, {"results": 5}, {"failed": True}, {}, 5])
                process.stdin.write(json.dumps(answer).encode() + b"\n")
                process.stdin.flush()
                continue
            whole = [[x for m in range(n) for x in (0, s, m, 4)] + [x for m in range(n) for x in (1, s, m, 5)]
                     for row, n in zip(message["stages"], message["micro_batches"]) for s in row]
            answer = {"rows": draw.choice([whole, whole, *ROWS])} if draw.random() < 0.9 else draw.choice([{"failed": True}, {}, 5, []])
            process.stdin.write((json.dumps(answer) if draw.random() < 0.95 else "{damaged").encode() + b"\n")
            process.stdin.flush()
        elif "result" in message or "error" in message:
            return messages


def seconds(process):
    seen = stat(process.pid)
    return seen["seconds"] if seen else 0


def ask(process, method, **params):
    answer = exchange(process, json.dumps({"method": method, "params": params}).encode(), random.Random(0))[-1]
    return answer.get("result"), answer.get("error")


process, failed, kinds, first = start(), 0, {}, None
for number in range(count):
    draw = random.Random(seed * 1_000_003 + number)
    line = mutated(draw)
    wrong, before = [], seconds(process)
    try:
        if first is None:
            first = ask(process, "run", file="s.yaml", backend="ideal", diagnose=False)[0]["run"]
        answer = exchange(process, line, draw)[-1]
        kind = answer["error"]["type"] if "error" in answer else "result"
        if kind not in ("result", "input", "infeasible", "backend", "function"):
            wrong.append(f"an error of type {kind}: {answer['error']['text'][:300]}")
        if kind != "result" and not answer["error"]["text"]:
            wrong.append("an error without a word")
        if (taken := seconds(process) - before) > LIMIT:
            wrong.append(f"computed for {taken:.1f} s")
        drawn, why = ask(process, "draw", run=first, what="grid")
        if why and "no longer there" in why["text"] and b'"release"' in line:
            first = None
        elif not drawn or not drawn["text"]:
            wrong.append(f"the run of before cannot be drawn: {why}")
            first = None
    except Gone:
        kind = "ended"
        wrong.append(f"the process ended with {process.wait()}")
        process, first = start(), None
    kinds[kind] = kinds.get(kind, 0) + 1
    if wrong:
        failed += 1
        print(f"FAILED: request {number} of seed {seed}: {line[:600]!r}\n    " + "\n    ".join(wrong), flush=True)

# The last line may lack its line break, and lines that are no requests are counted.
lines = [b"", b"   ", b"5", b"[]", b"{}", b"{", b'{"method": "explain", "params": {"path": "\\udcff"}}', b'{"method": 5}', b'{"method": "explain", "params": {"path": "bubble"}}']
process.stdin.close()
process.wait()
done = subprocess.run([binary, "serve"], input=b"\n".join(lines), capture_output=True, cwd=place, check=False)
answers = [json.loads(text) for text in done.stdout.splitlines()]
good = done.returncode == 0 and len(answers) == len(lines) and "result" in answers[-1] and all(a.get("error", {}).get("type") == "input" for a in answers[:-1])
if not good:
    failed += 1
    print(f"FAILED: {len(lines)} lines of which the last has no line break: exit {done.returncode}, {done.stdout[:2000]!r}")
print(f"{count} requests, {failed} failed; answers: " + ", ".join(f"{kind}: {kinds[kind]}" for kind in sorted(kinds)))
shutil.rmtree(place)
sys.exit(1 if failed or kinds.get("result", 0) < count // 20 else 0)
