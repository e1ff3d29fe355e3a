"""Type aliases that several modules use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.float64]
IndexArray: TypeAlias = npt.NDArray[np.intp]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
# Logical labels. Signed, so that 2 * Y - 1 gives -1 and not 255.
LabelArray: TypeAlias = npt.NDArray[np.int8]

# Validated features: an ndarray or a csr_array. The two share no type that a checker could follow
# through products, slices and transposes.
Features: TypeAlias = Any
# What a user may pass: an array, a list, a sparse matrix, or a frame of pandas, polars and others.
MatrixLike: TypeAlias = Any
# A csr_array, or what a user passes instead.
SparseMatrix: TypeAlias = Any
# An object with the interface of scikit-learn, which has no published types.
Estimator: TypeAlias = Any
# The name of a kernel, or a function of two arrays of rows.
KernelLike: TypeAlias = str | Callable[[Any, Any], Any]
# A frame of pandas or of another library, which this library may not have.
Frame: TypeAlias = Any
# Values to try, by the names of parameters.
Grid: TypeAlias = Mapping[str, tuple[Any, ...]]
DType: TypeAlias = np.dtype[Any]
# Named values of mixed types: parameters, keyword arguments, content of JSON and TOML files.
Settings: TypeAlias = dict[str, Any]
SettingsView: TypeAlias = Mapping[str, Any]
# How the score is chosen above which a label is predicted.
Thresholds: TypeAlias = Literal["zero", "f1", "hamming"]
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
