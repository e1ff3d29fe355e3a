"""The encoder: kinds of columns, gaps, unseen values, training rows only."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from lemll import BinaryRelevance
from lemll.exceptions import LemllError
from lemll.tables import Table, TableEncoder, inspect_columns
from lemll.tables.columns import inspect_column, survey

N = 60
WORDS = ["sea", "sky", "sand", "boat", "people", "tower", "dog"]


def frame(n=N):
    rng = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "file": [f"IMG_{i:05d}" for i in range(n)],
            "row": np.arange(n),
            "when": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d} 10:{i % 60:02d}" for i in range(n)],
            "camera": rng.choice(["Nikon", "Canon", None], n),
            "caption": [" ".join(rng.choice(WORDS, 6)) + f" {i}" for i in range(n)],
            "width": [None if i % 7 == 0 else f"{x:.3f}" for i, x in enumerate(rng.randn(n))],
            "same": ["x"] * n,
            "nothing": [None] * n,
        }
    )


def test_kinds():
    kinds = {column.name: column.kind for column in TableEncoder().fit(frame()).columns_}
    assert kinds == {
        "file": "ignored", "row": "ignored", "when": "date", "camera": "category",
        "caption": "text", "width": "number", "same": "ignored", "nothing": "ignored",
    }  # fmt: skip


def test_features_have_names_and_no_gaps():
    encoder = TableEncoder()
    X = encoder.fit_transform(frame())
    names = list(encoder.get_feature_names_out())
    assert X.shape == (N, len(names))
    assert {"width", "missing width", "when (days)", "when (hour)", "camera Nikon",
            "camera (missing)", "caption: sea"} <= set(names)  # fmt: skip
    dense = X.toarray() if sparse.issparse(X) else X
    assert np.isfinite(dense).all()
    marked = dense[:, names.index("missing width")]
    assert (marked[::7] == marked.max()).all()
    np.testing.assert_allclose(encoder.transform(frame()).toarray(), dense)


def test_new_rows_do_not_change_it_and_unseen_values_are_accepted():
    seen, new = frame(), frame(5)
    encoder = TableEncoder().fit(seen)
    before = encoder.transform(seen)
    new = new.assign(camera="Leica", caption=None, when=None, other=1)[::-1]
    assert np.isfinite(encoder.transform(new).toarray()).all()
    assert (encoder.transform(seen) != before).nnz == 0
    alone = encoder.transform(new.iloc[:1]).toarray()
    np.testing.assert_array_equal(alone, encoder.transform(new).toarray()[:1])


def test_it_lives_inside_cross_validation():
    X = frame()
    Y = np.column_stack([X["caption"].str.contains(word) for word in WORDS[:2]]).astype(int)
    model = make_pipeline(TableEncoder(), BinaryRelevance())
    assert cross_val_predict(clone(model), X, Y, cv=3).shape == Y.shape


def test_labels_of_other_rows_are_refused_in_a_pipeline():
    X = frame()
    Y = pd.DataFrame({"sea": X["caption"].str.contains("sea").astype(int)})
    model = make_pipeline(TableEncoder(), BinaryRelevance())
    with pytest.raises(ValueError, match="the index of y must be that of X"):
        model.fit(X, Y[::-1])
    with pytest.raises(ValueError, match="the index of y must be that of X"):
        TableEncoder().fit(X, Y[::-1])
    # The learner sees no index, so it returns an array and not a frame with another index.
    assert isinstance(model.fit(X, Y).predict(X[::-1]), np.ndarray)


@pytest.mark.parametrize(
    ("cells", "kind", "form"),
    [
        (["2024-01-31", "2024-02-01"], "date", "ISO8601"),
        (["2024-01-31T10:00:00Z", "2024-02-01T11:00:00+02:00"], "date", "ISO8601"),
        (["31.01.2024", "01.02.2024"], "date", "%d.%m.%Y"),
        (["31/01/2024", "01/02/2024"], "date", "%d/%m/%Y"),
        (["01/31/2024", "02/01/2024"], "date", "%m/%d/%Y"),
        (["2024:01:31 10:00:00", "2024:02:01 10:00:00"], "date", "%Y:%m:%d %H:%M:%S"),
        (["00123", "00124"] * 9, "category", ""),
        (["1.5", "2e3", None], "number", ""),
        ([True, False, True], "number", ""),
        (pd.Categorical(["a", "b"] * 9), "category", ""),
        ([["a"], ["b"]], "ignored", ""),
        ([f"photos/2024/IMG_{i:04d}.jpg" for i in range(9)], "ignored", ""),
        (["海の写真です、とても青い海、船が。", "山の写真です、とても高い山、雪が。"],
         "text", ""),
    ],
)  # fmt: skip
def test_kinds_of_columns(cells, kind, form):
    column = inspect_column("c", pd.Series(cells))
    assert (column.kind, column.format) == (kind, form)


def test_a_doubtful_date_is_said():
    column = inspect_column("c", pd.Series(["01/02/2024", "03/04/2024"]))
    assert column.format == "%d/%m/%Y"
    assert "or month first: no day is above 12" in column.why


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.drop(columns="width"), r"no column 'width', which the model .*\(1 of 4 col"),
        (lambda X: X.assign(width="wide"), "column 'width' held numbers in .*example 'wide'"),
        (lambda X: X.assign(when="today"), "column 'when' held dates in .*example 'today'"),
        (lambda X: X.to_numpy(), "must be a pandas frame, got ndarray; read a file with"),
        (lambda X: X.rename(columns={"row": 3}), "must have different text names"),
    ],
)
def test_refused_rows(change, message):
    encoder = TableEncoder().fit(frame())
    with pytest.raises(LemllError, match=message):
        encoder.transform(change(frame()))


def test_refused_tables():
    with pytest.raises(LemllError, match="no column can be used as a feature .*same: the same va"):
        TableEncoder().fit(frame()[["same", "nothing"]])
    clash = frame().assign(**{"when (days)": 1.5 * np.arange(N)})
    with pytest.raises(LemllError, match=r"have the name of a column, 'when \(days\)'; rename it"):
        TableEncoder().fit(clash[["when (days)", "when"]])


def test_a_survey_shows_what_looks_like_labels():
    given = frame().assign(
        sea=["yes", "no"] * 30, sky=[1, 0, None] * 20, tags=["a;b", "b"] * 30, lists=['["a"]'] * 60
    )
    found = survey(Table(given, "t"))
    assert found.label_columns == ["sea", "sky"]
    assert found.tag_columns == {"tags": ";", "lists": "list"}
    assert found.id_columns == ["file", "row"]


def test_a_comma_in_a_name_is_no_separator_of_tags():
    cameras, tags = ["Nikon", "Fuji, X100", "Canon"] * 20, ["sea, sky", "sea", "sky"] * 20
    found = survey(Table(frame().assign(camera=cameras, tags=tags), "t"))
    assert found.tag_columns == {"tags": ","}


def test_a_few_other_cells_do_not_make_a_column_of_numbers_ids():
    numbers = [f"{x:.4f}" for x in np.random.RandomState(0).randn(100)]
    numbers[7] = "unknown"
    column = inspect_column("price", pd.Series(numbers))
    assert column.kind == "number"
    assert column.why.endswith("1 not numbers ('unknown') count as missing")
    encoder = TableEncoder().fit(pd.DataFrame({"price": numbers}))
    assert list(encoder.get_feature_names_out()) == ["price", "missing price"]
    many = ["unknown" if i % 10 == 0 else text for i, text in enumerate(numbers)]
    assert inspect_column("price", pd.Series(many)).kind != "number"


def test_a_few_other_cells_do_not_make_a_column_of_dates_ids():
    dates = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.{1900 + i}" for i in range(100)]
    dates[3], dates[7] = "31.02.1923", "unknown"
    column = inspect_column("when", pd.Series(dates))
    assert (column.kind, column.format) == ("date", "%d.%m.%Y")
    assert column.why.endswith("2 not dates ('31.02.1923') count as missing")
    assert column.gaps == ("31.02.1923", "unknown")
    encoder = TableEncoder().fit(pd.DataFrame({"when": dates}))
    indicator = list(encoder.get_feature_names_out()).index("missing when (days)")
    marked = encoder.transform(pd.DataFrame({"when": dates}))[:, indicator] > 0
    assert np.flatnonzero(marked).tolist() == [3, 7]
    many = ["unknown" if i % 10 == 0 else text for i, text in enumerate(dates)]
    assert inspect_column("when", pd.Series(many)).kind != "date"


def test_the_order_of_day_and_month_that_reads_more_dates_is_taken():
    dates = [f"{1 + i % 12:02d}/{13 if i < 3 else 1 + i % 12:02d}/2024" for i in range(100)]
    column = inspect_column("when", pd.Series([*dates, "unknown"]))
    assert (column.format, column.gaps) == ("%m/%d/%Y", ("unknown",))


def test_given_kinds_hold_although_the_training_rows_show_others():
    whole = pd.DataFrame(
        {
            "code": [*map(str, range(29, 0, -1)), "007"],
            "when": ["2024-05-01"] * 15 + ["2024-05-02"] * 14 + ["2024-05-02 10:30"],
            "note": [None] * 29 + ["two words"],
            "size": [None] * 29 + ["4.5"],
            "width": [str(i % 7) for i in range(29)] + ["unknown"],
        }
    )
    columns = inspect_columns(whole)
    train, held_out = whole.iloc[:29], whole.iloc[29:]
    shown = {c.name: (c.kind, c.has_hours) for c in inspect_columns(train)}
    assert {c.name: (c.kind, c.has_hours) for c in columns if shown[c.name] != c[1::3]} == {
        "code": ("ignored", False),
        "when": ("date", True),
        "note": ("text", False),
        "size": ("number", False),
    }
    encoder = TableEncoder(columns=columns).fit(train)
    assert encoder.columns_ == columns
    names = encoder.get_feature_names_out().tolist()
    assert names == [
        "when (days)", "when (month)", "when (weekday)", "when (hour)", "size", "width",
        "missing size",
    ]  # fmt: skip
    # "unknown" is a gap that the kinds know, and the words of the held-out row are not learned.
    made = encoder.transform(held_out)
    assert made.shape == (1, len(names))
    assert np.isfinite(made).all()
    assert clone(encoder).fit(train).columns_ == columns


def test_given_kinds_must_be_those_of_the_table():
    whole = frame()
    columns = inspect_columns(whole)
    with pytest.raises(LemllError, match="but columns does not have it: 'new'; pass inspect_col"):
        TableEncoder(columns=columns).fit(whole.assign(new=1.0))
    with pytest.raises(LemllError, match="but the table has no such column: 'when'; pass inspect"):
        TableEncoder(columns=columns).fit(whole.drop(columns="when"))


def test_training_rows_without_any_feature_are_refused():
    whole = pd.DataFrame({"note": [None] * 5 + ["two words"]})
    with pytest.raises(LemllError, match="no column can be used as a feature .note: 2 words"):
        TableEncoder(columns=inspect_columns(whole)).fit(whole.iloc[:5])
