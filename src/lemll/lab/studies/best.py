"""Report of the comparison of TagPredictor with other learners, from its committed cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from lemll.lab.published import published_field
from lemll.lab.statistics import wilcoxon_holm
from lemll.lab.studies.prediction import cells_table, ended_and_done, planned_cells, read_protocols
from lemll.lab.studies.prediction_report import seconds_lines
from lemll.lab.studies.sections import StudyReport, difference_text, section, shared_halves
from lemll.lab.tables import ComparisonTable, Panel, markdown_table

_CONTROL = "TagPredictor"
# The same learner with thresholds for the measure. It takes part there, instead of the other.
_VARIANTS = {"macro_f1": "TagPredictor (F1)", "micro_f1": "TagPredictor (micro F1)"}
_ALL_CONTROLS = (_CONTROL, *_VARIANTS.values())
_TESTED = ("average_precision", "ranking_loss")
_LEVEL = 0.05
# Forests lead the study: one per label, and one of trees that all labels share.
_STUDY_FORESTS = ("RFDTBR", "RFPCT")
# A learner takes part in the ranks if it has at least this share of the control's data sets.
_SHARE = 0.75
# Learners with only this share (chains and forests per label are slow on large data sets) are
# ranked in a table of their own.
_SMALL_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class BestReport(StudyReport):
    """The results of the comparison.

    Attributes
    ----------
    table : ComparisonTable
        All learners and measures.
    settings : str
        What was planned and what is done.
    seconds : tuple of str
        Lines of a table of times.
    """

    table: ComparisonTable
    settings: str
    seconds: tuple[str, ...]

    titles: ClassVar = ("The best predictor", "The best predictor: test halves")

    def best(self) -> str:
        """Say by how many measures TagPredictor has the best average rank.

        Returns
        -------
        str
            One sentence.
        """
        return _best_line(_compared(self.table, _SHARE))

    def summary(self) -> str:
        """Write ranks, tests and times in Markdown.

        Returns
        -------
        str
            The text.
        """
        most = _compared(self.table, _SHARE)
        lines = [self.settings, "", self.best(), ""]
        lines += section("## Average ranks", *_rank_lines(self.table, most))
        lines += _tests(most, "")
        known = {(panel.metric.name, tuple(panel.methods)) for panel in most}
        more = [
            panel
            for panel in _compared(self.table, _SMALL_SHARE)
            if (panel.metric.name, tuple(panel.methods)) not in known
        ]
        if more:
            lines += section(
                "## Average ranks with learners on fewer data sets",
                f"The learners that have at least half of the data sets of {_CONTROL}, on the data "
                "sets and halves that all of them have. Holm's rule is applied to each table by "
                f"itself. {_best_line(more)}",
                "",
                *_rank_lines(self.table, more),
            )
            lines += _tests(more, ", on fewer data sets")
        printed = _printed_lines(self.table)
        if printed:
            lines += section("## Beside the widest study of the field", *printed)
        return "\n".join([*lines, *section("## Time", *self.seconds)])


def make_best_report(folder: Path) -> BestReport:
    """Summarise the committed cells of a folder, without running anything.

    Parameters
    ----------
    folder : Path
        A folder with protocols and the table of their cells.

    Returns
    -------
    BestReport
        Tables and summaries.
    """
    planned = planned_cells(read_protocols(folder))
    cells, done = ended_and_done(folder, planned, of=_CONTROL)
    hours = sum(cell.seconds for cell in cells) / 3600
    settings = (
        f"{len(done)} of {len(planned)} planned cells are done, {len(cells) - len(done)} failed or "
        f"took too long; they took {hours:.1f} hours on one thread each, on a loaded machine. A "
        "mean is shown from one half on. The first ranks compare the learners that have three "
        f"quarters of the data sets of {_CONTROL}, on the data sets and halves that all of them "
        "have. It was developed on other halves of cal500, emotions, flags, medical, scene and "
        f"yeast. For macro and micro F1, {_CONTROL} has thresholds for this measure (the methods "
        f"{' and '.join(_VARIANTS.values())})."
    )
    table = cells_table(done, planned, control=_CONTROL, fewest=1)
    return BestReport(table, settings, tuple(seconds_lines(done)))


def _control_of(panel: Panel) -> str:
    variant = _VARIANTS.get(panel.metric.name, _CONTROL)
    return variant if variant in panel.methods else _CONTROL


def _compared(table: ComparisonTable, share: float) -> list[Panel]:
    """Keep the learners that have this share of the control's data sets, measure by measure."""
    found = (_of_control(panel, share) for panel in table.panels)
    return [panel for panel in found if panel is not None]


def _best_line(panels: Sequence[Panel]) -> str:
    first = []
    for panel in panels:
        ranks = dict(zip(panel.methods, panel.ranks(), strict=True))
        if ranks[_control_of(panel)] == min(ranks.values()):
            first.append(panel.metric.title)
    found = ", ".join(first) or "none"
    return (
        f"{_CONTROL} has the best average rank by {len(first)} of {len(panels)} measures: {found}."
    )


def _of_control(panel: Panel, share: float) -> Panel | None:
    """Keep the learners with this share of the control's data sets, and the sets that all have."""
    control = _control_of(panel)
    others = [name for name in panel.methods if name not in _ALL_CONTROLS]
    has = {
        method: {name for name in panel.datasets if panel.entries[name, method].values}
        for method in panel.methods
    }
    # A learner for some data sets only, or without this measure, would leave few sets for others.
    methods = [name for name in others if len(has[name]) >= share * len(has[control]) > 0]
    if not methods:
        return None
    methods = [control, *methods]
    sets = set.intersection(*(has[name] for name in methods))
    # The learners may have different data sets, and ranks on a few of them would mislead.
    if len(sets) < share * len(has[control]) / 2:
        return None
    return shared_halves(ComparisonTable((panel,), control), methods, sets).panels[0]


def _rank_lines(table: ComparisonTable, panels: Sequence[Panel]) -> list[str]:
    # The control comes first; its column also holds the ranks of its variants for F1.
    others = [
        name
        for name in table.panels[0].methods
        if name not in _ALL_CONTROLS and any(name in panel.methods for panel in panels)
    ]
    rows = []
    for panel in panels:
        ranks = dict(zip(panel.methods, panel.ranks(), strict=True))
        names = [_control_of(panel), *others]
        shown = [f"{ranks[name]:.2f}" if name in ranks else "" for name in names]
        n_sets = len(panel.ranked)
        rows.append([panel.title, n_sets, *shown, difference_text(len(ranks), n_sets)])
    header = ["measure", "data sets", _CONTROL, *others, "critical difference"]
    return markdown_table(header, rows)


def _tests(panels: Sequence[Panel], remark: str) -> list[str]:
    lines = []
    for panel in panels:
        if panel.metric.name in _TESTED:
            title = f"## {panel.title}: {_CONTROL} against each learner{remark}"
            lines += section(title, *_test_lines(panel))
    return lines


def _test_lines(panel: Panel) -> list[str]:
    means = [
        [fmean(panel.entries[name, method].values) for method in panel.methods]
        for name in panel.ranked
    ]
    control = panel.methods.index(_control_of(panel))
    better = panel.metric.greater_is_better
    rows = []
    for test in wilcoxon_holm(means, greater_is_better=better, control=control):
        gains = [row[control] - row[test.second] for row in means]
        wins, losses = (sum(sign * gain > 0 for gain in gains) for sign in (1, -1))
        counts = f"{wins} / {losses}" if better else f"{losses} / {wins}"
        pvalue = f"{test.adjusted:.3g}{' *' if test.adjusted < _LEVEL else ''}"
        rows.append([panel.methods[test.second], counts, f"{fmean(gains):+.4f}", pvalue])
    return [
        "Wilcoxon's signed-rank test over the data sets, adjusted by Holm's rule.",
        "",
        *markdown_table(
            ["learner", "data sets better / worse", "mean difference", "p (Holm)"], rows
        ),
        "",
        f"\\* significant at {_LEVEL:g}.",
    ]


def _printed_lines(table: ComparisonTable) -> list[str]:
    """Compare the control with the printed figures of a study, on the data sets of both."""
    rows = []
    for panel in table.panels:
        sign = 1 if panel.metric.greater_is_better else -1
        for name in panel.datasets:
            ours = panel.entries[name, _control_of(panel)].values
            printed = {
                cell.method: cell.value
                for cell in published_field()
                if cell.metric == panel.metric.name and cell.dataset == name
            }
            if not ours or not printed:
                continue
            mean = fmean(ours)
            best = max(printed, key=lambda method: sign * printed[method])
            above = sum(sign * mean > sign * value for value in printed.values())
            forests = [f"{printed[m]:.3f}" if m in printed else "" for m in _STUDY_FORESTS]
            shown = [f"{mean:.3f}", f"{printed[best]:.3f} ({best})", *forests]
            rows.append([panel.title, name, *shown, f"{above} of {len(printed)}"])
    if not rows:
        return []
    header = ["measure", "data set", f"{_CONTROL}, ours", "best printed (method)", *_STUDY_FORESTS]
    return [
        "Printed figures of the 28 methods of Bogatinovski et al. (2022). The study has one fixed "
        "training file per data set, most of them with more rows than our halves, and its "
        "implementations of the measures may treat ties differently, so the comparison is "
        "indicative.",
        "",
        *markdown_table([*header, "printed methods that are worse"], rows),
    ]
