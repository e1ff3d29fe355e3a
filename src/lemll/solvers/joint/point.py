"""A point of the joint search, with all products that Eq. (9) and its gradient need."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh_tridiagonal
from scipy.linalg.blas import get_blas_funcs

from lemll._types import Array, Features, SparseMatrix
from lemll.objective import (
    GapParts,
    LemllPoint,
    exact_step,
    objective_value,
    row_norms,
    tube_loss,
    weighed,
)
from lemll.solvers.linear.features import features_for
from lemll.solvers.linear.models import Model, model_for
from lemll.topology import ReconstructionOperator

__all__ = ["Bound", "Direction", "LabelOperators", "Operators", "Point", "Weights", "tight_gap"]

# The Lanczos iteration finds the largest eigenvalue in a few steps. The margin covers the small
# increase that further steps would bring.
LANCZOS_STEPS = 8
LANCZOS_MARGIN = 1.05
# If the next off-diagonal entry is this small, the iteration has found the eigenvalue.
LANCZOS_END = 1e-3
# Each step subtracts its decrease from the objective, so the absolute rounding error stays that of
# the first value. When the objective has fallen to this share, four digits are lost, and it is
# recomputed.
LARGEST_FALL = 1e-4


class Weights(NamedTuple):
    """The parameters of Eq. (9)."""

    alpha: float
    beta: float
    gamma: float
    epsilon: float


class Products(NamedTuple):
    """The products that Eq. (9) consists of: ``U``, ``Xi = U - Xt V`` and ``M U``."""

    labels: Array
    residuals: Array
    rough: Array


class LabelOperators:
    """The data of the label terms of Eq. (9), in one precision, with bounds that are needed.

    Attributes
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels.
    cell_weight : ndarray of shape (n_samples, n_labels) or None
        The weights c of the cells of Y; None means 1.
    smoothness : ReconstructionOperator
        M.
    roughness : ndarray of shape (n_samples,)
        Diagonal of M, in float64.
    """

    def __init__(
        self, Y: Array, W: SparseMatrix, dtype: npt.DTypeLike, cell_weight: Array | None = None
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.cell_weight = None if cell_weight is None else cell_weight.astype(self.dtype)
        self.Y = Y.astype(self.dtype, copy=False)
        exact = ReconstructionOperator.of(W)
        self.roughness: Array = exact.diagonal()
        self.smoothness = exact.astype(self.dtype)
        # The last Chebyshev series. The preconditioner can reuse it for the next parameters.
        self.last_series: tuple[tuple[float, ...], Any] | None = None

    @cached_property
    def roughness_bound(self) -> float:
        """An upper bound of the largest eigenvalue of ``diag(M)^-1 M``, by Lanczos iteration."""
        scale = np.zeros(len(self.Y), dtype=self.dtype)
        root = np.sqrt(self.roughness)
        np.divide(1, root, out=scale, where=root > 0, casting="same_kind")
        # A start vector without a regular pattern, but reproducible.
        vector = np.cos(np.arange(1, len(scale) + 1) ** 2.0).astype(self.dtype)
        vector /= math.sqrt(_square(vector))
        last, off = np.zeros_like(vector), 0.0
        diagonal: list[float] = []
        beside: list[float] = []
        for _ in range(LANCZOS_STEPS):
            image = scale * (self.smoothness @ (scale * vector))
            diagonal.append(float(image @ vector))
            image -= diagonal[-1] * vector + off * last
            off = math.sqrt(_square(image))
            beside.append(off)
            if off <= LANCZOS_END:
                break
            last, vector = vector, image / off
        values, vectors = eigh_tridiagonal(diagonal, beside[:-1])
        # The distance from the Ritz value to an eigenvalue is at most its residual, so add it.
        return max(1.0, LANCZOS_MARGIN * float(values[-1] + off * abs(vectors[-1, -1])))

    def raise_roughness_bound(self) -> None:
        """Increase `roughness_bound` after a product has proven that it is too low."""
        self.roughness_bound *= 1.5


class Operators(LabelOperators):
    """The data of Eq. (9) in one precision, as operators.

    Attributes
    ----------
    model : Model
        The linear model on the centred features.
    """

    def __init__(
        self,
        X: Features,
        Y: Array,
        W: SparseMatrix,
        dtype: npt.DTypeLike,
        cell_weight: Array | None = None,
    ) -> None:
        super().__init__(Y, W, dtype, cell_weight)
        self.model: Model = model_for(features_for(X, self.dtype))


class Direction:
    """A change of the point, with the change of its products, which depend on it linearly.

    Attributes
    ----------
    stack : ndarray of shape (3, n_samples, n_labels)
        Change of ``U``, of ``Xi = U - Xt V`` and of ``C = beta c (U - Y) + gamma M U``.
    V : ndarray of shape (n_features + 1, n_labels)
        Change of ``[Theta'; b']``.
    """

    def __init__(self, stack: Array, V: Array) -> None:
        self.stack, self.V = stack, V

    def turn(self, share: float, towards: Direction) -> None:
        """Replace this direction by ``share * self + towards``."""
        self.stack *= share
        self.stack += towards.stack
        self.V *= share
        self.V += towards.V


class Point:
    """``(U, V)`` with ``Xi = U - Xt V``, ``C = beta c (U - Y) + gamma M U`` and the objective.

    All three arrays change linearly along a line, so a step does not need a matrix product.
    `refresh` recomputes them when too many digits are lost.

    Parameters
    ----------
    operators : Operators
        The data. They determine the precision.
    weights : Weights
        Parameters of Eq. (9).
    start : LemllPoint
        The initial point.
    dual_coef : ndarray of shape (n_samples, n_labels), optional
        B of ``Theta' = Xc' B`` at the initial point, if the model stores coefficients of samples.
    """

    def __init__(
        self,
        operators: Operators,
        weights: Weights,
        start: LemllPoint,
        dual_coef: Array | None = None,
    ) -> None:
        U = start.numerical_labels
        self.operators, self.weights, self.dtype = operators, weights, operators.dtype
        self._model = operators.model
        self.stack = np.empty((3, *U.shape), dtype=operators.dtype)
        self.U, self.residuals, self.label_gradient = self.stack
        self.U[...] = U
        self.V = self._model.encode(start, dual_coef)
        # Z/2 of the last certificate. The solution returns it as the proof of its gap.
        self.half_dual: Array | None = None
        self._axpy = get_blas_funcs("axpy", (self.stack,))
        self.refresh()

    def reweigh(self, weights: Weights, U: Array, V: Array) -> None:
        """Move to other parameters and unknowns, and recompute the products."""
        self.weights = weights
        self.U[...] = U
        self.V[...] = V
        self.refresh()

    def settle(self, weights: Weights, V: Array, products: Products) -> None:
        """Move to other parameters and to unknowns whose products are already known."""
        alpha, beta, gamma, epsilon = self.weights = weights
        labels, residuals, rough = products
        self.U[...], self.V[...], self.residuals[...] = labels, V, residuals
        change = labels - self.operators.Y
        weighed_change = weighed(change, self.operators.cell_weight)
        np.multiply(weighed_change, beta, out=self.label_gradient)
        self.label_gradient += gamma * rough
        self.objective = self._fresh_objective = (
            float(tube_loss(row_norms(residuals), epsilon).sum())
            + alpha * self._model.inner(V, V, labels - residuals)
            + beta * float(np.vdot(change, weighed_change))
            + gamma * float(np.vdot(labels, rough))
        )

    def products(self) -> Products:
        """Compute the products of Eq. (9) from U and V."""
        image = self._model.image(self.V)
        return Products(self.U, self.U - image, self.operators.smoothness @ self.U)

    def unknowns(self) -> LemllPoint:
        """Return ``(U, Theta, b)`` in float64, for the original features."""
        return LemllPoint(self.U.astype(np.float64), *self._model.decode(self.V))

    def dual_coef(self) -> Array | None:
        """Return B of ``Theta' = Xc' B``, if the model stores coefficients of samples."""
        return self._model.dual_coef(self.V)

    def refresh(self) -> None:
        """Compute the products and the objective from U and V."""
        _, beta, gamma, _ = self.weights
        image = self._model.image(self.V)
        np.subtract(self.U, image, out=self.residuals)
        change = self.U - self.operators.Y
        smoothness = self.operators.smoothness
        rebuilt = smoothness.residual(self.U)
        cell_weight = self.operators.cell_weight
        self.label_gradient[...] = beta * weighed(change, cell_weight)
        self.label_gradient += gamma * smoothness.adjoint(rebuilt)
        self.objective = objective_value(
            self.residuals,
            self._model.inner(self.V, self.V, image),
            change,
            rebuilt,
            **self.weights._asdict(),
            cell_weight=cell_weight,
        )
        self._fresh_objective = self.objective

    def certified_gap(self, enough: float = 0.0) -> float:
        """Return the absolute gap; try dual points until the gap is at most `enough`."""
        found = tight_gap(self._parts(), self._model, self.weights.alpha, self.V, enough)
        self.half_dual = found.half_dual
        return found.gap

    def gap_again(self) -> float:
        """Return the absolute gap of the last dual point, from the current products."""
        if self.half_dual is None:
            return self.certified_gap()
        parts, half_dual = self._parts(), self.half_dual
        if self.operators.cell_weight is not None:
            # The label gradient has changed, and a feasible dual point depends on it.
            half_dual = parts.feasible(half_dual)
        return parts.gap(half_dual, self._model.misfit(self.weights.alpha, self.V, half_dual))

    def _parts(self) -> GapParts:
        alpha, beta, _, epsilon = self.weights
        return GapParts(
            self.residuals,
            self.label_gradient,
            alpha=alpha,
            beta=beta,
            epsilon=epsilon,
            cell_weight=self.operators.cell_weight,
        )

    def descend(self, direction: Direction) -> bool:
        """Step against `direction` to the minimum on the line; return False if it only rises."""
        alpha = self.weights.alpha
        moved_U, moved_residuals, moved_gradient = direction.stack
        image = moved_U - moved_residuals
        found = exact_step(
            np.einsum("ij,ij->i", self.residuals, self.residuals),
            -np.einsum("ij,ij->i", self.residuals, moved_residuals),
            np.einsum("ij,ij->i", moved_residuals, moved_residuals),
            linear=-alpha * self._model.inner(self.V, direction.V, image)
            - float(np.vdot(self.label_gradient, moved_U)),
            quadratic=alpha * self._model.inner(direction.V, direction.V, image)
            + float(np.vdot(moved_U, moved_gradient)),
            epsilon=self.weights.epsilon,
        )
        if found.step == 0:
            return False
        # BLAS axpy updates in place; NumPy would allocate an array for step * direction.
        for mine, theirs in ((self.stack, direction.stack), (self.V, direction.V)):
            self._axpy(theirs.ravel(), mine.reshape(-1), a=-found.step)
        self.objective -= found.decrease
        if self.objective < LARGEST_FALL * self._fresh_objective:
            self.refresh()
        return True


def _square(array: Array) -> float:
    return float(np.vdot(array, array))


class Bound(NamedTuple):
    """A certified gap, and Z/2 of the dual point that proves it."""

    gap: float
    half_dual: Array


def tight_gap(parts: GapParts, model: Model, alpha: float, V: Array, enough: float) -> Bound:
    """Bound the gap of Eq. (9) by better and better dual points, until one is good enough.

    The first two dual points come from the point itself and cost one product each. The gap is
    convex in Z, and the two have different weaknesses. So the best point between them often has a
    gap several times smaller, and it costs no product. Its remaining gap comes mostly from the
    force: Z is not the dual point of the model. The system that preconditions the search gives a
    change of Z that makes the force small. This costs three more products.

    Parameters
    ----------
    parts : GapParts
        The point.
    model : Model
        The model, with a factorised system.
    alpha : float
        Weight of ``|Theta|_F^2``.
    V : ndarray
        The unknowns of the model.
    enough : float
        Stop as soon as the gap is at most this.

    Returns
    -------
    Bound
        The best bound found.
    """
    tried: list[Bound] = []

    def good_enough(half_dual: Array, square: float) -> bool:
        tried.append(Bound(parts.gap(half_dual, square), half_dual))
        return tried[-1].gap <= enough

    first, second = parts.from_tube(), parts.from_labels()
    force, image = model.force(alpha, V, first)
    square = float(np.vdot(force, image))
    if good_enough(first, square):
        return tried[-1]
    other, other_image = model.force(alpha, V, second)
    squares = square, float(np.vdot(force, other_image)), float(np.vdot(other, other_image))
    if good_enough(second, squares[2]):
        return tried[-1]
    share = parts.best_between(first, second, squares)
    between = (1 - share) * first + share * second
    force = (1 - share) * force + share * other
    image = (1 - share) * image + share * other_image
    if not good_enough(between, float(np.vdot(force, image))):
        change = model.reconcile(alpha, force)
        if change is not None:
            change += between
            made = parts.feasible(change)
            # The factor of the system is rounded, and may be one of a slightly greater matrix. So
            # the force that is left is measured, not derived from the system.
            good_enough(made, model.misfit(alpha, V, made))
    return min(tried, key=lambda bound: bound.gap)
