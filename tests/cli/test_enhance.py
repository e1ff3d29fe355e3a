"""``lemll enhance``: files in, degrees out, and ratings that fix the scale."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from lemll.cli.app import app
from lemll.enhancers import BlendEnhancer, LEMLLEnhancer

NAMES = ["sky", "sea", "sand"]


@pytest.fixture
def file(tmp_path):
    rng = np.random.RandomState(0)
    X = rng.rand(30, 2)
    Y = np.column_stack([X[:, 0] > 0.3, X[:, 1] > 0.5, X.sum(axis=1) > 1]).astype(int)
    path = tmp_path / "photos.csv"
    rows = [[*x, *y] for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["a", "b", *NAMES], *rows])
    return path, X, Y


def run(*arguments, answers=None, fails=False):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=answers)
    if fails:
        return result.exception
    if result.exception is not None:
        raise result.exception
    return result.output


def read(path):
    with path.open(newline="") as stream:
        rows = list(csv.reader(stream))
    return rows[0], np.array(rows[1:], dtype=float)


def test_degrees_are_written_with_the_labels_names(file, tmp_path):
    path, X, Y = file
    out = tmp_path / "out" / "degrees.csv"
    output = run("enhance", path, "--labels", ",".join(NAMES), "-o", out)
    header, values = read(out)
    assert header == ["row", *NAMES]
    np.testing.assert_allclose(values[:, 1:], BlendEnhancer().fit_enhance(X, Y), rtol=1e-4)
    assert "30 rows, 3 labels" in output
    assert "Blend without rated rows: labels tell which matters more" in output
    assert "Rate a few rows (--rate 10, or --rated FILE) to fix how steep the degrees" in output


@pytest.mark.parametrize("method", ["KM", "Uniform", "GLLE"])
def test_any_registered_method_will_do(file, tmp_path, method):
    out = tmp_path / "d.csv"
    run("enhance", file[0], "--labels", ",".join(NAMES), "--method", method, "-o", out)
    np.testing.assert_allclose(read(out)[1][:, 1:].sum(axis=1), 1, atol=1e-4)


def write_ratings(path, known):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["row", *NAMES])
        # Degrees on any scale: here of 100 points.
        writer.writerows([i, *(100 * known[i])] for i in range(10))


def test_rated_rows_weigh_the_sources(file, tmp_path):
    path, X, Y = file
    known = np.random.RandomState(1).dirichlet(np.ones(3), size=30)
    write_ratings(tmp_path / "rated.csv", known)
    common = ["enhance", path, "--labels", ",".join(NAMES), "-o", tmp_path / "d.csv"]
    output = run(*common, "--rated", tmp_path / "rated.csv")
    assert "weights from 10 rated rows: " in output
    assert "(Kullback-Leibler), and " in output
    enhancer = BlendEnhancer().fit(X, Y).calibrate(range(10), known[:10])
    found = read(tmp_path / "d.csv")[1][:, 1:]
    np.testing.assert_allclose(found, enhancer.label_distribution_, atol=1e-5)
    # The rows that the user rated have the degrees of the user.
    np.testing.assert_allclose(found[:10], known[:10], atol=1e-5)


def test_rated_rows_fix_the_scale(file, tmp_path):
    path, X, Y = file
    enhancer = LEMLLEnhancer(reg_policy="auto", tol=1e-6, max_iter=5000, scale=3.0)
    known = enhancer.fit_enhance(X, Y)
    rated = tmp_path / "rated.csv"
    write_ratings(rated, known)
    out = tmp_path / "d.csv"
    output = run(
        "enhance", path, "--labels", ",".join(NAMES), "--method", "LEMLL", "--rated", rated,
        "-o", out,
    )  # fmt: skip
    assert "scale 3 from 10 rated rows" in output
    np.testing.assert_allclose(read(out)[1][:, 1:], known, atol=1e-3)


def test_rows_can_be_rated_by_answering(file, tmp_path):
    answers = "5 3 2\n\n1 2\nfive 1 1\n1 1 1\n"
    output = run(
        "enhance", file[0], "--labels", ",".join(NAMES), "--rate", 3, "-o", tmp_path / "d.csv",
        answers=answers,
    )  # fmt: skip
    assert "from 2 rated rows" in output
    assert "expected 3 numbers, got 2." in output
    assert "expected a number, got 'five'." in output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("row,sky,sea\n0,1,2\n", "lacks the columns sand"),
        ("row,sky,sea,sand\n", "holds no rated row"),
        ("row,sky,sea,sand\n0,1,x,2\n", "line 2: expected a number, got 'x'"),
        ("row,sky,sea,sand\n0,0,0,0\n", "not negative and not all zero"),
        (
            "row,sky,sea,sand\n99,1,1,2\n",
            "line 2: row 99 is not one of 30; rows are counted from 0",
        ),
        ("row,sky,sea,sand\n1,1,1,2\n1,2,2,1\n", "line 3: row 1 is rated twice"),
        ("row,sky,sea,sand\n1,1,1,nan\n", "not negative and not all zero"),
        ('row,sky,sea,sand\n1,1,1,"' + 200_000 * "x" + '"\n', "is not a CSV file in UTF-8"),
    ],
)
def test_bad_ratings_are_named(file, tmp_path, content, message):
    rated = tmp_path / "rated.csv"
    rated.write_text(content)
    error = run(
        "enhance", file[0], "--labels", ",".join(NAMES), "--rated", rated,
        "-o", tmp_path / "d.csv", fails=True,
    )  # fmt: skip
    assert isinstance(error, ValueError)
    assert message in str(error)


def test_a_file_of_a_spreadsheet_and_answers_that_end_early_will_do(file, tmp_path):
    rated = tmp_path / "rated.csv"
    rated.write_text("row,sky,sea,sand\n1,5,3,2\n", encoding="utf-8-sig")
    common = ["enhance", file[0], "--labels", ",".join(NAMES), "-o", tmp_path / "d.csv"]
    assert "Rate at least 3 rows to know how good they are." in run(*common, "--rated", rated)
    lemll = [*common, "--method", "LEMLL", "--rated", rated]
    assert "from 1 rated rows (one row gives no interval)" in run(*lemll)
    assert "from 2 rated rows" in run(*common, "--rate", 9, answers="5 3 2\n4 4 2\n")


def test_a_label_called_row_is_refused(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("a,row,b\n1,0,1\n2,1,0\n3,1,1\n")
    error = run("enhance", path, "--labels", "row,b", fails=True)
    assert "has a label called 'row'" in str(error)


def test_an_unknown_method_is_told_the_nearest(file):
    error = run("enhance", file[0], "--labels", ",".join(NAMES), "--method", "LEML", fails=True)
    assert "did you mean 'LEMLL'?" in str(error)
