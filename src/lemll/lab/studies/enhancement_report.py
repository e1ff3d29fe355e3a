"""Report of the comparison of all enhancers in three regimes, from its committed cells."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import ClassVar

import numpy as np
from scipy.stats import kendalltau, rankdata

from lemll._files import csv_text
from lemll._types import FloatArray
from lemll.exceptions import StoreError
from lemll.lab.protocol import Protocol
from lemll.lab.studies.enhancement import (
    GRIDS,
    N_DRAWS,
    N_RATED,
    NO_TRUTH,
    ORACLE_GRID,
    ORACLE_SCALE,
    OTHERS_FILE,
    RATED_MEAN,
    FailedFit,
    MeasuredRegime,
    enhancement_protocol,
    rated_regime,
    read_enhancement,
    read_failed,
    regimes,
)
from lemll.lab.studies.prediction import CELLS_FILE
from lemll.lab.studies.sections import StudyReport, by_dataset, difference_text, section
from lemll.lab.tables import ComparisonTable, markdown_table
from lemll.metrics.table import METRICS

OURS = "Blend"
# A method takes part in the ranks if it has at least this share of the data sets and thresholds.
_SHARE = 0.75
Place = tuple[str, float]


def values_of(
    rows: Sequence[MeasuredRegime], regime: str, metric: str
) -> dict[tuple[Place, str], float]:
    """Return losses by (data set, threshold) and method; similarities are negated.

    Parameters
    ----------
    rows : sequence of MeasuredRegime
        Rows of the table.
    regime : str
        The regime.
    metric : str
        The measure.

    Returns
    -------
    dict
        The losses.
    """
    sign = -1 if METRICS[metric].greater_is_better else 1
    return {
        (row.key[:2], row.key.method): sign * row.metrics[metric]
        for row in rows
        if row.key.regime == regime
    }


def average_ranks(
    rows: Sequence[MeasuredRegime], regime: str, metric: str
) -> tuple[dict[str, float], int]:
    """Return the average ranks over the complete data sets, and the number of these sets.

    Parameters
    ----------
    rows : sequence of MeasuredRegime
        Rows of the table.
    regime : str
        The regime.
    metric : str
        The measure.

    Returns
    -------
    ranks : dict of str to float
        By method.
    n_sets : int
        Number of data sets.
    """
    values = values_of(rows, regime, metric)
    places = list(dict.fromkeys(place for place, _ in values))
    counts = Counter(method for _, method in values)
    methods = [method for method, count in counts.items() if count >= _SHARE * len(places)]
    by_set: dict[str, list[FloatArray]] = {}
    for place in places:
        found = [values.get((place, method), np.nan) for method in methods]
        if not np.isnan(found).any():
            by_set.setdefault(place[0], []).append(rankdata(found))
    if not by_set:
        return {}, 0
    means = np.mean([np.mean(ranks, axis=0) for ranks in by_set.values()], axis=0)
    return dict(zip(methods, means.tolist(), strict=True)), len(by_set)


def mean_ranks(
    rows: Sequence[MeasuredRegime], regime: str, metrics: Sequence[str]
) -> dict[str, float]:
    """Return the means of the average ranks over measures.

    Parameters
    ----------
    rows : sequence of MeasuredRegime
        Rows of the table.
    regime : str
        The regime.
    metrics : sequence of str
        The measures.

    Returns
    -------
    dict of str to float
        By method.
    """
    found = [average_ranks(rows, regime, metric)[0] for metric in metrics]
    return {method: fmean(ranks[method] for ranks in found) for method in found[0]}


def ratios_of(rows: Sequence[MeasuredRegime], regime: str) -> dict[Place, float]:
    """Return the Chebyshev distance of the blend, divided by that of the best other method.

    Parameters
    ----------
    rows : sequence of MeasuredRegime
        Rows of the table.
    regime : str
        The regime.

    Returns
    -------
    dict
        By data set and threshold.
    """
    values = values_of(rows, regime, "chebyshev")
    ratios = {}
    for (place, method), value in values.items():
        others = [v for (where, name), v in values.items() if where == place and name != method]
        if method == OURS and others:
            ratios[place] = value / min(others)
    return ratios


# The methods of other libraries that lemll also has, under our names. The others have none, so
# Blend stands beside them.
_COUNTERPARTS = {
    "PyLDL FCM": "FCM", "PyLDL KM": "KM", "PyLDL LP": "RELIAB", "PyLDL ML": "ML2",
    "PyLDL GLLE": "GLLE",
}  # fmt: skip


def regret_lines(rows: Sequence[MeasuredRegime]) -> list[str]:
    """Tell how far each method is from the best one, which nobody knows in advance.

    Parameters
    ----------
    rows : sequence of MeasuredRegime
        Rows of the table.

    Returns
    -------
    list of str
        A table in Markdown: for each method and regime without the truth, in how many places it is
        within 1 % of the best of all methods by the Chebyshev distance, and its worst ratio.
    """
    honest = [regime for regime in regimes() if regime not in (ORACLE_SCALE, ORACLE_GRID)]
    columns: dict[str, dict[str, str]] = {}
    for regime in honest:
        values = values_of(rows, regime, "chebyshev")
        best: dict[Place, float] = {}
        for (place, _), value in values.items():
            best[place] = min(value, best.get(place, value))
        for method in dict.fromkeys(name for _, name in values):
            ratios = [v / best[place] for (place, name), v in values.items() if name == method]
            close = sum(ratio <= 1.01 for ratio in ratios)
            columns.setdefault(method, {})[regime] = f"{close} / {len(ratios)} ({max(ratios):.2f})"
    rows_shown = (
        [method, *(found.get(regime, "") for regime in honest)] for method, found in columns.items()
    )
    return markdown_table(["method", *honest], rows_shown)


def grid_lines(rows: Sequence[MeasuredRegime]) -> list[str]:
    """Tell how much the best published setting adds to the best scale.

    Parameters
    ----------
    rows : sequence of MeasuredRegime
        Rows of the table.

    Returns
    -------
    list of str
        A table in Markdown, with the methods for which the search changed a setting.
    """
    plain = values_of(rows, ORACLE_SCALE, "chebyshev")
    shown = []
    for method in dict.fromkeys(row.key.method for row in rows):
        found = {
            row.key[:2]: row
            for row in rows
            if row.key.method == method and row.key.regime == ORACLE_GRID
        }
        ratios = [
            row.metrics["chebyshev"] / plain[place, method]
            for place, row in found.items()
            if plain.get((place, method))
        ]
        others = Counter(row.setting for row in found.values() if row.setting)
        if not ratios or not others:
            continue
        # Of settings that are chosen equally often, the first in the alphabet.
        often, count = min(others.items(), key=lambda item: (-item[1], item[0]))
        seconds = fmean(row.seconds for row in found.values())
        own = f"{len(found) - others.total()} / {len(found)}"
        figures = [f"{fmean(ratios):.3f}", f"{min(ratios):.3f}", f"{seconds:.1f}"]
        shown.append([method, own, f"{often} ({count})", *figures])
    header = "method|own parameters are best in|most frequent other setting|mean ratio of "
    header += "Chebyshev to that with the best scale alone|smallest ratio|CPU seconds of a search"
    return markdown_table(header.split("|"), shown)


def others_lines(
    rows: Sequence[MeasuredRegime], others: Sequence[MeasuredRegime], metrics: Sequence[str]
) -> list[str]:
    """Compare methods of other libraries with ours: CPU time, distances and ranks.

    Parameters
    ----------
    rows : sequence of MeasuredRegime
        Rows of our methods.
    others : sequence of MeasuredRegime
        Rows of methods of other libraries.
    metrics : sequence of str
        The measures of the ranks.

    Returns
    -------
    list of str
        A table and a list in Markdown.
    """
    shown = [NO_TRUTH, rated_regime(10), ORACLE_SCALE]
    together = [*rows, *others]
    values = {regime: values_of(together, regime, "chebyshev") for regime in shown}
    seconds = {
        (row.key[:2], row.key.method): row.seconds for row in together if row.key.regime == NO_TRUTH
    }
    table = []
    for method in dict.fromkeys(row.key.method for row in others):
        ours = _COUNTERPARTS.get(method, OURS)
        places = [
            place
            for place, name in seconds
            if name == method
            and all((place, m) in values[r] for m in (method, ours) for r in shown)
        ]
        if not places:
            continue
        theirs, our = (sum(seconds[place, m] for place in places) for m in (method, ours))
        ratios = [
            f"{fmean(values[r][p, method] for p in places):.4f} / "
            f"{fmean(values[r][p, ours] for p in places):.4f}"
            for r in shown
        ]
        n_sets = len({place[0] for place in places})
        seconds_text = [f"{theirs:.2f}", f"{our:.2f}"]
        table.append([method, ours, n_sets, len(places), *seconds_text, *ratios])
    header = "method|beside|data sets|fits|its CPU seconds|ours".split("|")
    lines = markdown_table([*header, *(f"Chebyshev, {regime}" for regime in shown)], table)
    return [*lines, "", *_shared_rank_lines(rows, others, metrics), "", _regret_line(together)]


def _regret_line(rows: Sequence[MeasuredRegime]) -> str:
    """Tell in how many places our method is close to the best of all."""
    counts = []
    for number in N_RATED:
        ratios = list(ratios_of(rows, rated_regime(number)).values())
        close = sum(ratio <= 1.01 for ratio in ratios)
        worst = f" (worst ratio {max(ratios):.3f})" if ratios else ""
        counts.append(f"{close} of {len(ratios)} places with {number} rated rows{worst}")
    return (
        f"If the methods of other libraries also count, the Chebyshev distance of {OURS} is within "
        f"1 % of the best other one in {', '.join(counts)}."
    )


def failed_lines(fits: Sequence[FailedFit]) -> list[str]:
    """List the fits of other libraries that gave no result.

    Parameters
    ----------
    fits : sequence of FailedFit
        The fits, in the order of the data sets.

    Returns
    -------
    list of str
        A list in Markdown, one line per method and reason.
    """
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for fit in fits:
        thresholds = found.setdefault((fit.method, fit.reason), {}).setdefault(fit.dataset, [])
        thresholds.append(f"{fit.threshold:g}")
    return [
        f"- {method} {reason}: "
        + "; ".join(f"{name} at {', '.join(thresholds)}" for name, thresholds in places.items())
        for (method, reason), places in found.items()
    ]


def _shared_rank_lines(
    rows: Sequence[MeasuredRegime], others: Sequence[MeasuredRegime], metrics: Sequence[str]
) -> list[str]:
    """Rank all methods where those of the other libraries are done."""
    done = {row.key[:2] for row in others}
    rows = [*(row for row in rows if row.key[:2] in done), *others]
    lines = []
    # The other libraries have no grid.
    for regime in regimes()[:-1]:
        means = mean_ranks(rows, regime, metrics)
        names = sorted(means, key=lambda name: means[name])
        ranked = ", ".join(f"{name} {means[name]:.2f}" for name in names)
        lines += [f"- {regime}: {ranked}"] if names else []
    return lines


# The ladder of models, the ridges and the prior of the blend were chosen on these data sets.
DEVELOPED_ON = (
    "SJAFFE", "Natural_Scene", "Yeast_alpha", "Yeast_cdc", "Yeast_cold", "Yeast_spo5",
    "Yeast_spoem",
)  # fmt: skip
_BASELINES = ("Uniform", "Logical", RATED_MEAN)


@dataclass(frozen=True, slots=True)
class EnhancementReport(StudyReport):
    """The results of the comparison.

    Attributes
    ----------
    table : ComparisonTable
        All measures with ten rated rows, one panel per measure and threshold.
    rows : tuple of MeasuredRegime
        All rows of the table, and those of other libraries.
    metrics : tuple of str
        The measures, in the order of the protocol.
    settings : str
        What was planned and what is done.
    others : tuple of MeasuredRegime
        Rows of methods of other libraries. They take part only in a section of their own.
    failed : tuple of FailedFit
        Fits of these methods that gave no result.
    """

    table: ComparisonTable
    rows: tuple[MeasuredRegime, ...]
    metrics: tuple[str, ...]
    settings: str
    others: tuple[MeasuredRegime, ...] = ()
    failed: tuple[FailedFit, ...] = ()

    titles: ClassVar = ("Label enhancement in three regimes", "Label enhancement, ten rated rows")

    def best(self) -> str:
        """Name the method with the best average rank in each regime.

        Returns
        -------
        str
            One line per regime.
        """
        lines = []
        for regime in regimes():
            means = mean_ranks(self.rows, regime, self.metrics)
            if means:
                first, second = sorted(means, key=lambda name: means[name])[:2]
                lines.append(
                    f"- {regime}: {first} has the best average rank ({means[first]:.2f}), before "
                    f"{second} ({means[second]:.2f})."
                )
        return "\n".join(lines)

    def summary(self) -> str:
        """Write settings, ranks, baselines, changes of order and times in Markdown.

        Returns
        -------
        str
            The text.
        """
        ranks = [
            line
            for regime in regimes()
            for line in section(f"### {regime}", *self._rank_lines(regime))
        ]
        lines = [self.settings, "", *section("## The best methods", self.best())]
        lines += [*section("## Average ranks", _RANKS_TEXT), *ranks]
        for title, text, table in (
            ("The blend beside the best other method", _BLEND_TEXT, self._blend_lines()),
            ("How close each method comes to the best one", _REGRET_TEXT, regret_lines(self.rows)),
            ("Who beats the baselines", _BASELINE_TEXT, self._baseline_lines()),
            ("How the order changes between regimes", "", self._order_lines()),
            ("What the settings of the oracle add", _GRID_TEXT, grid_lines(self.rows)),
        ):
            lines += section(f"## {title}", *([text, ""] if text else []), *table)
        if self.others:
            found = others_lines(self.rows, self.others, self.metrics)
            lines += section("## Beside other libraries", _OTHERS_TEXT, "", *found)
        if self.failed:
            lines += section(_FAILED_TEXT, *failed_lines(self.failed))
        return "\n".join([*lines, *section("## CPU seconds of a fit", *self._seconds_lines())])

    def _more(self) -> dict[str, str]:
        return {"ranks.csv": self._ranks_csv()}

    def _rank_lines(self, regime: str) -> list[str]:
        by_measure = {name: average_ranks(self.rows, regime, name) for name in self.metrics}
        methods = list(next(iter(by_measure.values()))[0])
        if not methods:
            return ["No data set is complete."]
        rows = [
            [
                f"{METRICS[name].title} {METRICS[name].arrow}",
                *(f"{found[method]:.2f}" for method in methods),
                difference_text(len(methods), n_sets),
            ]
            for name, (found, n_sets) in by_measure.items()
        ]
        return markdown_table(["measure", *methods, "critical difference"], rows)

    def _blend_lines(self) -> list[str]:
        rows = []
        for regime in regimes():
            for title, names in (("chosen on", True), ("others", False)):
                ratios = {
                    key: ratio
                    for key, ratio in ratios_of(self.rows, regime).items()
                    if (key[0] in DEVELOPED_ON) == names
                }
                if not ratios:
                    continue
                worst = max(ratios, key=lambda key: ratios[key])
                values = list(ratios.values())
                counts = (sum(value <= most for value in values) for most in (1, 1.01))
                shares = [f"{count} / {len(values)}" for count in counts]
                figures = [f"{fmean(values):.3f}", f"{ratios[worst]:.3f}"]
                rows.append([regime, title, *shares, *figures, f"{worst[0]}, {worst[1]:g}"])
        header = "regime|data sets|first in|within 1 % of the first in|mean ratio|worst ratio|where"
        return markdown_table(header.split("|"), rows)

    def _baseline_lines(self) -> list[str]:
        rows = []
        for regime in regimes():
            values = values_of(self.rows, regime, "chebyshev")
            methods = list(dict.fromkeys(method for _, method in values))
            for method in methods:
                counts = []
                for baseline in _BASELINES:
                    pairs = [
                        (value, values[place, baseline])
                        for (place, name), value in values.items()
                        if name == method and (place, baseline) in values and name != baseline
                    ]
                    better = sum(value < other for value, other in pairs)
                    counts.append(f"{better} / {len(pairs)}" if pairs else "")
                if method not in _BASELINES:
                    rows.append([regime, method, *counts])
        return markdown_table(["regime", "method", *_BASELINES], rows)

    def _order_lines(self) -> list[str]:
        means = {regime: mean_ranks(self.rows, regime, self.metrics) for regime in regimes()}
        lines = []
        names = [regime for regime in regimes() if means[regime]]
        ends = [(names[0], names[-1])] if len(names) > 2 else []
        for first, second in [*itertools.pairwise(names), *ends]:
            shared = [name for name in means[first] if name in means[second]]
            one, two = ([means[regime][name] for name in shared] for regime in (first, second))
            swapped = sum(
                (one[i] - one[j]) * (two[i] - two[j]) < 0
                for i in range(len(shared))
                for j in range(i)
            )
            pairs = len(shared) * (len(shared) - 1) // 2
            lines.append(
                f"- {first}, {second}: {swapped} of {pairs} pairs of methods change their order "
                f"(Kendall {kendalltau(one, two).statistic:.2f})"
            )
        return lines

    def _seconds_lines(self) -> list[str]:
        return by_dataset(
            (
                (row.key.dataset, row.key.method, row.seconds)
                for row in self.rows
                if row.key.regime == NO_TRUTH
            ),
            lambda seconds: f"{fmean(seconds):.3f}",
        )

    def _ranks_csv(self) -> str:
        lines: list[Sequence[object]] = [["regime", "measure", "data_sets", "method", "rank"]]
        for regime in regimes():
            for name in self.metrics:
                found, n_sets = average_ranks(self.rows, regime, name)
                lines += [[regime, name, n_sets, m, f"{rank:.4f}"] for m, rank in found.items()]
        return csv_text(lines)


_RANKS_TEXT = (
    "The methods are ranked on each data set and threshold. The ranks of a data set are the means "
    "over its thresholds, and the unit of the critical difference is the data set. Methods that "
    "have three quarters of the data sets and thresholds take part, where all of them are done."
)
_BLEND_TEXT = (
    "Chebyshev distance of Blend, divided by that of the best other method of the same data set "
    "and threshold. Its models and its prior were chosen on the data sets "
    f"{', '.join(DEVELOPED_ON)}, not on the others."
)
_REGRET_TEXT = (
    "Data sets and thresholds in which the Chebyshev distance is within 1 % of the best of all "
    "methods, and in brackets the worst ratio to the best. Which method is best differs from place "
    "to place, and the rated rows alone must tell."
)
_BASELINE_TEXT = (
    "Number of data sets and thresholds on which the Chebyshev distance is below that of the "
    "uniform distribution, of the logical labels, and of the mean of the rated rows."
)
_GRID_TEXT = (
    "Each method has the setting, of those that its authors or other publications used, that has "
    "the smallest Chebyshev distance from the truth (`GRIDS` in `lemll/lab/studies/enhancement.py` "
    "lists them). No user can do this. Methods without such settings have only the best scale. On "
    "Movie, LESC and LEMLL have only the largest beta of their grids, because fits with a smaller "
    "one take too long."
)
_OTHERS_TEXT = (
    "Other libraries, with their default parameters. The same code calibrates the degrees that "
    "they return, with the same draws of rated rows. The seconds are the sums over the fits; they "
    "were not measured side by side (`python -m benchmarks enhancers` does that). Chebyshev "
    "distances are means, theirs / ours. Below the table: average ranks over all measures, on the "
    "data sets and thresholds that the other libraries have, of the methods that have three "
    "quarters of them."
)
_FAILED_TEXT = (
    "Fits of other libraries that gave no result. A method that was stopped was not run at the "
    "other thresholds of the data set, unless they are done."
)


def make_enhancement_report(folder: Path) -> EnhancementReport:
    """Summarise the committed cells of a folder, without running anything.

    Parameters
    ----------
    folder : Path
        A folder with a protocol and the table of its cells.

    Returns
    -------
    EnhancementReport
        Tables and summaries.
    """
    protocol = enhancement_protocol(folder)
    planned = {
        (source.name, threshold, spec.label)
        for source in protocol.datasets
        for threshold in protocol.thresholds
        for spec in protocol.methods
    }
    labels = [spec.label for spec in protocol.methods] + [RATED_MEAN]
    known = {key[:2] for key in planned}
    rows = [
        row for row in read_enhancement(folder) if row.key[:2] in known and row.key.method in labels
    ]
    others = [row for row in read_enhancement(folder, OTHERS_FILE) if row.key[:2] in known]
    foreign = sorted({row.key.method for row in others})
    clash = sorted(set(foreign) & set(labels))
    if clash:
        raise StoreError(
            f"{folder / OTHERS_FILE} has rows of {', '.join(clash)}, which the protocol also has; "
            "give the methods of other libraries other names."
        )
    if not rows:
        raise StoreError(
            f"{folder / CELLS_FILE} has no finished cell of the protocol beside it; run it (--run)."
        )
    counts = Counter(row.key[:3] for row in rows if row.key.regime in regimes())
    done = [key for key in planned if counts[key] == len(regimes())]
    settings = (
        f"{len(done)} of {len(planned)} planned fits are done in all "
        f"{len(regimes())} regimes. No truth: the default parameters. Rated rows: "
        f"{', '.join(map(str, N_RATED))} random rows are known, the means of {N_DRAWS} draws, "
        "measured on the other rows; every method is calibrated by the same code with the same "
        "draws (Blend weighs its sources, the others have a scale). The two oracle regimes use "
        "the true distributions of all rows, so they are not methods. Oracle scale: the scale, or "
        "the weights of Blend, that fit all rows. Oracle grid: also the best of the published "
        "settings, chosen by the Chebyshev distance from the truth, on data sets and thresholds "
        "where all methods that have such settings are searched."
    )
    order = {name: number for number, name in enumerate([*labels, *foreign])}
    sets = {source.name: number for number, source in enumerate(protocol.datasets)}

    def place(row: MeasuredRegime) -> tuple[int, float, int]:
        return sets[row.key.dataset], row.key.threshold, order[row.key.method]

    shown = tuple(sorted(_searched_everywhere(rows, protocol), key=place))
    others = sorted(others, key=place)
    failed = sorted(
        (fit for fit in read_failed(folder) if fit[:2] in known),
        key=lambda fit: (fit.method, sets[fit.dataset], fit.threshold),
    )
    regime = rated_regime(10)
    values: dict[tuple[str, float | None, str, str], list[float]] = {
        (metric, row.key.threshold, row.key.dataset, row.key.method): [row.metrics[metric]]
        for metric in protocol.metrics
        for row in shown
        if row.key.regime == regime
    }
    table = ComparisonTable.from_values(values, control=OURS, notes=(settings,), condition=regime)
    return EnhancementReport(table, shown, protocol.metrics, settings, tuple(others), tuple(failed))


def _searched_everywhere(
    rows: Sequence[MeasuredRegime], protocol: Protocol
) -> list[MeasuredRegime]:
    """Drop the regime with settings where a method that has some is not searched yet."""
    wanted = {spec.label for spec in protocol.methods if spec.method in GRIDS}
    found: dict[tuple[str, float], set[str]] = {}
    for row in rows:
        if row.key.regime == ORACLE_GRID:
            found.setdefault(row.key[:2], set()).add(row.key.method)
    return [row for row in rows if row.key.regime != ORACLE_GRID or wanted <= found[row.key[:2]]]
