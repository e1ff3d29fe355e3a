r"""How many tags are wrong or missing: rates for the scores, and intervals per label.

The model of the noise: each tag that applies is missing with a rate :math:`\rho_1`, and each tag
that does not apply is given with a rate :math:`\rho_0`. Both may differ between labels, but do not
depend on the row. So in any set of rows that was chosen without looking at the tag, the share
without the tag is at least :math:`\rho_1`, and the share with it is at least :math:`\rho_0`. The
rows that look most or least like the tag give the sharpest bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import beta, chi2

from lemll._types import BoolArray, FloatArray, IndexArray, LabelArray
from lemll._validation import UNOBSERVED

__all__ = ["EVEN_ODDS", "LabelNoise", "NoiseRates", "label_noise", "noise_rates", "prior_odds"]

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
