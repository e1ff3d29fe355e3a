"""Checks of labels, features, parameters and memory that several packages use.

Logical labels are 0/1 in the whole public interface. The coding -1/+1 is used only inside the
solvers. With -1/+1 most metrics would return a wrong number without an error, so it is refused
here.
"""

from __future__ import annotations

import difflib
import functools
import math
import numbers
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from lemll._types import (
    Array,
    Features,
    FloatArray,
    LabelArray,
    MatrixLike,
    Settings,
    SettingsView,
)
from lemll.exceptions import NotEnoughMemoryError


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the innermost line outside lemll.

    Parameters
    ----------
    message : str
        What happened, what was requested, and what to do.
    category : type of Warning
        The class of the warning.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("lemll."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def warn_gap(name: str, solution: Any, tol: float, *, scale: str) -> None:
    """Warn about a solution whose certified gap is larger than requested.

    Parameters
    ----------
    name : str
        Name of the method.
    solution : object
        A solution of a solver, with `n_iter`, `optimality` and `status`.
    tol : float
        The requested gap.
    scale : str
        What the user should bring closer to 1 if rounding stopped the solver.
    """
    remedy = (
        "raise max_iter"
        if solution.status == "max_iter"
        else f"rounding forbids more; raise tol, or bring {scale} closer to 1"
    )
    warn_caller(
        f"{name} stopped after {solution.n_iter} iterations with a certified relative gap of "
        f"{solution.optimality:.2e}, wanted tol={tol:.2e}; {remedy}.",
        ConvergenceWarning,
    )


def warn_rounded_kernel(name: str, *, claimed: float, optimality: float, tol: float) -> None:
    """Warn about a certificate that holds only for the rounded kernel values.

    Parameters
    ----------
    name : str
        Name of the method.
    claimed : float
        The certified gap for the computed kernel values.
    optimality : float
        The gap with their rounding errors included.
    tol : float
        The requested gap.
    """
    warn_caller(
        f"{name} has a certified relative gap of {claimed:.2e} for the kernel's values as they "
        f"were calculated, but their rounding raises it to about {optimality:.2e}, wanted "
        f"tol={tol:.2e}; "
        "centre and rescale the features (sklearn.preprocessing.StandardScaler), or raise alpha.",
        ConvergenceWarning,
    )


# The value of a cell of Y that nobody observed.
UNOBSERVED = -1

# The rows of a float32 distribution sum to one up to about 3e-7. A larger error than this is not
# rounding.
SUM_TOLERANCE = 1e-5


# No array can have more elements, and no loop over more would end.
LARGEST_WHOLE = 2**63 - 1
# Squares of larger features, summed over rows and columns, would overflow in float64.
LARGEST_FEATURE = 1e100
# Below this size, a check of the free memory takes longer than the allocation itself.
WORTH_CHECKING = 1 << 26
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_CGROUP_USED = Path("/sys/fs/cgroup/memory.current")
_Estimator = TypeVar("_Estimator")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def is_sparse(X: Features) -> bool:
    """Return whether `X` is a sparse matrix or a sparse array of SciPy."""
    # Return a plain bool. The type stubs of SciPy would narrow Any to a class without methods.
    return bool(sparse.issparse(X))


def check_logical_labels(
    Y: MatrixLike, *, name: str = "Y", unobserved: bool = False, remedy: str = ""
) -> LabelArray:
    """Return logical labels as a dense 0/1 array of ``int8``, or raise a ValueError.

    Parameters
    ----------
    Y : array-like or sparse matrix of shape (n_samples, n_labels)
        Logical labels: 0/1 numbers or booleans.
    name : str, default="Y"
        Name of this matrix, for the error message.
    unobserved : bool, default=False
        Whether cells may be unknown: NaN, None, ``pandas.NA`` or masked.
    remedy : str, default=""
        What the user can do with other numbers than 0 and 1, except to binarise them.

    Returns
    -------
    ndarray of shape (n_samples, n_labels), int8
        A new array. `Y` is never changed. Cells that nobody observed are `UNOBSERVED`.
    """
    given: MatrixLike = _canonical(Y) if is_sparse(Y) else np.asarray(Y)
    if given.ndim != 2:
        raise ValueError(
            f"{name} must be 2-D (rows x labels), got {given.ndim}-D with shape {given.shape}; "
            "for a single label pass a column, Y.reshape(-1, 1)."
        )
    if 0 in given.shape:
        raise ValueError(f"{name} needs at least one row and one label, got shape {given.shape}.")
    # For a sparse matrix, check only the stored values; all others are 0. Convert it to dense only
    # after checking that it fits into memory.
    values: Array = given.data if is_sparse(Y) else given
    hidden = None if is_sparse(Y) else _unknown_cells(Y, values)
    if hidden is not None:
        if not unobserved:
            row, label = (int(i) for i in np.argwhere(hidden)[0])
            raise ValueError(
                f"{name} must hold only 0 and 1, got an unknown cell (NaN or masked) in row {row}, "
                f"label {label}, where unknown cells have no meaning; fill them."
            )
        values = np.where(hidden, 0, values)
    if values.dtype.kind == "O":
        values = _plain_numbers(values)
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold numbers 0 and 1, got dtype {values.dtype}; convert it first, for "
            "example with Y.astype(int)."
        )
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        if ((values == 1) | (values == -1)).all():
            raise ValueError(
                f"{name} is coded -1/+1, logical labels must be 0/1; convert with (Y + 1) // 2."
            )
        raise ValueError(
            f"{name} must hold only 0 and 1, got {values[wrong].flat[0]}{_place(given, wrong)}; "
            "binarise it first (lemll.datasets.binarize_distribution does it for distributions)"
            f"{remedy}."
        )
    check_memory(
        int(np.prod(given.shape, dtype=object)),
        f"A dense label matrix of shape {given.shape}",
        "keep fewer rows or labels",
    )
    if not is_sparse(Y):
        labels: LabelArray = values.astype(np.int8)
        if hidden is not None:
            labels[hidden] = UNOBSERVED
        return labels
    # `toarray` of SciPy would first make a dense copy in the wider type of the matrix.
    coo = given.tocoo()
    dense = np.zeros(given.shape, dtype=np.int8)
    dense[coo.row, coo.col] = coo.data != 0
    return dense


def read_degrees(D: MatrixLike, *, name: str = "degrees") -> FloatArray:
    """Return degrees in [0, 1] as a dense array with NaN in unknown cells, or raise a ValueError.

    Parameters
    ----------
    D : array-like or sparse matrix of shape (n_samples, n_labels)
        The degrees. NaN, None, ``pandas.NA`` and masked cells are unknown.
    name : str, default="degrees"
        Name of this matrix, for the error message.

    Returns
    -------
    ndarray of shape (n_samples, n_labels), float64
        A new array.
    """
    given = D.toarray() if is_sparse(D) else np.asarray(D)
    if given.ndim != 2 or 0 in given.shape:
        raise ValueError(
            f"{name} must be 2-D (rows x labels) and not empty, got shape {given.shape}; for a "
            "single label pass a column, D.reshape(-1, 1)."
        )
    hidden = _unknown_cells(D, given)
    values = given if hidden is None else np.where(hidden, 0, given)
    if values.dtype.kind == "O":
        values = _plain_numbers(values)
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold numbers from 0 to 1, got dtype {values.dtype}; convert it first, "
            "for example with D.astype(float)."
        )
    # Written so that NaN is also wrong.
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        raise ValueError(
            f"{name} must be from 0 (not relevant) to 1 (relevant), got "
            f"{values[wrong].flat[0]}{_place(values, wrong)}; degrees are no targets of a "
            "regression, for which lemll.MSVR is made."
        )
    degrees: FloatArray = values.astype(np.float64)
    if hidden is not None:
        degrees[hidden] = np.nan
    return degrees


def _canonical(Y: MatrixLike) -> Features:
    """Return a CSR matrix in which duplicate entries are summed, without changing `Y`."""
    rows = Y.tocsr()
    if rows.has_canonical_format:
        return rows
    rows = rows.copy() if rows is Y else rows
    rows.sum_duplicates()
    return rows


def _unknown_cells(Y: MatrixLike, values: Array) -> npt.NDArray[np.bool_] | None:
    """Return which cells are NaN, None, pandas.NA or masked; None if there is no such cell."""
    hidden = np.zeros(values.shape, dtype=bool)
    if isinstance(Y, np.ma.MaskedArray):
        hidden |= np.ma.getmaskarray(Y)
    if values.dtype.kind == "f":
        hidden |= np.isnan(values)
    elif values.dtype.kind == "O":
        unknown = [_is_unknown(cell) for cell in values.flat]
        hidden |= np.array(unknown, dtype=bool).reshape(values.shape)
    return hidden if hidden.any() else None


def _is_unknown(cell: object) -> bool:
    # pandas.NA cannot be compared, and pandas may not be installed.
    if cell is None or type(cell).__name__ == "NAType":
        return True
    return isinstance(cell, float) and math.isnan(cell)


def _plain_numbers(values: Array) -> Array:
    """Convert Python objects, as in nullable columns of pandas, to numbers if possible."""
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return values


def _place(given: MatrixLike, wrong: npt.NDArray[np.bool_]) -> str:
    if is_sparse(given):
        return ""
    row, label = (int(i) for i in np.argwhere(wrong)[0])
    return f" in row {row}, label {label}"


def check_distribution(D: MatrixLike, *, name: str = "D") -> FloatArray:
    """Return a label distribution as a float64 array, or raise a ValueError.

    Parameters
    ----------
    D : array-like of shape (n_samples, n_labels)
        Degrees: non-negative, each row sums to one (within 1e-5).
    name : str, default="D"
        Name of this matrix, for the error message.

    Returns
    -------
    ndarray of shape (n_samples, n_labels), float64
        The degrees, not renormalised. The array may share memory with `D`.
    """
    given = np.asarray(D.toarray() if is_sparse(D) else D)
    if given.dtype.kind == "c":
        raise ValueError(f"{name} must hold real numbers, got dtype {given.dtype}.")
    array = given.astype(np.float64, copy=False)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be 2-D (rows x labels), got {array.ndim}-D with shape {array.shape}."
        )
    check_finite(array, name=name)
    if (array < 0).any():
        row, label = (int(i) for i in np.argwhere(array < 0)[0])
        raise ValueError(
            f"{name} must not be negative, got {array[row, label]} in row {row}, label {label}; "
            "a distribution holds degrees between 0 and 1."
        )
    sums = array.sum(axis=1)
    off = np.abs(sums - 1) > SUM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(
            f"every row of {name} must sum to 1, got {sums[row]:.6g} in row {row}; "
            "divide each row by its sum."
        )
    return array


def check_magnitude(X: Features) -> None:
    """Refuse features whose squares overflow."""
    values = X.data if is_sparse(X) else X
    largest = float(np.abs(values).max(initial=0.0))
    if largest > LARGEST_FEATURE:
        raise ValueError(
            f"X holds values up to {largest:.1e}, whose squares leave the range of floating-point "
            "numbers; rescale the features first, for example with "
            "sklearn.preprocessing.StandardScaler."
        )


def check_finite(X: Features, *, name: str = "X") -> None:
    """Refuse NaN and infinity; the message names the first row and column with one.

    Parameters
    ----------
    X : ndarray or sparse matrix, 2-D
        The array to check.
    name : str, default="X"
        Name of this matrix, for the error message.
    """
    if is_sparse(X):
        if np.isfinite(X.data).all():
            return
        coo = X.tocoo()
        first = int(np.argmin(np.isfinite(coo.data)))
        row, column, value = int(coo.row[first]), int(coo.col[first]), coo.data[first]
    else:
        finite = np.isfinite(X)
        if finite.all():
            return
        row, column = (int(i) for i in np.argwhere(~finite)[0])
        value = X[row, column]
    raise ValueError(
        f"{name} must be finite, got {value} in row {row}, column {column}; "
        "impute or drop such rows first."
    )


def check_number(
    name: str, value: object, *, above: float = -math.inf, inclusive: bool = False
) -> float:
    """Return a finite real parameter greater than `above` (or equal to it if `inclusive`).

    Examples
    --------
    >>> check_number("alpha", 1, above=0)
    1.0
    """
    bound = f" {'>=' if inclusive else '>'} {above:g}" if math.isfinite(above) else ""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} must be a number{bound}, got {value!r}.")
    try:
        number = float(value)
    except OverflowError:  # a whole number of more than 300 digits
        number = math.inf
    if not math.isfinite(number) or number < above or (number == above and not inclusive):
        raise ValueError(f"{name} must be finite{bound and ' and' + bound}, got {_shown(value)}.")
    return number


def check_settings(name: str, given: object, defaults: SettingsView) -> Settings:
    """Return the settings of a parameter that holds several, or raise a ValueError.

    Parameters
    ----------
    name : str
        Name of the parameter, for the error message.
    given : mapping or None
        Some of the settings. None means the defaults.
    defaults : mapping
        All settings.

    Returns
    -------
    dict
        All settings.

    Examples
    --------
    >>> check_settings("graph", {"a": 1}, {"a": 0, "b": 2})
    {'a': 1, 'b': 2}
    """
    known = ", ".join(map(repr, defaults))
    if given is None:
        return dict(defaults)
    if not isinstance(given, Mapping):
        raise ValueError(f"{name} must be None or a dict with any of {known}, got {given!r}.")
    unknown = [key for key in given if key not in defaults]
    if unknown:
        raise ValueError(
            f"{name} has the key {unknown[0]!r}, which is not known; use any of {known}."
        )
    return {**defaults, **given}


def check_whole(name: str, value: object, *, least: int) -> int:
    """Return a whole-number parameter that is at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {_shown(value)}.")
    whole = int(value)
    if whole > LARGEST_WHOLE:
        raise ValueError(f"{name} must be at most 2**63 - 1, got {_shown(value)}.")
    return whole


def check_n_jobs(n_jobs: object) -> int | None:
    """Return a number of processes or threads: None, or a whole number that is not 0."""
    if n_jobs is None:
        return None
    if not isinstance(n_jobs, bool) and isinstance(n_jobs, numbers.Integral):
        whole = int(n_jobs)
        if 0 < abs(whole) <= LARGEST_WHOLE:
            return whole
    raise ValueError(
        f"n_jobs must be None, a whole number > 0, or -1 for all processors; got {_shown(n_jobs)}."
    )


def _shown(value: object) -> str:
    """Return a value as text for a message, shortened if it is very long."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write integers of thousands of digits
        return f"an integer of {cast(int, value).bit_length()} bits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_choice(name: str, value: object, known: Collection[str]) -> str:
    """Return a parameter that is one of several words."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}={value!r} must be one of {', '.join(known)}.")
    return value


def check_flag(name: str, value: object) -> bool:
    """Return a parameter that is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def available_bytes() -> int | None:
    """Estimate how much memory this process may still use; None if the system does not say."""
    try:
        import psutil

        free: int | None = psutil.virtual_memory().available
    except ImportError:
        free = _physical_bytes()
    limits = [free, _cgroup_bytes(), _process_bytes()]
    return min((limit for limit in limits if limit is not None), default=None)


def _cgroup_bytes() -> int | None:
    """Return what a container of Linux leaves to its processes, or None."""
    try:
        limit, used = _CGROUP_LIMIT.read_text().strip(), int(_CGROUP_USED.read_text())
    except (OSError, ValueError):
        return None  # not in a container
    return None if limit == "max" else int(limit) - used


def _process_bytes() -> int | None:
    """Return what the limit of this process (``ulimit -v``) leaves, or None."""
    try:
        import resource

        import psutil

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, OSError):
        return None  # Windows has no such limit
    if limit == resource.RLIM_INFINITY:
        return None
    return int(limit - psutil.Process().memory_info().vms)


def _physical_bytes() -> int | None:
    """Return the total memory, if neither psutil nor /proc says how much of it is free."""
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None  # Windows has no sysconf


def check_memory(needed: int, purpose: str, remedy: str) -> None:
    """Raise an error if an allocation would not fit into memory.

    Parameters
    ----------
    needed : int
        Estimated bytes.
    purpose : str
        What the memory is for, as the start of a sentence.
    remedy : str
        What the user can do instead.
    """
    if needed < WORTH_CHECKING:
        return
    free = available_bytes()
    if free is not None and needed > free:
        raise NotEnoughMemoryError(
            f"{purpose} needs about {needed / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are "
            f"available; {remedy}."
        )


def all_or_nothing(
    fit: Callable[Concatenate[_Estimator, _Arguments], _Result],
) -> Callable[Concatenate[_Estimator, _Arguments], _Result]:
    """Decorate `fit` so that it keeps the earlier fitted attributes if it fails.

    The validation of scikit-learn stores the number and the names of the features before the model
    is fitted. Without this decorator, a failed second `fit` with another number of features would
    leave a model that refuses the rows on which it was fitted.

    Parameters
    ----------
    fit : callable
        A method that replaces attributes and does not change their values in place.

    Returns
    -------
    callable
        The same method. After any exception, including an interruption, the attributes are those
        from before the call.
    """

    @functools.wraps(fit)
    def guarded(
        self: _Estimator, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Result:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return guarded


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Say that a name is not known, which one may have been meant, and which there are.

    Examples
    --------
    >>> unknown_name("metric", "hamming", ["hamming_loss", "coverage"])
    "unknown metric 'hamming'; did you mean 'hamming_loss'? Known: hamming_loss, coverage."
    """
    names = list(known)
    folded = {candidate.casefold(): candidate for candidate in names}
    near = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.5)
    hint = f"did you mean {folded[near[0]]!r}? " if near else ""
    return f"unknown {what} {name!r}; {hint}Known: {', '.join(names)}."
