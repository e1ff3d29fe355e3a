"""Parquet and Excel."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lemll.exceptions import DatasetFormatError
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
