"""Choose the scale of a label distribution from a few rows whose distribution is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.utils import check_random_state

from lemll._labels import column_names, is_frame, row_index
from lemll._types import Array, Features, FloatArray, IndexArray, RandomState
from lemll._validation import check_distribution, check_whole
from lemll._warnings import warn_caller
from lemll.fitting import Normalization, normalize

__all__ = ["ChosenScale", "check_rated_rows", "choose_scale", "rated_losses"]


# The smallest scale gives an almost uniform distribution, the largest an almost one-hot one. The
# loss may have two local minima, so a grid over the whole range is searched.
SMALLEST, LARGEST = 2.0**-6, 2.0**6
GRID = np.linspace(np.log2(SMALLEST), np.log2(LARGEST), 385)
INTERVAL = (2.5, 97.5)
# A scale this close to an end of the range counts as the end. The value is relative.
EDGE = 1e-3


class ChosenScale(NamedTuple):
    """A scale and its confidence interval.

    Attributes
    ----------
    scale : float
        The minimiser of the mean loss over the rated rows.
    interval : tuple of float or None
        The 2.5 and 97.5 percentiles over bootstrap samples of these rows. None if there is only
        one rated row, because then all samples are equal.
    """

    scale: float
    interval: tuple[float, float] | None


def check_rated_rows(
    rows: Features,
    distributions: Any,
    n_samples: int,
    label_names: Sequence[str],
    row_names: Array | None = None,
) -> tuple[IndexArray, FloatArray]:
    """Return the rated rows and their distributions as arrays, or raise a ValueError.

    Parameters
    ----------
    rows : array-like of shape (n_rated,)
        Numbers of training rows, or their names if these are not whole numbers.
    distributions : array-like of shape (n_rated, n_labels)
        Known distributions. The columns of a frame must have the names of the labels. An index that
        holds names of training rows must have the order of `rows`.
    n_samples : int
        Number of training rows.
    label_names : sequence of str
        The names of the labels.
    row_names : ndarray of shape (n_samples,), optional
        The index of the training rows. By default they have only numbers.

    Returns
    -------
    index : ndarray of shape (n_rated,)
        The numbers of the rows.
    known : ndarray of shape (n_rated, n_labels)
        Their distributions.
    """
    index = np.asarray(rows)
    if index.ndim != 1 or len(index) == 0:
        raise ValueError(
            f"rows must list at least one training row, got shape {index.shape}; "
            "rate a handful of rows, ten say."
        )
    if row_names is not None and index.dtype.kind in "OUSM":
        index = _numbers_of(index, row_names)
    if index.dtype.kind not in "iu":
        raise ValueError(
            f"rows must hold whole row numbers, got dtype {index.dtype}; turn a mask into numbers "
            "with numpy.flatnonzero, other numbers into int, and names of rows into numbers with "
            "X.index.get_indexer."
        )
    wrong = (index < 0) | (index >= n_samples)
    if wrong.any():
        raise ValueError(
            f"rows must lie between 0 and {n_samples - 1}, got {index[wrong][0]}; "
            "count the rows given to fit from 0."
        )
    if len(np.unique(index)) < len(index):
        raise ValueError("rows names a row twice; rate every row once.")
    if is_frame(distributions):
        _check_order(distributions, index, row_names)
        distributions = _in_label_order(distributions, label_names)
    shape = np.shape(distributions)
    if shape != (len(index), len(label_names)):
        raise ValueError(
            f"distributions must be 2-D, with one row for each of {len(index)} rated rows and one "
            f"column for each of {len(label_names)} labels, got shape {shape}."
        )
    known = check_distribution(distributions, name="distributions")
    return index.astype(np.intp), known


def _numbers_of(names: Array, row_names: Array) -> Array:
    """Return the numbers of rows that are given by the names of the index."""
    places: dict[object, int] = {}
    repeated = set()
    for number, name in enumerate(row_names.tolist()):
        if places.setdefault(name, number) != number:
            repeated.add(name)
    for name in names.tolist():
        if name not in places or name in repeated:
            problem = "has no row" if name not in places else "has more than one row"
            raise ValueError(
                f"the index of the training rows {problem} {name!r}; give numbers of rows, counted "
                "from 0, or names that occur once in the index of X."
            )
    return np.array([places[name] for name in names.tolist()], dtype=np.intp)


def _check_order(frame: Any, index: IndexArray, row_names: Array | None) -> None:
    """Refuse a frame of ratings whose index names other rows than `index` does."""
    given = [] if row_index(frame) is None else np.asarray(row_index(frame)).tolist()
    # The numbers from 0 are the default of pandas, and say nothing.
    if len(given) != len(index) or given == list(range(len(given))):
        return
    expected = (index if row_names is None else row_names[index]).tolist()
    names = expected if row_names is None else row_names.tolist()
    if given != expected and set(names).issuperset(given):
        place = next(i for i, name in enumerate(given) if name != expected[i])
        raise ValueError(
            "the index of distributions must name the rated rows in the order of rows, but it has "
            f"{given[place]!r} at the place of row {index[place]}, which is {expected[place]!r}; "
            "pass rows=X.index.get_indexer(distributions.index), or distributions.to_numpy() if "
            "the index does not count."
        )


def _in_label_order(frame: Any, label_names: Sequence[str]) -> Array:
    """Return the values of a frame, with the columns in the order of the labels."""
    given = [str(name) for name in column_names(frame)]
    values = np.asarray(frame)
    if sorted(given) != sorted(label_names):
        # The labels of an array have no names of their own, so the position counts.
        if list(label_names) == [f"y{number}" for number in range(len(label_names))]:
            return values
        absent = [name for name in label_names if name not in given]
        other = [name for name in given if name not in label_names]
        raise ValueError(
            "the columns of distributions must have the names of the labels, "
            f"{', '.join(label_names[:5])}{', ...' if len(label_names) > 5 else ''}; absent: "
            f"{', '.join(absent[:5]) or 'none'}; not a label: {', '.join(other[:5]) or 'none'}. "
            "Rename the columns, or pass an array in the order of label_names_."
        )
    return values[:, [given.index(name) for name in label_names]]


def choose_scale(
    numerical_labels: FloatArray,
    known: FloatArray,
    normalization: Normalization,
    *,
    n_bootstrap: int,
    random_state: RandomState,
) -> ChosenScale:
    """Choose the scale at which normalised numerical labels are nearest to known distributions.

    Parameters
    ----------
    numerical_labels : ndarray of shape (n_rated, n_labels)
        U of the rated rows.
    known : ndarray of shape (n_rated, n_labels)
        Their distributions.
    normalization : {"sigmoid", "softmax", "sum"}
        How U becomes a distribution.
    n_bootstrap : int
        Number of bootstrap samples of the rows.
    random_state : int, RandomState or None
        Seed of the bootstrap samples.

    Returns
    -------
    ChosenScale
        The scale and its interval.
    """
    n_bootstrap = check_whole("n_bootstrap", n_bootstrap, least=1)
    losses = np.array([rated_losses(numerical_labels, known, normalization, s) for s in 2.0**GRID])
    if np.ptp(losses, axis=0).max() == 0:
        raise ValueError(
            "the scale changes nothing in the rated rows: their numerical labels are equal, or "
            "only one of them is above 0 and the rows are divided by their sums; rate other rows, "
            'choose normalization="sigmoid" or "softmax", or weigh several sources, by '
            'calibrate(..., method="sources") or BlendEnhancer (lemll enhance --method Blend).'
        )
    rng = check_random_state(random_state)
    # A bootstrap sample only changes how often each row counts. So draw the counts, and one matrix
    # product gives the losses of all samples at all scales.
    samples = rng.multinomial(len(known), np.full(len(known), 1 / len(known)), size=n_bootstrap)
    found = GRID[np.argmin(samples @ losses.T, axis=1)]
    scale = _refine(numerical_labels, known, normalization, losses.mean(axis=1))
    if not SMALLEST * (1 + EDGE) < scale < LARGEST * (1 - EDGE):
        end = "nearly uniform" if scale < 1 else "nearly one label a row"
        warn_caller(
            f"the rated rows ask for a scale at the end of its range, {scale:.3g}: {end} fits them "
            "best, so they hardly agree with the numerical labels; look at the ratings.",
            UserWarning,
        )
    if len(known) == 1:
        return ChosenScale(scale, None)
    # The samples use only points of the grid, but the scale is refined between them. Extend the
    # interval if necessary, so that it contains the scale.
    low, high = 2.0 ** np.percentile(found, INTERVAL)
    return ChosenScale(scale, (min(float(low), scale), max(float(high), scale)))


def rated_losses(
    numerical_labels: FloatArray, known: FloatArray, normalization: Normalization, scale: float
) -> FloatArray:
    """Return the squared error of the distribution of each row, at a given scale."""
    off: FloatArray = normalize(numerical_labels, normalization, scale=scale) - known
    return np.asarray(np.einsum("ij,ij->i", off, off))


def _refine(
    numerical_labels: FloatArray,
    known: FloatArray,
    normalization: Normalization,
    mean_loss: FloatArray,
) -> float:
    """Search between the two neighbours of the best grid point."""
    best = int(np.argmin(mean_loss))
    found = minimize_scalar(
        lambda log: rated_losses(numerical_labels, known, normalization, 2.0**log).mean(),
        bounds=(GRID[max(best - 1, 0)], GRID[min(best + 1, len(GRID) - 1)]),
        method="bounded",
    )
    return float(2.0 ** (found.x if found.fun < mean_loss[best] else GRID[best]))
