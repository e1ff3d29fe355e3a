"""The scale of a label distribution, from a few rows whose distribution is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.utils import check_random_state

from lemll._types import Features, FloatArray, IndexArray, RandomState
from lemll._validation import check_distribution, check_whole
from lemll._warnings import warn_caller
from lemll.fitting import Normalization, normalize

__all__ = ["ChosenScale", "check_rated_rows", "choose_scale", "rated_losses"]


# Between all but uniform and all but one-hot; the loss may have two valleys, so all of it is seen.
SMALLEST, LARGEST = 2.0**-6, 2.0**6
GRID = np.linspace(np.log2(SMALLEST), np.log2(LARGEST), 385)
INTERVAL = (2.5, 97.5)
# So near to an end of the range a scale is the end.
EDGE = 1e-3


class ChosenScale(NamedTuple):
    """A scale and how sure it is.

    Attributes
    ----------
    scale : float
        The minimiser of the mean loss over the rated rows.
    interval : tuple of float or None
        Its 2.5 and 97.5 percentiles over samples of these rows; None for a single row, of which
        there are no samples.
    """

    scale: float
    interval: tuple[float, float] | None


def check_rated_rows(
    rows: Features, distributions: Any, shape: tuple[int, ...]
) -> tuple[IndexArray, FloatArray]:
    """Return the rated rows and their distributions as arrays, or say what is wrong with them.

    Parameters
    ----------
    rows : array-like of shape (n_rated,)
        Indices of training rows.
    distributions : array-like of shape (n_rated, n_labels)
        Known distributions.
    shape : tuple of int
        (n_samples, n_labels) of the training data.

    Returns
    -------
    index : ndarray of shape (n_rated,)
        The rows.
    known : ndarray of shape (n_rated, n_labels)
        Their distributions.
    """
    n_samples, n_labels = shape
    index = np.asarray(rows)
    if index.ndim != 1 or len(index) == 0:
        raise ValueError(
            f"rows must list at least one training row, got shape {index.shape}; "
            "rate a handful of rows, ten say."
        )
    if index.dtype.kind not in "iu":
        raise ValueError(
            f"rows must hold row numbers, got dtype {index.dtype}; "
            "turn a mask into numbers with numpy.flatnonzero."
        )
    wrong = (index < 0) | (index >= n_samples)
    if wrong.any():
        raise ValueError(
            f"rows must lie between 0 and {n_samples - 1}, got {index[wrong][0]}; "
            "count the rows given to fit from 0."
        )
    if len(np.unique(index)) < len(index):
        raise ValueError("rows names a row twice; rate every row once.")
    known = check_distribution(distributions, name="distributions")
    if known.shape != (len(index), n_labels):
        raise ValueError(
            f"distributions must have one row for each of {len(index)} rated rows and {n_labels} "
            f"labels, got shape {known.shape}."
        )
    return index.astype(np.intp), known


def choose_scale(
    numerical_labels: FloatArray,
    known: FloatArray,
    normalization: Normalization,
    *,
    n_bootstrap: int,
    random_state: RandomState,
) -> ChosenScale:
    """Choose the scale at which numerical labels come nearest to known distributions.

    Parameters
    ----------
    numerical_labels : ndarray of shape (n_rated, n_labels)
        U of the rated rows.
    known : ndarray of shape (n_rated, n_labels)
        Their distributions.
    normalization : {"sigmoid", "softmax", "sum"}
        How U becomes a distribution.
    n_bootstrap : int
        Samples of the rows.
    random_state : int, RandomState or None
        Of these samples.

    Returns
    -------
    ChosenScale
        The scale and its interval.
    """
    n_bootstrap = check_whole("n_bootstrap", n_bootstrap, least=1)
    losses = np.array([rated_losses(numerical_labels, known, normalization, s) for s in 2.0**GRID])
    if np.ptp(losses, axis=0).max() == 0:
        raise ValueError(
            "the scale changes nothing in the rated rows: their numerical labels are alike, or "
            "only one of them is above 0 and the rows are divided by their sums; rate other rows, "
            'or choose normalization="sigmoid" or "softmax".'
        )
    rng = check_random_state(random_state)
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
    # The samples are compared on a grid, the scale lies between its points.
    low, high = 2.0 ** np.percentile(found, INTERVAL)
    return ChosenScale(scale, (min(float(low), scale), max(float(high), scale)))


def rated_losses(
    numerical_labels: FloatArray, known: FloatArray, normalization: Normalization, scale: float
) -> FloatArray:
    """Return the squared error of each row's distribution, at a scale."""
    off: FloatArray = normalize(numerical_labels, normalization, scale=scale) - known
    return np.asarray(np.einsum("ij,ij->i", off, off))


def _refine(
    numerical_labels: FloatArray,
    known: FloatArray,
    normalization: Normalization,
    mean_loss: FloatArray,
) -> float:
    """Search between the neighbours of the best point of the grid."""
    best = int(np.argmin(mean_loss))
    found = minimize_scalar(
        lambda log: rated_losses(numerical_labels, known, normalization, 2.0**log).mean(),
        bounds=(GRID[max(best - 1, 0)], GRID[min(best + 1, len(GRID) - 1)]),
        method="bounded",
    )
    return float(2.0 ** (found.x if found.fun < mean_loss[best] else GRID[best]))
