"""Kernels of the estimators, and models in their estimators: what is kept, what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lemll._types import Array, Estimator, Features, FloatArray, MatrixLike
from lemll._validation import check_finite, check_memory, check_number, check_whole, is_sparse
from lemll._warnings import warn_gap, warn_rounded_kernel
from lemll.fitting import kernel_values as formulas
from lemll.objective import CentredKernel
from lemll.solvers import kernel_bytes

__all__ = [
    "KERNELS",
    "Kernel",
    "choose_kernel",
    "inverse_variance",
    "model_outputs",
    "row_parts",
    "settle_optimality",
    "store_model",
]

KERNELS = ("linear", "rbf", "poly", "sigmoid", "cosine", "precomputed")

# Squares of larger values, summed over rows and columns, would leave the range of float64.
LARGEST_VALUE = 1e100
# Kernel values computed at a time: no block of rows takes more.
BLOCK_BYTES = 1 << 25
# Rows whose kernel values are calculated once more in extended precision, and the number of
# products beyond which fewer rows must do.
CHECKED_ROWS = 8
CHECKED_PRODUCTS = 20_000_000


# The rows not checked may be rounded worse than those checked.
ROUNDING_MARGIN = 2.0


@dataclass(frozen=True)
class Kernel:
    """A kernel other than the linear one, its parameters checked.

    Attributes
    ----------
    name : str
        One of `KERNELS`, or "callable".
    gamma : float
        Factor on the squared distance or the inner product.
    degree : int
        Of "poly".
    coef0 : float
        Added to the inner product in "poly" and "sigmoid".
    function : callable or None
        Of two arrays of rows.
    centre : ndarray of shape (n_features,) or None
        Row m that "poly" and "cosine" are taken about (`lemll.fitting.kernel_values`), and that
        "rbf" subtracts from all rows; the mean of the training rows, of length 1 for "cosine".
        None for sparse rows, which must stay sparse.
    """

    name: str
    gamma: float
    degree: int
    coef0: float
    function: Callable[[Any, Any], Any] | None = None
    centre: FloatArray | None = field(default=None, compare=False, repr=False)

    @property
    def surely_positive(self) -> bool:
        """Whether theory says that the kernel is positive semi-definite."""
        return self.name in ("rbf", "cosine") or (self.name == "poly" and self.coef0 >= 0)

    def values(self, rows: Features, others: Features) -> FloatArray:
        """Return the kernel of every row with every other."""
        if self.name == "precomputed":
            # The columns already are the others.
            return np.asarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64)
        if self.name == "callable":
            return self._called(rows, others)
        if self.name == "rbf":
            return formulas.radial(rows, others, self.centre, gamma=self.gamma)
        if self.name == "cosine":
            return formulas.cosine(rows, others, self.centre)
        # What overflows is looked at in `of_training`.
        with np.errstate(over="ignore", invalid="ignore"):
            if self.name == "sigmoid":
                return formulas.sigmoid(rows, others, gamma=self.gamma, coef0=self.coef0)
            return formulas.polynomial(
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
        """Return the matrix of the training rows, once it is known to fit and to be positive."""
        n_samples = X.shape[0]
        check_memory(
            kernel_bytes(n_samples, n_labels),
            f"Fitting {n_samples} rows with the {self.name} kernel",
            'fit fewer rows, use kernel="linear", or approximate the kernel by features: '
            "make_pipeline(sklearn.kernel_approximation.Nystroem(...), ...)",
        )
        if self.name == "precomputed" and X.shape[1] != n_samples:
            raise ValueError(
                f"a precomputed kernel must be square, got shape {X.shape}; X[i, j] is the kernel "
                "of training rows i and j."
            )
        K = np.empty((n_samples, n_samples))
        for part in row_parts(n_samples, n_samples):
            K[part] = self.values(X[part], X)
        largest = max(float(K.max()), -float(K.min()))
        if np.isnan(largest):  # a difference of two infinite values
            largest = np.inf
        if largest > LARGEST_VALUE:
            raise ValueError(
                f"the {self.name} kernel reaches {largest:.3g}, where at most {LARGEST_VALUE:.0e} "
                "can be calculated with; scale the features down, or lower kernel_gamma or degree."
            )
        centred = CentredKernel(K, overwrite=True)
        if not self.surely_positive:
            centred.check_positive(rounding=float(np.finfo(X.dtype).eps))
        return centred

    def rounding(self, X: Features, coef: FloatArray, weights: Any = None) -> float:
        """Estimate how far the outputs are moved by rounding, of the kernel's values and products.

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
            The sum over the training rows of the squared change of their outputs, estimated from
            a few rows whose outputs are calculated in extended precision as well. Values of a
            callable are compared with those that it gives for the rows in another order.
        """
        n_samples = X.shape[0]
        count = max(1, min(CHECKED_ROWS, n_samples, CHECKED_PRODUCTS // max(1, np.prod(X.shape))))
        checked = np.linspace(0, n_samples - 1, count).astype(np.intp)
        values = self.values(X[checked], X)
        exact: Array
        if self.name == "precomputed":
            exact = values.astype(np.longdouble)
        elif self.name == "callable":
            exact = self.values(X[checked[::-1]], X[::-1])[::-1, ::-1].astype(np.longdouble)
        else:
            exact = self.values(X[checked].astype(np.longdouble), X.astype(np.longdouble))
        # Large coefficients of nearly equal rows cancel each other: the products are rounded, too.
        change = np.asarray(values @ coef.T - exact @ coef.T.astype(np.longdouble), np.float64)
        squares = np.square(change).sum(axis=1)
        if weights is not None:
            squares *= np.asarray(weights)[checked]
        return float(squares.mean() * n_samples)


def choose_kernel(
    estimator: Estimator, X: Features, sample_weight: MatrixLike = None
) -> Kernel | None:
    """Return the kernel that an estimator's parameters ask for; None for the linear one.

    Parameters
    ----------
    estimator : estimator
        Has kernel, kernel_gamma, degree and coef0.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Training rows, which set the width where it is left to them.
    sample_weight : array-like of shape (n_samples,), optional
        Their weights, of which the solver will say whether they make sense.

    Returns
    -------
    Kernel or None
        The kernel.
    """
    name = estimator.kernel
    function = name if callable(name) else None
    if function is None and (not isinstance(name, str) or name not in KERNELS):
        raise ValueError(
            f"kernel={name!r} must be one of {', '.join(map(repr, KERNELS))} or a function of two "
            "arrays of rows."
        )
    if name == "linear":
        return None
    gamma = estimator.kernel_gamma
    if isinstance(gamma, str):
        if gamma != "variance":
            raise ValueError(f"kernel_gamma={gamma!r} must be 'variance' or a number > 0.")
        gamma = 1.0 if name == "precomputed" or function else inverse_variance(X, sample_weight)
    centre = None
    if name in ("rbf", "poly", "cosine") and not is_sparse(X):
        rows = formulas.unit_rows(X) if name == "cosine" else X
        centre = rows.mean(axis=0, dtype=np.float64)
    return Kernel(
        name="callable" if function else str(name),
        gamma=check_number("kernel_gamma", gamma, above=0),
        degree=check_whole("degree", estimator.degree, least=1),
        coef0=check_number("coef0", estimator.coef0),
        function=function,
        centre=centre,
    )


def row_parts(n_rows: int, n_columns: int) -> list[slice]:
    """Divide rows so that a part with `n_columns` values per row takes at most `BLOCK_BYTES`."""
    step = max(1, BLOCK_BYTES // (8 * n_columns))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def inverse_variance(X: Features, sample_weight: MatrixLike = None) -> float:
    """Return one over the sum of the features' variances; 1 where they do not vary.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Rows.
    sample_weight : array-like of shape (n_samples,), optional
        Their weights.

    Returns
    -------
    float
        The default of ``kernel_gamma``.
    """
    weights = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, float)
    if weights.shape != (X.shape[0],) or not weights.sum() > 0:
        return 1.0
    weights = weights / weights.sum()
    mean = X.T @ weights
    if is_sparse(X):
        # What is stored, about the mean; and the zeros, each of which is a mean away from it.
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
    """Return the relative gap of a solution, rounding of the kernel included; warn above `tol`.

    The certificate of a solver holds for the matrix that it was given. With exact values the
    outputs of the training rows change by ``e_i``. The gap to the same dual point is then at most
    ``(sqrt(gap) + sqrt(curvature sum_i |e_i|^2))^2 + slope sum_ij |e_ij|``, to the first order.

    Parameters
    ----------
    name : str
        Of the method, for the warning.
    kernel : Kernel or None
        The kernel; None for the linear one, whose certificate needs no addition.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Training rows.
    solution : object
        With `coef`, `objective`, `optimality`, `n_iter` and `status`, as the solvers return it.
    tol : float
        The gap that was wanted.
    scale : str
        What to bring closer to 1 where rounding stopped the solver.
    curvature : float, default=1.0
        Half the largest second derivative of the loss of a row.
    slope : float, default=0.0
        How steep the loss is where it has a kink.
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
    gap += slope * np.sqrt(solution.coef.size * squares) / objective
    if solution.converged and gap > tol:
        warn_rounded_kernel(name, claimed=claimed, optimality=gap, tol=tol)
    return float(gap)


def store_model(
    estimator: Estimator,
    kernel: Kernel | None,
    X: Features,
    coef: FloatArray,
    intercept: FloatArray,
) -> None:
    """Keep a model in its estimator: weights, or coefficients with the rows they belong to.

    Parameters
    ----------
    estimator : estimator
        Gets `coef_`, or `dual_coef_`, `X_fit_` and `kernel_`; and `intercept_`.
    kernel : Kernel or None
        The kernel.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Training rows.
    coef : ndarray of shape (n_labels, n_features) or (n_labels, n_samples)
        Of the features or of the samples.
    intercept : ndarray of shape (n_labels,)
        b.
    """
    for name in ("coef_", "dual_coef_", "X_fit_", "kernel_"):
        estimator.__dict__.pop(name, None)
    estimator.intercept_ = intercept
    if kernel is None:
        estimator.coef_ = coef
        return
    estimator.dual_coef_ = coef
    estimator.kernel_ = kernel
    if kernel.name != "precomputed":
        # A copy: what becomes of the caller's rows must not change the model.
        estimator.X_fit_ = X.copy()


def model_outputs(estimator: Estimator, X: Features) -> FloatArray:
    """Return the outputs of a fitted estimator's model for validated rows.

    Parameters
    ----------
    estimator : estimator
        With what `store_model` has put there.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        ``Theta x + b``, or ``sum_j a_j k(x_j, x) + b``.
    """
    kernel: Kernel | None = getattr(estimator, "kernel_", None)
    if kernel is None:
        return np.asarray(X @ estimator.coef_.T + estimator.intercept_, dtype=np.float64)
    outputs = np.tile(estimator.intercept_, (X.shape[0], 1))
    others = getattr(estimator, "X_fit_", None)
    for part in row_parts(X.shape[0], estimator.dual_coef_.shape[1]):
        outputs[part] += kernel.values(X[part], others) @ estimator.dual_coef_.T
    return outputs
