"""Values in a form that JSON holds and that is the same in every process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """Give a parameter a form fit for ids and records.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"alpha": np.float64(0.5), "beta": float("inf"), "norm": np.mean, "grid": (1, 2)})
    {'alpha': 0.5, 'beta': 'inf', 'norm': 'numpy.mean', 'grid': [1, 2]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    # A function's repr holds its address, which is another one in every process.
    name = getattr(value, "__qualname__", None)
    return repr(value) if name is None else f"{value.__module__}.{name}"
