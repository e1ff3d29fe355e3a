"""The probability of a tag given the features and the other tags of the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from lemll._types import Features, FloatArray, IndexArray, LabelArray
from lemll._validation import UNOBSERVED

__all__ = ["ContextModel", "Evidence", "context_log_odds", "fit_context", "tag_evidence"]

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
