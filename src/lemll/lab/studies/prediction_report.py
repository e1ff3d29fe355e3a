"""Report of a prediction: tables with the printed figures, agreement, ranks, significance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from scipy.stats import kendalltau, spearmanr

from lemll.lab.protocol import Protocol
from lemll.lab.store import Store
from lemll.lab.studies.prediction import (
    PAPER_METHODS,
    MeasuredCell,
    PredictionAgreement,
    Significance,
    agreement,
    cells_table,
    ended_and_done,
    planned_cells,
    read_protocols,
    significances,
)
from lemll.lab.studies.sections import (
    Ranks,
    StudyReport,
    block_ranks,
    by_dataset,
    difference_text,
    rank_lines,
    section,
    shared_halves,
)
from lemll.lab.tables import ComparisonTable, markdown_table


@dataclass(frozen=True, slots=True)
class PredictionReport(StudyReport):
    """The results of a finished prediction.

    Attributes
    ----------
    table : ComparisonTable
        All methods, with the paper's figures beside ours.
    agreement : list of PredictionAgreement
        Comparison of our means with the printed ones, one per method.
    ranks : list of Ranks
        Average ranks of the paper's methods per measure, ours and those of the printed figures.
    significances : list of Significance
        How often LEMLL is significantly better and worse, one per method.
    settings : str
        The number of halves, and how parameters were chosen.
    seconds : tuple of str
        Lines of a table of times; empty if the times are not known.
    """

    table: ComparisonTable
    agreement: list[PredictionAgreement]
    ranks: list[Ranks]
    significances: list[Significance]
    settings: str
    seconds: tuple[str, ...] = ()

    titles: ClassVar = ("Prediction", "Tables II and III: ours [printed]")

    def summary(self) -> str:
        """Write settings, agreement, ranks and significance in Markdown.

        Returns
        -------
        str
            It names the cells that differ by more than two standard deviations.
        """
        correlations = (f"- {block.title}: {_correlation(block)}" for block in self.ranks)
        lines = [
            *section(
                "## Means within two of the paper's standard deviations of the printed ones",
                *_agreement_lines(self.agreement),
            ),
            *section(
                "## Average ranks: ours [from the printed figures], the same data sets",
                *rank_lines(self.ranks, heading="measure"),
                "",
                *correlations,
            ),
            *section("## Average ranks of all methods", *_all_ranks(self.table)),
            *section(
                f"## Where {self.table.control} is significantly better / worse, ours [printed]",
                *_significance_lines(self.significances),
            ),
            *(section("## Time", *self.seconds) if self.seconds else []),
        ]
        return "\n".join([self.settings, "", *lines])

    def _more(self) -> dict[str, str]:
        return {"tables.tex": self.table.to_latex(), "tables.csv": self.table.to_csv()}


def _correlation(block: Ranks) -> str:
    tau = kendalltau(block.ours, block.published).statistic
    rho = spearmanr(block.ours, block.published).statistic
    return f"rank correlation of the two orders: Spearman {rho:.2f}, Kendall {tau:.2f}"


def _all_ranks(table: ComparisonTable) -> list[str]:
    """Write average ranks: of all methods, and of those that are complete on more data sets.

    A method that lacks the large data sets would leave only the small ones for all the others. So
    there is one table for each collection of data sets that some method completes.
    """
    methods = table.panels[0].methods if table.panels else ()
    of_control = _complete_on(table, [table.control])
    done = {name: frozenset(_complete_on(table, [name]) & of_control) for name in methods}
    groups: dict[tuple[str, ...], set[str]] = {}
    for sets in sorted(set(done.values()), key=len):
        group = tuple(name for name in methods if done[name] >= sets)
        groups[group] = _complete_on(table, group)
    lines = _rank_table(table, methods, groups.pop(tuple(methods), set()))
    for group, complete in groups.items():
        if complete and len(group) > 1:
            lines += ["", *_rank_table(table, group, complete)]
    return lines


def _complete_on(table: ComparisonTable, methods: Sequence[str]) -> set[str]:
    """Return the data sets on which methods are complete in all measures."""
    datasets = table.panels[0].datasets if table.panels else ()
    return {
        dataset
        for dataset in datasets
        if all(panel.entries[dataset, m].complete for panel in table.panels for m in methods)
    }


def _rank_table(table: ComparisonTable, methods: Sequence[str], sets: set[str]) -> list[str]:
    """Write the ranks of methods on data sets, with the critical difference of Nemenyi's test."""
    if not sets or len(methods) < 2:
        return ["No data set is complete for all methods."]
    shared = shared_halves(table, methods, sets)
    rows = (
        [
            panel.title,
            *(f"{rank:.2f}" for rank in panel.ranks()),
            difference_text(len(methods), len(panel.ranked)),
        ]
        for panel in shared.panels
    )
    return [
        f"Data sets on which these methods are complete: {', '.join(shared.panels[0].datasets)}. "
        "The ranks of a data set come from the halves that all of them have.",
        "",
        *markdown_table(["measure", *methods, "critical difference"], rows),
    ]


def make_cells_report(folder: Path) -> PredictionReport:
    """Summarise the committed cells of a folder, without running anything.

    Parameters
    ----------
    folder : Path
        A folder with protocols and the table of their cells.

    Returns
    -------
    PredictionReport
        Tables and summaries.
    """
    protocols = read_protocols(folder)
    planned = planned_cells(protocols)
    cells, done = ended_and_done(folder, planned)
    hours = sum(cell.seconds for cell in cells) / 3600
    settings = (
        f"{len(done)} of {len(planned)} planned cells are done; they took {hours:.1f} hours on one "
        "thread each, on a loaded machine. A mean is shown if at least three halves are done. The "
        "paper's halves, and its tuning, are not known."
    )
    # The paper compares LEMLL with the others. An experiment without it names its own control.
    has_lemll = any(key.method == "LEMLL" for key in planned)
    control = "LEMLL" if has_lemll else protocols[0].control
    return _report(cells_table(cells, planned, control=control), settings, seconds_lines(done))


def seconds_lines(cells: Sequence[MeasuredCell]) -> list[str]:
    """Write the mean seconds of a cell, by data set and method.

    Parameters
    ----------
    cells : sequence of MeasuredCell
        The cells that are done.

    Returns
    -------
    list of str
        A Markdown table.
    """
    lines = by_dataset(
        ((cell.key.dataset, cell.key.method, cell.seconds) for cell in cells),
        lambda seconds: f"{fmean(seconds):.1f} ({len(seconds)})",
    )
    note = (
        "Mean seconds of a cell, with its tuning (number of cells done). Variants of a method on "
        "the same rows may share what does not depend on the variant; the first one takes the time."
    )
    return [note, "", *lines]


def make_prediction_report(protocol: Protocol, store: Store) -> PredictionReport:
    """Summarise the results of a prediction in a store.

    Parameters
    ----------
    protocol : Protocol
        The result of `paper_prediction`.
    store : Store
        The store with its results.

    Returns
    -------
    PredictionReport
        Tables and summaries.
    """
    table = ComparisonTable.from_store(protocol, store)
    n_splits = 0 if protocol.splits is None else protocol.splits.n_splits
    how = "default parameters"
    if protocol.tuning is not None:
        how = f"parameters tuned by {protocol.tuning}"
    settings = f"{n_splits} halves, {how}. The paper's halves, and its tuning, are not known."
    return _report(table, settings)


def _report(table: ComparisonTable, settings: str, seconds: Sequence[str] = ()) -> PredictionReport:
    return PredictionReport(
        table=table,
        agreement=agreement(table),
        ranks=block_ranks(_of_the_paper(table)),
        significances=significances(table) if table.control == "LEMLL" else [],
        settings=settings,
        seconds=tuple(seconds),
    )


def _of_the_paper(table: ComparisonTable) -> ComparisonTable:
    """Keep only the columns that the paper also has, because ranks compare these methods.

    A method that completes less than half of the control's data sets is left out: with it, few
    data sets or none would remain for the others.
    """
    fewest = len(_complete_on(table, [table.control])) / 2
    known = [name for name in PAPER_METHODS if table.panels and name in table.panels[0].methods]
    kept = [name for name in known if len(_complete_on(table, [name])) >= fewest]
    if not kept:
        return ComparisonTable((), table.control)
    return shared_halves(table, kept, _complete_on(table, kept))


def _agreement_lines(found: Sequence[PredictionAgreement]) -> list[str]:
    lines = markdown_table(
        ["method", "means", "within two", "better", "worse", "as good as printed, within one"],
        ([a.method, a.cells, a.within, a.better, a.worse, a.as_good] for a in found),
    )
    misses = [f"- {a.method}: {'; '.join(a.misses)}" for a in found if a.misses]
    return [*lines, "", "More than two standard deviations away:", "", *(misses or ["- none"])]


def _significance_lines(found: Sequence[Significance]) -> list[str]:
    rows = (
        [
            s.method,
            s.cells,
            f"{s.better} [{s.published_better}]",
            f"{s.worse} [{s.published_worse}]",
        ]
        for s in found
    )
    return markdown_table(["method", "comparisons", "better", "worse"], rows)
