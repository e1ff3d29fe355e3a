"""The features of a kernel, as the models by samples use them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lemll._kernel import CentredKernel
from lemll._types import Array
from lemll.solvers._features import CentredFeatures

__all__ = ["KernelFeatures", "features_for"]


class KernelFeatures:
    """What `CentredFeatures` is for features, for features behind a kernel.

    With weights w the rows, that of the ones included, are multiplied by ``sqrt(w_i)``, and the
    centre is the weighted mean.

    Parameters
    ----------
    K : CentredKernel
        The kernel; never changed.
    dtype : dtype
        Precision of the products, float32 or float64.
    weights : ndarray of shape (n_samples,), optional
        Weights of the rows, > 0; 1 by default.

    Attributes
    ----------
    kernel : ndarray of shape (n_samples, n_samples)
        ``Xc Xc'``, float64.
    shift : ndarray of shape (n_samples,)
        Inner products of the samples with the centre, up to a constant.
    total_weight : float
        Sum of the weights.
    """

    def __init__(
        self, K: CentredKernel, dtype: npt.DTypeLike, weights: Array | None = None
    ) -> None:
        self.n_samples = K.shape[0]
        self.dtype = np.dtype(dtype)
        self._root: Array | None = None
        self.kernel, self.shift = K.matrix, K.shift
        self.total_weight = float(self.n_samples)
        if weights is not None:
            self.total_weight = float(weights.sum())
            self._root = np.sqrt(weights)
            mean = K.matrix @ (weights / self.total_weight)
            self.shift = K.shift + mean
            self.kernel = K.matrix - (mean - float(weights @ mean) / self.total_weight)
            self.kernel -= mean[:, None]
            self.kernel *= self._root
            self.kernel *= self._root[:, None]

    def spread(self, row: Array) -> Array:
        """Give every sample this row, times the root of its weight; maybe by broadcasting."""
        return row if self._root is None else np.outer(self._root, row)

    def gather(self, A: Array) -> Array:
        """Transpose of `spread`: the sum of the rows, of shape (n_labels,)."""
        return np.asarray(A.sum(axis=0) if self._root is None else self._root @ A)

    def to_rows(self, coef: Array) -> Array:
        """Turn coefficients of the samples, of shape (n_labels, n_samples), into B."""
        return np.asarray(coef.T if self._root is None else coef.T / self._root[:, None])

    def to_coefficients(self, B: Array) -> Array:
        """Transpose B and multiply it by the roots of the weights; its rows then sum to zero."""
        root = np.ones(self.n_samples) if self._root is None else self._root
        # Rounding leaves a sum, which an uncentred kernel would multiply.
        centred = B - np.outer(root, self.gather(B) / self.total_weight)
        return np.ascontiguousarray((centred * root[:, None]).T)


def features_for(
    X: Any, dtype: npt.DTypeLike, weights: Array | None = None
) -> CentredFeatures | KernelFeatures:
    """Return the operator of features, or of a kernel in their place.

    Parameters
    ----------
    X : ndarray, sparse array or CentredKernel
        The features or their kernel.
    dtype, weights
        As in `CentredFeatures`.

    Returns
    -------
    CentredFeatures or KernelFeatures
        The operator.
    """
    if isinstance(X, CentredKernel):
        return KernelFeatures(X, dtype, weights)
    return CentredFeatures(X, dtype, weights)
