"""Conjugate gradients for the Newton systems of many logistic regressions together."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from lemll._sparse import lighter
from lemll._types import Array, Features, FloatArray
from lemll._validation import is_sparse

# Above this many axes the eigendecomposition costs more than it saves.
MAX_AXES, MAX_AXES_OF_SPARSE = 1000, 600
# With weaker penalties the Newton systems are ill-conditioned. Then float32 is not accurate enough,
# and a diagonal preconditioner is not good enough.
STRONG_PENALTY = 1e-3
LARGEST_SINGLE = 1e6
DOUBLE = np.dtype(np.float64)


class SharedFeatures:
    """Features in the basis of the solver, with the conversion back to the original basis.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features of every problem.
    extra : ndarray of shape (n_samples, n_extra) or None
        Features that only some problems may use. They are not rotated.
    penalty : float
        1 / C.

    Attributes
    ----------
    n_axes : int
        Number of coefficients of a problem in this basis. Those of `extra` are the last ones.
    dense : ndarray of shape (n_samples, n_axes) or None
        The centred features. None if they are sparse.
    cg_dtype : dtype
        Precision in which the Newton systems are solved.
    """

    def __init__(self, X: Features, extra: FloatArray | None, penalty: float) -> None:
        X = lighter(X)
        least = min(X.shape)
        if is_sparse(X) and penalty < STRONG_PENALTY and least <= MAX_AXES_OF_SPARSE:
            X = X.toarray()
        self._centre = np.asarray(X.mean(axis=0)).ravel()
        self._axes: FloatArray | None = None
        if not is_sparse(X):
            X = X - self._centre
            if least <= MAX_AXES:
                self._axes = _principal_axes(X)
                X = X @ self._axes
        self._n_turned = X.shape[1]
        self._extra_centre = np.zeros(0) if extra is None else extra.mean(axis=0)
        # Extra features are not rotated, because a problem may use single columns of them.
        second = None if extra is None else extra - self._extra_centre
        if second is not None and not is_sparse(X):
            X, second = np.column_stack([X, second]), None
        self.n_axes = self._n_turned + len(self._extra_centre)
        self.dense: FloatArray | None = None if is_sparse(X) else X
        largest = float(np.abs(X.data if is_sparse(X) else X).max(initial=0))
        # A Newton step corrects the errors of the last one, so float32 is enough for directions.
        single = penalty >= STRONG_PENALTY and largest <= LARGEST_SINGLE
        self.cg_dtype = np.dtype(np.float32) if single else DOUBLE
        shift = self._centre if is_sparse(X) else None
        self._parts = {dtype: _Parts(X, shift, second, dtype) for dtype in {DOUBLE, self.cg_dtype}}

    def times(self, coef: Array) -> Array:
        """Return the scores (n_samples, n_problems) of coefficients (n_axes, n_problems)."""
        parts, cut = self._parts[coef.dtype], self._n_turned
        scores = np.asarray(parts.first @ (coef if self.dense is not None else coef[:cut]))
        if parts.shift is not None:
            scores -= parts.shift @ coef[:cut]
        if parts.second is not None:
            scores += parts.second @ coef[cut:]
        return scores

    def gathered(self, residuals: Array) -> Array:
        """Return the products (n_axes, n_problems) of all features with residuals."""
        parts = self._parts[residuals.dtype]
        gathered = np.asarray(parts.first.T @ residuals)
        if parts.shift is not None:
            gathered -= np.outer(parts.shift, residuals.sum(axis=0))
        if parts.second is not None:
            gathered = np.vstack([gathered, parts.second.T @ residuals])
        return gathered

    def gathered_squares(self, curvature: Array) -> Array:
        """Return the diagonals (n_axes, n_problems) of ``X'DX`` for many diagonal D."""
        parts = self._parts[curvature.dtype]
        squares = np.asarray(parts.first_squared.T @ curvature)
        if parts.shift is not None:
            # (x - m)^2 = x^2 - 2 m x + m^2, because centred sparse features would be dense. The
            # subtraction can round below 0, where no sum of squares can be.
            shift = parts.shift[:, None]
            squares -= 2 * shift * (parts.first.T @ curvature)
            squares += shift**2 * curvature.sum(axis=0)
            np.maximum(squares, 0, out=squares)
        if parts.second is not None:
            squares = np.vstack([squares, (parts.second * parts.second).T @ curvature])
        return squares

    def row_squares(self) -> FloatArray:
        """Return the squared lengths of the centred rows."""
        parts = self._parts[DOUBLE]
        squares = np.asarray(parts.first_squared.sum(axis=1)).ravel()
        if parts.shift is not None:
            squares = squares - 2 * (parts.first @ parts.shift) + parts.shift @ parts.shift
        if parts.second is not None:
            squares = squares + (parts.second * parts.second).sum(axis=1)
        return np.asarray(np.maximum(squares, 0))

    def given_basis(
        self, coef: FloatArray, intercept: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return coefficients of X (n_features, n_problems), of `extra`, and intercepts."""
        cut = self._n_turned
        first, second = coef[:cut], coef[cut:]
        if self._axes is not None:
            first = self._axes @ first
        # theta'(x - m) + b = theta'x + (b - theta'm).
        shifted = intercept - self._centre @ first
        if len(second):
            shifted = shifted - self._extra_centre @ second
        return first, second, shifted


class _Parts:
    """The features in one precision: shared features with their shift, and extra features."""

    def __init__(
        self,
        first: Features,
        shift: FloatArray | None,
        second: FloatArray | None,
        dtype: npt.DTypeLike,
    ) -> None:
        self.first: Features = first.astype(dtype, copy=False)
        squared = self.first.multiply(self.first) if is_sparse(first) else self.first * self.first
        self.first_squared: Features = squared.tocsr() if is_sparse(first) else squared
        self.shift: Array | None = None if shift is None else shift.astype(dtype)
        self.second: Array | None = None if second is None else second.astype(dtype, copy=False)


def _principal_axes(X: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the rows of X, with at most as many vectors as rows."""
    n_samples, n_features = X.shape
    # X'X and XX' have the same positive eigenvalues, so decompose the smaller matrix.
    if n_features <= n_samples:
        return np.asarray(eigh(X.T @ X, check_finite=False)[1])
    values, vectors = eigh(X @ X.T, check_finite=False)
    # Smaller eigenvalues are rounding errors, and their axes would be noise.
    kept = values > values[-1] * n_samples * np.finfo(np.float64).eps
    if not kept.any():
        return np.zeros((n_features, 1))
    # Division by small roots makes the axes less orthogonal; a QR decomposition repairs this.
    axes = X.T @ (vectors[:, kept] / np.sqrt(values[kept]))
    return np.asarray(np.linalg.qr(axes)[0])


MAX_CG = 200
# Solved problems are removed when they are this share of all. Removal copies the arrays, so it does
# not pay for a few problems.
LEAVING = 0.25


def keep_problems(state: Any, kept: npt.NDArray[np.bool_]) -> None:
    """Remove problems from every array of a dataclass; the last axis is that of the problems."""
    for field in fields(state):
        values = getattr(state, field.name)
        if values is not None:
            setattr(state, field.name, np.ascontiguousarray(values[..., kept]))


@dataclass(slots=True)
class _Systems:
    """The systems that are not solved yet. The last row belongs to the intercept."""

    place: Array
    curvature: Array
    free: Array | None
    inverse: Array
    x: Array
    r: Array
    q: Array
    rz: Array
    goal: Array


def conjugate_gradients(
    features: SharedFeatures,
    slope: Array,
    curvature: Array,
    *,
    free: Array | None,
    penalty: float,
    forcing: Array,
) -> tuple[Array, int]:
    """Solve ``(A'DA + penalty) x = -slope`` for every problem, to a share `forcing` of the slope.

    Parameters
    ----------
    features : SharedFeatures
        The matrix A without the column of the intercept, which is not penalised.
    slope : ndarray of shape (n_axes + 1, n_problems)
        Gradients. The last row belongs to the intercept.
    curvature : ndarray of shape (n_samples, n_problems)
        The diagonals D.
    free : ndarray of shape (n_axes, n_problems) or None
        0 for coefficients that must stay 0, else 1.
    penalty : float
        1 / C.
    forcing : ndarray of shape (n_problems,)
        A system is solved when the relative length of its residual is at most this, in the norm of
        the preconditioner.

    Returns
    -------
    x : ndarray of shape (n_axes + 1, n_problems)
        The steps.
    used : int
        Number of iterations of the slowest problem.
    """
    dtype = curvature.dtype.type
    # The preconditioner is the diagonal of the matrix. In the rotated basis of SharedFeatures the
    # matrix is almost diagonal, so a few iterations are enough.
    diagonal = np.vstack(
        [features.gathered_squares(curvature) + dtype(penalty), curvature.sum(axis=0)]
    )
    r = -slope.astype(curvature.dtype)
    inverse = 1 / diagonal
    q = r * inverse
    rz = np.einsum("ij,ij->j", r, q)
    systems = _Systems(
        place=np.arange(slope.shape[1]),
        curvature=curvature,
        free=free,
        inverse=inverse,
        x=np.zeros_like(r),
        r=r,
        q=q,
        rz=rz,
        goal=(forcing.astype(curvature.dtype) ** 2) * rz,
    )
    solved = np.zeros(slope.shape)
    for used in range(1, MAX_CG + 1):
        going = _iterate(features, systems, dtype(penalty))
        if not going.any() or used == MAX_CG:
            break
        if np.count_nonzero(going) <= (1 - LEAVING) * len(going):
            solved[:, systems.place] = systems.x
            keep_problems(systems, going)
    solved[:, systems.place] = systems.x
    return solved, used


def _iterate(features: SharedFeatures, s: _Systems, penalty: float) -> npt.NDArray[np.bool_]:
    """Take one step in every system; return which systems need more steps."""
    image = features.times(s.q[:-1])
    image += s.q[-1]
    image *= s.curvature
    hq = np.empty_like(s.q)
    hq[:-1] = features.gathered(image)
    hq[:-1] += penalty * s.q[:-1]
    # The slope of a coefficient that must stay 0 is 0. Without this line, the coupling with other
    # coefficients would change it.
    if s.free is not None:
        hq[:-1] *= s.free
    hq[-1] = image.sum(axis=0)
    bend = np.einsum("ij,ij->j", s.q, hq)
    # A solved problem does not move until it is removed. In float32 a curvature can round to 0.
    going = (s.rz > s.goal) & (bend > 0)
    alpha = np.where(going, s.rz / np.where(going, bend, 1), 0)
    s.x += alpha * s.q
    hq *= alpha
    s.r -= hq
    # `hq` is not needed any more, and new arrays of this size would cost time.
    z = np.multiply(s.r, s.inverse, out=hq)
    fresh = np.einsum("ij,ij->j", s.r, z)
    s.q *= np.where(going, fresh / np.where(going, s.rz, 1), 0)
    s.q += z
    s.rz = np.where(going, fresh, 0)
    return np.asarray(s.rz > s.goal)
