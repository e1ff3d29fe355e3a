r"""Values of the built-in kernels, accurate also for features far from the origin.

The coefficients of the models sum to zero, and the models have an intercept. Therefore they do not
depend on the origin of the feature space of the kernel. If the origin is moved to a row m, the
kernel becomes

.. math:: \tilde k(x, x') = k(x, x') - k(x, m) - k(m, x') + k(m, m).

For features around 1e6, the first twelve digits of :math:`k` are the same for all rows and carry no
information. The functions here compute :math:`\tilde k` from the differences to m, without
subtracting such large values.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import normalize

from lemll._types import Array, Features
from lemll._validation import is_sparse

__all__ = ["cosine", "polynomial", "radial", "sigmoid"]

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
