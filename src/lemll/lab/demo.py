"""The demonstration: the jobs of the product on photos, then learners compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from lemll._types import FloatArray
from lemll.datasets.dataset import Dataset
from lemll.datasets.describe import binarize_distribution
from lemll.datasets.generators import load_digit_tags, make_artificial
from lemll.datasets.npz import write_npz
from lemll.lab.cells import Splits
from lemll.lab.demo_jobs import do_jobs
from lemll.lab.methods import MethodSpec
from lemll.lab.protocol import Protocol
from lemll.lab.report import rank_diagram, write_comparison
from lemll.lab.runner import run
from lemll.lab.significance import Conclusions, conclude, overlap_ratio
from lemll.lab.statistics import rank_rows
from lemll.lab.store import Store
from lemll.lab.tables import ComparisonTable, Panel
from lemll.models.pairwise import paired_t_test
from lemll.report.page import Link, Section, TableData, template_environment, write_page

__all__ = [
    "DemoResult",
    "DemoSet",
    "comparison_sections",
    "demo_protocol",
    "demo_sets",
    "make_demo",
]

_DIGITS = 500
_WINE_FEATURES = 7
_NUCLEUS_MEASURES = 10
_PERSON_FEATURES = 4


class DemoSet(NamedTuple):
    """A data set and the meaning of its labels."""

    dataset: Dataset
    labels: str


def demo_sets() -> list[DemoSet]:
    """Make the data sets for the comparison in the demonstration.

    Returns
    -------
    list of DemoSet
        Five data sets. If a label says that a measurement is above its median, this measurement is
        not a feature.
    """
    return [
        DemoSet(_digits(), "tags of a digit and of its image"),
        DemoSet(_nuclei(), "worst values of a sample above their median, and malignant"),
        DemoSet(_wine(), "the other six measurements above their median"),
        DemoSet(_serum(), "six blood values above their median"),
        DemoSet(_artificial_labels(), "artificial: the largest degrees that together exceed 1/2"),
    ]


def _digits() -> Dataset:
    digits = load_digit_tags()
    return Dataset(
        X=digits.X[:_DIGITS], Y=digits.Y[:_DIGITS], label_names=digits.label_names, name="digits"
    )


def _nuclei() -> Dataset:
    samples = load_breast_cancer()
    worst, names = samples.data[:, 2 * _NUCLEUS_MEASURES :], samples.feature_names
    malignant = samples.target_names[samples.target] == "malignant"
    return Dataset(
        X=_standardised(samples.data[:, :_NUCLEUS_MEASURES]),
        Y=np.column_stack([_above_median(worst), malignant]).astype(np.int8),
        label_names=(*_texts(names[2 * _NUCLEUS_MEASURES :]), "malignant"),
        name="nuclei",
    )


def _wine() -> Dataset:
    wine = load_wine()
    return Dataset(
        X=_standardised(wine.data[:, :_WINE_FEATURES]),
        Y=_above_median(wine.data[:, _WINE_FEATURES:]),
        label_names=_texts(wine.feature_names[_WINE_FEATURES:]),
        name="wine",
    )


def _serum() -> Dataset:
    people = load_diabetes()
    known = np.column_stack([people.data[:, :_PERSON_FEATURES], people.target])
    return Dataset(
        X=_standardised(known),
        Y=_above_median(people.data[:, _PERSON_FEATURES:]),
        label_names=_texts(people.feature_names[_PERSON_FEATURES:]),
        name="serum",
    )


def _artificial_labels() -> Dataset:
    made = make_artificial(random_state=0)
    return Dataset(
        X=made.X, Y=binarize_distribution(made.D, 0.5), label_names=made.label_names,
        name="artificial-labels",
    )  # fmt: skip


def _standardised(X: FloatArray) -> FloatArray:
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def _above_median(values: FloatArray) -> npt.NDArray[np.int8]:
    return np.asarray(values > np.median(values, axis=0), dtype=np.int8)


def _texts(names: Sequence[Any]) -> tuple[str, ...]:
    return tuple(str(name) for name in names)


# Fewer trees and folds than by default: the demonstration should not take minutes.
_BLEND = MethodSpec("TagPredictor", parameters={"n_estimators": 50, "cv": 3})
_METHODS = (_BLEND, "LEMLL", "MSVR", "BR", "ML-kNN")
_SHOWN = ("average_precision", "hamming_loss")


def demo_protocol(folder: Path, n_splits: int) -> Protocol:
    """Declare the comparison, and write its data sets.

    Parameters
    ----------
    folder : Path
        Folder for the data sets. ``lemll bench`` can also read these files.
    n_splits : int
        Number of random halves.

    Returns
    -------
    Protocol
        TagPredictor has fewer trees and folds; the other learners have their defaults.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for dataset, _ in demo_sets():
        files.append(folder / f"{dataset.name}.npz")
        write_npz(dataset, files[-1])
    return Protocol(
        name="Five learners on embedded data",
        experiment="prediction",
        datasets=tuple(str(file) for file in files),
        methods=_METHODS,
        splits=Splits("halves", n_splits),
        control="TagPredictor",
    )


def comparison_sections(protocol: Protocol, store: Store, page: str) -> list[Section]:
    """Describe what the comparison found.

    Parameters
    ----------
    protocol : Protocol
        The result of `demo_protocol`.
    store : Store
        The store with its results.
    page : str
        Address of the page that lists every run.

    Returns
    -------
    list of Section
        One section about the runs. Then one section per measure with the means, the tests, and
        the best learner of each data set.
    """
    table = ComparisonTable.from_store(protocol, store, metrics=_SHOWN)
    ratio = overlap_ratio(protocol.splits)
    opening = Section(
        heading="LEMLL and TagPredictor beside other learners",
        paragraphs=[_how(protocol), _MARKS.format(control=table.control), *table.notes],
        tables=[_sets_table(demo_sets())],
        link=Link(page, "All measures, tests, pictures and runs"),
    )
    return [opening, *(_panel_section(panel, table.control, ratio) for panel in table.panels)]


def _panel_section(panel: Panel, control: str, ratio: float) -> Section:
    conclusions = conclude(panel, control, ratio=ratio)
    tables = [_means_table(panel, control, ratio)]
    paragraphs = [_best(panel, control)]
    if conclusions is not None:
        tables.append(_against_table(control, conclusions))
        paragraphs.append(_differ(conclusions))
    return Section(
        heading=f"{panel.metric.title}: who is better?",
        paragraphs=paragraphs,
        tables=tables,
        ranks=None
        if conclusions is None
        else rank_diagram(
            panel.methods,
            conclusions.friedman.average_ranks,
            conclusions.groups,
            conclusions.nemenyi,
        ),
    )


_MARKS = (
    "• means that {control} is significantly better than the learner (5 %), and ∘ that {control} "
    "is significantly worse. Marks in brackets, (•) and (∘), are significant only by the usual "
    "paired t-test, which the paper uses. They are not significant by the test of Nadeau and "
    "Bengio, which corrects for training halves that overlap."
)


def _how(protocol: Protocol) -> str:
    n_splits = 0 if protocol.splits is None else protocol.splits.n_splits
    return (
        f"This part compares {len(protocol.methods)} learners on {len(protocol.datasets)} data "
        "sets that come with scikit-learn or are made by lemll. Each learner is trained on one "
        f"half of the rows and tested on the other half, {n_splits} times. TagPredictor is the "
        "learner that lemll recommends for prediction: it blends LEMLL, logistic regressions and "
        "forests (here with 50 trees and 3 folds). The others have their default parameters. LEMLL "
        "alone is the right choice if you want to know how much each label matters, or a certified "
        "solution. The paper tunes its methods and uses other data (lemll reproduce prediction)."
    )


def _sets_table(sets: list[DemoSet]) -> TableData:
    rows = [
        [
            made.dataset.name,
            str(len(made.dataset)),
            str(made.dataset.X.shape[1]),
            str(made.dataset.Y.shape[1]),
            made.labels,
        ]
        for made in sets
    ]
    header = ["data set", "rows", "features", "labels", "what the labels are"]
    return TableData("The data sets", header, rows, words=(4,))


def _means_table(panel: Panel, control: str, ratio: float) -> TableData:
    rows = [
        [
            dataset,
            *(_entry_text(panel, dataset, method, control, ratio) for method in panel.methods),
        ]
        for dataset in panel.datasets
    ]
    ranks = [f"{rank:.2f}" for rank in panel.ranks()]
    if ranks:
        rows.append(["average rank", *ranks])
    return TableData(f"{panel.title}, mean ± std", ["data set", *panel.methods], rows)


def _entry_text(panel: Panel, dataset: str, method: str, control: str, ratio: float) -> str:
    entry, against = panel.entries[dataset, method], panel.entries[dataset, control]
    if not entry.mark:
        return entry.text()
    corrected = paired_t_test(
        against.values,
        entry.values,
        greater_is_better=panel.metric.greater_is_better,
        test_train_ratio=ratio,
    )
    return entry.text() if corrected.mark else entry.text().replace(entry.mark, f"({entry.mark})")


def _against_table(control: str, conclusions: Conclusions) -> TableData:
    rows = [
        [
            other.method,
            *(
                " / ".join(map(str, counts))
                for counts in (other.means, other.t_test, other.corrected)
            ),
            f"{other.pair.adjusted:.2g}",
        ]
        for other in conclusions.against
    ]
    return TableData(
        f"Number of data sets on which {control} is better / neither / worse",
        ["against", "means", "t-test", "corrected t-test", "Wilcoxon-Holm p"],
        rows,
    )


def _best(panel: Panel, control: str) -> str:
    """Say which learner is best on how many data sets, also if it is not the control."""
    winners = Counter(name for names in _winners(panel) for name in names)
    counts = ", ".join(f"{name} {count}" for name, count in winners.most_common()) or "none"
    text = (
        f"Number of data sets, out of {len(panel.ranked)}, on which a learner has the best mean "
        f"(ties count for each learner): {counts}."
    )
    if winners and not winners[control]:
        text += f" {control} is not the best on any data set."
    return text


def _winners(panel: Panel) -> Iterator[list[str]]:
    up = panel.metric.greater_is_better
    for dataset in panel.ranked:
        means = [panel.entries[dataset, method].figures[0] for method in panel.methods]
        ranks = rank_rows([means], greater_is_better=up)[0]
        best = min(ranks)
        yield [name for name, rank in zip(panel.methods, ranks, strict=True) if rank == best]


def _differ(conclusions: Conclusions) -> str:
    p = conclusions.friedman.f_pvalue
    verdict = "some learners differ" if p < 0.05 else "no difference between learners is proven"
    return (
        f"Over all data sets, {verdict} (Friedman's test with the F statistic of Iman and "
        f"Davenport: p = {p:.2g}). Two learners differ significantly if their average ranks differ "
        f"by more than {conclusions.nemenyi:.2f} (Nemenyi). A thick line joins learners that do "
        "not differ significantly."
    )


N_SPLITS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The pages of the demonstration, and the tables that it also prints."""

    page: Path
    comparison: Path
    tables: tuple[TableData, ...]


def make_demo(
    output: Path,
    *,
    n_splits: int = N_SPLITS,
    execute: Callable[[Protocol, Store], Any] = run,
    say: Callable[[str], None] | None = None,
) -> DemoResult:
    """Do the jobs of the product on photos, compare learners, and write the pages.

    Parameters
    ----------
    output : Path
        Folder to write into; it is created if it does not exist. It keeps the results of the
        comparison, so a second call computes only the missing cells.
    n_splits : int, default=3
        Number of random halves in the comparison, at least 2.
    execute : callable, default=lemll.lab.run
        Called with the comparison's protocol and store, to run the missing cells.
    say : callable, optional
        Called with a line of text before each step.

    Returns
    -------
    DemoResult
        The pages, and the tables for the terminal.
    """
    if n_splits < 2:
        raise ValueError(f"the comparison's tests need at least 2 splits, got {n_splits}.")
    template_environment()  # report a missing library now, not after all the work
    output.mkdir(parents=True, exist_ok=True)
    jobs = do_jobs(output, say=say)
    protocol = demo_protocol(output / "data", n_splits)
    store = Store(output / "store")
    if say is not None:
        say("comparing learners")
    execute(protocol, store)
    comparison = write_comparison(output / "comparison.html", protocol, store)
    sections = [*jobs.sections, *comparison_sections(protocol, store, comparison.name)]
    page = output / "index.html"
    write_page(page, "What lemll does with your tags", sections, verdict=jobs.verdict)
    tables = tuple(table for section in sections for table in section.tables)
    return DemoResult(page=page, comparison=comparison, tables=tables)
