"""Report of the comparison of all enhancers in three regimes, from its committed cells."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from scipy.stats import kendalltau

from lemll.comparison import ComparisonTable, critical_difference
from lemll.exceptions import StoreError
from lemll.experiments import Protocol, csv_text, write_texts
from lemll.metrics import METRICS
from lemll.paper.enhancement import enhancement_protocol
from lemll.paper.enhancement_cells import (
    N_DRAWS,
    N_RATED,
    ORACLE_GRID,
    OTHERS_FILE,
    RATED_MEAN,
    FailedFit,
    MeasuredRegime,
    read_enhancement,
    read_failed,
    regimes,
)
from lemll.paper.enhancement_oracle import GRIDS
from lemll.paper.enhancement_ranks import OURS, average_ranks, mean_ranks, ratios_of, values_of
from lemll.paper.enhancement_sections import failed_lines, grid_lines, others_lines, regret_lines
from lemll.paper.prediction_cells import CELLS_FILE

__all__ = ["DEVELOPED_ON", "EnhancementReport", "make_enhancement_report"]

# The ladder of models, the ridges and the prior of the blend were chosen on these data sets.
DEVELOPED_ON = (
    "SJAFFE", "Natural_Scene", "Yeast_alpha", "Yeast_cdc", "Yeast_cold", "Yeast_spo5",
    "Yeast_spoem",
)  # fmt: skip
_BASELINES = ("Uniform", "Logical", RATED_MEAN)


@dataclass(frozen=True, slots=True)
class EnhancementReport:
    """The results of the comparison.

    Attributes
    ----------
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

    rows: tuple[MeasuredRegime, ...]
    metrics: tuple[str, ...]
    settings: str
    others: tuple[MeasuredRegime, ...] = ()
    failed: tuple[FailedFit, ...] = ()

    @property
    def table(self) -> ComparisonTable:
        """All measures with ten rated rows, one panel per measure and threshold."""
        regime = regimes()[2]
        kept = [row for row in self.rows if row.key.regime == regime]
        values: dict[tuple[str, float | None, str, str], list[float]] = {
            (metric, row.key.threshold, row.key.dataset, row.key.method): [row.metrics[metric]]
            for metric in self.metrics
            for row in kept
        }
        return ComparisonTable.from_values(
            values, control=OURS, notes=(self.settings,), condition=regime
        )

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
        lines = [self.settings, "", "## The best methods", "", self.best(), ""]
        lines += ["## Average ranks", "", _RANKS_TEXT, ""]
        for regime in regimes():
            lines += [f"### {regime}", "", *self._rank_lines(regime), ""]
        lines += ["## The blend beside the best other method", "", _BLEND_TEXT, ""]
        lines += [*self._blend_lines(), ""]
        lines += ["## How close each method comes to the best one", "", _REGRET_TEXT, ""]
        lines += [*regret_lines(self.rows), ""]
        lines += ["## Who beats the baselines", "", _BASELINE_TEXT, "", *self._baseline_lines(), ""]
        lines += ["## How the order changes between regimes", "", *self._order_lines(), ""]
        lines += ["## What the settings of the oracle add", "", _GRID_TEXT, ""]
        lines += [*grid_lines(self.rows), ""]
        if self.others:
            lines += ["## Beside other libraries", "", _OTHERS_TEXT, ""]
            lines += [*others_lines(self.rows, self.others, self.metrics), ""]
        if self.failed:
            lines += [_FAILED_TEXT, "", *failed_lines(self.failed), ""]
        lines += ["## CPU seconds of a fit", "", *self._seconds_lines(), ""]
        return "\n".join(lines)

    def write(self, folder: Path) -> list[Path]:
        """Write the summary and the tables.

        Parameters
        ----------
        folder : Path
            Folder to write to; it is created if it does not exist.

        Returns
        -------
        list of Path
            The files: Markdown, and CSV with the average ranks.
        """
        texts = {
            "summary.md": f"# Label enhancement in three regimes: summary\n\n{self.summary()}",
            "tables.md": f"# Label enhancement, ten rated rows\n\n{self.table.to_markdown()}",
            "ranks.csv": self._ranks_csv(),
        }
        return write_texts(folder, texts)

    def _rank_lines(self, regime: str) -> list[str]:
        by_measure = {name: average_ranks(self.rows, regime, name) for name in self.metrics}
        methods = list(next(iter(by_measure.values()))[0])
        if not methods:
            return ["No data set is complete."]
        lines = [
            f"| measure | {' | '.join(methods)} | critical difference |",
            "|---" * (len(methods) + 2) + "|",
        ]
        for name, (found, n_sets) in by_measure.items():
            title = f"{METRICS[name].title} {METRICS[name].arrow}"
            shown = [f"{found[method]:.2f}" for method in methods]
            limit = f"{critical_difference(len(methods), n_sets):.2f}" if n_sets > 1 else ""
            lines.append(f"| {title} | {' | '.join(shown)} | {limit} |")
        return lines

    def _blend_lines(self) -> list[str]:
        lines = [
            "| regime | data sets | first in | within 1 % of the first in | mean ratio | worst "
            "ratio | where |",
            "|---" * 7 + "|",
        ]
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
                lines.append(
                    f"| {regime} | {title} | {sum(value <= 1 for value in values)} / {len(values)} "
                    f"| {sum(value <= 1.01 for value in values)} / {len(values)} "
                    f"| {fmean(values):.3f} | {ratios[worst]:.3f} | {worst[0]}, {worst[1]:g} |"
                )
        return lines

    def _baseline_lines(self) -> list[str]:
        lines = ["| regime | method | " + " | ".join(_BASELINES) + " |", "|---" * 5 + "|"]
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
                    lines.append(f"| {regime} | {method} | {' | '.join(counts)} |")
        return lines

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
        regime = regimes()[0]
        kept = [row for row in self.rows if row.key.regime == regime]
        methods = list(dict.fromkeys(row.key.method for row in kept))
        lines = [f"| data set | {' | '.join(methods)} |", "|---" * (len(methods) + 1) + "|"]
        for dataset in dict.fromkeys(row.key.dataset for row in kept):
            shown = []
            for method in methods:
                found = [r.seconds for r in kept if r.key[0] == dataset and r.key[2] == method]
                shown.append(f"{fmean(found):.3f}" if found else "")
            lines.append(f"| {dataset} | {' | '.join(shown)} |")
        return lines

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
    "the smallest Chebyshev distance from the truth (`GRIDS` in `lemll/paper/enhancement_oracle.py`"
    " lists them). No user can do this. Methods without such settings have only the best scale. On "
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

    def ordered(rows: Sequence[MeasuredRegime]) -> tuple[MeasuredRegime, ...]:
        return tuple(
            sorted(
                rows,
                key=lambda row: (sets[row.key.dataset], row.key.threshold, order[row.key.method]),
            )
        )

    shown = ordered(_searched_everywhere(rows, protocol))
    failed = sorted(
        (fit for fit in read_failed(folder) if fit[:2] in known),
        key=lambda fit: (fit.method, sets[fit.dataset], fit.threshold),
    )
    return EnhancementReport(shown, protocol.metrics, settings, ordered(others), tuple(failed))


def _searched_everywhere(
    rows: Sequence[MeasuredRegime], protocol: Protocol
) -> list[MeasuredRegime]:
    """Drop the regime with settings where a method that has some is not searched yet."""
    wanted = {spec.label for spec in protocol.methods if spec.method in GRIDS}
    found: dict[tuple[str, float], set[str]] = {}
    for row in rows:
        if row.key.regime == ORACLE_GRID:
            found.setdefault((row.key.dataset, row.key.threshold), set()).add(row.key.method)
    return [
        row
        for row in rows
        if row.key.regime != ORACLE_GRID or wanted <= found[row.key.dataset, row.key.threshold]
    ]
