"""Convert a label distribution to logical labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lemll._types import LabelArray, MatrixLike
from lemll._validation import check_distribution
from lemll.datasets.dataset import Dataset
from lemll.datasets.registry import dataset_info


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure that is different in the data and in the paper."""

    figure: str
    ours: float
    paper: float
    known: bool

    def __str__(self) -> str:
        text = f"{self.figure}: {self.ours:g} here, {self.paper:g} in the paper"
        return text + (" (known)" if self.known else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Size and label statistics of a data set.

    Attributes
    ----------
    name : str
        The name of the data set.
    examples, features, labels : int
        Numbers of rows, features and labels.
    cardinality : float or None
        Mean number of relevant labels per row. None for a distribution.
    density : float or None
        Cardinality divided by the number of labels.
    distinct : int or None
        Number of different label sets.
    proportion_distinct : float or None
        Distinct label sets divided by rows.
    differences : tuple of Difference
        The figures that differ from the tables of the paper, up to the printed decimals. Empty for
        a data set that was not loaded by `load_dataset`.
    """

    name: str
    examples: int
    features: int
    labels: int
    cardinality: float | None
    density: float | None
    distinct: int | None
    proportion_distinct: float | None
    differences: tuple[Difference, ...]


def describe(dataset: Dataset) -> Description:
    """Compute the figures of Tables I and V for a data set.

    Parameters
    ----------
    dataset : Dataset
        Any data set. If `load_dataset` loaded it, it is compared with the paper. Other data sets
        are not compared, even if they have the same name.

    Returns
    -------
    Description
        The figures and their differences from the paper.

    Examples
    --------
    >>> from lemll.datasets import Dataset, describe
    >>> describe(Dataset(X=[[0.0], [1.0]], Y=[[1, 0], [1, 1]])).cardinality
    1.5
    """
    n_rows, n_features = dataset.X.shape
    n_labels = dataset.labels.shape[1]
    figures: dict[str, float] = {"examples": n_rows, "features": n_features, "labels": n_labels}
    if dataset.Y is not None:
        # Cells that nobody observed count as not relevant in the combinations of labels, and not
        # at all in the means.
        known = np.nan_to_num(dataset.Y).astype(np.int8)
        distinct = len(np.unique(np.packbits(known, axis=1), axis=0))
        n_known = dataset.Y.size - int(np.isnan(dataset.Y).sum())
        figures["density"] = float(known.sum() / n_known)
        figures["cardinality"] = figures["density"] * n_labels
        figures["distinct"] = distinct
        figures["proportion_distinct"] = distinct / n_rows
    return Description(
        name=dataset.name,
        examples=n_rows,
        features=n_features,
        labels=n_labels,
        cardinality=figures.get("cardinality"),
        density=figures.get("density"),
        distinct=int(figures["distinct"]) if "distinct" in figures else None,
        proportion_distinct=figures.get("proportion_distinct"),
        differences=_differences(dataset.registered, figures) if dataset.registered else (),
    )


def _differences(name: str, figures: dict[str, float]) -> tuple[Difference, ...]:
    info = dataset_info(name)
    return tuple(
        Difference(
            figure,
            figures[figure],
            paper,
            known=info.known_differences.get(figure) == figures[figure],
        )
        for figure, paper in info.published.items()
        # The paper prints three decimals. Half a unit of the last decimal is not a difference.
        if figure in figures and abs(figures[figure] - paper) > 0.0005 + 1e-9
    )


def binarize_distribution(D: MatrixLike, threshold: float) -> LabelArray:
    """Convert a label distribution to logical labels.

    In each row, the labels are selected in order of descending degree, until the sum of the
    selected degrees *exceeds* the threshold [1]_. If the sum equals the threshold, one more label
    is selected, as in the code of the authors. If two degrees are equal, the label with the lower
    index is selected first. At least one label is selected. If rounding errors keep the sum of a
    whole row below the threshold, all labels are selected.

    Parameters
    ----------
    D : array-like of shape (n_samples, n_labels)
        Degrees. They are non-negative, and the sum of every row is one.
    threshold : float
        A number between 0 and 1, both excluded. The paper uses 0.1, 0.2, 0.3, 0.4 and 0.5.

    Returns
    -------
    ndarray of shape (n_samples, n_labels), int8
        Logical labels, 0/1. Each row has at least one relevant label.

    References
    ----------
    .. [1] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018, section on the reconstruction of label
       importance.

    Examples
    --------
    >>> from lemll.datasets import binarize_distribution
    >>> D = [[0.25, 0.5, 0.125, 0.125]]
    >>> binarize_distribution(D, 0.3)
    array([[0, 1, 0, 0]], dtype=int8)
    >>> binarize_distribution(D, 0.5)  # 0.5 does not exceed 0.5
    array([[1, 1, 0, 0]], dtype=int8)
    """
    if not isinstance(threshold, (float, int, np.floating)) or not 0 < threshold < 1:
        raise ValueError(f"threshold must be a number between 0 and 1, got {threshold!r}.")
    degrees = check_distribution(D)
    order = np.argsort(-degrees, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(degrees, order, axis=1), axis=1)
    chosen = np.ones(degrees.shape, dtype=np.int8)
    # A label is selected if the sum of the larger degrees does not exceed the threshold.
    chosen[:, 1:] = sums[:, :-1] <= threshold
    labels = np.empty_like(chosen)
    np.put_along_axis(labels, order, chosen, axis=1)
    return labels
