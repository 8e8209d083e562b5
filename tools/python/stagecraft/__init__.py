"""Stagecraft in Python: simulate, search and compare training runs.

    import stagecraft as sc
    run = sc.run("examples/quickstart", backend="fluid")
    run.period, run.to_pandas(), run.plot()

A scenario is a file, a name that `stagecraft list scenarios` shows, a dict, or what load() returns. `sets` are fields to
change: {"run.micro_batches": 16} or ["run.micro_batches=16"].
"""
from __future__ import annotations

import dataclasses
import json
import os
import tempfile
import weakref
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union, cast

from . import _executors, _process
from ._errors import BackendError, Diagnostic, Infeasible, InputError, InternalError, StagecraftError, diagnostic_of
from ._executors import Executor
from ._orders import (B, Device, F, I, Layer, Op, Order, Pipeline, Planner, Problem, R, Schedule, Stage, W, as_schedule,
                      planned, schedule_function, stage, words_and_functions)
from ._results import Picture, Run, SearchResult, Table, compared

__all__ = ["B", "BackendError", "CheckResult", "Device", "Diagnostic", "Executor", "F", "I", "Infeasible", "InputError", "InternalError",
           "Layer", "Op", "Picture", "Pipeline", "Problem", "R", "Run", "Scenario", "Schedule", "SearchResult", "Stage",
           "StagecraftError", "Table", "W", "check", "compare", "explain", "load", "plan", "run", "schedule",
           "schedule_function", "search", "stage", "sweep", "version"]

Sets = Union[Mapping[str, Any], Iterable[str], None]
Progress = Callable[[dict[str, Any]], None]
ScheduleLike = Union[str, "os.PathLike[str]", Schedule, Order]
ScenarioLike = Union[str, "os.PathLike[str]", Mapping[str, Any], "Scenario"]


def version() -> str:
    """The version of the program that answers."""
    return str(_process.check_version()["version"])


def _assignments(sets: Sets) -> tuple[str, ...]:
    if sets is None:
        return ()
    if isinstance(sets, Mapping):
        return tuple(f"{path}={value if isinstance(value, str) else json.dumps(value)}" for path, value in sets.items())
    if isinstance(sets, str):
        raise TypeError("sets is a dict or a list of 'path=value'")
    return tuple(sets)


class Scenario:
    """A scenario that has been read and checked. It is a value: with_sets() makes another one."""

    def __init__(self, file: str, sets: Sequence[str], about: dict[str, Any], keep: Any = None) -> None:
        self.file = file
        self.sets = tuple(sets)
        self._keep = keep
        self.title: str = about["title"]
        self.model: str = about["model"]
        self.cluster: str = about["cluster"]
        self.schedule: str = about["schedule"]
        self.planner: str = about["planner"]
        self.micro_batches: int = about["micro_batches"]
        self.parameters: float = about["parameters"]
        self.yaml: str = about["yaml"]  #: Every field, with defaults filled in.

    def with_sets(self, sets: Sets) -> Scenario:
        """The scenario with fields changed."""
        return _load(self.file, (*self.sets, *_assignments(sets)), self._keep)

    def details(self) -> Problem:
        """Layers and devices, as planners see them."""
        from ._orders import problem_of

        return problem_of(_process.server.request("load", {"file": self.file, "sets": list(self.sets), "details": True}))

    def __repr__(self) -> str:
        return f"<Scenario {self.title!r}: {self.model} on {self.cluster}, schedule {self.schedule}>"


def _load(file: str, sets: Sequence[str], keep: Any = None) -> Scenario:
    return Scenario(file, sets, _process.server.request("load", {"file": file, "sets": list(sets)}), keep)


class _TemporaryScenario:
    """A file for a scenario that is a dict; it goes away with the last scenario that needs it."""

    def __init__(self, tree: Mapping[str, Any]) -> None:
        descriptor, self.file = tempfile.mkstemp(prefix="scenario-", suffix=".yaml")
        with os.fdopen(descriptor, "w") as stream:
            json.dump(tree, stream, indent=1)  # JSON is YAML.
        weakref.finalize(self, _remove, self.file)


def _text_of_temporary(scenario: Any) -> str:
    """The file of a scenario that was a dict, which other processes may not see; empty for another scenario."""
    kept = scenario._keep if isinstance(scenario, Scenario) else None
    if not isinstance(kept, _TemporaryScenario):
        return ""
    with open(kept.file) as stream:
        return stream.read()


def _remove(file: str) -> None:
    try:
        os.unlink(file)
    except FileNotFoundError:
        pass


def load(scenario: ScenarioLike, sets: Sets = None) -> Scenario:
    """Reads and checks a scenario; raises InputError with every problem of it."""
    if isinstance(scenario, Scenario):
        return scenario.with_sets(sets) if sets else scenario
    if isinstance(scenario, Mapping):
        kept = _TemporaryScenario(scenario)
        return _load(kept.file, _assignments(sets), kept)
    return _load(os.fspath(scenario), _assignments(sets))


def _asked(scenario: ScenarioLike, sets: Sets) -> tuple[dict[str, Any], Any]:
    """The parameters of a request about a scenario, and what must live meanwhile."""
    if isinstance(scenario, Mapping):
        scenario = load(scenario)
    if isinstance(scenario, Scenario):
        return {"file": scenario.file, "sets": [*scenario.sets, *_assignments(sets)]}, scenario
    return {"file": os.fspath(scenario), "sets": list(_assignments(sets))}, None


def _ask_for_order(params: dict[str, Any], schedule: Optional[ScheduleLike]) -> Optional[_process.Answer]:
    """Makes the request ask for a schedule: a name, a file NAME.csv or a function, which answers questions."""
    if schedule is None:
        return None
    if isinstance(schedule, (str, os.PathLike)):
        word = os.fspath(schedule)
        value = json.dumps({"csv": os.path.abspath(word)}) if word.endswith(".csv") else word
        params["sets"].append(f"run.schedule={value}")
        return None
    order = as_schedule(schedule)
    params["order"] = order._request()
    return order._answer


@dataclasses.dataclass(frozen=True)
class CheckResult:
    """What check() found; true when nothing is wrong."""

    diagnostics: tuple[Diagnostic, ...]
    summaries: dict[str, str]  #: One line about each good file.
    text: str  #: The problems as the command line prints them.
    exit_code: int

    def __bool__(self) -> bool:
        return not self.diagnostics


def check(*files: Union[str, "os.PathLike[str]"], sets: Sets = None) -> CheckResult:
    """Everything that is wrong with scenarios, models, clusters and sweeps, without raising."""
    answer = _process.server.request("check", {"files": [os.fspath(file) for file in files], "sets": list(_assignments(sets))})
    return CheckResult(tuple(diagnostic_of(problem) for problem in answer["problems"]),
                       {good["file"]: good["summary"] for good in answer["good"]}, answer["text"], answer["exit_code"])


def run(scenario: ScenarioLike, *, backend: Optional[str] = None, sets: Sets = None,
        schedule: Optional[ScheduleLike] = None, planner: Union[Planner, str, None] = None, diagnose: bool = True,
        memory: bool = True, progress: Optional[Progress] = None) -> Run:
    """Runs a scenario on a backend: without a name on simgrid, above 64 devices on fluid.

    `schedule` and `planner` may be functions, and `schedule` a file NAME.csv: see schedule_function() and stage().
    `diagnose=False` leaves out what limits the run, and `memory=False` memory over time; both take time in large runs."""
    params, keep = _asked(scenario, sets)
    params.update(backend=backend, diagnose=diagnose, memory=memory)
    if isinstance(planner, str):
        params["sets"].append(f"plan.planner={planner}")
    if planner is not None and not isinstance(planner, str):
        params["plan"] = planned(planner, _process.server.request("load", {**params, "details": True}))
    result: Run = _process.server.request("run", params, progress, _ask_for_order(params, schedule), after=Run)
    del keep
    return result


def schedule(order: Union[str, Schedule, Order], *, ranks: int, micro_batches: int, chunks: Optional[int] = None,
             forward: float = 1, backward: Optional[float] = None, input_gradient: Optional[float] = None,
             weight_gradient: Optional[float] = None, recompute: Optional[float] = None, update: float = 0,
             message: float = 0, options: Sets = None) -> Run:
    """Times an order of work without a scenario, in any unit of time: a name such as "1f1b", or a function."""
    params: dict[str, Any] = {"ranks": ranks, "microbatches": micro_batches, "f": forward, "u": update, "comm": message,
                              "sets": list(_assignments(options))}
    for key, value in (("chunks", chunks), ("b", backward), ("i", input_gradient), ("w", weight_gradient), ("r", recompute)):
        if value is not None:
            params[key] = value
    answer = None
    if isinstance(order, str):
        params["name"] = order
    else:
        function = as_schedule(order)
        params["order"] = function._request()
        answer = function._answer
    result: Run = _process.server.request("schedule", params, None, answer, after=Run)
    return result


def compare(scenario: Union[ScenarioLike, Sequence[Run]], *, schedules: Union[str, Sequence[ScheduleLike]] = "all",
            backend: str = "ideal", by: str = "period", replay: int = 0, sets: Sets = None,
            progress: Optional[Progress] = None) -> Table:
    """Schedules on one scenario, best first by period, time, memory or traffic; or several runs next to each other.

    A schedule is a name such as "1f1b", a file NAME.csv with an order, or a function: see schedule_function()."""
    if isinstance(scenario, Sequence) and not isinstance(scenario, (str, bytes)):
        return compared(list(scenario))
    params, keep = _asked(cast(ScenarioLike, scenario), sets)
    words, own = words_and_functions([schedules] if isinstance(schedules, str) else schedules)
    answer = _process.server.request(
        "compare", {**params, "schedules": ",".join(words), "functions": own.requests(),
                    "backend": backend, "by": by, "replay": replay}, progress, own.answer)
    del keep
    return Table(answer["table"], "schedules", answer["text"])


def plan(scenario: ScenarioLike, *, planners: Union[str, Sequence[str]] = "all", backend: str = "ideal", replay: int = 0,
         schedule: Optional[ScheduleLike] = None, sets: Sets = None, progress: Optional[Progress] = None) -> Table:
    """Planners on one scenario, with its schedule or another: predicted and simulated time, lower bound, memory."""
    params, keep = _asked(scenario, sets)
    names = planners if isinstance(planners, str) else ",".join(planners)
    answer_function = _ask_for_order(params, schedule)
    answer = _process.server.request("plan", {**params, "planners": names, "backend": backend, "replay": replay}, progress,
                                     answer_function)
    del keep
    return Table(answer["table"], "plans", answer["text"])


def search(scenario: ScenarioLike, *, schedules: Sequence[ScheduleLike] = (), weights: Sequence[str] = (),
           seconds: Optional[float] = None, contended: bool = True, threads: int = 0, sets: Sets = None,
           objective: str = "time", margin: float = 0.06, executor: Optional[Executor] = None,
           progress: Optional[Progress] = None, data: Sequence[str] = ()) -> SearchResult:
    """Searches plans, devices, schedules, micro-batches and recomputation together for the fastest, or with the
    objective "cost" or "energy" for the cheapest or for the least energy. The first row leaves the share `margin` of each
    device's memory free, if any row does.

    A schedule is a name, a file NAME.csv, whose order runs on plans with as many stages and micro-batches, or a function,
    which gives an order for each plan. `data` has what the search chooses too of how sequences of different lengths are
    packed: "room", "pack" or "order".

    `executor`, anything whose submit() returns futures, makes the plans and runs the simulations; the answer is the same.
    Its workers need this module, the program, the functions and the files of the scenario; `threads` is not used then."""
    params, keep = _asked(scenario, sets)
    words, own = words_and_functions(schedules)
    params.update(schedules=words, functions=own.requests(), weights=list(weights), contended=contended, threads=threads,
                  objective=objective, margin=margin, data=list(data))
    if seconds is not None:
        params["seconds"] = seconds
    if executor is None:
        answer = _process.server.request("search", params, progress, own.answer)
    else:
        answer = _executors.search(executor, params, own, _text_of_temporary(keep), progress)
    best: Optional[Scenario] = None
    if answer.get("best") is not None:
        best_sets = [] if answer["as_written_is_best"] else answer["best"]
        best = _load(params["file"], [*params["sets"], *best_sets, f"run.iterations={answer['iterations']}"], keep)
    return SearchResult(answer["table"], "choices", answer["text"], best)


def sweep(file: Union[str, "os.PathLike[str]"], *, out: Union[str, "os.PathLike[str]"], backend: Optional[str] = None,
          jobs: int = 0, schedules: Sequence[Union[Schedule, Order]] = (), sets: Sets = None, only: Sequence[str] = (),
          executor: Optional[Executor] = None, parts: Optional[int] = None, progress: Optional[Progress] = None) -> Table:
    """Runs every point of a sweep that has no result in the SQLite file `out` yet.

    `schedules` are functions whose names the file has among the values of run.schedule. Each gives an order for the plan of
    each point that has its name. They do not go with an executor.

    `executor`, anything whose submit() returns futures, runs the points in `parts` parts, 16 by default; the results are the
    same. Its workers need this module, the program and the files of the sweep. Each part has `jobs` processes, one by
    default. After an error the parts that have ended are in `out`, and the next sweep runs the others."""
    if parts is not None and parts < 1:
        raise ValueError("parts is at least 1")
    if schedules and executor is not None:
        raise ValueError("functions are asked in this process, so leave the executor out, or write their orders to files: "
                         "run.schedule: {csv: NAME.csv}")
    params: dict[str, Any] = {"file": os.fspath(file), "out": os.fspath(out), "jobs": jobs, "only": list(only),
                              "sets": list(_assignments(sets))}
    if backend is not None:
        params["backend"] = backend
    own = words_and_functions(schedules)[1]
    params["functions"] = own.requests()
    if executor is None:
        answer = _process.server.request("sweep", params, progress, own.answer)
    else:
        answer = _executors.sweep(executor, params, parts, progress)
    return Table(answer["table"], "points", answer["text"])


def explain(path: str) -> str:
    """Text about a field by its dotted path, a term such as bubble, or a name such as 1f1b."""
    return str(_process.server.request("explain", {"path": path})["text"])


def __dir__() -> list[str]:
    return sorted(__all__)
