"""A point of the search for the minimum of the regression with a sign term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lemll._types import Features, FloatArray
from lemll.objective import row_norms, smallest_objective, tube_loss, tube_weights
from lemll.solvers.linear.features import features_for
from lemll.solvers.linear.models import Model, model_for
from lemll.solvers.msvr.point import MsvrCurvature

__all__ = ["Gap", "SignCurvature", "SignPoint", "SignProblem"]


class SignProblem:
    """The data of the problem. The objective is divided by the weight C1 of the tube loss.

    The objective is ``sum_i L(|t_i - f_i|) + alpha |Theta|_F^2 + cost sum_ij max(0, -s_ij f_ij)
    - sum_ij m_ij f_ij`` with the signs s of the targets and the gain m.
    """

    # The sign term can have more curvature than the tube loss.
    bounded = False

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
        self.features = features_for(X, np.float64)
        self.model: Model = model_for(self.features)
        self.intercept_weight = self.features.total_weight
        self.alpha, self.epsilon, self.cost, self.gain = alpha, epsilon, cost, gain
        self.targets, self.signs = T, np.sign(T)
        self.floor = smallest_objective(T, 1.0)
        # The best intercept without a tube. Centred targets keep the digits of small residuals.
        self.centre: FloatArray = T.mean(axis=0)
        self.T = T - self.centre
        self.model.factorise(1.0, alpha)
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


class SignPoint:
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
        self.problem, self.V, self.multipliers = problem, V, multipliers
        self.residuals = problem.T - problem.model.image(V) if residuals is None else residuals
        # The cells have no weights.
        self.scaled = self.residuals
        self.norms = row_norms(self.residuals)
        self.weights = tube_weights(self.norms, problem.epsilon)
        if problem.epsilon == 0:
            # Eq. (14) gives the weight 0 to a zero residual. Without a tube the loss is a square,
            # and its curvature is the same for all rows.
            self.weights = np.ones_like(self.norms)
        self.outputs = problem.targets - self.residuals
        self.updated = self._updated(self.outputs)
        self.drive = (problem.signs * self.updated + problem.gain) / 2
        self.pull = self.weights[:, None] * self.residuals + self.drive

    def _updated(self, outputs: FloatArray) -> FloatArray:
        problem = self.problem
        trial = self.multipliers - problem.stiffness * problem.signs * outputs
        return np.clip(trial, 0.0, problem.cost)

    def moved(self, step: float, V: FloatArray, image: FloatArray) -> SignPoint:
        """Return the point ``V - step * dV``, given dV and its image, without a product."""
        return SignPoint(
            self.problem, self.V - step * V, self.multipliers, self.residuals + step * image
        )

    def refreshed(self, multipliers: FloatArray) -> SignPoint:
        """Return the point with these multipliers and with recomputed residuals."""
        return SignPoint(self.problem, self.V, multipliers)

    def curvature(self, damping: float) -> SignCurvature:
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

    def terms(self) -> tuple[float, float, float, float]:
        """Return the terms of the objective: tube loss, penalty, sign term and gain."""
        problem = self.problem
        loss = float(tube_loss(self.norms, problem.epsilon).sum())
        square = problem.model.inner(self.V, self.V, problem.T - self.residuals)
        violated = np.maximum(0.0, -problem.signs * self.outputs).sum()
        gain = float(np.vdot(problem.gain, self.outputs))
        return loss, problem.alpha * square, problem.cost * float(violated), -gain

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
        fenchel = tube_loss(self.norms, problem.epsilon)
        fenchel += lengths * (lengths + 2 * problem.epsilon)
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
