"""Exceptions with the diagnostics that the command line prints."""
from __future__ import annotations

import dataclasses
from typing import Any, Sequence


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One problem with an input, and what would mend it."""

    message: str
    file: str = ""
    line: int = 0  #: Counted from 1; 0: no place.
    column: int = 0
    path: str = ""  #: Dotted path of the field, such as "run.schedule".
    help: str = ""
    code: str = ""  #: A stable word for scripts, such as "unknown-field".

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        text = ": ".join(part for part in (place, self.path, self.message) if part)
        return f"{text}\n  help: {self.help}" if self.help else text


class StagecraftError(Exception):
    """Base of all errors; `diagnostics` lists every problem that was found."""

    def __init__(self, text: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(text)
        self.diagnostics = tuple(diagnostics)


class InputError(StagecraftError):
    """The input is wrong (exit code 2 of the command line)."""


class Infeasible(StagecraftError):
    """The input is right but cannot be done: memory, a deadlock (exit code 3)."""


class BackendError(StagecraftError):
    """The machine or a backend failed (exit code 4)."""


class InternalError(StagecraftError):
    """A bug in Stagecraft (exit code 70)."""


_TYPES = {"input": InputError, "infeasible": Infeasible, "backend": BackendError}


def diagnostic_of(problem: dict[str, Any]) -> Diagnostic:
    """A diagnostic from an object of JSON."""
    return Diagnostic(**{field.name: problem[field.name] for field in dataclasses.fields(Diagnostic)})


def error_of(error: dict[str, Any]) -> StagecraftError:
    """The exception that an answer asks for."""
    diagnostics = [diagnostic_of(problem) for problem in error["problems"]]
    return _TYPES.get(error["type"], InternalError)(error["text"], diagnostics)
