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

from lemll._types import Array, BoolArray, Features, FloatArray, SparseMatrix
from lemll.solvers.certificate import (
    GapParts,
    Weights,
    best_share,
    row_norms,
    smallest_objective,
    tube_loss,
    tube_weights,
    weighed,
)
from lemll.solvers.equation9 import Callback, Status, check_stopping, check_weights, exact_step
from lemll.solvers.linear import CentredFeatures, Cholesky
from lemll.solvers.search import LARGEST_FALL, LabelOperators, Search, label_step


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
            -float(np.vdot(self._label_gradient, moved_U)), float(np.vdot(moved_U, moved_gradient))
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
        self._parts = GapParts(
            self._residuals, self._label_gradient, self._weights, self._operators.cell_weight
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


# A system of this order is factorised on the driver: 800 MB.
MAX_FEATURES = 10_000
# Number of times that lost blocks are built again before the search gives up.
MOST_LOSSES = 20


class BlocksLostError(Exception):
    """Blocks were lost during a call. The team has replaced them by new ones."""


class Team(Protocol):
    """All blocks. Each call asks every block for one of its methods."""

    def call(self, method: str, *arguments: object, **options: object) -> list[Any]:
        """Return the results of all blocks, in their order; may raise `BlocksLostError`."""


class LocalTeam:
    """Blocks in this process.

    Parameters
    ----------
    blocks : list of RowBlock
        The blocks.
    """

    def __init__(self, blocks: list[RowBlock]) -> None:
        self._blocks = blocks

    def call(self, method: str, *arguments: object, **options: object) -> list[Any]:
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
        mean_weight: Array | float = shape.mean_weight if shape.weighted else np.ones(n_labels)
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

    def _begin(self, point: object) -> tuple[Any, Any]:
        self._direction = np.zeros_like(self.V)
        self._last: tuple[Array, Array] | None = None
        self.decrement = self.conjugacy = 0.0
        return self, self

    def direction(self, point: object) -> Any:
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

    def turn(self, share: float, towards: object) -> None:
        """Replace the direction by ``share`` times itself plus the one of `direction`."""
        self._direction = share * self._direction + self._towards
        lines = self._team.call("turn", share)
        self._linear = sum(line.linear for line in lines)
        self._quadratic = sum(line.quadratic for line in lines)

    # The point.

    def descend(self, direction: object) -> bool:
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

    def certify(self, point: object) -> float:
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
