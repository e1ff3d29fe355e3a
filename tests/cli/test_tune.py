"""``lemll tune``: what it prints, what it writes, how it fails."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from lemll.cli import tune
from lemll.cli.app import app
from lemll.datasets import Dataset, write_dataset
from lemll.exceptions import LemllError
from lemll.tables import TableEncoder, inspect_columns


@pytest.fixture(name="file")
def _file(tmp_path):
    rng = np.random.RandomState(0)
    X = rng.randn(40, 3)
    Y = (X @ rng.randn(3, 2) + 0.3 * rng.randn(40, 2) > 0).astype(int)
    path = tmp_path / "tiny.csv"
    write_dataset(Dataset(X=X, Y=Y, label_names=["sea", "sky"], name="tiny"), path)
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["tune", *map(str, arguments)])


def read(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def test_it_writes_tables_and_pictures(file, tmp_path):
    out = tmp_path / "out"
    result = run(
        file, "--labels", -2, "--kernel", "linear", "--folds", 2, "-o", out,
        "--scoring", "ranking_loss, hamming_loss",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "Best of the points tried" in result.output
    assert "labels by frequency" in result.output
    assert sorted(path.name for path in out.iterdir()) == [
        "held_out_predictions.csv",
        "held_out_scores.csv",
        "label_movement.png",
        "results.csv",
        "scores.png",
    ]
    scores = read(out / "held_out_scores.csv")
    labels = read(out / "held_out_predictions.csv")
    assert scores[0] == labels[0] == ["row", "sea", "sky"]
    assert len(scores) == len(labels) == 1 + 8
    assert "8 rows that had no part in the search" in result.output
    positive = np.array(scores[1:], dtype=float)[:, 1:] > 0
    np.testing.assert_array_equal(np.array(labels[1:], dtype=int)[:, 1:], positive)
    header, *rows = read(out / "results.csv")
    assert {"param_alpha", "mean_test_ranking_loss", "mean_test_hamming_loss"} <= set(header)
    assert f"{len(rows)} points in 2 folds" in result.output


def test_a_label_name_cannot_become_a_formula(tmp_path):
    rng = np.random.RandomState(0)
    path, out = tmp_path / "odd.npz", tmp_path / "out"
    names = ["=cmd|' /C calc'!A0", "sky"]
    X, Y = rng.randn(40, 2), rng.randint(0, 2, (40, 2))
    write_dataset(Dataset(X=X, Y=Y, label_names=names, name="odd"), path)
    assert run(path, "--kernel", "linear", "--folds", 2, "--output", out).exit_code == 0
    assert read(out / "held_out_scores.csv")[0] == ["row", "'=cmd|' /C calc'!A0", "sky"]


def test_no_choice_has_seen_the_rows_that_are_scored(file, tmp_path, monkeypatch):
    encoded, searched = [], []
    encode, fit = tune.TableEncoder.fit_transform, tune.LEMLLCV.fit

    def encoding(self, X, y=None):
        encoded.append(list(X.index))
        return encode(self, X, y)

    def searching(self, X, y):
        searched.append(len(X))
        return fit(self, X, y)

    monkeypatch.setattr(tune.TableEncoder, "fit_transform", encoding)
    monkeypatch.setattr(tune.LEMLLCV, "fit", searching)
    out = tmp_path / "out"
    run(file, "--labels", -2, "--kernel", "linear", "--folds", 2, "--holdout", 4, "--output", out)
    rows = [int(row[0]) for row in read(out / "held_out_scores.csv")[1:]]
    assert len(rows) == 10
    assert searched == [30]
    # All rows are encoded once, to find equal ones; the search uses the second encoding.
    assert sorted(encoded[1] + rows) == list(range(40))


def test_a_table_of_any_columns(tmp_path):
    rng = np.random.RandomState(0)
    n = 40
    hue = rng.randn(n)
    frame = pd.DataFrame(
        {
            "file": [f"IMG_{i:05d}" for i in range(n)],
            "taken": [f"2024-01-{1 + i % 28:02d}" for i in range(n)],
            "caption": [f"a photo of the {'sea' if x > 0 else 'town'}" for x in hue],
            "hue": np.where(rng.rand(n) < 0.1, np.nan, hue),
            "tags": ["sea;sky" if x > 0 else "town" for x in hue],
        }
    )
    path, out = tmp_path / "photos.csv", tmp_path / "out"
    frame.to_csv(path, index=False)
    options = ["--tags", "tags", "--id", "file", "--kernel", "linear", "--folds", 2]
    result = run(path, *options, "--output", out)
    assert result.exit_code == 0, (result.output, result.exception)
    scores = read(out / "held_out_scores.csv")
    assert scores[0] == ["row", "sea", "sky", "town"]
    assert scores[1][0].startswith("IMG_")


def test_a_used_up_budget_leaves_the_last_picture_out(file, tmp_path):
    out = tmp_path / "out"
    options = ["--labels", -2, "--kernel", "linear", "--folds", 2, "--seconds", 1e-6]
    result = run(file, *options, "--output", out)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "label_movement.png was left out: the time was used up (--seconds)" in result.output
    assert not (out / "label_movement.png").exists()


def test_progress_is_printed_in_a_pipe(file, tmp_path, monkeypatch):
    monkeypatch.setattr(tune, "_SECONDS_BETWEEN_LINES", 0.0)
    options = ["--labels", -2, "--kernel", "linear", "--folds", 2]
    result = run(file, *options, "--output", tmp_path / "out")
    assert "searching: " in result.stderr


def test_options_of_tables_need_a_table(tmp_path):
    path = tmp_path / "t.npz"
    write_dataset(Dataset(X=np.eye(3), Y=np.eye(3, dtype=int), name="t"), path)
    result = run(path, "--tags", "tags")
    assert isinstance(result.exception, LemllError)
    assert "--tags needs a table (.csv, .tsv" in str(result.exception)


def test_ctrl_c_ends_without_a_traceback_and_without_files(file, tmp_path, monkeypatch):
    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(tune.LEMLLCV, "fit", interrupted)
    result = run(file, "--labels", -2, "--output", tmp_path / "out")
    assert result.exit_code == 130
    assert result.stderr == "stopped; nothing was written\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            ["--labels", -2, "--scoring", "accuracy"],
            ValueError,
            "scoring='accuracy' must be one of",
        ),
        (["--labels", -2, "--kernel", "cubic"], ValueError, "kernel='cubic' must be one of"),
        (["--labels", -2, "--folds", 41], ValueError, "cv=41 folds need at least as many rows"),
        (["--labels", -2, "--holdout", 21], LemllError, "needs at least 42 rows, and there are 40"),
        ([], LemllError, "say where the labels are: --tags COL"),
        (["--labels", 5], LemllError, "--labels 5 must leave features among 5 columns"),
    ],
)
def test_errors_say_what_is_wrong(file, tmp_path, options, error, message):
    result = run(file, *options, "--output", tmp_path / "out")
    assert isinstance(result.exception, error)
    assert message in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_degrees_are_no_labels_to_learn_from(tmp_path):
    path = tmp_path / "degrees.npz"
    write_dataset(Dataset(X=np.eye(3), D=np.full((3, 2), 0.5), name="degrees"), path)
    result = run(path)
    assert isinstance(result.exception, LemllError)
    assert "has no logical labels to learn from" in str(result.exception)


def test_a_row_that_is_held_out_does_not_change_what_a_column_holds(tmp_path, monkeypatch):
    fitted = []
    fit = TableEncoder.fit_transform

    def spying(self, X, y=None):
        fitted.append((self, X))
        return fit(self, X, y)

    monkeypatch.setattr(TableEncoder, "fit_transform", spying)
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.randn(60, 2), columns=["light", "hue"])
    frame["code"] = [str(7 + i % 20) for i in range(60)]
    frame["sea"] = (frame["light"] > 0).astype(int)
    path = tmp_path / "table.csv"
    options = [path, "--labels", "sea", "--ignore", "hue", "--kernel", "linear", "--folds", 2,
               "--output", tmp_path / "out"]  # fmt: skip
    frame.to_csv(path, index=False)
    assert run(*options).exit_code == 0
    held_out = min(set(range(60)) - set(fitted[1][1].index))
    frame.loc[held_out, "code"] = "007"  # a code is no number
    frame.to_csv(path, index=False)
    assert run(*options).exit_code == 0
    encoder, rows = fitted[3]
    assert {column.name: column.kind for column in encoder.columns_}["code"] == "category"
    assert inspect_columns(rows[["code"]])[0].kind == "number"
