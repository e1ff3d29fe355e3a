"""Multi-output regression with a penalty on wrong signs: the second stage of ML2 and MLFE.

The objective is convex, but it is not smooth where an output is zero. Therefore reweighting with a
fixed set of violated signs may fail to descend. Here an augmented Lagrangian is used: every sign
term has a multiplier. For fixed multipliers the objective is smooth, and its Newton systems are
those of support vector regression with one more diagonal term. Then the multipliers are updated
from the outputs. The search stops on the certified duality gap; the multipliers are a part of its
dual point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lemll._types import Features, FloatArray, MatrixLike
from lemll._validation import is_sparse
from lemll.objective import exact_step
from lemll.solvers.interface import (
    Status,
    as_features,
    check_real,
    check_size,
    check_stopping,
    check_weights,
)
from lemll.solvers.msvr.newton import MsvrDirection, NewtonSystem
from lemll.solvers.msvr.sign_point import SignPoint, SignProblem

__all__ = ["SignMsvrSolution", "solve_sign_msvr"]

# The multipliers are updated when the gap of the smooth part is below this share of their own gap.
SMOOTH_SHARE = 0.3
# If an update leaves more than this share of the gap of the sign term, the stiffness is raised.
ENOUGH = 0.5
STIFFEN = 2.0
# Limits of the accuracy to which Newton systems are solved.
FORCING = (1e-7, 0.1)
# After this many steps without a better certificate, rounding is assumed to be the reason.
PATIENCE = 30


@dataclass(frozen=True)
class SignMsvrSolution:
    """A minimiser with its certificate.

    Attributes
    ----------
    coef : ndarray of shape (n_outputs, n_features)
        ``Theta``. With a kernel, one coefficient per sample.
    intercept : ndarray of shape (n_outputs,)
        ``b``.
    multipliers : ndarray of shape (n_samples, n_outputs)
        The multipliers of the sign terms, from 0 to C2.
    objective : float
        The objective at the solution.
    optimality : float
        Certified gap, relative to the sum of the absolute values of the terms of the objective.
    n_iter : int
        Number of Newton steps.
    status : {"converged", "max_iter", "stalled"}
        "stalled" means that rounding errors stopped the descent before the requested gap.
    """

    coef: FloatArray
    intercept: FloatArray
    multipliers: FloatArray
    objective: float
    optimality: float
    n_iter: int
    status: Status

    @property
    def converged(self) -> bool:
        """Whether the solver met its tolerance."""
        return self.status == "converged"


def solve_sign_msvr(
    X: Features,
    targets: MatrixLike,
    *,
    C1: float = 1.0,
    C2: float = 1.0,
    gain: Any = None,
    epsilon: float = 0.001,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> SignMsvrSolution:
    """Fit a regression whose outputs should have the signs of the targets, to a certified gap.

    Minimises, for the outputs ``f_i = Theta x_i + b`` and ``L(r) = max(0, r - epsilon)^2``,

    ``|Theta|_F^2 / 2 + C1 sum_i L(|t_i - f_i|) + C2 sum_ij max(0, -sgn(t_ij) f_ij)
    - sum_ij gain_ij f_ij``.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features), or CentredKernel
        Features, or their kernel.
    targets : ndarray of shape (n_samples, n_outputs)
        Real targets.
    C1 : float, default=1.0
        Weight of the tube loss, positive.
    C2 : float, default=1.0
        Weight of outputs with the wrong sign, not negative.
    gain : ndarray of shape (n_samples, n_outputs), optional
        Coefficients of the linear term. By default 0.
    epsilon : float, default=0.001
        Radius of the tube.
    tol : float, default=1e-10
        The solver stops when the certified relative gap is at most this.
    max_iter : int, default=1000
        Largest number of Newton steps.

    Returns
    -------
    SignMsvrSolution
        The minimiser. ``optimality`` is its certified relative gap.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers import solve_sign_msvr
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> targets = np.array([[1.0], [-1.0], [-1.0], [-1.0]])
    >>> kept = solve_sign_msvr(X, targets, C1=1.0, C2=0.0, epsilon=0.0)
    >>> (X @ kept.coef.T + kept.intercept).ravel().round(3)
    array([ 0.318, -0.227, -0.773, -1.318])
    >>> kept.optimality <= 1e-10
    True
    """
    X, T = as_features(X.tocsr() if is_sparse(X) else X), np.asarray(targets)
    check_real(T, "targets")
    if T.ndim != 2 or T.shape[0] != X.shape[0] or T.shape[1] == 0:
        raise ValueError(
            f"X has {X.shape[0]} rows, so targets must be ({X.shape[0]}, n_outputs); got {T.shape}."
        )
    G = np.zeros(T.shape) if gain is None else np.asarray(gain)
    check_real(G, "gain")
    if G.shape != T.shape:
        raise ValueError(f"gain must have the shape of targets, {T.shape}; got {G.shape}.")
    for array, name in ((X, "X"), (T, "targets"), (G, "gain")):
        check_size(array, name, "float64")
    if not (np.isfinite(C2) and C2 >= 0):
        raise ValueError(f"C2 must be finite and not negative, got {C2}.")
    if not (np.isfinite(C1) and C1 > 0):
        raise ValueError(f"C1 must be finite and positive, got {C1}.")
    check_weights(alpha=1 / (2 * C1), beta=1.0, gamma=0.0, epsilon=epsilon)
    check_stopping(tol=tol, max_iter=max_iter)
    # The objective divided by C1 has the form of Eq. (10), with alpha = 1 / (2 C1).
    problem = SignProblem(
        X,
        np.asarray(T, dtype=np.float64),
        alpha=1 / (2 * C1),
        epsilon=epsilon,
        cost=C2 / C1,
        gain=np.asarray(G, dtype=np.float64) / C1,
    )
    search = _Search(problem, tol, max_iter)
    status = search.run()
    point = search.point
    coef, intercept = problem.model.decode(point.V)
    return SignMsvrSolution(
        coef=coef,
        intercept=intercept + problem.centre,
        multipliers=C1 * point.updated,
        objective=C1 * sum(point.terms()),
        optimality=search.optimality,
        n_iter=search.n_iter,
        status=status,
    )


class _Search:
    """Newton steps and updates of the multipliers, starting at ``Theta = 0``."""

    def __init__(self, problem: SignProblem, tol: float, max_iter: int) -> None:
        self.problem, self.tol, self.max_iter = problem, tol, max_iter
        V = np.zeros((problem.model.n_rows, problem.T.shape[1]))
        self.point = SignPoint(problem, V, np.zeros_like(problem.T))
        self.optimality = np.inf
        self.n_iter = 0
        self._last_signs = np.inf

    def run(self) -> Status:
        """Step until the certified gap is at most `tol`, or until no step makes progress."""
        best, failures = self.point, 0
        while True:
            gap = self.point.gap()
            scale = max(sum(map(abs, self.point.terms())), self.problem.floor)
            relative = gap.total / scale
            if relative < self.optimality:
                best, self.optimality, failures = self.point, relative, 0
            else:
                failures += 1
            status: Status | None = None
            if self.optimality <= self.tol:
                status = "converged"
            elif self.n_iter >= self.max_iter:
                status = "max_iter"
            elif failures >= PATIENCE:
                failures = 0
                status = None if self._confine() else "stalled"
            # Newton steps reduce the smooth part, and updates reduce the sign part. Work on the one
            # that is too large for its share.
            elif gap.smooth <= SMOOTH_SHARE * gap.signs:
                self._update(gap.signs)
            elif not self._step(gap.smooth / scale) and not self._confine():
                status = "stalled"
            if status is not None:
                self.point = best
                return status

    def _update(self, signs: float) -> None:
        """Update the multipliers; increase the stiffness if the update gains too little."""
        multipliers = self.point.updated
        if signs > ENOUGH * self._last_signs:
            self.problem.stiffness *= STIFFEN
        self._last_signs = signs
        # The update is also the occasion to remove the rounding errors of the steps.
        self.point = self.point.refreshed(multipliers)

    def _step(self, relative: float) -> bool:
        """Take a Newton step; return False if the objective only rises along the line."""
        system = NewtonSystem(self.point)
        direction = system.solve(float(np.clip(np.sqrt(relative), *FORCING)))
        step = self._line_search(direction)
        if step == 0:
            return False
        self.point = self.point.moved(step, *direction)
        self.n_iter += 1
        if system.grown:
            self._confine()
        return True

    def _confine(self) -> bool:
        """Remove the parts of V that do not change Theta; return False if there are none."""
        V = self.problem.model.confine(self.point.V)
        if V is None:
            return False
        self.point = SignPoint(self.problem, V, self.point.multipliers)
        return True

    def _line_search(self, direction: MsvrDirection) -> float:
        point, problem = self.point, self.problem
        inner, alpha = problem.model.inner, problem.alpha
        found = exact_step(
            np.square(point.norms),
            np.einsum("ij,ij->i", point.residuals, direction.image),
            np.einsum("ij,ij->i", direction.image, direction.image),
            linear=float(np.vdot(problem.gain, direction.image)) / 2
            - alpha * inner(point.V, direction.V, direction.image),
            quadratic=alpha * inner(direction.V, direction.V, direction.image),
            epsilon=problem.epsilon,
            other=lambda step: point.along(step, direction.image),
        )
        return found.step
