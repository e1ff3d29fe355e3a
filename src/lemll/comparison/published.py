"""The figures the paper prints, as data."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from lemll.datasets import dataset_info

__all__ = [
    "PredictionCell",
    "ReconstructionCell",
    "published_prediction",
    "published_reconstruction",
]


@dataclass(frozen=True, slots=True)
class ReconstructionCell:
    """One cell of Tables VI to VIII.

    Attributes
    ----------
    measure : str
        Name in `lemll.metrics.METRICS`.
    threshold : float
        At which the distribution was binarised.
    dataset : str
        Name in the registry.
    method : str
        As the paper calls it.
    value : float
        To three decimals.
    rank : float
        Among the six methods, ties sharing the mean.
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
        As the paper calls it.
    mean, std : float
        Over ten training and test halves, to three decimals.
    mark : {"•", "∘", ""}
        "•" where LEMLL is significantly better than the method, "∘" where it is worse.
    """

    metric: str
    dataset: str
    method: str
    mean: float
    std: float
    mark: str


# The paper's divergence is that of the recovered from the true distribution.
_MEASURES = {"chebyshev": "chebyshev", "kl": "kl_divergence_pred_true", "cosine": "cosine"}
# The file says how the method fares against LEMLL, the paper how LEMLL does against the method.
_MARKS = {"worse": "•", "better": "∘", "": ""}


def _rows(resource: str) -> Iterator[dict[str, str]]:
    text = resources.files("lemll.comparison").joinpath(resource).read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines())


@cache
def published_reconstruction() -> tuple[ReconstructionCell, ...]:
    """Return the cells of Tables VI to VIII, all methods and data sets.

    Returns
    -------
    tuple of ReconstructionCell
        In the paper's order.

    Examples
    --------
    >>> published_reconstruction()[0].value
    0.077
    """
    return tuple(
        ReconstructionCell(
            measure=_MEASURES[row["measure"]],
            threshold=float(row["rho"]),
            dataset=dataset_info(row["dataset"]).name,
            method=row["method"],
            value=float(row["value"]),
            rank=float(row["rank"]),
        )
        for row in _rows("published_reconstruction.csv")
    )


@cache
def published_prediction() -> tuple[PredictionCell, ...]:
    """Return the cells of Tables II and III, all methods and data sets.

    Returns
    -------
    tuple of PredictionCell
        In the paper's order.

    Examples
    --------
    >>> published_prediction()[1]
    PredictionCell(metric='hamming_loss', dataset='cal500', method='MLFE', mean=0.141, std=0.002,
                   mark='•')
    """
    return tuple(
        PredictionCell(
            metric=row["metric"],
            dataset=dataset_info(row["dataset"]).name,
            method=row["method"],
            mean=float(row["mean"]),
            std=float(row["std"]),
            mark=_MARKS[row["vs_lemll"]],
        )
        for row in _rows("published_prediction.csv")
    )
