"""The figures that the paper, and the widest study of the field, have published, as data."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from lemll._types import Settings
from lemll.datasets.registry import dataset_info


@dataclass(frozen=True, slots=True)
class ReconstructionCell:
    """One cell of Tables VI to VIII.

    Attributes
    ----------
    measure : str
        Name in `lemll.metrics.METRICS`.
    threshold : float
        Threshold at which the distribution was binarised.
    dataset : str
        Name in the registry.
    method : str
        Name of the method in the paper.
    value : float
        Value, to three decimals.
    rank : float
        Rank among the six methods; ties share the mean rank.
    """

    measure: str
    threshold: float
    dataset: str
    method: str
    value: float
    rank: float


@dataclass(frozen=True, slots=True)
class PredictionCell:
    """One cell of Tables II and III.

    Attributes
    ----------
    metric : str
        Name in `lemll.metrics.METRICS`.
    dataset : str
        Name in the registry.
    method : str
        Name of the method in the paper.
    mean, std : float
        Mean and standard deviation over ten training and test halves, to three decimals.
    mark : {"•", "∘", ""}
        "•" if LEMLL is significantly better than the method, "∘" if it is significantly worse.
    """

    metric: str
    dataset: str
    method: str
    mean: float
    std: float
    mark: str


@dataclass(frozen=True, slots=True)
class FieldCell:
    """One figure of the widest study of multi-label methods.

    Attributes
    ----------
    metric : str
        Name in `lemll.metrics.METRICS`.
    dataset : str
        Name in the registry.
    method : str
        Name of the method in the study.
    value : float
        The value on the test rows of the study, to three decimals.
    """

    metric: str
    dataset: str
    method: str
    value: float


# The paper measures the divergence of the recovered distribution from the true one.
_MEASURES = {"chebyshev": "chebyshev", "kl": "kl_divergence_pred_true", "cosine": "cosine"}
# The file compares the method with LEMLL, but the marks compare LEMLL with the method.
_MARKS = {"worse": "•", "better": "∘", "": ""}


# The paper's figures on the subsets of RCV1 are those of tf-idf features, says
# docs/explanation/findings.md. The files that are usually shared hold 0/1 features.
_SAME_AS = {"rcv1-s1-tfidf944": "rcv1-s1", "rcv1-s2-tfidf944": "rcv1-s2"}


def paper_name(dataset: str) -> str:
    """Return the name under which the paper prints figures of a data set.

    Parameters
    ----------
    dataset : str
        Name in the registry.

    Returns
    -------
    str
        The name in the paper's tables; the given name if the paper has no other one.

    Examples
    --------
    >>> paper_name("rcv1-s1-tfidf944")
    'rcv1-s1'
    """
    return _SAME_AS.get(dataset, dataset)


_NUMBERS = ("mean", "rank", "rho", "std", "value")


def _rows(resource: str) -> Iterator[Settings]:
    """Yield the rows of a file; numbers are numbers, and data sets have their registered names."""
    text = resources.files("lemll.lab").joinpath(resource).read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        numbers = {name: float(row[name]) for name in _NUMBERS if name in row}
        yield row | numbers | {"dataset": dataset_info(row["dataset"]).name}


@cache
def published_reconstruction() -> tuple[ReconstructionCell, ...]:
    """Return the cells of Tables VI to VIII, for all methods and data sets.

    Returns
    -------
    tuple of ReconstructionCell
        The cells in the paper's order.

    Examples
    --------
    >>> published_reconstruction()[0].value
    0.077
    """
    return tuple(
        ReconstructionCell(
            _MEASURES[row["measure"]], row["rho"], row["dataset"], row["method"],
            row["value"], row["rank"],
        )
        for row in _rows("published_reconstruction.csv")
    )  # fmt: skip


@cache
def published_prediction() -> tuple[PredictionCell, ...]:
    """Return the cells of Tables II and III, for all methods and data sets.

    Returns
    -------
    tuple of PredictionCell
        The cells in the paper's order.

    Examples
    --------
    >>> published_prediction()[1]
    PredictionCell(metric='hamming_loss', dataset='cal500', method='MLFE', mean=0.141, std=0.002,
                   mark='•')
    """
    return tuple(
        PredictionCell(
            row["metric"], row["dataset"], row["method"],
            row["mean"], row["std"], _MARKS[row["vs_lemll"]],
        )
        for row in _rows("published_prediction.csv")
    )  # fmt: skip


@cache
def published_field() -> tuple[FieldCell, ...]:
    """Return figures of the widest study of multi-label methods, for the data sets known here.

    Bogatinovski, Todorovski, Dzeroski and Kocev, "Comprehensive comparative study of multi-label
    classification methods", Expert Systems with Applications, 2022: 28 methods, 13 of its 40 data
    sets, six measures, from the authors' repository. Each data set has one training and one test
    file. Runs that did not end are left out. So are the one-errors of LP, CC and SSM, most of which
    are far below those of all other methods. Hamming losses near 1 of some methods are as printed.

    Returns
    -------
    tuple of FieldCell
        The figures by data set and measure.

    Examples
    --------
    >>> published_field()[0]
    FieldCell(metric='hamming_loss', dataset='bibtex', method='MLkNN', value=0.014)
    """
    return tuple(
        FieldCell(row["metric"], row["dataset"], row["method"], row["value"])
        for row in _rows("published_field.csv")
    )
