"""The program `stagecraft serve`, which answers requests: one JSON object on each line.

The simulator runs in a separate process. So other Python threads run during a simulation, Ctrl-C stops any step of it,
and one module works with every version of Python. Arrays of results come through shared memory, without a copy.
"""
from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import threading
from typing import Any, Callable, Optional

from . import _errors

Progress = Callable[[dict[str, Any]], None]
Answer = Callable[[dict[str, Any]], dict[str, Any]]

_PROTOCOL = 1


def program() -> str:
    """The path of the program: $STAGECRAFT, else the one in the folder of this installation, else on $PATH."""
    named = os.environ.get("STAGECRAFT")
    if named:
        return named
    here = os.path.dirname(os.path.abspath(__file__))
    # PREFIX/lib/python3/dist-packages/stagecraft or PREFIX/lib/stagecraft/python/stagecraft beside PREFIX/bin.
    for up in range(3, 6):
        candidate = os.path.normpath(os.path.join(here, *[os.pardir] * up, "bin", "stagecraft"))
        if os.access(candidate, os.X_OK):
            return candidate
    found = shutil.which("stagecraft")
    if found:
        return found
    raise _errors.BackendError("there is no program 'stagecraft' on $PATH; set $STAGECRAFT to its path")


#: In these, launchers say which of several processes this is. The program is started by this process alone.
_OF_LAUNCHERS = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "MV2_COMM_WORLD_RANK",
                 "MV2_COMM_WORLD_SIZE")


def environment() -> dict[str, str]:
    """The environment of the program."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_LAUNCHERS}
    return {**kept, "STAGECRAFT_QUIET": "1"}


class Server:
    """One process of the program; requests of several threads take turns."""

    def __init__(self) -> None:
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._of_parent: Optional[subprocess.Popen[bytes]] = None
        self._released: list[int] = []
        self._unlock()
        self.generation = 0  #: Counts processes: runs of an earlier one are gone.

    def _unlock(self) -> None:
        self._lock = threading.RLock()
        self._amid_request = False  #: Seen by the thread that holds the lock.

    def forget(self) -> None:
        """In a forked process: the process of the parent stays the parent's, and so do its pipes."""
        self._of_parent, self._process = self._process, None  # Its destructor would complain about a process that runs.
        self._unlock()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.stop()
        self._released.clear()
        self.generation += 1
        try:
            # A separate session, so that Ctrl-C at a terminal reaches Python alone, which then stops the process.
            self._process = subprocess.Popen(
                [program(), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
                env=environment())
        except OSError as error:
            raise _errors.BackendError(f"'{program()}' cannot be started: {error.strerror}") from error
        return self._process

    def stop(self) -> None:
        """Ends the process; the next request starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def release(self, generation: int, run: int) -> None:
        """Notes that a run is not needed any more. The garbage collector may call it at any time."""
        if generation == self.generation:
            self._released.append(run)

    def request(self, method: str, params: dict[str, Any], progress: Optional[Progress] = None,
                answer: Optional[Answer] = None,
                after: Optional[Callable[[Any], Any]] = None) -> Any:
        """The result of a request. `answer` answers the questions of the process; `after` sees the result while the
        process still has it open."""
        with self._lock:
            if self._amid_request:
                raise RuntimeError(f"'{method}' is asked by a function that stagecraft called; it has one request at a time")
            line = _encoded({"method": method, "params": params})
            process = self._start()
            self._amid_request = True
            try:
                if self._released and method != "release":
                    runs, self._released = self._released, []
                    self._exchange(process, _encoded({"method": "release", "params": {"runs": runs}}), None, None)
                result = self._exchange(process, line, progress, answer)
                return after(result) if after else result
            except _errors.StagecraftError:
                raise
            except BaseException:  # Ctrl-C, or a function of the caller: the process is amid something.
                self.stop()
                raise
            finally:
                self._amid_request = False

    def _exchange(self, process: subprocess.Popen[bytes], request: bytes, progress: Optional[Progress],
                  answer: Optional[Answer]) -> Any:
        assert process.stdin is not None and process.stdout is not None
        failure: Optional[BaseException] = None
        try:
            _send(process, request)
            while True:
                line = process.stdout.readline()
                if not line:
                    raise BrokenPipeError
                message = json.loads(line)
                if "result" in message:
                    return message["result"]
                if "error" in message:
                    if failure is not None:
                        raise failure
                    raise _errors.error_of(message["error"])
                if "call" in message:
                    try:
                        assert answer is not None
                        _send(process, _encoded(answer(message)))
                    except (KeyboardInterrupt, SystemExit, BrokenPipeError):
                        raise
                    except BaseException as error:  # It is raised again when the process has given up.
                        failure = error
                        _send(process, _encoded({"failed": True}))
                elif progress is not None:
                    progress(message)
        except BrokenPipeError:
            code = process.wait()
            self.stop()
            raise _errors.BackendError(
                f"the process of '{program()}' ended with {code}"
                + (", so it may be too old for this module" if b'"version"' in request else "")) from None


def _encoded(message: dict[str, Any]) -> bytes:
    """One line of JSON, before anything is sent: JSON has no NaN, no infinity, and no text that is not Unicode."""
    try:
        return json.dumps(message, allow_nan=False, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError as error:
        raise _errors.InputError(f"a parameter is not text: {error.object[max(0, error.start - 60):error.end + 20]!r} has a lone "
                                 "surrogate, as names of files have whose bytes are not UTF-8; rename the file") from error
    except ValueError as error:
        raise _errors.InputError(f"a parameter is not a finite number: {error}") from error


def _send(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()


server = Server()
atexit.register(server.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=server.forget)


def check_version() -> dict[str, Any]:
    """What the program says about itself; BackendError when it speaks another protocol."""
    about: dict[str, Any] = server.request("version", {})
    if about["protocol"] != _PROTOCOL:
        raise _errors.BackendError(f"'{program()}' has protocol {about['protocol']}, and this module {_PROTOCOL}")
    return about
