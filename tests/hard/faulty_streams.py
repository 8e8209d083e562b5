"""Standard streams that are closed, full, or open the wrong way, and limits of the system, for every kind of command:

    faulty_streams.py STAGECRAFT [RUNS [SEED]]

What cannot be written to stderr is lost, and changes nothing else: not the exit code, not the results, not the files.
What cannot be written to stdout is exit code 4. No file gets the number of a closed stream. Then RUNS random commands
under random faults end with 0, 2, 3 or 4, or by SIGPIPE, and leave no half file."""
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from tool import binary, check, finish, folder, leftovers, root

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from processes import HUNG  # noqa: E402

count = int(sys.argv[2]) if len(sys.argv) > 2 else 60
if os.environ.get("STAGECRAFT_TRIALS") == "full":
    count *= 10
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
shutil.copy(root / "scenarios/examples/quickstart.yaml", folder)
(folder / "w.yaml").write_text("schema: sweep/1\nbase: quickstart.yaml\nbackend: ideal\naxes: {run.micro_batches: [2, 4]}\n")
(folder / "wrong.yaml").write_text("schema: scenario/2\nmodel: [\n")
# Commands that say something on stderr, and what they write.
SPEAKERS = [
    ["check", "nofile"], ["check", "wrong.yaml"], ["run", "wrong.yaml"], ["runn"], ["sweep", "w.yaml", "--out", "OUT/w.db"],
    ["run", "quickstart.yaml", "-b", "simgrid", "--out", "OUT/z"], ["run", "quickstart.yaml", "-b", "ideal", "--html", "OUT/z.html"],
    ["compare", "--schedules", "gpipe,1f1b", "quickstart.yaml", "--svg", "OUT/o.svg"], ["reproduce", "pippy", "--html", "OUT/r.html"],
    ["export", "chakra", "quickstart.yaml", "--out", "OUT/traces"], ["export", "megatron", "examples/gpt-1f1b-16"],
    ["convergence", "examples/teacher", "--methods", "sync", "--updates", "3", "--seeds", "1", "--no-measure", "--out", "OUT/c"],
    ["run", "examples/teacher", "-b", "cpu", "--set", "run.iterations=2", "--out", "OUT/t"],
]
FORMS = {"as usual": None, "closed": "closed", "full": "/dev/full", "open for reading": "/dev/null"}


def start(words, streams, place, limits=()):
    """`streams`: for 0, 1 and 2 what they are, if they are not a pipe."""
    def prepare():
        for stream, form in streams.items():
            if form == "closed":
                os.close(stream)
            elif form == "broken":
                reader, writer = os.pipe()
                os.close(reader)
                os.dup2(writer, stream)
                os.close(writer)
            elif form is not None:
                file = os.open(form, os.O_RDONLY if form == "/dev/null" and stream else os.O_WRONLY)
                os.dup2(file, stream)
                os.close(file)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for kind, amount in limits:
            resource.setrlimit(kind, (amount, amount))
    return subprocess.Popen([binary, *(word.replace("OUT", str(place)) for word in words)], cwd=folder, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=prepare, start_new_session=True)


def ended(words, streams, limits=()):
    """The exit code, what was printed, and the files that were written, by their names and sizes."""
    place = pathlib.Path(tempfile.mkdtemp(dir=folder))
    program = start(words, streams, place, limits)
    try:
        out, errors = program.communicate(timeout=HUNG)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        out, errors = program.communicate()
        errors += b"(hung)"
    files = {str(f.relative_to(place)): f.read_bytes() for f in place.rglob("*") if f.is_file()}
    return program.returncode, out.replace(str(place).encode(), b"OUT"), files, errors.decode(errors="replace"), place


def comparable(files):
    """Names, and the start of each file: text of another stream may not get there. Times are in the rest."""
    return {name: data[:6] for name, data in files.items() if "-wal" not in name and "-shm" not in name and not name.startswith(".")}


for words in SPEAKERS:
    code, out, files, errors, _ = ended(words, {})
    check(errors and code in (0, 2), f"{words}: {code}, and says nothing: {errors[:300]}")
    for form, what in FORMS.items():
        if what is None:
            continue
        got, seen, written, _, place = ended(words, {2: what})
        measures = "examples/teacher" in words  # Times differ from run to run.
        same = got == code and (measures or seen == out) and comparable(written) == comparable(files)
        check(same, f"{words} with stderr {form}: {got} instead of {code}; {sorted(written)} instead of {sorted(files)}")
        check(not leftovers(place), f"{words} with stderr {form}: half files are left")
        got, seen, written, _, _ = ended(words, {0: "closed", 2: what})
        check(got == code and comparable(written) == comparable(files), f"{words} with stdin closed and stderr {form}: {got} instead of {code}")
for words in (["list", "models"], ["run", "quickstart.yaml", "-b", "ideal"], ["check", "quickstart.yaml"], ["schema", "scenario"], ["--version"], ["explain", "bubble"]):
    for streams in ({1: "closed"}, {1: "closed", 2: "closed"}, {1: "/dev/full", 2: "/dev/full"}, {0: "closed", 1: "closed", 2: "closed"}, {1: "/dev/null"}):
        got, _, _, errors, _ = ended(words, streams)
        check(got == 4 and "a bug" not in errors, f"{words} with {streams}: {got} instead of 4: {errors[:300]}")

LIMITS = [(resource.RLIMIT_AS, [30 << 20, 60 << 20, 80 << 20, 100 << 20, 200 << 20, 1 << 30]), (resource.RLIMIT_NOFILE, [4, 5, 6, 8, 12, 20]),
          (resource.RLIMIT_FSIZE, [0, 100, 5000, 60_000]), (resource.RLIMIT_STACK, [1 << 18, 1 << 20, 1 << 40])]
WITHOUT_SPEECH = [["list", "models"], ["run", "quickstart.yaml", "-b", "fluid"], ["plan", "quickstart.yaml"], ["show", "quickstart.yaml"], ["profile", "examples/teacher", "--seconds", "0.01"],
                  ["search", "quickstart.yaml", "--most", "10", "--schedules", "1f1b", "-j", "4"], ["serve"], ["doctor"], ["schedule", "1f1b", "-p", "4", "-m", "8"], ["sweep", "w.yaml", "-j", "2", "--out", "OUT/v.db"]]
codes = {}
for number in range(count):
    draw = random.Random(seed * 1_000_003 + number)
    words = draw.choice(SPEAKERS + WITHOUT_SPEECH)
    streams = {stream: draw.choice([None, None, "closed", "/dev/full", "/dev/null", "broken"]) for stream in (0, 1, 2) if draw.random() < 0.6}
    streams = {stream: form for stream, form in streams.items() if form is not None and (stream or form in ("closed", "/dev/null"))}
    limits = [(kind, draw.choice(amounts)) for kind, amounts in LIMITS if draw.random() < 0.3]
    code, out, _, errors, place = ended(words, streams, limits)
    codes[code] = codes.get(code, 0) + 1
    # Below some limits the system cannot start a program, with whatever code it likes, and the program has not begun.
    unstarted = code in (127, -signal.SIGSEGV, -signal.SIGKILL) and (code == 127 or any(kind in (resource.RLIMIT_AS, resource.RLIMIT_STACK) for kind, _ in limits)) and not out
    fine = code in (0, 2, 3, 4) or (code == -signal.SIGPIPE and "broken" in streams.values()) or unstarted
    check(fine and "a bug in" not in errors and "hung" not in errors, f"run {number} of seed {seed}: {words} with {streams}, {limits}: ended with {code}: {errors[-400:]}")
    check(not leftovers(place) or unstarted, f"run {number} of seed {seed}: {words} with {streams}, {limits}: half files are left: {leftovers(place)}")
    shutil.rmtree(place)
print("exit codes of random faults: " + ", ".join(f"{code}: {codes[code]}" for code in sorted(codes)))
finish()
