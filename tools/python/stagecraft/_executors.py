"""Sweeps and searches by an executor: anything whose submit(function, *arguments) returns futures.

Workers call sweep_part() and search_task() with text and bytes. They need this module, the program `stagecraft` and the
files that the sweep or the scenario names.
"""
from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import tempfile
import time
from typing import Any, Callable, Mapping, Optional, Protocol, Sequence

from . import _errors, _orders, _process

_PARTS = 16  #: The most parts of a sweep, unless the caller says how many.
_SOME_POINTS_FAILED = 3
_ERRORS = {2: _errors.InputError, 4: _errors.BackendError, 70: _errors.InternalError}


class Executor(Protocol):
    """What runs the parts: concurrent.futures, a Dask Client, mpi4py.futures and others.

    Its futures have result(); done() and cancel() are used where they exist."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any: ...


def _named(part: str, error: Exception) -> _errors.StagecraftError:
    if isinstance(error, _errors.StagecraftError):
        return type(error)(f"{part}: {error}", error.diagnostics)
    return _errors.BackendError(f"{part}: {type(error).__name__}: {error}")


def _do_parts(executor: Executor, function: Callable[..., Any], parts: Sequence[tuple[Any, ...]],
              name: Callable[[int], str], take: Callable[[int, Any], None]) -> None:
    """Passes the result of each part to `take`, in the order in which they end. An error has the name of its part. Whatever
    ends this early, parts that have not begun are cancelled."""
    waiting: dict[int, Any] = {}
    pause = 0.0005
    try:
        for number, arguments in enumerate(parts):
            try:
                waiting[number] = executor.submit(function, *arguments)
            except Exception as error:
                raise _named(name(number), error) from error
        while waiting:
            ended = [number for number, future in waiting.items() if not hasattr(future, "done") or future.done()]
            for number in ended:
                try:
                    result = waiting.pop(number).result()
                except Exception as error:
                    raise _named(name(number), error) from error
                take(number, result)
            pause = 0.0005 if ended else min(2 * pause, 0.05)
            if waiting and not ended:
                time.sleep(pause)
    finally:
        for future in waiting.values():
            if hasattr(future, "cancel"):
                future.cancel()


def _content(file: str) -> bytes:
    """A database with what is still in its log."""
    import sqlite3

    with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
        copy = os.path.join(folder, "copy.db")
        with contextlib.closing(sqlite3.connect(file)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        return _read(copy)


def _read(file: str) -> bytes:
    with open(file, "rb") as stream:
        return stream.read()


def _write(file: str, content: bytes) -> str:
    with open(file, "wb") as stream:
        stream.write(content)
    return file


def sweep_part(words: str, known: bytes) -> bytes:
    """In a worker: runs a shard of a sweep, without the points whose results are in the database `known`, and returns the
    database with its results. `words` is the command, a list as JSON."""
    with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
        out = os.path.join(folder, "part.db")
        if known:
            _write(out, known)
        done = subprocess.run([_process.program(), *json.loads(words), "--out", out], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=_process.environment())
        if done.returncode not in (0, _SOME_POINTS_FAILED):
            text = done.stderr.strip() or f"'{_process.program()}' ended with {done.returncode}"
            raise _ERRORS.get(done.returncode, _errors.BackendError)(text)
        return _content(out)


def sweep(executor: Executor, params: Mapping[str, Any], parts: Optional[int],
          progress: Optional[_process.Progress]) -> Any:
    """The answer to the request "sweep", with its missing points run as shards by the executor."""
    request = _process.server.request
    begun = request("sweep", {**params, "run": False})
    missing = begun["missing"]
    if missing == 0:
        return begun
    count = min(_PARTS if parts is None else parts, missing)
    words = ["sweep", _path(params["file"]), "--jobs", str(params["jobs"] or 1)]
    words += [word for set_ in params["sets"] for word in ("--set", set_)]
    words += [word for only in params["only"] for word in ("--only", only)]
    if "backend" in params:
        words += ["--backend", params["backend"]]
    known = b"" if missing == len(begun["table"]["points"]) else _content(params["out"])
    shards = [(json.dumps([*words, "--shard", f"{number}/{count}"]), known) for number in range(1, count + 1)]
    with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
        files: list[str] = []

        def take(number: int, content: bytes) -> None:
            files.append(_write(os.path.join(folder, f"{number}.db"), content))
            if progress is not None:
                progress({"progress": f"{len(files)} of {count} parts of the sweep", "done": len(files), "total": count})

        try:
            _do_parts(executor, sweep_part, shards, lambda number: f"part {number + 1} of {count} of the sweep", take)
        except BaseException:
            if files:  # What has ended is kept, so that the next sweep goes on from there.
                request("sweep", {**params, "run": False, "parts": files})
            raise
        return request("sweep", {**params, "parts": files}, progress)


def _path(file: str) -> str:
    """A file for a worker, which may be in another folder; names of scenarios stay names."""
    return os.path.abspath(file) if os.path.exists(file) else file


_idle: list[_process.Server] = []  #: Processes of this worker that wait for a task.
_of_parent: list[_process.Server] = []


def _stop_idle() -> None:
    while _idle:
        _idle.pop().stop()


def _forget_idle() -> None:
    """In a forked process: the processes stay the parent's."""
    for server in _idle:
        server.forget()
    _of_parent.extend(_idle)
    _idle.clear()


atexit.register(_stop_idle)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_idle)


def search_task(params: str, scenario: str, task: str, own: Optional[_orders.Functions] = None) -> str:
    """In a worker: evaluates a task of a search. `params` is the question as JSON, and `scenario` the text of its file where
    only the process that searches has one. `own` has the schedules that are functions."""
    try:
        server = _idle.pop()
    except IndexError:
        server = _process.Server()
    request = {**json.loads(params), "task": task}
    with contextlib.ExitStack() as stack:
        if scenario:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="search-"))
            request["file"] = _write(os.path.join(folder, "scenario.yaml"), scenario.encode())
        try:
            result = str(server.request("search_task", request, None, own.answer if own else None)["result"])
        except BaseException:
            server.stop()
            raise
    _idle.append(server)
    return result


def search(executor: Executor, params: Mapping[str, Any], own: _orders.Functions, scenario: str,
           progress: Optional[_process.Progress]) -> Any:
    """The answer to the request "search", with its plans and simulations evaluated by the executor."""

    functions = (own,) if own.by_name else ()

    def answer(batch: dict[str, Any]) -> dict[str, Any]:
        if batch["call"] != "search_tasks":
            return own.answer(batch)
        question = json.dumps({**params, "file": _path(params["file"]), "question": batch["question"], "left": batch["left"]})
        tasks = batch["tasks"]
        results = [""] * len(tasks)
        _do_parts(executor, search_task, [(question, scenario, task, *functions) for task in tasks],
                  lambda number: f"task {number + 1} of {len(tasks)} in a batch of the search", results.__setitem__)
        return {"results": results}

    return _process.server.request("search", {**params, "executor": True}, progress, answer)
