"""Results as objects: numbers, NumPy views, pandas, pictures."""
from __future__ import annotations

import html
import mmap
import os
import weakref
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence, Union

from . import _process

if TYPE_CHECKING:
    import numpy
    import numpy.typing
    import pandas

    Array = numpy.typing.NDArray[Any]


class SharedArrays:
    """Columns in memory that the simulator has filled. Every view keeps the memory alive."""

    def __init__(self, layout: dict[str, Any]) -> None:
        descriptor = os.open(layout["path"], os.O_RDONLY)
        try:
            self._memory = mmap.mmap(descriptor, layout["bytes"], access=mmap.ACCESS_READ)
        finally:
            os.close(descriptor)
        self._columns = {(column["table"], column["name"]): column for column in layout["columns"]}

    def column(self, table: str, name: str) -> Array:
        """A read-only view without a copy."""
        import numpy

        column = self._columns[table, name]
        return numpy.ndarray(column["count"], column["dtype"], self._memory, column["offset"], (column["stride"],))

    def count(self, table: str, name: str) -> int:
        return int(self._columns[table, name]["count"])

    def has(self, table: str) -> bool:
        return any(key[0] == table for key in self._columns)

    def names(self, table: str) -> list[str]:
        return [name for of_table, name in self._columns if of_table == table]


class Run:
    """A finished run: `run["period_s"]` is a number of results.json, `run.spans` is every instruction."""

    def __init__(self, result: dict[str, Any]) -> None:
        self.title: str = result["title"]
        self.results: dict[str, Any] = result["results"]  #: results.json of the command line.
        self.devices: list[str] = result["devices"]
        self.stages: list[str] = result["stages"]
        self.kinds: list[str] = result["kinds"]
        self.iterations: int = result["iterations"]
        self.resident_bytes: list[float] = result["resident_bytes"]
        self.notes: list[str] = result.get("notes", [])  #: What looks like a slip in the scenario.
        self._micro_batches: list[int] = result["micro_batches"]
        self._arrays = SharedArrays(result["arrays"])
        self._key = (_process.server.generation, result["run"])
        weakref.finalize(self, _process.server.release, *self._key)

    def __getitem__(self, name: str) -> Any:
        return self.results[name]

    @property
    def makespan(self) -> float:
        """Seconds of the first iteration (in the unit of the costs for an order without a scenario)."""
        return float(self.results["makespan_s" if "makespan_s" in self.results else "makespan"])

    @property
    def period(self) -> float:
        """Seconds of one more iteration."""
        return float(self.results["period_s" if "period_s" in self.results else "period"])

    @property
    def throughput(self) -> float:
        """Samples of a second."""
        return float(self.results["throughput_samples_per_s"])

    @property
    def bubble(self) -> float:
        """Share of a period in which devices wait for other stages, mean over the devices."""
        return float(self.results["bubble"])

    @property
    def spans(self) -> Mapping[str, Array]:
        """A view of each column: start and end in seconds; kind (an index of `kinds`), device, stage; number, the
        micro-batch counted through the iterations, or the update; stream; planned, the time of the op in the plan."""
        return {name: self._arrays.column("instructions", name) for name in self._arrays.names("instructions")}

    def memory(self, device: int) -> Mapping[str, Array]:
        """Memory of a device after each change, in bytes, without `resident_bytes`: time, stash, received, outgoing;
        activations; cause, the row of the instruction in `spans`."""
        if not self._arrays.has("memory"):
            raise LookupError("this run has no memory over time (memory=False, or an order without a scenario)")
        if not 0 <= device < len(self.devices):
            raise IndexError(f"there is no device {device}; this run has {len(self.devices)}, counted from 0")
        first = self._arrays.column("memory_first", "row")
        rows = slice(int(first[device]), int(first[device + 1]))
        return {name: self._arrays.column("memory", name)[rows] for name in self._arrays.names("memory")}

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each instruction. Numbers are views of `spans`; kind, device and stage are categories with the
        same memory below them where the type of pandas' codes allows it. `micro_batch` is `number`."""
        import numpy
        import pandas

        spans = self.spans
        columns: dict[str, Any] = {}
        names = {"kind": (self.kinds, numpy.int8), "device": (self.devices, None), "stage": (self.stages, None)}
        for name, values in spans.items():
            if name in ("start", "end", "planned"):
                columns[name] = values
            elif name == "number":
                columns["micro_batch"] = values
            elif name in names:
                categories, code_type = names[name]
                codes = values.view(code_type) if code_type else values
                columns[name] = pandas.Categorical.from_codes(codes, _unique(categories))
        return pandas.DataFrame(columns, copy=False)

    def gantt(self, width: int = 100) -> str:
        """The first iteration as text, one row for each device."""
        return self._draw("gantt", width)

    def svg(self) -> str:
        """The timeline as a picture."""
        return self._draw("svg")

    def html(self) -> str:
        """The report page."""
        return self._draw("html")

    def trace(self) -> str:
        """A trace for ui.perfetto.dev, as JSON."""
        return self._draw("trace")

    def summary(self) -> str:
        """The table that `stagecraft run` prints."""
        return self._draw("summary")

    def grid(self) -> str:
        """The order of work, one row for each device."""
        return self._draw("grid")

    def spans_csv(self) -> str:
        return self._draw("spans.csv")

    def headline(self) -> str:
        """One line with the numbers that people ask for first."""
        parts = [f"period {_seconds(self.period)}" if "period_s" in self.results else f"period {self.period:.6g}"]
        if "throughput_samples_per_s" in self.results:
            parts.append(f"{self.throughput:.4g} samples/s")
        parts.append(f"bubble {100 * self.bubble:.3g} %")
        peaks = [d["peak_memory_bytes"] for d in self.results.get("devices", []) if d.get("peak_memory_bytes")]
        if peaks:
            parts.append(f"peak memory {max(peaks) / 2**30:.4g} GiB")
        return ", ".join(parts)

    def compare(self, *others: "Run") -> "Table":
        """The numbers of this run and of others next to each other, with changes against this one."""
        return compared([self, *others])

    def plot(self, axes: Any = None) -> Any:
        """The timeline as the command line draws it, which notebooks show and `save()` writes as SVG or PDF. With axes of
        matplotlib: draws the ops on them, one row for each device, and returns them."""
        if axes is None:
            return Picture(self)
        import numpy

        spans = self.spans
        computes = spans["kind"] < self.kinds.index("send")
        for index, kind in enumerate(self.kinds):
            rows = numpy.flatnonzero(computes & (spans["kind"] == index))
            if rows.size:
                axes.barh(spans["device"][rows], spans["end"][rows] - spans["start"][rows], left=spans["start"][rows],
                          height=0.8, label=kind.replace("_", " "), edgecolor="white", linewidth=0.3)
        axes.set_yticks(range(len(self.devices)), self.devices)
        axes.invert_yaxis()
        axes.set_xlabel("time (s)" if "period_s" in self.results else "time")
        axes.set_title(self.title)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=4, frameon=False)
        return axes

    def __repr__(self) -> str:
        return f"<Run {self.title!r}: {self.headline()}>"

    def _repr_html_(self) -> str:
        text = f"<p><b>{html.escape(self.title)}</b><br>{html.escape(self.headline())}</p>"
        findings = self.results.get("diagnosis") or []
        if findings:
            text += f"<p>{html.escape(findings[0]['sentence'])}</p>"
        if self._arrays.count("instructions", "kind") <= 5000 and self._key[0] == _process.server.generation:
            picture = self.svg()
            text += picture[picture.index("<svg"):]
        return text

    def _draw(self, what: str, width: int = 100) -> str:
        run = self._key[1] if self._key[0] == _process.server.generation else 0
        return str(_process.server.request("draw", {"run": run, "what": what, "width": width})["text"])


class Picture:
    """A timeline: `save("figure.pdf")` or `save("figure.svg")` writes it, and notebooks show it."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def save(self, file: Union[str, "os.PathLike[str]"]) -> None:
        """Writes SVG, or PDF with its fonts, by the ending of the name."""
        name = os.fspath(file)
        if not name.endswith((".svg", ".pdf")):
            raise ValueError(f"'{name}' ends neither in .svg nor in .pdf")
        content = bytes.fromhex(self._run._draw("pdf")) if name.endswith(".pdf") else self._run.svg().encode()
        with open(name, "wb") as out:
            out.write(content)

    def _repr_svg_(self) -> str:
        picture = self._run.svg()
        return picture[picture.index("<svg"):]

    def __repr__(self) -> str:
        return f"<Picture of {self._run.title!r}; save(\"figure.pdf\") writes it>"


class Table(Sequence[Mapping[str, Any]]):
    """Rows of results: `table[0]["period_s"]`, `table.to_pandas()`; `print(table)` is what the command line prints."""

    def __init__(self, document: dict[str, Any], rows: str, text: str) -> None:
        self.document = document  #: The JSON that the command line writes.
        self.rows: list[dict[str, Any]] = document[rows]
        self.text = text

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def to_pandas(self) -> pandas.DataFrame:
        import pandas

        return pandas.DataFrame(self.rows)

    def to_latex(self, columns: Optional[Sequence[str]] = None) -> str:
        """A tabular of LaTeX with these columns, or all that hold plain values; needs the package booktabs."""
        plain = (str, int, float, bool, type(None))
        names = list(columns) if columns is not None else [
            name for name in self.rows[0] if all(isinstance(row.get(name), plain) for row in self.rows)] if self.rows else []
        cells = [[_latex(row.get(name)) for name in names] for row in self.rows]
        lines = [" & ".join(row) + r" \\" for row in [[_latex(name) for name in names], *cells]]
        return "\n".join([rf"\begin{{tabular}}{{{'l' * len(names)}}}", r"\toprule", *lines[:1], r"\midrule", *lines[1:],
                          r"\bottomrule", r"\end{tabular}", ""])

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


class SearchResult(Table):
    """The Pareto front of a search; `best` is the scenario of its first row."""

    def __init__(self, document: dict[str, Any], rows: str, text: str, best: Any) -> None:
        super().__init__(document, rows, text)
        self.best = best


def _unique(names: list[str]) -> list[str]:
    """pandas wants categories to differ."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        count = seen[name] = seen.get(name, 0) + 1
        result.append(name if count == 1 else f"{name} ({count})")
    return result


def _seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"


def _latex(value: Any) -> str:
    text = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    return "".join(_LATEX.get(character, character) for character in text)


_LATEX = {"\\": r"\textbackslash{}", "~": r"\~{}", "^": r"\^{}", **{character: "\\" + character for character in "&%$#_{}"}}


def compared(runs: Sequence[Run]) -> Table:
    """Runs next to each other, as `stagecraft compare` prints them; runs without a scenario by their headlines."""
    if not runs:
        raise ValueError("there is no run to compare")
    document: dict[str, Any] = {"runs": columns_of(runs, [None] * len(runs))}
    here = all(run._key[0] == _process.server.generation and "period_s" in run.results for run in runs)
    if not here or len(runs) < 2:
        return Table(document, "runs", "\n".join(f"{run.title}: {run.headline()}" for run in runs))
    names = [run.results.get("setup", {}).get("schedule", run.title) for run in runs]
    if len(set(names)) < len(names):
        names = [f"{name} ({k + 1})" for k, name in enumerate(names)]
    answer = _process.server.request("compare", {"runs": [run._key[1] for run in runs], "names": names})
    return Table(document, "runs", answer["text"])


def columns_of(runs: Sequence[Run], names: Sequence[Optional[str]]) -> list[dict[str, Any]]:
    """One row for each run with the numbers that most comparisons need."""
    rows: list[dict[str, Any]] = []
    for run, name in zip(runs, names):
        numbers: dict[str, Any] = {key: value for key, value in run.results.items() if isinstance(value, (int, float)) and not isinstance(value, bool)}
        rows.append({"run": name or run.title, **numbers})
    return rows
