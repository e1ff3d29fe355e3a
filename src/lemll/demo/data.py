"""Small multi-label data sets made from scikit-learn's own data, without any download."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

from lemll._types import FloatArray
from lemll.datasets import (
    Dataset,
    binarize_distribution,
    load_digit_tags,
    make_artificial,
)

__all__ = ["DemoSet", "demo_sets"]


# The segments, a to g, of a seven-segment display that are on for the digits 0 to 9.
_SEGMENTS = (
    "abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg",
)  # fmt: skip
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
        Six data sets. If a label says that a measurement is above its median, this measurement is
        not a feature.
    """
    return [
        DemoSet(load_digit_tags(), "tags of a digit and of its image"),
        DemoSet(_digit_segments(), "segments of a seven-segment display that show the digit"),
        DemoSet(_nuclei(), "worst values of a sample above their median, and malignant"),
        DemoSet(_wine(), "the other six measurements above their median"),
        DemoSet(_serum(), "six blood values above their median"),
        DemoSet(_artificial_labels(), "artificial: the largest degrees that together exceed 1/2"),
    ]


def _digit_segments() -> Dataset:
    digits = load_digits()
    lit = np.array([[segment in shown for segment in "abcdefg"] for shown in _SEGMENTS])
    return Dataset(
        X=digits.data, Y=lit[digits.target].astype(np.int8), label_names=tuple("abcdefg"),
        name="digit-segments",
    )  # fmt: skip


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
