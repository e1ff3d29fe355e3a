"""Labels of a table: tags, label columns, ids; doubt is an error that names the option."""

import numpy as np
import pandas as pd
import pytest

from lemll.exceptions import LemllError
from lemll.tables import LabelSpec, Table, split_table
from lemll.tables.labels import truth_of


def table(**columns):
    return Table(pd.DataFrame({"width": range(len(next(iter(columns.values())))), **columns}), "t")


def tags(cells, **options):
    return split_table(table(tags=cells), LabelSpec(tags="tags", **options))


@pytest.mark.parametrize(
    ("cells", "options"),
    [
        (["sea;sky", " sky ; ", "people;;sea"], {}),
        (["sea|sky", "sky", "people|sea"], {"sep": "|"}),
        (["sea, sky", "sky", "people, sea"], {"sep": ","}),
        (['["sea", "sky"]', '["sky"]', '["people", "sea"]'], {}),
        (["['sea', 'sky']", "['sky']", "['people', 'sea']"], {}),
        ([["sea", "sky"], ["sky"], ("people", "sea")], {}),
    ],
)
def test_tags_in_one_column(cells, options):
    found = tags(cells, **options)
    assert found.label_names == ("people", "sea", "sky")
    assert found.Y.tolist() == [[0, 1, 1], [0, 0, 1], [1, 1, 0]]
    assert list(found.X.columns) == ["width"]


def test_empty_cells_of_tags_are_not_guessed():
    with pytest.raises(LemllError, match="row 2 has an empty cell .*`untagged='none'`"):
        tags(["sea;sky", None])
    assert tags(["sea;sky", None], untagged="none").Y.tolist() == [[1, 1], [0, 0]]
    unknown = tags(["sea;sky", ""], untagged="unknown").Y
    assert np.isnan(unknown[1]).all()
    assert tags(['["sea"]', "[]"]).Y.tolist() == [[1], [0]]
    # Separators alone are an empty cell.
    with pytest.raises(LemllError, match="row 2 has an empty cell"):
        tags(["sea;sky", " ; "])
    assert np.isnan(tags(["sea;sky", ";"], untagged="unknown").Y[1]).all()


def test_an_accent_may_be_one_sign_or_two():
    assert tags(["\u00e9t\u00e9", "e\u0301te\u0301;sea"]).Y.tolist() == [[0, 1], [1, 1]]


def test_tags_that_differ_only_in_case_are_named():
    with pytest.warns(UserWarning, match="the tags Sea and sea differ only in case and count as"):
        found = tags(["sea;sky", "Sea"])
    assert found.label_names == ("Sea", "sea", "sky")
    many = [letter for name in "abcde" for letter in (name, name.upper())]
    with pytest.warns(UserWarning, match="the tags A and a, B and b, C and c, and 2 more differ"):
        tags([";".join(many), "a"])


@pytest.mark.parametrize("sign", ["|", ",", "/"])
def test_another_separator_is_not_guessed(sign):
    with pytest.raises(
        LemllError, match=r"may be several tags; pass `sep='.'` if it is, and `sep=';'` if"
    ):
        tags([f"sea{sign}sky", "sky"])
    assert tags([f"sea{sign}sky", "sky"], sep=";").label_names == tuple(
        sorted([f"sea{sign}sky", "sky"])
    )


@pytest.mark.parametrize(
    ("no", "yes"),
    [("0", "1"), ("0.0", "1.0"), ("False", "True"), ("FALSE", "TRUE"), ("no", "yes"), ("N", "Y"),
     ("f", "t"), (0, 1), (0.0, 1.0), (False, True)],
)  # fmt: skip
def test_label_columns(no, yes):
    found = split_table(
        table(sea=[yes, no, None], sky=[no, no, yes]), LabelSpec(labels=("sky", "sea"))
    )
    assert found.label_names == ("sky", "sea")
    np.testing.assert_array_equal(found.Y, [[0, 1], [0, 0], [1, np.nan]])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([1, -1, 1], "row 2 of label column 'sea' must be 0/1, .*got '-1'"),
        (["x", None, "x"], "got 'x'; if it holds tags, .* with one sign such as x, use `untagged"),
        ([0.5, 1.0, 0.0], "got '0.5'"),
        (["yes", "0", "1"], "label column 'sea' mixes 0, 1, yes; write all its cells in one way"),
        ([None, None, None], "label column 'sea' is empty; leave it out of `labels"),
    ],
)
def test_doubtful_label_columns(cells, message):
    with pytest.raises(LemllError, match=message):
        split_table(table(sea=cells), LabelSpec(labels=("sea",)))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["", ""], "column 'tags' holds no tag at all"),
        (['["sea"]', "sky"], "holds lists such as .* and other text such as 'sky'"),
        (['["sea"', '["sky"]'], r"row 1 of column 'tags' must be a list of tags such as"),
        (['[["sea"]]', '["sky"]'], r"row 1 of column 'tags' must be a list of tags such as"),
        (["a b;c d"] + [f"{i};x{i};y{i}" for i in range(20)], "62 different tags .*check `tags"),
    ],
)
def test_doubtful_tags(cells, message):
    with pytest.raises(LemllError, match=message):
        tags(cells, untagged="none")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "say where the labels are: `tags` .*`labels` .*lemll info FILE"),
        ({"tags": "a", "labels": ("b",)}, "say where the labels are"),
        ({"tags": "a", "sep": ""}, "`sep` must not be empty"),
        ({"labels": ("a",), "sep": ";"}, "`sep` belongs to `tags`; leave it out with `labels`"),
        ({"tags": "a", "untagged": "no"}, "`untagged` must be none or unknown, got 'no'"),
    ],
)
def test_specifications(options, message):
    with pytest.raises(LemllError, match=message):
        LabelSpec(**options)


@pytest.mark.parametrize("mark", ["x", "1", 1.0, "yes", "Ja", "✓", True])
def test_a_file_may_only_mark_the_labels_that_apply(mark):
    frame = table(sea=[mark, None, "  "], sky=[None, mark, mark])
    spec = LabelSpec(labels=("sea", "sky"), untagged="none")
    np.testing.assert_array_equal(split_table(frame, spec).Y, [[1, 0], [0, 1], [0, 1]])


def test_marks_with_both_values_or_two_signs():
    spec = LabelSpec(labels=("sea",), untagged="none")
    found = split_table(table(sea=["no", None, "yes"], width=[1, 2, 3]), spec)
    np.testing.assert_array_equal(found.Y, [[0], [0], [1]])
    # A column of 0 and empty cells marks nothing, and 0 does not mean that the label applies.
    np.testing.assert_array_equal(split_table(table(sea=["0", None]), spec).Y, [[0], [0]])
    with pytest.raises(LemllError, match="'sea' must have one sign, such as x.*got 'o', 'x'"):
        split_table(table(sea=["x", "o", None]), spec)
    for sign in ("-", -1, "none", "Nein"):
        with pytest.raises(LemllError, match="must have one sign, such as x"):
            split_table(table(sea=[sign, None]), spec)


def test_new_rows_need_no_mark_of_a_label():
    spec = LabelSpec(labels=("sea", "sky"), untagged="none")
    Y, _ = truth_of(table(sea=[None, None], sky=["x", None]), spec, ("sea", "sky"))
    np.testing.assert_array_equal(Y, [[0, 1], [0, 0]])


def test_a_specification_survives_json():
    for spec in (LabelSpec(tags="a", sep="|", untagged="none"), LabelSpec(labels=("a", "b"))):
        assert LabelSpec.from_json(spec.to_json()) == spec


def test_ids_and_ignored_columns():
    given = table(key=["a", "b"], other=[3, 4], sea=[0, 1])
    found = split_table(given, LabelSpec(labels=("sea",)), ids="key", ignore=["other"])
    assert found.ids == ("a", "b")
    assert list(found.X.columns) == ["width"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ids": "kay"}, "t has no column 'kay' for `ids`; did you mean 'key'"),
        ({"ids": "other"}, "the id of row 2 in column 'other' repeats '3'; ids must differ"),
        ({"ids": "gap"}, "the id of row 2 in column 'gap' is empty"),
        ({"ignore": ["zzz"]}, "has no column 'zzz' for `ignore`; it has width, key"),
        ({"ignore": ["width", "key", "other", "gap"]}, "no column is left for the features"),
    ],
)
def test_wrong_columns(options, message):
    given = table(key=["a", "b"], other=[3, 3], gap=["a", None], sea=[0, 1])
    with pytest.raises(LemllError, match=message):
        split_table(given, LabelSpec(labels=("sea",)), **options)


def test_labels_named_twice():
    with pytest.raises(LemllError, match="`labels` names a column twice: sea, sea"):
        split_table(table(sea=[0, 1]), LabelSpec(labels=("sea", "sea")))


def test_new_rows_have_the_known_labels():
    Y, other = truth_of(table(tags=["sky;dog", "sea"]), LabelSpec(tags="tags"), ("sea", "sky"))
    assert Y.tolist() == [[0, 1], [1, 0]]
    assert other == ("dog",)


def test_the_nearest_column_is_named_in_any_case():
    table = Table(pd.DataFrame({"width": [1, 2], "Tags": ["a", "b"]}), "t.csv")
    with pytest.raises(LemllError, match=r"t.csv has no column 'tag' for `tags`; did you mean 'T"):
        split_table(table, LabelSpec(tags="tag"))
