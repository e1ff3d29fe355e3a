"""The conventions of published code for ties, empty rows, full rows and units.

The definitions of the ranking metrics do not specify these. Every ranking metric reads the table
below. A convention is one column of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict

__all__ = [
    "Convention",
    "CoverageEmpty",
    "CoverageOptions",
    "CoverageUnit",
    "RankingOptions",
    "RowRule",
    "Ties",
    "resolve",
]

Convention = Literal["paper", "lamda", "levi", "mulan", "sklearn"]
Ties = Literal["pessimistic", "optimistic", "first", "last"]
RowRule = Literal["skip", "count"]
CoverageEmpty = Literal["skip", "count", "depth_zero"]
CoverageUnit = Literal["fraction", "steps", "depth"]


class RankingOptions(TypedDict, total=False):
    """Options of ranking loss, one-error and average precision, for the type checker."""

    convention: Convention
    ties: Ties | None
    empty: RowRule | None
    full: RowRule | None


class CoverageOptions(TypedDict, total=False):
    """Options of coverage, for the type checker."""

    convention: Convention
    ties: Ties | None
    empty: CoverageEmpty | None
    unit: CoverageUnit | None


_TIES = ("pessimistic", "optimistic", "first", "last")
_ROW_RULES = ("skip", "count")
_RANKING_CHOICES = {"ties": _TIES, "empty": _ROW_RULES, "full": _ROW_RULES}

# The options of each metric, and the allowed values of each option.
_CHOICES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ranking_loss": _RANKING_CHOICES,
    "one_error": _RANKING_CHOICES,
    "average_precision": _RANKING_CHOICES,
    "coverage": {
        "ties": _TIES,
        "empty": ("skip", "count", "depth_zero"),
        "unit": ("fraction", "steps", "depth"),
    },
}

_SKIP_BOTH = {"empty": "skip", "full": "skip"}
_COUNT_BOTH = {"empty": "count", "full": "count"}

_PRESETS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "paper": {
        "ranking_loss": {"ties": "pessimistic", **_SKIP_BOTH},
        "one_error": {"ties": "optimistic", **_SKIP_BOTH},
        "coverage": {"ties": "pessimistic", "empty": "skip", "unit": "fraction"},
        "average_precision": {"ties": "pessimistic", **_SKIP_BOTH},
    },
    "lamda": {
        "ranking_loss": {"ties": "pessimistic", **_SKIP_BOTH},
        "one_error": {"ties": "optimistic", **_SKIP_BOTH},
        "coverage": {"ties": "last", "empty": "depth_zero", "unit": "steps"},
        "average_precision": {"ties": "last", **_SKIP_BOTH},
    },
    "levi": {
        "ranking_loss": {"ties": "pessimistic", **_SKIP_BOTH},
        "one_error": {"ties": "optimistic", **_SKIP_BOTH},
        "coverage": {"ties": "last", "empty": "depth_zero", "unit": "fraction"},
        "average_precision": {"ties": "pessimistic", **_SKIP_BOTH},
    },
    "mulan": {
        "ranking_loss": {"ties": "last", **_COUNT_BOTH},
        "one_error": {"ties": "last", **_COUNT_BOTH},
        "coverage": {"ties": "last", "empty": "count", "unit": "steps"},
        "average_precision": {"ties": "last", "empty": "skip", "full": "count"},
    },
    # scikit-learn does not have a one-error.
    "sklearn": {
        "ranking_loss": {"ties": "pessimistic", **_COUNT_BOTH},
        "coverage": {"ties": "pessimistic", "empty": "count", "unit": "depth"},
        "average_precision": {"ties": "pessimistic", **_COUNT_BOTH},
    },
}


def resolve(metric: str, convention: str, **given: str | None) -> dict[str, str]:
    """Return the options of `metric` under `convention`, overridden by those of the caller.

    Parameters
    ----------
    metric : str
        Name of a ranking metric.
    convention : str
        Name of a column of the table.
    **given : str or None
        Options of the caller. None means the value of the convention.

    Returns
    -------
    dict of str to str
        One value per option of the metric.
    """
    if convention not in _PRESETS:
        raise ValueError(f"convention must be one of {_quoted(_PRESETS)}, got {convention!r}.")
    if metric not in _PRESETS[convention]:
        others = [name for name, preset in _PRESETS.items() if metric in preset]
        raise ValueError(
            f"convention {convention!r} does not define {metric}; use one of {_quoted(others)}."
        )
    options = dict(_PRESETS[convention][metric])
    options.update({name: value for name, value in given.items() if value is not None})
    for name, value in options.items():
        choices = _CHOICES[metric][name]
        if value not in choices:
            raise ValueError(f"{name} must be one of {_quoted(choices)}, got {value!r}.")
    return options


def _quoted(names: Mapping[str, object] | list[str] | tuple[str, ...]) -> str:
    return ", ".join(repr(name) for name in names)
