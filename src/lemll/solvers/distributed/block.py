"""One block of rows: its part of every product and of every sum of the joint search.

The graph has no edge between two blocks. Therefore all arrays with one row per sample stay in their
blocks. What leaves a block are sums over its rows: arrays of n_features x n_labels, the n_features
x n_features Gram matrix (once), rows of n_labels, and numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lemll._types import Array, BoolArray, Features, FloatArray, SparseMatrix
from lemll.objective import GapParts, row_norms, tube_loss, tube_weights, weighed
from lemll.solvers.joint.point import LabelOperators, Weights
from lemll.solvers.joint.search import label_step
from lemll.solvers.linear.features import CentredFeatures

__all__ = ["Description", "Line", "Proposal", "Pull", "RowBlock", "Settled"]


class Description(NamedTuple):
    """What the search must know about a block before it starts."""

    n_rows: int
    feature_sums: Array  # of the columns of X
    low: Array  # the smallest observed label of each column, +inf without any
    high: Array  # the largest one, -inf without any
    label_sums: Array  # of the observed labels, times their weights
    weight_sums: Array  # of the weights of the cells
    roughness: float  # the sum of the diagonal of M
    weighted: bool  # whether the cells have weights


class Pull(NamedTuple):
    """The sums that give the direction of the model."""

    product: Array  # Xt' (gU / (1 + kappa) - A)
    label_sums: Array  # of C
    pull_sums: Array  # of A, the pull of the tube
    inner: float  # <gU, T^-1 gU>
    last_inner: float  # <gU of the last iteration, T^-1 gU>
    repaired: bool


class Line(NamedTuple):
    """Half the slope and half the curvature of the label terms along the direction."""

    linear: float
    quadratic: float


class Proposal(NamedTuple):
    """The column sums of a dual point, and of the shares of its correction."""

    sums: Array
    shares: Array


class Settled(NamedTuple):
    """The product of a dual point with the features, and its gap without the misfit."""

    product: Array
    gap: float


class RowBlock:
    """Some rows of Eq. (9) with their graph.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_rows, n_features)
        Features.
    Y : ndarray of shape (n_rows, n_labels)
        Logical labels, -1 or +1.
    W : sparse array of shape (n_rows, n_rows)
        Rebuilding weights of these rows. Each row sums to one.
    cell_weight : ndarray of shape (n_rows, n_labels), optional
        The weights of the cells of Y; by default 1.
    """

    def __init__(
        self, X: Features, Y: FloatArray, W: SparseMatrix, cell_weight: FloatArray | None = None
    ) -> None:
        self._X, self._Y, self._W = X, np.asarray(Y, dtype=np.float64), W
        self._cell_weight = cell_weight
        self._prepared = False

    def describe(self) -> Description:
        """Return what the search must know before it starts."""
        weight = np.ones(self._Y.shape) if self._cell_weight is None else self._cell_weight
        seen = weight > 0
        return Description(
            len(self._Y),
            np.asarray(self._X.sum(axis=0, dtype=np.float64)).reshape(-1),
            np.where(seen, self._Y, np.inf).min(axis=0, initial=np.inf),
            np.where(seen, self._Y, -np.inf).max(axis=0, initial=-np.inf),
            np.where(seen, weight * self._Y, 0.0).sum(axis=0),
            weight.sum(axis=0),
            float(LabelOperators(self._Y[:, :0], self._W, np.float64).roughness.sum()),
            self._cell_weight is not None,
        )

    def prepare(
        self, mean: Array, varies: BoolArray, start: Array, weights: Weights, *, weighted: bool
    ) -> None:
        """Take the labels that vary, and set U to them; `start` replaces unobserved labels.

        A block that is prepared already keeps its U.
        """
        self._weights = weights
        if self._prepared:
            return
        weight = None
        Y = self._Y[:, varies]
        if weighted:
            weight = np.ones(self._Y.shape) if self._cell_weight is None else self._cell_weight
            weight = weight[:, varies]
            Y = np.where(weight > 0, Y, 0.0)
        self._operators = LabelOperators(Y, self._W, np.float64, weight)
        self._features = CentredFeatures(self._X, np.float64, mean=mean)
        self._stack = np.zeros((3, *Y.shape))
        self.U, self._residuals, self._label_gradient = self._stack
        self.U[...] = Y if weight is None else np.where(weight > 0, Y, start)
        self._direction = np.zeros_like(self._stack)
        self._towards = np.zeros_like(self._stack)
        self._last: Array | None = None
        self._prepared = True

    def gram(self, least_shift: float) -> Array:
        """Return ``Xc' Xc`` of these rows, with the mean of all rows."""
        return self._features.gram(least_shift)

    def refresh(self, V: Array) -> float:
        """Compute the products from U and V; return the part of the objective, without alpha."""
        _, beta, gamma, epsilon = self._weights
        np.subtract(self.U, self._features.times(V), out=self._residuals)
        change = self.U - self._operators.Y
        cell_weight, smoothness = self._operators.cell_weight, self._operators.smoothness
        rebuilt = smoothness.residual(self.U)
        self._label_gradient[...] = beta * weighed(change, cell_weight)
        self._label_gradient += gamma * smoothness.adjoint(rebuilt)
        return (
            float(tube_loss(row_norms(self._residuals), epsilon).sum())
            + beta * float(np.vdot(change, weighed(change, cell_weight)))
            + gamma * float(np.vdot(rebuilt, rebuilt))
        )

    def pull(self, on_features: float, *, forget: bool) -> Pull:
        """Begin a direction: the label part, and the force on the model."""
        _, beta, gamma, epsilon = self._weights
        weights = tube_weights(row_norms(self._residuals), epsilon)
        pull = self._residuals * weights[:, None]
        label_part = pull + self._label_gradient
        self._label_step, repaired = label_step(self._operators, beta, gamma, label_part)
        last_inner = 0.0
        if self._last is not None and not forget:
            last_inner = float(np.vdot(self._last, self._label_step))
        self._last = label_part
        return Pull(
            self._features.transposed_times(on_features * label_part - pull),
            self._label_gradient.sum(axis=0),
            pull.sum(axis=0),
            float(np.vdot(label_part, self._label_step)),
            last_inner,
            repaired,
        )

    def aim(self, dV: Array, on_features: float, on_ones: Array) -> None:
        """Finish the direction of `pull` with the direction of the model."""
        _, beta, gamma, _ = self._weights
        without_intercept = dV.copy()
        without_intercept[-1] = 0
        image = self._features.times(without_intercept)
        U, residuals, label_gradient = self._towards
        np.multiply(image, on_features, out=U)
        U += self._label_step
        U += on_ones * dV[-1]
        np.subtract(U, image, out=residuals)
        residuals -= dV[-1]
        label_gradient[...] = beta * weighed(U, self._operators.cell_weight)
        if gamma > 0:
            label_gradient += gamma * (self._operators.smoothness @ U)

    def turn(self, share: float) -> Line:
        """Replace the direction by ``share`` times itself plus what `aim` found."""
        self._direction *= share
        self._direction += self._towards
        moved_U, moved_residuals, moved_gradient = self._direction
        self._square = np.einsum("ij,ij->i", self._residuals, self._residuals)
        self._cross = -np.einsum("ij,ij->i", self._residuals, moved_residuals)
        self._speed = np.einsum("ij,ij->i", moved_residuals, moved_residuals)
        return Line(
            -float(np.vdot(self._label_gradient, moved_U)),
            float(np.vdot(moved_U, moved_gradient)),
        )

    def slope(self, step: float) -> tuple[float, float]:
        """Return half the slope and half the curvature of the tube loss along the direction."""
        epsilon = self._weights.epsilon
        norms = self._norms(step)
        drift = self._cross + step * self._speed
        safe = np.maximum(norms, epsilon)
        safe[safe == 0] = 1.0
        weights = 1.0 - epsilon / safe
        # Besides `weights @ speed`, the weight itself changes along the line, outside the tube.
        bend = np.where(norms <= epsilon, 0.0, (1.0 - weights) * np.square(drift / safe))
        return float(weights @ drift), float(weights @ self._speed) + float(bend.sum())

    def move(self, step: float) -> float:
        """Step against the direction; return the decrease of the tube loss."""
        epsilon = self._weights.epsilon
        before = np.maximum(np.sqrt(self._square) - epsilon, 0.0)
        after = np.maximum(self._norms(step) - epsilon, 0.0)
        self._stack -= step * self._direction
        # a^2 - b^2 = (a - b)(a + b): the difference of two sums would lose its digits.
        return float((before - after) @ (before + after))

    def propose(self) -> tuple[Proposal, Proposal, Proposal]:
        """Begin two dual points; return the sums of the first, the second, and plain shares."""
        alpha, beta, _, epsilon = self._weights
        self._parts = GapParts(
            self._residuals,
            self._label_gradient,
            alpha=alpha,
            beta=beta,
            epsilon=epsilon,
            cell_weight=self._operators.cell_weight,
        )
        first, second = self._parts.tube_proposal(), self._parts.label_proposal()
        self._proposals = [first, second]
        return _sums(*first), _sums(*second), _sums(first[0], second[1])

    def settle(self, corrections: tuple[Array, Array], *, plain: bool) -> tuple[Settled, Settled]:
        """Correct both dual points. If `plain`, the first one spreads as the second one does."""
        (first, first_shares), (second, second_shares) = self._proposals
        shares = (second_shares if plain else first_shares), second_shares
        self._duals = [first - shares[0] * corrections[0], second - shares[1] * corrections[1]]
        one, two = (self._settled(dual) for dual in self._duals)
        self._between = self._parts.line(*self._duals)
        return one, two

    def gaps_between(self, shares: Array) -> Array:
        """Return the gaps of mixtures of the two dual points, without the misfit."""
        return np.asarray(self._between(shares))

    def reconcile(self, share: float, R: Array) -> Proposal:
        """Begin a third dual point: the best mixture, moved by ``Xt R``."""
        first, second = self._duals
        half_dual = (1 - share) * first + share * second + self._features.times(R)
        self._proposals = [self._parts.proposal(half_dual)]
        return _sums(*self._proposals[0])

    def settle_third(self, correction: Array) -> Settled:
        """Correct the third dual point."""
        fixed, shares = self._proposals[0]
        return self._settled(fixed - shares * correction)

    def _settled(self, half_dual: Array) -> Settled:
        product = self._features.transposed_times(half_dual)[:-1]
        return Settled(product, self._parts.gap(half_dual, 0.0))

    def _norms(self, step: float) -> Array:
        square = self._square + step * (2 * self._cross + step * self._speed)
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    def numerical_labels(self) -> Array:
        """Return U of the labels that vary."""
        if not self._prepared:
            # No label varies, so there was nothing to solve.
            return np.empty((len(self._Y), 0))
        labels: Array = self.U
        return labels


def _sums(fixed: Array, shares: Array) -> Proposal:
    return Proposal(fixed.sum(axis=0), np.broadcast_to(shares, fixed.shape).sum(axis=0))
