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
from typing import NamedTuple

import numpy as np

from lemll._types import Features, FloatArray, MatrixLike
from lemll.solvers.certificate import row_norms, tube_loss
from lemll.solvers.equation9 import (
    Solution,
    Status,
    check_weights,
    exact_step,
)
from lemll.solvers.msvr import check_targets
from lemll.solvers.msvr_search import (
    Curvature,
    MsvrCurvature,
    MsvrDirection,
    MsvrPoint,
    MsvrProblem,
    NewtonSystem,
)


class SignProblem(MsvrProblem):
    """The data of the problem. The objective is divided by the weight C1 of the tube loss.

    The objective is ``sum_i L(|t_i - f_i|) + alpha |Theta|_F^2 + cost sum_ij max(0, -s_ij f_ij)
    - sum_ij m_ij f_ij`` with the signs s of the targets and the gain m.
    """

    def __init__(
        self,
        X: Features,
        T: FloatArray,
        *,
        alpha: float,
        epsilon: float,
        cost: float,
        gain: FloatArray,
    ) -> None:
        super().__init__(X, T, None, alpha, epsilon)
        # The sign term can have more curvature than the tube loss.
        self.bounded = False
        self.cost, self.gain = cost, gain
        self.targets, self.signs = T, np.sign(T)
        # The curvature of the augmented sign term. A larger value makes multipliers change faster.
        self.stiffness = max(cost, 1.0)


class Gap(NamedTuple):
    """The two parts of the duality gap: of the smooth terms, and of the sign term."""

    smooth: float
    signs: float

    @property
    def total(self) -> float:
        """An upper bound of the distance of the objective to its minimum."""
        return self.smooth + self.signs


class SignPoint(MsvrPoint):
    """The unknowns ``V = [Theta'; b']``, the multipliers, and the products that follow from them.

    The sign term is replaced by its augmented Lagrangian, with multipliers g in [0, cost] and the
    stiffness k. Its slope at ``v = s f`` is minus ``clip(g - k v, 0, cost)``, and this clipped
    value is `updated`. When g does not change any more, both forms have the same minimum.

    Attributes
    ----------
    pull : ndarray of shape (n_samples, n_outputs)
        Minus half the gradient with respect to the outputs.
    """

    def __init__(
        self,
        problem: SignProblem,
        V: FloatArray,
        multipliers: FloatArray,
        residuals: FloatArray | None = None,
    ) -> None:
        super().__init__(problem, V, residuals)
        self.problem: SignProblem = problem
        self.multipliers = multipliers
        self.outputs = problem.targets - self.residuals
        self.updated = self._updated(self.outputs)
        self.drive = (problem.signs * self.updated + problem.gain) / 2
        self.pull += self.drive

    def _updated(self, outputs: FloatArray) -> FloatArray:
        problem = self.problem
        trial = self.multipliers - problem.stiffness * problem.signs * outputs
        return np.clip(trial, 0.0, problem.cost)

    def moved(self, step: float, V: FloatArray, image: FloatArray) -> SignPoint:
        """Return the point ``V - step * dV``, given dV and its image, without a product."""
        return SignPoint(
            self.problem, self.V - step * V, self.multipliers, self.residuals + step * image
        )

    def with_multipliers(self, multipliers: FloatArray) -> SignPoint:
        """Return the point with these multipliers and with recomputed residuals."""
        return SignPoint(self.problem, self.V, multipliers)

    def curvature(self, damping: float) -> Curvature:
        """Return half the Hessian of the loss."""
        # A multiplier at 0 or at `cost` does not change, so its term is linear, without curvature.
        inside = (self.updated > 0) & (self.updated < self.problem.cost)
        stiffness = np.where(inside & (self.problem.signs != 0), self.problem.stiffness / 2, 0.0)
        return SignCurvature(MsvrCurvature(self, damping), stiffness)

    def along(self, step: float, image: FloatArray) -> tuple[float, float]:
        """Return half the slope and half the curvature of the sign term along a line."""
        updated = self._updated(self.outputs - step * image)
        inside = (updated > 0) & (updated < self.problem.cost) & (self.problem.signs != 0)
        slope = float(np.vdot(self.problem.signs * updated, image)) / 2
        return slope, self.problem.stiffness / 2 * float(np.vdot(image[inside], image[inside]))

    def terms(self) -> tuple[float, float, float]:
        """Return the terms of the objective: tube loss and penalty, sign term and gain."""
        problem = self.problem
        violated = np.maximum(0.0, -problem.signs * self.outputs).sum()
        gain = float(np.vdot(problem.gain, self.outputs))
        return self.objective, problem.cost * float(violated), -gain

    def gap(self) -> Gap:
        """Return an upper bound of the distance of the objective to its minimum.

        Let H (n x m) and multipliers g in [0, cost] be such that the columns of
        ``A = H + (s g + gain) / 2`` sum to zero. Then the dual value is a lower bound, and::

            F - D = sum_i [ L(|xi_i|) + |h_i|^2 + 2 epsilon |h_i| - 2 <h_i, xi_i> ]
                    + sum_ij (cost max(0, -v_ij) + g_ij v_ij)
                    + |alpha Theta' - Xc'A|_F^2 / alpha ,         v = s f

        Here H is half the gradient of the tube loss, changed so that the sums are zero. The
        multipliers g are `updated`, those of the gradient at this point.
        """
        problem = self.problem
        # b has no penalty, so the columns of A must sum to zero. Rows outside the tube share the
        # correction. If there are none, all rows share it.
        shares = self.weights if self.weights.any() else np.ones_like(self.weights)
        change = np.outer(shares / shares.sum(), -self.pull.sum(axis=0))
        half = self.weights[:, None] * self.residuals + change
        lengths = row_norms(half)
        fenchel = tube_loss(self.norms, problem.radii)
        fenchel += lengths * (lengths + 2 * problem.radii)
        fenchel -= 2 * np.einsum("ij,ij->i", half, self.residuals)
        misfit = problem.model.misfit(problem.alpha, self.V, half + self.drive)
        # Each bracket is at least 0 by the inequality of Fenchel; only rounding makes it negative.
        smooth = float(np.maximum(fenchel, 0.0).sum()) + misfit / problem.alpha
        values = problem.signs * self.outputs
        signs = problem.cost * np.maximum(0.0, -values) + self.updated * values
        return Gap(smooth, float(np.maximum(signs, 0.0).sum()))


@dataclass(frozen=True, slots=True)
class SignCurvature:
    """The curvature of the tube loss and of sign terms whose multipliers are not at a bound."""

    tube: MsvrCurvature
    stiffness: FloatArray

    def times(self, image: FloatArray) -> FloatArray:
        """Apply it to a change of the outputs."""
        product: FloatArray = self.tube.times(image) + self.stiffness * image
        return product


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
class SignMsvrSolution(Solution):
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


def solve_sign_msvr(
    X: Features,
    targets: MatrixLike,
    *,
    C1: float = 1.0,
    C2: float = 1.0,
    gain: FloatArray | None = None,
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
    >>> from lemll.rivals.sign_msvr import solve_sign_msvr
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> targets = np.array([[1.0], [-1.0], [-1.0], [-1.0]])
    >>> kept = solve_sign_msvr(X, targets, C1=1.0, C2=0.0, epsilon=0.0)
    >>> (X @ kept.coef.T + kept.intercept).ravel().round(3)
    array([ 0.318, -0.227, -0.773, -1.318])
    >>> kept.optimality <= 1e-10
    True
    """
    X, T = check_targets(X, targets)
    check_weights(alpha=1 / (2 * C1), beta=1.0, gamma=0.0, epsilon=epsilon)
    # The objective divided by C1 has the form of Eq. (10), with alpha = 1 / (2 C1).
    problem = SignProblem(
        X,
        T,
        alpha=1 / (2 * C1),
        epsilon=epsilon,
        cost=C2 / C1,
        gain=(np.zeros(T.shape) if gain is None else gain) / C1,
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
        self.point = self.point.with_multipliers(multipliers)

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
            epsilon=problem.radii,
            other=lambda step: point.along(step, direction.image),
        )
        return found.step
