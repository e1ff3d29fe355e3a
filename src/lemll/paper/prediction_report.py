"""Report of a prediction: tables with the printed figures, agreement, ranks, significance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lemll.comparison import ComparisonTable
from lemll.experiments import Protocol, Store, write_texts
from lemll.paper.prediction import (
    PAPER_METHODS,
    PredictionAgreement,
    Significance,
    agreement,
    significances,
)
from lemll.paper.ranks import Ranks, block_ranks, rank_lines

__all__ = ["PredictionReport", "make_prediction_report"]


@dataclass(frozen=True, slots=True)
class PredictionReport:
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
    """

    table: ComparisonTable
    agreement: list[PredictionAgreement]
    ranks: list[Ranks]
    significances: list[Significance]
    settings: str

    def summary(self) -> str:
        """Write settings, agreement, ranks and significance in Markdown.

        Returns
        -------
        str
            It names the cells that differ by more than two standard deviations.
        """
        return "\n".join(
            [
                self.settings,
                "",
                "## Means within two of the paper's standard deviations of the printed ones",
                "",
                *_agreement_lines(self.agreement),
                "",
                "## Average ranks: ours [from the printed figures], the same data sets",
                "",
                *rank_lines(self.ranks, heading="measure"),
                "",
                f"## Where {self.table.control} is significantly better / worse, ours [printed]",
                "",
                *_significance_lines(self.significances),
                "",
            ]
        )

    def write(self, folder: Path) -> list[Path]:
        """Write all tables.

        Parameters
        ----------
        folder : Path
            Folder to write to; it is created if it does not exist.

        Returns
        -------
        list of Path
            The files: Markdown, LaTeX and CSV.
        """
        texts = {
            "summary.md": f"# Prediction: summary\n\n{self.summary()}",
            "tables.md": f"# Tables II and III: ours [printed]\n\n{self.table.to_markdown()}",
            "tables.tex": self.table.to_latex(),
            "tables.csv": self.table.to_csv(),
        }
        return write_texts(folder, texts)


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
        how = f"parameters tuned by {protocol.tuning.metric} in {protocol.tuning.folds} folds"
    return PredictionReport(
        table=table,
        agreement=agreement(table),
        ranks=block_ranks(_of_the_paper(table)),
        significances=significances(table) if table.control == "LEMLL" else [],
        settings=f"{n_splits} halves, {how}. The paper's halves, and its tuning, are not known.",
    )


def _of_the_paper(table: ComparisonTable) -> ComparisonTable:
    """Keep only the columns that the paper also has, because ranks compare these methods."""
    kept = [name for name in PAPER_METHODS if name in table.panels[0].methods]
    if not kept:
        return ComparisonTable((), table.control)
    values = {
        (panel.metric.name, panel.threshold, dataset, method): panel.entries[dataset, method].values
        for panel in table.panels
        for dataset in panel.datasets
        for method in kept
    }
    wanted = next(iter(table.panels[0].entries.values())).wanted
    control = table.control if table.control in kept else kept[0]
    return ComparisonTable.from_values(values, control=control, wanted=wanted, methods=kept)


def _agreement_lines(found: Sequence[PredictionAgreement]) -> list[str]:
    lines = ["| method | means | within | better | worse |", "|---|---|---|---|---|"]
    lines += [f"| {a.method} | {a.cells} | {a.within} | {a.better} | {a.worse} |" for a in found]
    misses = [f"- {a.method}: {'; '.join(a.misses)}" for a in found if a.misses]
    return [*lines, "", "More than two standard deviations away:", "", *(misses or ["- none"])]


def _significance_lines(found: Sequence[Significance]) -> list[str]:
    lines = ["| method | comparisons | better | worse |", "|---|---|---|---|"]
    return lines + [
        f"| {s.method} | {s.cells} | {s.better} [{s.published_better}] "
        f"| {s.worse} [{s.published_worse}] |"
        for s in found
    ]
