"""Texts that a spreadsheet would take for formulas."""

from __future__ import annotations

__all__ = ["FORMULA_SIGNS", "without_guard"]

# Characters that begin a formula, including their East Asian full-width forms.
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def without_guard(text: str) -> str:
    """Remove the apostrophe that lemll writes before a text that begins like a formula."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_SIGNS) else text
