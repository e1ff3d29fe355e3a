"""Files whose labels have empty cells, from the file to a prediction."""

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from lemll import LEMLL
from lemll.cli.app import app
from lemll.datasets import Dataset, describe, load_digit_tags, read_dataset, write_dataset
from lemll.exceptions import DatasetFormatError
from lemll.model_selection import iterative_folds

TEXT = "a,b,sea,sky\n1,2,1,\n3,4,,0\n5,6,0,1\n"


@pytest.fixture(name="partly")
def _partly():
    digits = load_digit_tags()
    Y = digits.Y[:120].astype(float)
    Y[np.random.default_rng(0).random(Y.shape) < 0.4] = np.nan
    return Dataset(X=digits.X[:120], Y=Y, label_names=list(digits.label_names))


def test_an_empty_cell_of_a_label_is_unknown(tmp_path):
    path = tmp_path / "photos.csv"
    path.write_text(TEXT, encoding="utf-8")
    data = read_dataset(path, labels=["sea", "sky"])
    np.testing.assert_array_equal(data.Y, [[1, np.nan], [np.nan, 0], [0, 1]])
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4], [5, 6]])


def test_an_empty_cell_of_a_feature_still_needs_permission(tmp_path):
    path = tmp_path / "photos.csv"
    path.write_text(TEXT.replace("3,4", "3,"), encoding="utf-8")
    with pytest.raises(DatasetFormatError, match="line 3, column 2: .*missing='nan'"):
        read_dataset(path, labels=["sea", "sky"])
    assert np.isnan(read_dataset(path, labels=["sea", "sky"], missing="nan").X[1, 1])


@pytest.mark.parametrize("name", ["tags.csv", "tags.csv.gz", "tags.parquet"])
def test_unknown_cells_survive_a_round_trip(name, partly, tmp_path):
    write_dataset(partly, tmp_path / name)
    again = read_dataset(tmp_path / name, labels=list(partly.label_names))
    np.testing.assert_array_equal(again.Y, partly.Y)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_arff_writes_and_reads_question_marks(as_rows, partly, tmp_path):
    data = Dataset(X=as_rows(partly.X), Y=partly.Y, name="partly")
    write_dataset(data, tmp_path / "tags.arff")
    again = read_dataset(tmp_path / "tags.arff")
    np.testing.assert_array_equal(again.Y, partly.Y)


def test_a_quoted_question_mark_is_not_a_label(tmp_path):
    path = tmp_path / "tags.arff"
    path.write_text(
        "@relation 'r: -C 1'\n@attribute sea {0,1}\n@attribute x numeric\n@data\n'?',1\n",
        encoding="utf-8",
    )
    with pytest.raises(DatasetFormatError, match="label 'sea' must be 0 or 1 in every row"):
        read_dataset(path)


def test_complete_labels_stay_whole_numbers():
    assert Dataset(X=[[1.0]], Y=[[1, 0]]).Y.dtype == np.int8


def test_figures_are_those_of_the_known_cells(partly):
    found = describe(partly)
    assert found.density == pytest.approx(np.nanmean(partly.Y))
    assert found.cardinality == pytest.approx(np.nanmean(partly.Y) * partly.Y.shape[1])


def test_folds_balance_what_was_observed(partly):
    folds = iterative_folds(partly.Y, 3)
    counts = np.array([np.nansum(partly.Y[folds == k], axis=0) for k in range(3)])
    assert (np.ptp(counts, axis=0) <= 2).all()


@pytest.mark.slow
def test_from_a_file_to_a_prediction(partly, tmp_path):
    write_dataset(partly, tmp_path / "tags.csv")
    data = read_dataset(tmp_path / "tags.csv", labels=list(partly.label_names))
    model = LEMLL().fit(data.X, data.Y)
    assert set(np.unique(model.completed_labels_)) <= {0, 1}
    labels = ",".join(partly.label_names)
    command = ["fit", str(tmp_path / "tags.csv"), "--labels", labels, "--learner", "LEMLL",
               "--seconds", "8", "-m", str(tmp_path / "m.lemll")]  # fmt: skip
    made = CliRunner().invoke(app, command)
    assert made.exit_code == 0, made.output
