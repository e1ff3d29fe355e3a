"""Parts of the report on enhancers: regret, settings chosen with the truth, other libraries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from lemll.paper.enhancement_cells import (
    N_RATED,
    NO_TRUTH,
    ORACLE_GRID,
    ORACLE_SCALE,
    FailedFit,
    MeasuredRegime,
    rated_regime,
    regimes,
)
from lemll.paper.enhancement_ranks import OURS, Place, mean_ranks, ratios_of, values_of

__all__ = ["failed_lines", "grid_lines", "others_lines", "regret_lines"]

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
    lines = [f"| method | {' | '.join(honest)} |", "|---" * (len(honest) + 1) + "|"]
    for method, found in columns.items():
        shown = [found.get(regime, "") for regime in honest]
        lines.append(f"| {method} | {' | '.join(shown)} |")
    return lines


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
    lines = [
        "| method | own parameters are best in | most frequent other setting | mean ratio of "
        "Chebyshev to that with the best scale alone | smallest ratio | CPU seconds of a "
        "search |",
        "|---" * 6 + "|",
    ]
    plain = values_of(rows, ORACLE_SCALE, "chebyshev")
    for method in dict.fromkeys(row.key.method for row in rows):
        found = {
            (row.key.dataset, row.key.threshold): row
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
        lines.append(
            f"| {method} | {len(found) - others.total()} / {len(found)} | {often} ({count}) "
            f"| {fmean(ratios):.3f} | {min(ratios):.3f} | {seconds:.1f} |"
        )
    return lines


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
    lines = [
        "| method | beside | data sets | fits | its CPU seconds | ours | "
        + " | ".join(f"Chebyshev, {regime}" for regime in shown)
        + " |",
        "|---" * (6 + len(shown)) + "|",
    ]
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
        lines.append(
            f"| {method} | {ours} | {len({place[0] for place in places})} | {len(places)} "
            f"| {theirs:.2f} | {our:.2f} | {' | '.join(ratios)} |"
        )
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
