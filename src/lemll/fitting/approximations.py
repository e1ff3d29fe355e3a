r"""Kernels at scale: explicit features whose inner products approximate a kernel.

Nystroem features use m landmark rows l_j: with :math:`K_{mm} = Q \Lambda Q^\top` they are
:math:`z(x) = \Lambda^{-1/2} Q^\top (k(l_j, x))_j`. With such features Eq. (9) is a linear problem:
its time and memory grow with n, not with n^2.

For the Gaussian kernel of rows with few columns, the landmarks approximate only what is left of the
kernel without its first-order part, which is exact. With the centred rows :math:`z = x - m` and
:math:`e(x) = \exp(-g |z|^2)`, the kernel is :math:`k(x, y) = e(x) e(y) \exp(2g z_x^\top z_y)`. The
first two terms of the series of the last factor are products of d + 1 explicit features,

.. math:: \varphi(x) = e(x) (1, \sqrt{2g}\, z),

and the remainder :math:`r(x, y) = e(x) e(y) (\exp(t) - 1 - t)` with :math:`t = 2g z_x^\top z_y` is
a kernel again, because all terms of its series are. Nystroem features of r next to
:math:`\varphi` give :math:`\hat K = \Phi\Phi^\top + \hat R`, and :math:`K - \hat K = R - \hat R` is
positive semi-definite. The features are orthonormal functions in the space of k:
:math:`\varphi` holds k(m, .) and its derivatives at m. So a model of them is also a model of
the exact kernel, with the same outputs and the same penalty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from lemll._types import Array, Features, FloatArray
from lemll._validation import check_memory, check_whole, is_sparse
from lemll.fitting.kernels import Kernel, row_parts
from lemll.solvers import solver_bytes

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
    approximation: Any,
    n_components: Any,
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


def _n_components(wanted: Any, n_samples: int) -> int:
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
    dtype: np.dtype[Any],
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
    dtype: np.dtype[Any],
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
