"""Smooth labels over a graph of the rows, with a weight per cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lemll._types import Features, FloatArray
from lemll._validation import check_number
from lemll.solvers.interface import check_stopping

__all__ = ["SmoothingSolution", "solve_smoothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothingSolution:
    """The smoothed labels.

    Attributes
    ----------
    labels : ndarray of shape (n_samples, n_labels)
        F.
    gradient_norm : float
        Length of the gradient of each label, divided by its length at F = 0; the largest of them.
        It is computed for `labels`, not carried along.
    n_iter : int
        Number of steps of conjugate gradients.
    """

    labels: FloatArray
    gradient_norm: float
    n_iter: int


def solve_smoothing(
    graph: Features,
    target: FloatArray,
    weight: FloatArray,
    *,
    smoothness: float = 1.0,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> SmoothingSolution:
    r"""Minimise the distance from given labels plus the roughness on a graph.

    It minimises, for each label j,

    .. math::
        \sum_iw_{ij}(F_{ij}-t_{ij})^2+\frac\mu2\sum_{ik}A_{ik}(F_{ij}-F_{kj})^2

    by conjugate gradients, for all labels together. The system of each label has its own diagonal.

    Parameters
    ----------
    graph : csr_array of shape (n_samples, n_samples)
        A, symmetric and not negative.
    target : ndarray of shape (n_samples, n_labels)
        t.
    weight : ndarray of shape (n_samples, n_labels)
        w, > 0.
    smoothness : float, default=1.0
        :math:`\mu\ge0`.
    tol : float, default=1e-6
        The solver stops when the gradients of all labels have at most this relative length.
    max_iter : int, default=1000
        Largest number of steps.

    Returns
    -------
    SmoothingSolution
        The minimiser. Its entries lie between the smallest and the largest target of the label.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from lemll.solvers import solve_smoothing
    >>> chain = sparse.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    >>> target, weight = np.array([[0.0], [0.0], [1.0]]), np.array([[1.0], [1e-9], [1.0]])
    >>> solve_smoothing(chain, target, weight).labels.ravel().round(3)
    array([0.25, 0.5 , 0.75])
    """
    check_stopping(tol=tol, max_iter=max_iter)
    mu = check_number("smoothness", smoothness, above=0, inclusive=True)
    if not (weight > 0).all():
        raise ValueError(f"weight must be above 0 in every cell, got {weight.min():g}.")
    degree = np.asarray(graph.sum(axis=1)).ravel()
    laplacian = mu * (sparse.diags_array(degree) - graph).tocsr()
    # The diagonal is a good preconditioner: the weights of the cells differ much, and the rest of
    # the matrix has rows of similar size.
    inverse = 1 / (weight + mu * degree[:, None])
    right = weight * target
    length = np.sqrt(_inner(right, right))
    length[length == 0] = 1
    # Start at the mean of each label. It has no roughness, and it is the solution in parts of the
    # graph that only a tiny weight ties to their targets; from 0 they would not be reached, because
    # their share of the gradient is below the tolerance.
    F = np.tile(right.sum(axis=0) / weight.sum(axis=0), (len(right), 1))
    residual = right - weight * F
    step = inverse * residual
    along = _inner(residual, step)
    for n_iter in range(max_iter + 1):
        if _relative_norm(residual, length) <= tol or n_iter == max_iter:
            break
        image = weight * step + laplacian @ step
        bend = _inner(step, image)
        # A label that is solved exactly has no direction left.
        size = np.divide(along, bend, out=np.zeros_like(bend), where=bend > 0)
        F += size * step
        residual -= size * image
        scaled = inverse * residual
        fresh = _inner(residual, scaled)
        step *= np.divide(fresh, along, out=np.zeros_like(along), where=along > 0)
        step += scaled
        along = fresh
    # The exact minimiser is a mean of the targets; only rounding leaves their range.
    F = np.clip(F, target.min(axis=0, initial=np.inf), target.max(axis=0, initial=-np.inf))
    residual = right - weight * F - laplacian @ F
    return SmoothingSolution(
        labels=F, gradient_norm=_relative_norm(residual, length), n_iter=n_iter
    )


def _relative_norm(residual: FloatArray, length: FloatArray) -> float:
    return float((np.sqrt(_inner(residual, residual)) / length).max(initial=0))


def _inner(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", first, second))
