"""The linear model inside the joint search, stored as weights or as coefficients of samples.

The classes hide how Theta is stored. The unknowns are the rows of an array V. Its last row is the
intercept b of the centred features. The other rows are Theta' in `FeatureModel`. In `SampleModel`,
which is used for more features than samples, they are the coefficients B of ``Theta' = Xc' B``;
every Theta that the search can reach has this form. With a kernel, Theta is not available, and only
B is used (`KernelModel`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.lapack import get_lapack_funcs

from lemll._types import Array, Features, FloatArray
from lemll._validation import is_sparse
from lemll.solvers.certificate import CentredKernel
from lemll.solvers.equation9 import LemllPoint

# To compute a Gram matrix, sparse features are converted to dense in blocks of this size.
BLOCK_BYTES = 1 << 25
# From this many multiplications on, a Gram matrix takes enough time to prefer float32.
LARGE_GRAM = 10_000_000


class CentredFeatures:
    """``Xt = [X - 1 mean', 1]`` as an operator. Sparse X becomes dense only in limited blocks.

    With centred features, Eq. (9) has the same minimum, the same U and the same Theta. The
    intercept becomes ``b + Theta mean``. Centring has two advantages: a translation of X does not
    change the work of the solver, and the systems for b and Theta are independent.

    With weights w, every row is multiplied by ``sqrt(w_i)``, including its entry in the column of
    ones. The mean is then the weighted mean, so that b and Theta are independent again.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features. They are never changed.
    dtype : dtype
        Precision of the products, float32 or float64.
    weights : ndarray of shape (n_samples,), optional
        Weights of the rows, > 0. By default 1.
    mean : ndarray of shape (n_features,), optional
        What to subtract, if these are only some of the rows; by default the mean of X.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        The mean that was subtracted from X.
    total_weight : float
        Sum of the weights.
    """

    def __init__(
        self,
        X: Features,
        dtype: npt.DTypeLike,
        weights: Array | None = None,
        mean: Array | None = None,
    ) -> None:
        self.n_samples, self.n_features = X.shape
        self.dtype = np.dtype(dtype)
        self.sparse = is_sparse(X)
        self._root: Array | None = None
        if weights is None:
            self.total_weight = float(self.n_samples)
            self.mean = np.asarray(X.mean(axis=0, dtype=np.float64)).reshape(-1)
        else:
            self.total_weight = float(weights.sum())
            self.mean = np.asarray(X.T @ (weights / self.total_weight)).reshape(-1)
            self._root = np.sqrt(weights).astype(self.dtype)
        if mean is not None:
            self.mean = mean
        self._grams: dict[str, Array] = {}
        self._matrix: Features
        # Subtracting the mean would fill a sparse matrix. Keep X sparse and correct each product.
        if self.sparse:
            # Without weights nothing is changed in place, so float32 rows need no copy.
            self._matrix = X.astype(self.dtype, copy=weights is not None).tocsr()
            if self._root is not None:
                self._matrix.data *= np.repeat(self._root, np.diff(self._matrix.indptr))
            self._transposed = self._matrix.T.tocsr()
            self._shift = self.mean.astype(self.dtype)
        else:
            self._matrix = np.empty((self.n_samples, self.n_features + 1), dtype=self.dtype)
            np.subtract(X, self.mean, out=self._matrix[:, :-1], casting="same_kind")
            self._matrix[:, -1] = 1
            if self._root is not None:
                self._matrix *= self._root[:, None]

    def spread(self, row: Array) -> Array:
        """Return this row for every sample, times the root of its weight (or broadcastable)."""
        return row if self._root is None else np.outer(self._root, row)

    def gather(self, A: Array) -> Array:
        """Return the weighted sum of the rows, of shape (n_labels,): the transpose of `spread`."""
        return np.asarray(A.sum(axis=0) if self._root is None else self._root @ A)

    def times(self, V: Array) -> Array:
        """Return ``Xt V``, of shape (n_samples, n_labels); the last row of V is the intercept."""
        if not self.sparse:
            return np.asarray(self._matrix @ V)
        product: Array = self._matrix @ V[:-1]
        product += self.spread(V[-1] - self._shift @ V[:-1])
        return product

    def transposed_times(self, A: Array) -> Array:
        """Return ``Xt' A``, of shape (n_features + 1, n_labels)."""
        if not self.sparse:
            # For a tall X and a narrow A, BLAS computes A' X a third faster than X' A.
            return np.ascontiguousarray((A.T @ self._matrix).T)
        sums = self.gather(A)
        product: Array = np.empty((self.n_features + 1, A.shape[1]), dtype=A.dtype)
        product[:-1] = self._transposed @ A
        product[:-1] -= np.outer(self._shift, sums)
        product[-1] = sums
        return product

    def gram(self, least_shift: float) -> Array:
        """Return ``Xc' Xc``, to which the caller adds at least `least_shift` times I.

        A large Gram matrix is computed in float32 if the rounding error is far below the shift.
        This is accurate enough for a preconditioner, and twice as fast. The result is kept for the
        next call, so the caller must not change it.
        """
        large = self.n_samples * self.n_features**2 >= LARGE_GRAM
        # The rounding error is below 1e-7 of the trace, and the trace is at least the largest
        # eigenvalue. A shift above 1e-5 of it hides this error.
        enough = least_shift > 1e-5 * self._square_norm
        dtype = "float32" if large and enough else "float64"
        if dtype not in self._grams:
            total = np.zeros((self.n_features, self.n_features))
            step = _block_lines(self.n_features) if self.sparse else self.n_samples
            for start in range(0, self.n_samples, step):
                rows = slice(start, start + step)
                total += _gram(self._dense_rows(rows).astype(dtype, copy=False))
            self._grams[dtype] = total
        return self._grams[dtype]

    @cached_property
    def _square_norm(self) -> float:
        """An upper bound of ``|Xc|_F^2``."""
        if self.sparse:
            return float(np.vdot(self._matrix.data, self._matrix.data))
        return float(np.vdot(self._matrix, self._matrix))

    @cached_property
    def gram_diagonal(self) -> Array:
        """The diagonal of `gram`, used if `gram` itself would be too large."""
        if not self.sparse:
            centred = self._matrix[:, :-1]
            return np.asarray(np.einsum("ij,ij->j", centred, centred, dtype=np.float64))
        # Sum the squared deviations of the stored entries, and add mean^2 for each zero entry. The
        # shorter formula sum x^2 - n mean^2 would lose digits.
        columns = self._matrix.indices
        if self._root is None:
            squares = np.square(self._matrix.data - self.mean[columns])
            stored = np.bincount(columns, minlength=self.n_features)
        else:
            root = np.repeat(self._root, np.diff(self._matrix.indptr))
            squares = np.square(self._matrix.data - root * self.mean[columns])
            stored = np.bincount(columns, np.square(root), self.n_features)
        missing = (self.total_weight - stored) * np.square(self.mean)
        return np.asarray(np.bincount(columns, squares, self.n_features) + missing)

    @cached_property
    def kernel(self) -> Array:
        """The matrix ``Xc Xc'`` in float64, of shape (n_samples, n_samples)."""
        if not self.sparse and self.dtype == np.float64:
            centred = self._matrix[:, :-1]
            return np.asarray(centred @ centred.T)
        total = np.zeros((self.n_samples, self.n_samples))
        step = _block_lines(self.n_samples)
        for start in range(0, self.n_features, step):
            total += _gram(self._dense_columns(slice(start, start + step)))
        return total

    def _dense_rows(self, rows: slice) -> Array:
        """Return some rows of ``Xc`` as a dense float64 array."""
        if not self.sparse:
            return np.asarray(self._matrix[rows, :-1], dtype=np.float64)
        block: Array = self._matrix[rows].toarray().astype(np.float64, copy=False)
        block -= self.mean if self._root is None else np.outer(self._root[rows], self.mean)
        return block

    def _dense_columns(self, columns: slice) -> Array:
        """Return some columns of ``Xc`` as the rows of a dense float64 array."""
        if not self.sparse:
            return np.asarray(self._matrix[:, :-1][:, columns].T, dtype=np.float64)
        block: Array = self._transposed[columns].toarray().astype(np.float64, copy=False)
        mean = self.mean[columns, None]
        block -= mean if self._root is None else mean * self._root
        return block


def _block_lines(length: int) -> int:
    """Return how many rows or columns of this length fit into a block."""
    return max(1, BLOCK_BYTES // (8 * length))


def _gram(block: Array) -> Array:
    """Return ``block' block``. As a function, it frees the block right after the product."""
    return np.asarray(block.T @ block)


class KernelFeatures:
    """The counterpart of `CentredFeatures` for features that are known only through a kernel.

    With weights w, every row is multiplied by ``sqrt(w_i)``, including its entry in the column of
    ones. The centre is the weighted mean.

    Parameters
    ----------
    K : CentredKernel
        The kernel. It is never changed.
    dtype : dtype
        Precision of the products, float32 or float64.
    weights : ndarray of shape (n_samples,), optional
        Weights of the rows, > 0. By default 1.

    Attributes
    ----------
    kernel : ndarray of shape (n_samples, n_samples)
        ``Xc Xc'``, float64.
    shift : ndarray of shape (n_samples,)
        Inner products of the samples with the centre, up to a constant.
    total_weight : float
        Sum of the weights.
    """

    def __init__(
        self, K: CentredKernel, dtype: npt.DTypeLike, weights: Array | None = None
    ) -> None:
        self.n_samples = K.shape[0]
        self.dtype = np.dtype(dtype)
        self._root: Array | None = None
        self.kernel, self.shift = K.matrix, K.shift
        self.total_weight = float(self.n_samples)
        if weights is not None:
            self.total_weight = float(weights.sum())
            self._root = np.sqrt(weights)
            # K is centred at the unweighted mean. Move the centre to the weighted mean, by the same
            # formula as in `CentredKernel`, and then multiply rows and columns by sqrt(w).
            mean = K.matrix @ (weights / self.total_weight)
            self.shift = K.shift + mean
            self.kernel = K.matrix - (mean - float(weights @ mean) / self.total_weight)
            self.kernel -= mean[:, None]
            self.kernel *= self._root
            self.kernel *= self._root[:, None]

    def spread(self, row: Array) -> Array:
        """Return this row for every sample, times the root of its weight (or broadcastable)."""
        return row if self._root is None else np.outer(self._root, row)

    def gather(self, A: Array) -> Array:
        """Return the weighted sum of the rows, of shape (n_labels,): the transpose of `spread`."""
        return np.asarray(A.sum(axis=0) if self._root is None else self._root @ A)

    def to_rows(self, coef: Array) -> Array:
        """Convert coefficients of the samples, of shape (n_labels, n_samples), to B."""
        return np.asarray(coef.T if self._root is None else coef.T / self._root[:, None])

    def to_coefficients(self, B: Array) -> Array:
        """Convert B to coefficients of the samples, whose rows sum to zero."""
        root = np.ones(self.n_samples) if self._root is None else self._root
        # The sums are zero only up to rounding, and an uncentred kernel would multiply the error.
        centred = B - np.outer(root, self.gather(B) / self.total_weight)
        return np.ascontiguousarray((centred * root[:, None]).T)


def features_for(
    X: Features, dtype: npt.DTypeLike, weights: Array | None = None
) -> CentredFeatures | KernelFeatures:
    """Return the operator of features or of a kernel.

    Parameters
    ----------
    X : ndarray, sparse array or CentredKernel
        The features or their kernel.
    dtype, weights
        As in `CentredFeatures`.

    Returns
    -------
    CentredFeatures or KernelFeatures
        The operator.
    """
    if isinstance(X, CentredKernel):
        return KernelFeatures(X, dtype, weights)
    return CentredFeatures(X, dtype, weights)


# Largest order of a dense matrix to factorise. A matrix of order 8000 needs half a gigabyte.
MAX_DENSE_ORDER = 8000
# An eigendecomposition serves every alpha, but takes as long as about 19 factorisations (of order
# 900). Products in the basis of its eigenvectors are a little cheaper.
SPECTRUM_PAYS = 16
EPSILON = float(np.finfo(np.float64).eps)


class Model(Protocol):
    """The interface of models in the joint search. An image is ``Xt [Theta'; b']``, n x l."""

    n_rows: int
    # Whether `factorise` uses the whole matrix, and not only its diagonal.
    exact: bool
    confinable: bool
    _systems: _Systems

    @property
    def n_linear_solves(self) -> int:
        """Number of factorisations for each system; 0 if all of them share a decomposition."""
        return int(self.exact and self._systems.spectrum is None)

    def encode(self, start: LemllPoint, dual_coef: Array | None) -> Array:
        """Return the unknowns V of a model from its weights and, if known, its coefficients B."""

    def decode(self, V: Array) -> tuple[Array, Array]:
        """Return ``(Theta, b)`` of V in float64, for the original features."""

    def dual_coef(self, V: Array) -> Array | None:
        """Return B in float64, or None if the model does not store it."""
        return None

    def image(self, V: Array) -> Array:
        """Return the predictions of V for the training rows."""

    def inner(self, V: Array, other: Array, other_image: Array) -> float:
        """Return ``<Theta, Theta_other>``."""

    def misfit(self, alpha: float, V: Array, half_dual: Array) -> float:
        """Return ``|alpha Theta' - Xc' half_dual|_F^2``."""

    def force(self, alpha: float, V: Array, half_dual: Array) -> tuple[Array, Array]:
        """Return ``f = alpha Theta' - Xc' half_dual`` as two arrays with inner product |f|^2."""

    def reconcile(self, alpha: float, force: Array) -> Array | None:
        """Return a change ``Xc R`` of `half_dual` that makes `force` small.

        Let ``S = share Xc'Xc + alpha I`` be the system that was factorised last. With
        ``R = share S^-1 f`` the remaining force is ``alpha / share R``, up to the rounding errors
        of S. Returns None if S was not factorised for this alpha.
        """

    def factorise(self, share: float, alpha: float) -> None:
        """Prepare to solve with ``S = share Xc'Xc + alpha I``."""

    def expect(self, n_systems: int) -> None:
        """Forget earlier systems and prepare for about so many calls of `factorise`.

        If they are many, the matrix is decomposed once.
        """

    def solve(self, alpha: float, V: Array, force: Array) -> tuple[Array, Array, Array]:
        """Solve ``S dTheta' = s``, ``s = alpha Theta' + Xc' force``; leave db zero.

        Returns dV, its image, and the form of s that `force_inner` needs.
        """

    def confine(self, V: Array) -> Array | None:
        """Remove parts that do not change Theta from V, and from all later solutions of `solve`.

        Returns None if there are no such parts, or if they are already removed. `confinable` is
        whether a call can have an effect.
        """
        return None

    def force_inner(self, s: Array, dV: Array, image: Array) -> float:
        """``<s, dTheta'>``, for the image of dV without intercept."""


class FeatureModel(Model):
    """V = [Theta'; b']. Systems have order d, or are diagonal if both d and n are too large."""

    confinable = False

    def __init__(self, features: CentredFeatures) -> None:
        self._features = features
        self.n_rows = features.n_features + 1
        self.exact = min(features.n_samples, features.n_features) <= MAX_DENSE_ORDER
        # Parameters of the system that was factorised last. NaN is equal to no alpha.
        self._share, self._alpha = 1.0, np.nan
        self._systems = _Systems(features.dtype)

    def encode(self, start: LemllPoint, dual_coef: Array | None) -> Array:
        V = np.empty((self.n_rows, len(start.intercept)), dtype=self._features.dtype)
        V[:-1] = start.coef.T
        V[-1] = start.intercept + start.coef @ self._features.mean
        return V

    def decode(self, V: Array) -> tuple[Array, Array]:
        # Always copy: the search continues to change V, and the solution must not change with it.
        # `ascontiguousarray` would not copy if V has one column.
        coef = np.array(V[:-1].T, dtype=np.float64, order="C")
        return coef, V[-1] - coef @ self._features.mean

    def image(self, V: Array) -> Array:
        if not V[:-1].any():  # every search starts with Theta = 0; skip the product
            return _constant_image(self._features, V)
        return self._features.times(V)

    def inner(self, V: Array, other: Array, other_image: Array) -> float:
        return float(np.vdot(V[:-1], other[:-1]))

    def misfit(self, alpha: float, V: Array, half_dual: Array) -> float:
        difference = alpha * V[:-1] - self._features.transposed_times(half_dual)[:-1]
        return float(np.vdot(difference, difference))

    def force(self, alpha: float, V: Array, half_dual: Array) -> tuple[Array, Array]:
        force = alpha * V[:-1] - self._features.transposed_times(half_dual)[:-1]
        return force, force

    def reconcile(self, alpha: float, force: Array) -> Array | None:
        if not self.exact or alpha != self._alpha:
            return None
        R = np.zeros((self.n_rows, force.shape[1]), dtype=force.dtype)
        R[:-1] = self._share * self._systems.solve(force)
        return self._features.times(R)

    def factorise(self, share: float, alpha: float) -> None:
        self._share, self._alpha = share, alpha
        if self.exact:
            self._systems.factorise(partial(self._features.gram, alpha / share), share, alpha)
        else:
            inverse = 1 / (share * self._features.gram_diagonal + alpha)
            self._inverse = inverse.astype(self._features.dtype)[:, None]

    def solve(self, alpha: float, V: Array, force: Array) -> tuple[Array, Array, Array]:
        s = self._features.transposed_times(force)
        s[:-1] += alpha * V[:-1]
        dV = np.zeros_like(s)
        dV[:-1] = self._systems.solve(s[:-1]) if self.exact else self._inverse * s[:-1]
        return dV, self._features.times(dV), s

    def force_inner(self, s: Array, dV: Array, image: Array) -> float:
        return float(np.vdot(s[:-1], dV[:-1]))

    def expect(self, n_systems: int) -> None:
        self._alpha = np.nan
        if self.exact:
            self._systems.expect(n_systems, partial(self._features.gram, 0.0))


class SampleModel(Model):
    """V = [B; b'] with ``Theta' = Xc' B``. Systems have order n; no products with X are needed."""

    exact = True

    def __init__(self, features: CentredFeatures | KernelFeatures) -> None:
        self._features: Features = features
        self.n_rows = features.n_samples + 1
        self._kernel = features.kernel.astype(features.dtype, copy=False)
        # A basis of the coefficients B with ``Xc' B = 0``, computed by `confine`.
        self.confinable = True
        self._unseen: Array | None = None
        # Parameters of the system that was factorised last. NaN is equal to no alpha.
        self._share, self._alpha = 1.0, np.nan
        self._systems = _Systems(features.dtype)

    def encode(self, start: LemllPoint, dual_coef: Array | None) -> Array:
        V = np.zeros((self.n_rows, len(start.intercept)), dtype=self._features.dtype)
        # The intercept of centred features is the output of the model for the mean row.
        V[-1] = start.intercept + start.coef @ self._features.mean
        # B cannot be computed from Theta cheaply. Without B the search starts from Theta = 0.
        if dual_coef is not None:
            V[:-1] = dual_coef
        return V

    def decode(self, V: Array) -> tuple[Array, Array]:
        coef = np.ascontiguousarray(self._features.transposed_times(V[:-1])[:-1].T, np.float64)
        return coef, V[-1] - coef @ self._features.mean

    def dual_coef(self, V: Array) -> Array | None:
        return V[:-1].astype(np.float64)

    def image(self, V: Array) -> Array:
        if not V[:-1].any():
            return _constant_image(self._features, V)
        product: Array = self._kernel @ V[:-1]
        product += self._features.spread(V[-1])
        return product

    def inner(self, V: Array, other: Array, other_image: Array) -> float:
        # <Theta1, Theta2> = <B1, K B2>, and K B2 is the image of V2 without its intercept. So no
        # product with K is needed.
        return float(np.vdot(V[:-1], other_image) - self._features.gather(V[:-1]) @ other[-1])

    def misfit(self, alpha: float, V: Array, half_dual: Array) -> float:
        difference = alpha * V[:-1] - half_dual
        return max(0.0, float(np.vdot(difference, self._kernel @ difference)))

    def force(self, alpha: float, V: Array, half_dual: Array) -> tuple[Array, Array]:
        # f = Xc' (alpha B - half_dual), so |f|^2 is a product with the kernel K. In the basis of
        # its eigenvectors K is diagonal, and the product is cheap.
        coefficients = alpha * V[:-1] - half_dual
        spectrum = self._systems.spectrum
        if spectrum is not None:
            rotated = spectrum.vectors.T @ coefficients
            return rotated, spectrum.values * rotated
        return coefficients, self._kernel @ coefficients

    def reconcile(self, alpha: float, force: Array) -> Array | None:
        if alpha != self._alpha:
            return None
        # Use S^-1 Xc' = Xc' (share K + alpha)^-1. Then share K q = force - alpha q, so the change
        # Xc R = share K q needs no product with K.
        spectrum = self._systems.spectrum
        if spectrum is not None:
            image = spectrum.values * force
            image /= self._share * spectrum.values + alpha
            return np.asarray(spectrum.vectors @ (self._share * image))
        return force - alpha * self._systems.solve(force)

    def factorise(self, share: float, alpha: float) -> None:
        self._share, self._alpha = share, alpha
        self._systems.factorise(lambda: self._features.kernel, share, alpha)

    def solve(self, alpha: float, V: Array, force: Array) -> tuple[Array, Array, Array]:
        # s = Xc' (force + alpha B). Use (share X'X + alpha)^-1 X' = X' (share K + alpha)^-1 to
        # solve a system of order n instead of d.
        right = force + alpha * V[:-1]
        # Xc' maps the mean to zero, but K is singular in this direction, and 1 / alpha would
        # amplify its rounding error. So remove it.
        mean = self._features.gather(right) / self._features.total_weight
        right -= self._features.spread(mean)
        if self._unseen is not None:  # the same holds for every other direction without features
            right -= self._unseen @ (self._unseen.T @ right)
        dV = np.zeros_like(V)
        dV[:-1] = self._systems.solve(right)
        # K dB from the system itself, (share K + alpha) dB = right, without a product with K.
        image = (right - alpha * dV[:-1]) / self._share
        return dV, image, right

    def confine(self, V: Array) -> Array | None:
        if not self.confinable:
            return None
        self.confinable = False
        basis = self._null_basis().astype(self._features.dtype)
        # One direction is always there: the mean, which `solve` removes in any case.
        if basis.shape[1] <= 1:
            return None
        self._unseen = basis
        confined = V.copy()
        confined[:-1] -= basis @ (basis.T @ V[:-1])
        return confined

    def _null_basis(self) -> Array:
        """Return an orthonormal basis of the B that the rounded kernel maps to zero."""
        kernel = self._features.kernel
        # The norm bounds the largest eigenvalue. Eigenvalues below this share of it are rounding
        # errors. `misfit` still uses the whole kernel, so a certificate counts what is lost.
        rounding = len(kernel) * EPSILON * float(np.linalg.norm(kernel))
        if self._systems.spectrum is not None:
            return self._systems.spectrum.below(rounding)
        _, vectors = eigh(kernel, subset_by_value=(-np.inf, rounding), check_finite=False)
        return np.asarray(vectors)

    def force_inner(self, s: Array, dV: Array, image: Array) -> float:
        return float(np.vdot(s, image))

    def expect(self, n_systems: int) -> None:
        self._alpha = np.nan
        # A path adds up solutions, and so their parts that K maps to zero. Products with K turn
        # these into rounding errors of either sign, also in the square of the force, which the
        # certificate needs. In the basis of its eigenvectors no square is negative.
        self._systems.expect(
            SPECTRUM_PAYS if n_systems > 1 else n_systems, lambda: self._features.kernel
        )


class KernelModel(SampleModel):
    """V = [B; b'] for a kernel, where only inner products of the features are known.

    In this class "Theta" means the coefficients of the samples for the original kernel.
    """

    def encode(self, start: LemllPoint, dual_coef: Array | None) -> Array:
        V = np.empty((self.n_rows, len(start.intercept)), dtype=self._features.dtype)
        V[:-1] = self._features.to_rows(start.coef)
        V[-1] = start.intercept + start.coef @ self._features.shift
        return V

    def decode(self, V: Array) -> tuple[Array, Array]:
        coef = self._features.to_coefficients(V[:-1].astype(np.float64))
        return coef, V[-1] - coef @ self._features.shift

    def dual_coef(self, V: Array) -> Array | None:
        return None


def model_for(features: CentredFeatures | KernelFeatures) -> Model:
    """Choose the form of the model that has the smaller systems.

    Parameters
    ----------
    features : CentredFeatures or KernelFeatures
        The features.

    Returns
    -------
    Model
        A `KernelModel` for a kernel. A `SampleModel` if there are not more samples than features
        and the n x n Gram matrix is not too large. Otherwise a `FeatureModel`.
    """
    if isinstance(features, KernelFeatures):
        return KernelModel(features)
    if features.n_samples <= min(features.n_features, MAX_DENSE_ORDER):
        return SampleModel(features)
    return FeatureModel(features)


def _constant_image(features: CentredFeatures, V: Array) -> Array:
    """Return the image of a model with Theta = 0."""
    image = np.empty((features.n_samples, V.shape[1]), dtype=V.dtype)
    image[...] = features.spread(V[-1])
    return image


class Cholesky:
    """The Cholesky factor of one system."""

    def __init__(self, matrix: Array, share: float, alpha: float, dtype: npt.DTypeLike) -> None:
        diagonal = share * matrix.diagonal() + alpha
        jitter = 0.0
        while True:
            system = share * matrix
            system.flat[:: len(system) + 1] = diagonal * (1 + jitter)
            try:
                factor, _ = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
                break
            except LinAlgError:
                # alpha is smaller than the rounding error of the matrix, so the sum is not
                # positive definite. Increase the diagonal until it is: a preconditioner may be
                # inexact.
                jitter = max(10 * jitter, 1e-15)
        self._factor = factor.astype(dtype, copy=False)

    def solve(self, right: Array) -> Array:
        """Solve for all columns of `right`."""
        # A function of LAPACK cannot be pickled, so it is not stored.
        potrs: Any = get_lapack_funcs("potrs", (self._factor,))
        solution, _ = potrs(self._factor, right, lower=True)
        return np.asarray(solution)


class Spectrum:
    """The eigendecomposition of a matrix, which serves all values of share and alpha."""

    def __init__(self, matrix: Array, dtype: npt.DTypeLike) -> None:
        values, vectors = eigh(matrix, check_finite=False)
        # The matrix is positive semi-definite. Negative eigenvalues are rounding errors.
        self._values = np.maximum(values, 0.0)
        self.vectors = vectors.astype(dtype, copy=False)

    @property
    def values(self) -> Array:
        """The eigenvalues, as a column."""
        return np.asarray(self._values.astype(self.vectors.dtype)[:, None])

    def below(self, limit: float) -> Array:
        """Return the eigenvectors of the eigenvalues up to `limit`, as columns."""
        return np.asarray(self.vectors[:, self._values <= limit])

    def system(self, share: float, alpha: float) -> _Diagonalised:
        """Return the system ``share * matrix + alpha I`` for the matrix of this decomposition."""
        inverse = 1 / (share * self._values + alpha)
        return _Diagonalised(self.vectors, inverse.astype(self.vectors.dtype)[:, None])


class _Systems:
    """The systems ``share * matrix + alpha I`` of one matrix, factorised one at a time.

    Attributes
    ----------
    spectrum : Spectrum or None
        The decomposition of the matrix, if many systems are expected.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = dtype
        self.spectrum: Spectrum | None = None
        self._factorised: Cholesky | _Diagonalised | None = None

    def expect(self, n_systems: int, matrix: Callable[[], Array]) -> None:
        """Forget earlier systems, and decompose the matrix if `n_systems` are worth it."""
        self._factorised = None
        # Solutions must not depend on earlier paths, so few systems do not use a known spectrum.
        if n_systems < SPECTRUM_PAYS:
            self.spectrum = None
        elif self.spectrum is None:
            self.spectrum = Spectrum(matrix(), self._dtype)

    def factorise(self, matrix: Callable[[], Array], share: float, alpha: float) -> None:
        """Prepare to solve the system of `share` and `alpha`."""
        self._factorised = None  # so that there is memory for the next factor
        if self.spectrum is None:
            self._factorised = Cholesky(matrix(), share, alpha, self._dtype)
        else:
            self._factorised = self.spectrum.system(share, alpha)

    def solve(self, right: Array) -> Array:
        """Solve the last system for all columns of `right`."""
        assert self._factorised is not None
        return self._factorised.solve(right)


class _Diagonalised:
    def __init__(self, vectors: Array, inverse: Array) -> None:
        self._vectors, self._inverse = vectors, inverse

    def solve(self, right: Array) -> Array:
        rotated = self._vectors.T @ right
        rotated *= self._inverse
        return np.asarray(self._vectors @ rotated)


def solve_definite(hessian: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a system whose matrix is positive definite, except for rounding errors."""
    # A positive diagonal term makes the matrix definite again. The step is then shorter, but it is
    # still a descent direction.
    lift = 0.0
    size = max(float(np.trace(hessian)) / len(hessian), 1e-290)
    while True:
        lifted = hessian + lift * np.eye(len(hessian)) if lift else hessian
        try:
            factor = cho_factor(lifted.T, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            lift = 10 * lift or 1e-14 * size
            continue
        return np.asarray(cho_solve(factor, right, check_finite=False))
