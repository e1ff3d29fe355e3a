"""The best combination of solutions for other parameters: where a search should begin.

The minimisers of Eq. (9) move smoothly with the parameters, so those for neighbouring ones span
nearly all that the next is made of. Within their span Eq. (9) has a handful of unknowns, and
everything it is made of is known: products with X and M of a combination are the combination of
the products. Often the best combination is good enough to be certified at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lemll._types import Array
from lemll.objective import row_norms, tube_weights
from lemll.solvers.joint.point import Point, Products, Weights

__all__ = ["SolutionSpan"]

# Solutions kept: more of them fit better, and cost more.
MAX_KEPT = 32
# With this much memory for them, at most.
MAX_BYTES = 1 << 28
# Steps towards the best combination, and the share of the slope at which they may end.
MAX_STEPS = 10
SLOPE_SHARE = 1e-2


class SolutionSpan:
    """Solutions for some parameters, and the combinations of them.

    Parameters
    ----------
    point : Point
        Of the problem; it lends its sizes and its model.
    """

    def __init__(self, point: Point) -> None:
        self._model, self._Y = point.operators.model, point.operators.Y
        one = 3 * point.U.size + point.V.size
        size = max(1, min(MAX_KEPT, MAX_BYTES // (one * point.U.itemsize)))
        # U, Xi and M U of every solution, and V.
        self._products = np.zeros((3, size, point.U.size), dtype=point.U.dtype)
        self._models = np.zeros((size, *point.V.shape), dtype=point.V.dtype)
        # Inner products of the labels, the residuals, the rough parts and the models.
        self._grams = np.zeros((4, size, size))
        self._with_Y = np.zeros(size)
        self._places: list[Array] = []
        self._coefficients = np.zeros(size)

    def add(self, point: Point, products: Products) -> None:
        """Keep a solution, in the place of the furthest one if there is no room."""
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
        row[0] = labels[:count] @ labels[slot]
        row[1] = residuals[:count] @ residuals[slot]
        row[2] = labels[:count] @ rough[slot]
        row[3] = [self._model.inner(V, point.V, image) for V in self._models[:count]]
        self._grams[:, slot, :count] = self._grams[:, :count, slot] = row
        self._with_Y[slot] = labels[slot] @ self._Y.ravel()
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
        """Minimise Eq. (9) over the combinations, in the precision that they have.

        Its terms but the tube are quadratic, and the tube loss has at most the curvature of a
        square: each step minimises the quadratic function with that curvature, and descends.
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
    """Where parameters are, for what is near and what is far."""
    # gamma may be 0, which is as far as any: beside beta so small a one makes no difference.
    return np.log([weights.alpha, weights.beta, max(weights.gamma, 1e-6 * weights.beta)])


def _pseudo_inverse(matrix: Array, dtype: npt.DTypeLike) -> Array:
    """Inverse on the directions that rounding leaves of a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    sound = values > len(matrix) * 10 * float(np.finfo(dtype).eps) * values[-1]
    return np.asarray((vectors[:, sound] / values[sound]) @ vectors[:, sound].T)
