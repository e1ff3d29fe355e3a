"""An approximate inverse of the Hessian of Eq. (9).

With the tube weights set to 1 (the true curvature of the tube loss along the residual, and a bound
of it in all other directions), half the Hessian in ``(U, V)``, ``V = [Theta'; b']``, is::

    [ T     -Xt             ]        T = (1 + beta) I + gamma M
    [ -Xt'  Xt'Xt + alpha R ]        R = diag(1, .., 1, 0), b being free

and eliminating U leaves ``S = alpha R + Xt' (I - T^-1) Xt``. Two facts make this cheap:

* T is well conditioned once its rows are scaled by its diagonal: a few terms of a Chebyshev
  series give ``T^-1`` well enough, at two sparse products each.
* On the span of X one number will do: with M replaced by the mean of its diagonal there, T is
  ``1 + kappa`` and S is ``kappa / (1 + kappa) Xc'Xc + alpha I``, so that one Gram matrix serves all
  parameters. X is smoother than that along its own neighbourhoods, but of the two errors
  possible this is the cheap one: smaller values cost iterations on every data set tried. On the
  ones M is zero, and kappa is beta exactly.
"""

from __future__ import annotations

import math

import numpy as np

from lemll._types import Array
from lemll.objective import row_norms, tube_weights
from lemll.solvers._point import Direction, Operators, Point, Weights

__all__ = ["Preconditioner"]


MAX_TERMS = 8


class Preconditioner:
    """Turns the gradient at a point into a direction.

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
        alpha, beta, gamma, _ = weights
        kappa = beta + gamma * float(operators.roughness.mean())
        self._on_features = 1 / (1 + kappa)
        # Of the ones kappa is beta, and 1 - 1 / (1 + beta) would lose the digits of a small one.
        self._on_ones, self._kept_on_ones = 1 / (1 + beta), beta / (1 + beta)
        operators.model.factorise(kappa / (1 + kappa), alpha)
        self._series = series_for(operators, beta, gamma)
        self.decrement = self.conjugacy = 0.0
        self._last: tuple[Array, Array, Array] | None = None

    def direction(self, point: Point) -> Direction:
        """Return ``P^-1 g`` at `point`, with its products; also set the two scalars.

        With ``gU = A + C`` (A the pull of the tube) and ``gV = alpha R V - Xt'A``, the model moves
        by ``dV = S^-1 (gV + Xt' gU / (1 + kappa))`` and the labels by
        ``dU = T^-1 gU + Xt dV / (1 + kappa)``.
        """
        alpha, beta, gamma, epsilon = self._weights
        model = self._operators.model
        pull = point.residuals * tube_weights(row_norms(point.residuals), epsilon)[:, None]
        label_part = pull + point.label_gradient
        label_step = self._label_step(label_part)
        # on_ones (A + C) - A, summed over the rows, without its cancellation.
        label_sums, pull_sums = point.label_gradient.sum(axis=0), pull.sum(axis=0)
        intercept_part = self._on_ones * label_sums - self._kept_on_ones * pull_sums
        force = self._on_features * label_part
        force -= pull
        V, image, model_part = model.solve(alpha, point.V, force)
        V[-1] = intercept_part / (self._kept_on_ones * len(pull))

        def inner(label_part: Array, model_part: Array, intercept_part: Array) -> float:
            return (
                float(np.vdot(label_part, label_step))
                + model.force_inner(model_part, V, image)
                + float(intercept_part @ V[-1])
            )

        last_decrement = self.decrement
        self.decrement = inner(label_part, model_part, intercept_part)
        if self._last is not None and last_decrement > 0:
            kept = (self.decrement - inner(*self._last)) / last_decrement
            self.conjugacy = max(0.0, kept)
        self._last = label_part, model_part, intercept_part
        stack = np.empty_like(point.stack)
        U, residuals, label_gradient = stack
        np.multiply(image, self._on_features, out=U)
        U += label_step
        U += self._on_ones * V[-1]
        np.subtract(U, image, out=residuals)
        residuals -= V[-1]
        np.multiply(U, beta, out=label_gradient)
        if gamma > 0:
            rough = self._operators.smoothness @ U
            rough *= gamma
            label_gradient += rough
        return Direction(stack, V)

    def _label_step(self, label_part: Array) -> Array:
        """``T^-1 gU``; should the series prove not to be positive, repair it first."""
        step = self._series.apply(label_part)
        while float(np.vdot(label_part, step)) < 0:
            # The bound of the spectrum was too low. Directions of the old series are worthless.
            self._operators.raise_roughness_bound()
            self._series = series_for(self._operators, self._weights.beta, self._weights.gamma)
            self._last, self.conjugacy = None, 0.0
            step = self._series.apply(label_part)
        return step


def series_for(operators: Operators, beta: float, gamma: float) -> ChebyshevSeries:
    """Return the series, or the last one if it was for the same: alpha has no part in it."""
    key = beta, gamma, operators.roughness_bound
    if operators.last_series is None or operators.last_series[0] != key:
        operators.last_series = key, ChebyshevSeries(operators, beta, gamma)
    series: ChebyshevSeries = operators.last_series[1]
    return series


class ChebyshevSeries:
    """The inverse of ``T = (1 + beta) I + gamma M`` by Chebyshev iteration from zero.

    A fixed polynomial in ``D^-1 T``, D the diagonal of T, so the map is linear, symmetric and,
    as long as the upper bound of the spectrum holds, positive definite.
    """

    def __init__(self, operators: Operators, beta: float, gamma: float) -> None:
        self._operators = operators
        shift = 1 + beta
        diagonal = shift + gamma * operators.roughness
        self._inverse_diagonal = (1 / diagonal).astype(operators.dtype)[:, None]
        # D^-1 T = shift D^-1 + (gamma D^-1 (I-W)') (I-W)
        self._scaled_shift = shift * self._inverse_diagonal
        self._scaled_adjoint = operators.smoothness.scaled_adjoint(gamma / diagonal)
        # M <= top diag(M), so D^-1 T stays below the same bound mixed with 1.
        roughest = gamma * float(operators.roughness.max())
        top = (shift + operators.roughness_bound * roughest) / (shift + roughest)
        # The ones, smoothest of all, have this Rayleigh quotient.
        bottom = shift * len(diagonal) / float(diagonal.sum())
        self.n_terms = min(MAX_TERMS, max(1, round(0.9 * math.sqrt(top / bottom))))
        bottom = max(bottom, top / self.n_terms**2) if self.n_terms > 1 else bottom
        self._centre, self._radius = (top + bottom) / 2, (top - bottom) / 2

    def apply(self, right: Array) -> Array:
        """Approximate ``T^-1 right``."""
        residual: Array = right * self._inverse_diagonal
        step = residual / self._centre
        solution: Array = step.copy() if self.n_terms > 1 else step
        ratio = self._radius / self._centre
        for _ in range(self.n_terms - 1):
            residual -= self._scaled_adjoint @ self._operators.smoothness.residual(step)
            residual -= self._scaled_shift * step
            next_ratio = 1 / (2 * self._centre / self._radius - ratio)
            step *= next_ratio * ratio
            residual_share = 2 * next_ratio / self._radius
            step += residual_share * residual
            ratio = next_ratio
            solution += step
        return solution
