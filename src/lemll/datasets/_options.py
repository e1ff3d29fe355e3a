"""Options that several readers share."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["Kind", "Missing", "check_kind", "check_missing"]

Kind = Literal["auto", "logical", "distribution"]
Missing = Literal["error", "nan"]


def check_kind(kind: str) -> None:
    """Raise an error if `kind` is not a known value."""
    if kind not in get_args(Kind):
        raise ValueError(f"kind={kind!r} must be 'auto', 'logical' or 'distribution'")


def check_missing(missing: str) -> None:
    """Raise an error if `missing` is not a known value."""
    if missing not in get_args(Missing):
        raise ValueError(f"missing={missing!r} must be 'error' or 'nan'")
