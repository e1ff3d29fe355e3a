"""A point of the joint search, with the products that Eq. (9) and its gradient are made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg.blas import get_blas_funcs

from lemll.objective import LemllPoint, gap_from_gradient_parts, row_norms, tube_loss
from lemll.solvers._features import CentredFeatures
from lemll.solvers._line_search import exact_step

__all__ = ["Direction", "Operators", "Point", "Weights"]

Array = npt.NDArray[Any]


class Weights(NamedTuple):
    """The parameters of Eq. (9)."""

    alpha: float
    beta: float
    gamma: float
    epsilon: float


class Operators:
    """The data of Eq. (9) in one precision, as products.

    Attributes
    ----------
    features : CentredFeatures
        ``Xt = [X - mean, 1]``.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels.
    roughness : ndarray of shape (n_samples,)
        Diagonal of M.
    """

    def __init__(self, X: Any, Y: Array, W: Any, dtype: npt.DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self.features = CentredFeatures(X, self.dtype)
        self.Y = Y.astype(self.dtype)
        identity = sparse.eye_array(len(Y), format="csr", dtype=np.float64)
        difference = sparse.csr_array(identity - W)
        self.roughness: Array = difference.power(2).sum(axis=0)
        self._difference: Any = difference.astype(self.dtype)
        # Rows of a CSR array are read in order, those of its transpose are not.
        self._transposed: Any = self._difference.T.tocsr()

    def rebuild_error(self, U: Array) -> Array:
        """``(I - W) U``."""
        product: Array = self._difference @ U
        return product

    def smoothness(self, U: Array) -> Array:
        """``M U``."""
        product: Array = self._transposed @ self.rebuild_error(U)
        return product


class Direction:
    """A change of the point, with the products that follow from it linearly.

    Attributes
    ----------
    stack : ndarray of shape (3, n_samples, n_labels)
        Change of ``U``, of ``Xi = U - Xt V`` and of ``C = beta (U - Y) + gamma M U``.
    V : ndarray of shape (n_features + 1, n_labels)
        Change of ``[Theta'; b']``.
    """

    def __init__(self, stack: Array, V: Array) -> None:
        self.stack, self.V = stack, V

    def turn(self, share: float, towards: Direction) -> None:
        """Become ``share * self + towards``."""
        self.stack *= share
        self.stack += towards.stack
        self.V *= share
        self.V += towards.V


class Point:
    """``(U, V)`` with ``Xi = U - Xt V``, ``C = beta (U - Y) + gamma M U`` and the objective.

    All three arrays change linearly along a line, so a step costs no product. `refresh`
    computes them anew.

    Parameters
    ----------
    operators : Operators
        The data, which set the precision.
    weights : Weights
        Parameters of Eq. (9).
    start : LemllPoint
        Where to start.
    """

    def __init__(self, operators: Operators, weights: Weights, start: LemllPoint) -> None:
        U, coef, intercept = start
        self.operators, self.weights = operators, weights
        features = operators.features
        self.stack = np.empty((3, *U.shape), dtype=operators.dtype)
        self.U, self.residuals, self.label_gradient = self.stack
        self.U[...] = U
        self.V = np.empty((features.n_features + 1, U.shape[1]), dtype=operators.dtype)
        self.V[:-1] = coef.T
        self.V[-1] = intercept + coef @ features.mean
        self._axpy = get_blas_funcs("axpy", (self.stack,))
        self.refresh()

    @property
    def theta(self) -> Array:
        """``Theta'``, of shape (n_features, n_labels)."""
        return self.V[:-1]

    def unknowns(self) -> LemllPoint:
        """``(U, Theta, b)`` in float64, for the features as they were given."""
        theta = self.theta.astype(np.float64)
        intercept = self.V[-1] - self.operators.features.mean @ theta
        return LemllPoint(self.U.astype(np.float64), np.ascontiguousarray(theta.T), intercept)

    def refresh(self) -> None:
        """Compute the products and the objective from U and V."""
        alpha, beta, gamma, epsilon = self.weights
        np.subtract(self.U, self.operators.features.times(self.V), out=self.residuals)
        change = self.U - self.operators.Y
        rough = self.operators.rebuild_error(self.U)
        self.label_gradient[...] = beta * change + gamma * self.operators.smoothness(self.U)
        self.objective = (
            float(tube_loss(row_norms(self.residuals), epsilon).sum())
            + alpha * _square(self.theta)
            + beta * _square(change)
            + gamma * _square(rough)
        )

    def certified_gap(self) -> float:
        """Absolute duality gap from the products at hand."""
        alpha, beta, _, epsilon = self.weights
        return gap_from_gradient_parts(
            self.residuals,
            self.label_gradient,
            self.theta,
            lambda Z: self.operators.features.transposed_times(Z)[:-1],
            alpha=alpha,
            beta=beta,
            epsilon=epsilon,
        )

    def descend(self, direction: Direction) -> bool:
        """Step against `direction` to the lowest point of the line; False if it only rises."""
        alpha = self.weights.alpha
        moved_U, moved_residuals, moved_gradient = direction.stack
        found = exact_step(
            np.einsum("ij,ij->i", self.residuals, self.residuals),
            -np.einsum("ij,ij->i", self.residuals, moved_residuals),
            np.einsum("ij,ij->i", moved_residuals, moved_residuals),
            linear=-alpha * float(np.vdot(self.theta, direction.V[:-1]))
            - float(np.vdot(self.label_gradient, moved_U)),
            quadratic=alpha * _square(direction.V[:-1]) + float(np.vdot(moved_U, moved_gradient)),
            epsilon=self.weights.epsilon,
        )
        if found.step == 0:
            return False
        for mine, theirs in ((self.stack, direction.stack), (self.V, direction.V)):
            self._axpy(theirs.ravel(), mine.reshape(-1), a=-found.step)
        self.objective -= found.decrease
        return True


def _square(array: Array) -> float:
    return float(np.vdot(array, array))
