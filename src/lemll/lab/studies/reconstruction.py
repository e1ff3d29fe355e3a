"""Report of a reconstruction: tables with printed figures, agreement, ranks, calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np

from lemll._types import FloatArray, MatrixLike, SettingsView
from lemll.datasets.registry import list_datasets
from lemll.enhancers.calibrate import choose_scale
from lemll.fitting.scaling import Normalization, normalize
from lemll.lab.cells import THRESHOLDS, load_source
from lemll.lab.protocol import Protocol
from lemll.lab.store import Store
from lemll.lab.studies.sections import (
    Ranks,
    StudyReport,
    block_ranks,
    printed_entries,
    rank_lines,
    section,
)
from lemll.lab.tables import ComparisonTable, markdown_table
from lemll.metrics.table import METRICS

# The columns of Tables VI to VIII, and the methods that we print in separate tables.
PAPER_METHODS = ("FCM", "KM", "RELIAB", "ML2", "MLFE", "LEMLL")
BASELINES = ("GLLE", "Uniform", "Logical")
# Small data sets of each kind, which together take about a minute.
QUICK_RECONSTRUCTION = ("SJAFFE", "Yeast_dtt", "Yeast_spo5")
# Settings of one data set in the published run, found from its figures; they are not defaults.
EXCEPTIONS: Mapping[str, Mapping[str, SettingsView]] = MappingProxyType(
    {"Natural_Scene": {"KM": {"normalization": "sigmoid"}, "RELIAB": {"alpha": 0.3}}}
)
# A cell counts as reproduced if it is this close to the printed figure. Random starts (FCM) and
# early stops of other solvers (MLFE) cause differences larger than rounding.
TOLERANCES = MappingProxyType(
    {"LEMLL": 0.001, "RELIAB": 0.002, "KM": 0.002, "ML2": 0.003, "FCM": 0.003, "MLFE": 0.005}
)


def paper_reconstruction(
    datasets: Sequence[str] | None = None,
    *,
    methods: Sequence[str] = (*PAPER_METHODS, *BASELINES),
    thresholds: Sequence[float] = THRESHOLDS,
) -> Protocol:
    """Return the protocol of Tables VI to VIII.

    Parameters
    ----------
    datasets : sequence of str, optional
        Names in the registry; by default the fifteen data sets of the paper.
    methods : sequence of str, optional
        Registered enhancers; by default the paper's six methods and our baselines.
    thresholds : sequence of float, optional
        Thresholds at which distributions are binarised; by default the paper's five.

    Returns
    -------
    Protocol
        The protocol, with the exceptions of the published run for its data sets.

    Examples
    --------
    >>> from lemll.lab.studies.reconstruction import paper_reconstruction
    >>> paper_reconstruction(["SJAFFE"], methods=["KM"]).thresholds
    (0.1, 0.2, 0.3, 0.4, 0.5)
    """
    names = tuple(datasets or (info.name for info in list_datasets(table="V")))
    return Protocol(
        name="reconstruction",
        experiment="reconstruction",
        datasets=names,
        methods=tuple(methods),
        thresholds=tuple(thresholds),
        control="LEMLL" if "LEMLL" in methods else "",
        exceptions={
            name: {label: special for label, special in of_set.items() if label in methods}
            for name, of_set in EXCEPTIONS.items()
            if name in names
        },
    )


@dataclass(frozen=True, slots=True)
class ReconstructionAgreement:
    """How close a method's figures, rounded to three decimals, are to the printed ones.

    Attributes
    ----------
    method : str
        Name of the method.
    cells, exact, within : int
        Number of figures; of those equal to the printed one; and of those within `tolerance`.
    tolerance : float
        Largest difference that counts as reproduced.
    largest : float
        Largest difference.
    misses : tuple of str
        The cells that differ by more than the tolerance.
    """

    method: str
    cells: int
    exact: int
    within: int
    tolerance: float
    largest: float
    misses: tuple[str, ...]


def agreement(table: ComparisonTable) -> list[ReconstructionAgreement]:
    """Compare the figures of a table with the printed ones.

    Parameters
    ----------
    table : ComparisonTable
        The table of a reconstruction.

    Returns
    -------
    list of ReconstructionAgreement
        One per method that the paper prints.
    """
    found = []
    for method, entries in printed_entries(table):
        differences = {
            f"{panel.metric.title} {panel.threshold:g} {dataset}": round(entry.figures[0], 3)
            - entry.published[0]
            for panel, dataset, entry in entries
        }
        tolerance = TOLERANCES[method]
        off = [abs(difference) for difference in differences.values()]
        misses = tuple(
            f"{cell}: {difference:+.3f}"
            for cell, difference in differences.items()
            if abs(difference) > tolerance + 1e-9
        )
        exact = sum(difference < 5e-4 for difference in off)
        counts = (len(off), exact, len(off) - len(misses))
        found.append(ReconstructionAgreement(method, *counts, tolerance, max(off), misses))
    return found


def reconstruction_table(protocol: Protocol, store: Store) -> ComparisonTable:
    """Compare the paper's methods in the order of its tables.

    Parameters
    ----------
    protocol : Protocol
        The result of `paper_reconstruction`.
    store : Store
        The store with its results.

    Returns
    -------
    ComparisonTable
        One panel per measure and threshold, with the printed figures beside ours.
    """
    whole = ComparisonTable.from_store(protocol, store)
    kept = [method for method in PAPER_METHODS if method in {m.label for m in protocol.methods}]
    values = {
        (panel.metric.name, panel.threshold, dataset, method): panel.entries[dataset, method].values
        for panel in sorted(whole.panels, key=lambda panel: list(METRICS).index(panel.metric.name))
        for dataset in panel.datasets
        for method in kept
    }
    control = "LEMLL" if "LEMLL" in kept else kept[0]
    return ComparisonTable.from_values(
        values, control=control, wanted=1, methods=kept, notes=whole.notes
    )


# 0/1 labels do not determine the scale of a recovered distribution. Here some rows are drawn at
# random and treated as rated. They fix the scale, and the error is measured on all other rows.

# The best of these scales for all rows is the reference for the calibrated scale.
SCALES = 2.0 ** np.linspace(-6, 6, 97)


@dataclass(frozen=True, slots=True)
class CalibratedCell:
    """One measure of one recovered distribution, on the rows that were not rated.

    Attributes
    ----------
    measure, dataset : str
        Names of the measure and of the data set.
    threshold : float
        Threshold at which the distribution was binarised.
    calibrated, plain, uniform : float
        The measure with the calibrated scale, with scale 1, and for the uniform distribution;
        means over the seeds.
    best : float
        The measure with the scale that minimises the mean Chebyshev distance over all rows.
    """

    measure: str
    threshold: float
    dataset: str
    calibrated: float
    plain: float
    uniform: float
    best: float


@dataclass(frozen=True, slots=True)
class CalibrationSummary:
    """The effect of calibration by `n_rated` rows over all cells.

    Attributes
    ----------
    n_rated, cells : int
        Number of rated rows, and number of compared cells.
    better_than_plain, better_than_uniform : int
        Number of cells in which the calibrated scale is better than scale 1, and better than the
        uniform distribution.
    chebyshev_over_best : float
        Mean Chebyshev distance, divided by that of the best scale per data set and threshold.
    """

    n_rated: int
    cells: int
    better_than_plain: int
    better_than_uniform: int
    chebyshev_over_best: float


def calibrated_cells(
    protocol: Protocol, store: Store, *, n_rated: int = 10, seeds: Sequence[int] = range(5)
) -> Iterator[CalibratedCell]:
    """Calibrate the distributions of LEMLL, from its stored numerical labels.

    Parameters
    ----------
    protocol : Protocol
        A reconstruction with LEMLL among its methods.
    store : Store
        The store with its results.
    n_rated : int, default=10
        Number of rows whose distribution is treated as known.
    seeds : sequence of int, default=range(5)
        Each seed draws other rows.

    Yields
    ------
    CalibratedCell
        One per finished cell of LEMLL and metric of the protocol.
    """
    for cell in protocol.cells():
        record = store.finished(cell) if cell.method.method == "LEMLL" else None
        if record is None or record.status != "done":
            continue
        D = load_source(cell.source)[0].D
        U = store.arrays(record)["numerical_labels"]
        normalization = cell.parameters["normalization"]
        chebyshev = [
            METRICS["chebyshev"](D, normalize(U, normalization, scale=scale)) for scale in SCALES
        ]
        best = float(SCALES[int(np.argmin(chebyshev))])
        trials = [
            _measure(_Trial(D, U, normalization, best), n_rated, seed, protocol.metrics)
            for seed in seeds
        ]
        found = np.array(trials).mean(axis=0)
        for measure, values in zip(protocol.metrics, found, strict=True):
            threshold = float(cell.setting.threshold or 0.0)
            yield CalibratedCell(measure, threshold, cell.source.name, *map(float, values))


class _Trial(NamedTuple):
    """The true distribution, the numerical labels, their normalization and best scale."""

    D: MatrixLike
    U: FloatArray
    normalization: Normalization
    best: float


def _measure(trial: _Trial, n_rated: int, seed: int, metrics: Sequence[str]) -> FloatArray:
    """Measure the rows that are not rated: calibrated, plain, uniform and at the best scale."""
    D, U, normalization, best = trial
    rated = np.random.RandomState(seed).choice(len(D), n_rated, replace=False)
    others = np.setdiff1d(np.arange(len(D)), rated)
    # The number of bootstrap samples affects only the interval, not the scale itself.
    chosen = choose_scale(U[rated], D[rated], normalization, n_bootstrap=1, random_state=seed)
    candidates = [
        normalize(U[others], normalization, scale=scale) for scale in (chosen.scale, 1.0, best)
    ]
    candidates.insert(2, np.full_like(candidates[0], 1 / U.shape[1]))
    return np.array(
        [[METRICS[name](D[others], candidate) for candidate in candidates] for name in metrics]
    )


def summarise_calibration(cells: Sequence[CalibratedCell], n_rated: int) -> CalibrationSummary:
    """Count the cells in which the calibrated scale is better.

    Parameters
    ----------
    cells : sequence of CalibratedCell
        The results of `calibrated_cells`.
    n_rated : int
        Number of rated rows.

    Returns
    -------
    CalibrationSummary
        The summary over all cells.
    """

    def better(cell: CalibratedCell, other: float) -> bool:
        if METRICS[cell.measure].greater_is_better:
            return cell.calibrated > other
        return cell.calibrated < other

    chebyshev = [cell for cell in cells if cell.measure == "chebyshev"]
    return CalibrationSummary(
        n_rated=n_rated,
        cells=len(cells),
        better_than_plain=sum(better(cell, cell.plain) for cell in cells),
        better_than_uniform=sum(better(cell, cell.uniform) for cell in cells),
        chebyshev_over_best=float(
            np.mean([c.calibrated for c in chebyshev]) / np.mean([c.best for c in chebyshev])
        ),
    )


_N_RATED = (5, 10, 20)
_CALIBRATED = "LEMLL, 10 rows rated"


@dataclass(frozen=True, slots=True)
class ReconstructionReport(StudyReport):
    """The results of a finished reconstruction.

    Attributes
    ----------
    table : ComparisonTable
        The paper's methods, with its figures beside ours.
    apart : ComparisonTable
        LEMLL beside methods that the paper does not print: GLLE, two baselines without
        enhancement, and LEMLL with a calibrated scale.
    agreement : list of ReconstructionAgreement
        How close our figures are, one per method.
    ranks : list of Ranks
        Average ranks per block, ours and those of the printed figures.
    calibration : list of CalibrationSummary
        One per number of rated rows.
    """

    table: ComparisonTable
    apart: ComparisonTable
    agreement: list[ReconstructionAgreement]
    ranks: list[Ranks]
    calibration: list[CalibrationSummary]

    titles: ClassVar = ("Reconstruction", "Tables VI to VIII: ours [printed]")

    def summary(self) -> str:
        """Write agreement, ranks and calibration in Markdown.

        Returns
        -------
        str
            It names the cells that are not reproduced.
        """
        lines = [
            *section(
                "## Agreement with the printed figures, rounded to three decimals",
                *_agreement_lines(self.agreement),
            ),
            *section(
                "## Average ranks by block: ours [from the printed figures], the same data sets",
                *rank_lines(self.ranks, heading="block"),
            ),
            *section(
                "## The scale of LEMLL's distributions, calibrated by rated rows",
                *_calibration_lines(self.calibration),
            ),
        ]
        return "\n".join(lines)

    def _more(self) -> dict[str, str]:
        return {
            "tables.tex": self.table.to_latex(),
            "tables.csv": self.table.to_csv(),
            "baselines.md": f"# What the paper does not print\n\n{self.apart.to_markdown()}",
            "baselines.csv": self.apart.to_csv(),
        }


def make_reconstruction_report(protocol: Protocol, store: Store) -> ReconstructionReport:
    """Summarise the results of a reconstruction in a store.

    Parameters
    ----------
    protocol : Protocol
        The result of `paper_reconstruction`, with LEMLL among its methods.
    store : Store
        The store with its results.

    Returns
    -------
    ReconstructionReport
        Tables and summaries.
    """
    table = reconstruction_table(protocol, store)
    calibrated = {n: list(calibrated_cells(protocol, store, n_rated=n)) for n in _N_RATED}
    return ReconstructionReport(
        table=table,
        apart=_apart(protocol, store, calibrated[10]),
        agreement=agreement(table),
        ranks=block_ranks(table),
        calibration=[summarise_calibration(cells, n) for n, cells in calibrated.items() if cells],
    )


def _apart(
    protocol: Protocol, store: Store, calibrated: Sequence[CalibratedCell]
) -> ComparisonTable:
    whole = ComparisonTable.from_store(protocol, store)
    labels = [spec.label for spec in protocol.methods]
    columns = [method for method in ("LEMLL", *BASELINES) if method in labels]
    found = {(c.measure, c.threshold, c.dataset): c.calibrated for c in calibrated}
    values: dict[tuple[str, float | None, str, str], Sequence[float]] = {}
    for panel in whole.panels:
        for dataset in panel.datasets:
            place = (panel.metric.name, panel.threshold, dataset)
            for method in columns:
                values[*place, method] = panel.entries[dataset, method].values
            values[*place, _CALIBRATED] = [found[place]] if place in found else []
    return ComparisonTable.from_values(
        values, control="LEMLL", wanted=1, methods=[*columns, _CALIBRATED], notes=whole.notes
    )


def _agreement_lines(found: Sequence[ReconstructionAgreement]) -> list[str]:
    lines = markdown_table(
        ["method", "cells", "equal", "within", "tolerance", "largest difference"],
        (
            [a.method, a.cells, a.exact, a.within, f"{a.tolerance:g}", f"{a.largest:.3f}"]
            for a in found
        ),
    )
    misses = [f"- {a.method}: {'; '.join(a.misses)}" for a in found if a.misses]
    return [*lines, "", "Not reproduced:", "", *(misses or ["- none"])]


def _calibration_lines(found: Sequence[CalibrationSummary]) -> list[str]:
    header = "rated rows|cells|better than scale 1|better than uniform"
    return markdown_table(
        [*header.split("|"), "mean Chebyshev over that of the best scale"],
        (
            [
                c.n_rated,
                c.cells,
                c.better_than_plain,
                c.better_than_uniform,
                f"{c.chebyshev_over_best:.3f}",
            ]
            for c in found
        ),
    )
