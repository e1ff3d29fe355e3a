r"""Kernels at scale: explicit features whose inner products approximate a kernel.

Nystroem features use m landmark rows l_j: with :math:`K_{mm} = Q \Lambda Q^\top` they are
:math:`z(x) = \Lambda^{-1/2} Q^\top (k(l_j, x))_j`. Fourier features approximate the Gaussian kernel
by :math:`\sqrt{2/m}\,(\cos \omega_j^\top x, \sin \omega_j^\top x)` with m/2 random frequencies.
With such features Eq. (9) is a linear problem: its time and memory grow with n, not with n^2.
For the Gaussian kernel of rows with few columns, both approximate only what is left of the kernel
without its low orders, which are exact: Nystroem without the first order
(`lemll.fitting.first_order`), with means of clusters as landmarks, and Fourier features without the
first and the largest part of the second (`lemll.fitting.low_order`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import eigh

from lemll._types import Array, Features, FloatArray
from lemll._validation import check_memory, check_whole
from lemll.fitting.first_order import FirstOrderKernel, cluster_means
from lemll.fitting.kernels import Kernel, row_parts
from lemll.fitting.low_order import LowOrderWaves, fit_low_order_waves, orthogonal_frequencies
from lemll.solvers import solver_bytes

__all__ = ["APPROXIMATIONS", "FourierFeatures", "MappedRows", "approximate", "kernel_excess"]

APPROXIMATIONS = ("nystroem", "fourier")
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
# one of three data sets (docs/scale.md), 4,000 on none. Few rows have fewer, because
# with as many landmarks as rows the exact kernel is faster. Above 125,000 rows there are fewer, so
# that the features have at most 5e8 values, but never fewer than 1,000.
MOST_COMPONENTS, FEWEST_COMPONENTS, MOST_VALUES = 4_000, 1_000, 500_000_000
LARGEST_SHARE = 0.75


@dataclass(frozen=True)
class FourierFeatures:
    """Random Fourier features of the whole Gaussian kernel, in place of it in a fitted model.

    Attributes
    ----------
    frequencies : ndarray of shape (n_features, n_components / 2)
        The frequencies.
    """

    frequencies: FloatArray = field(compare=False, repr=False)
    name: str = "fourier"

    def values(self, rows: Features, others: Features = None) -> FloatArray:
        """Return the features of rows, of shape (n_rows, n_components); `others` is not used."""
        phases = np.asarray(rows @ self.frequencies, dtype=np.float64)
        values = np.hstack([np.cos(phases), np.sin(phases)])
        values /= np.sqrt(self.frequencies.shape[1])
        return values


@dataclass(frozen=True)
class MappedRows:
    """The training rows as explicit features, and how to get from them to a stored model.

    Attributes
    ----------
    kernel : Kernel, FirstOrderKernel, FourierFeatures or LowOrderWaves
        What a fitted model evaluates for new rows.
    features : ndarray of shape (n_samples, n_components)
        The features of the training rows.
    landmarks : ndarray or csr_array, or None
        The landmark rows of Nystroem.
    transform : ndarray of shape (n_landmarks, n_components), or None
        Turns kernel values of the landmarks into features.
    exact : Kernel or None
        The kernel that Nystroem features approximate.
    """

    kernel: Kernel | FirstOrderKernel | FourierFeatures | LowOrderWaves
    features: Array
    landmarks: Features = None
    transform: FloatArray | None = None
    exact: Kernel | None = None

    def coefficients(self, coef: FloatArray) -> FloatArray:
        """Return the coefficients of what `kernel` evaluates, of shape (n_labels, n_values)."""
        if self.transform is None:
            return coef
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
    approximation : {"nystroem", "fourier"}
        The kind of features.
    n_components : int or "auto"
        Number of landmarks, or of waves and features of order 2. "auto" is three quarters of the
        number of rows, at most 4,000, and fewer for more than 125,000 rows.
    n_labels : int
        Number of labels that are solved together, for the estimate of the memory.
    seed : int
        Seed of the landmarks or frequencies.
    precision : {"float64", "float32"}
        Precision of the features.

    Returns
    -------
    MappedRows
        The features.
    """
    if not isinstance(approximation, str) or approximation not in APPROXIMATIONS:
        raise ValueError(f"approximation={approximation!r} must be None, 'nystroem' or 'fourier'.")
    n_components = _n_components(n_components, X.shape[0])
    if kernel is None or kernel.name == "precomputed":
        name = "linear" if kernel is None else kernel.name
        raise ValueError(
            f"approximation={approximation!r} needs a kernel of rows, got kernel={name!r}; leave "
            "approximation=None, or choose kernel='rbf'."
        )
    if approximation == "fourier" and kernel.name != "rbf":
        raise ValueError(
            f"approximation='fourier' needs kernel='rbf', got {kernel.name!r}; use 'nystroem'."
        )
    dtype = np.dtype(precision)
    # For all rows as landmarks, the first-order part would add nothing.
    split = (
        kernel.name == "rbf"
        and (approximation == "fourier" or n_components < X.shape[0])
        and X.shape[1] <= COLUMNS_PER_COMPONENT * n_components
    )
    # There are at most as many landmarks as rows.
    most = X.shape[0] if approximation == "nystroem" else n_components
    width = min(n_components, most) + (X.shape[1] + 1 if split else 0)
    # An array of this shape that takes no memory: the estimate uses only its shape.
    shaped = np.broadcast_to(np.zeros((), dtype), (X.shape[0], width))
    needed = shaped.nbytes + solver_bytes(shaped, n_labels, precision=precision)
    if split and approximation == "fourier":
        # The decomposition of the rows, before the features exist.
        needed = max(needed, 24 * X.shape[1] * min(X.shape))
    check_memory(
        needed,
        f"Fitting {X.shape[0]} rows, {width} features of a kernel and {n_labels} labels",
        "lower n_components, fit fewer rows, or use precision='float32'",
    )
    generator = np.random.default_rng(seed)
    if approximation == "fourier":
        return _fourier(kernel, X, n_components, generator, dtype=dtype, split=split)
    return _nystroem(kernel, X, n_components, generator, dtype=dtype, split=split)


def _n_components(wanted: Any, n_samples: int) -> int:
    if isinstance(wanted, str) and wanted == "auto":
        most = max(FEWEST_COMPONENTS, min(MOST_COMPONENTS, MOST_VALUES // n_samples))
        return min(most, max(2, int(LARGEST_SHARE * n_samples)))
    if isinstance(wanted, str):
        raise ValueError(f"n_components must be 'auto' or a whole number >= 2, got {wanted!r}.")
    return check_whole("n_components", wanted, least=2)


def _fourier(
    kernel: Kernel,
    X: Features,
    n_components: int,
    generator: np.random.Generator,
    *,
    dtype: np.dtype[Any],
    split: bool,
) -> MappedRows:
    """Return waves of the whole kernel; after its low orders if `split`."""
    if split:
        low = fit_low_order_waves(kernel, X, n_components, generator)
        return MappedRows(low, _mapped(low, X, None, None, width=low.width, dtype=dtype))
    frequencies = orthogonal_frequencies(generator, X.shape[1], n_components // 2)
    whole = FourierFeatures(np.sqrt(2 * kernel.gamma) * frequencies)
    width = 2 * frequencies.shape[1]
    return MappedRows(whole, _mapped(whole, X, None, None, width=width, dtype=dtype))


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
    if split:
        landmarks: Features = cluster_means(X, n_landmarks, generator)
    else:
        # Means of wide sparse rows would be dense.
        landmarks = X[np.sort(generator.permutation(X.shape[0])[:n_landmarks])]
    own = evaluated.values(landmarks, landmarks)[:, -landmarks.shape[0] :]
    values, vectors = eigh(_symmetric(own), check_finite=False)
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


def _symmetric(K: FloatArray) -> FloatArray:
    return (K + K.T) / 2


def _mapped(
    kernel: Kernel | FirstOrderKernel | FourierFeatures | LowOrderWaves,
    X: Features,
    landmarks: Features,
    transform: FloatArray | None,
    *,
    width: int,
    dtype: np.dtype[Any],
) -> Array:
    features = np.empty((X.shape[0], width), dtype)
    for part in row_parts(X.shape[0], width):
        values = kernel.values(X[part], landmarks)
        if transform is None:
            features[part] = values
            continue
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
    assert mapped.exact is not None
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
