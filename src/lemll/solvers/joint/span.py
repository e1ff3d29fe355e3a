"""The best linear combination of earlier solutions, used as the initial point of a search.

The minimisers of Eq. (9) change smoothly with the parameters. So the next minimiser is almost a
linear combination of the minimisers for neighbouring parameters. Within the span of these, Eq. (9)
has only a few unknowns. All products are known, because the products of a combination are the
combination of the products. Often the best combination is already good enough to be certified.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lemll._types import Array
from lemll.objective import row_norms, tube_weights, weighed
from lemll.solvers.joint.point import Point, Products, Weights

__all__ = ["SolutionSpan"]

# Largest number of solutions kept. More solutions give a better fit but cost more time.
MAX_KEPT = 32
# Largest memory of the kept solutions.
MAX_BYTES = 1 << 28
# Largest number of steps to the best combination. They stop early when the predicted decrease has
# fallen to SLOPE_SHARE of the first.
MAX_STEPS = 10
SLOPE_SHARE = 1e-2


class SolutionSpan:
    """Solutions for some parameters, and their linear combinations.

    Parameters
    ----------
    point : Point
        A point of the problem, which gives the sizes and the model.
    """

    def __init__(self, point: Point) -> None:
        self._model, self._Y = point.operators.model, point.operators.Y
        self._cell_weight = point.operators.cell_weight
        one = 3 * point.U.size + point.V.size
        size = max(1, min(MAX_KEPT, MAX_BYTES // (one * point.U.itemsize)))
        # U, Xi and M U of every solution; then V of every solution.
        self._products = np.zeros((3, size, point.U.size), dtype=point.U.dtype)
        self._models = np.zeros((size, *point.V.shape), dtype=point.V.dtype)
        # Inner products between all solutions, of the labels, the residuals, M U and the models.
        # With them a step costs products of order `size`; only the tube needs all rows.
        self._grams = np.zeros((4, size, size))
        self._with_Y = np.zeros(size)
        self._places: list[Array] = []
        self._coefficients = np.zeros(size)

    def add(self, point: Point, products: Products) -> None:
        """Keep a solution; if there is no room, replace the one farthest in the parameters."""
        place = _place(point.weights)
        slot = len(self._places)
        if slot == len(self._coefficients):
            slot = int(np.argmax([np.abs(other - place).sum() for other in self._places]))
            self._places[slot] = place
        else:
            self._places.append(place)
        for kept, new in zip(self._products, products, strict=True):
            kept[slot] = new.ravel()
        self._models[slot] = point.V
        labels, residuals, rough = self._products
        image = (labels[slot] - residuals[slot]).reshape(point.U.shape)
        count = len(self._places)
        row = np.empty((4, count))
        heavy = weighed(labels[slot].reshape(point.U.shape), self._cell_weight).ravel()
        row[0] = labels[:count] @ heavy
        row[1] = residuals[:count] @ residuals[slot]
        row[2] = labels[:count] @ rough[slot]
        row[3] = [self._model.inner(V, point.V, image) for V in self._models[:count]]
        self._grams[:, slot, :count] = self._grams[:, :count, slot] = row
        self._with_Y[slot] = heavy @ self._Y.ravel()
        self._coefficients[:] = 0
        self._coefficients[slot] = 1

    def place(self, point: Point, weights: Weights) -> None:
        """Move `point` to the best combination for these parameters."""
        shares = self._best(weights)
        labels, residuals, rough = (
            (shares @ kept[: len(shares)]).reshape(point.U.shape) for kept in self._products
        )
        V = np.tensordot(shares, self._models[: len(shares)], axes=1)
        point.settle(weights, V, Products(labels, residuals, rough))

    def _best(self, weights: Weights) -> Array:
        """Return the combination that minimises Eq. (9), in the precision of the solutions.

        All terms except the tube loss are quadratic. The curvature of the tube loss is at most
        that of a square. Each step minimises the quadratic function with this curvature, which
        lies above Eq. (9). Therefore each step decreases Eq. (9).
        """
        alpha, beta, gamma, epsilon = weights
        count = len(self._places)
        of_labels, of_residuals, of_rough, of_models = self._grams[:, :count, :count]
        quadratic = beta * of_labels + gamma * of_rough + alpha * of_models
        inverse = _pseudo_inverse(quadratic + of_residuals, self._products.dtype)
        kept = self._products[1, :count]
        shares = self._coefficients[:count].copy()
        first = 0.0
        for _ in range(MAX_STEPS):
            residuals = (shares.astype(kept.dtype) @ kept).reshape(self._Y.shape)
            residuals *= tube_weights(row_norms(residuals), epsilon)[:, None]
            slope = quadratic @ shares - beta * self._with_Y[:count] + kept @ residuals.ravel()
            step = inverse @ slope
            fall = float(slope @ step)
            first = first or fall
            if not fall > 0:
                break
            shares -= step
            if fall <= SLOPE_SHARE * first:
                break
        self._coefficients[:count] = shares
        return shares.astype(kept.dtype)


def _place(weights: Weights) -> Array:
    """Return the coordinates of the parameters, in which distances are measured."""
    # Use logarithms, because the grid is geometric. gamma may be 0; compared with beta, any gamma
    # below 1e-6 beta makes no difference, so use that as the smallest value.
    return np.log([weights.alpha, weights.beta, max(weights.gamma, 1e-6 * weights.beta)])


def _pseudo_inverse(matrix: Array, dtype: npt.DTypeLike) -> Array:
    """Return the pseudo-inverse of a positive semi-definite matrix, up to rounding errors."""
    # Neighbouring solutions are almost parallel. Eigenvalues below the rounding error of the inner
    # products have no meaning, and their inverses would only amplify noise.
    values, vectors = np.linalg.eigh(matrix)
    sound = values > len(matrix) * 10 * float(np.finfo(dtype).eps) * values[-1]
    return np.asarray((vectors[:, sound] / values[sound]) @ vectors[:, sound].T)
