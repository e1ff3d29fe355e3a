"""The paper's first experiment: learn on one half of the rows, predict the labels of the other.

`paper_prediction` is the protocol of Tables II and III for all registered learners. `agreement` and
`significances` compare our figures with the printed ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lemll.comparison import ComparisonTable, paper_name, published_prediction
from lemll.datasets import list_datasets
from lemll.experiments import Protocol, Splits, Tuning, list_methods

__all__ = [
    "N_SPLITS",
    "PAPER_METHODS",
    "QUICK_PREDICTION",
    "PredictionAgreement",
    "Significance",
    "agreement",
    "paper_prediction",
    "printed_prediction",
    "significances",
]

# The columns of Tables II and III.
PAPER_METHODS = ("LEMLL", "MLFE", "ML2", "RELIAB", "MSVR", "ML-kNN", "CLR", "ECC")
N_SPLITS = 10
# One data set with few labels and one with many, which together take about a minute.
QUICK_PREDICTION = ("medical", "yeast")
# Our splits differ from the paper's, so the means of the same method differ. We accept a difference
# of two of the paper's standard deviations, which are printed to three decimals.
WITHIN = 2.0
SMALLEST_STD = 0.001


def paper_prediction(
    datasets: Sequence[str] | None = None,
    *,
    methods: Sequence[str] | None = None,
    n_splits: int = N_SPLITS,
    tuned: bool = True,
) -> Protocol:
    """Return the protocol of Tables II and III.

    Parameters
    ----------
    datasets : sequence of str, optional
        Names in the registry; by default the fourteen public data sets of the paper.
    methods : sequence of str, optional
        Registered learners; by default all: first the paper's in its order, then the others.
    n_splits : int, default=10
        Number of halves.
    tuned : bool, default=True
        Choose each method's parameters from its grid by the average precision in five folds of
        the training half. The paper also tunes, but does not say how. If False, the methods have
        their default parameters.

    Returns
    -------
    Protocol
        The protocol, ready to run.

    Examples
    --------
    >>> from lemll.paper import paper_prediction
    >>> paper_prediction(["yeast"], methods=["LEMLL", "MSVR"]).splits.n_splits
    10
    """
    names = tuple(datasets or (info.name for info in list_datasets(table="I") if info.path))
    registered = [method.name for method in list_methods("learner")]
    known = [name for name in PAPER_METHODS if name in registered]
    known += [name for name in registered if name not in PAPER_METHODS]
    labels = tuple(known if methods is None else methods)
    return Protocol(
        name="prediction",
        experiment="prediction",
        datasets=names,
        methods=labels,
        splits=Splits("halves", n_splits),
        tuning=Tuning() if tuned else None,
        control="LEMLL" if "LEMLL" in labels else "",
    )


def printed_prediction() -> ComparisonTable:
    """Return Tables II and III as printed, so that our tests can be applied to them.

    Returns
    -------
    ComparisonTable
        One value per entry, the printed mean. The paper does not print the values of the splits.

    Examples
    --------
    >>> from lemll.paper.prediction import printed_prediction
    >>> len(printed_prediction().panels[0].ranked)
    15
    """
    values: dict[tuple[str, float | None, str, str], list[float]] = {
        (cell.metric, None, cell.dataset, cell.method): [cell.mean]
        for cell in published_prediction()
    }
    return ComparisonTable.from_values(values, control="LEMLL", methods=PAPER_METHODS)


@dataclass(frozen=True, slots=True)
class PredictionAgreement:
    """Comparison of a method's means with the printed ones.

    Attributes
    ----------
    method : str
        Name of the method.
    cells, within, better, worse : int
        Number of means; of those within two of the paper's standard deviations of the printed mean
        (a standard deviation below .001 counts as .001); of those that are further away and better;
        and of those that are further away and worse.
    as_good : int
        Number of means that are better than the printed mean, or worse by at most one of the
        paper's standard deviations.
    misses : tuple of str
        The means that are further away: measure, data set, and our mean minus the printed one.
    """

    method: str
    cells: int
    within: int
    better: int
    worse: int
    as_good: int
    misses: tuple[str, ...]


def agreement(table: ComparisonTable) -> list[PredictionAgreement]:
    """Compare the means of a table with the printed ones.

    Parameters
    ----------
    table : ComparisonTable
        The table of a prediction.

    Returns
    -------
    list of PredictionAgreement
        One per method that the paper prints.
    """
    found = []
    for method in dict.fromkeys(name for panel in table.panels for name in panel.methods):
        cells, better, as_good, misses = 0, 0, 0, []
        for panel in table.panels:
            direction = 1 if panel.metric.greater_is_better else -1
            for (dataset, column), entry in panel.entries.items():
                if column != method or not entry.published or not entry.complete:
                    continue
                cells += 1
                mean, std = entry.published
                difference = round(entry.figures[0], 3) - mean
                unit = max(std, SMALLEST_STD)
                as_good += difference * direction >= -unit - 1e-9
                if abs(difference) > WITHIN * unit + 1e-9:
                    misses.append(f"{panel.metric.title} {dataset}: {difference:+.3f}")
                    better += difference * direction > 0
        if cells:
            off = len(misses)
            found.append(
                PredictionAgreement(
                    method=method,
                    cells=cells,
                    within=cells - off,
                    better=better,
                    worse=off - better,
                    as_good=as_good,
                    misses=tuple(misses),
                )
            )
    return found


@dataclass(frozen=True, slots=True)
class Significance:
    """How often the control is significantly better or worse than a method.

    Attributes
    ----------
    method : str
        Name of the method.
    cells : int
        Number of comparisons.
    better, worse : int
        Number of comparisons in which the control is better or worse, by our figures.
    published_better, published_worse : int
        The same numbers, by the paper's marks.
    """

    method: str
    cells: int
    better: int
    worse: int
    published_better: int
    published_worse: int


def significances(table: ComparisonTable) -> list[Significance]:
    """Count the marks of a table, and the paper's marks for the same cells.

    Parameters
    ----------
    table : ComparisonTable
        The table of a prediction with LEMLL as its control.

    Returns
    -------
    list of Significance
        One per other method that the paper prints.
    """
    printed = {(c.metric, c.dataset, c.method): c.mark for c in published_prediction()}
    found = []
    for method in dict.fromkeys(name for panel in table.panels for name in panel.methods):
        marks = [
            (entry.mark, printed[panel.metric.name, paper_name(dataset), method])
            for panel in table.panels
            for (dataset, column), entry in panel.entries.items()
            if column == method and entry.published and entry.complete
        ]
        if method == table.control or not marks:
            continue
        ours, theirs = zip(*marks, strict=True)
        found.append(
            Significance(
                method,
                len(marks),
                better=ours.count("•"),
                worse=ours.count("∘"),
                published_better=theirs.count("•"),
                published_worse=theirs.count("∘"),
            )
        )
    return found
