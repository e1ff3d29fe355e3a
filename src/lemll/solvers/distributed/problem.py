"""The joint search over blocks of rows: sums travel, rows stay.

It is the search of `lemll.solvers.joint`, with the same preconditioner, line search and
certificate. One iteration asks every block for one product with X', one product with X, and for the
slope at a few steps along the direction. A block that is lost with its machine starts again from
its logical labels, and the search continues: the problem is convex, so it ends in the same minimum.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from lemll._types import Array, BoolArray
from lemll.objective import best_share, exact_step, smallest_objective
from lemll.solvers.distributed.block import Description, Pull, RowBlock
from lemll.solvers.interface import Callback, Status, check_stopping, check_weights
from lemll.solvers.joint.point import LARGEST_FALL, Weights
from lemll.solvers.joint.search import Search
from lemll.solvers.linear.models import Cholesky

__all__ = ["BlocksLostError", "BlocksSolution", "LocalTeam", "Team", "solve_blocks"]

# A system of this order is factorised on the driver: 800 MB.
MAX_FEATURES = 10_000
# Number of times that lost blocks are built again before the search gives up.
MOST_LOSSES = 20


class BlocksLostError(Exception):
    """Blocks were lost during a call. The team has replaced them by new ones."""


class Team(Protocol):
    """All blocks. Each call asks every block for one of its methods."""

    def call(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        """Return the results of all blocks, in their order; may raise `BlocksLostError`."""
        ...


class LocalTeam:
    """Blocks in this process.

    Parameters
    ----------
    blocks : list of RowBlock
        The blocks.
    """

    def __init__(self, blocks: list[RowBlock]) -> None:
        self._blocks = blocks

    def call(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        """Return the results of all blocks, in their order."""
        return [getattr(block, method)(*arguments, **options) for block in self._blocks]


class BlocksSolution(NamedTuple):
    """The minimiser of Eq. (9). Its numerical labels stay in the blocks.

    Attributes
    ----------
    coef : ndarray of shape (n_labels, n_features)
        Theta.
    intercept : ndarray of shape (n_labels,)
        b.
    constant : ndarray of shape (n_labels,)
        The numerical label of a column that is the same in all rows, NaN for other columns.
    objective : float
        Eq. (9) at the solution.
    objective_trace : ndarray
        Eq. (9) at the start and after each iteration.
    optimality : float
        Certified relative duality gap.
    n_iter : int
        Number of iterations.
    status : str
        "converged", "max_iter" or "stalled".
    n_losses : int
        Number of times that blocks were lost and built again.
    """

    coef: Array
    intercept: Array
    constant: Array
    objective: float
    objective_trace: Array
    optimality: float
    n_iter: int
    status: Status
    n_losses: int


def solve_blocks(
    team: Team,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float = 0.1,
    tol: float = 1e-4,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> BlocksSolution:
    """Minimise Eq. (9) with the rows in blocks, for the graph that has no edges between blocks.

    Parameters
    ----------
    team : Team
        The blocks.
    alpha, beta, gamma, epsilon, tol, max_iter, callback
        As in `lemll.solvers.solve_joint`.

    Returns
    -------
    BlocksSolution
        The minimiser, with its certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from lemll.solvers.distributed import LocalTeam, RowBlock, solve_blocks
    >>> W = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> blocks = [
    ...     RowBlock(np.array([[0.0], [1.0]]), np.array([[-1.0], [1.0]]), W),
    ...     RowBlock(np.array([[2.0], [3.0]]), np.array([[1.0], [1.0]]), W),
    ... ]
    >>> solution = solve_blocks(LocalTeam(blocks), alpha=1.0, beta=1.0, gamma=1.0, tol=1e-8)
    >>> solution.status, solution.optimality <= 1e-8
    ('converged', True)
    """
    weights = Weights(alpha, beta, gamma, epsilon)
    check_stopping(tol=tol, max_iter=max_iter)
    check_weights(**weights._asdict(), precision="float64")
    shape = _shape(_retried(team, "describe"))
    if not shape.varies.any():
        size = len(shape.constant)
        return BlocksSolution(np.zeros((size, len(shape.mean))), shape.constant.copy(),
                              shape.constant, 0.0, np.zeros(1), 0.0, 0, "converged", 0)  # fmt: skip
    search = _BlockSearch(team, weights, shape, tol=tol, max_iter=max_iter, callback=callback)
    status = search.solve()
    coef, intercept = np.zeros((len(shape.constant), len(shape.mean))), shape.constant.copy()
    V = search.V
    coef[shape.varies] = V[:-1].T
    intercept[shape.varies] = V[-1] - V[:-1].T @ shape.mean
    return BlocksSolution(
        coef,
        intercept,
        shape.constant,
        search.objective,
        np.array(search.trace),
        search.optimality,
        len(search.trace) - 1,
        status,
        search.n_losses,
    )


class _Shape(NamedTuple):
    """The sums of the descriptions of all blocks."""

    n_rows: int
    mean: Array
    start: Array
    constant: Array
    mean_weight: Array
    roughness: float
    weighted: bool

    @property
    def varies(self) -> BoolArray:
        return np.isnan(self.constant)


def _retried(team: Team, method: str) -> list[Any]:
    """Call a method that needs no state of the blocks, again after a loss."""
    for _ in range(MOST_LOSSES):
        try:
            return team.call(method)
        except BlocksLostError:
            continue
    return team.call(method)


def _shape(blocks: list[Description]) -> _Shape:
    n_rows = sum(block.n_rows for block in blocks)
    low = np.min([block.low for block in blocks], axis=0)
    high = np.max([block.high for block in blocks], axis=0)
    constant = np.where(low == high, low, np.nan)
    # A label that nobody observed is 0 in all terms.
    constant = np.where(low > high, 0.0, constant)
    varies = np.isnan(constant)
    weight_sums = _sum(block.weight_sums for block in blocks)[varies]
    n_features = len(blocks[0].feature_sums)
    if n_features > MAX_FEATURES:
        raise ValueError(
            f"the rows have {n_features} features, but blocks of rows can be fitted with at most "
            f"{MAX_FEATURES}, because a matrix of this order is factorised; reduce the features "
            "first, for example with sklearn.random_projection.SparseRandomProjection."
        )
    return _Shape(
        n_rows,
        _sum(block.feature_sums for block in blocks) / n_rows,
        _sum(block.label_sums for block in blocks)[varies] / weight_sums,
        constant,
        weight_sums / n_rows,
        sum(block.roughness for block in blocks) / n_rows,
        any(block.weighted for block in blocks),
    )


class _BlockSearch(Search):
    """The search over all blocks: it is also its own point, preconditioner and direction."""

    def __init__(
        self,
        team: Team,
        weights: Weights,
        shape: _Shape,
        *,
        tol: float,
        max_iter: int,
        callback: Callback | None,
    ) -> None:
        n_labels = int(shape.varies.sum())
        # |Y|_F^2 of labels in -1/+1.
        square = np.full((1, 1), np.sqrt(shape.n_rows * n_labels))
        floor = smallest_objective(square, weights.beta)
        super().__init__(weights, floor, tol, max_iter, callback)
        self._team, self._shape = team, shape
        _, beta, gamma, _ = weights
        mean_weight: Any = shape.mean_weight if shape.weighted else np.ones(n_labels)
        kappa = beta * float(np.mean(mean_weight)) + gamma * shape.roughness
        self._on_features = 1 / (1 + kappa)
        on_ones = beta * mean_weight
        self._on_ones, self._kept_on_ones = 1 / (1 + on_ones), on_ones / (1 + on_ones)
        self._share = kappa / (1 + kappa)
        self.dtype = np.dtype(np.float64)
        self.V = np.zeros((len(shape.mean) + 1, n_labels))
        self.V[-1] = shape.start
        self.objective = np.inf
        self.n_losses = 0
        self._factor: Cholesky | None = None

    def solve(self) -> Status:
        """Run until the certificate of products computed from scratch is small enough."""
        status: Status = "stalled"
        attempts = 0
        while attempts < 2:
            try:
                self._prepare()
                status = self.run(self, warm=attempts > 0)
                # The search updates its products by addition, and rounding errors accumulate. So
                # the certificate that decides is computed from scratch.
                self._refresh()
                self.optimality = self.certify(self)
            except BlocksLostError:
                self.n_losses += 1
                if self.n_losses > MOST_LOSSES:
                    raise
                continue
            attempts += 1
            if self.optimality <= self.tol:
                return "converged"
            if status == "max_iter":
                return status
        return "stalled"

    def _prepare(self) -> None:
        shape = self._shape
        self._team.call(
            "prepare", shape.mean, shape.varies, shape.start, self.weights, weighted=shape.weighted
        )
        if self._factor is None:
            alpha = self.weights.alpha
            gram = _sum(self._team.call("gram", alpha / self._share))
            self._factor = Cholesky(gram, self._share, alpha, self.dtype)
            self.n_linear_solves += 1
        self._refresh()

    def _refresh(self) -> None:
        alpha = self.weights.alpha
        parts = self._team.call("refresh", self.V)
        self.objective = self._fresh = float(sum(parts)) + alpha * _square(self.V[:-1])

    # The preconditioner.

    def _begin(self, point: Any) -> tuple[Any, Any]:
        self._direction = np.zeros_like(self.V)
        self._last: tuple[Array, Array] | None = None
        self.decrement = self.conjugacy = 0.0
        return self, self

    def direction(self, point: Any) -> Any:
        """Find ``P^-1 g`` in all blocks; set `conjugacy` by the rule of Polak and Ribiere."""
        assert self._factor is not None
        alpha = self.weights.alpha
        pulls: list[Pull] = self._team.call("pull", self._on_features, forget=self._last is None)
        product = _sum(pull.product for pull in pulls)[:-1] + alpha * self.V[:-1]
        label_sums = _sum(pull.label_sums for pull in pulls)
        pull_sums = _sum(pull.pull_sums for pull in pulls)
        intercept = self._on_ones * label_sums - self._kept_on_ones * pull_sums
        dV = np.empty_like(self.V)
        dV[:-1] = self._factor.solve(product)
        dV[-1] = intercept / (self._kept_on_ones * self._shape.n_rows)

        def inner(of_labels: float, of_model: Array, of_intercept: Array) -> float:
            return of_labels + float(np.vdot(of_model, dV[:-1])) + float(of_intercept @ dV[-1])

        if any(pull.repaired for pull in pulls):
            self._last = None
        last_decrement = self.decrement
        self.decrement = inner(sum(pull.inner for pull in pulls), product, intercept)
        self.conjugacy = 0.0
        if self._last is not None and last_decrement > 0:
            kept = self.decrement - inner(sum(pull.last_inner for pull in pulls), *self._last)
            self.conjugacy = max(0.0, kept / last_decrement)
        self._last = product, intercept
        self._towards = dV
        self._team.call("aim", dV, self._on_features, self._on_ones)
        return self

    def turn(self, share: float, towards: Any) -> None:
        """Replace the direction by ``share`` times itself plus the one of `direction`."""
        self._direction = share * self._direction + self._towards
        lines = self._team.call("turn", share)
        self._linear = sum(line.linear for line in lines)
        self._quadratic = sum(line.quadratic for line in lines)

    # The point.

    def descend(self, direction: Any) -> bool:
        """Step against the direction to the minimum on the line; return False if it rises."""
        alpha, model = self.weights.alpha, self._direction[:-1]
        linear = self._linear - alpha * float(np.vdot(self.V[:-1], model))
        quadratic = self._quadratic + alpha * _square(model)

        def of_blocks(step: float) -> tuple[float, float]:
            found = self._team.call("slope", step)
            return sum(slope for slope, _ in found), sum(bend for _, bend in found)

        nothing = np.empty(0)
        step, decrease = exact_step(
            nothing,
            nothing,
            nothing,
            linear=linear,
            quadratic=quadratic,
            epsilon=self.weights.epsilon,
            other=of_blocks,
        )
        if step == 0:
            return False
        moved = self._team.call("move", step)
        self.V -= step * self._direction
        decrease = -step * (2 * linear + step * quadratic) + float(sum(moved))
        self.objective -= max(decrease, 0.0)
        if self.objective < LARGEST_FALL * self._fresh:
            self._refresh()
        return True

    def certify(self, point: Any) -> float:
        """Return the certified relative gap."""
        scale = max(self.objective, self.floor)
        return self._gap(self.tol * scale) / scale

    def _gap(self, enough: float) -> float:
        """Bound the gap by better and better dual points, until one is good enough."""
        assert self._factor is not None
        alpha, model = self.weights.alpha, self.V[:-1]
        first, second, plain = (
            _total(proposals) for proposals in zip(*self._team.call("propose"), strict=True)
        )
        # If all rows are inside the tube, there is no row that is preferred.
        spread = not (first[1] > 0).all()
        corrections = _quotient(plain if spread else first), _quotient(second)
        settled = self._team.call("settle", corrections, plain=spread)
        forces, gaps = [], []
        for one in zip(*settled, strict=True):
            forces.append(alpha * model - _sum(part.product for part in one))
            gaps.append(sum(part.gap for part in one) + _square(forces[-1]) / alpha)
        if min(gaps) <= enough:
            return float(min(gaps))

        def between(shares: Array) -> Array:
            found = _sum(self._team.call("gaps_between", shares))
            mixed = [_square((1 - share) * forces[0] + share * forces[1]) for share in shares]
            return found + np.array(mixed) / alpha

        share = best_share(between)
        gaps.append(float(between(np.array([share]))[0]))
        if gaps[-1] <= enough:
            return float(gaps[-1])
        # The system that preconditions the search gives a change of Z that makes the force small.
        force = (1 - share) * forces[0] + share * forces[1]
        R = np.zeros_like(self.V)
        R[:-1] = self._share * self._factor.solve(force)
        correction = _quotient(_total(self._team.call("reconcile", share, R)))
        third = self._team.call("settle_third", correction)
        force = alpha * model - _sum(part.product for part in third)
        gaps.append(sum(part.gap for part in third) + _square(force) / alpha)
        return float(min(gaps))


def _sum(arrays: Iterable[Array]) -> Array:
    return np.asarray(sum(arrays))


def _total(proposals: Any) -> tuple[Array, Array]:
    return _sum(p.sums for p in proposals), _sum(p.shares for p in proposals)


def _quotient(total: tuple[Array, Array]) -> Array:
    sums, shares = total
    return sums / shares


def _square(array: Array) -> float:
    return float(np.vdot(array, array))
