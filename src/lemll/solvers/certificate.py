"""The tube loss, features as certificates see them, and lower bounds of Eq. (9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, eigh

from lemll._types import Array, Features, FloatArray, MatrixLike
from lemll._validation import is_sparse

# An objective below this share of min(beta, 1) |Y|_F^2 counts as zero.
ZERO_SHARE = 1e-18
# The best point between two dual points is searched on a grid of TRIALS points. Each further round
# refines the grid around the best point.
TRIALS, ROUNDS = 6, 2
TINY = float(np.finfo(np.float64).tiny)


def row_norms(rows: FloatArray) -> FloatArray:
    """Return the Euclidean norm of each row."""
    norms: FloatArray = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


def weighed(cells: FloatArray, cell_weight: FloatArray | None) -> FloatArray:
    """Multiply cells by their weights; None means that all weights are 1."""
    return cells if cell_weight is None else cells * cell_weight


def tube_loss(residual_norms: FloatArray, epsilon: float | FloatArray) -> FloatArray:
    """Return the squared distance to the tube, ``max(0, r - epsilon)^2`` (Eq. 3).

    Parameters
    ----------
    residual_norms : ndarray
        Euclidean norms ``r`` of the rows of residuals.
    epsilon : float or ndarray
        Radius of the tube, or one radius per row.

    Returns
    -------
    ndarray
        The loss of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers.certificate import tube_loss
    >>> tube_loss(np.array([0.25, 0.5, 2.5]), epsilon=0.5)
    array([0., 0., 4.])
    """
    return np.square(np.maximum(residual_norms - epsilon, 0.0))


def tube_weights(residual_norms: FloatArray, epsilon: float | FloatArray) -> FloatArray:
    """Return the weights ``a_i = max(0, r_i - epsilon) / r_i`` of Eq. (14), 0 inside the tube.

    The gradient of the tube loss is ``2 a_i`` times the residual.

    Parameters
    ----------
    residual_norms : ndarray
        Euclidean norms ``r`` of the rows of residuals.
    epsilon : float or ndarray
        Radius of the tube, or one radius per row.

    Returns
    -------
    ndarray
        Weights in [0, 1). With ``epsilon=0`` the weight is 1 for every non-zero residual.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers.certificate import tube_weights
    >>> tube_weights(np.array([0.0, 0.5, 2.0]), epsilon=0.5)
    array([0.  , 0.  , 0.75])
    """
    # The inner `where` avoids a division by zero in rows whose weight is 0 anyway.
    outside = residual_norms > epsilon
    return np.where(outside, 1.0 - epsilon / np.where(outside, residual_norms, 1.0), 0.0)


class Weights(NamedTuple):
    """The parameters of Eq. (9)."""

    alpha: float
    beta: float
    gamma: float
    epsilon: float


class DualityGap(NamedTuple):
    """The proven bounds of the optimum at a point: ``lower_bound <= min F <= objective``.

    Attributes
    ----------
    objective : float
        Eq. (9) at the point.
    lower_bound : float
        The value of the best dual point found.
    relative : float
        ``(objective - lower_bound) / max(objective, smallest_objective(Y, beta))``: a certified
        bound on the relative error of the objective.
    """

    objective: float
    lower_bound: float
    relative: float


def smallest_objective(Y: FloatArray, beta: float) -> float:
    """Return the smallest objective that a relative gap is divided by.

    If the optimum is exactly 0, for example for constant labels, the gap divided by F would be 0/0
    at the optimum and 1 near it. This floor avoids both. It is only slightly larger than the
    objective that rounding of U produces when the optimum is 0, so in all other cases the gap is
    relative to F. The floor becomes smaller with `beta`, because the optimum does: if all labels
    are equal to their mean, the cost is at most ``beta |Y|_F^2``. It does not grow with a large
    `beta`, because the optimum does not grow.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels.
    beta : float
        Weight of ``|U - Y|_F^2``.

    Returns
    -------
    float
        ``1e-18 min(beta, 1) |Y|_F^2``, but always positive, even if all labels are 0.
    """
    return max(ZERO_SHARE * min(beta, 1.0) * float(np.vdot(Y, Y)), TINY)


class GapParts:
    """The gap of Eq. (9) between a point and a dual point, from products that solvers already have.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples, n_labels)
        ``Xi = U - X Theta' - 1 b'``.
    label_gradient : ndarray of shape (n_samples, n_labels)
        ``C = beta c (U - Y) + gamma M U``.
    weights : Weights
        Parameters of Eq. (9). `gamma` is contained in `label_gradient`.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights c of the cells of Y; by default 1. Each label needs a positive weight.

    Notes
    -----
    For any Z (n x l) whose columns sum to zero, the dual value D(Z) is a lower bound of Eq. (9).
    With ``B = beta I + gamma M`` the gap is a sum of three non-negative terms. This form is
    accurate near the optimum, because it does not subtract F and D, which are almost equal there.
    Only the brackets contain differences. Each bracket is exact up to the rounding error of its
    ``L(|xi_i|)``::

        F - D(Z) = sum_i [ L(|xi_i|) + |z_i|^2/4 + epsilon |z_i| - <z_i, xi_i> ]
                   + |alpha Theta' - X'Z/2|_F^2 / alpha
                   + tr E' B^-1 E,                       E = beta Y - Z/2 - B U = -C - Z/2

    No solve with B is needed: M is positive semidefinite, so ``tr E' B^-1 E <= |E|_F^2 / beta``.
    Two choices of Z make this a good bound. The first is the gradient of the tube loss, centred by
    changing only the rows outside the tube; then the first term is small. The second is ``-2 C``,
    centred; then the columns of E are constant. If the rows of W sum to one, M maps constants to
    zero, and the bound is exact.

    With cell weights, B is ``beta diag(c_j) + gamma M`` for label j, which may be singular. A
    second multiplier, of ``(I - W) U``, replaces the inverse: at ``2 gamma (I - W) U`` the last
    term becomes ``sum_ij E_ij^2 / (beta c_ij)`` over the cells with ``c_ij > 0``, and Z is feasible
    only if ``E_ij = 0`` where ``c_ij = 0``, which means ``Z/2 = -C`` there.
    """

    def __init__(
        self,
        residuals: FloatArray,
        label_gradient: FloatArray,
        weights: Weights,
        cell_weight: FloatArray | None = None,
    ) -> None:
        self._residuals, self._label_gradient = residuals, label_gradient
        self._alpha, self._beta, _, self._epsilon = weights
        epsilon = weights.epsilon
        norms = row_norms(residuals)
        self._weights = tube_weights(norms, epsilon)
        self._loss = tube_loss(norms, epsilon)
        self._cell_weight = cell_weight
        if cell_weight is not None:
            self._hidden = cell_weight == 0
            self._inverse_weight = 1 / np.where(self._hidden, 1, cell_weight)

    def feasible(self, half_dual: FloatArray, preferred: FloatArray | None = None) -> FloatArray:
        """Return the nearest dual point of a simple form that fulfils all conditions.

        Parameters
        ----------
        half_dual : ndarray of shape (n_samples, n_labels)
            ``Z/2``.
        preferred : ndarray of shape (n_samples,), optional
            Rows that should carry the correction of the column sums, as weights.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            ``Z/2`` whose columns sum to zero, and which is -C in cells without a weight.
        """
        fixed, shares = self.proposal(half_dual, preferred)
        totals = shares.sum(axis=0)
        if preferred is not None and not (totals > 0).all():
            fixed, shares = self.proposal(half_dual)
            totals = shares.sum(axis=0)
        fixed -= shares * (fixed.sum(axis=0) / totals)
        return fixed

    def proposal(
        self, half_dual: FloatArray, preferred: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return a dual point without its correction, and how to spread the correction.

        The dual point is feasible after `shares` times the sums of its columns, divided by the sums
        of the columns of `shares`, has been subtracted. With rows on several machines, these are
        the sums over all rows.

        Parameters
        ----------
        half_dual, preferred : ndarray
            As in `feasible`.

        Returns
        -------
        fixed : ndarray of shape (n_samples, n_labels)
            A copy of `half_dual`, with -C in cells without a weight.
        shares : ndarray of shape (n_samples, 1) or (n_samples, n_labels)
            The share of each row or cell in the correction.
        """
        # b is not penalised, so a dual point is feasible only if its columns sum to zero.
        rows = np.ones(len(half_dual)) if preferred is None else preferred
        if self._cell_weight is None:
            return half_dual.copy(), rows[:, None].astype(half_dual.dtype)
        fixed: FloatArray = np.where(self._hidden, -self._label_gradient, half_dual)
        # A change in cell (i, j) costs its square divided by c_ij, so spread it in proportion to c.
        return fixed, rows[:, None] * self._cell_weight

    def from_tube(self) -> FloatArray:
        """Return ``Z/2`` from the gradient of the tube loss."""
        # The columns of Z must sum to zero. Distribute the correction over the rows outside the
        # tube, where the first term of the gap is smooth and a small change of z_i costs only its
        # square. Inside it, a change costs in proportion to |z_i|, so these rows stay at zero.
        return self.feasible(self._weights[:, None] * self._residuals, self._weights)

    def tube_proposal(self) -> tuple[FloatArray, FloatArray]:
        """Return the `proposal` of the dual point from the tube loss."""
        return self.proposal(self._weights[:, None] * self._residuals, self._weights)

    def label_proposal(self) -> tuple[FloatArray, FloatArray]:
        """Return the `proposal` of the dual point from the label terms."""
        return self.proposal(-self._label_gradient)

    def from_labels(self) -> FloatArray:
        """Return ``Z/2`` from the gradient of the label terms."""
        return self.feasible(-self._label_gradient)

    def gap(self, half_dual: FloatArray, misfit: float) -> float:
        """Return the sum of the three terms of the gap.

        Parameters
        ----------
        half_dual : ndarray of shape (n_samples, n_labels)
            ``Z/2``. Each column sums to zero.
        misfit : float
            ``|alpha Theta' - X'Z/2|_F^2``.

        Returns
        -------
        float
            An upper bound of ``F - min F``, at least 0.
        """
        lengths = row_norms(half_dual)
        inner = np.einsum("ij,ij->i", half_dual, self._residuals)
        mismatch = self._label_gradient + half_dual
        return self._total(lengths, inner, misfit, self._product(mismatch, mismatch))

    def best_between(
        self, first: FloatArray, second: FloatArray, misfits: tuple[float, float, float]
    ) -> float:
        """Return the share of `second` with the smallest gap between two dual points, roughly.

        Parameters
        ----------
        first, second : ndarray of shape (n_samples, n_labels)
            ``Z/2`` of the two dual points.
        misfits : tuple of float
            ``<F1, F1>``, ``<F1, F2>`` and ``<F2, F2>`` of their ``F = alpha Theta' - X'Z/2``.

        Returns
        -------
        float
            A number in [0, 1].
        """
        line = self.line(first, second)

        def gaps(shares: FloatArray) -> FloatArray:
            return line(shares) + np.asarray(_mixed(misfits, shares)) / self._alpha

        return best_share(gaps)

    def line(self, first: FloatArray, second: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the gaps between two dual points, without the term of the model.

        Parameters
        ----------
        first, second : ndarray of shape (n_samples, n_labels)
            ``Z/2`` of the two dual points.

        Returns
        -------
        callable
            From shares of `second` to the sums of the first and the last term of the gap.
        """
        # Every dual point on the line costs only O(n): all products of the mixture follow from the
        # products of its two ends.
        inner_first, inner_second = (
            np.einsum("ij,ij->i", half_dual, self._residuals) for half_dual in (first, second)
        )
        squares = (
            np.einsum("ij,ij->i", first, first),
            np.einsum("ij,ij->i", first, second),
            np.einsum("ij,ij->i", second, second),
        )
        one, two = self._label_gradient + first, self._label_gradient + second
        mismatches = self._product(one, one), self._product(one, two), self._product(two, two)

        def gaps(shares: FloatArray) -> FloatArray:
            found = [
                self._total(
                    np.sqrt(np.maximum(_mixed(squares, share), 0.0)),
                    (1 - share) * inner_first + share * inner_second,
                    0.0,
                    float(_mixed(mismatches, share)),
                )
                for share in shares
            ]
            return np.array(found)

        return gaps

    def _product(self, one: FloatArray, two: FloatArray) -> float:
        """Return the sum of the products of two mismatches, divided by the weights of the cells."""
        if self._cell_weight is None:
            return float(np.vdot(one, two))
        # Cells without a weight are zero up to rounding, and do not count.
        return float(np.vdot(one, np.where(self._hidden, 0, two * self._inverse_weight)))

    def _total(self, lengths: FloatArray, inner: FloatArray, misfit: float, square: float) -> float:
        # Each bracket is non-negative by the Fenchel inequality; a negative value is rounding.
        fenchel = self._loss + lengths * (lengths + 2 * self._epsilon) - 2 * inner
        tube_part = float(np.maximum(fenchel, 0.0).sum())
        return tube_part + misfit / self._alpha + square / self._beta


def best_share(gaps: Callable[[FloatArray], FloatArray]) -> float:
    """Return the share in [0, 1] with the smallest gap, roughly.

    Parameters
    ----------
    gaps : callable
        From an array of shares to their gaps. It is convex.

    Returns
    -------
    float
        A number in [0, 1].
    """
    low, high = 0.0, 1.0
    for _ in range(ROUNDS):
        shares = np.linspace(low, high, TRIALS)
        # The gap is convex, so the minimum is next to the best trial.
        best = int(np.argmin(gaps(shares)))
        low, high = shares[max(best - 1, 0)], shares[min(best + 1, TRIALS - 1)]
    return float(shares[best])


def _mixed(products: Features, share: float | FloatArray) -> Features:
    """Return the square of ``(1 - share) a + share b`` from the products of a and b."""
    first, both, second = products
    rest = 1 - share
    return rest * rest * first + 2 * rest * share * both + share * share * second


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

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
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
    >>> from lemll.solvers.certificate import CentredKernel
    >>> CentredKernel(np.array([[1.0, 0.0], [0.0, 1.0]])).matrix
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """

    def __init__(self, K: MatrixLike, *, overwrite: bool = False) -> None:
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


# X is centred in blocks of this size, so that temporary arrays stay small even if X is large.
CERTIFICATE_BLOCK_BYTES = 1 << 25
