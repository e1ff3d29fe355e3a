"""Sparse codes that rebuild each row from a few other rows, by one lasso per row (for MLFE).

For every row i of X, the other rows are the dictionary. The code s minimises

    min_s  |x_i - sum_j s_j x_j|^2 / 2 + lambda_i |s|_1,  lambda_i = share max_j |x_j'x_i|,

    with s_i = 0.

The alternating direction method of multipliers (ADMM) solves ``(X X' + rho I) s = q`` in every
step, where row i itself is left out. Leaving out a row changes the inverse by a matrix of rank one.
So all rows share one inverse, and a step for a block of rows is one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.linalg import lapack

from lemll._sparse import dense, lighter
from lemll._types import Features, FloatArray
from lemll._validation import is_sparse
from lemll.topology.neighbors import check_features

# Rows in use count as linearly dependent if a squared pivot is below this share of the largest.
DEPENDENT = 1e-11


class FeatureSign:
    """One lasso, with the rows in use (the support) and their weights s."""

    def __init__(self, X: Features, row: int, share: float) -> None:
        self.X, self.row = X, row
        self.target = dense(X[[row]]).ravel()
        self.half = float(self.target @ self.target) / 2
        self.products = self._products(self.target)
        self.weight = share * float(np.abs(self.products).max())
        self.support = np.empty(0, dtype=np.intp)
        self.s, self.gram = np.empty(0), np.empty((0, 0))

    def _products(self, residual: FloatArray) -> FloatArray:
        products = np.asarray(self.X @ residual)
        products[self.row] = 0  # a row must not rebuild itself
        return products

    def run(self, tol: float, max_iter: int) -> tuple[int, float]:
        """Solve the lasso; return the number of steps and the relative gap."""
        # The row is orthogonal to all others (or zero), so the code 0 is optimal.
        if self.weight == 0:
            return 0, 0.0
        steps = 0
        while True:
            residual = self.target - self._rebuilt()
            products = self._products(residual)
            gap = self._gap(residual, products)
            # At the optimum no row outside the support has a product above the weight lambda. The
            # row that violates this most joins the support.
            outside = np.abs(products)
            outside[self.support] = 0
            newcomer = int(np.argmax(outside))
            if gap <= tol or steps >= max_iter or outside[newcomer] <= self.weight:
                return steps, gap
            signs = np.append(np.sign(self.s), np.sign(products[newcomer]))
            self._join(newcomer)
            steps += self._fit(signs, max_iter - steps)

    def _rebuilt(self) -> FloatArray:
        return np.asarray(self.X[self.support].T @ self.s) if len(self.support) else 0 * self.target

    def _gap(self, residual: FloatArray, products: FloatArray) -> float:
        # Scale the residual until it is feasible for the dual problem; this gives a lower bound.
        largest = float(np.abs(products).max())
        dual = self.target - residual * min(1.0, self.weight / largest if largest > 0 else 1.0)
        primal = float(residual @ residual) / 2 + self.weight * float(np.abs(self.s).sum())
        return max(0.0, primal - self.half + float(dual @ dual) / 2) / self.half

    def _join(self, newcomer: int) -> None:
        self.support, self.s = np.append(self.support, newcomer), np.append(self.s, 0.0)
        # Extend the Gram matrix by one row and column; all other products are known already.
        column = dense(self.X[self.support] @ self.X[[newcomer]].T).ravel()
        wider = np.empty((len(column), len(column)))
        wider[:-1, :-1], wider[-1], wider[:, -1] = self.gram, column, column
        self.gram = wider

    def _fit(self, signs: FloatArray, max_iter: int) -> int:
        """Find the best weights of the rows in use; remove rows whose weight becomes 0."""
        steps = 0
        while len(self.s) and steps < max(1, max_iter):
            steps += 1
            # For fixed signs the lasso is a quadratic function, and its minimum is a linear system.
            right = self.products[self.support] - self.weight * signs
            best, reached = self._towards(_solve_gram(self.gram, right))
            self.s = best
            if reached and (np.sign(best) == signs).all():
                break
            kept = best != 0
            self.support, self.s = self.support[kept], best[kept]
            self.gram = self.gram[np.ix_(kept, kept)]
            signs = np.sign(self.s)
        return steps

    def _towards(self, end: FloatArray) -> tuple[FloatArray, bool]:
        """Return the best of `end` and the points on the way where a weight changes its sign."""
        move = end - self.s
        with np.errstate(divide="ignore", invalid="ignore"):
            crossings = -self.s / move
        crossed = np.flatnonzero((crossings > 0) & (crossings < 1))
        points = np.vstack([end, self.s + crossings[crossed, None] * move])
        points[1 + np.arange(len(crossed)), crossed] = 0  # exactly, so that the row is removed
        values = (
            np.einsum("ij,jk,ik->i", points, self.gram, points) / 2
            - points @ self.products[self.support]
            + self.weight * np.abs(points).sum(axis=1)
        )
        best = int(np.argmin(values))
        return points[best], best == 0


def _solve_gram(gram: FloatArray, right: FloatArray) -> FloatArray:
    """Solve for the weights; if rows are dependent, go far along the undetermined direction.

    Along this direction the objective is linear until a weight changes its sign. So its best point
    is such a sign change, which `_towards` finds.
    """
    factor, failed = lapack.dpotrf(gram, lower=True)
    pivots = np.diag(factor)
    if failed or pivots.min() ** 2 <= DEPENDENT * pivots.max() ** 2:
        added = gram + DEPENDENT * np.trace(gram) * np.eye(len(gram))
        return np.asarray(linalg.solve(added, right, assume_a="pos", check_finite=False))
    return np.asarray(lapack.dpotrs(factor, right, lower=True)[0])


# Number of rows per block: large enough for efficient products, small enough for the cache.
BLOCK_ROWS = 64


@dataclass(frozen=True)
class SparseCoding:
    """The codes of all rows.

    Attributes
    ----------
    weights : ndarray or csr_array of shape (n_samples, n_samples)
        Row i rebuilds row i of X. The diagonal is zero.
    n_iter : ndarray of shape (n_samples,)
        Number of iterations per row.
    gap : ndarray of shape (n_samples,)
        Duality gap of each lasso, relative to ``|x_i|^2 / 2``. Infinity if it was not computed.
    """

    weights: Features
    n_iter: npt.NDArray[np.intp]
    gap: FloatArray


def admm_codes(
    X: Features,
    *,
    share: float = 0.01,
    penalty: float = 1.0,
    relaxation: float = 0.5,
    absolute: float = 1e-4,
    relative: float = 1e-2,
    max_iter: int = 1000,
) -> SparseCoding:
    r"""Return codes as the authors of MLFE compute them: ADMM with loose tolerances.

    Let :math:`\rho` be the penalty, a the relaxation, and :math:`A_i` the matrix whose columns are
    the other rows. The iteration is

    .. math::
        s &= (A_i^\top A_i + \rho I)^{-1} (A_i^\top x_i + \rho (z - v)), \\
        \hat s &= a s + (1 - a) z, \\
        z &= \mathrm{soft}(\hat s + v, \lambda_i / \rho), \qquad v \leftarrow v + \hat s - z,

    starting at 0, until :math:`\|s - z\|` and :math:`\rho\|z - z_{old}\|` are small. With the
    default tolerances this takes about ten steps and ends far from the optimum of the lasso: most
    weights z are small but not zero.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features. The other arguments are not checked, because the enhancer makes them.
    share : float, default=0.01
        lambda_i relative to the largest product of row i with another row.
    penalty : float, default=1.0
        rho, positive.
    relaxation : float, default=0.5
        a, between 0 and 2.
    absolute, relative : float
        Stopping tolerances.
    max_iter : int, default=1000
        Largest number of steps.

    Returns
    -------
    SparseCoding
        The codes, with a dense array of weights. The gaps are not computed.

    References
    ----------
    .. [1] Q.-W. Zhang, Y. Zhong and M.-L. Zhang, "Feature-induced labeling information enrichment
       for multi-label learning", AAAI Conference on Artificial Intelligence, 2018.
    .. [2] S. Boyd, N. Parikh, E. Chu, B. Peleato and J. Eckstein, "Distributed optimization and
       statistical learning via the alternating direction method of multipliers", Foundations and
       Trends in Machine Learning 3(1), 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.rivals.sparse_coding import admm_codes
    >>> admm_codes(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])).weights.round(2)
    array([[0.  , 0.49, 0.  ],
           [1.98, 0.  , 0.  ],
           [0.  , 0.  , 0.  ]])
    """
    system = _System(lighter(check_features(X)), penalty)
    n_samples = system.n_samples
    weights = np.empty((n_samples, n_samples))
    n_iter = np.empty(n_samples, dtype=np.intp)
    floor = absolute * np.sqrt(max(n_samples - 1, 1))
    for start in range(0, n_samples, BLOCK_ROWS):
        block = _Block(system, np.arange(start, min(start + BLOCK_ROWS, n_samples)), share)
        for step in range(1, max_iter + 1):
            primal, dual, sizes, size_v = block.step(relaxation)
            done = (primal < floor + relative * sizes) & (dual < floor + relative * size_v)
            # These codes have no certificate, so rows without convergence use their last codes.
            if step == max_iter:
                done[:] = True
            if done.any():
                rows = block.rows[done]
                weights[rows], n_iter[rows] = block.z[done], step
                block.keep(~done)
            if len(block.rows) == 0:
                break
    return SparseCoding(weights, n_iter, np.full(n_samples, np.inf))


def lasso_codes(
    X: Features, *, share: float = 0.01, tol: float = 1e-8, max_iter: int = 2000
) -> SparseCoding:
    r"""Return the optimal codes, each certified by its duality gap.

    The method is feature-sign search [1]_. In each step, the row with the largest product with the
    residual joins the rows in use. The weights of the rows in use follow from their signs. A row
    whose weight would change its sign is removed. The search stops when the gap

    .. math:: \tfrac12\|r\|^2 + \lambda\|s\|_1 - \tfrac12\|x_i\|^2
        + \tfrac12\|x_i - \theta\|^2, \qquad r = x_i - A_i s, \quad
        \theta = r \min(1, \lambda / \|A_i^\top r\|_\infty),

    is small. A code has about ten weights, so these systems are very small.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features. The other arguments are not checked, because the enhancer makes them.
    share : float, default=0.01
        lambda_i relative to the largest product of row i with another row.
    tol : float, default=1e-8
        The search stops when the duality gap, relative to half the squared length of the row, is
        at most this.
    max_iter : int, default=2000
        Largest number of steps. `SparseCoding.gap` holds the gaps at the end.

    Returns
    -------
    SparseCoding
        The codes, with a sparse array of weights.

    References
    ----------
    .. [1] H. Lee, A. Battle, R. Raina and A. Y. Ng, "Efficient sparse coding algorithms", Advances
       in Neural Information Processing Systems 19, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.rivals.sparse_coding import lasso_codes
    >>> lasso_codes(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])).weights.toarray().round(3)
    array([[0.   , 0.495, 0.   ],
           [1.98 , 0.   , 0.   ],
           [0.   , 0.   , 0.   ]])
    """
    light = lighter(check_features(X))
    n_samples = light.shape[0]
    n_iter, gap = np.zeros(n_samples, dtype=np.intp), np.zeros(n_samples)
    codes = []
    for i in range(n_samples):
        search = FeatureSign(light, i, share)
        n_iter[i], gap[i] = search.run(tol, max_iter)
        codes.append((search.support, search.s))
    counts = [len(support) for support, _ in codes]
    parts = (
        np.concatenate([weights for _, weights in codes]),
        np.concatenate([support for support, _ in codes]),
        np.concatenate([[0], np.cumsum(counts)]),
    )
    weights = sparse.csr_array(parts, shape=(n_samples, n_samples))
    weights.sort_indices()
    return SparseCoding(weights, n_iter, gap)


class _System:
    """Products with ``P = (X X' + rho I)^-1``, by an inverse of order n_samples or n_features."""

    def __init__(self, X: Features, penalty: float) -> None:
        self.X, self.penalty = X, penalty
        self.n_samples = int(X.shape[0])
        self.adjoint = sparse.csr_array(X.T) if is_sparse(X) else X.T
        # Invert the smaller of X'X and XX'; the identity in `times` converts the first to P.
        self.by_features = X.shape[1] <= X.shape[0]
        gram = dense(self.adjoint @ X if self.by_features else X @ self.adjoint)
        gram[np.diag_indices(len(gram))] += penalty
        factor = linalg.cho_factor(gram, lower=True, check_finite=False)
        self.inverse = np.asarray(linalg.cho_solve(factor, np.eye(len(gram)), check_finite=False))

    def times(self, q: FloatArray) -> FloatArray:
        """Return q P, for rows q."""
        if not self.by_features:
            return np.asarray(q @ self.inverse)
        # Woodbury identity: P = (I - X (X'X + rho I)^-1 X') / rho, with an inverse of order d.
        product = ((q @ self.X) @ self.inverse) @ self.adjoint
        np.subtract(q, product, out=product)
        product /= self.penalty
        return np.asarray(product)


class _Block:
    """The state of ADMM for a block of lassos. The rows of z are the codes."""

    def __init__(self, system: _System, rows: npt.NDArray[np.intp], share: float) -> None:
        self.system, self.rows = system, rows
        self.products = np.asarray(dense(system.X[rows]) @ system.adjoint)
        own = np.arange(len(rows))
        self.products[own, rows] = 0
        self.weight = share * np.abs(self.products).max(axis=1, keepdims=True)
        unit = np.zeros_like(self.products)
        unit[own, rows] = 1
        # Leaving out row i subtracts a rank-one matrix from the inverse: its column i, scaled.
        self.columns = system.times(unit)
        self.columns /= self.columns[own, rows][:, None]
        self.z, self.v = np.zeros_like(self.products), np.zeros_like(self.products)

    def keep(self, alive: npt.NDArray[np.bool_]) -> None:
        """Keep only some of the rows."""
        for name in ("rows", "products", "weight", "columns", "z", "v"):
            setattr(self, name, getattr(self, name)[alive])

    def step(self, relaxation: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Take a step of ADMM; return |s - z|, rho |z - z_old|, max(|s|, |z|) and rho |v|."""
        rho, own = self.system.penalty, np.arange(len(self.rows))
        q = self.z - self.v
        q *= rho
        q += self.products
        q[own, self.rows] = 0
        s = self.system.times(q)
        # The rank-one change that leaves out row i. It makes s_i zero except for rounding.
        s -= s[own, self.rows][:, None] * self.columns
        s[own, self.rows] = 0
        w = relaxation * s
        w += (1 - relaxation) * self.z
        w += self.v
        # soft(w, bound) = w - clip(w, -bound, bound), and the clipped part is the new v.
        bound = self.weight / rho
        np.clip(w, -bound, bound, out=self.v)
        w -= self.v
        change = rho * _norms(np.subtract(w, self.z, out=q))
        self.z = w
        sizes = np.maximum(_norms(s), _norms(w))
        return _norms(np.subtract(s, w, out=q)), change, sizes, rho * _norms(self.v)


def _norms(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))
