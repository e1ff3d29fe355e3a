"""Conjugate gradients for the Newton systems of many logistic regressions at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from lemll._types import Array
from lemll.solvers.logistic.features import SharedFeatures

__all__ = ["conjugate_gradients", "keep_problems"]

MAX_CG = 200
# Problems that are solved leave once they are this share of those still multiplied.
LEAVING = 0.25


def keep_problems(state: Any, kept: npt.NDArray[np.bool_]) -> None:
    """Drop problems from every array of a dataclass; the last axis counts problems."""
    for field in fields(state):
        values = getattr(state, field.name)
        if values is not None:
            setattr(state, field.name, np.ascontiguousarray(values[..., kept]))


@dataclass(slots=True)
class _Systems:
    """The systems not solved yet; a last row stands for the intercept."""

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
        A, but for the column of the intercept, which is not penalised.
    slope : ndarray of shape (n_axes + 1, n_problems)
        Gradients; the last row is that of the intercept.
    curvature : ndarray of shape (n_samples, n_problems)
        The diagonals D.
    free : ndarray of shape (n_axes, n_problems) or None
        0 for coefficients that stay 0.
    penalty : float
        1 / C.
    forcing : ndarray of shape (n_problems,)
        Relative length of the residual at which to stop, in the norm of the preconditioner.

    Returns
    -------
    x : ndarray of shape (n_axes + 1, n_problems)
        The steps.
    used : int
        Iterations of the slowest problem.
    """
    dtype = curvature.dtype.type
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
    """Take one step in every system; say which ones need more."""
    image = features.times(s.q[:-1])
    image += s.q[-1]
    image *= s.curvature
    hq = np.empty_like(s.q)
    hq[:-1] = features.gathered(image)
    hq[:-1] += penalty * s.q[:-1]
    if s.free is not None:
        hq[:-1] *= s.free
    hq[-1] = image.sum(axis=0)
    bend = np.einsum("ij,ij->j", s.q, hq)
    # A problem that is solved stands still until it leaves.
    going = (s.rz > s.goal) & (bend > 0)
    alpha = np.where(going, s.rz / np.where(going, bend, 1), 0)
    s.x += alpha * s.q
    hq *= alpha
    s.r -= hq
    z = np.multiply(s.r, s.inverse, out=hq)
    fresh = np.einsum("ij,ij->j", s.r, z)
    s.q *= np.where(going, fresh / np.where(going, s.rz, 1), 0)
    s.q += z
    s.rz = np.where(going, fresh, 0)
    return np.asarray(s.rz > s.goal)
