"""Multi-output support vector regression (Eq. 10): a semismooth Newton method with a certificate.

IRWLS, as Algorithm 1 has it, bounds the loss by a quadratic and factorises a new matrix for every
reweighting. Here the curvature of the loss is used as it is, and each Newton system is solved by
conjugate gradients, preconditioned by the one matrix ``Xc'Xc + alpha I`` that all of them have in
common; without a tube it is the Hessian itself.

Weights of the rows are no case of their own: with residuals and tube multiplied by the root of
the weight, ``w max(0, r - epsilon)^2 = max(0, sqrt(w) r - sqrt(w) epsilon)^2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lemll._validation import is_sparse
from lemll.objective import row_norms, smallest_objective, tube_loss, tube_weights
from lemll.solvers._checks import check_size, check_stopping, check_weights
from lemll.solvers._features import CentredFeatures
from lemll.solvers._line_search import exact_step
from lemll.solvers._model import Model, model_for
from lemll.solvers._solution import Status

__all__ = ["MsvrSolution", "solve_msvr"]

FloatArray = npt.NDArray[np.float64]

# Conjugate gradient steps for one Newton step. Cut short, they still give a direction of descent.
MAX_INNER = 300
# Far from the optimum no Newton system is solved more exactly than this.
LARGEST_FORCING = 0.1
# More damping would slow down problems with nearly all rows inside the tube.
LARGEST_DAMPING = 1e-6
# Steps in a row without a better certificate that prove rounding to be in the way.
PATIENCE = 10
# A Newton step so near the optimum that gains less than this meets nothing but rounding.
POLISH_SHARE = 0.5
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class MsvrSolution:
    """A minimiser of Eq. (10), with the proof of how good it is.

    Attributes
    ----------
    coef : ndarray of shape (n_outputs, n_features)
        ``Theta``.
    intercept : ndarray of shape (n_outputs,)
        ``b``.
    objective : float
        Eq. (10) at the solution.
    objective_trace : ndarray of shape (n_iter + 1,)
        Eq. (10) at the start and after each iteration.
    optimality : float
        Certified relative duality gap: ``(objective - minimum) / objective`` is at most this, for
        objectives above 1e-18 of the weighted sum of squares of the targets.
    n_iter : int
        Newton steps done.
    status : {"converged", "max_iter", "stalled"}
        "stalled" means that rounding forbade any further descent before the wanted gap.
    """

    coef: FloatArray
    intercept: FloatArray
    objective: float
    objective_trace: FloatArray
    optimality: float
    n_iter: int
    status: Status

    @property
    def converged(self) -> bool:
        """Whether the solver met its tolerance."""
        return self.status == "converged"


def solve_msvr(
    X: Any,
    targets: Any,
    *,
    alpha: float,
    epsilon: float = 0.1,
    sample_weight: Any = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> MsvrSolution:
    """Minimise Eq. (10) up to a certified gap.

    Minimises ``sum_i w_i L(|t_i - Theta x_i - b|) + alpha |Theta|_F^2`` with
    ``L(r) = max(0, r - epsilon)^2``.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features; sparse ones are made dense by bounded blocks only.
    targets : ndarray of shape (n_samples, n_outputs)
        Real targets.
    alpha : float
        Weight of ``|Theta|_F^2``, positive. The usual C is ``1 / (2 alpha)``.
    epsilon : float, default=0.1
        Radius of the tube.
    sample_weight : ndarray of shape (n_samples,), optional
        Weights of the rows, not negative; all 1 by default. A weight of 2 is the row twice, a
        weight of 0 is no row.
    tol : float, default=1e-10
        Certified relative gap at which to stop. A few more Newton steps then square it where
        rounding allows, because the error of predictions is of the order of its root.
    max_iter : int, default=1000
        Cap on the Newton steps.

    Returns
    -------
    MsvrSolution
        The minimiser; ``optimality`` is its certified relative gap.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers import solve_msvr
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> solution = solve_msvr(X, 2 * X, alpha=1.0, epsilon=0.0)
    >>> solution.coef.round(6), solution.intercept.round(6)
    (array([[1.333333]]), array([0.666667]))
    >>> solution.converged, solution.optimality <= 1e-10
    (True, True)
    """
    X, T = _check_arrays(X, targets)
    check_weights(alpha=alpha, beta=1.0, gamma=0.0, epsilon=epsilon)
    check_stopping(tol=tol, max_iter=max_iter)
    weights = _check_sample_weight(sample_weight, len(T))
    if weights is not None:
        kept = weights > 0
        X, T, weights = X[kept], T[kept], weights[kept]
    search = _Search(_Problem(X, T, weights, alpha, epsilon), tol, max_iter)
    status = search.run()
    return search.solution(status)


def _check_arrays(X: Any, targets: Any) -> tuple[Any, FloatArray]:
    X, T = X.tocsr() if is_sparse(X) else np.asarray(X), np.asarray(targets)
    for name, array in (("X", X), ("targets", T)):
        if array.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} must hold real numbers, got dtype {array.dtype}; convert it first."
            )
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must be 2-D with rows and features, got shape {X.shape}; reshape it.")
    if T.ndim != 2 or T.shape[0] != X.shape[0] or T.shape[1] == 0:
        raise ValueError(
            f"X has {X.shape[0]} rows, so targets must be ({X.shape[0]}, n_outputs); got {T.shape}."
        )
    check_size(X, "X", "float64")
    check_size(T, "targets", "float64")
    return X, np.asarray(T, dtype=np.float64)


def _check_sample_weight(sample_weight: Any, n_samples: int) -> FloatArray | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have one weight for each of the {n_samples} rows, "
            f"got shape {weights.shape}."
        )
    check_size(weights[:, None], "sample_weight", "float64")
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"sample_weight must not be negative, got {weights[row]} in row {row}; "
            "give rows that should not count the weight 0."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; at least one weight must be > 0.")
    return weights


class _Problem:
    """The data of Eq. (10), rows multiplied by the roots of their weights."""

    def __init__(
        self, X: Any, T: FloatArray, weights: FloatArray | None, alpha: float, epsilon: float
    ) -> None:
        self.features = CentredFeatures(X, np.float64, weights)
        self.model: Model = model_for(self.features)
        self.model.factorise(1.0, alpha)
        self.alpha = alpha
        self.roots = np.ones(len(T)) if weights is None else np.sqrt(weights)
        self.radii = epsilon * self.roots
        scaled = self.roots[:, None] * T
        self.floor = smallest_objective(scaled, 1.0)
        # Best intercept without a tube; centred targets keep the digits of small residuals.
        self.centre = self.features.gather(scaled) / self.features.total_weight
        self.T = self.roots[:, None] * (T - self.centre)


class _Point:
    """The unknowns ``V = [Theta'; b']``, the residuals ``T - Xt V``, and what follows from them.

    Attributes
    ----------
    weights : ndarray of shape (n_samples,)
        Weights a_i of Eq. (14).
    pull : ndarray of shape (n_samples, n_outputs)
        ``a_i xi_i``: half the gradient of the loss.
    """

    def __init__(self, problem: _Problem, V: FloatArray) -> None:
        self.problem, self.V = problem, V
        image = problem.model.image(V)
        self.residuals = problem.T - image
        self.norms = row_norms(self.residuals)
        self.weights = tube_weights(self.norms, problem.radii)
        if not problem.radii.any():
            # Eq. (14) gives residuals of zero no weight, but without a tube they curve like others.
            self.weights = np.ones_like(self.norms)
        self.pull = self.weights[:, None] * self.residuals
        self.objective = float(
            tube_loss(self.norms, problem.radii).sum()
        ) + problem.alpha * problem.model.inner(V, V, image)

    def certified_gap(self) -> float:
        """Upper bound of the objective's distance to its minimum.

        For any Z with ``Xt' Z`` zero in the row of b, D(Z) is a lower bound of Eq. (10), and::

            F - D(Z) = sum_i [ L(|xi_i|) + |z_i|^2/4 + epsilon |z_i| - <z_i, xi_i> ]
                       + |alpha Theta' - Xc'Z/2|_F^2 / alpha

        Here ``Z/2`` is the pull, centred by a change c of the rows outside the tube. For these the
        bracket is ``(|h| - p)^2 + 2 r (|h| - <h, n>)`` with ``h = z/2``, ``p = r - epsilon`` and
        ``n = xi/r``, and both differences can be had without cancellation from c alone.
        """
        problem = self.problem
        shares = self.weights * problem.roots
        total = max(float(shares @ problem.roots), TINY)
        change = np.outer(shares, -problem.features.gather(self.pull) / total)
        # Rows inside the tube have no pull and no change, hence no part in the gap.
        unit = self.residuals / np.maximum(self.norms, TINY)[:, None]
        along = np.einsum("ij,ij->i", change, unit)
        across = np.square(row_norms(change - along[:, None] * unit))
        forward = self.weights * self.norms + along
        length = np.sqrt(np.square(forward) + across)
        # |h| - <h, n>; where <h, n> is negative nothing cancels.
        detour = np.where(
            forward > 0,
            across / np.maximum(length + np.maximum(forward, 0.0), TINY),
            length - forward,
        )
        fenchel = np.square(along + detour) + 2 * self.norms * detour
        half_dual = self.pull + change
        misfit = problem.model.misfit(problem.alpha, self.V, half_dual)
        return float(fenchel.sum()) + misfit / problem.alpha


class _Curvature:
    """Half the Hessian of the tube loss: ``a_i I + (1 - a_i) n_i n_i'``, 0 inside the tube.

    The weights are raised a little, by the share `damping` of what they lack to 1: rows inside the
    tube, which may be all that keeps b from running away, would otherwise be forgotten.
    """

    def __init__(self, point: _Point, damping: float) -> None:
        weights = point.weights + damping * (1 - point.weights)
        outside = point.weights > 0
        self._weights = weights[:, None]
        self._stretch = np.where(outside, 1 - weights, 0.0)[:, None]
        self._unit = point.residuals / np.maximum(point.norms, TINY)[:, None]

    def times(self, image: FloatArray) -> FloatArray:
        """Apply every block to its row."""
        along = np.einsum("ij,ij->i", self._unit, image)[:, None]
        product: FloatArray = self._weights * image + (self._stretch * along) * self._unit
        return product


class _Direction(NamedTuple):
    """A change of V, and its image."""

    V: FloatArray
    image: FloatArray


class _Search:
    """Newton steps from ``Theta = 0`` on, with their trace."""

    def __init__(self, problem: _Problem, tol: float, max_iter: int) -> None:
        self.problem, self.tol, self.max_iter = problem, tol, max_iter
        start = np.zeros((problem.model.n_rows, problem.T.shape[1]))
        self.point = _Point(problem, start)
        self.trace = [self.point.objective]
        self.optimality = self._certify(self.point)

    def run(self) -> Status:
        """Step until the certified gap is at most `tol`, or nothing moves any more."""
        failures = 0
        while self.optimality > self.tol:
            if len(self.trace) > self.max_iter:
                return "max_iter"
            before = self.optimality
            if failures >= PATIENCE or not self._step():
                return "stalled"
            failures = failures + 1 if self.optimality >= before else 0
        self._polish()
        return "converged"

    def solution(self, status: Status) -> MsvrSolution:
        """Gather what was found."""
        coef, intercept = self.problem.model.decode(self.point.V)
        return MsvrSolution(
            coef=coef,
            intercept=intercept + self.problem.centre,
            objective=self.point.objective,
            objective_trace=np.array(self.trace),
            optimality=self.optimality,
            n_iter=len(self.trace) - 1,
            status=status,
        )

    def _certify(self, point: _Point) -> float:
        return point.certified_gap() / max(point.objective, self.problem.floor)

    def _step(self) -> bool:
        """Take a Newton step with an exact line search; False if the line only rises."""
        direction = self._direction()
        step = self._line_search(direction)
        if step == 0:
            return False
        self.point = _Point(self.problem, self.point.V - step * direction.V)
        self.trace.append(self.point.objective)
        self.optimality = self._certify(self.point)
        return True

    def _polish(self) -> None:
        """Square the gap, for predictions as close as `tol`, or as close as rounding allows."""
        while self.optimality > self.tol**2 and len(self.trace) <= self.max_iter:
            point, optimality = self.point, self.optimality
            if not self._step():
                return
            if self.optimality > POLISH_SHARE * optimality:
                if self.optimality > optimality:
                    self.point, self.optimality = point, optimality
                    self.trace.pop()
                return

    def _line_search(self, direction: _Direction) -> float:
        point, problem = self.point, self.problem
        inner, alpha = problem.model.inner, problem.alpha
        found = exact_step(
            np.square(point.norms),
            np.einsum("ij,ij->i", point.residuals, direction.image),
            np.einsum("ij,ij->i", direction.image, direction.image),
            linear=-alpha * inner(point.V, direction.V, direction.image),
            quadratic=alpha * inner(direction.V, direction.V, direction.image),
            epsilon=problem.radii,
        )
        return found.step

    def _direction(self) -> _Direction:
        """Solve the Newton system by preconditioned conjugate gradients.

        Half the gradient, and every residual of the system, has the form
        ``alpha [Theta'; 0] + Xt' force`` and is kept as the pair ``(V, force)``: the preconditioner
        needs no more, and by samples multiplying it out would cost products with X.
        """
        problem, model = self.problem, self.problem.model
        # The gap is quadratic in the distance to the optimum; a system solved, and damped, in
        # proportion to the distance leaves Newton's method its quadratic convergence.
        forcing = min(LARGEST_FORCING, float(np.sqrt(self.optimality)))
        curvature = _Curvature(self.point, min(LARGEST_DAMPING, forcing))
        V, force = self.point.V.copy(), -self.point.pull
        solution, moved = np.zeros_like(V), np.zeros_like(force)
        along = _Direction(np.zeros_like(V), np.zeros_like(force))
        first = last = 0.0
        for inner in range(MAX_INNER):
            step, image, right = model.solve(problem.alpha, V, force)
            sums = problem.features.gather(force)
            step[-1] = sums / problem.features.total_weight
            decrement = model.force_inner(right, step, image) + float(sums @ step[-1])
            image = image + problem.features.spread(step[-1])
            if inner == 0:
                first = last = decrement
            if not decrement > forcing**2 * first * (inner > 0):
                break
            kept = decrement / last if inner else 0.0
            along = _Direction(step + kept * along.V, image + kept * along.image)
            bent = curvature.times(along.image)
            square = problem.alpha * model.inner(along.V, along.V, along.image)
            square += float(np.vdot(along.image, bent))
            length = decrement / square
            solution += length * along.V
            moved += length * along.image
            V -= length * along.V
            force -= length * bent
            last = decrement
        return _Direction(solution, moved)
