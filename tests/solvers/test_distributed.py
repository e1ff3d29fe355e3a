"""Blocks of rows: the same minimum as one machine with the same graph."""

import numpy as np
import pytest
from scipy import sparse

from lemll.solvers import solve_joint
from lemll.solvers.distributed import BlocksLostError, LocalTeam, RowBlock, solve_blocks
from lemll.solvers.equation9 import LemllPoint, duality_gap
from lemll.topology import reconstruction_weights

WEIGHTS = {"alpha": 0.5, "beta": 1.0, "gamma": 2.0, "epsilon": 0.1}


def make_data(seed=0, n=90, d=5, n_labels=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3
    Y = np.where(
        (X - 3) @ rng.normal(size=(d, n_labels)) + rng.normal(size=(n, n_labels)) > 0, 1.0, -1
    )
    return X, Y


def split(X, Y, sizes, cell_weight=None):
    """Return blocks of rows, and the graph of all rows without edges between blocks."""
    ends = np.cumsum(sizes)
    graphs, blocks = [], []
    for start, end in zip(ends - sizes, ends, strict=True):
        rows = slice(start, end)
        W = reconstruction_weights(X[rows], n_neighbors=6)
        graphs.append(W)
        weight = None if cell_weight is None else cell_weight[rows]
        blocks.append(RowBlock(X[rows], Y[rows], W, weight))
    return blocks, sparse.csr_array(sparse.block_diag(graphs, format="csr"))


@pytest.mark.parametrize("sizes", [[90], [30, 30, 30], [10, 45, 35]])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_equal_the_single_machine(sizes, kind, weighted):
    X, Y = make_data()
    weight = np.random.default_rng(1).random(Y.shape).round() if weighted else None
    X = np.where(X < 2.5, 0.0, X)
    if kind == "sparse":
        X = sparse.csr_array(X)
    blocks, W = split(X, Y, sizes, weight)
    expected = solve_joint(X, Y, W, **WEIGHTS, tol=1e-13, cell_weight=weight, max_iter=5000)
    found = solve_blocks(LocalTeam(blocks), **WEIGHTS, tol=1e-13, max_iter=5000)
    assert found.status == "converged"
    assert abs(found.objective - expected.objective) <= 1e-10 * expected.objective
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-6)
    np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-5)
    U = np.concatenate([block.numerical_labels() for block in blocks])
    np.testing.assert_allclose(U, expected.numerical_labels, atol=1e-6)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 5.0])
def test_the_certificate_is_true(tol, epsilon):
    X, Y = make_data(2)
    weights = WEIGHTS | {"epsilon": epsilon}
    blocks, W = split(X, Y, [40, 50])
    found = solve_blocks(LocalTeam(blocks), **weights, tol=tol)
    U = np.concatenate([block.numerical_labels() for block in blocks])
    point = LemllPoint(U, found.coef, found.intercept)
    best = solve_joint(X, Y, W, **weights, tol=1e-12, max_iter=5000)
    assert found.optimality <= tol
    true_gap = found.objective - best.objective
    assert true_gap <= found.optimality * found.objective * (1 + 1e-6) + 1e-9
    proven = duality_gap(X, Y, W, point, **weights)
    assert abs(proven.objective - found.objective) <= 1e-9 * max(1.0, found.objective)


def test_constant_labels_cost_nothing():
    X, Y = make_data(3)
    Y[:, 1], Y[:, 3] = 1, -1
    blocks, _ = split(X, Y, [40, 50])
    found = solve_blocks(LocalTeam(blocks), **WEIGHTS)
    np.testing.assert_array_equal(found.constant[[1, 3]], [1, -1])
    assert not found.coef[[1, 3]].any()
    np.testing.assert_array_equal(found.intercept[[1, 3]], [1, -1])
    assert found.coef[[0, 2]].all()
    blocks, _ = split(X, np.ones_like(Y), [40, 50])
    assert solve_blocks(LocalTeam(blocks), **WEIGHTS).objective == 0


class FailingTeam:
    """Loses a block at some calls: the new one knows nothing."""

    def __init__(self, make, n_blocks, losses):
        self.make, self.losses, self.calls = make, losses, 0
        self.blocks = [make(number) for number in range(n_blocks)]

    def call(self, method, *arguments, **options):
        self.calls += 1
        results = [getattr(b, method)(*arguments, **options) for b in self.blocks[:1]]
        if self.calls in self.losses:
            self.blocks[-1] = self.make(len(self.blocks) - 1)
            raise BlocksLostError
        return results + [getattr(b, method)(*arguments, **options) for b in self.blocks[1:]]


@pytest.mark.parametrize("losses", [{1}, {2, 3, 4}, {25}, {30, 50, 51}, {80}])
def test_a_lost_block_starts_again(losses):
    X, Y = make_data(4)
    blocks, W = split(X, Y, [40, 50])
    copies = {0: (slice(0, 40), blocks[0]), 1: (slice(40, 90), blocks[1])}

    def make(number):
        rows = copies[number][0]
        return RowBlock(X[rows], Y[rows], reconstruction_weights(X[rows], n_neighbors=6))

    team = FailingTeam(make, 2, losses)
    found = solve_blocks(team, **WEIGHTS, tol=1e-12, max_iter=5000)
    assert team.calls > max(losses)
    expected = solve_joint(X, Y, W, **WEIGHTS, tol=1e-12, max_iter=5000)
    assert found.status == "converged"
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-5)


def test_a_team_that_always_fails_ends():
    class Lost:
        def call(self, *_, **__):
            raise BlocksLostError

    with pytest.raises(BlocksLostError):
        solve_blocks(Lost(), **WEIGHTS)


def test_too_many_features_are_refused(monkeypatch):
    from lemll.solvers import distributed as problem

    monkeypatch.setattr(problem, "MAX_FEATURES", 4)
    X, Y = make_data()
    blocks, _ = split(X, Y, [90])
    with pytest.raises(ValueError, match="the rows have 5 features, but .* at most 4, .*reduce"):
        solve_blocks(LocalTeam(blocks), **WEIGHTS)
