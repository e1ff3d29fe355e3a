"""The page of a comparison, in one file; the run may be finished or still under way."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from lemll._types import FloatArray, Settings, SettingsView
from lemll.lab.cells import Cell
from lemll.lab.protocol import Protocol
from lemll.lab.records import Record
from lemll.lab.significance import Conclusions, conclude, overlap_ratio
from lemll.lab.statistics import rank_rows
from lemll.lab.store import Store
from lemll.lab.tables import ComparisonTable, Entry, Panel
from lemll.report.diagrams import (
    LINE,
    WIDTH,
    Bar,
    Dot,
    DotPlot,
    DotRow,
    RankDiagram,
    RankLabel,
    Tick,
    round_ticks,
)
from lemll.report.page import write_html

# Shades of the heat map, from the best rank to the worst.
_SHADES = 8


class CellView(NamedTuple):
    """An entry of a table: the text, the value to sort by, and how it is highlighted."""

    text: str
    mark: str
    published: str
    value: float | None
    best: bool
    rank: str
    shade: int | None


class PanelView(NamedTuple):
    """Everything that the page shows for one metric."""

    title: str
    rows: list[tuple[str, list[CellView]]]
    ranks: list[str]
    n_ranked: int
    conclusions: Conclusions | None
    diagram: RankDiagram | None
    dots: DotPlot | None
    scatter: Scatter | None


def write_comparison(path: str | Path, protocol: Protocol, store: Store) -> Path:
    """Write the page of a protocol's results in a store.

    Parameters
    ----------
    path : str or Path
        File to write; its folder is created if it does not exist.
    protocol : Protocol
        The cells to show.
    store : Store
        The store with their results; a run may still be adding results.

    Returns
    -------
    Path
        The page: one file that needs no other file and no network. Only its links to the records
        point to other files, in the store.
    """
    path = Path(path)
    table = ComparisonTable.from_store(protocol, store)
    cells = list(protocol.cells())
    overview = store.overview(cells)
    records = list(overview.records.values())
    # By cell: two methods that differ only in their label share one record.
    ended = [(cell, overview.records[cell.id]) for cell in cells if cell.id in overview.records]
    return _write(
        path,
        table,
        # Names of protocols are often one word, which says nothing as the title of a page.
        title=protocol.name if " " in protocol.name else f"Comparison {protocol.name}",
        views=_views(table, overlap_ratio(protocol.splits), _median_seconds(ended)),
        experiment=protocol.experiment,
        methods=[spec.label for spec in protocol.methods],
        datasets=[source.name for source in protocol.datasets],
        running=len(overview.running),
        n_done=overview.count("done"),
        failures=[record for record in records if record.error is not None],
        entries=_entries(protocol, ended),
        metrics=list(protocol.metrics),
        folder=_relative(store.folder / "cells", path.parent),
        provenance=_provenance(records),
        protocol=_settings(protocol),
    )


def write_table(path: str | Path, table: ComparisonTable, *, title: str, source: str) -> Path:
    """Write the page of figures that do not come from a store, for example printed figures.

    Parameters
    ----------
    path : str or Path
        File to write; its folder is created if it does not exist.
    table : ComparisonTable
        The figures; all panels must have the same data sets and methods.
    title : str
        Title of the page.
    source : str
        Where the figures come from.

    Returns
    -------
    Path
        The page.
    """
    return _write(
        Path(path),
        table,
        title=title,
        views=_views(table, 0.0, {}),
        experiment=source,
        methods=list(table.panels[0].methods),
        datasets=list(table.panels[0].datasets),
        running=0,
        n_done=None,
        failures=[],
        entries={},
        metrics=[],
        folder="",
        provenance=_provenance([]),
        protocol=[("figures", source)],
    )


def _write(
    path: Path, table: ComparisonTable, *, views: list[PanelView], **context: object
) -> Path:
    shown = [entry for panel in table.panels for entry in panel.entries.values()]
    return write_html(
        path,
        "comparison",
        control=table.control,
        notes=table.notes,
        # A reconstruction has one value per data set: no deviation, and no t-test.
        has_deviations=any(len(entry.figures) > 1 for entry in shown),
        has_splits=any(len(entry.values) > 1 for entry in shown),
        panels=views,
        verdict=_verdict(table, views),
        has_published=any(cell.published for view in views for _, row in view.rows for cell in row),
        **context,
    )


def _verdict(table: ComparisonTable, views: list[PanelView]) -> str:
    """Say in one or two sentences what the tests of the measures mean together."""
    judged = [
        (panel, view.conclusions)
        for panel, view in zip(table.panels, views, strict=True)
        if view.conclusions is not None
    ]
    if not judged:
        return ""
    first = [panel.methods[int(found.friedman.average_ranks.argmin())] for panel, found in judged]
    best, wins = Counter(first).most_common(1)[0]
    differ = sum(found.friedman.f_pvalue < 0.05 for _, found in judged)
    if not differ:
        return "The methods do not differ significantly by any measure (Friedman's test, 5 %)."
    panel, found = next((pair for pair in judged if best == first[judged.index(pair)]), judged[0])
    alike = {name for group in found.groups if best in group for name in group} - {best}
    rest = (
        f"cannot be distinguished from {', '.join(sorted(alike))}"
        if alike
        else "is significantly better than all others"
    )
    return (
        f"{best} has the best average rank by {wins} of {len(judged)} measures. By "
        f"{panel.metric.title} it {rest} (Nemenyi's test, 5 %). Methods differ significantly by "
        f"{differ} of {len(judged)} measures (Friedman's test, 5 %)."
    )


def _views(table: ComparisonTable, ratio: float, seconds: Mapping[str, float]) -> list[PanelView]:
    return [_view(panel, table.control, ratio, seconds) for panel in table.panels]


def _view(panel: Panel, control: str, ratio: float, seconds: Mapping[str, float]) -> PanelView:
    conclusions = conclude(panel, control, ratio=ratio)
    ranks = panel.ranks()
    return PanelView(
        panel.title,
        [(dataset, _cells(panel, dataset)) for dataset in panel.datasets],
        [f"{rank:.3f}" for rank in ranks],
        len(panel.ranked),
        conclusions,
        _ranks(panel, conclusions) if conclusions else None,
        dot_plot(panel.datasets, panel.methods, panel.entries),
        time_scatter(panel.methods, ranks, seconds),
    )


def _ranks(panel: Panel, found: Conclusions) -> RankDiagram:
    return rank_diagram(panel.methods, found.friedman.average_ranks, found.groups, found.nemenyi)


def _cells(panel: Panel, dataset: str) -> list[CellView]:
    entries = [panel.entries[dataset, method] for method in panel.methods]
    figures = [entry.figures for entry in entries]
    ranks: Sequence[float | None] = [None] * len(entries)
    if all(figures):
        means = [[figure[0] for figure in figures]]
        up = panel.metric.greater_is_better
        ranks = rank_rows(means, greater_is_better=up)[0].tolist()
    cells = []
    for entry, figure, rank in zip(entries, figures, ranks, strict=True):
        shade = None
        if rank is not None and len(entries) > 1:
            shade = round((rank - 1) / (len(entries) - 1) * (_SHADES - 1))
        text = " ± ".join(f"{number:.3f}" for number in figure)
        if not figure:
            text = f"{len(entry.values)} of {entry.wanted}"
        published = " ± ".join(f"{number:.3f}" for number in entry.published)
        best = rank is not None and rank == min(r for r in ranks if r is not None)
        cells.append(
            CellView(
                text, entry.mark, published, figure[0] if figure else None, best,
                "" if rank is None else f"{rank:g}", shade,
            )
        )  # fmt: skip
    return cells


def _median_seconds(ended: Iterable[tuple[Cell, Record]]) -> dict[str, float]:
    times: dict[str, list[float]] = {}
    for cell, record in ended:
        if record.status == "done":
            times.setdefault(cell.method.label, []).append(sum(record.seconds.values()))
    return {method: median(found) for method, found in times.items()}


def _entries(
    protocol: Protocol, ended: Iterable[tuple[Cell, Record]]
) -> dict[str, list[list[Any]]]:
    """Sort records by numbers of data set and method: short keys keep the page small."""
    methods = {spec.label: number for number, spec in enumerate(protocol.methods)}
    datasets = {source.name: number for number, source in enumerate(protocol.datasets)}
    entries: dict[str, list[list[Any]]] = {}
    for cell, record in ended:
        key = f"{datasets[cell.source.name]},{methods[cell.method.label]}"
        values = [record.metrics.get(name) for name in protocol.metrics]
        entries.setdefault(key, []).append(
            [
                " ".join(map(str, record.setting)),
                record.status,
                [None if value is None else round(value, 5) for value in values],
                round(sum(record.seconds.values()), 3),
                _chosen_text(record.chosen or {}),
                record.id,
            ]
        )
    return {key: sorted(rows, key=lambda row: row[0]) for key, rows in entries.items()}


def _chosen_text(chosen: SettingsView) -> str:
    """Return selected parameters as text, and before them the metrics that selected them."""
    if not any(isinstance(value, Mapping) for value in chosen.values()):
        return ", ".join(f"{name}={value}" for name, value in chosen.items())
    metrics: dict[str, list[str]] = {}
    for metric, parameters in chosen.items():
        metrics.setdefault(_chosen_text(parameters), []).append(metric)
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in metrics.items())


def _provenance(records: Sequence[Record]) -> Settings:
    """Collect the code, data, environments and times of the results."""
    environments = Counter(
        tuple((name, _plain(value)) for name, value in record.environment.items())
        for record in records
    )
    finished = sorted(record.finished for record in records)
    return {
        "environments": [(count, list(pairs)) for pairs, count in environments.most_common()],
        "code": sorted({record.code for record in records}),
        "data": sorted({(record.dataset, record.data_sha256) for record in records}),
        "first": finished[0] if finished else "",
        "last": finished[-1] if finished else "",
    }


def _settings(protocol: Protocol) -> list[tuple[str, str]]:
    settings: list[tuple[str, str]] = [("experiment", protocol.experiment)]
    if protocol.splits is not None:
        settings += [(name, str(value)) for name, value in asdict(protocol.splits).items()]
    if protocol.hide:
        settings.append(("training labels", "; ".join(map(str, protocol.hide))))
    if protocol.thresholds:
        settings.append(("thresholds", _plain(protocol.thresholds)))
    if protocol.tuning is not None:
        settings.append(("tuned by", str(protocol.tuning)))
    return settings


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


def _relative(folder: Path, start: Path) -> str:
    try:
        return Path(os.path.relpath(folder.resolve(), start.resolve())).as_posix()
    except ValueError:  # another drive
        return folder.resolve().as_uri()


# With more rows than this, the table is easier to read than a picture.
_MOST_ROWS = 60


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
    left, right = 170.0, WIDTH - 170.0

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
            RankLabel(x(ranks[i]), top + LINE * step, methods[i], f"{ranks[i]:.2f}", on_left)
        )
    end = min(difference, k - 1)
    return RankDiagram(
        height=top + LINE * half,
        ticks=[Tick(x(rank), str(rank)) for rank in range(1, k + 1)],
        labels=labels,
        bars=bars,
        difference=(x(1), x(1 + end)),
        difference_text=f"critical difference {difference:.2f} (Nemenyi, 5 %)",
    )


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
    ticks = round_ticks(min(lows), max(highs))
    left, right = 170.0, WIDTH - 20.0
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
        rows.append(DotRow(30 + LINE * number, dataset, dots))
    return DotPlot(
        height=40 + LINE * len(rows),
        ticks=[Tick(x(value), f"{value:g}") for value in ticks],
        rows=rows,
    )


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
    left, right, top, bottom = 60.0, WIDTH - 30.0, 20.0, 280.0

    def x(log: float) -> float:
        return round(left + (log - low) / (high - low) * (right - left), 1)

    def y(rank: float) -> float:
        return round(top + (rank - 1) / (len(methods) - 1) * (bottom - top), 1)

    points = [
        ScatterPoint(x(log), y(rank), i, methods[i], left=x(log) > WIDTH * 0.7)
        for i, (log, rank) in enumerate(zip(logs, ranks, strict=True))
    ]
    return Scatter(
        [Tick(x(power), _seconds_text(10.0**power)) for power in range(low, high + 1)],
        [Tick(y(rank), str(rank)) for rank in range(1, len(methods) + 1)],
        points,
    )


def _seconds_text(seconds: float) -> str:
    return f"{seconds * 1000:g} ms" if seconds < 1 else f"{seconds:g} s"
