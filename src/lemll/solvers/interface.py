"""The shared interface of the solvers: checks of arguments, progress reports and solutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from lemll._types import Array, Features, FloatArray, MatrixLike, SparseMatrix
from lemll._validation import check_finite, check_number, check_whole, is_sparse
from lemll.solvers.certificate import DualityGap
from lemll.solvers.equation9 import CentredKernel, LemllPoint

Precision = Literal["float64", "float32"]

# Squares, sums and products of numbers up to this size do not overflow, and those of their inverses
# do not underflow.
LARGEST: dict[Precision, float] = {"float64": 1e100, "float32": 1e12}


Status = Literal["converged", "max_iter", "stalled"]


def check_arrays(X: Features, Y: MatrixLike, W: SparseMatrix) -> tuple[Any, Array, Any]:
    """Return the arrays of Eq. (9) in the form that the solvers need, or raise a ValueError.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_samples, n_features), or CentredKernel
        Features, or their kernel.
    Y : array-like of shape (n_samples, n_labels)
        Logical labels.
    W : array-like or sparse array of shape (n_samples, n_samples)
        Rebuilding weights.

    Returns
    -------
    X : ndarray, sparse array or CentredKernel
        The features. They are not copied.
    Y : ndarray, float64
        The labels. They are copied only if necessary.
    W : sparse array
        The weights. They are not copied if they are sparse.
    """
    X, Y = as_features(X), np.asarray(Y)
    W = W if is_sparse(W) else sparse.csr_array(np.atleast_2d(np.asarray(W)))
    check_real(Y, "Y")
    check_real(W, "W")
    n_samples = X.shape[0]
    if Y.ndim != 2 or Y.shape[0] != n_samples or W.shape != (n_samples, n_samples):
        raise ValueError(
            f"X has {n_samples} rows, so Y must be ({n_samples}, n_labels) and W "
            f"({n_samples}, {n_samples}); got Y {Y.shape} and W {W.shape}."
        )
    check_size(Y, "Y", "float64")
    check_size(W, "W", "float64")
    return X, np.asarray(Y, dtype=np.float64), W


def as_features(X: Features) -> Features:
    """Return features as a 2-D array, sparse array or kernel, or raise a ValueError.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_samples, n_features), or CentredKernel
        Features, or their kernel.

    Returns
    -------
    ndarray, sparse array or CentredKernel
        The features, copied only if necessary.
    """
    if isinstance(X, CentredKernel):
        return X
    X = X if is_sparse(X) else np.asarray(X)
    check_real(X, "X")
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must be 2-D with rows and features, got shape {X.shape}; reshape it.")
    return X


def check_real(array: MatrixLike, name: str) -> None:
    """Refuse complex numbers, strings and objects."""
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold real numbers, got dtype {array.dtype}; convert it first."
        )


def check_size(array: MatrixLike, name: str, precision: Precision) -> None:
    """Refuse NaN, infinity, and numbers whose squares would overflow.

    Parameters
    ----------
    array : ndarray, sparse array or CentredKernel
        The array to check.
    name : str
        Name of the array, for the error message.
    precision : {"float64", "float32"}
        Precision in which it will be squared.
    """
    if isinstance(array, CentredKernel):
        array = array.matrix
    values = array.data if is_sparse(array) else array
    # Two passes need no copy of the array. With NaN the comparison is False, so NaN is also caught.
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest <= LARGEST[precision]:
        return
    check_finite(array, name=name)
    raise ValueError(
        f"{name} holds numbers of size {largest:.3g}, whose squares overflow in {precision}, "
        f"where at most {LARGEST[precision]:.0e} is allowed; divide {name} by its largest "
        "absolute value."
    )


def check_cell_weight(
    cell_weight: MatrixLike, shape: tuple[int, ...], *, every_label: bool = True
) -> Array:
    """Return the weights of the cells of Y in float64, or refuse them.

    Parameters
    ----------
    cell_weight : array-like of shape (n_samples, n_labels)
        The weights.
    shape : tuple of int
        Shape of Y.
    every_label : bool, default=True
        Whether each label needs a positive weight. Otherwise one label with it is enough.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The weights.
    """
    weights = np.asarray(cell_weight, dtype=np.float64)
    if weights.shape != shape:
        raise ValueError(f"cell_weight must have the shape of Y, {shape}; got {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(
            "cell_weight must be finite and not negative, got "
            f"{weights[~(np.isfinite(weights) & (weights >= 0))].flat[0]}; use 0 for cells that "
            "nobody observed."
        )
    empty = np.flatnonzero(~(weights > 0).any(axis=0))
    if len(empty) if every_label else len(empty) == shape[1]:
        raise ValueError(f"label {empty[0]} has no cell with a positive weight; leave it out.")
    return weights


def check_start(U0: Any, Y: Array, *, name: str = "U0") -> Array:
    """Return the initial numerical labels as float64, or raise a ValueError."""
    U = np.asarray(U0, dtype=np.float64)
    if U.shape != Y.shape:
        raise ValueError(f"{name} must have the shape of Y, {Y.shape}; got {U.shape}.")
    check_size(U, name, "float64")
    return U


def check_precision(precision: str) -> None:
    """Refuse a precision that the solver does not know."""
    if precision not in LARGEST:
        raise ValueError(f'precision must be "float64" or "float32", got {precision!r}.')


def check_stopping(*, tol: float, max_iter: int) -> None:
    """Refuse an invalid tolerance or an invalid largest number of iterations.

    Parameters
    ----------
    tol : float
        Must be finite and positive.
    max_iter : int
        Must be a whole number of at least 0.
    """
    check_number("tol", tol, above=0)
    check_whole("max_iter", max_iter, least=0)


def check_weights(
    *, alpha: float, beta: float, gamma: float, epsilon: float, precision: Precision = "float64"
) -> None:
    """Refuse parameters for which Eq. (9) is not strictly convex in U and Theta, or overflows.

    Parameters
    ----------
    alpha, beta, gamma, epsilon : float
        Parameters of Eq. (9).
    precision : {"float64", "float32"}, default="float64"
        Precision in which they will be used.
    """
    largest = LARGEST[precision]
    for name, value in (("alpha", alpha), ("beta", beta), ("gamma", gamma), ("epsilon", epsilon)):
        check_number(name, value, above=0, inclusive=name in ("gamma", "epsilon"))
        if value and not 1 / largest <= value <= largest:
            raise ValueError(
                f"{name}={value} would overflow in {precision}, where weights lie between "
                f"{1 / largest:.0e} and {largest:.0e}; scale X and the weights together."
            )


class Progress(NamedTuple):
    """A progress report of a solver.

    Attributes
    ----------
    iteration : int
        Number of iterations so far.
    objective : float
        Eq. (9) at the current point.
    optimality : float
        The last certified relative gap. Infinity before the first certificate.
    elapsed : float
        Seconds since the solver was called, without the time spent in callbacks.
    """

    iteration: int
    objective: float
    optimality: float
    elapsed: float


Callback = Callable[[Progress], None]


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Part of the results of iterative solvers."""

    status: Status

    @property
    def converged(self) -> bool:
        """Whether the solver met its tolerance."""
        return self.status == "converged"


@dataclass(frozen=True)
class LemllSolution(Solution):
    """A minimiser of Eq. (9) with its certificate.

    Attributes
    ----------
    coef : ndarray of shape (n_labels, n_features)
        ``Theta``. With a kernel: the coefficients of the samples, of shape (n_labels, n_samples).
    intercept : ndarray of shape (n_labels,)
        ``b``.
    numerical_labels : ndarray of shape (n_samples, n_labels)
        ``U``.
    objective : float
        Eq. (9) at the solution, recomputed in float64.
    objective_trace : ndarray of shape (n_iter + 1,)
        Eq. (9) at the start and after each iteration.
    optimality : float
        Certified relative duality gap: ``(objective - min F) / max(objective, zero)`` is at most
        this, where ``zero = 1e-18 min(beta, 1) |Y|_F^2`` is `lemll.objective.smallest_objective`.
        For every objective above `zero` it bounds the relative error, up to rounding.
    n_iter : int
        Number of iterations.
    status : {"converged", "max_iter", "stalled"}
        "stalled" means that rounding errors stopped the descent before the requested gap.
    n_linear_solves : int
        Number of factorised linear systems; 0 if the points of a long path share one decomposition.
    dual_coef : ndarray of shape (n_samples, n_labels) or None
        B of ``Theta' = (X - mean)' B``. Set by the joint solver if n_samples <= n_features.
    half_dual : ndarray of shape (n_samples, n_labels) or None
        ``Z/2`` of the dual point that proves `optimality`. Set by the joint solver. The user can
        check the proof with `lemll.objective.duality_gap`. None if that function finds an equally
        good dual point itself.
    """

    coef: FloatArray
    intercept: FloatArray
    numerical_labels: FloatArray
    objective: float
    objective_trace: FloatArray
    optimality: float
    n_iter: int
    n_linear_solves: int
    dual_coef: FloatArray | None = None
    half_dual: FloatArray | None = None

    @property
    def point(self) -> LemllPoint:
        """The three unknowns of Eq. (9)."""
        return LemllPoint(self.numerical_labels, self.coef, self.intercept)


def solution_at(
    point: LemllPoint,
    certificate: DualityGap,
    trace: list[float],
    status: Status,
    n_linear_solves: int,
) -> LemllSolution:
    """Build a solution from the point ``(U, Theta, b)``, its certificate and its trace."""
    numerical_labels, coef, intercept = point
    return LemllSolution(
        coef=coef,
        intercept=intercept,
        numerical_labels=numerical_labels,
        objective=certificate.objective,
        objective_trace=np.array(trace),
        optimality=certificate.relative,
        n_iter=len(trace) - 1,
        status=status,
        n_linear_solves=n_linear_solves,
    )
