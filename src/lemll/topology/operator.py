"""The matrix M of Eq. 8, which measures how badly the weights W rebuild the labels."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lemll._types import Features, FloatArray, SparseMatrix

__all__ = ["ReconstructionOperator"]


class ReconstructionOperator:
    r"""The matrix :math:`M = (I - W)^T (I - W)` of Eq. 8, as an operator.

    :math:`\mathrm{tr}(U^T M U) = \|U - W U\|_F^2` is the error if the weights that rebuild the
    features are used to rebuild the numerical labels U. M itself is never formed, because it has
    many more entries than W.

    Parameters
    ----------
    W : csr_array of shape (n_samples, n_samples)
        The weights, from `reconstruction_weights` or `check_graph`.
    dtype : dtype, default=float64
        Precision of the products.

    Attributes
    ----------
    shape : tuple of int
        (n_samples, n_samples).
    dtype : dtype
        Precision of the products.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.topology import ReconstructionOperator, reconstruction_weights
    >>> M = ReconstructionOperator(reconstruction_weights([[0.0], [1.0], [2.0]], n_neighbors=1))
    >>> M @ np.ones(3)
    array([0., 0., 0.])
    >>> M.value(np.array([[0.0], [1.0], [3.0]]))
    6.0
    """

    def __init__(self, W: SparseMatrix, dtype: npt.DTypeLike = np.float64) -> None:
        self.shape: tuple[int, int] = W.shape
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        eye = sparse.eye_array(W.shape[0], format="csr")
        self._residual: SparseMatrix = sparse.csr_array(eye - W, dtype=self.dtype)

    @classmethod
    def of(cls, W: SparseMatrix) -> ReconstructionOperator:
        """Return the operator of the weights W, or W itself if it is already an operator."""
        return W if isinstance(W, ReconstructionOperator) else cls(W)

    def astype(self, dtype: npt.DTypeLike) -> ReconstructionOperator:
        """Return the operator in another precision, or itself if the precision is the same."""
        if self.dtype == np.dtype(dtype):
            return self
        other = object.__new__(ReconstructionOperator)
        other.shape, other.dtype = self.shape, np.dtype(dtype)
        other._residual = self._residual.astype(dtype)
        return other

    @cached_property
    def _adjoint(self) -> Features:
        # Store the transpose by rows, so that its product is as fast as that of the matrix.
        return sparse.csr_array(self._residual.T)

    def residual(self, U: FloatArray) -> Features:
        """Return (I - W) U, the error of rebuilding U."""
        return self._residual @ U

    def adjoint(self, R: Any) -> Features:
        """Return (I - W)' R."""
        return self._adjoint @ R

    def adjoint_rows(self, rows: slice, R: Any) -> Features:
        """Return some rows of (I - W)' R."""
        return self._adjoint[rows] @ R

    def matmat(self, U: FloatArray) -> Features:
        """Return M U."""
        return self._adjoint @ (self._residual @ U)

    __matmul__ = matmat

    def value(self, U: FloatArray) -> float:
        """Return tr(U' M U), the regulariser R_3 of Eq. 8."""
        left = self.residual(U)
        return float(np.vdot(left, left))

    def diagonal(self) -> FloatArray:
        """Return the diagonal of M, in float64."""
        # M_jj is the squared length of column j of I - W, so M itself is not needed.
        squares = np.square(self._residual.data, dtype=np.float64)
        sums = np.bincount(self._residual.indices, weights=squares, minlength=self.shape[0])
        return np.asarray(sums, dtype=np.float64)

    def scaled_adjoint(self, scale: FloatArray) -> Features:
        """Return diag(scale) (I - W)' as a CSR array."""
        # Scale the stored values directly, which is faster than a product of sparse matrices.
        adjoint = self._adjoint
        repeated = np.repeat(scale.astype(self.dtype), np.diff(adjoint.indptr))
        pattern = (adjoint.data * repeated, adjoint.indices, adjoint.indptr)
        return sparse.csr_array(pattern, shape=self.shape)

    def tocsr(self) -> Features:
        """Return M itself as a CSR array. It has about K^2 entries per row."""
        return sparse.csr_array(self._adjoint @ self._residual)
