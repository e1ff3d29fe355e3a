"""Splitters for multi-label data, in the manner of ``sklearn.model_selection``."""

from lemll.model_selection.halves import RepeatedHalves

__all__ = ["RepeatedHalves"]
