"""The page of learners on one table: figures, differences, and what may be chance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lemll._types import Settings
from lemll.metrics import METRICS
from lemll.models import LearnerScores
from lemll.models.compare import FEWEST_SPLITS, FREQUENCY
from lemll.models.pairwise import BestAgainst, best_of_splits
from lemll.report.diagrams import value_dots
from lemll.report.page import Section, TableData, write_page


class LearnerVerdict(NamedTuple):
    """Which learner is best by one measure, and which differences may be chance.

    Attributes
    ----------
    measure : str
        The measure.
    best : str
        The learner with the best mean.
    against : list of BestAgainst
        The best learner against each other one.
    names : tuple of str
        Names of the learners that `against` counts.
    sentence : str
        What this means, for a reader.
    """

    measure: str
    best: str
    against: list[BestAgainst]
    names: tuple[str, ...]
    sentence: str

    def to_json(self) -> Settings:
        """Return plain data."""
        return {
            "measure": self.measure,
            "best": self.best,
            "verdict": self.sentence,
            "against": [
                {
                    "learner": self.names[pair.other],
                    "difference": pair.difference,
                    "interval": list(pair.interval),
                    "p": pair.pvalue,
                    "p_holm": pair.adjusted,
                }
                for pair in self.against
            ],
        }


def judge_learners(found: LearnerScores, measure: str) -> LearnerVerdict:
    """Say which learner is best by a measure, and against which ones this may be chance.

    Parameters
    ----------
    found : LearnerScores
        The values of all splits.
    measure : str
        One of its measures.

    Returns
    -------
    LearnerVerdict
        The best learner, its differences and a sentence.
    """
    values = found.values[:, :, found.measures.index(measure)]
    metric = METRICS[measure]
    defined = [i for i in range(len(found.learners)) if np.isfinite(values[:, i]).all()]
    names = tuple(found.learners[i] for i in defined)
    if len(names) < 2:
        raise ValueError(
            f"{metric.title} is not defined in every split; choose another measure with `measure`."
        )
    against = best_of_splits(
        values[:, defined],
        greater_is_better=metric.greater_is_better,
        test_train_ratio=found.n_test / found.n_train,
    )
    best = names[against[0].best]
    mean = float(values[:, defined[against[0].best]].mean())
    if len(values) < FEWEST_SPLITS:
        sentence = (
            f"{best} has the best mean ({metric.title} {mean:.3f}), but {len(values)} splits are "
            f"too few to judge; use at least {FEWEST_SPLITS}."
        )
    else:
        sentence = _sentence(names, against, f"{metric.title} {mean:.3f}")
    return LearnerVerdict(measure, best, against, names, f"{sentence} {found.caution}".strip())


def _sentence(names: Sequence[str], against: Sequence[BestAgainst], value: str) -> str:
    best = names[against[0].best]
    frequency = [pair for pair in against if names[pair.other] == FREQUENCY]
    if best == FREQUENCY or not frequency[0].significant:
        return (
            "No evidence of learning: no learner is significantly better than the frequencies of "
            "the labels."
        )
    rivals = [pair for pair in against if names[pair.other] != FREQUENCY]
    if not rivals:
        return f"{best} is the best learner here ({value})."
    closest = min(rivals, key=lambda pair: abs(pair.difference))
    low, high = closest.interval
    parts = [
        f"{best} is the best learner here ({value}), {abs(closest.difference):.3f} better than "
        f"{names[closest.other]}, the next one (95 % interval {low:+.3f} to {high:+.3f}, "
        f"p = {closest.adjusted:.2g})."
    ]
    beaten = [names[pair.other] for pair in rivals if pair.significant]
    others = [names[pair.other] for pair in rivals if not pair.significant]
    if beaten:
        parts.append(f"It is significantly better than {', '.join(beaten)}.")
    if others:
        parts.append(f"The differences to {', '.join(others)} may be chance.")
    return " ".join(parts)


def write_learners(path: Path, found: LearnerScores, verdict: LearnerVerdict) -> None:
    """Write the page of a comparison of learners.

    Parameters
    ----------
    path : Path
        File to write.
    found : LearnerScores
        The values of all splits.
    verdict : LearnerVerdict
        What they mean, by `judge_learners`.
    """
    column = found.measures.index(verdict.measure)
    title = METRICS[verdict.measure].title
    good = "Higher" if METRICS[verdict.measure].greater_is_better else "Lower"
    values = {
        name: found.values[:, i, column].tolist()
        for i, name in enumerate(found.learners)
        if name in verdict.names and name != FREQUENCY
    }
    sections = [
        Section(
            heading=f"{title} in each split",
            paragraphs=[
                f"One dot per split. {good} is better. The frequencies of the labels alone give "
                f"{found.values[:, -1, column].mean():.3f}."
            ],
            dots=value_dots(values),
        ),
        Section(
            heading="All measures",
            paragraphs=["Mean ± standard deviation over the splits; * marks the best mean."],
            tables=[TableData("Means", *_means(found), words=())],
        ),
        Section(
            heading=f"{verdict.best} against the others",
            paragraphs=[
                f"Differences of {title}: {verdict.best} minus the other learner. The interval and "
                "the p-value are corrected because the splits share training rows (Nadeau and "
                "Bengio); Holm's rule adjusts p for the number of comparisons."
            ],
            tables=[_differences(verdict)],
        ),
        Section(
            heading="How this was done",
            paragraphs=[
                f"{found.source}: {len(found.values)} splits of {found.n_train} training rows and "
                f"{found.n_test} other rows"
                + (" (stopped before all splits were done)." if found.stopped else "."),
                "The cells of all rows decided what each column holds, without a look at the "
                "labels. Everything else was learned and chosen within the training rows; the "
                "figures are those of the other rows. The best of several "
                "learners is chosen by these figures, so its own figure is slightly optimistic; "
                "lemll fit measures it on rows held out.",
            ],
        ),
    ]
    write_page(path, f"Learners on {Path(found.source).name}", sections, verdict=verdict.sentence)


def _means(found: LearnerScores) -> tuple[list[str], list[list[str]]]:
    """Return one row per measure and one column per learner, and a last row with the times."""
    means, deviations = found.values.mean(axis=0), found.values.std(axis=0, ddof=1)
    rows = []
    for j, measure in enumerate(found.measures):
        metric = METRICS[measure]
        signed = means[:, j] if metric.greater_is_better else -means[:, j]
        known = np.isfinite(signed)
        best = signed[known].max() if known.any() else np.inf
        cells = [
            f"{means[i, j]:.3f} ± {deviations[i, j]:.3f}{' *' if signed[i] > best - 5e-4 else ''}"
            if known[i]
            else "–"
            for i in range(len(found.learners))
        ]
        rows.append([f"{metric.title} {metric.arrow}", *cells])
    seconds = found.seconds.mean(axis=0)
    rows.append(["seconds per fit", *(f"{value:.1f}" for value in seconds)])
    return ["measure", *found.learners], rows


def _differences(verdict: LearnerVerdict) -> TableData:
    rows = [
        [
            verdict.names[pair.other],
            f"{pair.difference:+.3f}",
            f"{pair.interval[0]:+.3f} to {pair.interval[1]:+.3f}",
            f"{pair.pvalue:.2g}",
            f"{pair.adjusted:.2g}",
            "significant" if pair.significant else "may be chance",
        ]
        for pair in verdict.against
    ]
    header = ["learner", "difference", "95 % interval", "p", "p, Holm", "at 5 %"]
    return TableData("Differences", header, rows)
