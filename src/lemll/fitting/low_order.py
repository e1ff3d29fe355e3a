r"""Features of the Gaussian kernel: its low orders exactly, and random waves for the rest.

With the centred rows :math:`z = x - m` and :math:`e(x) = \exp(-g|z|^2)`, the series of the kernel
:math:`k(x, y) = e(x) e(y) \exp(2g z_x^\top z_y)` is a sum of products of the features

.. math:: e(x), \quad e(x)\,u_j, \quad e(x)\,u_ju_k, \quad e(x)\,u_j^2/\sqrt2, \quad \ldots,
    \qquad u = \sqrt{2g}\,Q^\top z ,

for any orthogonal Q. The orders 0 and 1 have d + 1 features and are all kept. Order 2 has
d (d + 1) / 2 of them; the largest are kept, with the principal directions of e(x) z as Q.

Waves :math:`\cos\omega^\top z` and :math:`\sin\omega^\top z` with frequencies of the distribution
N(0, 2g I) estimate the kernel: the mean of :math:`\exp(i\omega^\top(z_x - z_y))` is k(x, y). Each
feature above is the mean of a wave times a Hermite polynomial of
:math:`v = Q^\top\omega/\sqrt{2g}`:

.. math:: E[e^{i\omega^\top z}] = e(x), \quad E[-i v_je^{i\omega^\top z}] = e(x)\,u_j, \quad
    E[-(v_jv_k - \delta_{jk})e^{i\omega^\top z}] = e(x)\,u_ju_k .

So if these polynomials times the kept features are subtracted from a wave, the products of what is
left have the mean k minus the kept part. The noise of m waves is about :math:`1/\sqrt m` of what is
left of k(x, x). With many columns most of it is left, so the noise is large. Therefore the waves
have a weight: the one with which they come nearest to the rest of the kernel between different rows
of a sample.

If the rows are far from their mean, measured by g, then e(x) is near 0 and the features of order 2
hold nothing. The same sample decides whether they are used.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import eigh

from lemll._types import Features, FloatArray, IndexArray
from lemll.fitting.first_order import dense_rows
from lemll.fitting.kernels import Kernel, row_parts

__all__ = ["LowOrderWaves", "fit_low_order_waves", "orthogonal_frequencies"]

# The weight of the waves is one number, so a sample of the pairs of rows is enough.
SAMPLE_ROWS = 1_500
# Directions with a smaller sum of squares, relative to the largest one, hold only rounding errors.
SMALLEST_SQUARE = 1e-12


@dataclass(frozen=True)
class LowOrderWaves:
    """Low orders of the Gaussian kernel and random waves, in place of a kernel in a fitted model.

    Attributes
    ----------
    gamma : float
        Factor g of the squared distance.
    centre : ndarray of shape (n_features,)
        The mean m of the training rows.
    directions : ndarray of shape (n_features, n_directions)
        The first columns of Q.
    pairs : ndarray of shape (2, n_pairs)
        The directions j <= k of the features of order 2.
    frequencies : ndarray of shape (n_features, n_frequencies)
        The frequencies of the waves.
    pair_parts : ndarray of shape (n_pairs, n_frequencies)
        The Hermite polynomial of each frequency for each feature of order 2. This number times the
        feature is subtracted from the cosine.
    wave_weight : float
        The weight of the waves in the kernel, 0 to 1.
    """

    gamma: float
    centre: FloatArray = field(compare=False, repr=False)
    directions: FloatArray = field(compare=False, repr=False)
    pairs: IndexArray = field(compare=False, repr=False)
    frequencies: FloatArray = field(compare=False, repr=False)
    pair_parts: FloatArray = field(compare=False, repr=False)
    wave_weight: float = 1.0
    name: str = "fourier"

    @property
    def width(self) -> int:
        """The number of features."""
        (n_features, n_frequencies), (_, n_pairs) = self.frequencies.shape, self.pairs.shape
        return int(1 + n_features + n_pairs + 2 * n_frequencies)

    def values(self, rows: Features, others: Features = None) -> FloatArray:
        """Return the features of rows, of shape (n_rows, width); `others` is not used."""
        z = dense_rows(rows) - self.centre
        height = _heights(z, self.gamma)
        first, second = 1 + z.shape[1], 1 + z.shape[1] + self.pairs.shape[1]
        waves = self.frequencies.shape[1]
        values = np.empty((len(z), self.width))
        values[:, :1] = height
        np.multiply(z, np.sqrt(2 * self.gamma) * height, out=values[:, 1:first])
        # Each factor gets the root of the height, so that a product of large numbers is not
        # infinite before it is multiplied by a height of 0.
        u = z @ self.directions
        u *= np.sqrt(2 * self.gamma * height)
        of_pairs = values[:, first:second]
        np.multiply(u[:, self.pairs[0]], u[:, self.pairs[1]], out=of_pairs)
        of_pairs *= _pair_lengths(self.pairs)
        phases = z @ self.frequencies
        values[:, second : second + waves] = np.cos(phases) - height - of_pairs @ self.pair_parts
        values[:, second + waves :] = np.sin(phases) - height * phases
        values[:, second:] *= np.sqrt(self.wave_weight / max(waves, 1))
        return values


def fit_low_order_waves(
    kernel: Kernel, X: Features, n_components: int, generator: np.random.Generator
) -> LowOrderWaves:
    """Choose the features of order 2, draw the waves, and fit the weight of the waves.

    Parameters
    ----------
    kernel : Kernel
        A Gaussian kernel.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Training rows.
    n_components : int
        Number of features besides those of the orders 0 and 1; one less if the number of waves
        would be odd. Half of them are of order 2, or all that exist, and the others are waves. If
        waves alone come nearer to the kernel of a sample, there are only waves.
    generator : Generator
        Draws the frequencies and the sample.

    Returns
    -------
    LowOrderWaves
        The features.
    """
    centre = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    # An even number, because each frequency has two waves.
    most_pairs = 2 * (n_components // 4)
    squares, Q = _principal_directions(X, centre, kernel.gamma, most_pairs)
    sample = X[np.sort(generator.permutation(X.shape[0])[:SAMPLE_ROWS])]
    K = kernel.values(sample, sample)
    v = orthogonal_frequencies(generator, X.shape[1], n_components // 2)
    found = []
    for count in (most_pairs, 0):
        pairs, directions = _largest_pairs(squares, Q, count)
        own = v[:, : (n_components - pairs.shape[1]) // 2]
        waves = LowOrderWaves(
            kernel.gamma,
            centre,
            directions,
            pairs,
            np.sqrt(2 * kernel.gamma) * own,
            _pair_parts(directions.T @ own, pairs),
        )
        weight, error = _wave_weight(K, waves.values(sample), 2 * own.shape[1])
        found.append((error, replace(waves, wave_weight=weight)))
    # With equal errors the first one is kept.
    return min(found, key=lambda candidate: candidate[0])[1]


def orthogonal_frequencies(
    generator: np.random.Generator, n_features: int, count: int
) -> FloatArray:
    """Draw standard normal frequencies that are orthogonal to each other, in groups.

    Orthogonal frequencies have the same distribution one by one and a smaller error together.

    Parameters
    ----------
    generator : Generator
        The source of the random numbers.
    n_features : int
        Number of columns of the rows, which is the size of a group.
    count : int
        Number of frequencies.

    Returns
    -------
    ndarray of shape (n_features, count)
        One frequency per column.
    """
    groups = [np.empty((n_features, 0))]
    for start in range(0, count, n_features):
        size = min(n_features, count - start)
        basis, _ = np.linalg.qr(generator.standard_normal((n_features, size)))
        lengths = np.sqrt(generator.chisquare(n_features, size))
        # A random sign, because QR fixes the signs of its basis.
        groups.append(basis * lengths * generator.choice([-1.0, 1.0], size))
    return np.hstack(groups)


def _heights(z: FloatArray, gamma: float) -> FloatArray:
    """Return e(x) of centred rows, as a column."""
    # The square of a row that is very far is infinite, and its height is 0.
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-gamma * np.square(z).sum(axis=1)))[:, None]


def _principal_directions(
    X: Features, centre: FloatArray, gamma: float, most: int
) -> tuple[FloatArray, FloatArray]:
    """Return Q and the sums of the squares of e(x) z along its columns, the largest first.

    There are at most `most` columns. The matrix that is decomposed has the smaller number of rows
    and columns of X as its order.
    """
    n_samples, n_features = X.shape
    wide = n_features > n_samples
    low = np.empty(X.shape) if wide else np.zeros((n_features, n_features))
    for part in row_parts(n_samples, n_features):
        z = dense_rows(X[part]) - centre
        z *= _heights(z, gamma)
        if wide:
            low[part] = z
        else:
            low += z.T @ z
    gram = low @ low.T if wide else low
    order, most = len(gram), max(most, 1)
    squares, vectors = eigh(
        gram,
        overwrite_a=True,
        check_finite=False,
        subset_by_index=[max(0, order - most), order - 1],
    )
    kept = squares > SMALLEST_SQUARE * max(float(squares[-1]), np.finfo(float).tiny)
    squares, vectors = squares[kept][::-1], vectors[:, kept][:, ::-1]
    return squares, (low.T @ vectors) / np.sqrt(squares) if wide else vectors


def _largest_pairs(squares: FloatArray, Q: FloatArray, count: int) -> tuple[IndexArray, FloatArray]:
    """Return the pairs of directions with the largest products of sums of squares, and their Q.

    This product tells the mean square of a feature of order 2 if the directions are independent.
    The sums decrease, so (j + 1) (k + 1) - j (j + 1) / 2 pairs are at least as large as the pair
    j <= k. Pairs for which this is above `count` need not be compared.
    """
    found = [np.empty((2, 0), dtype=np.intp)]
    for j in range(len(squares)):
        end = min(len(squares), int((count + j * (j + 1) / 2) // (j + 1)))
        if end <= j:
            break
        found.append(np.stack([np.full(end - j, j), np.arange(j, end)]))
    pairs = np.hstack(found)
    # Relative to the largest, so that products of very large or small numbers can be compared.
    relative = squares / squares.max(initial=np.finfo(float).tiny)
    largest = np.argsort(-relative[pairs[0]] * relative[pairs[1]], kind="stable")[:count]
    pairs = pairs[:, np.sort(largest)]
    used = int(pairs.max(initial=-1)) + 1
    return pairs, np.ascontiguousarray(Q[:, :used])


def _pair_parts(along: FloatArray, pairs: IndexArray) -> FloatArray:
    """Return the Hermite polynomials of order 2 of frequencies, given along the directions."""
    same = pairs[0] == pairs[1]
    parts = same[:, None] - along[pairs[0]] * along[pairs[1]]
    return np.asarray(parts * _pair_lengths(pairs)[:, None])


def _pair_lengths(pairs: IndexArray) -> FloatArray:
    """Return the factor of each feature of order 2: a square occurs once in the series."""
    return np.where(pairs[0] == pairs[1], np.sqrt(0.5), 1.0)


def _wave_weight(K: FloatArray, values: FloatArray, n_waves: int) -> tuple[float, float]:
    """Return the weight with which the waves are nearest to the rest of the kernel, and the error.

    The weight minimises the sum of the squared errors of all pairs of different rows. A row with
    itself does not count, because a new row is never compared with itself.
    """
    low, waves = values[:, : values.shape[1] - n_waves], values[:, values.shape[1] - n_waves :]
    rest, estimate = K - low @ low.T, waves @ waves.T
    for matrix in (rest, estimate):
        np.fill_diagonal(matrix, 0.0)
    size = float(np.vdot(estimate, estimate))
    weight = float(np.clip(np.vdot(estimate, rest) / size, 0.0, 1.0)) if size > 0 else 1.0
    rest -= weight * estimate
    return weight, float(np.vdot(rest, rest))
