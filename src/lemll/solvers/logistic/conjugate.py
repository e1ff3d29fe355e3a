"""Conjugate gradients for the Newton systems of many logistic regressions together."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from lemll._types import Array
from lemll.solvers.logistic.features import SharedFeatures

__all__ = ["conjugate_gradients", "keep_problems"]

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


def _iterate(features: SharedFeatures, s: _Systems, penalty: Any) -> npt.NDArray[np.bool_]:
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
