"""``lemll tune``: what it prints, what it writes, how it fails."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from lemll.cli import tune
from lemll.cli.app import app
from lemll.datasets import Dataset, read_dataset, write_dataset
from lemll.exceptions import LemllError


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
        file, "--labels", -2, "--kernel", "linear", "--folds", 2, "--output", out,
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
    seen, fit = [], tune.LEMLLCV.fit

    def spying(self, X, y):
        seen.append(np.asarray(X))
        return fit(self, X, y)

    monkeypatch.setattr(tune.LEMLLCV, "fit", spying)
    out = tmp_path / "out"
    run(file, "--labels", -2, "--kernel", "linear", "--folds", 2, "--holdout", 4, "--output", out)
    rows = [int(row[0]) for row in read(out / "held_out_scores.csv")[1:]]
    assert len(rows) == 10
    features = read_dataset(file, labels=-2).X
    (searched,) = seen
    assert len(searched) == 30
    for row in features[rows]:
        assert not (searched == row).all(axis=1).any()


def test_ctrl_c_ends_without_a_traceback_and_without_files(file, tmp_path, monkeypatch):
    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(tune.LEMLLCV, "fit", interrupted)
    result = run(file, "--labels", -2, "--output", tmp_path / "out")
    assert result.exit_code == 130
    assert result.output == "stopped; nothing was written\n"
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
        (["--labels", -2, "--holdout", 21], LemllError, "needs at least 42 rows, and"),
        ([], LemllError, "On the command line: --labels"),
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
