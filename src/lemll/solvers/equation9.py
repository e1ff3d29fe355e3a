"""The certificate of Eq. (9) for many rows: float64 sums over blocks of rows.

`duality_gap` holds about fourteen arrays of n_samples x n_labels in float64. A search in float32
needs less than that itself. Here only U and (I - W) U exist as a whole in float64; all other terms
are sums over rows, and each block of rows adds its part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, eigh

from lemll._types import Array, Features, FloatArray, MatrixLike, SparseMatrix
from lemll._validation import is_sparse
from lemll.solvers.certificate import (
    DualityGap,
    GapParts,
    Weights,
    row_norms,
    smallest_objective,
    tube_loss,
    weighed,
)
from lemll.topology import ReconstructionOperator

# X is centred in blocks of this size, so that temporary arrays stay small even if X is large.
CERTIFICATE_BLOCK_BYTES = 1 << 25


# Differences between K[i, j] and K[j, i] up to this share of the largest entry are accepted as
# rounding errors.
ASYMMETRY = 1e-8
# Negative eigenvalues up to this share of the largest eigenvalue are accepted as rounding errors.
NEGATIVE_SHARE = 1e-8
# Enough for the size of the largest eigenvalue; it is only used as a scale.
POWER_STEPS = 30


class ShiftedFeatures:
    """Products with the shifted features ``X - 1 shift'``, in float64.

    A shift of the features does not change Eq. (9) if the intercept is adapted. It does change the
    rounding errors: if X is far from the origin, products with X lose digits. Therefore dense
    features are centred. Of sparse features, only columns without zeros are centred, so that the
    other columns stay sparse.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features. They are never changed.
    """

    def __init__(self, X: Features) -> None:
        self._mean: FloatArray = np.asarray(X.mean(axis=0, dtype=np.float64)).reshape(-1)
        self._sparse = is_sparse(X)
        self._matrix, self._shift = X, self._mean
        if self._sparse:
            self._matrix, self._shift = _centre_full_columns(X, self._mean)
        self._shifted = self._sparse
        # Small dense features are shifted once and kept; large ones are shifted block by block.
        if not self._sparse and 8 * X.size <= CERTIFICATE_BLOCK_BYTES:
            self._matrix, self._shifted = X - self._shift, True

    def residuals(self, U: FloatArray, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """Return ``U - X Theta' - 1 b'``.

        The shifted intercept ``b + Theta shift`` is rounded. The result is exact for a slightly
        different ``b``.
        """
        residuals: FloatArray = U - (intercept + coef @ self._shift)
        for rows, block in self._blocks():
            residuals[rows] -= block @ coef.T
        return residuals

    def residuals_of(
        self, rows: slice, U: FloatArray, coef: FloatArray, intercept: FloatArray
    ) -> FloatArray:
        """Return some rows of `residuals`; U holds these rows only."""
        residuals: FloatArray = U - (intercept + coef @ self._shift)
        residuals -= self._rows(rows) @ coef.T
        return residuals

    def correlation_of(self, rows: slice, half_dual: FloatArray) -> FloatArray:
        """Return ``half_dual' X`` of some rows, with shifted X; `half_dual` holds these rows."""
        return np.asarray((self._rows(rows).T @ half_dual).T)

    def without_sums(self, correlation: FloatArray, sums: FloatArray) -> FloatArray:
        """Remove from the sum of `correlation_of` what the rounded column sums contribute."""
        return np.asarray(correlation - np.outer(sums, self._mean - self._shift))

    def _rows(self, rows: slice) -> Features:
        block = self._matrix[rows]
        return block if self._shifted else block - self._shift

    def square(self, coef: FloatArray) -> float:
        """Return ``|Theta|_F^2``."""
        return float(np.vdot(coef, coef))

    def misfit(self, alpha: float, coef: FloatArray, half_dual: FloatArray) -> float:
        """Return ``|alpha Theta' - X' half_dual|_F^2``; columns of `half_dual` sum to zero."""
        # Because of the zero sums, X and the shifted X give the same product.
        return self.square(alpha * coef - self._correlation(half_dual))

    def _correlation(self, half_dual: FloatArray) -> FloatArray:
        """Return ``half_dual' X``."""
        product: FloatArray
        if self._sparse:
            # The column sums are zero only up to rounding. In columns that are not shifted, the
            # mean would multiply this rounding error, so subtract its contribution.
            product = (self._matrix.T @ half_dual).T
            product -= np.outer(half_dual.sum(axis=0), self._mean - self._shift)
            return product
        product = np.zeros((half_dual.shape[1], len(self._mean)))
        for rows, block in self._blocks():
            product += half_dual[rows].T @ block
        return product

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield the shifted features in blocks of rows of limited size."""
        if self._shifted:
            yield slice(None), self._matrix
            return
        step = max(1, CERTIFICATE_BLOCK_BYTES // (8 * len(self._mean)))
        for start in range(0, self._matrix.shape[0], step):
            rows = slice(start, start + step)
            yield rows, self._matrix[rows] - self._shift


def _centre_full_columns(X: Features, mean: FloatArray) -> tuple[Features, FloatArray]:
    """Subtract the mean from the columns that have an entry in every row; also return the shift."""
    # Duplicate entries would be counted twice below and shifted twice, so merge them first.
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    full = np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]
    shift = np.where(full, mean, 0.0)
    if not full.any():
        return X, shift
    pattern = (X.data - shift[X.indices], X.indices, X.indptr)
    return sparse.csr_array(pattern, shape=X.shape), shift


class CentredKernel:
    """A kernel matrix, centred in its feature space, which replaces the features in Eq. (9).

    The model is ``p(x) = sum_j a_j k(x_j, x) + b``. There is one coefficient ``a_j`` per sample and
    label, and ``sum_j a_j = 0``. The penalty ``|Theta|_F^2`` is ``tr A'KA``. The intercept is not
    penalised, so the feature space may be shifted: ``Kc = (I - 11'/n) K (I - 11'/n)`` gives the
    same minimum. With the row means s of K, ``K A = Kc A + 1 (A's)'``.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
        The symmetric kernel matrix. It is not changed unless `overwrite` is True.
    overwrite : bool, default=False
        Whether a float64 K may be centred in place, which saves a copy.

    Attributes
    ----------
    matrix : ndarray of shape (n_samples, n_samples)
        Kc, float64.
    shift : ndarray of shape (n_samples,)
        Row means of K.
    shape : tuple of int
        (n_samples, n_samples): there is one coefficient per sample.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers.equation9 import CentredKernel
    >>> CentredKernel(np.array([[1.0, 0.0], [0.0, 1.0]])).matrix
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """

    def __init__(self, K: Any, *, overwrite: bool = False) -> None:
        K = np.asarray(K)
        if K.ndim != 2 or K.shape[0] != K.shape[1] or not K.size:
            raise ValueError(
                "a kernel matrix must be square, one row and one column for each sample; "
                f"got shape {K.shape}."
            )
        _check_symmetric(K)
        own = np.asarray if overwrite else np.array
        self.matrix: FloatArray = own(K, dtype=np.float64)
        self.shape: tuple[int, int] = (len(K), len(K))
        self.shift: FloatArray = self.matrix.mean(axis=1)
        # K - s 1' - 1 s' + mean(s): the two-sided centring, without n x n temporary arrays.
        self.matrix -= self.shift - self.shift.mean()
        self.matrix -= self.shift[:, None]

    def check_positive(self, *, rounding: float = 0.0) -> None:
        """Refuse a kernel with a negative eigenvalue, because Eq. (9) would not be convex.

        The centred kernel is checked. The constant direction, which the intercept covers, does not
        count.

        Parameters
        ----------
        rounding : float, default=0.0
            Relative rounding error of the values, if they were given in a lower precision.
        """
        # A Cholesky factorisation of K + slack I exists if no eigenvalue is below -slack. It is
        # much cheaper than the eigenvalues, which are computed only for the error message.
        share = max(NEGATIVE_SHARE, len(self.matrix) * rounding)
        slack = share * _largest_eigenvalue(self.matrix)
        shifted = self.matrix.copy()
        shifted.flat[:: len(shifted) + 1] += max(slack, np.finfo(np.float64).tiny)
        try:
            cholesky(shifted.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            smallest = eigh(
                self.matrix, eigvals_only=True, subset_by_index=(0, 0), check_finite=False
            )[0]
            raise ValueError(
                "the kernel must be positive semi-definite, but its smallest eigenvalue (centred) "
                f"is {smallest:.4g}; use another kernel or other parameters of it, or add "
                f"{-smallest:.4g} to the diagonal of a precomputed one."
            ) from None

    def rows(self, kept: npt.NDArray[np.bool_]) -> CentredKernel:
        """Return the kernel of some samples, with the centre of all samples."""
        part = object.__new__(CentredKernel)
        part.matrix = self.matrix[np.ix_(kept, kept)]
        part.shift = self.shift[kept]
        part.shape = (len(part.matrix), len(part.matrix))
        return part

    def residuals(self, U: FloatArray, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """Return ``U - K A - 1 b'`` for coefficients ``coef = A'`` whose rows sum to zero."""
        residuals: FloatArray = U - (intercept + coef @ self.shift)
        residuals -= self.matrix @ coef.T
        return residuals

    def square(self, coef: FloatArray) -> float:
        """Return ``|Theta|_F^2``."""
        return max(0.0, float(np.vdot(coef.T, self.matrix @ coef.T)))

    def misfit(self, alpha: float, coef: FloatArray, half_dual: FloatArray) -> float:
        """Return ``|alpha Theta' - Xc' half_dual|_F^2``."""
        # Theta' = Xc' A, so the difference is Xc' (alpha A - half_dual): again a kernel expansion.
        return self.square(alpha * coef - half_dual.T)


def _check_symmetric(K: Array) -> None:
    if K.dtype.kind not in "biuf":
        raise ValueError(f"a kernel matrix must hold real numbers, got dtype {K.dtype}.")
    largest = max(abs(float(K.max())), abs(float(K.min())))
    if not np.isfinite(largest):
        raise ValueError(
            "a kernel matrix must not contain NaN or infinity; check the rows that it was computed "
            "from."
        )
    step = max(1, CERTIFICATE_BLOCK_BYTES // (8 * len(K)))
    for start in range(0, len(K), step):
        difference = np.abs(K[start : start + step] - K[:, start : start + step].T)
        i, j = np.unravel_index(int(difference.argmax()), difference.shape)
        if difference[i, j] > ASYMMETRY * largest:
            raise ValueError(
                f"a kernel matrix must be symmetric, got {K[start + i, j]:.6g} in row {start + i}, "
                f"column {j} and {K[j, start + i]:.6g} the other way round."
            )


def _largest_eigenvalue(matrix: FloatArray) -> float:
    """Estimate the largest eigenvalue in absolute value, by power iteration."""
    # A start vector without a regular pattern is hardly ever orthogonal to the eigenvector. It is
    # not random, so that the result is reproducible.
    vector = np.cos(np.arange(1, len(matrix) + 1) ** 2.0)
    length = 0.0
    for _ in range(POWER_STEPS):
        vector /= max(float(np.linalg.norm(vector)), np.finfo(np.float64).tiny)
        vector = matrix @ vector
        length = float(np.linalg.norm(vector))
    return length


class LemllPoint(NamedTuple):
    """The three unknowns of Eq. (9), or the derivatives of Eq. (9) with respect to them.

    Attributes
    ----------
    numerical_labels : ndarray of shape (n_samples, n_labels)
        ``U``.
    coef : ndarray of shape (n_labels, n_features)
        ``Theta``.
    intercept : ndarray of shape (n_labels,)
        ``b``.
    """

    numerical_labels: FloatArray
    coef: FloatArray
    intercept: FloatArray


def objective_value(
    residuals: FloatArray,
    coef_square: float,
    change: FloatArray,
    rebuilt: FloatArray,
    weights: Weights,
    *,
    cell_weight: FloatArray | None = None,
) -> float:
    """Evaluate Eq. (9) from products that are already known.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples, n_labels)
        ``U - X Theta' - 1 b'``.
    coef_square : float
        ``|Theta|_F^2``.
    change : ndarray of shape (n_samples, n_labels)
        ``U - Y``.
    rebuilt : ndarray of shape (n_samples, n_labels)
        ``(I - W) U``.
    weights : Weights
        The weights of Eq. (9) and the radius of its tube.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1.

    Returns
    -------
    float
        The objective.
    """
    alpha, beta, gamma, epsilon = weights
    return (
        float(tube_loss(row_norms(residuals), epsilon).sum())
        + alpha * coef_square
        + beta * float(np.vdot(change, weighed(change, cell_weight)))
        + gamma * _square(rebuilt)
    )


def duality_gap(
    X: Features,
    Y: MatrixLike,
    W: SparseMatrix,
    point: LemllPoint,
    *,
    half_dual: Any = None,
    cell_weight: FloatArray | None = None,
    **weights: float,
) -> DualityGap:
    """Bound the distance of a point to the optimum of Eq. (9), without solving a linear system.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features), or CentredKernel
        Features, or their kernel. With a kernel, the rows of Theta hold one coefficient per sample.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, -1 or +1.
    W : sparse array of shape (n_samples, n_samples) or ReconstructionOperator
        Rebuilding weights. The bound holds for any `W`. It is tightest if its rows sum to one.
    point : LemllPoint
        The point ``(U, Theta, b)``.
    half_dual : ndarray of shape (n_samples, n_labels), optional
        ``Z/2`` of a dual point, for example from a solution. Every dual point gives a valid bound;
        a better dual point gives a tighter bound. By default two dual points are computed from
        `point`, and the better one is used.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1. Each label needs a positive weight.
    **weights : float
        alpha, beta and gamma, the weights of ``|Theta|_F^2``, ``|U - Y|_F^2`` and ``tr(U' M U)``,
        and epsilon, the radius of the tube. `alpha` and `beta` must be positive.

    Returns
    -------
    DualityGap
        Objective, lower bound and certified relative gap.

    See Also
    --------
    lemll.objective.GapParts : the same from products that a solver already has.

    Examples
    --------
    At the optimum the gap is 0. In this example the labels are constant and the optimum is 0.

    >>> import numpy as np
    >>> from scipy import sparse
    >>> from lemll.solvers.equation9 import LemllPoint, duality_gap
    >>> Y = np.ones((2, 1))
    >>> W = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> point = LemllPoint(Y, np.zeros((1, 2)), np.ones(1))
    >>> duality_gap(np.eye(2), Y, W, point, alpha=1.0, beta=1.0, gamma=1.0, epsilon=0.1)
    DualityGap(objective=0.0, lower_bound=0.0, relative=0.0)
    """
    Y, point = _as_float(Y), LemllPoint(*map(_as_float, point))
    U, coef, _ = point
    features, smoothness, change = _centred(X), ReconstructionOperator.of(W), U - Y
    residuals, rebuilt = features.residuals(*point), smoothness.residual(U)
    parameters = Weights(**weights)
    alpha, beta, gamma, _ = parameters
    objective = objective_value(
        residuals, features.square(coef), change, rebuilt, parameters, cell_weight=cell_weight
    )
    gradient = beta * weighed(change, cell_weight) + gamma * smoothness.adjoint(rebuilt)
    parts = GapParts(residuals, gradient, parameters, cell_weight)
    if half_dual is None:
        duals = [parts.from_tube(), parts.from_labels()]
    else:
        duals = [parts.feasible(_as_float(half_dual))]
    gap = min(parts.gap(dual, features.misfit(alpha, coef, dual)) for dual in duals)
    # The floor avoids 0 / 0 if the optimum is exactly 0.
    scale = max(objective, smallest_objective(Y, beta))
    return DualityGap(objective, objective - gap, gap / scale)


def _centred(X: Features) -> CentredKernel | ShiftedFeatures:
    return X if isinstance(X, CentredKernel) else ShiftedFeatures(X)


def _square(array: FloatArray) -> float:
    return float(np.vdot(array, array))


def _as_float(array: MatrixLike) -> FloatArray:
    return np.asarray(array, dtype=np.float64)


# Above this size of one float64 array of n_samples x n_labels, the certificate goes by blocks.
LARGE_LABEL_BYTES = 1 << 25

# Size of one float64 array of a block of rows and all labels.
BLOCK_BYTES = 1 << 25


class Data(NamedTuple):
    """The data of Eq. (9), checked."""

    X: Features
    Y: Array
    M: ReconstructionOperator
    cell_weight: Array | None

    def proven_gap(
        self, point: LemllPoint, weights: Weights, half_dual: Array | None
    ) -> DualityGap:
        """Return the certificate of `duality_gap`, for large problems with less memory."""
        X, Y, M, cell_weight = self
        plain = cell_weight is None and not isinstance(X, CentredKernel)
        if plain and half_dual is not None and 8 * Y.size > LARGE_LABEL_BYTES:
            return duality_gap_by_blocks(X, Y, M, point, weights, half_dual=half_dual)
        return duality_gap(
            X, Y, M, point, half_dual=half_dual, cell_weight=cell_weight, **weights._asdict()
        )


def duality_gap_by_blocks(
    X: Features,
    Y: Array,
    M: ReconstructionOperator,
    point: LemllPoint,
    weights: Weights,
    *,
    half_dual: Array,
) -> DualityGap:
    """Return the same certificate as `duality_gap` for a given dual point, with less memory.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, -1/+1.
    M : ReconstructionOperator
        M of the weights W, in float64.
    point : LemllPoint
        The point ``(U, Theta, b)``.
    weights : Weights
        The weights of Eq. (9) and the radius of its tube.
    half_dual : ndarray of shape (n_samples, n_labels)
        ``Z/2`` of a dual point. Its columns are centred here.

    Returns
    -------
    DualityGap
        Objective, lower bound and certified relative gap.
    """
    coef = np.asarray(point.coef, dtype=np.float64)
    U = np.asarray(point.numerical_labels, dtype=np.float64)
    rebuilt = M.residual(U)
    mean = half_dual.mean(axis=0, dtype=np.float64)
    alpha, beta, gamma, _ = weights
    features = ShiftedFeatures(X)
    correlation, sums = np.zeros(coef.shape), np.zeros(len(coef))
    objective = alpha * features.square(coef)
    gap = 0.0
    step = max(1, BLOCK_BYTES // (8 * U.shape[1]))
    for start in range(0, len(U), step):
        rows = slice(start, min(start + step, len(U)))
        residuals = features.residuals_of(rows, U[rows], coef, point.intercept)
        change = U[rows] - Y[rows]
        objective += objective_value(residuals, 0.0, change, rebuilt[rows], weights)
        gradient = beta * change + gamma * M.adjoint_rows(rows, rebuilt)
        dual: FloatArray = half_dual[rows] - mean
        gap += GapParts(residuals, gradient, weights).gap(dual, 0.0)
        correlation += features.correlation_of(rows, dual)
        sums += dual.sum(axis=0)
    difference = alpha * coef - features.without_sums(correlation, sums)
    gap += float(np.vdot(difference, difference)) / alpha
    scale = max(objective, smallest_objective(Y, beta))
    return DualityGap(objective, objective - gap, gap / scale)
