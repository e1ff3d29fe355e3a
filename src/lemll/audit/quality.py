"""From probabilities to the probability that a cell of the tags is wrong."""

from __future__ import annotations

import numpy as np

from lemll._types import FloatArray, LabelArray
from lemll._validation import UNOBSERVED
from lemll.audit.noise import NoiseRates, prior_odds

__all__ = ["error_probability", "row_quality", "strangeness"]

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
