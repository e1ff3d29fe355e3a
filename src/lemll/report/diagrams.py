"""The layout of the pictures of a comparison; templates draw them in the page's colours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from lemll._types import FloatArray

_WIDTH = 720.0
_LINE = 22.0
# With more rows than this, the table is easier to read than a picture.
_MOST_ROWS = 60


class Entry(Protocol):
    """A cell of a table: its figures, and how it prints them."""

    @property
    def figures(self) -> Sequence[float]:
        """Mean and, if there are several runs, deviation."""
        ...

    def text(self) -> str:
        """Return the text of the cell."""
        ...


class Tick(NamedTuple):
    """A position on an axis, with its text."""

    at: float
    text: str


class RankLabel(NamedTuple):
    """A method on the axis of ranks: its position, the position of its text, and the side."""

    x: float
    y: float
    text: str
    rank: str
    left: bool


class Bar(NamedTuple):
    """A group of methods that do not differ significantly."""

    start: float
    end: float
    y: float


class RankDiagram(NamedTuple):
    """A critical-difference diagram."""

    height: float
    ticks: list[Tick]
    labels: list[RankLabel]
    bars: list[Bar]
    difference: tuple[float, float]
    difference_text: str


def rank_diagram(
    methods: Sequence[str],
    ranks: Sequence[float] | FloatArray,
    groups: Sequence[Sequence[str]],
    difference: float,
) -> RankDiagram:
    """Lay out average ranks on a line, with the groups that do not differ below it.

    Parameters
    ----------
    methods : sequence of str
        Names of the methods.
    ranks : sequence of float
        Their average ranks.
    groups : sequence of sequence of str
        Methods that do not differ significantly.
    difference : float
        The critical difference of two ranks (Nemenyi, 5 %).

    Returns
    -------
    RankDiagram
        The layout that the template draws.
    """
    k = len(methods)
    left, right = 170.0, _WIDTH - 170.0

    def x(rank: float) -> float:
        return round(left + (rank - 1) / (k - 1) * (right - left), 1)

    order = sorted(range(k), key=lambda i: ranks[i])
    bars = [
        Bar(
            x(min(ranks[methods.index(name)] for name in group)) - 4,
            x(max(ranks[methods.index(name)] for name in group)) + 4,
            72 + 9 * number,
        )
        for number, group in enumerate(groups)
    ]
    top = 82.0 + 9 * len(bars)
    half = (k + 1) // 2
    labels = []
    for number, i in enumerate(order):
        on_left = number < half
        step = number if on_left else k - 1 - number
        labels.append(
            RankLabel(x(ranks[i]), top + _LINE * step, methods[i], f"{ranks[i]:.2f}", on_left)
        )
    end = min(difference, k - 1)
    return RankDiagram(
        height=top + _LINE * half,
        ticks=[Tick(x(rank), str(rank)) for rank in range(1, k + 1)],
        labels=labels,
        bars=bars,
        difference=(x(1), x(1 + end)),
        difference_text=f"critical difference {difference:.2f} (Nemenyi, 5 %)",
    )


class Dot(NamedTuple):
    """A method's mean on a data set, with its standard deviation as a line."""

    x: float
    low: float
    high: float
    method: int
    text: str


class DotRow(NamedTuple):
    """A data set."""

    y: float
    name: str
    dots: list[Dot]


class DotPlot(NamedTuple):
    """Means of all methods, one line per data set."""

    height: float
    ticks: list[Tick]
    rows: list[DotRow]


def dot_plot(
    datasets: Sequence[str],
    methods: Sequence[str],
    entries: Mapping[tuple[str, str], Entry],
) -> DotPlot | None:
    """Lay out every method's mean on every data set.

    Parameters
    ----------
    datasets, methods : sequence of str
        The names of rows and colours.
    entries : mapping of (str, str) to Entry
        Mean and deviation of each data set and method.

    Returns
    -------
    DotPlot or None
        None if there are no figures, or too many data sets for a picture.
    """
    figures = {key: entry.figures for key, entry in entries.items() if entry.figures}
    if not figures or len(datasets) > _MOST_ROWS:
        return None
    lows = [f[0] - (f[1] if len(f) > 1 else 0.0) for f in figures.values()]
    highs = [f[0] + (f[1] if len(f) > 1 else 0.0) for f in figures.values()]
    ticks = _round_ticks(min(lows), max(highs))
    left, right = 170.0, _WIDTH - 20.0
    span = ticks[-1] - ticks[0]

    def x(value: float) -> float:
        return round(left + (value - ticks[0]) / span * (right - left), 1)

    rows = []
    for number, dataset in enumerate(datasets):
        dots = []
        for column, method in enumerate(methods):
            found = figures.get((dataset, method))
            if found is not None:
                spread = found[1] if len(found) > 1 else 0.0
                text = f"{method} on {dataset}: {entries[dataset, method].text()}"
                dots.append(
                    Dot(x(found[0]), x(found[0] - spread), x(found[0] + spread), column, text)
                )
        rows.append(DotRow(30 + _LINE * number, dataset, dots))
    return DotPlot(
        height=40 + _LINE * len(rows),
        ticks=[Tick(x(value), f"{value:g}") for value in ticks],
        rows=rows,
    )


def value_dots(values: Mapping[str, Sequence[float]]) -> DotPlot:
    """Lay out values on one line per name, all dots of a line in one colour.

    Parameters
    ----------
    values : mapping of str to sequence of float
        The values by name; there must be at least one.

    Returns
    -------
    DotPlot
        The layout that the template draws.
    """
    given = [value for line in values.values() for value in line]
    ticks = _round_ticks(min(given), max(given))
    left, right = 170.0, _WIDTH - 20.0

    def x(value: float) -> float:
        return round(left + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (right - left), 1)

    rows = [
        DotRow(
            30 + _LINE * number,
            name,
            [Dot(x(v), x(v), x(v), number, f"{name}: {v:.4f}") for v in line],
        )
        for number, (name, line) in enumerate(values.items())
    ]
    return DotPlot(40 + _LINE * len(rows), [Tick(x(v), f"{v:g}") for v in ticks], rows)


class ScatterPoint(NamedTuple):
    """A method at its time and its average rank."""

    x: float
    y: float
    method: int
    text: str
    left: bool


class Scatter(NamedTuple):
    """Average rank over time."""

    x_ticks: list[Tick]
    y_ticks: list[Tick]
    points: list[ScatterPoint]


def time_scatter(
    methods: Sequence[str], ranks: Sequence[float], seconds: Mapping[str, float]
) -> Scatter | None:
    """Lay out average ranks over the median time of a cell.

    Parameters
    ----------
    methods : sequence of str
        Names of the methods.
    ranks : sequence of float
        Average ranks.
    seconds : mapping of str to float
        Median times.

    Returns
    -------
    Scatter or None
        None if a rank or a time is missing.
    """
    if len(ranks) < 2 or not all(seconds.get(method, 0) > 0 for method in methods):
        return None
    logs = [math.log10(seconds[method]) for method in methods]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    high = max(high, low + 1)
    left, right, top, bottom = 60.0, _WIDTH - 30.0, 20.0, 280.0

    def x(log: float) -> float:
        return round(left + (log - low) / (high - low) * (right - left), 1)

    def y(rank: float) -> float:
        return round(top + (rank - 1) / (len(methods) - 1) * (bottom - top), 1)

    points = [
        ScatterPoint(x(log), y(rank), i, methods[i], left=x(log) > _WIDTH * 0.7)
        for i, (log, rank) in enumerate(zip(logs, ranks, strict=True))
    ]
    return Scatter(
        [Tick(x(power), _seconds_text(10.0**power)) for power in range(low, high + 1)],
        [Tick(y(rank), str(rank)) for rank in range(1, len(methods) + 1)],
        points,
    )


def _seconds_text(seconds: float) -> str:
    return f"{seconds * 1000:g} ms" if seconds < 1 else f"{seconds:g} s"


def _round_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers from below `low` to above `high`."""
    # The texts of ticks have six digits, so finer steps would give equal texts.
    span = max(high - low, 1e-3, 1e-4 * abs(high))
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= 5)
    first = math.floor(low / step)
    last = max(math.ceil(high / step), first + 1)
    return [round(step * number, 12) for number in range(first, last + 1)]
