"""A point of the search for the minimum of Eq. (10), with objective, curvature and certificate."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lemll._types import Features, FloatArray
from lemll.objective import row_norms, smallest_objective, tube_loss, tube_weights, weighed
from lemll.solvers.linear.features import features_for
from lemll.solvers.linear.models import Model, model_for

__all__ = ["MsvrCurvature", "MsvrPoint", "MsvrProblem"]

TINY = float(np.finfo(np.float64).tiny)


class TubePoint(Protocol):
    """The interface of a point with tube weights, and the residuals whose norms they come from."""

    scaled: FloatArray
    norms: FloatArray
    weights: FloatArray


class MsvrProblem:
    """The data of Eq. (10), with each row multiplied by the root of its weight.

    Weights of cells stay apart, because they differ between outputs that share the products with
    the features.

    Attributes
    ----------
    cell_roots : ndarray of shape (n_samples, n_outputs) or None
        The roots of the weights of the cells; None means 1.
    intercept_weight : float or ndarray of shape (n_outputs,)
        The total weight of each output, which is the block of b in the preconditioner.
    bounded : bool
        Whether the preconditioner bounds the Hessian.
    """

    def __init__(
        self,
        X: Features,
        T: FloatArray,
        weights: FloatArray | None,
        alpha: float,
        epsilon: float,
        *,
        cell_weight: FloatArray | None = None,
        n_alphas: int = 1,
    ) -> None:
        self.features = features_for(X, np.float64, weights)
        self.model: Model = model_for(self.features)
        self.roots = np.ones(len(T)) if weights is None else np.sqrt(weights)
        self.radii = epsilon * self.roots
        self.cell_roots = None if cell_weight is None else np.sqrt(cell_weight)
        # Half the curvature of the tube loss is at most 1. With weights of cells, the
        # preconditioner is only a typical Hessian.
        self.bounded = cell_weight is None
        self.intercept_weight: float | FloatArray = self.features.total_weight
        self._share = 1.0
        scaled = self.roots[:, None] * T
        if cell_weight is not None:
            totals = self.features.gather(self.roots[:, None] * cell_weight)
            # An output without any weight has no gradient either, so its block is arbitrary.
            self.intercept_weight = np.where(totals > 0, totals, 1.0)
            self._share = float(totals.mean()) / self.features.total_weight
        self.model.expect(n_alphas)
        self.set_alpha(alpha)
        # If the optimum is 0, the objective is only rounding error, and must not divide a gap.
        self.floor = smallest_objective(weighed(scaled, self.cell_roots), 1.0)
        # The best intercept without a tube. Centred targets keep the digits of small residuals.
        self.centre = self.features.gather(weighed(scaled, cell_weight)) / self.intercept_weight
        self.T = self.roots[:, None] * (T - self.centre)

    def set_alpha(self, alpha: float) -> None:
        """Change the weight of the penalty."""
        self.model.factorise(self._share, alpha)
        self.alpha = alpha


class MsvrPoint:
    """The unknowns ``V = [Theta'; b']`` with the residuals ``T - Xt V`` and the objective.

    Attributes
    ----------
    scaled : ndarray of shape (n_samples, n_outputs)
        ``rho_ij = sqrt(c_ij) xi_ij``: the residuals times the roots of the weights of their cells.
    norms, weights : ndarray of shape (n_samples,)
        ``|rho_i|``, and the weights a_i of Eq. (14).
    pull : ndarray of shape (n_samples, n_outputs)
        ``a_i c_ij xi_ij``: half the gradient of the loss by the residuals.
    """

    def __init__(
        self, problem: MsvrProblem, V: FloatArray, residuals: FloatArray | None = None
    ) -> None:
        self.problem, self.V = problem, V
        self.residuals = problem.T - problem.model.image(V) if residuals is None else residuals
        self.scaled = weighed(self.residuals, problem.cell_roots)
        self.norms = row_norms(self.scaled)
        self.weights = tube_weights(self.norms, problem.radii)
        if not problem.radii.any():
            # Eq. (14) gives the weight 0 to a zero residual. Without a tube the loss is a square,
            # and its curvature is the same for all rows.
            self.weights = np.ones_like(self.norms)
        self.pull = weighed(self.weights[:, None] * self.scaled, problem.cell_roots)
        # ``T - residuals`` is the image of V, so the penalty needs no product with X.
        self.objective = float(
            tube_loss(self.norms, problem.radii).sum()
        ) + problem.alpha * problem.model.inner(V, V, problem.T - self.residuals)

    def moved(self, step: float, V: FloatArray, image: FloatArray) -> MsvrPoint:
        """Return the point ``V - step * dV``, given dV and its image, without a product."""
        return MsvrPoint(self.problem, self.V - step * V, self.residuals + step * image)

    def refreshed(self) -> MsvrPoint:
        """Return the same point with recomputed residuals, without accumulated rounding errors."""
        return MsvrPoint(self.problem, self.V)

    def curvature(self, damping: float) -> MsvrCurvature:
        """Return half the Hessian of the loss."""
        return MsvrCurvature(self, damping, self.problem.cell_roots)

    def certified_gap(self) -> float:
        """Return an upper bound of the distance of the objective to its minimum.

        For any Z for which the row of b in ``Xt' Z`` is zero, D(Z) is a lower bound of Eq. (10),
        and::

            F - D(Z) = sum_i [ L(|xi_i|) + |z_i|^2/4 + epsilon |z_i| - <z_i, xi_i> ]
                       + |alpha Theta' - Xc'Z/2|_F^2 / alpha

        Here ``Z/2`` is the pull, centred by a change c of the rows outside the tube. For these
        rows the bracket is ``(|h| - p)^2 + 2 r (|h| - <h, n>)`` with ``h = z/2``,
        ``p = r - epsilon`` and ``n = xi/r``. Both differences are computed from c alone, so that
        nothing cancels.

        With weights c of the cells, the loss sees ``rho = sqrt(c) xi``. Let Z be the dual point of
        rho. Then everything above holds with rho in place of xi, and with ``sqrt(c) Z`` in place
        of Z in the condition and in the last term. Cells without a weight take no part.
        """
        problem = self.problem
        change = self._centring()
        # Rows inside the tube have no pull and no change, so they do not contribute to the gap.
        # Split the change into its part along the residual and its part across it.
        unit = self.scaled / np.maximum(self.norms, TINY)[:, None]
        along = np.einsum("ij,ij->i", change, unit)
        across = np.square(row_norms(change - along[:, None] * unit))
        forward = self.weights * self.norms + along
        length = np.sqrt(np.square(forward) + across)
        # |h| - <h, n>. If <h, n> is positive, use (|h|^2 - <h, n>^2) / (|h| + <h, n>) to avoid
        # cancellation. If it is negative, nothing cancels.
        detour = np.where(
            forward > 0,
            across / np.maximum(length + np.maximum(forward, 0.0), TINY),
            length - forward,
        )
        fenchel = np.square(along + detour) + 2 * self.norms * detour
        half_dual = self.pull + weighed(change, problem.cell_roots)
        misfit = problem.model.misfit(problem.alpha, self.V, half_dual)
        return float(fenchel.sum()) + misfit / problem.alpha

    def _centring(self) -> FloatArray:
        """Return the change of ``Z/2`` after which its sums over the rows are zero."""
        # b has no penalty, so the dual value is finite only if the sums over the rows are zero.
        # Rows outside the tube share the correction by their weights.
        problem = self.problem
        sums = -problem.features.gather(self.pull)
        shares = self.weights * problem.roots
        if problem.cell_roots is None:
            return np.outer(shares, sums / max(float(shares @ problem.roots), TINY))
        # The sums are those of sqrt(c) Z, so a cell takes part by the root of its weight.
        cells = shares[:, None] * problem.cell_roots
        totals = np.einsum("ij,ij,i->j", cells, problem.cell_roots, problem.roots)
        change: FloatArray = cells * (sums / np.maximum(totals, TINY))
        return change


class MsvrCurvature:
    """Half the Hessian of the tube loss: ``a_i I + (1 - a_i) n_i n_i'``, 0 inside the tube.

    The weights are raised slightly, from a to ``a + damping (1 - a)``. Without this, rows inside
    the tube would have no curvature. If almost all rows are inside, only they limit b, and the
    Newton step could be far too long.

    With weights c of the cells, a block is multiplied by ``diag(sqrt(c_i))`` from both sides.
    """

    def __init__(
        self, point: TubePoint, damping: float, cell_roots: FloatArray | None = None
    ) -> None:
        weights = point.weights + damping * (1 - point.weights)
        outside = point.weights > 0
        self._weights = weights[:, None]
        self._stretch = np.where(outside, 1 - weights, 0.0)[:, None]
        self._cell_roots = cell_roots
        self._unit = point.scaled / np.maximum(point.norms, TINY)[:, None]

    def times(self, image: FloatArray) -> FloatArray:
        """Multiply every row by its block."""
        image = weighed(image, self._cell_roots)
        along = np.einsum("ij,ij->i", self._unit, image)[:, None]
        product: FloatArray = self._weights * image + (self._stretch * along) * self._unit
        return weighed(product, self._cell_roots)
