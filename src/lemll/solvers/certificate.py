"""The tube loss, the exact line search, and lower bounds of Eq. (9) without a linear solve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lemll._types import Features, FloatArray

MAX_TRIALS = 50
# The line search stops when the slope is this share of the first slope. Near the minimum the
# objective is quadratic, so its remaining error is about the square of this share.
SLOPE_SHARE = 1e-3
# An objective below this share of min(beta, 1) |Y|_F^2 counts as zero.
ZERO_SHARE = 1e-18
# The best point between two dual points is searched on a grid of TRIALS points. Each further round
# refines the grid around the best point.
TRIALS, ROUNDS = 6, 2
TINY = float(np.finfo(np.float64).tiny)


def row_norms(rows: FloatArray) -> FloatArray:
    """Return the Euclidean norm of each row."""
    norms: FloatArray = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


def weighed(cells: FloatArray, cell_weight: FloatArray | None) -> FloatArray:
    """Multiply cells by their weights; None means that all weights are 1."""
    return cells if cell_weight is None else cells * cell_weight


def tube_loss(residual_norms: FloatArray, epsilon: float | FloatArray) -> FloatArray:
    """Return the squared distance to the tube, ``max(0, r - epsilon)^2`` (Eq. 3).

    Parameters
    ----------
    residual_norms : ndarray
        Euclidean norms ``r`` of the rows of residuals.
    epsilon : float or ndarray
        Radius of the tube, or one radius per row.

    Returns
    -------
    ndarray
        The loss of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers.certificate import tube_loss
    >>> tube_loss(np.array([0.25, 0.5, 2.5]), epsilon=0.5)
    array([0., 0., 4.])
    """
    return np.square(np.maximum(residual_norms - epsilon, 0.0))


def tube_weights(residual_norms: FloatArray, epsilon: float | FloatArray) -> FloatArray:
    """Return the weights ``a_i = max(0, r_i - epsilon) / r_i`` of Eq. (14), 0 inside the tube.

    The gradient of the tube loss is ``2 a_i`` times the residual.

    Parameters
    ----------
    residual_norms : ndarray
        Euclidean norms ``r`` of the rows of residuals.
    epsilon : float or ndarray
        Radius of the tube, or one radius per row.

    Returns
    -------
    ndarray
        Weights in [0, 1). With ``epsilon=0`` the weight is 1 for every non-zero residual.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers.certificate import tube_weights
    >>> tube_weights(np.array([0.0, 0.5, 2.0]), epsilon=0.5)
    array([0.  , 0.  , 0.75])
    """
    # The inner `where` avoids a division by zero in rows whose weight is 0 anyway.
    outside = residual_norms > epsilon
    return np.where(outside, 1.0 - epsilon / np.where(outside, residual_norms, 1.0), 0.0)


class LineSearch(NamedTuple):
    """The step along a line (0 if the line does not descend), and the decrease of the objective."""

    step: float
    decrease: float


def exact_step(
    square: FloatArray,
    cross: FloatArray,
    speed: FloatArray,
    *,
    linear: float,
    quadratic: float,
    epsilon: float | FloatArray,
    other: Callable[[float], tuple[float, float]] | None = None,
) -> LineSearch:
    """Minimise Eq. (9) along a line.

    On the line the residuals are ``xi_i + s h_i``. Up to a constant, the objective is
    ``phi(s) = sum_i L(sqrt(square_i + 2 s cross_i + s^2 speed_i)) + 2 s linear + s^2 quadratic``.
    It is convex and continuously differentiable. Newton's method finds the zero of phi' inside a
    bracket.

    Parameters
    ----------
    square, cross, speed : ndarray of shape (n_samples,)
        ``|xi_i|^2``, ``<xi_i, h_i>`` and ``|h_i|^2``.
    linear, quadratic : float
        Half the slope and half the curvature of the quadratic terms of Eq. (9).
    epsilon : float or ndarray of shape (n_samples,)
        Radius of the tube, or one radius per row.
    other : callable, optional
        Returns half the slope and half the curvature of a further convex term at s.

    Returns
    -------
    LineSearch
        The step s and the decrease ``phi(0) - phi(s) >= 0``, without the term `other`.
    """
    start_norms = np.sqrt(square)
    start_loss = np.maximum(start_norms - epsilon, 0.0)
    step, low, high = 0.0, 0.0, np.inf
    norms = start_norms
    first_slope = 0.0
    for trial in range(MAX_TRIALS):
        # The derivative of |xi + s h|^2 / 2 with respect to s.
        drift = cross + step * speed
        safe = np.maximum(norms, epsilon)
        safe[safe == 0] = 1.0  # happens only if epsilon = 0, where every weight is 1
        weights = 1.0 - epsilon / safe
        more_slope, more_curvature = (0.0, 0.0) if other is None else other(step)
        slope = float(weights @ drift) + linear + step * quadratic + more_slope
        if trial == 0:
            first_slope = slope
            if not slope < 0:
                return LineSearch(0.0, 0.0)
        elif abs(slope) <= SLOPE_SHARE * -first_slope:
            break
        if slope < 0:
            low = step
        else:
            high = step
        # Second derivative of the tube loss. Besides `weights @ speed` it has the term
        # (1 - a) (drift / norm)^2, because the weight a itself changes along the line.
        inside = norms <= epsilon
        bend = drift / safe
        bend *= bend
        bend *= 1.0 - weights
        bend[inside] = 0.0
        curvature = float(weights @ speed) + float(bend.sum()) + quadratic + more_curvature
        newton = step - slope / curvature if curvature > 0 else np.inf
        # The curvature jumps at the edge of the tube, so a Newton step may leave the bracket. Then
        # double the step, or bisect if both ends of the bracket are known.
        if not low < newton < high:
            newton = 2 * step + 1.0 if np.isinf(high) else (low + high) / 2
        if newton in (low, high):
            break
        step = newton
        norms = np.sqrt(np.maximum(square + step * (2 * cross + step * speed), 0.0))
    loss = np.maximum(norms - epsilon, 0.0)
    # Use a^2 - b^2 = (a - b)(a + b) for each row. The decrease may be tiny compared with F, and
    # the difference of two sums would lose its digits.
    decrease = float((start_loss - loss) @ (start_loss + loss)) - step * (
        2 * linear + step * quadratic
    )
    # phi is convex and its slope at 0 is negative. A negative decrease is a rounding error.
    return LineSearch(step, max(decrease, 0.0))


class Weights(NamedTuple):
    """The parameters of Eq. (9)."""

    alpha: float
    beta: float
    gamma: float
    epsilon: float


class DualityGap(NamedTuple):
    """The proven bounds of the optimum at a point: ``lower_bound <= min F <= objective``.

    Attributes
    ----------
    objective : float
        Eq. (9) at the point.
    lower_bound : float
        The value of the best dual point found.
    relative : float
        ``(objective - lower_bound) / max(objective, smallest_objective(Y, beta))``: a certified
        bound on the relative error of the objective.
    """

    objective: float
    lower_bound: float
    relative: float


def smallest_objective(Y: FloatArray, beta: float) -> float:
    """Return the smallest objective that a relative gap is divided by.

    If the optimum is exactly 0, for example for constant labels, the gap divided by F would be 0/0
    at the optimum and 1 near it. This floor avoids both. It is only slightly larger than the
    objective that rounding of U produces when the optimum is 0, so in all other cases the gap is
    relative to F. The floor becomes smaller with `beta`, because the optimum does: if all labels
    are equal to their mean, the cost is at most ``beta |Y|_F^2``. It does not grow with a large
    `beta`, because the optimum does not grow.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels.
    beta : float
        Weight of ``|U - Y|_F^2``.

    Returns
    -------
    float
        ``1e-18 min(beta, 1) |Y|_F^2``, but always positive, even if all labels are 0.
    """
    return max(ZERO_SHARE * min(beta, 1.0) * float(np.vdot(Y, Y)), TINY)


class GapParts:
    """The gap of Eq. (9) between a point and a dual point, from products that solvers already have.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples, n_labels)
        ``Xi = U - X Theta' - 1 b'``.
    label_gradient : ndarray of shape (n_samples, n_labels)
        ``C = beta c (U - Y) + gamma M U``.
    weights : Weights
        Parameters of Eq. (9). `gamma` is contained in `label_gradient`.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights c of the cells of Y; by default 1. Each label needs a positive weight.

    Notes
    -----
    For any Z (n x l) whose columns sum to zero, the dual value D(Z) is a lower bound of Eq. (9).
    With ``B = beta I + gamma M`` the gap is a sum of three non-negative terms. This form is
    accurate near the optimum, because it does not subtract F and D, which are almost equal there.
    Only the brackets contain differences. Each bracket is exact up to the rounding error of its
    ``L(|xi_i|)``::

        F - D(Z) = sum_i [ L(|xi_i|) + |z_i|^2/4 + epsilon |z_i| - <z_i, xi_i> ]
                   + |alpha Theta' - X'Z/2|_F^2 / alpha
                   + tr E' B^-1 E,                       E = beta Y - Z/2 - B U = -C - Z/2

    No solve with B is needed: M is positive semidefinite, so ``tr E' B^-1 E <= |E|_F^2 / beta``.
    Two choices of Z make this a good bound. The first is the gradient of the tube loss, centred by
    changing only the rows outside the tube; then the first term is small. The second is ``-2 C``,
    centred; then the columns of E are constant. If the rows of W sum to one, M maps constants to
    zero, and the bound is exact.

    With cell weights, B is ``beta diag(c_j) + gamma M`` for label j, which may be singular. A
    second multiplier, of ``(I - W) U``, replaces the inverse: at ``2 gamma (I - W) U`` the last
    term becomes ``sum_ij E_ij^2 / (beta c_ij)`` over the cells with ``c_ij > 0``, and Z is feasible
    only if ``E_ij = 0`` where ``c_ij = 0``, which means ``Z/2 = -C`` there.
    """

    def __init__(
        self,
        residuals: FloatArray,
        label_gradient: FloatArray,
        weights: Weights,
        cell_weight: FloatArray | None = None,
    ) -> None:
        self._residuals, self._label_gradient = residuals, label_gradient
        self._alpha, self._beta, _, self._epsilon = weights
        epsilon = weights.epsilon
        norms = row_norms(residuals)
        self._weights = tube_weights(norms, epsilon)
        self._loss = tube_loss(norms, epsilon)
        self._cell_weight = cell_weight
        if cell_weight is not None:
            self._hidden = cell_weight == 0
            self._inverse_weight = 1 / np.where(self._hidden, 1, cell_weight)

    def feasible(self, half_dual: FloatArray, preferred: FloatArray | None = None) -> FloatArray:
        """Return the nearest dual point of a simple form that fulfils all conditions.

        Parameters
        ----------
        half_dual : ndarray of shape (n_samples, n_labels)
            ``Z/2``.
        preferred : ndarray of shape (n_samples,), optional
            Rows that should carry the correction of the column sums, as weights.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            ``Z/2`` whose columns sum to zero, and which is -C in cells without a weight.
        """
        fixed, shares = self.proposal(half_dual, preferred)
        totals = shares.sum(axis=0)
        if preferred is not None and not (totals > 0).all():
            fixed, shares = self.proposal(half_dual)
            totals = shares.sum(axis=0)
        fixed -= shares * (fixed.sum(axis=0) / totals)
        return fixed

    def proposal(
        self, half_dual: FloatArray, preferred: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return a dual point without its correction, and how to spread the correction.

        The dual point is feasible after `shares` times the sums of its columns, divided by the sums
        of the columns of `shares`, has been subtracted. With rows on several machines, these are
        the sums over all rows.

        Parameters
        ----------
        half_dual, preferred : ndarray
            As in `feasible`.

        Returns
        -------
        fixed : ndarray of shape (n_samples, n_labels)
            A copy of `half_dual`, with -C in cells without a weight.
        shares : ndarray of shape (n_samples, 1) or (n_samples, n_labels)
            The share of each row or cell in the correction.
        """
        # b is not penalised, so a dual point is feasible only if its columns sum to zero.
        rows = np.ones(len(half_dual)) if preferred is None else preferred
        if self._cell_weight is None:
            return half_dual.copy(), rows[:, None].astype(half_dual.dtype)
        fixed: FloatArray = np.where(self._hidden, -self._label_gradient, half_dual)
        # A change in cell (i, j) costs its square divided by c_ij, so spread it in proportion to c.
        return fixed, rows[:, None] * self._cell_weight

    def from_tube(self) -> FloatArray:
        """Return ``Z/2`` from the gradient of the tube loss."""
        # The columns of Z must sum to zero. Distribute the correction over the rows outside the
        # tube, where the first term of the gap is smooth and a small change of z_i costs only its
        # square. Inside it, a change costs in proportion to |z_i|, so these rows stay at zero.
        return self.feasible(self._weights[:, None] * self._residuals, self._weights)

    def tube_proposal(self) -> tuple[FloatArray, FloatArray]:
        """Return the `proposal` of the dual point from the tube loss."""
        return self.proposal(self._weights[:, None] * self._residuals, self._weights)

    def label_proposal(self) -> tuple[FloatArray, FloatArray]:
        """Return the `proposal` of the dual point from the label terms."""
        return self.proposal(-self._label_gradient)

    def from_labels(self) -> FloatArray:
        """Return ``Z/2`` from the gradient of the label terms."""
        return self.feasible(-self._label_gradient)

    def gap(self, half_dual: FloatArray, misfit: float) -> float:
        """Return the sum of the three terms of the gap.

        Parameters
        ----------
        half_dual : ndarray of shape (n_samples, n_labels)
            ``Z/2``. Each column sums to zero.
        misfit : float
            ``|alpha Theta' - X'Z/2|_F^2``.

        Returns
        -------
        float
            An upper bound of ``F - min F``, at least 0.
        """
        lengths = row_norms(half_dual)
        inner = np.einsum("ij,ij->i", half_dual, self._residuals)
        mismatch = self._label_gradient + half_dual
        return self._total(lengths, inner, misfit, self._product(mismatch, mismatch))

    def best_between(
        self, first: FloatArray, second: FloatArray, misfits: tuple[float, float, float]
    ) -> float:
        """Return the share of `second` with the smallest gap between two dual points, roughly.

        Parameters
        ----------
        first, second : ndarray of shape (n_samples, n_labels)
            ``Z/2`` of the two dual points.
        misfits : tuple of float
            ``<F1, F1>``, ``<F1, F2>`` and ``<F2, F2>`` of their ``F = alpha Theta' - X'Z/2``.

        Returns
        -------
        float
            A number in [0, 1].
        """
        line = self.line(first, second)

        def gaps(shares: FloatArray) -> FloatArray:
            return line(shares) + np.asarray(_mixed(misfits, shares)) / self._alpha

        return best_share(gaps)

    def line(self, first: FloatArray, second: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the gaps between two dual points, without the term of the model.

        Parameters
        ----------
        first, second : ndarray of shape (n_samples, n_labels)
            ``Z/2`` of the two dual points.

        Returns
        -------
        callable
            From shares of `second` to the sums of the first and the last term of the gap.
        """
        # Every dual point on the line costs only O(n): all products of the mixture follow from the
        # products of its two ends.
        inner_first, inner_second = (
            np.einsum("ij,ij->i", half_dual, self._residuals) for half_dual in (first, second)
        )
        squares = (
            np.einsum("ij,ij->i", first, first),
            np.einsum("ij,ij->i", first, second),
            np.einsum("ij,ij->i", second, second),
        )
        one, two = self._label_gradient + first, self._label_gradient + second
        mismatches = self._product(one, one), self._product(one, two), self._product(two, two)

        def gaps(shares: FloatArray) -> FloatArray:
            found = [
                self._total(
                    np.sqrt(np.maximum(_mixed(squares, share), 0.0)),
                    (1 - share) * inner_first + share * inner_second,
                    0.0,
                    float(_mixed(mismatches, share)),
                )
                for share in shares
            ]
            return np.array(found)

        return gaps

    def _product(self, one: FloatArray, two: FloatArray) -> float:
        """Return the sum of the products of two mismatches, divided by the weights of the cells."""
        if self._cell_weight is None:
            return float(np.vdot(one, two))
        # Cells without a weight are zero up to rounding, and do not count.
        return float(np.vdot(one, np.where(self._hidden, 0, two * self._inverse_weight)))

    def _total(self, lengths: FloatArray, inner: FloatArray, misfit: float, square: float) -> float:
        # Each bracket is non-negative by the Fenchel inequality; a negative value is rounding.
        fenchel = self._loss + lengths * (lengths + 2 * self._epsilon) - 2 * inner
        tube_part = float(np.maximum(fenchel, 0.0).sum())
        return tube_part + misfit / self._alpha + square / self._beta


def best_share(gaps: Callable[[FloatArray], FloatArray]) -> float:
    """Return the share in [0, 1] with the smallest gap, roughly.

    Parameters
    ----------
    gaps : callable
        From an array of shares to their gaps. It is convex.

    Returns
    -------
    float
        A number in [0, 1].
    """
    low, high = 0.0, 1.0
    for _ in range(ROUNDS):
        shares = np.linspace(low, high, TRIALS)
        # The gap is convex, so the minimum is next to the best trial.
        best = int(np.argmin(gaps(shares)))
        low, high = shares[max(best - 1, 0)], shares[min(best + 1, TRIALS - 1)]
    return float(shares[best])


def _mixed(products: Any, share: Any) -> Features:
    """Return the square of ``(1 - share) a + share b`` from the products of a and b."""
    first, both, second = products
    rest = 1 - share
    return rest * rest * first + 2 * rest * share * both + share * share * second
