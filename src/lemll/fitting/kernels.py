"""Kernels of the estimators, and features that approximate them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import normalize

from lemll._types import (
    Array,
    DType,
    Features,
    FloatArray,
    MatrixLike,
)
from lemll._validation import (
    check_finite,
    check_memory,
    check_whole,
    is_sparse,
)
from lemll.solvers import kernel_bytes, solver_bytes
from lemll.solvers.certificate import CentredKernel

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


def _curved(t: Array, base: float, degree: int) -> Array:
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

# Squares of larger values, summed over rows and columns, would overflow in float64.
LARGEST_VALUE = 1e100
# Kernel values are computed in blocks of rows of at most this size.
BLOCK_BYTES = 1 << 25
# To estimate rounding errors, the kernel values of CHECKED_ROWS rows are computed again in extended
# precision. If this needs more than CHECKED_PRODUCTS products, fewer rows are used.
CHECKED_ROWS = 8
CHECKED_PRODUCTS = 20_000_000


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

    def rounding(self, X: Features, coef: FloatArray, weights: MatrixLike = None) -> float:
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


# Directions of the landmarks with smaller eigenvalues, relative to the largest one, hold only the
# rounding errors of the kernel.
SMALLEST_EIGENVALUE = 1e-10
# Up to this many rows, the gap to the exact kernel is computed from all kernel values.
MOST_EXACT_GAP_ROWS = 20_000
# The first-order part of the Gaussian kernel has one feature per column, and means of clusters are
# dense rows. Both are used up to this many columns per component, so that `n_components` limits the
# memory.
COLUMNS_PER_COMPONENT = 2
# The usual number of components. 1,000 landmarks lost more than .002 of the average precision on
# one of three data sets (docs/how-to/scale.md), 4,000 on none. Few rows have fewer, because
# with as many landmarks as rows the exact kernel is faster. Above 125,000 rows there are fewer, so
# that the features have at most 5e8 values, but never fewer than 1,000.
MOST_COMPONENTS, FEWEST_COMPONENTS, MOST_VALUES = 4_000, 1_000, 500_000_000
LARGEST_SHARE = 0.75
# Clusters of more rows than this many per mean would hardly change the means.
ROWS_PER_MEAN = 20
# Each step costs about as much as the kernel values of the rows and the means. The first step
# changes the quality most.
STEPS = 3


@dataclass(frozen=True)
class FirstOrderKernel:
    """The first-order features of the Gaussian kernel, and its remainder with landmarks.

    Attributes
    ----------
    gamma : float
        Factor g of the squared distance.
    centre : ndarray of shape (n_features,)
        The mean m of the training rows.
    """

    gamma: float
    centre: FloatArray = field(compare=False, repr=False)
    name: str = "first-order rbf"

    def values(self, rows: Features, landmarks: Features) -> FloatArray:
        """Return phi of the rows, and beside it their remainder kernel with every landmark.

        The shape is (n_rows, 1 + n_features + n_landmarks).
        """
        z, others = self._centred(rows), self._centred(landmarks)
        own, theirs = self._heights(z), self._heights(others)
        count = z.shape[1] + 1
        values = np.empty((len(z), count + len(others)))
        values[:, 0] = own
        np.multiply(z, np.sqrt(2 * self.gamma) * own[:, None], out=values[:, 1:count])
        t = z @ others.T
        t *= 2 * self.gamma
        # The squared distance avoids exp(t), which overflows for rows far from the mean.
        squares = np.square(z).sum(axis=1)[:, None] + np.square(others).sum(axis=1)
        left = np.exp(np.minimum(t - self.gamma * squares, 0.0))
        t += 1.0
        t *= own[:, None]
        t *= theirs
        np.subtract(left, t, out=values[:, count:])
        return values

    def _centred(self, rows: Features) -> FloatArray:
        return _dense_rows(rows) - self.centre

    def _heights(self, z: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-self.gamma * np.square(z).sum(axis=1)))


def cluster_means(X: Features, count: int, generator: np.random.Generator) -> FloatArray:
    """Return the means of clusters of rows, as landmarks that represent all rows.

    Lloyd's algorithm lowers the sum of the squared distances of rows to the nearest mean. It starts
    with randomly chosen rows, and does a few steps on a sample: the landmarks need not be optimal.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Rows.
    count : int
        Number of means, less than n_samples.
    generator : Generator
        Chooses the sample and its first rows as the initial means.

    Returns
    -------
    ndarray of shape (count, n_features)
        The means. A cluster without rows keeps the last one.
    """
    sample = generator.permutation(X.shape[0])[: ROWS_PER_MEAN * count]
    rows = X[sample]
    means = _dense_rows(rows[:count])
    for _ in range(STEPS):
        half_squares = np.square(means).sum(axis=1) / 2
        nearest = np.concatenate(
            [
                np.argmin(half_squares - np.asarray(rows[part] @ means.T), axis=1)
                for part in row_parts(rows.shape[0], count)
            ]
        )
        size = np.bincount(nearest, minlength=count)
        members = sparse.csr_array(
            (1 / size[nearest], (nearest, np.arange(len(nearest)))), shape=(count, len(nearest))
        )
        found = _dense_rows(members @ rows)
        means = np.where(size[:, None] > 0, found, means)
    return means


def _dense_rows(rows: Features) -> FloatArray:
    return np.asarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64)


@dataclass(frozen=True)
class MappedRows:
    """The training rows as explicit features, and how to get from them to a stored model.

    Attributes
    ----------
    kernel : Kernel or FirstOrderKernel
        What a fitted model evaluates for new rows.
    features : ndarray of shape (n_samples, n_components)
        The features of the training rows.
    landmarks : ndarray or csr_array
        The landmark rows.
    transform : ndarray of shape (n_landmarks, n_components)
        Turns kernel values of the landmarks into features.
    exact : Kernel
        The kernel that the features approximate.
    """

    kernel: Kernel | FirstOrderKernel
    features: Array
    landmarks: Features
    transform: FloatArray
    exact: Kernel

    def coefficients(self, coef: FloatArray) -> FloatArray:
        """Return the coefficients of what `kernel` evaluates, of shape (n_labels, n_values)."""
        # The transform belongs to the last features; those before it are values of the kernel.
        first = coef.shape[1] - self.transform.shape[1]
        return np.hstack([coef[:, :first], coef[:, first:] @ self.transform.T])


def approximate(
    kernel: Kernel | None,
    X: Features,
    *,
    approximation: object,
    n_components: object,
    n_labels: int,
    seed: int,
    precision: str,
) -> MappedRows:
    """Map the training rows to features whose products approximate the kernel.

    Parameters
    ----------
    kernel : Kernel or None
        The kernel, None for the linear one.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated rows.
    approximation : {"nystroem"}
        The kind of features.
    n_components : int or "auto"
        Number of landmarks. "auto" is three quarters of the number of rows, at most 4,000, and
        fewer for more than 125,000 rows.
    n_labels : int
        Number of labels that are solved together, for the estimate of the memory.
    seed : int
        Seed of the landmarks.
    precision : {"float64", "float32"}
        Precision of the features.

    Returns
    -------
    MappedRows
        The features.
    """
    if approximation != "nystroem":
        raise ValueError(
            f"approximation={approximation!r} in kernel_params must be None or 'nystroem'."
        )
    n_landmarks = min(_n_components(n_components, X.shape[0]), X.shape[0])
    if kernel is None or kernel.name == "precomputed":
        name = "linear" if kernel is None else kernel.name
        raise ValueError(
            f"approximation={approximation!r} in kernel_params needs a kernel of rows, got "
            f"kernel={name!r}; leave it out, or choose kernel='rbf'."
        )
    dtype = np.dtype(precision)
    # For all rows as landmarks, the first-order part would add nothing.
    split = (
        kernel.name == "rbf"
        and n_landmarks < X.shape[0]
        and X.shape[1] <= COLUMNS_PER_COMPONENT * n_landmarks
    )
    width = n_landmarks + (X.shape[1] + 1 if split else 0)
    # An array of this shape that takes no memory: the estimate uses only its shape.
    shaped = np.broadcast_to(np.zeros((), dtype), (X.shape[0], width))
    check_memory(
        shaped.nbytes + solver_bytes(shaped, n_labels, precision=precision),
        f"Fitting {X.shape[0]} rows, {width} features of a kernel and {n_labels} labels",
        "lower n_components in kernel_params, fit fewer rows, or use "
        "solver_params={'precision': 'float32'}",
    )
    generator = np.random.default_rng(seed)
    return _nystroem(kernel, X, n_landmarks, generator, dtype=dtype, split=split)


def _n_components(wanted: object, n_samples: int) -> int:
    if isinstance(wanted, str) and wanted == "auto":
        most = max(FEWEST_COMPONENTS, min(MOST_COMPONENTS, MOST_VALUES // n_samples))
        return min(most, max(2, int(LARGEST_SHARE * n_samples)))
    if isinstance(wanted, str):
        raise ValueError(
            f"n_components in kernel_params must be 'auto' or a whole number >= 2, got {wanted!r}."
        )
    return check_whole("n_components in kernel_params", wanted, least=2)


def _nystroem(
    kernel: Kernel,
    X: Features,
    n_landmarks: int,
    generator: np.random.Generator,
    *,
    dtype: DType,
    split: bool,
) -> MappedRows:
    """Return the features of landmarks, after those of the first-order part if `split`."""
    evaluated: Kernel | FirstOrderKernel = kernel
    if split:
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        evaluated = FirstOrderKernel(kernel.gamma, mean)
        landmarks: Features = cluster_means(X, n_landmarks, generator)
    else:
        # Means of wide sparse rows would be dense.
        landmarks = X[np.sort(generator.permutation(X.shape[0])[:n_landmarks])]
    own = evaluated.values(landmarks, landmarks)[:, -landmarks.shape[0] :]
    values, vectors = eigh((own + own.T) / 2, check_finite=False)
    if not kernel.surely_positive and values[0] < -1e-8 * max(values[-1], 0.0):
        raise ValueError(
            f"the kernel must be positive semi-definite, but its smallest eigenvalue on "
            f"{len(values)} rows is {values[0]:.4g}; use another kernel or other parameters."
        )
    # The remainder is a difference of values up to 1, so its rounding errors are relative to 1.
    kept = values > SMALLEST_EIGENVALUE * max(values[-1], 1.0 if split else 0.0)
    transform = np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))
    width = transform.shape[1] + (X.shape[1] + 1 if split else 0)
    features = _mapped(evaluated, X, landmarks, transform, width=width, dtype=dtype)
    return MappedRows(evaluated, features, landmarks, transform, kernel)


def _mapped(
    kernel: Kernel | FirstOrderKernel,
    X: Features,
    landmarks: Features,
    transform: FloatArray,
    *,
    width: int,
    dtype: DType,
) -> Array:
    features = np.empty((X.shape[0], width), dtype)
    for part in row_parts(X.shape[0], width):
        values = kernel.values(X[part], landmarks)
        first = width - transform.shape[1]
        features[part, :first] = values[:, :first]
        features[part, first:] = values[:, first:] @ transform
    return features


def kernel_excess(mapped: MappedRows, X: Features, half_dual: FloatArray) -> float:
    r"""Bound :math:`\mathrm{tr}(H^\top (K - \hat K) H)` of the exact kernel K and Nystroem's.

    A model of landmarks is also a model of the exact kernel, with the same outputs and the same
    penalty. Only the lower bound of the dual point H = Z/2 differs between the two problems, by
    this value divided by alpha. :math:`E = K - \hat K` is positive semi-definite.

    Parameters
    ----------
    mapped : MappedRows
        Nystroem features.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Training rows.
    half_dual : ndarray of shape (n_samples, n_labels)
        H. Each column sums to zero.

    Returns
    -------
    float
        The value itself for up to 20,000 rows. For more rows the upper bound
        :math:`(\sum_i \|h_i\| \sqrt{E_{ii}})^2`, which needs only the diagonal.
    """
    if X.shape[0] <= MOST_EXACT_GAP_ROWS:
        exact = sum(
            float(np.vdot(half_dual[part], mapped.exact.values(X[part], X) @ half_dual))
            for part in row_parts(*(X.shape[0],) * 2)
        )
        shared = mapped.features.T @ half_dual
        return max(0.0, exact - float(np.vdot(shared, shared)))
    lengths = np.sqrt(np.einsum("ij,ij->i", half_dual, half_dual))
    total = 0.0
    for part in row_parts(X.shape[0], mapped.features.shape[1]):
        own = _diagonal(mapped.exact, X[part])
        z = np.asarray(mapped.features[part], dtype=np.float64)
        left = np.maximum(own - np.einsum("ij,ij->i", z, z), 0.0)
        total += float(lengths[part] @ np.sqrt(left))
    return total * total


def _diagonal(kernel: Kernel, rows: Features) -> FloatArray:
    if kernel.name == "rbf":
        return np.ones(rows.shape[0])
    parts = [rows[i : i + 64] for i in range(0, rows.shape[0], 64)]
    return np.concatenate([kernel.values(part, part).diagonal() for part in parts])
