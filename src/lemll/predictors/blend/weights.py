"""Weights of the members of a blend, from their out-of-fold log-odds."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from lemll._types import FloatArray, LabelArray

__all__ = ["BlendLoss", "blend_weights"]

BlendLoss = Literal["log", "ranking"]

# Strength of the pull to equal weights, in rows. It matters only if there are few rows.
_SHRINKAGE = 3.0
# More pairs of labels do not change the weights; rows are drawn until there are about this many.
_PAIRS = 2_000_000


class _Terms(NamedTuple):
    """The loss as a sum of weighted terms log(1 + exp(-d'w)), with d per member."""

    differences: FloatArray
    share: FloatArray


def blend_weights(
    members: FloatArray, Y: LabelArray, weight: FloatArray | None, loss: BlendLoss
) -> FloatArray:
    r"""Choose how much each member counts.

    With :math:`z_m` the log-odds of member m, the weights w minimise

    .. math:: \sum_i\ell_i\Bigl(\sum_m w_mz_{m}\Bigr)+\tfrac\rho2\sum_m(w_m-1/M)^2,\qquad w\ge 0 ,

    where the loss of row i is the mean over its observed labels of the logistic loss ("log"), or
    the mean over its pairs of a relevant label and another one of
    :math:`\log(1+e^{-(z_p-z_q)})` ("ranking"). Both are convex.

    Parameters
    ----------
    members : ndarray of shape (n_members, n_samples, n_labels)
        Log-odds of rows that were not used to fit the members.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells (-1) have the weight 0.
    weight : ndarray of shape (n_samples, n_labels) or None
        The weights of the cells; None means 1.
    loss : {"log", "ranking"}
        The loss.

    Returns
    -------
    ndarray of shape (n_members,)
        Not negative. The sum is not fixed.
    """
    observed = np.ones(Y.shape) if weight is None else weight
    terms = (_log_terms if loss == "log" else _ranking_terms)(members, Y, observed)
    equal = 1 / len(members)

    def objective(w: FloatArray) -> tuple[float, FloatArray]:
        margin = w @ terms.differences
        value = terms.share @ np.logaddexp(0, -margin) + _SHRINKAGE / 2 * ((w - equal) ** 2).sum()
        slope = -terms.differences @ (terms.share * expit(-margin))
        return float(value), slope + _SHRINKAGE * (w - equal)

    start = np.full(len(members), equal)
    bounds = [(0.0, None)] * len(members)
    return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x)


def _log_terms(members: FloatArray, Y: LabelArray, observed: FloatArray) -> _Terms:
    sign = np.where(Y > 0, 1.0, -1.0)
    per_row = observed.sum(axis=1, keepdims=True)
    # Rows without any observed label have no loss.
    share = np.divide(observed, per_row, out=np.zeros_like(observed), where=per_row > 0)
    return _Terms((sign * members).reshape(len(members), -1), share.ravel())


def _ranking_terms(members: FloatArray, Y: LabelArray, observed: FloatArray) -> _Terms:
    differences, shares, n_pairs = [], [], 0
    order = np.random.RandomState(0).permutation(len(Y))
    for i in order:
        relevant = np.flatnonzero((Y[i] > 0) & (observed[i] > 0))
        others = np.flatnonzero((Y[i] == 0) & (observed[i] > 0))
        if not len(relevant) or not len(others):
            continue
        row = members[:, i]
        pair = row[:, relevant, None] - row[:, None, others]
        sure = np.outer(observed[i, relevant], observed[i, others])
        differences.append(pair.reshape(len(members), -1))
        shares.append((sure / sure.size).ravel())
        n_pairs += sure.size
        if n_pairs > _PAIRS:
            break
    if not differences:
        return _Terms(np.zeros((len(members), 0)), np.zeros(0))
    return _Terms(np.concatenate(differences, axis=1), np.concatenate(shares))
