"""Report of a reconstruction: tables with printed figures, agreement, ranks, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lemll.comparison import ComparisonTable
from lemll.experiments import Protocol, Store, write_texts
from lemll.paper.calibration import (
    CalibratedCell,
    CalibrationSummary,
    calibrated_cells,
    summarise_calibration,
)
from lemll.paper.ranks import Ranks, block_ranks, rank_lines
from lemll.paper.reconstruction import (
    BASELINES,
    ReconstructionAgreement,
    agreement,
    reconstruction_table,
)

__all__ = ["ReconstructionReport", "make_reconstruction_report"]

_N_RATED = (5, 10, 20)
_CALIBRATED = "LEMLL, 10 rows rated"


@dataclass(frozen=True, slots=True)
class ReconstructionReport:
    """The results of a finished reconstruction.

    Attributes
    ----------
    table : ComparisonTable
        The paper's methods, with its figures beside ours.
    apart : ComparisonTable
        LEMLL beside methods that the paper does not print: GLLE, two baselines without
        enhancement, and LEMLL with a calibrated scale.
    agreement : list of ReconstructionAgreement
        How close our figures are, one per method.
    ranks : list of Ranks
        Average ranks per block, ours and those of the printed figures.
    calibration : list of CalibrationSummary
        One per number of rated rows.
    """

    table: ComparisonTable
    apart: ComparisonTable
    agreement: list[ReconstructionAgreement]
    ranks: list[Ranks]
    calibration: list[CalibrationSummary]

    def summary(self) -> str:
        """Write agreement, ranks and calibration in Markdown.

        Returns
        -------
        str
            It names the cells that are not reproduced.
        """
        return "\n".join(
            [
                "## Agreement with the printed figures, rounded to three decimals",
                "",
                *_agreement_lines(self.agreement),
                "",
                "## Average ranks by block: ours [from the printed figures], the same data sets",
                "",
                *rank_lines(self.ranks, heading="block"),
                "",
                "## The scale of LEMLL's distributions, calibrated by rated rows",
                "",
                *_calibration_lines(self.calibration),
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
            "summary.md": f"# Reconstruction: summary\n\n{self.summary()}",
            "tables.md": f"# Tables VI to VIII: ours [printed]\n\n{self.table.to_markdown()}",
            "tables.tex": self.table.to_latex(),
            "tables.csv": self.table.to_csv(),
            "baselines.md": f"# What the paper does not print\n\n{self.apart.to_markdown()}",
            "baselines.csv": self.apart.to_csv(),
        }
        return write_texts(folder, texts)


def make_reconstruction_report(protocol: Protocol, store: Store) -> ReconstructionReport:
    """Summarise the results of a reconstruction in a store.

    Parameters
    ----------
    protocol : Protocol
        The result of `paper_reconstruction`, with LEMLL among its methods.
    store : Store
        The store with its results.

    Returns
    -------
    ReconstructionReport
        Tables and summaries.
    """
    table = reconstruction_table(protocol, store)
    calibrated = {n: list(calibrated_cells(protocol, store, n_rated=n)) for n in _N_RATED}
    return ReconstructionReport(
        table=table,
        apart=_apart(protocol, store, calibrated[10]),
        agreement=agreement(table),
        ranks=block_ranks(table),
        calibration=[summarise_calibration(cells, n) for n, cells in calibrated.items() if cells],
    )


def _apart(
    protocol: Protocol, store: Store, calibrated: Sequence[CalibratedCell]
) -> ComparisonTable:
    whole = ComparisonTable.from_store(protocol, store)
    labels = [spec.label for spec in protocol.methods]
    columns = [method for method in ("LEMLL", *BASELINES) if method in labels]
    found = {(c.measure, c.threshold, c.dataset): c.calibrated for c in calibrated}
    values: dict[tuple[str, float | None, str, str], Sequence[float]] = {}
    for panel in whole.panels:
        for dataset in panel.datasets:
            place = (panel.metric.name, panel.threshold, dataset)
            for method in columns:
                values[*place, method] = panel.entries[dataset, method].values
            values[*place, _CALIBRATED] = [found[place]] if place in found else []
    return ComparisonTable.from_values(
        values, control="LEMLL", wanted=1, methods=[*columns, _CALIBRATED], notes=whole.notes
    )


def _agreement_lines(found: Sequence[ReconstructionAgreement]) -> list[str]:
    lines = ["| method | cells | equal | within | tolerance | largest difference |"]
    lines.append("|---|---|---|---|---|---|")
    lines += [
        f"| {a.method} | {a.cells} | {a.exact} | {a.within} | {a.tolerance:g} | {a.largest:.3f} |"
        for a in found
    ]
    misses = [f"- {a.method}: {'; '.join(a.misses)}" for a in found if a.misses]
    return [*lines, "", "Not reproduced:", "", *(misses or ["- none"])]


def _calibration_lines(found: Sequence[CalibrationSummary]) -> list[str]:
    lines = [
        "| rated rows | cells | better than scale 1 | better than uniform "
        "| mean Chebyshev over that of the best scale |",
        "|---|---|---|---|---|",
    ]
    return lines + [
        f"| {c.n_rated} | {c.cells} | {c.better_than_plain} | {c.better_than_uniform} "
        f"| {c.chebyshev_over_best:.3f} |"
        for c in found
    ]
