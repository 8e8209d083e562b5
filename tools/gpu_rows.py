"""Rows of the table of gpu_check: programs that run with a time limit, and what is known so far, in a file and an archive."""
import datetime
import fnmatch
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import threading
import time

from gpu_reports import clocks

root = pathlib.Path(__file__).resolve().parent.parent
MOST = 3  # Times its seconds that a row may take where there is time left.
HOUR = 3600  # Seconds of a row on an emulated GPU, whose speed means nothing.
NOT_HERE = 77
FINE = ("ok", "not here", "not run")
WARNING = "EMULATED: no GPU was used, and no time here means anything"
ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
KEPT = 8 << 20  # Bytes of what a program prints.
CUT = "\n(the rest of the output is cut)\n"
LOOK = 2  # Seconds between looks at the clocks while a program runs.
TAIL = 30  # Lines of a failed smoke test.
SHOWN = {"simulated_ms": "simulated {:.4g} ms", "measured_ms": "measured {:.4g} ms", "error": "{:+.1%}", "period_ms": "{:.4g} ms",
         "share_of_gemm": "{:.0%} of products alone", "ours_over_theirs": "ours over theirs {:.3g}",
         "largest_difference": "differs by {:.2g}", "why": "{}", "cut": "{}"}
KERNEL = "    {us:9.1f} us {launches:4} x  memory {memory_percent:3.0f} %  computation {compute_percent:3.0f} %  {kernel:.90}"


def read_pipe(pipe, into):
    """Reads all of the pipe, so that its writer never blocks, and keeps the beginning, with CUT after it if there was more."""
    size = 0
    with pipe:
        while part := pipe.read1(1 << 16):
            if size <= KEPT:
                into.append(part[:KEPT - size])
                size += len(part)
                if size > KEPT:
                    into.append(CUT.encode())


def wait(one, seconds, watch):
    """The exit code, or None where time is up. Every other second `watch` is called, if there is one, with the seconds left."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            return one.wait(timeout=min(left, LOOK) if watch else left)
        except subprocess.TimeoutExpired:
            if watch and (left := end - time.monotonic()) > 0:
                watch(left)
    return None


def run_at_most(seconds, words, environment=None, watch=None):
    """What was printed, on both, and the exit code: None where time was up. Whatever it started ends with it, except processes
    that are stuck in a driver."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)  # An interrupt waits until there is a process to end.
    one, code, texts = None, None, ([], [])
    try:
        one = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=root,
                               start_new_session=True, env={**os.environ, **(environment or {})},
                               preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before))
        readers = [threading.Thread(target=read_pipe, args=(pipe, text), daemon=True)
                   for pipe, text in zip((one.stdout, one.stderr), texts)]
        for reader in readers:
            reader.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        code = wait(one, seconds, watch)
        for reader in readers if code is not None else ():
            reader.join(1)  # Longer where a child of its holds them open.
    finally:
        if one:
            end(one)
            for reader in readers:
                reader.join(1)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return *(b"".join(text).decode(errors="replace") for text in texts), code


def end(one):
    try:
        os.killpg(one.pid, signal.SIGKILL)
        one.wait(timeout=2)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass


def sets(values):
    return [word for value in values for word in ("--set", value)]


def replace(file, write):
    """Writes the file at once or not at all: a process that is killed leaves the one before."""
    part = file.with_name(file.name + ".part")
    write(part)
    part.replace(file)


class Check:
    """A call of gpu_check. `plan` has the rows to come with their seconds, in their order."""

    def __init__(self, bins, file, archive, device, commit, emulated, plan, limit, begin):
        self.bins, self.file, self.archive, self.begin, self.limit = bins, file, archive, begin, limit
        self.emulated, self.to_come, self.rows, self.facts, self.files = emulated, dict(plan), [], {}, []
        self.multiprocessors = []  # What a scenario has to be told of this GPU, when that is known.
        self.shown = 0  # Rows that were printed.
        self.last = None  # Words and environment of the program that ran last.
        self.head = {"schema": "gpu_check/1", "device": device,
                     "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "commit": commit,
                     **({"emulated": True, "warning": WARNING} if emulated else {})}
        self.device = re.sub(r"[^a-z0-9]+", "-", device.lower().removeprefix("nvidia ")).strip("-")

    def row(self, name):
        return next((row for row in self.rows if row["check"] == name), {})

    def skip(self, why, *patterns):
        """Rows that this machine cannot run; they count as failed."""
        for name in [n for n in self.to_come if any(fnmatch.fnmatchcase(n, p) for p in patterns)]:
            self.add(name, "skipped", why=why)

    def time_for(self, seconds):
        """Its own seconds and what others left, or 0 where it has not enough. Rows that come later keep theirs, the next ones first."""
        if self.emulated:
            return HOUR
        left = self.limit - (time.monotonic() - self.begin)
        if left < seconds:
            return 0
        later = 0
        for others in self.to_come.values():
            if seconds + later + others > left:
                break
            later += others
        return min(MOST * seconds, left - later)

    def add(self, name, result, **facts):
        """A row that is not to come any more, or one more."""
        self.rows.append({"check": name, "seconds": 0.0, "expected_s": self.to_come.pop(name, 0), "result": result, **facts})
        if self.emulated:
            self.rows[-1]["emulated"] = True
        return self.rows[-1]

    def run(self, name, program, *words, read=None, partly=False, environment=None):
        """One row of the table, with what `read` makes of the output: `partly` also where the program did not get through. What
        is known so far is kept in the file and in the archive."""
        row = self.add(name, "interrupted")
        left = self.time_for(row["expected_s"])
        if not left:
            row["result"] = "no time left"
            return
        start, looks = time.monotonic(), []
        self.last = [str(self.bins / program), *map(str, words)], environment or {}
        try:
            output, log, code = run_at_most(left, *self.last, watch=None if self.emulated else lambda left: looks.append(self.clocks_now(most=left)))
        except OSError as e:
            output, log, code = "", str(e), 127
        finally:
            row["seconds"] = time.monotonic() - start
        row["result"] = {0: "ok", None: f"over {left:.0f} s"}.get(code, f"exit {code}")
        if code == NOT_HERE and name.startswith("PyTorch"):  # Nothing else may be missing where doctor sees a GPU.
            row.update(result="not here", why=log.strip()[-200:])
        self.understand(row, output, read if row["result"] == "ok" or partly else None)
        if output.endswith(CUT) or log.endswith(CUT):
            row["cut"] = f"its output is cut after {KEPT >> 20} MiB"
            if output.endswith(CUT) and read and row["result"] == "ok":
                row["result"] = "output cut"
        if row["result"] not in FINE:
            row["output"] = output[-3000:] + log[-3000:]
        if looks := [look for look in looks if "sm_mhz" in look]:
            row["clocks"] = {"sm_mhz": [pick(look["sm_mhz"] for look in looks) for pick in (min, max)],
                             "limited_by": sorted({reason for look in looks for reason in look["limited_by"]})}
            if powers := [look["power_w"] for look in looks if "power_w" in look]:
                row["clocks"]["most_power_w"] = max(powers)

    @staticmethod
    def understand(row, output, read):
        """Whatever a program printed instead, only its own row suffers."""
        try:
            seen = read(output) if read else {}
            row.update({**seen, "result": row["result"]} if row["result"] != "ok" else seen)
        except Exception as e:
            row["result"] = "unreadable" if row["result"] == "ok" else row["result"]
            row["why"] = f"{type(e).__name__}: {e}"[:200]

    def run_last_synchronously(self, row):
        """The last lines of a failed row, and of the same program with each call of CUDA waited for, so that the call that failed
        names itself."""
        output = row.get("output", row.get("why", ""))
        print("\n".join(output.splitlines()[-TAIL:]))
        words, environment = self.last
        environment = {**environment, "STAGECRAFT_CUDA_SYNC": "1"}
        output, log, code = run_at_most(self.time_for(row["expected_s"]) or row["expected_s"], words, environment)
        row["synchronous"] = {"exit": code, "output": (output + log).splitlines()[-TAIL:]}
        print(f"again with STAGECRAFT_CUDA_SYNC=1: {'it did not end' if code is None else f'exit {code}'}",
              *row["synchronous"]["output"], sep="\n", flush=True)

    def clocks_now(self, when=None, most=10):
        """Clocks, power and what limits them, asked for at most 10 s and `most`; with `when`, nvidia-smi's words are kept, too."""
        if self.emulated:
            return {"unknown": "an emulated GPU has no clocks"}
        gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"
        words = ["nvidia-smi", "-q", "-d", "CLOCK,POWER,PERFORMANCE,ECC", "-i", gpu]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=min(10, most), start_new_session=True)
        except (OSError, subprocess.TimeoutExpired) as e:
            return {"unknown": "there is no nvidia-smi" if isinstance(e, FileNotFoundError) else f"nvidia-smi: {e}"}
        if when:
            file = self.keep(self.file.parent / f"nvidia-smi-{when}.txt")
            file.write_text(done.stdout + done.stderr)
        try:
            return clocks(done.stdout)
        except ValueError as e:
            return {"unknown": f"nvidia-smi: {e}"}

    def write(self):
        """Without room on the disk the table is still printed."""
        text = json.dumps({**self.head, "facts": self.facts, "checks": self.rows}, indent=1) + "\n"
        try:
            replace(self.file, lambda part: part.write_text(text))
            replace(self.archive, self.pack)
        except OSError as e:
            print(f"{self.file} or {self.archive} is not written: {e}", file=sys.stderr)

    def pack(self, archive):
        """Packs everything worth keeping into one file, because some machines give back few."""
        with tarfile.open(archive, "w") as tar:
            for file in [self.file, *filter(pathlib.Path.exists, self.files), *sorted(self.file.parent.glob("nccl-*.log"))[:20]]:
                tar.add(file, file.relative_to(self.file.parent))

    def keep(self, file):
        """A file that goes into the archive. What an earlier call left at its place does not."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        if file not in self.files:
            self.files.append(file)
        return file

    def place(self, folder, name):
        return self.file.parent / folder / f"{self.device}-{name.replace(', ', '-').replace(' ', '-').lower()}"

    def line(self, row):
        figures = "".join(f"  {words.format(row[key])}" for key, words in SHOWN.items() if key in row)
        expected = f" of {row['expected_s']:2} s" if row["expected_s"] else ""
        return f"  {row['check']:<28} {row['result']:<12} {row['seconds']:5.1f} s{expected}{figures}{'  EMULATED' if self.emulated else ''}"

    def show(self):
        """Prints the rows that are not printed yet, at once, so that a killed call has told all that it knew."""
        for row in self.rows[self.shown:]:
            print(self.line(row))
            for kernel in row.get("kernel_times", []):
                print(KERNEL.format(**kernel))
        self.shown = len(self.rows)
        sys.stdout.flush()
