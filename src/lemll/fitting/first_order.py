r"""The Gaussian kernel split into its first-order part, which is exact, and a remainder.

With the centred rows :math:`z = x - m` and :math:`e(x) = \exp(-g |z|^2)`, the Gaussian kernel is
:math:`k(x, y) = e(x) e(y) \exp(2g z_x^\top z_y)`. The first two terms of the series of the last
factor are products of d + 1 explicit features,

.. math:: \varphi(x) = e(x) (1, \sqrt{2g}\, z),

and the remainder :math:`r(x, y) = e(x) e(y) (\exp(t) - 1 - t)` with :math:`t = 2g z_x^\top z_y` is
a kernel again, because all terms of its series are. Nystroem features of r next to
:math:`\varphi` give :math:`\hat K = \Phi\Phi^\top + \hat R`, and :math:`K - \hat K = R - \hat R` is
positive semi-definite. The features are orthonormal functions in the space of k:
:math:`\varphi` holds k(m, .) and its derivatives at m. So a model of them is also a model of
the exact kernel, with the same outputs and the same penalty.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from lemll._types import Features, FloatArray
from lemll._validation import is_sparse
from lemll.fitting.kernels import row_parts

__all__ = ["FirstOrderKernel", "cluster_means", "dense_rows"]

# Clusters of more rows than this many per mean would hardly change the means.
ROWS_PER_MEAN = 20
# Each step costs about as much as the kernel values of the rows and the means. The first step
# changes the quality most.
STEPS = 3


@dataclass(frozen=True)
class FirstOrderKernel:
    """The first-order features of the Gaussian kernel, and its remainder with landmarks.

    Attributes
    ----------
    gamma : float
        Factor g of the squared distance.
    centre : ndarray of shape (n_features,)
        The mean m of the training rows.
    """

    gamma: float
    centre: FloatArray = field(compare=False, repr=False)
    name: str = "first-order rbf"

    def values(self, rows: Features, landmarks: Features) -> FloatArray:
        """Return phi of the rows, and beside it their remainder kernel with every landmark.

        The shape is (n_rows, 1 + n_features + n_landmarks).
        """
        z, others = self._centred(rows), self._centred(landmarks)
        own, theirs = self._heights(z), self._heights(others)
        count = z.shape[1] + 1
        values = np.empty((len(z), count + len(others)))
        values[:, 0] = own
        np.multiply(z, np.sqrt(2 * self.gamma) * own[:, None], out=values[:, 1:count])
        t = z @ others.T
        t *= 2 * self.gamma
        # The squared distance avoids exp(t), which overflows for rows far from the mean.
        squares = np.square(z).sum(axis=1)[:, None] + np.square(others).sum(axis=1)
        left = np.exp(np.minimum(t - self.gamma * squares, 0.0))
        t += 1.0
        t *= own[:, None]
        t *= theirs
        np.subtract(left, t, out=values[:, count:])
        return values

    def _centred(self, rows: Features) -> FloatArray:
        return dense_rows(rows) - self.centre

    def _heights(self, z: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-self.gamma * np.square(z).sum(axis=1)))


def cluster_means(X: Features, count: int, generator: np.random.Generator) -> FloatArray:
    """Return the means of clusters of rows, as landmarks that represent all rows.

    Lloyd's algorithm lowers the sum of the squared distances of rows to the nearest mean. It starts
    with randomly chosen rows, and does a few steps on a sample: the landmarks need not be optimal.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Rows.
    count : int
        Number of means, less than n_samples.
    generator : Generator
        Chooses the sample and its first rows as the initial means.

    Returns
    -------
    ndarray of shape (count, n_features)
        The means. A cluster without rows keeps the last one.
    """
    sample = generator.permutation(X.shape[0])[: ROWS_PER_MEAN * count]
    rows = X[sample]
    means = dense_rows(rows[:count])
    for _ in range(STEPS):
        half_squares = np.square(means).sum(axis=1) / 2
        nearest = np.concatenate(
            [
                np.argmin(half_squares - np.asarray(rows[part] @ means.T), axis=1)
                for part in row_parts(rows.shape[0], count)
            ]
        )
        size = np.bincount(nearest, minlength=count)
        members = sparse.csr_array(
            (1 / size[nearest], (nearest, np.arange(len(nearest)))), shape=(count, len(nearest))
        )
        found = dense_rows(members @ rows)
        means = np.where(size[:, None] > 0, found, means)
    return means


def dense_rows(rows: Features) -> FloatArray:
    """Return rows as a dense array of float64."""
    return np.asarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64)
