"""Ids and names whose words are features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lemll import BinaryRelevance
from lemll.models import fit_table
from lemll.tables import LabelSpec, Table, split_table
from lemll.tables.columns import inspect_column

PLACES = ("sea", "bay", "hill")


def photos(copies=1):
    rng = np.random.RandomState(0)
    place = np.repeat(PLACES, 30)
    frame = pd.DataFrame(
        {
            "file": [f"2024_{name}_{i:03}.jpg" for i, name in enumerate(place)],
            "width": rng.permutation(90),
            "tags": place,
        }
    )
    if copies > 1:
        frame = pd.concat([frame] * copies, ignore_index=True)
        frame["file"] = [f"{i}-{name}" for i, name in enumerate(frame["file"])]
    return Table(frame, "photos.csv")


SPEC = LabelSpec(tags="tags")


def test_words_of_ids_tell_the_tags():
    table = photos()
    data = split_table(table, SPEC, ids="file")
    assert list(data.X.columns) == ["width", "file"]
    model, found = fit_table(table, SPEC, ids="file", learner=BinaryRelevance())
    scores = {score.measure: score for score in found.scores}
    assert scores["average_precision"].value > 0.95 > scores["average_precision"].baseline
    new = Table(pd.DataFrame({"file": ["hill.png", "bay 7"], "width": [3, 4]}), "new")
    assert model.predict(new).probabilities.argmax(axis=1).tolist() == [
        model.label_names.index("hill"),
        model.label_names.index("bay"),
    ]
    # Rows without ids are predicted by the other columns.
    unnamed = model.predict(Table(new.frame[["width"]], "new"))
    assert unnamed.ids == ("1", "2")
    assert np.isfinite(unnamed.probabilities).all()


def test_ids_of_copied_rows_are_not_features():
    assert list(split_table(photos(copies=2), SPEC, ids="file").X.columns) == ["width"]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([f"IMG_{i:04}.jpg" for i in range(50)], "ignored"),  # all share the same words
        ([f"{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(60)], "ignored"),
        ([f"lib{i}-{('perl', 'ruby')[i % 2]}" for i in range(50)], "text"),
    ],
)
def test_names_are_texts_if_their_words_recur(cells, kind):
    assert inspect_column("name", pd.Series(cells)).kind == kind
