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


class Server:
    """One process of the program; requests of several threads take turns."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._released: list[int] = []
        self.generation = 0  #: Counts processes: runs of an earlier one are gone.

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
                env={**os.environ, "STAGECRAFT_QUIET": "1"})
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
                answer: Optional[Callable[[dict[str, Any]], list[list[int]]]] = None,
                after: Optional[Callable[[Any], Any]] = None) -> Any:
        """The result of a request. `answer` answers the questions of the process; `after` sees the result while the
        process still has it open."""
        with self._lock:
            process = self._start()
            try:
                if self._released and method != "release":
                    runs, self._released = self._released, []
                    self._exchange(process, "release", {"runs": runs}, None, None)
                result = self._exchange(process, method, params, progress, answer)
                return after(result) if after else result
            except _errors.StagecraftError:
                raise
            except BaseException:  # Ctrl-C, or a function of the caller: the process is amid something.
                self.stop()
                raise

    def _exchange(self, process: subprocess.Popen[bytes], method: str, params: dict[str, Any],
                  progress: Optional[Progress], answer: Optional[Callable[[dict[str, Any]], list[list[int]]]]) -> Any:
        assert process.stdin is not None and process.stdout is not None
        failure: Optional[BaseException] = None
        try:
            _send(process, {"method": method, "params": params})
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
                        _send(process, {"rows": answer(message)})
                    except (KeyboardInterrupt, SystemExit, BrokenPipeError):
                        raise
                    except BaseException as error:  # It is raised again when the process has given up.
                        failure = error
                        _send(process, {"failed": True})
                elif progress is not None:
                    progress(message)
        except BrokenPipeError:
            code = process.wait()
            self.stop()
            raise _errors.BackendError(
                f"the process of '{program()}' ended with {code}"
                + (", so it may be too old for this module" if method == "version" else "")) from None


def _send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


server = Server()
atexit.register(server.stop)


def check_version() -> dict[str, Any]:
    """What the program says about itself; BackendError when it speaks another protocol."""
    about: dict[str, Any] = server.request("version", {})
    if about["protocol"] != _PROTOCOL:
        raise _errors.BackendError(f"'{program()}' has protocol {about['protocol']}, and this module {_PROTOCOL}")
    return about
