"""Messages about unknown names, with the nearest known name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

__all__ = ["plain", "unknown_name"]


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


def plain(value: object) -> Any:
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
    # The repr of a function contains its address, which differs between processes.
    name = getattr(value, "__qualname__", None)
    return repr(value) if name is None else f"{value.__module__}.{name}"
