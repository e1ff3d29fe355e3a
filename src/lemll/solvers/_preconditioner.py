"""An approximate Newton matrix of Eq. (9) that is cheap to invert: an arrow.

With the tube weights set to 1 and ``M = (I-W)'(I-W)`` replaced by its diagonal m, half the Hessian
of Eq. (9) in ``(U, V)``, ``V = [Theta'; b']``, is::

    [ T     -Xt             ]        T = diag(t),  t = 1 + beta + gamma m
    [ -Xt'  Xt'Xt + alpha R ]        R = diag(1, .., 1, 0), b being free

Weight 1 is the true curvature of the tube loss along the residual, and a bound of it in all
other directions. Eliminating U leaves the Schur complement ``S = Xt' diag(1 - 1/t) Xt + alpha R``,
which is factorised once.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from lemll.objective import row_norms, tube_weights
from lemll.solvers._features import CentredFeatures
from lemll.solvers._point import Direction, Operators, Point, Weights

__all__ = ["Arrow"]

Array = npt.NDArray[Any]

# Up to this order a dense matrix is factorised; 8000 takes half a gigabyte.
MAX_DENSE_ORDER = 8000


class Arrow:
    """The preconditioner of one solve: turns the gradient at a point into a direction.

    Parameters
    ----------
    operators : Operators
        The data.
    weights : Weights
        Parameters of Eq. (9).

    Attributes
    ----------
    decrement : float
        ``<g, P^-1 g>`` of the last gradient g (halved): about the distance of F to its minimum.
    conjugacy : float
        Share of the old direction to keep, by the rule of Polak and Ribiere, not below 0.
    """

    def __init__(self, operators: Operators, weights: Weights) -> None:
        self._operators, self._weights = operators, weights
        curvature = 1 + weights.beta + weights.gamma * operators.roughness
        self._inverse_curvature = (1 / curvature).astype(operators.dtype)[:, None]
        self._solve = schur_inverse(operators.features, 1 - 1 / curvature, weights.alpha)
        self.n_linear_solves = self._solve.n_linear_solves
        self.decrement = self.conjugacy = 0.0
        self._last: tuple[Array, Array] | None = None

    def direction(self, point: Point) -> Direction:
        """Return ``P^-1 g`` at `point`, with its products; also set the two scalars.

        With ``gU = A + C`` (A the pull of the tube) and ``gV = alpha R V - Xt'A``, eliminating U
        gives ``dV = S^-1 (gV + Xt' T^-1 gU)`` and ``dU = T^-1 (gU + Xt dV)``, and scalar products
        in the metric of P^-1 need neither gV nor a further product with X.
        """
        alpha, beta, gamma, epsilon = self._weights
        features = self._operators.features
        pull = point.residuals * tube_weights(row_norms(point.residuals), epsilon)[:, None]
        label_part = pull + point.label_gradient
        scaled = label_part * self._inverse_curvature
        np.subtract(scaled, pull, out=pull)
        model_part = features.transposed_times(pull)
        model_part[:-1] += alpha * point.theta
        V = self._solve(model_part)
        stack = np.empty_like(point.stack)
        U, residuals, label_gradient = stack
        moved = features.times(V)
        np.multiply(moved, self._inverse_curvature, out=U)
        U += scaled
        np.subtract(U, moved, out=residuals)
        np.multiply(U, beta, out=label_gradient)
        if gamma > 0:
            label_gradient += gamma * self._operators.smoothness(U)
        last_decrement = self.decrement
        self.decrement = float(np.vdot(model_part, V)) + float(np.vdot(label_part, scaled))
        if self._last is not None and last_decrement > 0:
            overlap = float(np.vdot(self._last[0], V)) + float(np.vdot(self._last[1], scaled))
            self.conjugacy = max(0.0, (self.decrement - overlap) / last_decrement)
        self._last = model_part, label_part
        return Direction(stack, V)


class SchurInverse(Protocol):
    """The inverse of S, or of something near it."""

    n_linear_solves: int

    def __call__(self, right: Array) -> Array:
        """Solve ``S V = right``."""
        ...


class _FeatureForm:
    """S itself, of order d + 1."""

    n_linear_solves = 1

    def __init__(self, features: CentredFeatures, weights: Array, alpha: float) -> None:
        system = features.gram(weights)
        system.flat[: -1 : len(system) + 1] += alpha
        self._factor = _stable_factor(system, features.dtype)

    def __call__(self, right: Array) -> Array:
        return np.asarray(cho_solve(self._factor, right, check_finite=False))


class _SampleForm:
    """S by the Woodbury identity, of order n, for more features than samples.

    The penalty of b is needed to write the inverse; it is taken tiny beside its curvature.
    """

    n_linear_solves = 1

    def __init__(self, features: CentredFeatures, weights: Array, alpha: float) -> None:
        self._features = features
        penalty = np.full(features.n_features + 1, alpha, dtype=np.float64)
        penalty[-1] = 1e-3 * min(1.0, float(weights.sum()))
        system = features.outer_gram()
        # Xt diag(penalty)^-1 Xt' + diag(weights)^-1; the ones of Xt were counted with weight 1.
        system -= 1.0
        system /= alpha
        system += 1.0 / penalty[-1]
        system.flat[:: len(system) + 1] += 1.0 / weights
        self._penalty = penalty.astype(features.dtype)[:, None]
        self._factor = _stable_factor(system, features.dtype)

    def __call__(self, right: Array) -> Array:
        scaled = right / self._penalty
        inner = cho_solve(self._factor, self._features.times(scaled), check_finite=False)
        correction = self._features.transposed_times(np.ascontiguousarray(inner))
        scaled -= correction / self._penalty
        return np.asarray(scaled)


class _DiagonalForm:
    """The diagonal of S, where both n and d are too large for a dense matrix."""

    n_linear_solves = 0

    def __init__(self, features: CentredFeatures, weights: Array, alpha: float) -> None:
        diagonal = features.gram_diagonal(weights)
        diagonal[:-1] += alpha
        self._inverse = (1.0 / diagonal).astype(features.dtype)[:, None]

    def __call__(self, right: Array) -> Array:
        return np.asarray(self._inverse * right)


def schur_inverse(features: CentredFeatures, weights: Array, alpha: float) -> SchurInverse:
    """Prepare ``S^-1`` for ``S = Xt' diag(weights) Xt + alpha R`` in the cheapest form.

    Parameters
    ----------
    features : CentredFeatures
        ``Xt``.
    weights : ndarray of shape (n_samples,)
        Positive weights ``1 - 1/t``.
    alpha : float
        Penalty of Theta, positive.

    Returns
    -------
    SchurInverse
        A callable that solves with S.
    """
    if min(features.n_samples, features.n_features) > MAX_DENSE_ORDER:
        return _DiagonalForm(features, weights, alpha)
    if features.n_samples <= features.n_features:
        return _SampleForm(features, weights, alpha)
    return _FeatureForm(features, weights, alpha)


def _stable_factor(system: Array, dtype: Any) -> tuple[Array, bool]:
    """Cholesky factor of a positive definite matrix, its diagonal raised if rounding asks."""
    if not np.isfinite(system).all():
        raise ValueError(
            "the squares of the features overflow; divide X by its largest absolute value."
        )
    jitter = 0.0
    diagonal = system.diagonal().copy()
    while True:
        try:
            factor, lower = cho_factor(system.T, lower=True, check_finite=False)
        except LinAlgError:
            jitter = max(10 * jitter, 1e-15)
            system.flat[:: len(system) + 1] = diagonal * (1 + jitter)
        else:
            return factor.astype(dtype, copy=False), lower
