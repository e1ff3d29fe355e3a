"""Choose the scale of a label distribution from a few rows whose distribution is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import softmax, xlogy
from sklearn.utils import check_random_state

from lemll._labels import column_names, is_frame, row_index
from lemll._types import Array, BoolArray, Features, FloatArray, IndexArray, RandomState
from lemll._validation import check_distribution, check_whole, warn_caller
from lemll.fitting.scaling import Normalization, normalize
from lemll.solvers import solve_log_linear

# The weight of the first source without any rated row. A source has the mean square 1, so this is
# the standard deviation of the logarithms of the degrees. Data sets ask for .06 to 1; a smaller
# value than the right one is better than the uniform distribution, so the prior is cautious.
PRIOR_SCALE = 0.1
# With fewer rated rows only the first weight is fitted, because no row can be left out.
_FEWEST_FOR_ALL = 3
# The model with the most freedom needs more rows.
_FEWEST_FOR_FREE_BIASES = 10
_FOLDS = 5
# Biases of more labels than this are not fitted: a few rows say nothing about them, and the time
# grows with the cube of their number.
_MOST_LABELS_WITH_BIAS = 100
# A model counts less by the factor e for each excess of so many times the lowest error, however few
# rows there are.
_HOPELESS = 20.0
# Differences of losses that are a smaller share of the lowest error are rounding errors.
_ROUNDING = 1e-6
# Sources that are models of their own. "numerical labels" are those of any enhancer.
_ALONE = ("smooth labels", "LEMLL", "numerical labels", "plain label graph")
# Of these, the scale is also fitted by squared errors: where most degrees are nearly 0, divergences
# say little about the largest ones.
_BY_SQUARES = ("plain label graph", "LEMLL", "numerical labels")
# Where it has much weight, it is alone.
_NOT_MIXED = "plain label graph"
_SMOOTH_GRAPH = "smooth label graph"


class _Rung(NamedTuple):
    """A model of the ladder.

    Attributes
    ----------
    title : str
        For a reader.
    mixes : ndarray of shape (n_weights, n_sources)
        Each row is a mix of the sources that has one weight.
    ridge, bias_ridge : float
        The ridges of the weights and of the biases. Without biases the second one is None.
    by_squares : bool
        Whether one weight is fitted by squared errors, without a ridge.
    """

    title: str
    mixes: FloatArray
    ridge: float
    bias_ridge: float | None
    by_squares: bool = False


def _ladder(names: Sequence[str], n_rated: int) -> list[_Rung]:
    """Return the models, the first of which needs the fewest rated rows.

    The models, the ridges and the rule of `_shares` were chosen on SJAFFE, Natural Scene and five
    of the Yeast sets, with their true distributions in view, and on generated data
    (results/README.md).
    """
    each = np.eye(len(names))
    rungs = [_Rung("scale of the label graph", each[:1], 0.03, None)]
    if n_rated < _FEWEST_FOR_ALL:
        return rungs
    mixed = each[[k for k, name in enumerate(names) if name != _NOT_MIXED]]
    rungs += [
        _Rung("label graph and biases", each[:2], 0.03, 3.0),
        _Rung("all sources", mixed, 0.3, None),
        _Rung("all sources and small biases", mixed, 0.3, 3.0),
        _Rung("biases alone", each[:0], 0.3, 0.3),
    ]
    if n_rated >= _FEWEST_FOR_FREE_BIASES:
        rungs.append(_Rung("all sources and biases", mixed, 0.3, 0.3))
    for k, name in enumerate(names):
        if name in _ALONE:
            rungs.append(_Rung(f"{name} alone", each[k : k + 1], 0.03, None))
        if name in _BY_SQUARES:
            rungs.append(_Rung(f"{name} by squared errors", each[k : k + 1], 0.0, None, True))
        if name == _SMOOTH_GRAPH:
            rungs.append(_Rung(f"{name} and biases", each[k : k + 1], 0.03, 3.0))
    return rungs


@dataclass(frozen=True)
class RatedBlend:
    """A model of label distributions.

    Attributes
    ----------
    weights : dict of str to float
        The weight of each source.
    bias : ndarray of shape (n_labels,)
        What each label gets in addition.
    shares : dict of str to float
        How much each of the fitted models counts. A model is named after the sources whose weights
        it fits, and after the biases, if it has them.
    error : float or None
        Mean Kullback-Leibler divergence of rated rows from models that were fitted to the others.
        None if there are too few rows.
    error_of_mean : float or None
        The same for the mean of the other rated rows and one uniform row, which uses no source. The
        models were weighed by the same rows that give `error`, so a small advantage is no evidence.
    optimality : float
        The largest certified relative gap of the fits.
    """

    weights: dict[str, float]
    bias: FloatArray
    shares: dict[str, float]
    error: float | None
    error_of_mean: float | None
    optimality: float

    def distribution(self, sources: Mapping[str, FloatArray]) -> FloatArray:
        """Return the label distributions of rows from their sources."""
        total = sum(weight * sources[name] for name, weight in self.weights.items())
        return np.asarray(softmax(total + self.bias, axis=1))


def unit_source(values: FloatArray) -> FloatArray:
    """Subtract the mean of each row, and divide by the root of the mean square of all entries.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_labels)
        Logarithms of degrees, up to a factor and a constant per row.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Zeros if all labels of each row have the same value.
    """
    centred = values - values.mean(axis=1, keepdims=True)
    size = float(np.sqrt(np.square(centred).mean()))
    rounding = 1e-12 * max(1.0, float(np.abs(values).max(initial=0.0)))
    return np.zeros_like(centred) if size <= rounding else centred / size


def blend_sources(
    sources: Mapping[str, FloatArray],
    rows: IndexArray,
    known: FloatArray,
    *,
    prior_scale: float = PRIOR_SCALE,
) -> RatedBlend:
    """Weigh the sources so that they agree with the rated rows.

    Parameters
    ----------
    sources : mapping of str to ndarray of shape (n_samples, n_labels)
        Sources of mean square 1, the most reliable first.
    rows : ndarray of shape (n_rated,)
        Numbers of the rated rows.
    known : ndarray of shape (n_rated, n_labels)
        Their distributions.
    prior_scale : float, default=0.1
        The ridge of each model pulls its first weight to this value, and the others to 0.

    Returns
    -------
    RatedBlend
        The blend. It does not depend on the order of the rated rows.
    """
    order = np.argsort(rows)
    Z = np.stack([source[rows[order]] for source in sources.values()], axis=-1)
    # Ratings may miss the sum 1 by rounding errors, and divergences must not be negative.
    D = known[order] / known.sum(axis=1)[order, None]
    n_rated = len(D)
    ladder = _ladder(list(sources), n_rated)
    if D.shape[1] > _MOST_LABELS_WITH_BIAS:
        ladder = [rung for rung in ladder if rung.bias_ridge is None]
    fits = [_fit(rung, Z, D, prior_scale) for rung in ladder]
    shares = np.ones(1)
    error = error_of_mean = None
    if len(ladder) > 1:
        unseen = np.stack([_unseen(rung, Z, D, prior_scale) for rung in ladder])
        no_source = np.array([not len(rung.mixes) for rung in ladder])
        shares = _shares(_losses(D, unseen), no_source)
        blended = softmax(np.tensordot(shares, unseen, axes=1), axis=1)
        error = float(_divergences(D, blended).mean())
        error_of_mean = float(_divergences(D, _means_of_others(D)).mean())
    weights = sum(share * fit.weights for share, fit in zip(shares, fits, strict=True))
    bias = sum(share * fit.bias for share, fit in zip(shares, fits, strict=True))
    return RatedBlend(
        weights=dict(zip(sources, np.asarray(weights).tolist(), strict=True)),
        bias=np.asarray(bias),
        shares={rung.title: float(share) for rung, share in zip(ladder, shares, strict=True)},
        error=error,
        error_of_mean=error_of_mean,
        optimality=max(fit.gap for fit in fits),
    )


class _Fit(NamedTuple):
    """A fitted model: weights of all sources, biases, certified gap."""

    weights: FloatArray
    bias: FloatArray
    gap: float


def _fit(rung: _Rung, Z: FloatArray, D: FloatArray, prior_scale: float) -> _Fit:
    n_rows, n_labels, _ = Z.shape
    if rung.by_squares:
        scale = _scale_by_squares(Z @ rung.mixes[0], D)
        return _Fit(scale * rung.mixes[0], np.zeros(n_labels), 0.0)
    used = len(rung.mixes)
    G, ridge = Z @ rung.mixes.T, np.full(used, rung.ridge)
    if rung.bias_ridge is not None:
        biases = np.broadcast_to(np.eye(n_labels), (n_rows, n_labels, n_labels))
        G = np.concatenate([G, biases], axis=2)
        ridge = np.concatenate([ridge, np.full(n_labels, rung.bias_ridge)])
    centre = np.zeros(len(ridge))
    if used:
        centre[0] = prior_scale
    found = solve_log_linear(G, D, ridge, centre)
    bias = np.zeros(n_labels) if rung.bias_ridge is None else found.coef[used:]
    return _Fit(found.coef[:used] @ rung.mixes, bias, found.gap)


def _unseen(rung: _Rung, Z: FloatArray, D: FloatArray, prior_scale: float) -> FloatArray:
    """Return the logarithms of the degrees of each row, by a model of the other folds."""
    log = np.empty(D.shape)
    for test in _folds(len(D)):
        fit = _fit(rung, Z[~test], D[~test], prior_scale)
        log[test] = Z[test] @ fit.weights + fit.bias
    # The models have different constants per row; without them, means of models make sense.
    return np.asarray(log - log.mean(axis=1, keepdims=True))


def _folds(n_rows: int) -> Sequence[np.typing.NDArray[np.bool_]]:
    n_folds = min(_FOLDS, n_rows)
    return [np.arange(n_rows) % n_folds == fold for fold in range(n_folds)]


def _means_of_others(D: FloatArray) -> FloatArray:
    """Return the mean of the other folds, with one uniform row, so that no degree is 0."""
    means = np.empty_like(D)
    for test in _folds(len(D)):
        others = D[~test]
        means[test] = (others.sum(axis=0) + 1 / D.shape[1]) / (len(others) + 1)
    return means


def _divergences(D: FloatArray, found: FloatArray) -> FloatArray:
    """Return the Kullback-Leibler divergence of each row."""
    floor = np.finfo(np.float64).eps
    return np.asarray((xlogy(D, D) - xlogy(D, np.maximum(found, floor))).sum(axis=1))


def _losses(D: FloatArray, unseen: FloatArray) -> FloatArray:
    """Return the losses of models on rows that were left out, of shape (n_models, n_rated).

    A loss is the sum of the six distances of distributions, each divided by its lowest mean.
    Divergences alone look at the many small degrees, and squared errors alone at the largest.
    """
    found = softmax(unseen, axis=2)
    off = np.abs(found - D)
    relative = np.divide(off, found + D, out=np.zeros_like(off), where=found + D > 0)
    lengths = np.linalg.norm(found, axis=2) * np.linalg.norm(D, axis=1)
    distances = (
        off.max(axis=2),
        np.sqrt(np.square(relative).sum(axis=2)),
        relative.sum(axis=2),
        np.stack([_divergences(D, degrees) for degrees in found]),
        1 - np.minimum(1, (found * D).sum(axis=2) / lengths),
        off.sum(axis=2),
    )
    smallest = np.finfo(np.float64).eps
    return np.asarray(
        sum(part / max(float(part.mean(axis=1).min()), smallest) for part in distances)
    )


def _shares(losses: FloatArray, no_source: BoolArray | None = None) -> FloatArray:
    r"""Return how much each model counts, by its losses on rated rows that were left out.

    With t the statistic of the paired t-test between a model and the one with the lowest mean loss,
    the model counts like :math:`\exp(-t^2/4)`. So a model that is worse by a similar amount in all
    rows counts little. One that is worse in a single row counts about 0.78 times as much as the
    best, however large this loss is, unless `_HOPELESS` applies.
    """
    n_rated = losses.shape[1]
    errors = losses.mean(axis=1)
    lowest = max(float(errors.min()), np.finfo(np.float64).eps)
    excess = losses - losses[errors.argmin()]
    # Models that are equal up to rounding errors must count alike.
    squares = np.square(excess).sum(axis=1) + n_rated * (_ROUNDING * lowest) ** 2
    # Between 0 and the number of rows, which it approaches if the excess is the same in all rows.
    evenness = np.square(excess.sum(axis=1)) / squares
    unexplained = np.maximum(n_rated - evenness, n_rated * np.finfo(np.float64).eps)
    t_squared = (n_rated - 1) * evenness / unexplained
    shares = np.exp(-t_squared / 4 - (errors - errors.min()) / (_HOPELESS * lowest))
    if no_source is not None:
        # A model without a source is for sources that say nothing. Where another model is better,
        # it would only make the degrees of all rows more alike.
        shares[no_source & (errors > errors.min())] = 0.0
    return np.asarray(shares / shares.sum())


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
        index = numbers_of_rows(index, row_names)
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


def numbers_of_rows(names: Array, row_names: Array) -> Array:
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
            'calibrate(..., method="sources") or BlendEnhancer.'
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


def _scale_by_squares(values: FloatArray, known: FloatArray) -> float:
    """Return the scale of logarithms of degrees with the least squared error."""
    losses = np.array([rated_losses(values, known, "softmax", s).mean() for s in 2.0**GRID])
    return _refine(values, known, "softmax", losses)
