"""The evidence that finds the most missing tags, judged by the tags that are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import beta, chi2
from sklearn.metrics import average_precision_score

from lemll._types import BoolArray, Features, FloatArray, IndexArray, LabelArray
from lemll._validation import UNOBSERVED

# The pooled rates look at this many cells at least, at the top; below, at this share of the cells.
_FEWEST_CELLS = 50
_FEWEST_BELOW = 0.05
_SIZES = 12
_POOLED_CONFIDENCE = 0.9
# The bounds of one label look at this many rows at least.
_FEWEST_ROWS = 10
_ROW_SIZES = 6
# The rates are upper bounds, and tags that are hard to predict look like noise. The scores assume
# this share of them, so that suggestions with high scores are right about as often as they say.
_CAUTION = 0.4
# Odds shrink with the rates, so a cell that is as likely wrong as right by the whole rates has this
# score. In tests about half of the cells with such scores were wrong (`results/audit/README.md`).
EVEN_ODDS = _CAUTION / (1 + _CAUTION)
# A rate of zero would make all scores zero, and they could not be ranked.
_SMALLEST_RATE = 1e-3
_LARGEST_RATE = 0.9


class NoiseRates(NamedTuple):
    """The rates of the noise that the scores assume.

    Attributes
    ----------
    missing : float
        Share of the tags that apply and are not given, for all labels.
    added : float
        Number of wrong tags, relative to the given tags of the label: labels that are given often
        are also given wrongly more often.
    """

    missing: float
    added: float


class LabelNoise(NamedTuple):
    """Shares per label, each of shape (n_labels,).

    Attributes
    ----------
    wrong, missing : ndarray
        Estimates: the share of the given tags that are wrong, and of the tags that apply that are
        missing.
    wrong_high, missing_high : ndarray
        Upper ends of the intervals. The lower ends are 0, because a tag that cannot be predicted
        looks the same as a tag with noise.
    """

    wrong: FloatArray
    wrong_high: FloatArray
    missing: FloatArray
    missing_high: FloatArray


def prior_odds(Y: LabelArray) -> FloatArray:
    """Return how often each label is given, as odds; finite also if it is always or never given.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells are -1.

    Returns
    -------
    ndarray of shape (n_labels,)
        The odds.
    """
    return np.asarray(((Y == 1).sum(axis=0) + 0.5) / ((Y == 0).sum(axis=0) + 0.5))


def noise_rates(probability: FloatArray, Y: LabelArray) -> NoiseRates:
    """Estimate the rates of the noise from all labels together.

    The share without the tag among the cells that look most like it bounds the rate of missing
    tags. For wrong tags, cells are ranked by their odds relative to the odds of the label, and the
    tags given in the lowest cells are compared with the number that a rate of 1 would give. Several
    numbers of cells are tried. Each gives a rate with an upper bound, and the largest number whose
    rate is not above the smallest of these bounds counts.

    Parameters
    ----------
    probability : ndarray of shape (n_samples, n_labels)
        Probability that the tag is given, by a model that did not see it.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells are -1.

    Returns
    -------
    NoiseRates
        Four tenths of the rates, because tags that are hard to predict look like noise; at least
        0.001 and at most 0.9.
    """
    known = Y != UNOBSERVED
    p, given = np.clip(probability[known], 1e-9, 1 - 1e-9), Y[known] == 1
    odds = np.broadcast_to(prior_odds(Y), Y.shape)[known]
    without = np.cumsum(~given[np.argsort(-p, kind="stable")])
    sizes = _sizes(min(_FEWEST_CELLS, len(p)), int(given.sum()), len(p))
    missing = _best_rate(without[sizes - 1], sizes)
    order = np.argsort(p / (1 - p) / odds, kind="stable")
    sizes = _sizes(max(1, int(_FEWEST_BELOW * len(p))), len(p) // 2, len(p))
    added = _best_rate(np.cumsum(given[order])[sizes - 1], np.cumsum(odds[order])[sizes - 1])
    rates = np.clip(_CAUTION * np.array([missing, added]), _SMALLEST_RATE, _LARGEST_RATE)
    return NoiseRates(*rates.tolist())


def _best_rate(counts: IndexArray, exposures: FloatArray | IndexArray) -> float:
    """Return the rate of the most cells that is not above the smallest bound, as Poisson counts.

    The smallest of the rates themselves would be an accident of the smallest numbers of cells: none
    of the fifty surest cells may be a mistake where one in thirty is.
    """
    bound = (chi2.ppf(_POOLED_CONFIDENCE, 2 * (counts + 1)) / 2 / exposures).min()
    rates = counts / exposures
    return float(rates[np.flatnonzero(rates <= bound)[-1]])


def _sizes(least: int, most: int, limit: int, number: int = _SIZES) -> IndexArray:
    most = min(max(least, most), limit)
    return np.unique(np.geomspace(least, most, number).astype(np.intp))


def label_noise(probability: FloatArray, Y: LabelArray, confidence: float) -> LabelNoise:
    """Bound the shares of wrong and missing tags, label by label.

    Parameters
    ----------
    probability : ndarray of shape (n_samples, n_labels)
        Probability that the tag is given, by a model that did not see it.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells are -1.
    confidence : float
        Of each interval, between 0 and 1.

    Returns
    -------
    LabelNoise
        Estimates and upper ends.
    """
    shares = np.ones((4, Y.shape[1]))
    for j in range(Y.shape[1]):
        known = Y[:, j] != UNOBSERVED
        given = (Y[known, j] == 1)[np.argsort(-probability[known, j], kind="stable")]
        n_given, n_rows = int(given.sum()), len(given)
        if not n_given or n_given == n_rows:
            shares[:, j] = (0.0, 1.0, 0.0, 1.0)
            continue
        missing = _bounded_share(~given, n_given, confidence)
        rate = _bounded_share(given[::-1], n_rows // 2, confidence)
        # A rate among the rows without the tag becomes a share of the given tags.
        scale = np.array([n_rows - n_given, n_rows]) / n_given
        shares[:, j] = [*np.minimum(1.0, np.array(rate) * scale), *missing]
    return LabelNoise(*shares)


def _bounded_share(found: BoolArray, most: int, confidence: float) -> tuple[float, float]:
    """Return the share in the first rows and its bound, for the number of rows with the best bound.

    The bounds are upper ends of Clopper and Pearson, each with the error of the interval divided by
    the number of sizes.
    """
    sizes = _sizes(min(_FEWEST_ROWS, len(found)), most, len(found), _ROW_SIZES)
    counts = np.cumsum(found)[sizes - 1]
    upper = beta.ppf(1 - (1 - confidence) / len(sizes), counts + 1, sizes - counts)
    upper = np.where(counts == sizes, 1.0, upper)
    best = int(upper.argmin())
    return float(counts[best] / sizes[best]), float(upper[best])


# Share of the score that only orders cells whose probability of an error is the same.
_ORDER = 1e-3


def error_probability(probability: FloatArray, Y: LabelArray, rates: NoiseRates) -> FloatArray:
    r"""Return the probability that each cell is wrong: a tag that does not apply, or a missing one.

    With the rates :math:`\rho_1` and :math:`\rho_0` of label j (:math:`\rho_0` is `rates.added`
    times the odds of the label), the probability q that the tag is given becomes the probability
    :math:`p=(q-\rho_0)/(1-\rho_0-\rho_1)` that it applies, and

    .. math:: P(\text{wrong}\mid\text{given})=\frac{\rho_0(1-p)}{\rho_0(1-p)+(1-\rho_1)p},\qquad
        P(\text{missing}\mid\text{not given})=\frac{\rho_1p}{\rho_1p+(1-\rho_0)(1-p)} .

    No model is surer than its rows allow: p counts as a share of the n known cells of the label,
    to which one cell without the tag and o cells with it are added,
    :math:`p\leftarrow(np+o)/(n+o+1)`, where o is the odds of the label, at most 1. So a score near
    1 needs many more rows than the inverse of the rates. Cells beyond the ends of p have the same
    probability; a thousandth of the score orders them.

    Parameters
    ----------
    probability : ndarray of shape (n_samples, n_labels)
        Probability that the tag is given, by a model that did not see it.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells are -1.
    rates : NoiseRates
        The rates of the noise.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        In [0, 1], NaN in unknown cells.
    """
    odds = prior_odds(Y)
    missing = rates.missing
    # Neither rate may leave nothing for the tags that are right.
    added = np.minimum(rates.added * odds, 0.5 * (1 - missing))
    p = _within_evidence(np.clip((probability - added) / (1 - added - missing), 0, 1), Y, odds)
    wrong = _share(added * (1 - p), (1 - missing) * p)
    lost = _share(missing * p, (1 - added) * (1 - p))
    given = Y == 1
    error = np.where(given, wrong, lost)
    found = (1 - _ORDER) * error + _ORDER * strangeness(probability, Y)
    return np.where(Y == UNOBSERVED, np.nan, found)


def _within_evidence(p: FloatArray, Y: LabelArray, odds: FloatArray) -> FloatArray:
    """Keep probabilities away from 0 and 1, as far as the number of known cells demands."""
    known = (Y != UNOBSERVED).sum(axis=0)
    # Rare labels get less than one tag, or no wrong tag of a rare label would ever stand out.
    with_tag = np.minimum(odds, 1)
    return np.asarray((known * p + with_tag) / (known + with_tag + 1))


def _share(part: FloatArray, rest: FloatArray) -> FloatArray:
    return np.asarray(part / np.maximum(part + rest, np.finfo(np.float64).tiny))


def strangeness(probability: FloatArray, Y: LabelArray) -> FloatArray:
    """Return how much a cell looks like the other value, without any rate of noise.

    Parameters
    ----------
    probability : ndarray of shape (n_samples, n_labels)
        Probability that the tag is given, by a model that did not see it.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        In [0, 1]: for tags that are not given, the probability; for given tags, the odds of the
        label against the odds of the cell, as a share.
    """
    q = np.clip(probability, 1e-12, 1 - 1e-12)
    odds = prior_odds(Y)
    return np.where(Y == 1, odds * (1 - q) / (odds * (1 - q) + q), q)


def row_quality(quality: FloatArray) -> FloatArray:
    """Return the probability that a row has no wrong and no missing tag.

    Parameters
    ----------
    quality : ndarray of shape (n_samples, n_labels)
        Probability that each cell is right, NaN in unknown cells. The cells count as independent.

    Returns
    -------
    ndarray of shape (n_samples,)
        The products; NaN for a row without known cells.
    """
    known = ~np.isnan(quality).all(axis=1)
    return np.where(known, np.nanprod(quality, axis=1), np.nan)


# Strengths of the penalty, from strong to weak; the log loss of unseen rows chooses.
_PENALTIES = (30.0, 10.0, 3.0, 1.0)
# With fewer values other than zero, tags are stored as sparse.
_DENSE = 0.2
# Rows are told apart by whether they have 0, 1, ..., this many other tags or more.
_COUNTS = 3
_MAX_ITER = 100
# The gain of a weaker penalty must be at least this share of the loss; else the stronger one stays.
_GAIN = 1e-3


class Evidence(NamedTuple):
    """The tags of rows, as evidence for each other.

    Attributes
    ----------
    tags : ndarray or csr_array of shape (n_samples, n_labels)
        The tags, with probabilities in unknown cells.
    counts : ndarray of shape (3, n_samples, n_labels)
        Where the row has no, one or two tags besides tag j. Probabilities make the number
        fractional; it then belongs to both neighbours.
    """

    tags: Features
    counts: FloatArray

    def of_rows(self, rows: IndexArray) -> Evidence:
        """Return the evidence of some rows."""
        return Evidence(self.tags[rows], self.counts[:, rows])


def tag_evidence(features: FloatArray, Y: LabelArray) -> Evidence:
    """Return the tags as evidence; unknown ones are replaced by probabilities from the features.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_labels)
        Log-odds from the features.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells are -1.

    Returns
    -------
    Evidence
        The tags and their counts.
    """
    tags = np.where(Y == UNOBSERVED, expit(features), Y)
    others = tags.sum(axis=1, keepdims=True) - tags
    counts = np.stack([np.clip(1 - np.abs(others - number), 0, 1) for number in range(_COUNTS)])
    # Most rows have few of many tags, and the products are faster with sparse ones.
    few = np.count_nonzero(tags) < _DENSE * tags.size
    return Evidence(sparse.csr_array(tags) if few else tags, counts)


class ContextModel(NamedTuple):
    """One logistic model per label, whose inputs are log-odds and the other tags of the row.

    Attributes
    ----------
    slope, intercept : ndarray of shape (n_labels,)
        Factor of the log-odds from the features, and constant.
    coupling : ndarray of shape (n_labels, n_labels)
        How much tag k (row of the array) speaks for tag j (column). The diagonal is 0.
    by_count : ndarray of shape (3, n_labels)
        What it adds that the row has no, one or two other tags.
    """

    slope: FloatArray
    intercept: FloatArray
    coupling: FloatArray
    by_count: FloatArray

    def log_odds(self, features: FloatArray, evidence: Evidence) -> FloatArray:
        """Return the log-odds of each tag, from log-odds of the features and the other tags."""
        found = self.slope * features + self.intercept + evidence.tags @ self.coupling
        return np.asarray(found + np.einsum("rj,rij->ij", self.by_count, evidence.counts))


def fit_context(
    features: FloatArray,
    Y: LabelArray,
    evidence: Evidence,
    penalty: float,
    start: ContextModel | None = None,
) -> ContextModel:
    r"""Fit the model of each tag given the others.

    With :math:`z_{ij}` the log-odds of tag j in row i from the features, the known tags
    :math:`t_{ik}` and :math:`y_{ij}` in -1/+1, the slopes a, intercepts b, couplings W (zero
    diagonal) and counts c minimise

    .. math:: \sum_{ij\,\text{known}}\log(1+e^{-y_{ij}m_{ij}})
        +\tfrac\lambda2\bigl(\|W\|_F^2+\|c\|_F^2\bigr)+\tfrac12\sum_j(a_j-1)^2,\qquad
        m_{ij}=a_jz_{ij}+b_j+\sum_{k\ne j}t_{ik}W_{kj}+\sum_{r<3}c_{rj}[n_{ij}=r] ,

    where :math:`n_{ij}` is the number of other tags of the row. The problem is convex and separates
    over the labels; all of them are solved together.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_labels)
        Log-odds from the features.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells (-1) have no loss.
    evidence : Evidence
        The tags t and their counts.
    penalty : float
        The strength :math:`\lambda`, > 0.
    start : ContextModel, optional
        Where to begin, for example the solution for another strength.

    Returns
    -------
    ContextModel
        The models.
    """
    n_labels = Y.shape[1]
    sign = np.where(Y > 0, 1.0, -1.0)
    known = None if (Y != UNOBSERVED).all() else (Y != UNOBSERVED).astype(np.float64)
    off_diagonal = 1.0 - np.eye(n_labels)

    def objective(at: FloatArray) -> tuple[float, FloatArray]:
        model = _unpacked(at / root, n_labels)
        margin = sign * model.log_odds(features, evidence)
        loss = np.logaddexp(0, -margin)
        g = -sign * expit(-margin)
        if known is not None:
            loss, g = loss * known, g * known
        away = model.slope - 1
        value = loss.sum() + (away**2).sum() / 2
        value += penalty / 2 * ((model.coupling**2).sum() + (model.by_count**2).sum())
        coupling = (evidence.tags.T @ g + penalty * model.coupling) * off_diagonal
        count = np.einsum("rij,ij->rj", evidence.counts, g)
        gradient = ContextModel(
            (g * features).sum(axis=0) + away,
            g.sum(axis=0),
            coupling,
            count + penalty * model.by_count,
        )
        return float(value), _packed(gradient) / root

    if start is None:
        zero = np.zeros(n_labels)
        start = ContextModel(
            np.ones(n_labels), zero, np.zeros((n_labels, n_labels)), np.zeros((_COUNTS, n_labels))
        )
    root = np.sqrt(_packed(_curvature(start, features, evidence, known, penalty)))
    found = minimize(
        objective,
        root * _packed(start),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _MAX_ITER, "ftol": 1e-7},
    )
    return _unpacked(found.x / root, n_labels)


def _curvature(
    model: ContextModel,
    features: FloatArray,
    evidence: Evidence,
    known: FloatArray | None,
    penalty: float,
) -> ContextModel:
    """Return about the diagonal of the second derivative, which makes the variables comparable.

    At least 1 or the penalty, so that a label without tags does no harm.
    """
    p = expit(model.log_odds(features, evidence))
    weight = p * (1 - p) if known is None else known * p * (1 - p)
    return ContextModel(
        (weight * features**2).sum(axis=0) + 1,
        weight.sum(axis=0) + 1,
        evidence.tags.T @ weight + penalty,
        np.einsum("rij,ij->rj", evidence.counts, weight) + penalty,
    )


def context_log_odds(
    features: FloatArray, Y: LabelArray, folds: Sequence[tuple[IndexArray, IndexArray]]
) -> FloatArray:
    """Return the log-odds of each tag given the features and the other tags of its row.

    Every row is scored by a model of the other folds. The strength of the penalty is the one with
    the smallest log loss of unseen rows; weaker ones are tried until it rises. If no strength
    lowers the loss of the features alone, the other tags are not used.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_labels)
        Log-odds from the features, by models that did not see the row.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells are -1, and their probability from the features replaces them.
    folds : sequence of (train, test)
        Rows to fit and rows to score. Each row is scored once.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The log-odds.
    """
    best, least = features, _log_loss(features, Y)
    if Y.shape[1] == 1:
        return best
    evidence = tag_evidence(features, Y)
    models: list[ContextModel | None] = [None] * len(folds)
    for penalty in _PENALTIES:
        found = np.empty(Y.shape)
        for number, (train, test) in enumerate(folds):
            seen, unseen = evidence.of_rows(train), evidence.of_rows(test)
            model = fit_context(features[train], Y[train], seen, penalty, models[number])
            found[test] = model.log_odds(features[test], unseen)
            models[number] = model
        loss = _log_loss(found, Y)
        if loss > least * (1 - _GAIN) and penalty != _PENALTIES[0]:
            break
        if loss < least:
            best, least = found, loss
    return best


def _log_loss(log_odds: FloatArray, Y: LabelArray) -> float:
    known = Y != UNOBSERVED
    margin = np.where(Y > 0, 1.0, -1.0) * log_odds
    return float(np.logaddexp(0, -margin)[known].mean())


def _packed(model: ContextModel) -> FloatArray:
    return np.concatenate([part.ravel() for part in model])


def _unpacked(values: FloatArray, n_labels: int) -> ContextModel:
    ends = np.cumsum([n_labels, n_labels, n_labels**2])
    slope, intercept, coupling, count = np.split(values, ends)
    return ContextModel(
        slope, intercept, coupling.reshape(n_labels, n_labels), count.reshape(_COUNTS, n_labels)
    )


# The share of the given tags that count as missing in the comparison.
_HIDDEN = 0.05
# The mean must find this much more than the context alone; less may be an accident.
_MISSING_GAIN = 0.05


def missing_log_odds(in_context: FloatArray, alone: FloatArray, Y: LabelArray) -> FloatArray:
    """Return the log-odds that order the tags that are not given, the most likely ones first.

    No model has seen the cell that it scores. So a missing tag gets the log-odds of a given one,
    and the given tags show how well missing ones are found: a twentieth of their weight is hidden
    among the cells without the tag, and the average precision tells how many of them come first.
    The mean of both log-odds takes the place of the context if it finds at least 5 % more. This
    looks only at the highest log-odds, which the log loss that chose the models hardly sees. A
    linear model often orders them better than kernels and forests, which cannot be surer than
    their nearest rows.

    Parameters
    ----------
    in_context : ndarray of shape (n_samples, n_labels)
        Log-odds from the features and the other tags of the row.
    alone : ndarray of shape (n_samples, n_labels)
        Log-odds from the features alone, by a model that did not see the row: the logistic
        regressions of the blend, or the probabilities that the user brings.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells are -1.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The log-odds, also in the other cells.
    """
    known = Y != UNOBSERVED
    given = Y[known] == 1
    if given.all() or not given.any():
        return in_context
    weight = np.where(given, _HIDDEN, 1.0)

    def found(log_odds: FloatArray) -> float:
        return float(average_precision_score(given, log_odds[known], sample_weight=weight))

    mean = (in_context + alone) / 2
    return mean if found(mean) > (1 + _MISSING_GAIN) * found(in_context) else in_context
