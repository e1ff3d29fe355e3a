"""Average ranks of the paper's methods, by our figures and by the printed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lemll.lab.statistics import average_ranks
from lemll.lab.tables import ComparisonTable

__all__ = ["Ranks", "block_ranks", "rank_lines"]


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
    lines = [f"| {heading} | {' | '.join(blocks[0].methods)} |"]
    lines.append("|---" * (1 + len(blocks[0].methods)) + "|")
    for block in blocks:
        pairs = zip(block.ours, block.published, strict=True)
        lines.append(f"| {block.title} | {' | '.join(f'{o:.2f} [{p:.2f}]' for o, p in pairs)} |")
    return lines
