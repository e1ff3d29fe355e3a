"""The layout of the pictures of pages; templates draw them in the page's colours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

WIDTH, SLIM = 720.0, 420.0
LINE = 22.0


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
    """Means of all methods, one line per data set. In a slim picture, names stand above lines."""

    height: float
    ticks: list[Tick]
    rows: list[DotRow]
    width: float = WIDTH


def value_dots(values: Mapping[str, Sequence[float]]) -> DotPlot:
    """Lay out values on one line per name, so slim that it fits a phone.

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
    ticks = round_ticks(min(given), max(given))
    left, right = 20.0, SLIM - 20.0

    def x(value: float) -> float:
        return round(left + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (right - left), 1)

    rows = [
        DotRow(
            46 + 2 * LINE * number,
            name,
            [Dot(x(v), x(min(line)), x(max(line)), number, f"{name}: {v:.4f}") for v in line],
        )
        for number, (name, line) in enumerate(values.items())
    ]
    marks = [Tick(x(v), f"{v:g}") for v in ticks]
    return DotPlot(30 + 2 * LINE * len(rows), marks, rows, SLIM)


def round_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers from below `low` to above `high`."""
    # The texts of ticks have six digits, so finer steps would give equal texts.
    span = max(high - low, 1e-3, 1e-4 * abs(high))
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= 5)
    first = math.floor(low / step)
    last = max(math.ceil(high / step), first + 1)
    return [round(step * number, 12) for number in range(first, last + 1)]
