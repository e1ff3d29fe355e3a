"""Tables of results: mean ± std, marks of the t-test, average ranks and published values.

A :class:`ComparisonTable` holds one :class:`Panel` per metric, and per threshold of a
reconstruction. Its text depends only on the stored values and the protocol. It does not depend on
the order in which cells were run, or on the number of processes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev

import numpy as np

from lemll._files import csv_text
from lemll._types import Array
from lemll.datasets.dataset import Dataset
from lemll.exceptions import StoreError
from lemll.lab.cells import Cell, load_source
from lemll.lab.execute import measure
from lemll.lab.protocol import Protocol
from lemll.lab.published import paper_name, published_prediction, published_reconstruction
from lemll.lab.records import Record, damage
from lemll.lab.searches import own_arrays, split_rows
from lemll.lab.statistics import average_ranks
from lemll.lab.store import Store
from lemll.metrics.table import METRICS, Metric
from lemll.models.pairwise import paired_t_test

Arrays = Mapping[str, Array]


def sound_outputs(
    cell: Cell, record: Record, dataset: Dataset, read: Callable[[Record], Arrays]
) -> Arrays:
    """Read the arrays of a cell, and check names, shapes and test rows against its data set.

    Parameters
    ----------
    cell : Cell
        The cell.
    record : Record
        Its record, with status done.
    dataset : Dataset
        Its data set.
    read : callable
        `Store.arrays`, which reads the arrays.

    Returns
    -------
    mapping of str to ndarray
        The arrays.

    Raises
    ------
    StoreError
        If the arrays are damaged, or cannot be those of this cell.
    """
    arrays = read(record)
    shapes = {name: array.shape for name, array in arrays.items()}
    n_rows, n_labels = dataset.labels.shape
    wanted: dict[str, tuple[int, ...]]
    if cell.experiment == "prediction":
        _, test = split_rows(cell, dataset)
        n_rows = len(test)
        wanted = {"scores": (n_rows, n_labels), "predictions": (n_rows, n_labels)}
        wanted["test"] = (n_rows,)
        own = own_arrays(cell, record.chosen)
        # Probabilities are stored if a metric of the protocol needs them.
        for name in (*own.values(), *(["probabilities"] if "probabilities" in arrays else [])):
            wanted[name] = (n_rows, n_labels)
    else:
        wanted = dict.fromkeys(("distribution", "numerical_labels"), (n_rows, n_labels))
    if shapes != wanted:
        raise damage(f"{record.id}.npz", f"it holds {shapes}, and its cell leaves {wanted}")
    if not all(array.dtype.kind in "fiub" for array in arrays.values()):
        raise damage(f"{record.id}.npz", "it holds something else than numbers")
    if cell.experiment == "prediction" and not np.array_equal(arrays["test"], test):
        raise damage(f"{record.id}.npz", "its test rows are not those of its split")
    return arrays


_NONE = "—"
_DECIMALS = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """One method on one data set.

    Attributes
    ----------
    values : tuple of float
        One value per split.
    wanted : int
        Number of values of a complete entry.
    mark : str
        "•" if the control is significantly better, "∘" if it is significantly worse.
    published : tuple of float
        The paper's mean and std, its single value, or empty.
    """

    values: tuple[float, ...]
    wanted: int
    mark: str = ""
    published: tuple[float, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all values are present."""
        return len(self.values) == self.wanted

    @property
    def figures(self) -> tuple[float, ...]:
        """Mean and std (ddof 1), or the value itself if there is only one."""
        if not self.complete:
            return ()
        mean = fmean(self.values)
        return (mean,) if self.wanted == 1 else (mean, stdev(self.values))

    def text(self) -> str:
        """Write the entry as in the paper, with the published figures in brackets."""
        text = _figures_text(self.figures) if self.complete else _NONE
        if not self.complete and self.values:
            text += f" ({len(self.values)} of {self.wanted})"
        text += f" {self.mark}" if self.mark else ""
        return text + (f" [{_figures_text(self.published)}]" if self.published else "")


def _figures_text(figures: Iterable[float]) -> str:
    return " ± ".join(f"{figure:.{_DECIMALS}f}" for figure in figures)


@dataclass(frozen=True, slots=True)
class Panel:
    """The comparison by one metric.

    Attributes
    ----------
    metric : Metric
        The metric.
    threshold : float or None
        Threshold of a reconstruction; None for a prediction.
    datasets, methods : tuple of str
        Rows and columns.
    entries : mapping of (str, str) to Entry
        Entries by data set and method.
    condition : str
        What the training labels of a prediction lack; empty if they are complete.
    """

    metric: Metric
    threshold: float | None
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    entries: Mapping[tuple[str, str], Entry]
    condition: str = ""

    @property
    def title(self) -> str:
        """The metric with its direction, and the condition or threshold if there is one."""
        title = f"{self.metric.title} {self.metric.arrow}"
        if self.condition:
            return f"{title}, {self.condition}"
        return title if self.threshold is None else f"{title}, threshold {self.threshold:g}"

    @property
    def ranked(self) -> tuple[str, ...]:
        """The data sets on which all methods are complete."""
        return tuple(
            dataset
            for dataset in self.datasets
            if all(self.entries[dataset, method].complete for method in self.methods)
        )

    def ranks(self) -> tuple[float, ...]:
        """Average the ranks of each method over the complete data sets; () if there is none."""
        means = [
            [self.entries[row, method].figures[0] for method in self.methods] for row in self.ranked
        ]
        if not means:
            return ()
        direction = self.metric.greater_is_better
        return tuple(average_ranks(means, greater_is_better=direction, decimals=_DECIMALS).tolist())

    def best(self) -> set[tuple[int, int]]:
        """Return row and column of the best entries of each row, by the printed digits."""
        found: set[tuple[int, int]] = set()
        sign = 1 if self.metric.greater_is_better else -1
        for i, dataset in enumerate(self.datasets):
            means = {
                j: sign * round(entry.figures[0], _DECIMALS)
                for j, method in enumerate(self.methods)
                if (entry := self.entries[dataset, method]).complete
            }
            found |= {(i, j) for j, mean in means.items() if mean == max(means.values())}
        ranks = self.ranks()
        last = len(self.datasets)
        return found | {(last, j) for j, rank in enumerate(ranks) if rank == min(ranks)}

    def rows(self) -> list[list[str]]:
        """Write the rows: one per data set, then the average ranks."""
        rows = [
            [dataset, *(self.entries[dataset, method].text() for method in self.methods)]
            for dataset in self.datasets
        ]
        label = "average rank"
        if len(self.ranked) < len(self.datasets):
            label += f" ({len(self.ranked)} of {len(self.datasets)})"
        ranks = [f"{rank:.3f}" for rank in self.ranks()] or [_NONE] * len(self.methods)
        return [*rows, [label, *ranks]]


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


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table in Markdown.

    Parameters
    ----------
    header : sequence of str
        The titles of the columns.
    rows : iterable of sequence
        The cells; they are shown as `str` shows them.

    Returns
    -------
    list of str
        One line per row, below the header and its rule.
    """
    # A name may contain line breaks, but a cell of a table must be one line.
    lines = [
        " | ".join(" ".join(str(cell).replace("|", "\\|").split()) for cell in row)
        for row in (header, *rows)
    ]
    return [f"| {lines[0]} |", "|---" * len(header) + "|", *(f"| {line} |" for line in lines[1:])]


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


# A note names at most this number of damaged cells, to stay readable.
_MAX_NAMED = 10
# Keys: metric, threshold, data set and method. Values: the method's values over the splits.
Values = Mapping[tuple[str, float | None, str, str], Sequence[float]]


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """Comparison of methods on data sets, with one panel per metric.

    Attributes
    ----------
    panels : tuple of Panel
        One panel per metric and threshold.
    control : str
        The method that the marks compare with the others.
    notes : tuple of str
        What a reader must know: cells that are missing or left out.
    """

    panels: tuple[Panel, ...]
    control: str
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def from_values(
        cls,
        values: Values,
        *,
        control: str,
        wanted: int | Mapping[tuple[str, str], int] | None = None,
        methods: Sequence[str] = (),
        notes: Sequence[str] = (),
        condition: str = "",
    ) -> ComparisonTable:
        """Compare plain values.

        Parameters
        ----------
        values : mapping of (metric, threshold, data set, method) to sequence of float
            One value per split; the threshold is None for a prediction.
        control : str
            The method to compare the others with.
        wanted : int or mapping of (data set, method) to int, optional
            Number of values of a complete entry; by default that of the longest entry. If entries
            want different numbers, a t-test uses the splits that the entry and the control share.
        methods : sequence of str, optional
            The columns; by default in the order of appearance.
        notes : sequence of str, optional
            Notes to print below the table.
        condition : str, default=""
            What the training labels lack, for the titles. The paper's figures are those of complete
            labels, so they are shown only if this is empty.

        Returns
        -------
        ComparisonTable
            The table, with the paper's figures beside those of its methods and data sets.

        Examples
        --------
        >>> table = ComparisonTable.from_values(
        ...     {
        ...         ("one_error", None, "mine", "A"): [0.10, 0.12],
        ...         ("one_error", None, "mine", "B"): [0.20, 0.23],
        ...     },
        ...     control="A",
        ... )
        >>> print(table.to_markdown())
        ### One-error ↓
        <BLANKLINE>
        | data set | A | B |
        |---|---|---|
        | mine | 0.110 ± 0.014 | 0.215 ± 0.021 • |
        | average rank | 1.000 | 2.000 |
        <BLANKLINE>
        """
        columns = tuple(methods) or tuple(dict.fromkeys(key[3] for key in values))
        if control not in columns:
            raise ValueError(f"control {control!r} is none of the methods: {', '.join(columns)}.")
        longest = max((len(found) for found in values.values()), default=0)
        published = {} if condition else _published()
        panels = []
        for name, threshold in dict.fromkeys(key[:2] for key in values):
            rows = tuple(dict.fromkeys(key[2] for key in values if key[:2] == (name, threshold)))
            entries = {
                (row, column): _entry(
                    values.get((name, threshold, row, column), ()),
                    values.get((name, threshold, row, control), ()) if column != control else (),
                    _wanted(wanted, row, column) or longest,
                    METRICS[name],
                    published.get((name, threshold, paper_name(row), column), ()),
                )
                for row in rows
                for column in columns
            }
            panels.append(Panel(METRICS[name], threshold, rows, columns, entries, condition))
        return cls(tuple(panels), control, tuple(notes))

    @classmethod
    def from_store(
        cls,
        protocol: Protocol,
        store: Store,
        *,
        metrics: Sequence[str] = (),
        recompute: bool = False,
    ) -> ComparisonTable:
        """Compare the results of a protocol in a store.

        Parameters
        ----------
        protocol : Protocol
            The cells to compare.
        store : Store
            The store with their results. Results of other versions of the code are left out.
        metrics : sequence of str, optional
            By default those of the protocol. A metric that is not in the records is computed from
            the arrays.
        recompute : bool, default=False
            Compute all metrics from the stored arrays, and ignore those in the records.

        Returns
        -------
        ComparisonTable
            The table. Incomplete entries say how many of their cells are done.
        """
        chosen = replace(protocol, metrics=tuple(metrics) or protocol.metrics).metrics
        cells = list(protocol.cells())
        overview = store.overview(cells)
        values: dict[str, dict[tuple[str, float | None, str, str], list[float]]] = {}
        for name, cell in itertools.product(chosen, cells):
            key = (name, cell.setting.threshold, cell.source.name, cell.method.label)
            values.setdefault(cell.setting.condition, {}).setdefault(key, [])
        damaged = [str(cell) for cell in overview.damaged]
        for cell in cells:
            record = overview.records.get(cell.id)
            if record is None or record.status != "done":
                continue
            try:
                found = _measured(cell, record, store, chosen, recompute=recompute)
            except StoreError:
                damaged.append(str(cell))
                continue
            for name, value in found.items():
                if value is not None:
                    key = (name, cell.setting.threshold, cell.source.name, cell.method.label)
                    values[cell.setting.condition][key].append(value)
        wanted = 1 if protocol.splits is None else protocol.splits.n_splits
        tables = [
            cls.from_values(
                found,
                control=protocol.control,
                wanted=wanted,
                methods=[spec.label for spec in protocol.methods],
                condition=condition,
            )
            for condition, found in values.items()
        ]
        notes = _notes(len(overview.pending), overview.count("failed"),
                       overview.count("timeout"), len(overview.stale), damaged)  # fmt: skip
        panels = [panel for table in tables for panel in table.panels]
        return cls(tuple(panels), protocol.control, tuple(notes))

    def to_markdown(self) -> str:
        """Write the table in Markdown.

        Returns
        -------
        str
            One table per panel, under a heading.
        """
        lines = []
        for panel in self.panels:
            header = ["data set", *panel.methods]
            lines += [f"### {panel.title}", "", *markdown_table(header, panel.rows()), ""]
        return "\n".join([*lines, *(f"{note}\n" for note in self.notes)])

    def to_latex(self) -> str:
        r"""Write the table in LaTeX, for the package ``booktabs``.

        Returns
        -------
        str
            One ``table`` per panel, with a caption, a legend and a label ``tab:METRIC``. The best
            entry of each row is bold.
        """
        return "\n".join(
            latex_panel(
                panel.title,
                panel.methods,
                panel.rows(),
                best=panel.best(),
                caption=_caption(panel),
                legend=self._legend(panel),
                label=f"tab:{re.sub('[^a-z0-9]+', '-', panel.title.lower()).strip('-')}",
            )
            for panel in self.panels
        )

    def _legend(self, panel: Panel) -> str:
        parts = ["The best value of each row is bold."]
        marks = {entry.mark for entry in panel.entries.values()} - {""}
        if marks:
            parts.append(
                f"•/∘: {self.control} is significantly better/worse than the method (paired "
                "t-test, 5 %)."
            )
        if any(entry.published for entry in panel.entries.values()):
            parts.append("In brackets: published values.")
        return " ".join(parts)

    def to_csv(self) -> str:
        """Write the table as CSV, with one line per entry.

        Returns
        -------
        str
            The lines, with a header. Std, mark and published figures may be empty. If labels were
            hidden, the last column says which.
        """
        hides = any(panel.condition for panel in self.panels)
        rows: list[list[object]] = [
            ["metric", "threshold", "dataset", "method", "mean", "std", "values", "mark",
             "published_mean", "published_std", *["hidden"] * hides]
        ]  # fmt: skip
        for panel in self.panels:
            threshold = "" if panel.threshold is None else f"{panel.threshold:g}"
            condition = [panel.condition] * hides
            for (dataset, method), entry in panel.entries.items():
                figures, published = _two(entry.figures), _two(entry.published)
                counted = [len(entry.values), entry.mark]
                rows.append(
                    [panel.metric.name, threshold, dataset, method, *figures, *counted, *published,
                     *condition]
                )  # fmt: skip
            for method, rank in zip(panel.methods, panel.ranks(), strict=False):
                rows.append(
                    [panel.metric.name, threshold, "average rank", method, f"{rank:.6f}", "",
                     len(panel.ranked), "", "", "", *condition]
                )  # fmt: skip
        return csv_text(rows)


def _caption(panel: Panel) -> str:
    wanted = {entry.wanted for entry in panel.entries.values()}
    direction = "higher" if panel.metric.greater_is_better else "lower"
    splits = f", mean ± standard deviation over {max(wanted)} splits" if max(wanted) > 1 else ""
    return f"{panel.title.replace(panel.metric.arrow, '').strip()}{splits} ({direction} is better)."


def _two(figures: Sequence[float]) -> list[str]:
    texts = [f"{figure:.6f}" for figure in figures]
    return texts + [""] * (2 - len(texts))


def _wanted(
    wanted: int | Mapping[tuple[str, str], int] | None, row: str, column: str
) -> int | None:
    # An entry that is not planned wants as many values as the longest, so it is not complete.
    return wanted.get((row, column)) if isinstance(wanted, Mapping) else wanted


def _entry(
    values: Sequence[float],
    control: Sequence[float],
    wanted: int,
    metric: Metric,
    published: tuple[float, ...],
) -> Entry:
    mark = ""
    # Entries with fewer splits have the first ones.
    shared = min(len(control), len(values))
    if len(values) == wanted and shared >= 2:
        test = paired_t_test(
            control[:shared], values[:shared], greater_is_better=metric.greater_is_better
        )
        mark = test.mark
    return Entry(tuple(values), wanted, mark, published)


def _measured(
    cell: Cell, record: Record, store: Store, metrics: tuple[str, ...], *, recompute: bool
) -> Mapping[str, float | None]:
    absent = metrics if recompute else tuple(set(metrics) - record.metrics.keys())
    known = {} if recompute else {name: record.metrics.get(name) for name in metrics}
    if not absent:
        return known
    dataset, _ = load_source(cell.source)
    arrays = sound_outputs(cell, record, dataset, store.arrays)
    return known | measure(cell, dataset, arrays, absent)[0]


def _published() -> dict[tuple[str, float | None, str, str], tuple[float, ...]]:
    figures: dict[tuple[str, float | None, str, str], tuple[float, ...]] = {
        (cell.metric, None, cell.dataset, cell.method): (cell.mean, cell.std)
        for cell in published_prediction()
    }
    for cell in published_reconstruction():
        figures[cell.measure, cell.threshold, cell.dataset, cell.method] = (cell.value,)
    return figures


def _notes(
    pending: int, failed: int, timeout: int, stale: int, damaged: Sequence[str]
) -> list[str]:
    counts = (
        (pending, "cells have not been run yet."),
        (failed, "cells failed."),
        (timeout, "cells took longer than their time limit."),
        (stale, "cells of another version of the code were left out."),
    )
    notes = [f"{count} {text}" for count, text in counts if count]
    if damaged:
        shown = "; ".join(damaged[:_MAX_NAMED]) + ("; ..." if len(damaged) > _MAX_NAMED else "")
        notes.append(f"{len(damaged)} cells are damaged and were left out: {shown}.")
    return notes
