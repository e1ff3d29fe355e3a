"""Parquet and Excel."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lemll.exceptions import DatasetFormatError, LemllError
from lemll.tables import LabelSpec, TableEncoder, read_table, split_table

FRAME = pd.DataFrame(
    {
        "width": [1.5, np.nan, 3.0, 4.5],
        "when": pd.to_datetime(["2024-01-01", "2024-02-01", None, "2024-05-01"]),
        "sea": [True, False, True, False],
        "sky": pd.array([True, None, False, False], dtype="boolean"),
    }
)


def test_parquet_keeps_types_and_unknown_cells(tmp_path):
    path = tmp_path / "t.parquet"
    FRAME.set_index(pd.Index(list("abcd"), name="key")).to_parquet(path)
    table = read_table(path)
    found = split_table(table, LabelSpec(labels=("sea", "sky")), ids="key")
    assert found.ids == ("a", "b", "c", "d")
    np.testing.assert_array_equal(found.Y, [[1, 1], [0, np.nan], [1, 0], [0, 0]])
    encoder = TableEncoder().fit(found.X)
    assert [column.kind for column in encoder.columns_] == ["number", "date"]


def test_lists_in_parquet_are_tags(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": [1, 2, 3], "tags": [["sea", "sky"], [], ["sky"]]}).to_parquet(path)
    found = split_table(read_table(path), LabelSpec(tags="tags"))
    assert found.label_names == ("sea", "sky")
    assert found.Y.tolist() == [[1, 1], [0, 0], [0, 1]]


@pytest.mark.parametrize("kind", ["npy", "lists", "fixed", "text"])
def test_vectors_are_features(tmp_path, kind):
    V = np.random.default_rng(0).standard_normal((6, 9)).astype(np.float32)
    frame, path = pd.DataFrame({"tags": list("abcabc")}), tmp_path / "t.csv"
    if kind == "npy":
        np.save(tmp_path / "t.npy", V)
    else:
        frame["v"] = [None, *V[1:].tolist()]
    if kind in ("lists", "fixed"):
        path = path.with_suffix(".parquet")
        table = pa.Table.from_pandas(frame)
        fixed = pa.array(frame["v"], pa.list_(pa.float32(), 9))
        pq.write_table(table.set_column(1, "v", fixed) if kind == "fixed" else table, path)
    else:
        frame.to_csv(path, index=False)
    found = split_table(read_table(path, keep=["tags"]), LabelSpec(tags="tags"))
    encoder = TableEncoder().fit(found.X)
    assert [(c.kind, c.width) for c in encoder.columns_] == [("vector", 9)]
    if kind != "npy":
        V[0] = np.median(V[1:], axis=0)
    expected = (V - V.mean(axis=0)) / V.std(axis=0)
    np.testing.assert_allclose(encoder.transform(found.X), expected, atol=1e-6)
    assert encoder.feature_owners() == [found.X.columns[0]] * 9
    with pytest.raises(LemllError, match="held lists of 9 numbers .* 6 of 6 cells are none"):
        encoder.transform(pd.DataFrame({found.X.columns[0]: list(V[:, :8])}))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((5, 2)), r"of the shape \(5, 2\).* needs numbers in 3 rows"),
        (np.array([["a"], ["b"], ["c"]]), "an array of <U1"),
        (np.array([{}, {}, {}]), "cannot be read as an array"),
        (b"", "cannot be read as an array"),
        (b"\x93NUMPY\x01\x00\xff\xff", "cannot be read as an array"),
        (np.zeros((3, 2)), "which the table has; rename the column"),
    ],
)
def test_a_wrong_array_beside_a_table_is_refused(tmp_path, array, message):
    name = "vectors" if np.shape(array) == (3, 2) else "a"
    (tmp_path / "t.csv").write_text(f"{name},tags\n1,x\n2,y\n3,x\n", encoding="utf-8")
    beside = tmp_path / "t.npy"
    beside.write_bytes(array) if isinstance(array, bytes) else np.save(beside, array)
    with pytest.raises(DatasetFormatError, match=message):
        read_table(tmp_path / "t.csv")


def test_excel(tmp_path):
    path = tmp_path / "t.xlsx"
    FRAME.astype({"sky": object}).to_excel(path, index=False)
    found = split_table(read_table(path), LabelSpec(labels=("sea", "sky")))
    np.testing.assert_array_equal(found.Y, [[1, 1], [0, np.nan], [1, 0], [0, 0]])
    encoder = TableEncoder().fit(found.X)
    assert [column.kind for column in encoder.columns_] == ["number", "date"]


def test_sheets_are_not_guessed(tmp_path):
    path = tmp_path / "t.xlsx"
    with pd.ExcelWriter(path) as book:
        FRAME.to_excel(book, sheet_name="one", index=False)
        FRAME.head(2).to_excel(book, sheet_name="two", index=False)
    with pytest.raises(DatasetFormatError, match="has the sheets one, two; choose one with `sh"):
        read_table(path)
    with pytest.raises(DatasetFormatError, match="has no sheet 'three'; it has one, two"):
        read_table(path, sheet="three")
    assert len(read_table(path, sheet="two").frame) == 2


def test_an_empty_sheet(tmp_path):
    pd.DataFrame().to_excel(tmp_path / "t.xlsx", index=False)
    with pytest.raises(DatasetFormatError, match="the sheet is empty; expected a header line"):
        read_table(tmp_path / "t.xlsx")


@pytest.mark.parametrize(("suffix", "kind"), [("parquet", "Parquet"), ("xlsx", "Excel")])
def test_damaged_files(tmp_path, suffix, kind):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(DatasetFormatError, match=f"the file cannot be read as {kind}"):
        read_table(path)


def test_line_breaks_and_blanks_in_headings_become_one_blank(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"Score\n(0-100) ": [1.0, 2.0], "score  (0-100)": [3.0, 4.0]}).to_parquet(path)
    assert list(read_table(path).frame.columns) == ["Score (0-100)", "score (0-100)"]
    path = tmp_path / "t.csv"
    path.write_text('"my\ntags";width\n"1,5";"2,5"\n', encoding="utf-8")
    table = read_table(path, keep=["my tags"])
    assert table.frame.to_dict("list") == {"my tags": ["1,5"], "width": ["2.5"]}
