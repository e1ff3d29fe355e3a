"""How a row is rebuilt from few others: one lasso a row, all of them with one Gram matrix (MLFE).

For every row i of X, with the other rows as the dictionary,

    min_s  |x_i - sum_j s_j x_j|^2 / 2 + lambda_i |s|_1,   lambda_i = share max_j |x_j'x_i|,  s_i = 0.

The alternating direction method of multipliers solves ``(X X' + rho I) s = q`` again and again,
for each row without itself. Leaving a row out changes the inverse by a matrix of rank one, so all
rows share one, and a block of them is a matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from lemll._validation import is_sparse
from lemll.topology._rows import FloatArray, check_features

__all__ = ["SparseCoding", "admm_codes", "lasso_codes"]

# Rows coded at once: enough for efficient products, few enough to stay in the cache.
BLOCK_ROWS = 64
# Below this share of nonzeros a dense X is multiplied faster as a sparse one.
SPARSE_DENSITY = 0.1
# Steps between two looks at the duality gap.
LOOK = 10
# Penalty of the exact method relative to the mean squared length of a row, and its relaxation.
PENALTY, RELAXATION = 0.1, 1.6


@dataclass(frozen=True)
class SparseCoding:
    """Codes of all rows.

    Attributes
    ----------
    weights : ndarray or csr_array of shape (n_samples, n_samples)
        Row i rebuilds row i of X; zero diagonal.
    n_iter : ndarray of shape (n_samples,)
        Iterations that each row took.
    gap : ndarray of shape (n_samples,)
        Duality gap of each lasso, relative to ``|x_i|^2 / 2``, at least where it was wanted:
        infinity where none was computed.
    """

    weights: Any
    n_iter: npt.NDArray[np.intp]
    gap: FloatArray


def admm_codes(
    X: Any,
    *,
    share: float = 0.01,
    penalty: float = 1.0,
    relaxation: float = 0.5,
    absolute: float = 1e-4,
    relative: float = 1e-2,
    max_iter: int = 1000,
) -> SparseCoding:
    r"""Return codes as MLFE's authors compute them: ADMM with a loose stop.

    With penalty :math:`\rho`, relaxation a, :math:`A_i` the matrix of the other rows as columns:

    .. math::
        s &= (A_i^\top A_i + \rho I)^{-1} (A_i^\top x_i + \rho (z - v)), \\
        \hat s &= a s + (1 - a) z, \\
        z &= \mathrm{soft}(\hat s + v, \lambda_i / \rho), \qquad v \leftarrow v + \hat s - z,

    from 0, until :math:`\|s - z\|` and :math:`\rho\|z - z_{old}\|` are small. With the default
    tolerances that is after some ten steps, far from the lasso's optimum: most weights z are small
    and not zero.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features.
    share : float, default=0.01
        lambda_i relative to the largest product of row i with another.
    penalty : float, default=1.0
        rho, positive.
    relaxation : float, default=0.5
        a, between 0 and 2.
    absolute, relative : float
        Tolerances.
    max_iter : int, default=1000
        Cap on the steps.

    Returns
    -------
    SparseCoding
        With a dense array of weights; no gaps.

    References
    ----------
    .. [1] Q.-W. Zhang, Y. Zhong and M.-L. Zhang, "Feature-induced labeling information enrichment
       for multi-label learning", AAAI Conference on Artificial Intelligence, 2018.
    .. [2] S. Boyd, N. Parikh, E. Chu, B. Peleato and J. Eckstein, "Distributed optimization and
       statistical learning via the alternating direction method of multipliers", Foundations and
       Trends in Machine Learning 3(1), 2011.

    Examples
    --------
    >>> from lemll.topology.sparse_coding import admm_codes
    >>> admm_codes([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]).weights.round(2)
    array([[0.  , 0.49, 0.  ],
           [1.82, 0.  , 0.  ],
           [0.  , 0.  , 0.  ]])
    """
    _check(share=share, penalty=penalty, relaxation=relaxation, max_iter=max_iter)
    system = _System(_light(check_features(X)), penalty)
    n_samples = system.n_samples
    weights = np.empty((n_samples, n_samples))
    n_iter = np.empty(n_samples, dtype=np.intp)
    floor = absolute * np.sqrt(max(n_samples - 1, 1))
    for start in range(0, n_samples, BLOCK_ROWS):
        block = _Block(system, np.arange(start, min(start + BLOCK_ROWS, n_samples)), share)
        for step in range(1, max_iter + 1):
            primal, dual, sizes, size_v = block.step(relaxation)
            done = (primal < floor + relative * sizes) & (dual < floor + relative * size_v)
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
    X: Any, *, share: float = 0.01, tol: float = 1e-8, max_iter: int = 10000
) -> SparseCoding:
    """Return the optimal codes, each certified by its duality gap.

    Over-relaxed ADMM finds which weights are not zero, and the equations of these weights give
    their values.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features.
    share : float, default=0.01
        lambda_i relative to the largest product of row i with another.
    tol : float, default=1e-8
        Relative duality gap at which to stop.
    max_iter : int, default=10000
        Cap on the steps; see `SparseCoding.gap` for what was reached.

    Returns
    -------
    SparseCoding
        With a sparse array of weights.

    Examples
    --------
    >>> from lemll.topology.sparse_coding import lasso_codes
    >>> lasso_codes([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]).weights.toarray().round(3)
    array([[0.   , 0.495, 0.   ],
           [1.98 , 0.   , 0.   ],
           [0.   , 0.   , 0.   ]])
    """
    _check(share=share, penalty=1.0, relaxation=1.0, max_iter=max_iter)
    if not (np.isfinite(tol) and tol > 0):
        raise ValueError(f"tol must be finite and > 0, got {tol!r}.")
    light = _light(check_features(X))
    lengths = _squared_lengths(light)
    system = _System(light, PENALTY * float(lengths.mean()) or 1.0)
    n_samples = system.n_samples
    n_iter, gap = np.zeros(n_samples, dtype=np.intp), np.zeros(n_samples)
    blocks = []
    for start in range(0, n_samples, BLOCK_ROWS):
        block = _Block(system, np.arange(start, min(start + BLOCK_ROWS, n_samples)), share)
        codes = np.zeros((len(block.rows), n_samples))
        for step in range(1, max_iter + 1):
            block.step(RELAXATION)
            if step % LOOK and step < max_iter:
                continue
            polished = block.polished()
            gaps = block.gaps(polished)
            done = (gaps <= tol) | (step == max_iter)
            rows = block.rows[done]
            codes[rows - start], n_iter[rows], gap[rows] = polished[done], step, gaps[done]
            block.keep(~done)
            if len(block.rows) == 0:
                break
        blocks.append(sparse.csr_array(codes))
    return SparseCoding(sparse.csr_array(sparse.vstack(blocks)), n_iter, gap)


def _check(*, share: float, penalty: float, relaxation: float, max_iter: int) -> None:
    for name, value in (("share", share), ("penalty", penalty)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be finite and > 0, got {value!r}.")
    if not 0 < relaxation < 2:
        raise ValueError(f"relaxation must lie between 0 and 2, got {relaxation!r}.")
    if not isinstance(max_iter, (int, np.integer)) or max_iter < 1:
        raise ValueError(f"max_iter must be a whole number of at least 1, got {max_iter!r}.")


def _light(X: Any) -> Any:
    """Return X in float64; a dense one with few nonzeros as a CSR array."""
    if not is_sparse(X) and np.count_nonzero(X) < SPARSE_DENSITY * X.size:
        X = sparse.csr_array(X)
    return X.astype(np.float64)


def _squared_lengths(X: Any) -> FloatArray:
    squares = X.multiply(X) if is_sparse(X) else X * X
    return np.asarray(squares.sum(axis=1)).ravel()


def _dense(product: Any) -> FloatArray:
    return np.asarray(product.toarray() if is_sparse(product) else product)


class _System:
    """``P = (X X' + rho I)^-1``: by the inverse of that order, or of the number of features."""

    def __init__(self, X: Any, penalty: float) -> None:
        self.X, self.penalty = X, penalty
        self.n_samples = int(X.shape[0])
        self.adjoint = sparse.csr_array(X.T) if is_sparse(X) else X.T
        self.by_features = X.shape[1] <= X.shape[0]
        gram = _dense(self.adjoint @ X if self.by_features else X @ self.adjoint)
        gram[np.diag_indices(len(gram))] += penalty
        factor = linalg.cho_factor(gram, lower=True, check_finite=False)
        self.inverse = np.asarray(linalg.cho_solve(factor, np.eye(len(gram)), check_finite=False))

    def times(self, q: FloatArray) -> FloatArray:
        """Return q P, for rows q."""
        if not self.by_features:
            return np.asarray(q @ self.inverse)
        product = ((q @ self.X) @ self.inverse) @ self.adjoint
        np.subtract(q, product, out=product)
        product /= self.penalty
        return np.asarray(product)


class _Block:
    """Some of the lassos, and where ADMM is with them; rows of z are codes."""

    def __init__(self, system: _System, rows: npt.NDArray[np.intp], share: float) -> None:
        self.system, self.rows = system, rows
        self.targets = _dense(system.X[rows])
        self.products = np.asarray(self.targets @ system.adjoint)
        own = np.arange(len(rows))
        self.products[own, rows] = 0
        self.weight = share * np.abs(self.products).max(axis=1, keepdims=True)
        unit = np.zeros_like(self.products)
        unit[own, rows] = 1
        # What leaving out a row takes from the inverse: its own column, scaled.
        self.columns = system.times(unit)
        self.columns /= self.columns[own, rows][:, None]
        self.z, self.v = np.zeros_like(self.products), np.zeros_like(self.products)

    def keep(self, alive: npt.NDArray[np.bool_]) -> None:
        """Go on with some of the rows."""
        for name in ("rows", "targets", "products", "weight", "columns", "z", "v"):
            setattr(self, name, getattr(self, name)[alive])

    def step(self, relaxation: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Take a step of ADMM; return |s - z|, rho |z - z_old|, max(|s|, |z|) and rho |v|."""
        rho, own = self.system.penalty, np.arange(len(self.rows))
        q = self.z - self.v
        q *= rho
        q += self.products
        q[own, self.rows] = 0
        s = self.system.times(q)
        s -= s[own, self.rows][:, None] * self.columns
        s[own, self.rows] = 0
        w = relaxation * s
        w += (1 - relaxation) * self.z
        w += self.v
        bound = self.weight / rho
        np.clip(w, -bound, bound, out=self.v)
        w -= self.v
        change = rho * _norms(np.subtract(w, self.z, out=q))
        self.z = w
        sizes = np.maximum(_norms(s), _norms(w))
        return _norms(np.subtract(s, w, out=q)), change, sizes, rho * _norms(self.v)

    def polished(self) -> FloatArray:
        """Return z with the values that its nonzeros and their signs determine, where they do."""
        result = self.z.copy()
        for k, z in enumerate(self.z):
            support = np.flatnonzero(z)
            if 0 < len(support) <= self.system.X.shape[1]:
                result[k, support] = self._solve(k, support, np.sign(z[support]))
        worse = self.gaps(result) > self.gaps(self.z)
        result[worse] = self.z[worse]
        return result

    def _solve(self, k: int, support: Any, signs: FloatArray) -> FloatArray:
        part = self.system.X[support]
        gram = _dense(part @ part.T)
        right = self.products[k, support] - self.weight[k] * signs
        try:
            factor = linalg.cho_factor(gram, lower=True, check_finite=False)
        except linalg.LinAlgError:
            return self.z[k, support]
        return np.asarray(linalg.cho_solve(factor, right, check_finite=False))

    def gaps(self, codes: FloatArray) -> FloatArray:
        """Return the duality gaps, relative to half the squared lengths of the rows."""
        residual = self.targets - np.asarray(codes @ self.system.X)
        fit = np.asarray(residual @ self.system.adjoint)
        fit[np.arange(len(self.rows)), self.rows] = 0
        largest, weight = np.abs(fit).max(axis=1), self.weight[:, 0]
        shrink = np.where(largest > weight, weight / np.where(largest > 0, largest, 1), 1.0)
        dual = residual * shrink[:, None]
        half = _norms(self.targets) ** 2 / 2
        primal = _norms(residual) ** 2 / 2 + weight * np.abs(codes).sum(axis=1)
        gap = primal - half + _norms(self.targets - dual) ** 2 / 2
        return np.asarray(np.maximum(gap, 0) / np.where(half > 0, half, 1))


def _norms(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))
