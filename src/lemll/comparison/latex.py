r"""Text and tables in LaTeX: special characters are escaped, lines are those of ``booktabs``."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["escape", "latex_panel"]

_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "[": r"{[}",  # after the end of a line, LaTeX would read a bracket as an optional argument
        "]": r"{]}",
        "±": r"$\pm$",
        "•": r"$\bullet$",
        "∘": r"$\circ$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "‖": r"$\Vert$",
        "—": "---",
    }
)


def escape(text: str) -> str:
    r"""Escape any text so that LaTeX prints it unchanged.

    Examples
    --------
    >>> print(escape("100 % of a_b ± 1"))
    100 \% of a\_b $\pm$ 1
    """
    return text.translate(_ESCAPES)


def latex_panel(title: str, methods: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a title, a header and rows as a ``tabular``; a line separates the last row."""
    columns = len(methods) + 1
    header = " & ".join(escape(text) for text in ("data set", *methods))
    lines = [f"{' & '.join(escape(text) for text in row)} \\\\" for row in rows]
    return "\n".join(
        [
            rf"\begin{{tabular}}{{l{'r' * len(methods)}}}",
            r"\toprule",
            rf"\multicolumn{{{columns}}}{{c}}{{{escape(title)}}} \\",
            r"\midrule",
            rf"{header} \\",
            r"\midrule",
            *lines[:-1],
            r"\midrule",
            lines[-1],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )
