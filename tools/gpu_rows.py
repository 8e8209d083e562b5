"""Rows of the table of gpu_check: programs that run with a time limit, and what is known so far, in a file."""
import datetime
import fnmatch
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

root = pathlib.Path(__file__).resolve().parent.parent
MOST = 3  # Times its seconds that a check may take where there is time left.
NOT_HERE = 77
WARNING = "EMULATED: no GPU was used, and no time here means anything"
ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
KEPT = 8 << 20  # Bytes of what a program prints.


def kept(pipe, into):
    """Reads all of the pipe, so that its writer never blocks, and keeps the beginning."""
    size = 0
    with pipe:
        while part := pipe.read1(1 << 16):
            if size < KEPT:
                into.append(part)
            size += len(part)


def run_at_most(seconds, words, environment=None):
    """What was printed, on both, and the exit code: None where time was up. Whatever it started ends with it, except processes
    that are stuck in a driver."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)  # An interrupt waits until there is a process to end.
    one, code, texts = None, None, ([], [])
    try:
        one = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=root,
                               start_new_session=True, env={**os.environ, **(environment or {})},
                               preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before))
        readers = [threading.Thread(target=kept, args=(pipe, text), daemon=True)
                   for pipe, text in zip((one.stdout, one.stderr), texts)]
        for reader in readers:
            reader.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        code = one.wait(timeout=seconds)
        for reader in readers:
            reader.join(1)  # Longer where a child of its holds them open.
    except subprocess.TimeoutExpired:
        pass
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


class Check:
    def __init__(self, bins, file, device, commit, emulated, plan, limit, shape, samples, micro_batches):
        self.bins, self.file, self.rows, self.begin = bins, file, [], time.monotonic()
        self.emulated, self.shape, self.samples, self.micro_batches = emulated, shape, samples, micro_batches
        self.facts, self.to_come, self.limit, self.shape_name = {}, dict(plan), limit, "large"
        self.multiprocessors = []  # What a scenario has to be told of this GPU, when that is known.
        self.head = {"schema": "gpu_check/1", "device": device,
                     "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "commit": commit,
                     **({"emulated": True, "warning": WARNING} if emulated else {})}
        self.device = re.sub(r"[^a-z0-9]+", "-", device.lower().removeprefix("nvidia ")).strip("-")

    def skip(self, why, *patterns):
        """Rows that this machine cannot run; they count as failed."""
        for name in [n for n in self.to_come if any(fnmatch.fnmatchcase(n, p) for p in patterns)]:
            self.to_come.pop(name)
            self.add(name, "skipped", why=why)

    def time_for(self, name):
        """Its own seconds and what others left; those that come later keep theirs."""
        own = self.to_come.pop(name)
        return min(MOST * own, self.limit - (time.monotonic() - self.begin) - sum(self.to_come.values()))

    def add(self, name, result, **facts):
        self.rows.append({"check": name, "seconds": 0.0, "result": result, **facts})
        if self.emulated:
            self.rows[-1]["emulated"] = True
        return self.rows[-1]

    def run(self, name, program, *words, read=None, partly=False, environment=None):
        """One row of the table, with what `read` makes of the output: `partly` also where the program did not get through. What
        is known so far is kept in the file."""
        if name not in self.to_come:
            return
        left = self.time_for(name)
        row = self.add(name, "no time left" if left < 1 else "interrupted")
        if left < 1:
            return
        start = time.monotonic()
        try:
            output, log, code = run_at_most(left, [str(self.bins / program), *map(str, words)], environment)
        except OSError as e:
            output, log, code = "", str(e), 127
        finally:
            row["seconds"] = time.monotonic() - start
        row["result"] = {0: "ok", None: f"over {left:.0f} s"}.get(code, f"exit {code}")
        if code == NOT_HERE and name == "PyTorch":  # Nothing else may be missing where doctor sees a GPU.
            row["result"] = "not here"
        self.understand(row, output, read if row["result"] == "ok" or partly else None)
        print(f"{name}: {row['result']}, {row['seconds']:.1f} s", file=sys.stderr)
        if row["result"] != "ok":
            row["output"] = output[-3000:] + log[-3000:]
        self.write()

    @staticmethod
    def understand(row, output, read):
        """Whatever a program printed instead, only its own row suffers."""
        try:
            seen = read(output) if read else {}
            row.update({**seen, "result": row["result"]} if row["result"] != "ok" else seen)
        except Exception as e:
            row["result"] = "unreadable" if row["result"] == "ok" else row["result"]
            row["why"] = f"{type(e).__name__}: {e}"[:200]

    def write(self):
        """At once or not at all; without room on the disk the table is still printed."""
        text = json.dumps({**self.head, "facts": self.facts, "checks": self.rows}, indent=1) + "\n"
        part = self.file.with_name(self.file.name + ".part")
        try:
            part.write_text(text)
            part.replace(self.file)
        except OSError as e:
            print(f"{self.file} is not written: {e}", file=sys.stderr)

    def stagecraft(self, name, scenario, values, backend="cuda", more=(), read=None):
        self.run(name, "stagecraft", "run", scenario, "--backend", backend, "--format", "json", *more,
                 *sets(values), read=read)

    def model(self):
        return [*(f"model.{key}={value}" for key, value in self.shape.items()), f"plan.micro_batch_size={self.samples}",
                f"run.micro_batches={self.micro_batches}"]

    def place(self, folder, name):
        where = self.file.parent / folder
        where.mkdir(parents=True, exist_ok=True)
        return where / f"{self.device}-{name.replace(', ', '-').replace(' ', '-').lower()}"
