"""Kernels of the estimators, and how a fitted model is stored and evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import normalize

from lemll._types import (
    Array,
    Estimator,
    Features,
    FloatArray,
    KernelLike,
    MatrixLike,
    SettingsView,
)
from lemll._validation import (
    check_finite,
    check_memory,
    check_number,
    check_settings,
    check_whole,
    is_sparse,
    warn_gap,
    warn_rounded_kernel,
)
from lemll.solvers import kernel_bytes
from lemll.solvers.equation9 import CentredKernel

# 1 / 25! is smaller than the rounding error of extended precision, so more terms have no effect.
SERIES_TERMS = 25


def radial(rows: Features, others: Features, centre: Array | None, *, gamma: float) -> Array:
    """Return ``exp(-gamma |x - x'|^2)`` of every row with every other."""
    rows, others = _about(rows, centre), _about(others, centre)
    if rows.dtype != np.longdouble:
        return np.asarray(rbf_kernel(rows, others, gamma=gamma))
    # scikit-learn would round extended precision to float64.
    squares = _squares(rows)[:, None] + _squares(others) - 2 * _products(rows, others)
    return np.asarray(np.exp(-gamma * np.maximum(squares, 0)))


def polynomial(
    rows: Features,
    others: Features,
    centre: Array | None,
    *,
    gamma: float,
    coef0: float,
    degree: int,
) -> Array:
    """Return ``(gamma <x, x'> + coef0)^degree`` with the origin moved to `centre`, if given.

    Let ``z = x - m``, ``s = gamma <m, m> + coef0``, ``a = gamma <m, z>`` and
    ``q = gamma <z, z'>``. The base of the power is ``s + a + a' + q``. Moving the origin cancels
    the constant part and the linear parts in ``a`` and ``a'``. The linear part in ``q`` remains,
    together with the curved parts, which `_curved` computes without cancellation.
    """
    rows, others = _about(rows, centre), _about(others, centre)
    q = gamma * _products(rows, others)
    base = rows.dtype.type(coef0)
    if centre is None:
        # Sparse rows keep their origin, so m = 0 and the linear parts in a and a' vanish.
        return np.asarray(degree * base ** (degree - 1) * q + _curved(q, base, degree))
    m = centre.astype(rows.dtype)
    base += gamma * (m @ m)
    a, b = gamma * (rows @ m), gamma * (others @ m)
    values = _curved(q + a[:, None] + b, base, degree)
    values -= _curved(a, base, degree)[:, None]
    values -= _curved(b, base, degree)
    values += degree * base ** (degree - 1) * q
    return values


def _curved(t: Array, base: Any, degree: int) -> Array:
    """Return ``(base + t)^degree - base^degree - degree base^(degree-1) t``.

    For small t, the subtraction would lose digits, so a series is used that starts with t^2. For
    other t, the subtraction does not lose digits.
    """
    small = np.abs(t) <= abs(base) / degree
    curved = np.empty_like(t)
    if not small.all():
        large = t[~small]
        line = base**degree + degree * base ** (degree - 1) * large
        curved[~small] = (base + large) ** degree - line
    if small.any():
        near = t[small]
        series = np.zeros_like(near)
        # For |t| <= |base| / degree the k-th term falls like 1 / k!, so a few terms are enough.
        # Horner's scheme, from the highest term down.
        for k in range(min(degree, SERIES_TERMS), 1, -1):
            series *= near
            series += comb(degree, k) * base ** (degree - k)
        curved[small] = series * near * near
    return curved


def sigmoid(rows: Features, others: Features, *, gamma: float, coef0: float) -> Array:
    """Return ``tanh(gamma <x, x'> + coef0)`` of every row with every other."""
    return np.asarray(np.tanh(gamma * _products(rows, others) + coef0))


def cosine(rows: Features, others: Features, centre: Array | None) -> Array:
    """Return the products of rows scaled to length 1, minus a mean of such rows if given."""
    return _products(_about(unit_rows(rows), centre), _about(unit_rows(others), centre))


def unit_rows(rows: Features) -> Features:
    """Return rows divided by their lengths; rows of zeros do not change."""
    if is_sparse(rows) and rows.dtype != np.longdouble:
        return normalize(rows)
    lengths = np.sqrt(_squares(rows))
    lengths[lengths == 0] = 1
    return (
        rows.multiply(1 / lengths[:, None]).tocsr() if is_sparse(rows) else rows / lengths[:, None]
    )


def _about(rows: Features, centre: Array | None) -> Features:
    return rows if centre is None else rows - centre


def _products(rows: Features, others: Features) -> Array:
    products = rows @ others.T
    return np.asarray(products.toarray() if is_sparse(products) else products)


def _squares(rows: Features) -> Array:
    squares = rows.multiply(rows).sum(axis=1) if is_sparse(rows) else np.square(rows).sum(axis=1)
    return np.asarray(squares).ravel()


KERNELS = ("linear", "rbf", "poly", "sigmoid", "cosine", "precomputed")
# What `kernel_params` may hold, with its defaults.
KERNEL_SETTINGS: SettingsView = {"gamma": "variance", "degree": 3, "coef0": 1.0}

# Squares of larger values, summed over rows and columns, would overflow in float64.
LARGEST_VALUE = 1e100
# Kernel values are computed in blocks of rows of at most this size.
BLOCK_BYTES = 1 << 25
# To estimate rounding errors, the kernel values of CHECKED_ROWS rows are computed again in extended
# precision. If this needs more than CHECKED_PRODUCTS products, fewer rows are used.
CHECKED_ROWS = 8
CHECKED_PRODUCTS = 20_000_000


# Rows that are not checked may have larger rounding errors than the checked rows.
ROUNDING_MARGIN = 2.0


@dataclass(frozen=True)
class Kernel:
    """A kernel that is not linear, with checked parameters.

    Attributes
    ----------
    name : str
        One of `KERNELS`, or "callable".
    gamma : float
        Factor of the squared distance or of the inner product.
    degree : int
        Degree of "poly".
    coef0 : float
        Added to the inner product in "poly" and "sigmoid".
    function : callable or None
        A function of two arrays of rows, for "callable".
    centre : ndarray of shape (n_features,) or None
        The row m that is the origin for "poly" and "cosine" (`polynomial`, `cosine`), and
        that "rbf" subtracts from all rows. It is the mean of the training rows; for "cosine", of
        the rows scaled to length 1. None for sparse rows, which must stay sparse.
    """

    name: str
    gamma: float
    degree: int
    coef0: float
    function: Callable[[Any, Any], Any] | None = None
    centre: FloatArray | None = field(default=None, compare=False, repr=False)

    @property
    def surely_positive(self) -> bool:
        """Whether the kernel is positive semi-definite for all data, by theory."""
        # A polynomial with coefficients >= 0 of a positive kernel is positive (Schur's theorem).
        return self.name in ("rbf", "cosine") or (self.name == "poly" and self.coef0 >= 0)

    def values(self, rows: Features, others: Features) -> FloatArray:
        """Return the kernel values of all pairs of `rows` and `others`."""
        if self.name == "precomputed":
            # X already holds the kernel values. Its columns belong to the other rows.
            return np.asarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64)
        if self.name == "callable":
            return self._called(rows, others)
        if self.name == "rbf":
            return radial(rows, others, self.centre, gamma=self.gamma)
        if self.name == "cosine":
            return cosine(rows, others, self.centre)
        # Overflow is checked in `of_training`.
        with np.errstate(over="ignore", invalid="ignore"):
            if self.name == "sigmoid":
                return sigmoid(rows, others, gamma=self.gamma, coef0=self.coef0)
            return polynomial(
                rows, others, self.centre, gamma=self.gamma, coef0=self.coef0, degree=self.degree
            )

    def _called(self, rows: Features, others: Features) -> FloatArray:
        assert self.function is not None
        values = self.function(rows, others)
        values = np.asarray(values.toarray() if is_sparse(values) else values)
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"the callable kernel must return real numbers, got dtype {values.dtype}."
            )
        values = values.astype(np.float64, copy=False)
        wanted = (rows.shape[0], others.shape[0])
        if values.shape != wanted:
            raise ValueError(
                f"the callable kernel must return shape {wanted} for {wanted[0]} and {wanted[1]} "
                f"rows, got {values.shape}; it is called with two arrays of rows."
            )
        check_finite(values, name="the callable kernel's result")
        return values

    def of_training(self, X: Features, n_labels: int) -> CentredKernel:
        """Return the centred kernel of the training rows, after checking memory and positivity."""
        n_samples = X.shape[0]
        check_memory(
            kernel_bytes(n_samples, n_labels),
            f"Fitting {n_samples} rows with the {self.name} kernel",
            'fit fewer rows, use kernel="linear", or approximate the kernel: LEMLL has '
            'kernel_params={"approximation": "nystroem"}, and for other learners there is '
            "sklearn.kernel_approximation.Nystroem",
        )
        if self.name == "precomputed" and X.shape[1] != n_samples:
            raise ValueError(
                f"a precomputed kernel must be square, got shape {X.shape}; X[i, j] is the kernel "
                "of training rows i and j."
            )
        K = np.empty((n_samples, n_samples))
        for part in row_parts(n_samples, n_samples):
            K[part] = self.values(X[part], X)
        # np.abs(K) would need the memory of a second kernel matrix.
        largest = max(float(K.max()), -float(K.min()))
        if np.isnan(largest):  # NaN here is the difference of two infinite values
            largest = np.inf
        if largest > LARGEST_VALUE:
            raise ValueError(
                f"the {self.name} kernel reaches {largest:.3g}, but values above "
                f"{LARGEST_VALUE:.0e} lose their digits; scale the features down, or lower gamma "
                "or degree in kernel_params."
            )
        centred = CentredKernel(K, overwrite=True)
        # With a negative eigenvalue the objective is not convex, and no certificate is valid.
        if not self.surely_positive:
            centred.check_positive(rounding=float(np.finfo(X.dtype).eps))
        return centred

    def rounding(self, X: Features, coef: FloatArray, weights: Any = None) -> float:
        """Estimate the error of the outputs from rounding in kernel values and products.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_samples, n_features)
            Training rows.
        coef : ndarray of shape (n_labels, n_samples)
            Coefficients of the samples.
        weights : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            The sum of the squared errors of the outputs over the training rows. It is estimated
            from a few rows whose outputs are also computed in extended precision. A callable
            cannot do that, so its values are compared with its values for reordered rows.
        """
        n_samples = X.shape[0]
        count = max(1, min(CHECKED_ROWS, n_samples, CHECKED_PRODUCTS // max(1, np.prod(X.shape))))
        # Take rows from the whole data set, because neighbouring rows are often similar.
        checked = np.linspace(0, n_samples - 1, count).astype(np.intp)
        values = self.values(X[checked], X)
        exact: Array
        if self.name == "precomputed":
            exact = values.astype(np.longdouble)
        elif self.name == "callable":
            exact = self.values(X[checked[::-1]], X[::-1])[::-1, ::-1].astype(np.longdouble)
        else:
            exact = self.values(X[checked].astype(np.longdouble), X.astype(np.longdouble))
        # Large coefficients of nearly equal rows cancel each other, so the rounding of the
        # products with the coefficients also matters.
        change = np.asarray(values @ coef.T - exact @ coef.T.astype(np.longdouble), np.float64)
        squares = np.square(change).sum(axis=1)
        if weights is not None:
            squares *= np.asarray(weights)[checked]
        return float(squares.mean() * n_samples)


def choose_kernel(
    kernel: KernelLike, params: SettingsView | None, X: Features, sample_weight: MatrixLike = None
) -> Kernel | None:
    """Return the kernel for the parameters of an estimator, or None for the linear kernel.

    Parameters
    ----------
    kernel : str or callable
        The parameter `kernel`.
    params : mapping or None
        The parameter `kernel_params`, with any of gamma, degree and coef0.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Training rows. They determine the width if gamma is "variance".
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows. The solver checks them later.

    Returns
    -------
    Kernel or None
        The kernel.
    """
    settings = check_settings("kernel_params", params, KERNEL_SETTINGS)
    function = kernel if callable(kernel) else None
    if function is None and (not isinstance(kernel, str) or kernel not in KERNELS):
        raise ValueError(
            f"kernel={kernel!r} must be one of {', '.join(map(repr, KERNELS))} or a function of "
            "two arrays of rows."
        )
    if kernel == "linear":
        return None
    gamma = settings["gamma"]
    if isinstance(gamma, str):
        if gamma != "variance":
            raise ValueError(
                f"gamma={gamma!r} in kernel_params must be 'variance' or a number > 0."
            )
        known = kernel == "precomputed" or function is not None
        gamma = 1.0 if known else inverse_variance(X, sample_weight)
    centre = None
    if kernel in ("rbf", "poly", "cosine") and not is_sparse(X):
        rows = unit_rows(X) if kernel == "cosine" else X
        centre = rows.mean(axis=0, dtype=np.float64)
    return Kernel(
        name="callable" if function else str(kernel),
        gamma=check_number("gamma in kernel_params", gamma, above=0),
        degree=check_whole("degree in kernel_params", settings["degree"], least=1),
        coef0=check_number("coef0 in kernel_params", settings["coef0"]),
        function=function,
        centre=centre,
    )


def row_parts(n_rows: int, n_columns: int) -> list[slice]:
    """Divide rows into parts; a part with `n_columns` values per row has at most `BLOCK_BYTES`."""
    step = max(1, BLOCK_BYTES // (8 * n_columns))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def inverse_variance(X: Features, sample_weight: MatrixLike = None) -> float:
    """Return one divided by the sum of the feature variances, or 1 if all features are constant.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Rows.
    sample_weight : array-like of shape (n_samples,), optional
        Their weights.

    Returns
    -------
    float
        The default of `gamma` in ``kernel_params``.
    """
    weights = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, float)
    # The solver reports invalid weights later, with a better message.
    if weights.shape != (X.shape[0],) or not weights.sum() > 0:
        return 1.0
    weights = weights / weights.sum()
    mean = X.T @ weights
    if is_sparse(X):
        # Sum the squared deviations of the stored entries, and add mean^2 for the zero entries.
        of_entries = np.repeat(weights, np.diff(X.indptr))
        off = X.data - mean[X.indices]
        zeros = 1 - np.bincount(X.indices, weights=of_entries, minlength=len(mean))
        total = float(of_entries @ (off * off) + np.maximum(zeros, 0) @ mean**2)
    else:
        total = sum(
            float(weights[part] @ np.square(X[part] - mean).sum(axis=1))
            for part in row_parts(*X.shape)
        )
    return 1.0 / total if total > 0 else 1.0


def settle_optimality(
    name: str,
    kernel: Kernel | None,
    X: Features,
    solution: Any,
    *,
    tol: float,
    scale: str,
    curvature: float = 1.0,
    slope: float = 0.0,
    weights: Any = None,
) -> float:
    """Return the relative gap of a solution with the rounding of the kernel; warn above `tol`.

    The certificate of a solver holds for the rounded kernel matrix that it was given. With exact
    kernel values, the outputs of the training rows change by ``e_i``. To first order, the gap to
    the same dual point is then at most
    ``(sqrt(gap) + sqrt(curvature sum_i |e_i|^2))^2 + slope sum_ij |e_ij|``. The objective F that
    was computed differs from the exact one by at most ``3 sqrt(F sum_i |e_i|^2)``: the loss by
    its gradient, whose square is at most 4 F, and the penalty by half as much.

    Parameters
    ----------
    name : str
        Name of the method, for the warning.
    kernel : Kernel or None
        The kernel. None for the linear kernel, whose certificate is not changed.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Training rows.
    solution : object
        A solution of a solver, with `coef`, `objective`, `optimality`, `n_iter` and `status`.
    tol : float
        The requested gap.
    scale : str
        For the warning: what the user should bring closer to 1 if rounding stopped the solver.
    curvature : float, default=1.0
        Half the largest second derivative of the loss of a row.
    slope : float, default=0.0
        The largest slope of the part of the loss that is not smooth.
    weights : array-like of shape (n_samples,), optional
        Weights of the rows.

    Returns
    -------
    float
        At least `solution.optimality`.
    """
    if not solution.converged:
        warn_gap(name, solution, tol, scale=scale)
    claimed = float(solution.optimality)
    if kernel is None or not np.isfinite(claimed):
        return claimed
    squares = ROUNDING_MARGIN**2 * kernel.rounding(X, solution.coef, weights)
    objective = max(abs(solution.objective), np.finfo(np.float64).tiny)
    gap = (np.sqrt(claimed) + np.sqrt(curvature * squares / objective)) ** 2
    gap += 3 * np.sqrt(squares / objective)
    # By the inequality of Cauchy and Schwarz, the sum of all |e_ij| is at most the root of their
    # number times the sum of their squares. There are as many outputs as coefficients.
    gap += slope * np.sqrt(solution.coef.size * squares) / objective
    if solution.converged and gap > tol:
        warn_rounded_kernel(name, claimed=claimed, optimality=gap, tol=tol)
    return float(gap)


def store_solution(
    estimator: Estimator, kernel: Kernel | None, X: Features, solution: Any, **options: Any
) -> None:
    """Store a model with its certificate; `options` are those of `settle_optimality`."""
    name = type(estimator).__name__
    estimator.optimality_ = settle_optimality(name, kernel, X, solution, **options)
    store_model(estimator, kernel, X, solution.coef, solution.intercept)
    estimator.objective_, estimator.n_iter_ = solution.objective, solution.n_iter


def store_model(
    estimator: Estimator, kernel: Any, X: Features, coef: FloatArray, intercept: FloatArray
) -> None:
    """Store a model in its estimator: the weights, or the coefficients and their rows.

    Parameters
    ----------
    estimator : estimator
        This function sets `intercept_`, and either `coef_` or `dual_coef_`, `X_fit_` and
        `kernel_`.
    kernel : Kernel, FirstOrderKernel or None
        The kernel, or the features that replace it.
    X : ndarray or csr_array of shape (n_samples, n_features)
        The rows with which a new row is compared: training rows or landmarks.
    coef : ndarray of shape (n_labels, n_features) or (n_labels, n_samples)
        Coefficients of the features or of the samples.
    intercept : ndarray of shape (n_labels,)
        b.
    """
    # A second fit with another kernel must not leave attributes of the first one.
    for name in ("coef_", "dual_coef_", "X_fit_", "kernel_"):
        estimator.__dict__.pop(name, None)
    estimator.intercept_ = intercept
    if kernel is None:
        estimator.coef_ = coef
        return
    estimator.dual_coef_ = coef
    estimator.kernel_ = kernel
    if kernel.name != "precomputed":
        # Copy the rows: if the caller changes X later, the model must not change.
        estimator.X_fit_ = X.copy()


def model_outputs(estimator: Estimator, X: Features) -> FloatArray:
    """Return the outputs of the model of a fitted estimator for validated rows.

    Parameters
    ----------
    estimator : estimator
        It has the attributes that `store_model` sets.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        ``Theta x + b``, or ``sum_j a_j k(x_j, x) + b``.
    """
    kernel = getattr(estimator, "kernel_", None)
    if kernel is None:
        return np.asarray(X @ estimator.coef_.T + estimator.intercept_, dtype=np.float64)
    outputs = np.tile(estimator.intercept_, (X.shape[0], 1))
    others = getattr(estimator, "X_fit_", None)
    for part in row_parts(X.shape[0], estimator.dual_coef_.shape[1]):
        outputs[part] += kernel.values(X[part], others) @ estimator.dual_coef_.T
    return outputs
