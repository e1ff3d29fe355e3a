"""Messages about names that are not known, with the nearest that is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["unknown_name"]


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
