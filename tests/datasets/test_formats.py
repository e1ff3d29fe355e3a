"""LIBSVM, CSV and Parquet, and what all formats share: round trips, and every message."""

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from lemll.datasets import (
    Dataset,
    read_dataset,
    read_svmlight,
    read_table,
    write_arff,
    write_csv,
    write_dataset,
    write_parquet,
)
from lemll.exceptions import DatasetFormatError, MissingExtraError, import_extra

X = np.array([[1.5, 0.0, -2.0], [0.0, 1e-300, 3.0]])
Y = np.array([[1, 0], [1, 1]], dtype=np.uint8)
D = np.array([[0.25, 0.75], [1.0, 0.0]])


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def assert_same(mine, other):
    np.testing.assert_array_equal(dense(mine.X), dense(other.X))
    np.testing.assert_array_equal(mine.labels, other.labels)
    assert (mine.Y is None) == (other.Y is None)
    assert mine.label_names == other.label_names
    assert mine.feature_names == other.feature_names


# LIBSVM


def test_svmlight_rows_without_labels_and_comments():
    data = read_svmlight(b"# head\n0,2 1:0.5 3:2 # c\n 2:1\n3:4\n1\n", n_features=4, n_labels=5)
    np.testing.assert_array_equal(
        dense(data.X), [[0.5, 0, 2, 0], [0, 1, 0, 0], [0, 0, 4, 0], [0] * 4]
    )
    np.testing.assert_array_equal(data.Y, [[1, 0, 1, 0, 0], [0] * 5, [0] * 5, [0, 1, 0, 0, 0]])
    assert data.label_names == ("0", "1", "2", "3", "4")


def test_svmlight_header_line_gives_the_shape():
    data = read_svmlight(b"2 5 4\n0,1 0:1 4:2\n3 1:1\n")
    assert data.X.shape == (2, 5)
    assert data.Y.shape == (2, 4)
    assert data.X[0, 4] == 2


def test_svmlight_agrees_with_scikit_learn(tmp_path):
    from sklearn.datasets import load_svmlight_file

    rng = np.random.RandomState(0)
    lines = []
    for _ in range(50):
        labels = ",".join(map(str, sorted(rng.choice(6, rng.randint(1, 4), replace=False))))
        columns = sorted(rng.choice(np.arange(1, 20), 5, replace=False))
        lines.append(labels + "".join(f" {j}:{rng.randn()!r}" for j in columns))
    text = "\n".join(lines).replace("np.float64(", "").replace(")", "") + "\n"
    (tmp_path / "a.svm").write_text(text)
    theirs, tuples = load_svmlight_file(str(tmp_path / "a.svm"), multilabel=True)
    ours = read_dataset(tmp_path / "a.svm")
    np.testing.assert_array_equal(dense(ours.X), theirs.toarray())
    for row, labels in zip(ours.Y, tuples, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(row), sorted(int(label) for label in labels))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (b"", {}, "the file has no rows"),
        (b"a 1:1\n", {}, "line 1: expected a whole number"),
        (b"1 1:1 x\n", {}, "expected index:value"),
        (b"1 1:nan\n", {}, "expected a finite number"),
        (b"1 1:1_0\n", {}, "expected a finite number"),
        (b"1 1:x\n", {}, "expected a finite number"),
        (b"1 9999999999:1\n", {}, "number too large"),
        (b"1 1:1 1:2\n", {}, "a row contains a feature twice"),
        (b"1 9:1\n", {"n_features": 4}, r"feature number 8 \(from 0\) does not fit 4 features"),
        (b"7 1:1\n", {"n_labels": 4}, r"label number 7 \(from 0\) does not fit 4 labels"),
        (b"0 1:1\n", {"first_label": 1}, "a label index is smaller than the first"),
        (b"0 0:1\n", {"first_feature": 1}, "a feature index is smaller than the first"),
        (b"3 5 4\n1 1:1\n", {}, "the header announces 3 rows, but the file has 1"),
        (b"2147483000 1:1\n", {}, "more than the .* a file of this size should need"),
        (b"0 2147483647:1\n", {}, "more than the .* a file of this size should need"),
        (b"-1 1:1\n", {}, r"line 1: labels are coded -1/\+1; expected the numbers .*\(got '-1'\)"),
        (b"0 1:1\n+1 1:1\n", {}, r"line 2: labels are coded -1/\+1"),
    ],
)
def test_svmlight_faults(text, options, message):
    with pytest.raises(DatasetFormatError, match=message):
        read_svmlight(text, **options)


# Tables


@pytest.mark.parametrize(
    "data", [Dataset(X=X, Y=Y, label_names=["a, b", 'c"\n']), Dataset(X=X, D=D)]
)
def test_csv_and_parquet_round_trip(tmp_path, data):
    write_csv(data, tmp_path / "a.csv.gz")
    assert_same(data, read_table(tmp_path / "a.csv.gz", list(data.label_names)))
    assert_same(data, read_table(tmp_path / "a.csv.gz", -2))
    write_parquet(data, tmp_path / "a.parquet")
    assert_same(data, read_table(tmp_path / "a.parquet"))


def test_table_labels_may_stand_anywhere(tmp_path):
    (tmp_path / "a.csv").write_text("x,sky,y,sea\n1,0,2,1\n3,1,4,1\n")
    data = read_table(tmp_path / "a.csv", ["sea", "sky"])
    assert data.label_names == ("sky", "sea")
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])


def test_csv_missing_cells(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n,1\n2,0\n")
    np.testing.assert_array_equal(
        read_table(tmp_path / "a.csv", ["y"], missing="nan").X, [[np.nan], [2]]
    )
    with pytest.raises(DatasetFormatError, match="pass `missing='nan'` to keep empty cells"):
        read_table(tmp_path / "a.csv", ["y"])


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        ("", ["y"], "the file is empty; expected a header line"),
        ("x,y\n", ["y"], "no row after the header line"),
        ("x,y\n1\n", ["y"], "line 2: the row has 1 cells, but the header has 2"),
        ("x,y\n1,z\n", ["y"], r"line 2, column 2: expected a finite number \(got 'z'\)"),
        ("x,y\n1,inf\n", ["y"], "expected a finite number"),
        ('x,y\n"1,2\n', ["y"], "not well-formed CSV"),
        ("x,x\n1,2\n", ["x"], "a column name occurs twice"),
        ("x,y\n1,0\n", ["z"], r"1 of the 1 labels are not among the columns.*\(got 'z'\)"),
        ("x,y\n1,0\n", None, "cannot tell which columns are labels"),
        ("x,y\n1,0\n", 2, "all 2 columns are labels, so no feature is left"),
        ("x,y\n1,0\n", 3, "3 labels were requested, .* 2 columns; expected between 1 and 1"),
        ("x,y\n1,7\n", ["y"], "every row of D must sum to 1"),
        ("x,y\n1,-1\n2,1\n", ["y"], r"a\.csv: Y is coded -1/\+1, logical labels must be 0/1"),
        ("x,y\n1,-1\n2,0\n", ["y"], "Y must hold only 0 and 1, got -1"),
        ("x,y\n1_000,1\n", ["y"], r"line 2, column 1: expected a finite number \(got '1_000'\)"),
        ("x,y\n\u0661,1\n", ["y"], r"line 2, column 1: expected a finite number"),
    ],
)
def test_csv_faults(tmp_path, text, labels, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DatasetFormatError, match=message):
        read_table(tmp_path / "a.csv", labels)


def test_parquet_faults(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(DatasetFormatError, match="not a readable Parquet file"):
        read_table(tmp_path / "a.parquet", ["y"])
    with pytest.raises(DatasetFormatError, match="no such file"):
        read_table(tmp_path / "b.parquet", ["y"])
    pyarrow.parquet.write_table(pyarrow.table({"x": ["a"], "y": [1]}), tmp_path / "c.parquet")
    with pytest.raises(DatasetFormatError, match="column 'x' must hold numbers"):
        read_table(tmp_path / "c.parquet", ["y"])
    pyarrow.parquet.write_table(pyarrow.table({}), tmp_path / "d.parquet")
    with pytest.raises(DatasetFormatError, match="no rows or no columns"):
        read_table(tmp_path / "d.parquet", ["y"])


@pytest.mark.parametrize(
    "note", ["[]", "3", "null", '{"labels": 1.5}', '{"labels": [1]}', '{"name": 5}', '{"kind": []}']
)
def test_parquet_with_a_broken_note(tmp_path, note):
    table = pyarrow.table({"x": [1.0], "y": [1]}).replace_schema_metadata({"lemll": note})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DatasetFormatError, match=r"a\.parquet: the metadata .* are broken"):
        read_table(tmp_path / "a.parquet", ["y"])


def test_parquet_with_a_note_that_is_no_json(tmp_path):
    table = pyarrow.table({"x": [1.0], "y": [1]}).replace_schema_metadata({"lemll": "{"})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DatasetFormatError, match="not a readable Parquet file"):
        read_table(tmp_path / "a.parquet", ["y"])


def test_parquet_of_several_types_and_with_nulls(tmp_path):
    columns = {"a": [1, None], "b": [True, None], "c": [0.5, None], "y": [True, False]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    data = read_table(tmp_path / "a.parquet", ["y"], missing="nan")
    np.testing.assert_array_equal(data.X, [[1, 1, 0.5], [np.nan] * 3])
    with pytest.raises(DatasetFormatError, match="X must be finite"):
        read_table(tmp_path / "a.parquet", ["y"])


def test_an_explicit_kind_wins_over_the_note(tmp_path):
    write_parquet(Dataset(X=X, D=[[1, 0], [0, 1]]), tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").Y is None
    assert read_table(tmp_path / "a.parquet", kind="logical").D is None
    write_parquet(Dataset(X=X, Y=[[1, 0], [0, 1]]), tmp_path / "b.parquet")
    assert read_table(tmp_path / "b.parquet", kind="distribution").Y is None


def test_parquet_is_not_compressed_again(tmp_path):
    with pytest.raises(ValueError, match=r"\.parquet files are already compressed"):
        write_dataset(Dataset(X=X, Y=Y), tmp_path / "a.parquet.xz")
    with pytest.raises(ValueError, match=r"\.parquet files are already compressed"):
        read_dataset(tmp_path / "a.parquet.xz")
    assert list(tmp_path.iterdir()) == []


def test_table_arguments(tmp_path):
    with pytest.raises(ValueError, match="missing='drop' must be 'error' or 'nan'"):
        read_table(tmp_path / "a.csv", missing="drop")
    with pytest.raises(ValueError, match=r"reads \.csv and \.parquet"):
        read_table(tmp_path / "a.xlsx")
    with pytest.raises(ValueError, match="kind='x' must be"):
        read_table(tmp_path / "a.csv", kind="x")
    with pytest.raises(ValueError, match="'x0' occurs twice; rename one"):
        write_csv(Dataset(X=X, Y=Y, label_names=["x0", "b"]), tmp_path / "a.csv")
    wide = Dataset(X=sparse.csr_array((100_000, 3000)), Y=np.zeros((100_000, 1)))
    with pytest.raises(ValueError, match="write NPZ or ARFF instead"):
        write_csv(wide, tmp_path / "a.csv")


# All of them


def test_a_distribution_has_no_place_in_arff(tmp_path):
    with pytest.raises(ValueError, match="data set has a distribution; binarise it first"):
        write_arff(Dataset(X=X, D=D), tmp_path / "a.arff")


def test_unknown_suffixes(tmp_path):
    with pytest.raises(ValueError, match="no reader for 'a.doc'; known suffixes"):
        read_dataset("a.doc")
    with pytest.raises(ValueError, match="no writer for 'a.mat'; known suffixes"):
        write_dataset(Dataset(X=X, Y=Y), "a.mat")


def test_a_missing_extra_names_the_command_that_installs_it():
    with pytest.raises(MissingExtraError, match=r"pip install 'lemll\[data\]'"):
        import_extra("no_such_library", "data", "Doing this")


NAMES = st.text(min_size=1, max_size=5).filter(lambda name: not name.endswith("\0"))


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    cells=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
    names=st.lists(NAMES, min_size=3, max_size=3, unique=True),
    as_sparse=st.booleans(),
)
@pytest.mark.slow
def test_every_format_round_trips(tmp_path, cells, names, as_sparse):
    features = np.array(cells).reshape(2, 1)
    data = Dataset(
        X=sparse.csr_array(features) if as_sparse else features,
        Y=[[0, 1], [1, 0]],
        feature_names=names[:1],
        label_names=names[1:],
    )
    for suffix in (".csv", ".npz", ".parquet", ".arff"):
        path = tmp_path / f"a{suffix}"
        write_dataset(data, path)
        options = {"labels": -2} if suffix == ".csv" else {}
        assert_same(data, read_dataset(path, **options))
