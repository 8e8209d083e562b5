"""Schedules and planners as Python functions."""
from __future__ import annotations

import dataclasses
import inspect
import operator
import os
import sys
from types import CodeType
from typing import Any, Callable, Iterable, Optional, Sequence, Union, overload

from . import _errors

_KINDS = "FBIWR"


def _line_of_caller() -> int:
    return sys._getframe(2).f_lineno


@dataclasses.dataclass(frozen=True)
class Op:
    """One computation of a stage on one micro-batch. `line` is where it was written."""

    kind: str  #: F forward, B backward, I input gradient, W weight gradient, R recomputation.
    micro_batch: int
    stage: Optional[int] = None  #: None: the only stage of the rank.
    line: int = dataclasses.field(default=0, compare=False)


def F(micro_batch: int, stage: Optional[int] = None) -> Op:
    """A forward."""
    return Op("F", micro_batch, stage, _line_of_caller())


def B(micro_batch: int, stage: Optional[int] = None) -> Op:
    """A whole backward."""
    return Op("B", micro_batch, stage, _line_of_caller())


def I(micro_batch: int, stage: Optional[int] = None) -> Op:  # noqa: E743
    """An input gradient, the first half of a split backward."""
    return Op("I", micro_batch, stage, _line_of_caller())


def W(micro_batch: int, stage: Optional[int] = None) -> Op:
    """A weight gradient, the second half of a split backward."""
    return Op("W", micro_batch, stage, _line_of_caller())


def R(micro_batch: int, stage: Optional[int] = None) -> Op:
    """A recomputation of the forward before its backward."""
    return Op("R", micro_batch, stage, _line_of_caller())


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """What a schedule may use to decide an order."""

    stages: tuple[tuple[int, ...], ...]  #: The stages of each rank.
    micro_batches_of: tuple[int, ...]  #: Micro-batches of each stage in one iteration.
    costs: tuple[dict[str, float], ...]  #: Seconds of each stage: forward, backward, input_gradient, ...

    @property
    def ranks(self) -> int:
        return len(self.stages)

    @property
    def micro_batches(self) -> int:
        return max(self.micro_batches_of)


Order = Callable[[int, Pipeline], Iterable[Op]]

_LARGEST = 2**31 - 1


def _index(value: Any, what: str, op: Op, schedule: str, rank: int) -> int:
    """A whole number, also one of NumPy; a fraction would otherwise lose its end on the way."""
    try:
        number = operator.index(value)
    except TypeError:
        number = _LARGEST + 1
    if abs(number) > _LARGEST:
        raise TypeError(f"the schedule '{schedule}' gives {op.kind} the {what} {value!r} for rank {rank} (line {op.line}); "
                        f"write a whole number up to {_LARGEST}")
    return number


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A schedule that a function defines: `order(rank, pipeline)` yields the ops of a rank, for one iteration."""

    order: Order
    name: str
    placement: str = "any"
    chunks: int = 1

    def _request(self) -> dict[str, Any]:
        code = _code_of(self.order)
        return {"name": self.name, "placement": self.placement, "chunks": self.chunks,
                "file": code.co_filename, "line": code.co_firstlineno}

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        pipeline = Pipeline(tuple(tuple(row) for row in question["stages"]), tuple(question["micro_batches"]),
                            tuple(question["costs"]))
        return {"rows": [self._row(rank, pipeline) for rank in range(pipeline.ranks)]}

    def _row(self, rank: int, pipeline: Pipeline) -> list[int]:
        row: list[int] = []
        for op in self.order(rank, pipeline):
            if not isinstance(op, Op) or op.kind not in _KINDS or len(op.kind) != 1:
                raise TypeError(f"the schedule '{self.name}' gives {op!r} for rank {rank}; write F(0), B(0), I(0), W(0) or R(0)")
            micro_batch = _index(op.micro_batch, "micro-batch", op, self.name, rank)
            stage = op.stage
            if stage is None:
                if len(pipeline.stages[rank]) != 1:
                    raise self._error(op, f"rank {rank} has {len(pipeline.stages[rank])} stages, and {op.kind}({op.micro_batch}) names none",
                                      f"write {op.kind}({op.micro_batch}, stage), with a stage of {list(pipeline.stages[rank])}")
                stage = pipeline.stages[rank][0]
            row += (_KINDS.index(op.kind), _index(stage, "stage", op, self.name, rank), micro_batch, op.line)
        return row

    def _error(self, op: Op, message: str, help_text: str) -> _errors.InputError:
        diagnostic = _errors.Diagnostic(message, _code_of(self.order).co_filename, op.line, 0, f"schedule '{self.name}'",
                                        help_text, "stage")
        return _errors.InputError(str(diagnostic), [diagnostic])


@overload
def schedule_function(order: Order, *, name: Optional[str] = None, placement: str = "any", chunks: int = 1) -> Schedule: ...
@overload
def schedule_function(order: None = None, *, name: Optional[str] = None, placement: str = "any",
                      chunks: int = 1) -> Callable[[Order], Schedule]: ...


def schedule_function(order: Optional[Order] = None, *, name: Optional[str] = None, placement: str = "any",
                      chunks: int = 1) -> Union[Schedule, Callable[[Order], Schedule]]:
    """Makes a schedule of a function `order(rank, pipeline)`, which yields ops such as F(0) and B(0).

    `placement` says which rank has which stages: any, linear, loop, v or wave; `chunks` is the number of stages on each
    rank. The same validator checks it that checks built-in schedules; its diagnostics name the lines of the function."""

    def wrap(function: Order) -> Schedule:
        return Schedule(function, name or str(getattr(function, "__name__", "function")), placement, chunks)

    return wrap if order is None else wrap(order)


def as_schedule(given: Union[Schedule, Order]) -> Schedule:
    """A function as it is, or what schedule_function() made of it."""
    return given if isinstance(given, Schedule) else Schedule(given, getattr(given, "__name__", "function"))


@dataclasses.dataclass(frozen=True)
class Functions:
    """Schedules that are functions, by name. Executors send them to their workers."""

    by_name: dict[str, Schedule]

    def requests(self) -> list[dict[str, Any]]:
        return [schedule._request() for schedule in self.by_name.values()]

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        return self.by_name[question["name"]]._answer(question)


def words_and_functions(given: Iterable[Any]) -> tuple[list[str], Functions]:
    """Names and files of schedules, and functions."""
    words: list[str] = []
    functions: dict[str, Schedule] = {}
    for one in given:
        if isinstance(one, (str, os.PathLike)):
            words.append(os.fspath(one))
            continue
        schedule = as_schedule(one)
        if functions.setdefault(schedule.name, schedule) is not schedule:
            raise ValueError("functions with the same name cannot be told apart; give one a name: "
                             "schedule_function(f, name=...)")
    return words, Functions(functions)


@dataclasses.dataclass(frozen=True)
class Layer:
    """A layer as planners see it."""

    name: str
    type: str
    parameters: float
    output_bytes: float
    times: dict[str, tuple[float, float, float]]  #: By device type: seconds of forward, input and weight gradient of a micro-batch.


@dataclasses.dataclass(frozen=True)
class Device:
    name: str
    type: str
    host: str
    memory_bytes: float


@dataclasses.dataclass(frozen=True)
class Problem:
    """What a planner may use."""

    layers: tuple[Layer, ...]
    devices: tuple[Device, ...]
    micro_batches: int
    micro_batch_size: int
    stages: Optional[int]  #: The number that the scenario asks for, if it does.

    def seconds(self, layer: Layer, device: Device) -> float:
        """The time of forward and backward of one micro-batch of the layer on the device."""
        return sum(layer.times[device.type])


@dataclasses.dataclass(frozen=True)
class Stage:
    """A stage of a plan: names of layers or ranges "first..last", and of devices, several for replicas."""

    layers: tuple[str, ...]
    devices: tuple[str, ...]
    micro_batch_size: Optional[int] = None
    name: Optional[str] = None
    line: int = dataclasses.field(default=0, compare=False)


def stage(layers: Union[str, Layer, Iterable[Union[str, Layer]]], devices: Union[str, Device, Iterable[Union[str, Device]]],
          *, micro_batch_size: Optional[int] = None, name: Optional[str] = None) -> Stage:
    """One stage for a planner to return."""
    return Stage(_names(layers), _names(devices), micro_batch_size, name, _line_of_caller())


def _names(given: Any) -> tuple[str, ...]:
    items = [given] if isinstance(given, (str, Layer, Device)) else list(given)
    return tuple(item if isinstance(item, str) else item.name for item in items)


Planner = Callable[[Problem], Sequence[Stage]]


def problem_of(details: dict[str, Any]) -> Problem:
    layers = tuple(Layer(one["name"], one["type"], one["parameters"], one["output_bytes"],
                         {device: (forward, input_gradient, weight_gradient)
                          for device, (forward, input_gradient, weight_gradient) in one["times"].items()})
                   for one in details["layers"])
    devices = tuple(Device(**one) for one in details["devices"])
    return Problem(layers, devices, details["micro_batches"], details["micro_batch_size"], details.get("stages"))


def planned(planner: Planner, details: dict[str, Any]) -> dict[str, Any]:
    """The parameter `plan` of a request."""
    code = _code_of(planner)
    stages = []
    for one in planner(problem_of(details)):
        if not isinstance(one, Stage):
            raise TypeError(f"the planner '{getattr(planner, '__name__', planner)}' gives {one!r}; write stage(layers, devices)")
        entry: dict[str, Any] = {"layers": list(one.layers), "devices": list(one.devices), "line": one.line}
        if one.micro_batch_size is not None:
            entry["micro_batch_size"] = one.micro_batch_size
        if one.name is not None:
            entry["name"] = one.name
        stages.append(entry)
    return {"file": code.co_filename, "line": code.co_firstlineno, "stages": stages}


def _code_of(function: Any) -> CodeType:
    code = getattr(inspect.unwrap(function), "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None:
        raise TypeError(f"{function!r} is no Python function")
    assert isinstance(code, CodeType)
    return code
