"""Report of the experiment on incomplete labels, from its committed cells.

Every learner takes part twice: with the hidden labels unknown, and with the hidden labels read as
0. The report compares the two variants of each learner, and ranks all contestants.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from lemll.exceptions import StoreError
from lemll.lab.methods import MethodSpec
from lemll.lab.protocol import Protocol
from lemll.lab.statistics import wilcoxon_holm
from lemll.lab.studies.prediction import cells_table, ended_and_done, planned_cells, read_protocols
from lemll.lab.studies.sections import StudyReport, difference_text, section, shared_halves
from lemll.lab.tables import ComparisonTable, Panel, markdown_table
from lemll.models.pairwise import holm

_MEASURE = "average_precision"
# The average precision judges the order of the labels of a row, the Hamming loss which of them are
# predicted.
_GAIN_MEASURES = (_MEASURE, "hamming_loss")
_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better a learner is on the known labels than with hidden labels read as 0.

    Attributes
    ----------
    learner : str
        Label of the learner.
    means : tuple of float
        The mean difference of the measure on each data set, over the halves that both variants
        have. A positive difference means that the known labels are better.
    halves : int
        Number of these halves, over all data sets.
    adjusted : float
        p-value of Wilcoxon's test over the data sets, adjusted by Holm's rule for the number of
        learners.
    adjusted_halves : float
        The same with one value per data set and half. The halves of a data set are not independent,
        so this value is too small.
    """

    learner: str
    means: tuple[float, ...]
    halves: int
    adjusted: float
    adjusted_halves: float


@dataclass(frozen=True, slots=True)
class UnobservedReport(StudyReport):
    """The results of the experiment on incomplete labels.

    Attributes
    ----------
    table : ComparisonTable
        The average precision of all contestants, with one panel per rule.
    tables : tuple of ComparisonTable
        All contestants, one table per rule that hides labels.
    gains : mapping of str to tuple of tuple of Gain
        By measure: for each table, one gain per learner that has both variants.
    settings : str
        What was planned and what is done.
    """

    table: ComparisonTable
    tables: tuple[ComparisonTable, ...]
    gains: Mapping[str, tuple[tuple[Gain, ...], ...]]
    settings: str

    titles: ClassVar = ("Incomplete labels", "Incomplete labels: test halves")

    def best(self) -> str:
        """Name the contestants with the best average ranks.

        Returns
        -------
        str
            One sentence per rule, and one about all of them.
        """
        lines, found = [], []
        for table in self.tables:
            panel = _precision(_shared(table))
            if not panel.ranked:
                continue
            ranks = dict(zip(panel.methods, panel.ranks(), strict=True))
            lines.append(
                f"- {panel.condition}: {_winners(ranks)}, on {_count(panel.ranked, 'data set')}."
            )
            found.append(ranks)
        if not found:
            return "No data set is complete for all contestants."
        over_all = {name: fmean(ranks[name] for ranks in found) for name in found[0]}
        lines.append(f"- In the mean of these {len(found)} conditions: {_winners(over_all)}.")
        return "\n".join(lines)

    def summary(self) -> str:
        """Write settings, gains, ranks and the best contestants in Markdown.

        Returns
        -------
        str
            The text.
        """
        lines = [self.settings, "", *section("## The best contestants", self.best())]
        lines += section(
            "## What known labels gain over hidden labels read as 0",
            "A gain is positive if the learner on the known labels is better than the same learner "
            "with hidden labels read as 0. If labels are hidden at random, reading them as 0 "
            "makes all labels of a row less probable by the same factor. So the order of the "
            "labels, which the average precision judges, hardly suffers, but too few labels are "
            "predicted, which the Hamming loss shows.",
            "",
            "The unit of the test is the data set: one mean over its halves per data set. "
            "Wilcoxon's signed-rank test is adjusted by Holm's rule for the learners of a "
            "condition. The last column takes each half of each data set as a unit; these are not "
            "independent, so its values are too small.",
        )
        for measure, of_tables in self.gains.items():
            metric = _panel(self.tables[0], measure).metric
            title = f"{metric.title} {metric.arrow}"
            for table, gains in zip(self.tables, of_tables, strict=True):
                lines += section(f"### {title}: {_condition(table)}", *_gain_lines(gains))
        lines += section("## Average ranks by average precision", *_rank_lines(self.tables))
        return "\n".join(lines)

    def _more(self) -> dict[str, str]:
        panels = tuple(panel for table in self.tables for panel in table.panels)
        return {"tables.csv": ComparisonTable(panels, self.tables[0].control).to_csv()}


def make_unobserved_report(folder: Path) -> UnobservedReport:
    """Summarise the committed cells of a folder, without running anything.

    Parameters
    ----------
    folder : Path
        A folder with protocols that hide labels, and the table of their cells.

    Returns
    -------
    UnobservedReport
        Tables and summaries.
    """
    protocols = read_protocols(folder)
    rules = list(dict.fromkeys(rule for protocol in protocols for rule in protocol.hide))
    if not rules:
        raise StoreError(f"no protocol in {folder} hides labels; add [hide] to one of them.")
    planned = [key for key in planned_cells(protocols) if key.hidden]
    n_planned = len(planned)
    cells, done = ended_and_done(folder, planned)
    # A learner that has not been run at all would leave no data set for the ranks of the others.
    contestants = {cell.key.method for cell in done}
    absent = [key.method for key in planned if key.method not in contestants]
    planned = [key for key in planned if key.method in contestants]
    tables = tuple(
        cells_table(done, planned, control=_control(protocols, contestants), hide=rule, fewest=1)
        for rule in rules
    )
    pairs = _pairs(protocols, contestants)
    hours = sum(cell.seconds for cell in cells) / 3600
    settings = (
        f"{len(done)} of {n_planned} planned cells are done, {len(cells) - len(done)} failed or "
        f"took too long; they took {hours:.1f} hours on one thread each, on a loaded machine. A "
        "mean is shown from one half on. Comparisons use the halves that all compared variants "
        "have. Every contestant was tuned in the same folds of the training half, by the average "
        "precision of the known labels (of all labels, if hidden ones are read as 0)."
    )
    first = [
        protocol for protocol in protocols if protocol.tuning and protocol.tuning.splits == "first"
    ]
    if first:
        names = dict.fromkeys(source.name for protocol in first for source in protocol.datasets)
        settings += f" On {', '.join(names)} the first half selected the parameters of all halves."
    if absent:
        settings += f" Not run yet: {', '.join(dict.fromkeys(absent))}."
    gains = {
        measure: tuple(tuple(_gains(_panel(table, measure), pairs)) for table in tables)
        for measure in _GAIN_MEASURES
    }
    precision = ComparisonTable(tuple(map(_precision, tables)), tables[0].control)
    return UnobservedReport(precision, tables, gains, settings)


def _control(protocols: Sequence[Protocol], contestants: set[str]) -> str:
    wanted = protocols[0].control
    return wanted if wanted in contestants else min(contestants)


def _pairs(protocols: Iterable[Protocol], contestants: set[str]) -> list[tuple[str, str]]:
    """Return the labels of the two variants of each learner: known labels, hidden read as 0."""
    found = [
        (spec.label, zero.label)
        for protocol in protocols
        for zero in protocol.methods
        for spec in protocol.methods
        if zero.unobserved == "zero" and spec.unobserved == "skip" and _same(spec, zero)
    ]
    # Protocols for other data sets have the same learners.
    return [pair for pair in dict.fromkeys(found) if contestants.issuperset(pair)]


def _same(first: MethodSpec, second: MethodSpec) -> bool:
    return (first.method, first.parameters, first.features) == (
        second.method,
        second.parameters,
        second.features,
    )


def _panel(table: ComparisonTable, measure: str) -> Panel:
    (panel,) = (panel for panel in table.panels if panel.metric.name == measure)
    return panel


def _precision(table: ComparisonTable) -> Panel:
    return _panel(table, _MEASURE)


def _condition(table: ComparisonTable) -> str:
    return table.panels[0].condition


def _gains(panel: Panel, pairs: Sequence[tuple[str, str]]) -> Iterable[Gain]:
    found = []
    sign = 1 if panel.metric.greater_is_better else -1
    for pair in pairs:
        differences = []
        for dataset in panel.datasets:
            skip, zero = (panel.entries[dataset, method].values for method in pair)
            shared = zip(skip, zero, strict=False)
            differences.append([sign * (a - b) for a, b in shared])
        kept = [halves for halves in differences if halves]
        if kept:
            found.append((pair[0], kept))
    if not found:
        return
    adjusted = holm([_pvalue(map(fmean, kept)) for _, kept in found])
    by_halves = holm([_pvalue(itertools.chain.from_iterable(kept)) for _, kept in found])
    for (learner, kept), of_sets, of_halves in zip(found, adjusted, by_halves, strict=True):
        means = tuple(fmean(halves) for halves in kept)
        yield Gain(learner, means, sum(map(len, kept)), float(of_sets), float(of_halves))


def _pvalue(differences: Iterable[float]) -> float:
    """Return the p-value of Wilcoxon's test that the differences are around 0."""
    rows = [[difference, 0.0] for difference in differences]
    return wilcoxon_holm(rows, greater_is_better=True)[0].pvalue


def _gain_lines(gains: Sequence[Gain]) -> list[str]:
    if not gains:
        return ["No learner has both variants on any data set."]
    rows = []
    for gain in gains:
        better, worse = (sum(sign * mean > 0 for mean in gain.means) for sign in (1, -1))
        means = [f"{mean:+.3f}" for mean in (fmean(gain.means), min(gain.means), max(gain.means))]
        pvalue = f"{gain.adjusted:.3g}{' *' if gain.adjusted < _LEVEL else ''}"
        halves = [gain.halves, f"{gain.adjusted_halves:.2g}"]
        rows.append([gain.learner, len(gain.means), f"{better} / {worse}", *means, pvalue, *halves])
    header = "learner|data sets|better / worse|mean gain|smallest|largest|p (Holm)|halves"
    lines = markdown_table([*header.split("|"), "p (Holm), halves as units"], rows)
    return [*lines, "", f"\\* significant at {_LEVEL:g}."]


def _shared(table: ComparisonTable) -> ComparisonTable:
    """Keep the data sets on which all contestants have a half, and the halves that all have."""
    methods = table.panels[0].methods
    complete = {name for name in table.panels[0].datasets if name in _precision(table).ranked}
    return shared_halves(table, methods, complete) if complete else table


def _rank_lines(tables: Sequence[ComparisonTable]) -> list[str]:
    methods = tables[0].panels[0].methods
    rows = []
    for table in tables:
        panel = _precision(_shared(table))
        sets = len(panel.ranked)
        ranks = [f"{rank:.2f}" for rank in panel.ranks()] or [""] * len(methods)
        rows.append([_condition(table), sets, *ranks, difference_text(len(methods), sets)])
    return markdown_table(["condition", "data sets", *methods, "critical difference"], rows)


def _winners(ranks: Mapping[str, float]) -> str:
    """Name the contestants with the best average rank, and those that follow."""
    first, *others = sorted(set(ranks.values()))
    best = [name for name in ranks if ranks[name] == first]
    text = f"{' and '.join(best)} {'has' if len(best) == 1 else 'have'} the best average rank"
    text += f" ({first:.2f})"
    if not others:
        return text
    following = [name for name in ranks if ranks[name] == others[0]]
    return f"{text}, before {' and '.join(following)} ({others[0]:.2f})"


def _count(names: Sequence[str], noun: str) -> str:
    return f"{len(names)} {noun}" + ("" if len(names) == 1 else "s")
