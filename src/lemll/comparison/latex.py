r"""Text and tables in LaTeX: special characters are escaped, lines are those of ``booktabs``."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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


def latex_panel(
    title: str,
    methods: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    best: Collection[tuple[int, int]] = (),
    caption: str = "",
    legend: str = "",
    label: str = "",
) -> str:
    """Write a title, a header and rows as a ``table`` of ``booktabs``.

    Parameters
    ----------
    title : str
        The first line of the table.
    methods : sequence of str
        Names of the columns.
    rows : sequence of sequence of str
        The rows; a line separates the last one.
    best : collection of (int, int)
        Row and column, from 0, of the entries to print in bold, without the first column.
    caption, legend, label : str
        The caption, the explanation of the signs below the table, and the name for references.

    Returns
    -------
    str
        LaTeX.
    """
    columns = len(methods) + 1
    header = " & ".join(escape(text) for text in ("data set", *methods))
    lines = [
        " & ".join([escape(row[0]), *(_cell(t, (i, j) in best) for j, t in enumerate(row[1:]))])
        + r" \\"
        for i, row in enumerate(rows)
    ]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            *([rf"\caption{{{escape(caption)}}}"] if caption else []),
            *([rf"\label{{{label}}}"] if label else []),
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
            *([r"\par\smallskip", rf"{{\footnotesize {escape(legend)}}}"] if legend else []),
            r"\end{table}",
            "",
        ]
    )


def _cell(text: str, bold: bool) -> str:
    """Write a cell; only its figures are bold, not the mark or the published figures."""
    if not bold:
        return escape(text)
    figures, sign, rest = text.partition(next((s for s in (" •", " ∘", " [") if s in text), "\0"))
    shown = rf"\textbf{{{escape(figures)}}}"
    return shown + escape((sign + rest).replace("\0", ""))
