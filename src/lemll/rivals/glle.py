"""GLLE: label enhancement by a kernel model with outputs that are smooth on a graph of rows.

Its dense positive definite systems are factorised in float32 and refined in float64. A factor in
float32 takes half the time and half the memory of one in float64. Each step of the refinement
solves for the residual, which is computed in float64, until only rounding errors of float64 are
left. If the system is too ill-conditioned for float32, it is assembled and factorised again in
float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
from scipy import linalg, sparse

from lemll._sparse import lighter
from lemll._types import Array, DType, Features, FloatArray, LabelArray
from lemll._validation import check_memory, check_number, check_whole, is_sparse
from lemll.enhancers.base import BaseEnhancer
from lemll.fitting.scaling import Normalization
from lemll.rivals.distances import (
    check_gamma,
    check_two_rows,
    choose_gamma,
    mean_distance,
    squared_distances,
    upper_distances,
)
from lemll.topology.neighbors import nearest_neighbors

# The refinement stops at the first of these: the backward error is at most this, a step does not
# shrink the residual to this share, or the number of steps is reached.
SMALLEST_ERROR = 2.0**-53
LEAST_SHRINKAGE = 0.25
MOST_STEPS = 20


@dataclass(frozen=True)
class RefinedSolution:
    """The solution of a system.

    Attributes
    ----------
    x : ndarray of shape (n, n_right)
        The solution.
    backward_error : float
        ``|b - A x| / (|A| |x| + |b|)`` in Frobenius norms: x is the exact solution of a system
        that differs from the given one by at most this share, in norm.
    n_iter : int
        Number of refinement steps.
    precision : {"float32", "float64"}
        The precision of the factor.
    """

    x: FloatArray
    backward_error: float
    n_iter: int
    precision: str


def solve_refined(
    assemble: Callable[[DType], Array],
    times: Callable[[FloatArray], FloatArray],
    b: FloatArray,
) -> RefinedSolution:
    r"""Solve :math:`Ax = b` for a symmetric positive definite A.

    Parameters
    ----------
    assemble : callable
        Takes a type of numbers and returns a new array A of this type, which is overwritten.
    times : callable
        Takes x and returns A x, computed in float64.
    b : ndarray of shape (n, n_right)
        The right-hand sides, finite.

    Returns
    -------
    RefinedSolution
        The solution. A factor in float32 is accepted only if the backward error is at most
        :math:`2^{-52}\sqrt n`. In most cases it is below :math:`2^{-53}`.

    Raises
    ------
    LinAlgError
        If A is not positive definite in float64, or if the sum of its squares is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.rivals.glle import solve_refined
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> found = solve_refined(A.astype, A.__matmul__, np.array([[1.0], [0.0]]))
    >>> found.x.ravel(), found.precision
    (array([ 0.6, -0.2]), 'float32')
    """
    try:
        found = _refined(assemble, times, b, np.dtype(np.float32))
    except linalg.LinAlgError:
        found = None
    if found is not None and found.backward_error <= np.sqrt(len(b)) * np.finfo(np.float64).eps:
        return found
    return _refined(assemble, times, b, np.dtype(np.float64))


def _refined(
    assemble: Callable[[DType], Array],
    times: Callable[[FloatArray], FloatArray],
    b: FloatArray,
    dtype: DType,
) -> RefinedSolution:
    """Solve with a factor of a given precision, as far as it shrinks the residual."""
    # The size of entries that are too large for float32 is not finite.
    with np.errstate(over="ignore", invalid="ignore"):
        system = assemble(dtype)
        size = float(linalg.norm(system, check_finite=False))
    if not np.isfinite(size):
        raise linalg.LinAlgError(f"the system is too large for {dtype.name}")
    # The transpose of a symmetric array in C order is an array in Fortran order: no copy.
    factor = linalg.cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
    of_b = float(np.linalg.norm(b))
    x, residual, left = np.zeros(b.shape), b, of_b
    error, n_iter = (1.0, 0) if of_b > 0 else (0.0, 0)
    while error > SMALLEST_ERROR and n_iter < MOST_STEPS:
        # A residual of length 1 fits into the range of float32.
        step = linalg.cho_solve(factor, (residual / left).astype(dtype), check_finite=False)
        trial = x + left * step.astype(np.float64)
        residual = b - times(trial)
        before, left = left, float(np.linalg.norm(residual))
        if not left < before:
            break
        n_iter += 1
        x, error = trial, left / (size * float(np.linalg.norm(trial)) + of_b)
        if left > LEAST_SHRINKAGE * before:
            break
    return RefinedSolution(x, error, n_iter, dtype.name)


# Number of rows or columns per block: large enough for efficient products, small enough for the
# cache.
BLOCK = 128


@dataclass(eq=False, repr=False)
class GLLEEnhancer(BaseEnhancer):
    r"""Recover label distributions by graph Laplacian label enhancement (GLLE).

    In GLLE [1]_, let Y be the logical labels in 0/1 and K the kernel
    :math:`K_{ij}=\exp(-\kappa\|x_i-x_j\|^2)`. Let G be the Laplacian of a graph of near
    rows. Its weights are :math:`A_{ij}=\exp(-\tau\|x_i-x_j\|^2)` if j is one of the nearest
    rows of i, or i is one of the nearest rows of j; otherwise 0. The outputs
    :math:`D = KB + 1b^\top` minimise

    .. math:: \|D-Y\|_F^2 + \lambda\,\mathrm{tr}(D^\top GD) + \eta\,\mathrm{tr}(B^\top KB) .

    Parameters
    ----------
    smoothness : float, default=0.01
        :math:`\lambda`, >= 0.
    n_neighbors : int, default=19
        Number of nearest rows in the graph. If there are fewer rows, all other rows are used. The
        code of the authors uses 20, but it counts the row itself.
    kernel_gamma : "distance" or float, default="distance"
        :math:`\kappa`, > 0. "distance": :math:`1/(2\sigma^2)`, where :math:`\sigma` is the mean
        distance between two training rows.
    graph_gamma : float, default=0.005
        :math:`\tau`, > 0. The default is :math:`1/(2\cdot10^2)`, the width 10 of the authors.
    ridge : float, default=0.1
        :math:`\eta`, > 0. The paper does not have this term. Without it, an invertible K can
        produce any outputs, so the optimum does not depend on the kernel; only the point where the
        iterations stop depends on it. With this term the model is unique, and it can enhance new
        rows.
    standardize : bool, default=True
        Whether to divide the features by their standard deviations first, as the code of the
        authors does.
    normalization : {"softmax", "sigmoid", "sum"}, default="softmax"
        How D becomes a distribution.
    scale : float, default=1.0
        D is multiplied by this before it is normalised, > 0. With "sum" it is an exponent.
    feature_scale : {"none", "standard", "maxabs", "auto"}, default="none"
        Scaling of the columns of X, learned from the training rows. "none" changes nothing, as in
        the paper. "standard" subtracts the mean and divides by the standard deviation; sparse
        features are only divided. "maxabs" divides by the largest absolute value. "auto" is
        "standard", or "maxabs" for sparse features. Learners call it `scale`, but here `scale` is
        the scale of the degrees. It comes before `standardize`.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        D.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.
    dual_coef_ : ndarray of shape (n_samples, n_labels)
        B.
    intercept_ : ndarray of shape (n_labels,)
        b.
    kernel_gamma_ : float
        :math:`\kappa` in use.
    X_fit_ : ndarray or csr_array of shape (n_samples, n_features)
        The scaled training rows. They are needed to enhance new rows.
    feature_scale_ : ndarray of shape (n_features,)
        The divisors of the features.
    scale_ : float
        The scale in use: the parameter, or the value found by `calibrate`.
    scale_interval_ : tuple of float or None
        The confidence interval of the scale, set by `calibrate`. None before that.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels.

    Notes
    -----
    With :math:`S = I + \lambda G` and :math:`B = SC`, the optimum solves one symmetric positive
    definite system: :math:`(SKS + \eta S) C + 1 b^\top = Y`, :math:`1^\top C = 0`.

    References
    ----------
    .. [1] N. Xu, A. Tao and X. Geng, "Label enhancement for label distribution learning",
       International Joint Conference on Artificial Intelligence, 2018.

    Examples
    --------
    >>> from lemll.datasets import make_artificial, binarize_distribution
    >>> from lemll.rivals import GLLEEnhancer
    >>> data = make_artificial(200, random_state=0)
    >>> enhancer = GLLEEnhancer().fit(data.X[:150], binarize_distribution(data.D[:150], 0.5))
    >>> enhancer.enhance(data.X[150:]).shape
    (50, 3)
    """

    smoothness: float = 0.01
    _: KW_ONLY
    n_neighbors: int = 19
    kernel_gamma: str | float = "distance"
    graph_gamma: float = 0.005
    ridge: float = 0.1
    standardize: bool = True
    normalization: Normalization = "softmax"
    feature_scale: str = "none"

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        check_two_rows(X, "GLLE")
        smoothness = check_number("smoothness", self.smoothness, above=0, inclusive=True)
        ridge = check_number("ridge", self.ridge, above=0)
        n_neighbors = check_whole("n_neighbors", self.n_neighbors, least=1)
        graph_gamma = check_gamma("graph_gamma", self.graph_gamma)
        rows = lighter(X)
        self.feature_scale_ = _deviations(rows) if self.standardize else np.ones(X.shape[1])
        self.X_fit_ = self._scaled(rows)
        # Both triangles are equal, so one is computed, and the kernel is copied to the other.
        kernel = _square(len(Y))
        blocks = upper_distances(self.X_fit_, BLOCK, out=kernel)
        self.kernel_gamma_ = choose_gamma(self.kernel_gamma, lambda: mean_distance(blocks))
        S = _smoother(self.X_fit_, kernel, min(n_neighbors, len(Y) - 1), graph_gamma, smoothness)
        _fill_gaussian(kernel, blocks, self.kernel_gamma_)

        def times_system(C: FloatArray) -> FloatArray:
            smooth = S @ C
            return np.asarray(S @ (kernel @ smooth) + ridge * smooth)

        # The constraint 1'C = 0 determines b: solve for Y and for the ones, then combine the two.
        targets = np.column_stack([Y.astype(np.float64), np.ones(len(Y))])
        solved = solve_refined(partial(_system, S, kernel, ridge), times_system, targets).x
        of_labels, of_ones = solved[:, :-1], solved[:, -1:]
        self.intercept_ = of_labels.sum(axis=0) / of_ones.sum()
        self.dual_coef_ = np.asarray(S @ (of_labels - of_ones * self.intercept_))
        return np.asarray(kernel @ self.dual_coef_ + self.intercept_)

    def _model_outputs(self, X: Features) -> FloatArray:
        kernel = squared_distances(self._scaled(lighter(X)), self.X_fit_)
        kernel *= -self.kernel_gamma_
        np.exp(kernel, out=kernel)
        return np.asarray(kernel @ self.dual_coef_ + self.intercept_)

    def _scaled(self, X: Features) -> Features:
        # Do not subtract the mean: distances do not depend on it, and sparse rows stay sparse.
        if is_sparse(X):
            return sparse.csr_array(X @ sparse.diags_array(1 / self.feature_scale_))
        return X / self.feature_scale_


def _square(n_samples: int) -> FloatArray:
    check_memory(
        8 * n_samples**2, f"The kernel of {n_samples} rows", "enhance fewer rows at a time"
    )
    return np.empty((n_samples, n_samples))


def _fill_gaussian(kernel: FloatArray, blocks: Sequence[FloatArray], gamma: float) -> None:
    """Turn the squared distances on and right of the diagonal blocks into the whole kernel."""
    for part in blocks:
        start = len(kernel) - part.shape[1]
        end = start + len(part)
        np.multiply(part, -gamma, out=part)
        np.exp(part, out=part)
        kernel[end:, start:end] = part[:, len(part) :].T


def _system(S: Features, kernel: FloatArray, ridge: float, dtype: DType) -> Array:
    """Return S K S + ridge S in a given precision."""
    smoother = S.astype(dtype)
    system = kernel.astype(dtype)
    # S K in place, by blocks of columns that fit into the cache; then the same for the transpose,
    # because S (S K)' = S K S.
    for matrix in (system, system.T):
        for start in range(0, len(matrix), BLOCK):
            part = slice(start, start + BLOCK)
            matrix[:, part] = smoother @ np.ascontiguousarray(matrix[:, part])
    rows = np.repeat(np.arange(len(kernel)), np.diff(S.indptr))
    system[rows, S.indices] += dtype.type(ridge) * smoother.data
    return system


def _deviations(X: Features) -> FloatArray:
    """Return the standard deviation of each feature, or 1 for a constant feature."""
    if is_sparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        # Sum the squared deviations of the stored entries, and add mean^2 for each zero entry.
        off = np.square(X.data - mean[X.indices])
        squares = np.bincount(X.indices, weights=off, minlength=len(mean))
        zeros = X.shape[0] - np.bincount(X.indices, minlength=len(mean))
        deviations = np.sqrt((squares + zeros * mean**2) / X.shape[0])
    else:
        mean, deviations = X.mean(axis=0), X.std(axis=0)
    # A deviation that is only rounding error must not be scaled up to 1.
    constant = deviations <= 1e-12 * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)
    return np.where(constant, 1.0, deviations)


def _smoother(
    X: Features, squared: FloatArray, n_neighbors: int, gamma: float, smoothness: float
) -> Features:
    """Return I + smoothness (diag(A 1) - A) as CSR, from the upper triangle of `squared`."""
    n_samples = len(squared)
    near = nearest_neighbors(X, n_neighbors).ravel()
    rows = np.repeat(np.arange(n_samples), n_neighbors)
    between = squared[np.minimum(rows, near), np.maximum(rows, near)]
    weights = np.exp(between * -gamma)
    directed = sparse.csr_array((weights, (rows, near)), shape=(n_samples, n_samples))
    # Two rows are connected if at least one of them is a neighbour of the other.
    A = directed.maximum(directed.T)
    degrees = np.asarray(A.sum(axis=1)).ravel()
    return sparse.csr_array(sparse.diags_array(1 + smoothness * degrees) - smoothness * A)
