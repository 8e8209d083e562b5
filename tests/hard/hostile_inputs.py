"""Damaged and malicious inputs of every kind, given to every command that reads them:

    hostile_inputs.py STAGECRAFT [RUNS [SEED]]

Each run takes valid files, damages one of them (or one of the words on the command line), and starts one command in a
separate folder. What has to hold, whatever the input:

- the exit code is 0, 2, 3 or 4: no signal, and no 70, which is a bug;
- an error of a damaged file names a file of the command;
- it ends within LIMIT seconds of computing time and 2 GiB;
- only what the command line names as output is created or changed, and no input is;
- neither the terminal nor a written text has a raw control character, a mark that reverses the direction of writing,
  or a cell of CSV that a spreadsheet computes.
"""
import hashlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "fuzz"), str(HERE.parent / "support")]
import onnx_files  # noqa: E402
import seeds  # noqa: E402

binary = str(pathlib.Path(sys.argv[1]).resolve())
runs = int(sys.argv[2]) if len(sys.argv) > 2 else 30
if os.environ.get("STAGECRAFT_TRIALS") == "full":
    runs *= 10
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
LIMIT = 20 * int(os.environ.get("STAGECRAFT_TEST_PATIENCE", "1"))
MEMORY = 2 << 30
place = pathlib.Path(tempfile.mkdtemp(prefix="stagecraft-hostile-"))
ENVIRONMENT = {**os.environ, "STAGECRAFT_QUIET": "1", "LC_ALL": "C.UTF-8"}

SCENARIO = """schema: scenario/2
title: a name
model: m.yaml
cluster: c.yaml
plan: {planner: balanced, stages: 2, micro_batch_size: 2, replicas: 1}
run: {schedule: 1f1b, micro_batches: 4, iterations: 3}
software: none
"""
MODEL = """schema: model/1
title: two layers
builder: listed
layers:
  - {name: first, forward: 1 MFLOP, parameters: 1000, output: 4 kB, stash: 4 kB}
  - {name: second, inputs: [first], forward: 2 MFLOP, parameters: 1000, output: 4 kB, stash: 4 kB}
"""
CLUSTER = """schema: cluster/1
title: a pair
generator: explicit
types: {core: {peak: 1 GFLOP/s, efficiency: 0.5, memory_bandwidth: 1 GB/s, memory: 1 GiB}}
devices: [{name: a, type: core}, {name: b, type: core}]
links: [{name: wire, between: [a, b], bandwidth: 1 GB/s, latency: 1 us}]
"""
SWEEP = "schema: sweep/1\ntitle: a sweep\nbase: s.yaml\naxes: {run.micro_batches: [2, 4]}\n"
PUBLISHED = next(iter(seeds.papers()))
PROFILE = next(iter(seeds.beside("models/profiles", 5000)))

# What each kind of file is called, and the commands that read it. OUT is a file or folder to write.
KINDS = {
    "scenario": (["s.yaml", "m.yaml", "c.yaml"], [
        "run s.yaml -b ideal", "run s.yaml -b fluid --out OUT", "run s.yaml -b simgrid", "run s.yaml -b ideal --format json", "check s.yaml",
        "resolve s.yaml", "show s.yaml", "show s.yaml --what program", "plan s.yaml", "plan s.yaml --format csv", "report s.yaml -b ideal --out OUT",
        "search s.yaml --most 20 --schedules 1f1b,gpipe", "compare s.yaml --schedules 1f1b,gpipe", "compare s.yaml --schedules 1f1b --svg OUT",
        "export simgrid-xml s.yaml", "export pytorch-csv s.yaml", "export chakra s.yaml --out OUT", "run s.yaml -b cpu --set run.compute=emulated --out OUT"]),
    "sweep": (["w.yaml"], ["sweep w.yaml -b ideal --out OUT", "sweep w.yaml -b ideal --format csv --out OUT", "check w.yaml"]),
    "published": (["p.yaml"], ["reproduce p.yaml", "reproduce p.yaml --format json", "reproduce p.yaml --html OUT"]),
    "profile": (["profile.yaml"], ["run s.yaml -b ideal --set cluster=threads-8 --set profile=profile.yaml", "check profile.yaml"]),
    "schedule": (["o.csv"], ["schedule --file o.csv", "schedule --file o.csv --format json", "import pytorch-csv o.csv --out OUT",
                             "export pytorch-csv o.csv --comms", 'run s.yaml -b ideal --set run.micro_batches=2 --set run.schedule={"csv":"o.csv"}']),
    "onnx": (["net.onnx"], ["import onnx net.onnx", "import onnx net.onnx --out OUT", "import onnx net.onnx --keep-all --batch 4"]),
    "pipedream": (["graph.txt"], ["import pipedream-graph graph.txt", "import pipedream-graph graph.txt --out OUT"]),
    "frameworks": (["train.sh", "job.toml", "ds.json", "zero.json", "uneven.sh", "llama.json", "gpt_oss.json"],
                   ["import megatron train.sh --cluster two-node-mixed", "import torchtitan job.toml --cluster two-node-mixed --devices 16 --out OUT",
                    "import deepspeed ds.json --cluster two-node-mixed --model-name gpt2-small",
                    "import deepspeed zero.json --cluster two-node-mixed --model-name gpt2-small",
                    "import megatron uneven.sh --cluster two-node-mixed --devices 16", "import huggingface llama.json",
                    "import huggingface gpt_oss.json --out OUT"]),
    "traces": (["kineto.json", "trace.json"], ["import kineto kineto.json --layer Block", "import kineto kineto.json --overlap", "import trace trace.json --out OUT"]),
    "calibration": (["nccl.txt", "runs.csv", "curves.yaml"], [
        "calibrate nccl.txt --collective all_gather", "calibrate nccl.txt --collective all_reduce --out OUT", "calibrate runs.csv --device h100-sxm", "calibrate runs.csv --device h100-sxm --fit share",
        "calibrate runs.csv --device h100-sxm --fit share,launch --out OUT", "check curves.yaml"]),
    "timing": (["times.json"], ["import megatron-timing times.json", "import megatron-timing times.json --samples 4 --out OUT"]),
    "nsight": (["run.sqlite"], ["import nsight run.sqlite --layer layer", "import nsight run.sqlite --overlap --out OUT"]),
    "dnn": (["dnn.json"], ["import dnn-partitioning dnn.json", "import dnn-partitioning dnn.json --out OUT"]),
    "piper": (["piper.json"], ["import piper piper.json", "import piper piper.json --out OUT"]),
    "pipeedge": (["models.yml", "device_types.yml", "devices.yml"], ["import pipeedge models.yml device_types.yml devices.yml --model toy --out OUT"]),
    "platform": (["p.xml"], ["import simgrid-xml p.xml --set memory=1GiB", "import simgrid-xml p.xml --set memory=1GiB --out OUT",
                             'check s.yaml --set cluster={"generator":"simgrid_xml","simgrid_xml":"p.xml","memory":"1GiB"}']),
    "results": (["kept/results.json", "kept/spans.csv", "kept/memory.csv", "kept/scenario.yaml"],
                ["report kept --out OUT", "compare kept kept", "compare kept kept --format csv"]),
    "database": (["d.db"], ["report d.db --out OUT", "sweep-merge d.db --into OUT", "sweep-merge d.db --into OUT --format csv"]),
}
WORDS = ["\x1b[31m", "\x1b]0;title\x07", "\x9b2J", "\u202e", "\u2066", "\u009b31m", "\u2028", "\x00", "\r", "\n", "\t", "\x7f", "\ufeff", "\ud7ff",
         "\\x1b[2J", "\\u202e", "\\e]8;;x\\a", "\\n", "\\0", "=1+1", "=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1+1", "<script>", "</script>", "&lt;",
         "]]>", "-->", "../../x", "/etc/passwd", "/dev/zero", "/dev/stdin", ".", "..", "", "~", "null", "nan", "inf", "-inf", "1e309", "-0", "0",
         "-1", "1e18", "99999999999999999999", "0x10", "1_000", "1 TB", "1 TB/s", "1e-320 s", "5 min", "true", "[]", "{}", "[[[[", "{a: {a: {a: ",
         "*a", "&a", "!!python/object:os.system", "<<: *a", "---", "...", "%s%s%n", "${HOME}", "$(touch x)", "`touch x`", "'; DROP TABLE sweep; --",
         "a" * 5000, "[" * 300, "é" * 400, "\U0001F600", "١٢", " " * 3000, "outside/canary", "file:///etc/passwd"]
BYTES = [b"\xff", b"\x00", b"\xc3\x28", b"\xed\xa0\x80", b"\x1b", b"\x9b", b"\xf4\x90\x80\x80"]
XML = ["<config><prop id='tracing' value='yes'/><prop id='tracing/filename' value='outside/canary'/></config>", "<!ENTITY x SYSTEM 'file:///etc/passwd'>",
       "<include file='outside/canary'/>", "<trace id='t' file='outside/canary'/>", "<zone id='z' routing='Full'>" * 600, "&x;", "<![CDATA[", "<!--", "<?php ?>",
       "state_file='outside/canary'", "radical='0-99999999'", "core='1e9'", "bandwidth='1e400GBps'"]


def make_seeds():
    """The valid files of all kinds, from texts or made by the tool itself."""
    folder = place / "valid"
    (folder / "kept").mkdir(parents=True)
    texts = {"s.yaml": SCENARIO, "m.yaml": MODEL, "c.yaml": CLUSTER, "w.yaml": SWEEP, "p.yaml": PUBLISHED, "profile.yaml": PROFILE, "graph.txt": seeds.GRAPH[0],
             "piper.json": seeds.PIPER[0], "o.csv": seeds.SCHEDULES[0], "p.xml": seeds.PLATFORM[0],
             "nccl.txt": seeds.NCCL_TESTS[0] + seeds.NCCL_TESTS[0].splitlines()[-1].replace("1024 ", "65536"), "runs.csv": seeds.RUNS[0], "curves.yaml": seeds.COLLECTIVES[0],
             "times.json": seeds.MEGATRON_TIMING[0], "dnn.json": seeds.DNN_PARTITIONING[0]}
    texts |= dict(zip(KINDS["frameworks"][0] + KINDS["traces"][0], seeds.FRAMEWORKS + seeds.TRACES))
    for name, text in zip(KINDS["pipeedge"][0], seeds.PIPEEDGE[0].split("%%%\n")):
        texts[name] = text
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "net.onnx").write_bytes(onnx_files.mlp())
    (folder / "d.db").write_bytes(seeds.results(binary))
    (folder / "run.sqlite").write_bytes(seeds.nsight())
    made = subprocess.run([binary, "run", "s.yaml", "-b", "ideal", "--out", "made"], cwd=folder, env=ENVIRONMENT, capture_output=True, check=False)
    assert made.returncode == 0, made.stderr.decode()
    for name in KINDS["results"][0]:
        shutil.copy(folder / "made" / pathlib.Path(name).name, folder / name)
    shutil.rmtree(folder / "made")
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def damaged(draw, name, data):
    """The bytes of a file after one to four changes."""
    for _ in range(draw.choice((1, 1, 2, 4))):
        words = [m.span() for m in re.finditer(rb"[^\s,:\[\]{}\"'<>=]+", data[:200000])]
        at = draw.randrange(len(data) + 1)
        if words and draw.random() < 0.7:  # Damage that a parser cannot see matters most.
            at = draw.choice(words)[0]
        word = (draw.choice(WORDS) if not name.endswith(".xml") or draw.random() < 0.6 else draw.choice(XML)).encode("utf-8", "surrogatepass")
        kind = draw.choice(("replace", "replace", "quote", "insert", "byte", "bytes", "cut", "drop line", "repeat line", "swap lines", "repeat", "number", "number", "number"))
        lines = data.split(b"\n")
        if kind in ("replace", "quote") and words:
            begin, end = draw.choice(words)
            put = word if kind == "replace" else b'"' + word.replace(b'"', b'\\"') + b'"'
            data = data[:begin] + put + data[end:]
        elif kind == "insert":
            data = data[:at] + word + data[at:]
        elif kind == "byte" and data:
            at = min(at, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1:]
        elif kind == "bytes":
            data = data[:at] + draw.choice(BYTES) + data[at:]
        elif kind == "cut":
            data = data[:at] if draw.random() < 0.5 else data[at:]
        elif kind == "drop line":
            del lines[draw.randrange(len(lines))]
            data = b"\n".join(lines)
        elif kind == "repeat line":
            k = draw.randrange(len(lines))
            data = b"\n".join(lines[:k] + [lines[k]] * draw.choice((2, 3, 500)) + lines[k + 1:])
        elif kind == "swap lines":
            draw.shuffle(lines)
            data = b"\n".join(lines)
        elif kind == "repeat" and len(data) < 50000:
            data = data * draw.choice((2, 20))
        elif kind == "number":
            numbers = [m.span() for m in re.finditer(rb"\d+(\.\d+)?", data)]
            if numbers:
                begin, end = draw.choice(numbers)
                data = data[:begin] + draw.choice((b"0", b"1", b"2", b"3", b"5", b"8", b"64", b"0.25", b"-1", b"1e9", b"2147483648", b"1e300", b"0.5", b"9" * 40, b"1e-300", b"nan")) + data[end:]
    return data


def snapshot(folder):
    found = {}
    for path, folders, files in os.walk(os.fsencode(folder)):
        for name in folders + files:
            file = os.path.join(path, name)
            if os.path.islink(file) or not os.path.isfile(file):
                found[file] = os.path.islink(file)
            else:
                with open(file, "rb") as f:
                    found[file] = hashlib.sha256(f.read()).digest()
    return found


HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff]")
FORMULA = re.compile(r"(?:^|,)\"?[=@](?!$)|(?:^|,)\"?[+-](?![0-9.]|inf|nan|,|$)", re.M)


def odd_text(data, csv):
    """What a terminal or a spreadsheet should not see."""
    text = data.decode("utf-8", "surrogateescape")
    if found := HIDDEN.search(text) or re.search("[\udc80-\udcff]", text):
        return f"raw {ascii(found[0])} in {ascii(text[max(0, found.start() - 60):found.end() + 20])}"
    if csv and (found := FORMULA.search(text)):
        return f"a formula: {ascii(text[found.start():found.start() + 60])}"
    return None


def one(number):
    """Runs one command; a list of what is wrong, and the exit code."""
    draw = random.Random(seed * 1_000_003 + number)
    kind = draw.choice(list(KINDS))
    files, commands = KINDS[kind]
    folder = place / str(number)
    for name in ("work", "outside", "home", "tmp"):
        (folder / name).mkdir(parents=True)
    work = folder / "work"
    (folder / "outside/canary").write_text("precious\n")
    (work / "outside").mkdir()
    (work / "outside/canary").write_text("precious\n")
    for name, data in VALID.items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_bytes(data)
    words = [word.replace("OUT", "out") if word == "OUT" else word for word in draw.choice(commands).split(" ")]
    damages_file = draw.random() < 0.85
    if damages_file:
        name = draw.choice(files)
        (work / name).write_bytes(damaged(draw, name, VALID[name]))
    else:
        k = draw.randrange(1, len(words))
        if words[k - 1] not in ("--out", "--into", "--svg", "--html"):  # Where the output goes is not ours to choose.
            words[k] = words[k][:draw.randrange(len(words[k]) + 1)] + draw.choice(WORDS).replace("\x00", "")
    sets_text = draw.random() < 0.15 and words[0] in ("run", "check", "resolve", "plan")
    if sets_text:
        words += ["--set", draw.choice(("title", "run.micro_batches", "run.schedule", "plan.stages", "model", "cluster")) + "=" + draw.choice(WORDS).replace("\x00", "")]
    before = snapshot(folder)
    wrong = []

    def limits():
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    try:
        done = subprocess.run([binary, *(os.fsencode(w) for w in words)], cwd=work, stdin=subprocess.DEVNULL, capture_output=True, timeout=40 * LIMIT,
                              env={**ENVIRONMENT, "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}, preexec_fn=limits, check=False)
    except subprocess.TimeoutExpired:
        return number, words, ["hung"], None
    if done.returncode not in (0, 2, 3, 4):
        wrong.append(f"exit code {done.returncode}: {done.stderr[-300:]!r}")
    if done.returncode != 0 and not done.stderr.strip() and not done.stdout.strip():
        wrong.append(f"exit code {done.returncode} without a word")
    of_file = damages_file and not sets_text  # An error in that text names the option.
    said = (done.stderr + done.stdout).decode(errors="replace")
    names_file = re.search(r"^\S+:\d+:\d+: error", said, re.M) or any(name in said for file in VALID for name in (file, file.split("/")[0]))
    if of_file and done.returncode == 2 and not names_file:  # The damage may name another file, which is then the one.
        wrong.append(f"the error names no file: {done.stderr[:300]!r}")
    csv = "csv" in words
    for stream, data in (("stdout", done.stdout), ("stderr", done.stderr)):
        if why := odd_text(data, csv and stream == "stdout"):
            wrong.append(f"{stream}: {why}")
    after = snapshot(folder)
    out = os.fsencode(work / "out")
    for file in after.keys() | before.keys():
        written = file == out or file.startswith((out + b"/", out + b"-"))  # A database has its journal next to it.
        if before.get(file) != after.get(file) and not written and file != os.fsencode(work / ".stagecraft-files"):
            wrong.append(f"changed: {os.fsdecode(file)}")
        text = written and os.path.isfile(file) and not file.endswith((b".db", b".et", b".shm", b".wal"))
        if text and kind != "database" and not words[0].startswith("sweep"):
            with open(file, "rb") as f:
                if why := odd_text(f.read(), file.endswith(b".csv")):
                    wrong.append(f"{os.fsdecode(file)}: {why}")
    if not wrong:
        shutil.rmtree(folder)
    return number, words, wrong, done.returncode


VALID = make_seeds()
codes, failed = {}, 0
with ThreadPoolExecutor(2) as pool:
    for number, words, wrong, code in pool.map(one, range(runs)):
        codes[code] = codes.get(code, 0) + 1
        if wrong:
            failed += 1
            print(f"FAILED: run {number} of seed {seed}: {ascii(words)[:300]}\n    " + "\n    ".join(wrong), flush=True)
print(f"{runs} runs, {failed} failed; exit codes: " + ", ".join(f"{code}: {codes[code]}" for code in sorted(codes, key=str)))
if failed:
    print(f"their files are in {place}")
else:
    shutil.rmtree(place)
# Damage that is refused at once tests little: enough of the inputs have to be taken.
sys.exit(1 if failed or codes.get(0, 0) < runs // 20 else 0)
