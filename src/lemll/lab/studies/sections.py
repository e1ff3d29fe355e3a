"""What the reports of all studies are made of: sections, ranks and the files they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from lemll._files import write_texts
from lemll.lab.significance import critical_difference
from lemll.lab.statistics import average_ranks
from lemll.lab.tables import ComparisonTable, Entry, Panel, markdown_table


def section(title: str, *lines: str) -> list[str]:
    """Return lines below a heading, with an empty line behind each part of the text."""
    return [title, "", *lines, ""]


class StudyReport:
    """A report of a study: a summary, tables for readers, and tables for programs.

    A subclass sets `titles`, those of the summary and of the tables.
    """

    titles: ClassVar[tuple[str, str]]

    table: ComparisonTable

    def summary(self) -> str:
        """Write the results in Markdown."""
        raise NotImplementedError

    def write(self, folder: Path) -> list[Path]:
        """Write the summary and the tables.

        Parameters
        ----------
        folder : Path
            Folder to write to; it is created if it does not exist.

        Returns
        -------
        list of Path
            The files.
        """
        summary, tables = self.titles
        texts = {
            "summary.md": f"# {summary}: summary\n\n{self.summary()}",
            "tables.md": f"# {tables}\n\n{self.table.to_markdown()}",
            **self._more(),
        }
        return write_texts(folder, texts)

    def _more(self) -> dict[str, str]:
        return {"tables.csv": self.table.to_csv()}


def difference_text(n_methods: int, n_sets: int) -> str:
    """Return the critical difference of average ranks; with one data set, there is none."""
    return f"{critical_difference(n_methods, n_sets):.2f}" if n_sets > 1 else ""


def by_dataset(
    values: Iterable[tuple[str, str, float]], shown: Callable[[list[float]], str]
) -> list[str]:
    """Return a table in Markdown with one row per data set and one column per method.

    Parameters
    ----------
    values : iterable of (str, str, float)
        Data set, method and value.
    shown : callable
        Returns the text of the values of a data set and a method.

    Returns
    -------
    list of str
        The lines.
    """
    found: dict[str, dict[str, list[float]]] = {}
    methods: dict[str, None] = {}
    for dataset, method, value in values:
        methods[method] = None
        found.setdefault(dataset, {}).setdefault(method, []).append(value)
    rows = (
        [dataset, *(shown(of_set[name]) if name in of_set else "" for name in methods)]
        for dataset, of_set in found.items()
    )
    return markdown_table(["data set", *methods], rows)


def printed_entries(table: ComparisonTable) -> Iterator[tuple[str, list[tuple[Panel, str, Entry]]]]:
    """Yield each method with its complete entries that the paper also prints, if it has any."""
    for method in dict.fromkeys(name for panel in table.panels for name in panel.methods):
        found = [
            (panel, dataset, entry)
            for panel in table.panels
            for (dataset, column), entry in panel.entries.items()
            if column == method and entry.published and entry.complete
        ]
        if found:
            yield method, found


def shared_halves(
    table: ComparisonTable, methods: Sequence[str], sets: set[str]
) -> ComparisonTable:
    """Keep some methods and data sets, and of each data set the halves that all methods have.

    Parameters
    ----------
    table : ComparisonTable
        All panels must have the same condition.
    methods : sequence of str
        The methods to keep.
    sets : set of str
        The data sets to keep.

    Returns
    -------
    ComparisonTable
        The smaller table.
    """
    values = {}
    wanted = {}
    for panel in table.panels:
        for dataset in (name for name in panel.datasets if name in sets):
            entries = [panel.entries[dataset, method] for method in methods]
            halves = min(len(entry.values) for entry in entries)
            for method, entry in zip(methods, entries, strict=True):
                values[panel.metric.name, panel.threshold, dataset, method] = entry.values[:halves]
                wanted[dataset, method] = halves
    return ComparisonTable.from_values(
        values,
        control=table.control if table.control in methods else methods[0],
        wanted=wanted,
        methods=methods,
        condition=table.panels[0].condition if table.panels else "",
    )


@dataclass(frozen=True, slots=True)
class Ranks:
    """Average ranks of the paper's methods in one block of its tables, over the same data sets.

    Attributes
    ----------
    title : str
        The measure, and for a reconstruction the threshold.
    methods : tuple of str
        Names of the methods.
    ours, published : tuple of float
        Average ranks from our figures and from the printed ones.
    """

    title: str
    methods: tuple[str, ...]
    ours: tuple[float, ...]
    published: tuple[float, ...]

    @property
    def texts(self) -> list[str]:
        """Our rank and the printed one, by method."""
        pairs = zip(self.ours, self.published, strict=True)
        return [f"{ours:.2f} [{printed:.2f}]" for ours, printed in pairs]


def block_ranks(table: ComparisonTable) -> list[Ranks]:
    """Rank the methods of each block by our figures and by the printed ones.

    Parameters
    ----------
    table : ComparisonTable
        A table of the paper's methods.

    Returns
    -------
    list of Ranks
        One per panel in which all methods are complete on at least one data set, if the paper
        prints all of them for all these data sets.
    """
    blocks = []
    for panel in table.panels:
        printed = [
            [
                figure
                for method in panel.methods
                # The value, or the mean without its standard deviation.
                for figure in panel.entries[row, method].published[:1]
            ]
            for row in panel.ranked
        ]
        if not printed or any(len(row) < len(panel.methods) for row in printed):
            continue
        better = panel.metric.greater_is_better
        published = average_ranks(printed, greater_is_better=better)
        blocks.append(Ranks(panel.title, panel.methods, panel.ranks(), tuple(published.tolist())))
    return blocks


def rank_lines(blocks: Sequence[Ranks], *, heading: str) -> list[str]:
    """Write ranks as the lines of a Markdown table.

    Parameters
    ----------
    blocks : sequence of Ranks
        One block per line.
    heading : str
        Heading of the first column.

    Returns
    -------
    list of str
        The lines, with our ranks and in brackets those of the printed figures.
    """
    if not blocks:
        return ["No block is complete."]
    rows = ([block.title, *block.texts] for block in blocks)
    return markdown_table([heading, *blocks[0].methods], rows)
