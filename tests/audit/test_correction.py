"""Suggestions applied to tags: exactly those that were chosen, and listed."""

import numpy as np
import pandas as pd
import pytest

from lemll.audit import correct, find_tag_issues, read_decisions
from lemll.datasets import load_digit_tags
from lemll.exceptions import LemllError

Y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]])


@pytest.fixture
def issues():
    return pd.DataFrame(
        {
            "row": [0, 3, 1, 2],
            "label": ["y1", "y0", "y1", "y0"],
            "given": [0, 0, 1, 1],
            "suggested": [1, 1, 0, 0],
            "kind": ["missing", "missing", "wrong", "wrong"],
            "score": [0.99, 0.91, 0.8, 0.1],
        }
    )


@pytest.mark.parametrize(("precision", "number"), [(0.95, 2), (0.9, 3), (0.5, 4)])
def test_as_many_as_the_precision_allows(issues, precision, number):
    before = Y.copy()
    found = correct(Y, issues, precision=precision)
    assert len(found.changes) == number
    changed = np.argwhere(found.Y != Y)
    listed = np.column_stack([found.changes.row, found.changes.label.str[1:].astype(int)])
    assert sorted(map(tuple, changed)) == sorted(map(tuple, listed))
    np.testing.assert_array_equal(Y, before)
    assert found.expected_precision == pytest.approx(issues.score.head(number).mean())
    assert found.expected_precision >= precision
    assert found.label_names == ("y0", "y1")


def test_a_precision_that_no_score_reaches_is_told(issues):
    with pytest.warns(UserWarning, match=r"highest score is 0\.9900, and precision=1 needs one of"):
        found = correct(Y, issues, precision=1)
    np.testing.assert_array_equal(found.Y, Y)
    assert not len(found.changes)
    assert np.isnan(found.expected_precision)


def test_decisions_replace_the_precision(issues):
    issues["decision"] = ["reject", "accept", None, "accept"]
    found = correct(Y, issues)
    np.testing.assert_array_equal(found.Y, [[1, 0], [0, 1], [0, 1], [1, 0]])
    assert str(found) == "2 cells changed: 1 tags removed, 1 added"
    issues["decision"] = "maybe"
    with pytest.raises(ValueError, match="must be 'accept', 'reject' or empty, got 'maybe'"):
        correct(Y, issues)


def test_frames_and_unknown_cells_keep_their_form(issues):
    frame = pd.DataFrame(Y, columns=["y0", "y1"], index=list("abcd"), dtype=float)
    frame.loc["d", "y1"] = np.nan
    found = correct(frame, issues, precision=0.95)
    assert list(found.Y.index) == list("abcd")
    assert list(found.Y.columns) == ["y0", "y1"]
    assert np.isnan(found.Y.loc["d", "y1"])
    assert found.Y.loc["a", "y1"] == 1


def test_refusals(issues):
    with pytest.raises(ValueError, match="issues has no column 'row'"):
        correct(Y, issues.drop(columns="row"))
    with pytest.raises(ValueError, match="neither a column 'decision' nor 'score'"):
        correct(Y, issues.drop(columns="score"))
    with pytest.raises(ValueError, match=r"precision must be at most 1, got 1.5"):
        correct(Y, issues, precision=1.5)
    with pytest.raises(ValueError, match=r"row 0, label 'y1' is 1 in Y, but 0 in the issues"):
        correct(np.ones_like(Y), issues)
    with pytest.raises(ValueError, match=r"is unknown in Y, but 0 in the issues"):
        correct(np.where(Y == 0, np.nan, Y), issues)
    issues.loc[0, "row"] = 99
    with pytest.raises(ValueError, match="row 99, label 'y1', which Y does not have"):
        correct(Y, issues)
    # Also if the suggestion is not sure enough to be applied.
    with pytest.raises(ValueError, match="row 3, label 'y0', which Y does not have; Y has 3 rows"):
        correct(Y[:3], issues.iloc[1:])
    issues.loc[0, "row"] = 0
    issues["out_of_fold"] = np.nan
    with pytest.raises(ValueError, match="the scores of fast mode are no probabilities"):
        correct(Y, issues)


@pytest.mark.slow
@pytest.mark.nightly(when=lambda n: n > 10)
@pytest.mark.parametrize("n", [10, 15, 20, 30])
def test_clean_tags_of_few_rows_stay(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 5))
    clean = (X @ rng.normal(size=(5, 4)) > 0).astype(int)
    issues = find_tag_issues(X, clean, limit=None)
    with pytest.warns(UserWarning, match="nothing was changed"):
        found = correct(clean, issues, precision=0.9)
    assert len(found.changes) == 0
    np.testing.assert_array_equal(found.Y, clean)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("suggested", 7, "'suggested' of issues must hold 0 or 1, got 7 in line 3; pass the frame"),
        ("given", np.nan, "'given' of issues must hold 0 or 1, got nan in line 3"),
        ("row", 1.5, r"'row' of issues must hold the number of a row, 0 or more, got 1\.5"),
        ("row", np.inf, "the number of a row, 0 or more, got inf in line 3"),
        ("row", -1, "the number of a row, 0 or more, got -1 in line 3"),
        ("row", "2", "the number of a row, 0 or more, got '2' in line 3"),
    ],
)
def test_values_of_issues_are_checked(issues, column, value, message):
    issues[column] = [*issues[column][:3], value]
    with pytest.raises(ValueError, match=message):
        correct(Y, issues)


def test_whole_floats_are_rows(issues):
    floats = issues.astype({"row": float, "given": float, "suggested": float})
    np.testing.assert_array_equal(correct(Y, floats).Y, correct(Y, issues).Y)


def test_no_issues_change_nothing(issues):
    np.testing.assert_array_equal(correct(Y, issues[:0]).Y, Y)


def test_cells_that_are_listed_twice_are_refused(issues):
    twice = pd.concat([issues, issues[:1]])
    with pytest.raises(ValueError, match=r"row 0, label 'y1' twice; keep one .*drop_duplicates"):
        correct(Y, twice)


@pytest.mark.slow
def test_classes_that_no_row_has_need_their_names():
    classes = [[0], [1], []] * 5
    issues = find_tag_issues(None, classes, pred_probs=np.full((15, 3), 0.4), limit=None)
    issues["decision"] = np.where((issues.row == 0) & (issues.label == "y2"), "accept", "")
    with pytest.raises(ValueError, match=r"the label 'y2', which Y does not have; .*label_names="):
        correct(classes, issues)
    assert correct(classes, issues, label_names=["y0", "y1", "y2"]).Y[0].tolist() == [1, 0, 1]


@pytest.mark.slow
def test_corrections_of_digits_are_mostly_right():
    digits = load_digit_tags()
    X, truth = digits.X[:500], digits.Y[:500]
    rng = np.random.default_rng(0)
    noisy = np.where((truth == 1) & (rng.random(truth.shape) < 0.3), 0, truth)
    issues = find_tag_issues(X, noisy, limit=None)
    found = correct(noisy, issues[issues.kind == "missing"], precision=0.9)
    assert len(found.changes) > 50
    labels = found.changes.label.str[1:].astype(int)
    assert truth[found.changes.row, labels].mean() >= 0.9


def test_decisions_are_read_and_refused(tmp_path, issues):
    path = tmp_path / "decisions.csv"
    with pytest.raises(LemllError, match="there is no file"):
        read_decisions(path)
    path.write_text("row\n0\n", encoding="utf-8")
    with pytest.raises(LemllError, match="has no column 'label'; export the decisions"):
        read_decisions(path)
    path.write_text("row,label,given,suggested\nx,a,0,1\n", encoding="utf-8")
    with pytest.raises(LemllError, match="is no file of decisions"):
        read_decisions(path)
    path.write_bytes(b"row,label\n\xff\xfe,1\n")
    with pytest.raises(LemllError, match="is no file of decisions"):
        read_decisions(path)
    issues["label"] = ["'=y1", "NA", "'quoted", "007"]
    issues["decision"] = ["accept", "", "reject", "accept"]
    issues.to_csv(path, index=False)
    found = read_decisions(path)
    assert found["label"].tolist() == ["=y1", "NA", "'quoted", "007"]
    assert found["decision"].tolist() == ["accept", "", "reject", "accept"]


@pytest.mark.parametrize(
    ("encoding", "separator"), [("utf-8-sig", ","), ("cp1252", ";"), ("utf-16", "\t")]
)
def test_decisions_that_a_spreadsheet_saved_again_are_read(tmp_path, issues, encoding, separator):
    path = tmp_path / "decisions.csv"
    issues["label"] = ["Käfer", "y1", "y2", "y3"]
    issues.to_csv(path, index=False, encoding=encoding, sep=separator)
    assert read_decisions(path)["label"].tolist() == ["Käfer", "y1", "y2", "y3"]
