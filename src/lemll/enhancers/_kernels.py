"""Kernels of the estimators: which there are, their matrices, and the outputs of their models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics.pairwise import cosine_similarity, linear_kernel, rbf_kernel

from lemll._kernel import CentredKernel
from lemll._memory import check_memory
from lemll._parameters import check_number, check_whole
from lemll._validation import check_finite, is_sparse
from lemll.solvers import kernel_bytes

__all__ = ["KERNELS", "Kernel", "choose_kernel", "inverse_variance", "model_outputs", "store_model"]

FloatArray = npt.NDArray[np.float64]

KERNELS = ("linear", "rbf", "poly", "sigmoid", "cosine", "precomputed")

# Squares of larger values, summed over rows and columns, would leave the range of float64.
LARGEST_VALUE = 1e100
# Kernel values computed at a time: no block of rows takes more.
BLOCK_BYTES = 1 << 25


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
    """

    name: str
    gamma: float
    degree: int
    coef0: float
    function: Callable[[Any, Any], Any] | None = None

    @property
    def surely_positive(self) -> bool:
        """Whether theory says that the kernel is positive semi-definite."""
        return self.name in ("rbf", "cosine") or (self.name == "poly" and self.coef0 >= 0)

    def values(self, rows: Any, others: Any) -> FloatArray:
        """Return the kernel of every row with every other."""
        if self.name == "precomputed":
            # The columns already are the others.
            return np.asarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64)
        if self.name == "callable":
            return self._called(rows, others)
        if self.name == "rbf":
            if not is_sparse(rows) and not is_sparse(others):
                # Distances do not see a shift of all rows, but products lose digits to it.
                centre = others.mean(axis=0)
                rows, others = rows - centre, others - centre
            return np.asarray(rbf_kernel(rows, others, gamma=self.gamma))
        if self.name == "cosine":
            return np.asarray(cosine_similarity(rows, others))
        inner: FloatArray = self.gamma * linear_kernel(rows, others) + self.coef0
        with np.errstate(over="ignore"):  # looked at in `of_training`
            return inner**self.degree if self.name == "poly" else np.tanh(inner)

    def _called(self, rows: Any, others: Any) -> FloatArray:
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

    def of_training(self, X: Any, n_labels: int) -> CentredKernel:
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
        for part in _parts(n_samples, n_samples):
            K[part] = self.values(X[part], X)
        largest = max(float(K.max()), -float(K.min()))
        if largest > LARGEST_VALUE:
            raise ValueError(
                f"the {self.name} kernel reaches {largest:.3g}, where at most {LARGEST_VALUE:.0e} "
                "can be calculated with; scale the features down, or lower kernel_gamma or degree."
            )
        centred = CentredKernel(K, overwrite=True)
        if not self.surely_positive:
            centred.check_positive(rounding=float(np.finfo(X.dtype).eps))
        return centred


def choose_kernel(estimator: Any, X: Any, sample_weight: Any = None) -> Kernel | None:
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
    return Kernel(
        name="callable" if function else str(name),
        gamma=check_number("kernel_gamma", gamma, above=0),
        degree=check_whole("degree", estimator.degree, least=1),
        coef0=check_number("coef0", estimator.coef0),
        function=function,
    )


def store_model(
    estimator: Any, kernel: Kernel | None, X: Any, coef: FloatArray, intercept: FloatArray
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
        vars(estimator).pop(name, None)
    estimator.intercept_ = intercept
    if kernel is None:
        estimator.coef_ = coef
        return
    estimator.dual_coef_ = coef
    estimator.kernel_ = kernel
    if kernel.name != "precomputed":
        # A copy: what becomes of the caller's rows must not change the model.
        estimator.X_fit_ = X.copy()


def model_outputs(estimator: Any, X: Any) -> FloatArray:
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
    for part in _parts(X.shape[0], estimator.dual_coef_.shape[1]):
        outputs[part] += kernel.values(X[part], others) @ estimator.dual_coef_.T
    return outputs


def _parts(n_rows: int, n_columns: int) -> list[slice]:
    step = max(1, BLOCK_BYTES // (8 * n_columns))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def inverse_variance(X: Any, sample_weight: Any = None) -> float:
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
            for part in _parts(*X.shape)
        )
    return 1.0 / total if total > 0 else 1.0
