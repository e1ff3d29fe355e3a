"""The paper's second experiment: binarise a known distribution, recover it, measure the error.

`paper_reconstruction` is the protocol of Tables VI to VIII. `agreement` says how close our figures
are to the printed ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from lemll._types import SettingsView
from lemll.comparison import ComparisonTable
from lemll.datasets import list_datasets
from lemll.experiments import THRESHOLDS, Protocol, Store
from lemll.metrics import METRICS
from lemll.paper.ranks import Ranks, block_ranks

__all__ = [
    "BASELINES",
    "PAPER_METHODS",
    "QUICK_RECONSTRUCTION",
    "THRESHOLDS",
    "Ranks",
    "ReconstructionAgreement",
    "agreement",
    "block_ranks",
    "paper_reconstruction",
    "reconstruction_table",
]

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
    >>> from lemll.paper import paper_reconstruction
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
    for method in dict.fromkeys(name for panel in table.panels for name in panel.methods):
        differences = {
            f"{panel.metric.title} {panel.threshold:g} {dataset}": round(entry.figures[0], 3)
            - entry.published[0]
            for panel in table.panels
            for (dataset, column), entry in panel.entries.items()
            if column == method and entry.published and entry.complete
        }
        if not differences:
            continue
        tolerance = TOLERANCES[method]
        off = {cell: abs(difference) for cell, difference in differences.items()}
        misses = [
            f"{cell}: {differences[cell]:+.3f}" for cell in off if off[cell] > tolerance + 1e-9
        ]
        found.append(
            ReconstructionAgreement(
                method,
                cells=len(off),
                exact=sum(difference < 5e-4 for difference in off.values()),
                within=len(off) - len(misses),
                tolerance=tolerance,
                largest=max(off.values()),
                misses=tuple(misses),
            )
        )
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
