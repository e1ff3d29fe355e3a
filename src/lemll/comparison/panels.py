"""Parts of a comparison table: one panel per metric, one entry per method and data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from lemll.comparison.statistics import average_ranks
from lemll.metrics import Metric

__all__ = ["Entry", "Panel"]

_NONE = "—"
_DECIMALS = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """One method on one data set.

    Attributes
    ----------
    values : tuple of float
        One value per split.
    wanted : int
        Number of values of a complete entry.
    mark : str
        "•" if the control is significantly better, "∘" if it is significantly worse.
    published : tuple of float
        The paper's mean and std, its single value, or empty.
    """

    values: tuple[float, ...]
    wanted: int
    mark: str = ""
    published: tuple[float, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all values are present."""
        return len(self.values) == self.wanted

    @property
    def figures(self) -> tuple[float, ...]:
        """Mean and std (ddof 1), or the value itself if there is only one."""
        if not self.complete:
            return ()
        mean = fmean(self.values)
        return (mean,) if self.wanted == 1 else (mean, stdev(self.values))

    def text(self) -> str:
        """Write the entry as in the paper, with the published figures in brackets."""
        text = _figures_text(self.figures) if self.complete else _NONE
        if not self.complete and self.values:
            text += f" ({len(self.values)} of {self.wanted})"
        text += f" {self.mark}" if self.mark else ""
        return text + (f" [{_figures_text(self.published)}]" if self.published else "")


def _figures_text(figures: Iterable[float]) -> str:
    return " ± ".join(f"{figure:.{_DECIMALS}f}" for figure in figures)


@dataclass(frozen=True, slots=True)
class Panel:
    """The comparison by one metric.

    Attributes
    ----------
    metric : Metric
        The metric.
    threshold : float or None
        Threshold of a reconstruction; None for a prediction.
    datasets, methods : tuple of str
        Rows and columns.
    entries : mapping of (str, str) to Entry
        Entries by data set and method.
    condition : str
        What the training labels of a prediction lack; empty if they are complete.
    """

    metric: Metric
    threshold: float | None
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    entries: Mapping[tuple[str, str], Entry]
    condition: str = ""

    @property
    def title(self) -> str:
        """The metric with its direction, and the condition or threshold if there is one."""
        title = f"{self.metric.title} {self.metric.arrow}"
        if self.condition:
            return f"{title}, {self.condition}"
        return title if self.threshold is None else f"{title}, threshold {self.threshold:g}"

    @property
    def ranked(self) -> tuple[str, ...]:
        """The data sets on which all methods are complete."""
        return tuple(
            dataset
            for dataset in self.datasets
            if all(self.entries[dataset, method].complete for method in self.methods)
        )

    def ranks(self) -> tuple[float, ...]:
        """Average the ranks of each method over the complete data sets; () if there is none."""
        means = [
            [self.entries[row, method].figures[0] for method in self.methods] for row in self.ranked
        ]
        if not means:
            return ()
        direction = self.metric.greater_is_better
        return tuple(average_ranks(means, greater_is_better=direction, decimals=_DECIMALS).tolist())

    def best(self) -> set[tuple[int, int]]:
        """Return row and column of the best entries of each row, by the printed digits."""
        found: set[tuple[int, int]] = set()
        sign = 1 if self.metric.greater_is_better else -1
        for i, dataset in enumerate(self.datasets):
            means = {
                j: sign * round(entry.figures[0], _DECIMALS)
                for j, method in enumerate(self.methods)
                if (entry := self.entries[dataset, method]).complete
            }
            found |= {(i, j) for j, mean in means.items() if mean == max(means.values())}
        ranks = self.ranks()
        last = len(self.datasets)
        return found | {(last, j) for j, rank in enumerate(ranks) if rank == min(ranks)}

    def rows(self) -> list[list[str]]:
        """Write the rows: one per data set, then the average ranks."""
        rows = [
            [dataset, *(self.entries[dataset, method].text() for method in self.methods)]
            for dataset in self.datasets
        ]
        label = "average rank"
        if len(self.ranked) < len(self.datasets):
            label += f" ({len(self.ranked)} of {len(self.datasets)})"
        ranks = [f"{rank:.3f}" for rank in self.ranks()] or [_NONE] * len(self.methods)
        return [*rows, [label, *ranks]]
