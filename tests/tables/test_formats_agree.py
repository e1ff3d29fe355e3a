"""CSV, Excel and Parquet with the same content give the same labels, ids, features, predictions."""

import datetime
import sys
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow
import pyarrow.parquet
import pytest

from lemll.exceptions import LemllError
from lemll.tables import LabelSpec, TableEncoder, read_table, split_table
from lemll.tables.columns import inspect_column

ROOT = Path(__file__).parents[2]


@pytest.fixture(name="bench_tables")
def _bench_tables(monkeypatch):
    """Return the benchmark that compares many tables; it is not part of the package."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    from benchmarks import bench_tables

    return bench_tables


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(8))
def test_the_same_table_in_five_files(bench_tables, tmp_path, seed):
    assert list(bench_tables.differences(bench_tables.make_sample(seed), tmp_path, seed)) == []


def write_excel(path, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_excel_keeps_tags_that_look_like_gaps(tmp_path):
    rows = [["x", "tags"], [1, "None"], [2, "NA;sea"], [3, "null"]]
    path = write_excel(tmp_path / "t.xlsx", rows)
    found = split_table(read_table(path, keep=["tags"]), LabelSpec(tags="tags"))
    assert found.label_names == ("NA", "None", "null", "sea")


def test_whole_numbers_beside_a_null_stay_whole(tmp_path):
    columns = {
        "key": [9007199254740993, 9007199254740995, 5],
        "tags": [7, None, 8],
        "x": [1.5, 2.5, 3.5],
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", keep=["key", "tags"])
    found = split_table(table, LabelSpec(tags="tags", untagged="unknown"), ids="key")
    assert found.ids == ("9007199254740993", "9007199254740995", "5")
    assert found.label_names == ("7", "8")
    columns["key"] = [9007199254740993, None, 5]
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    cells = read_table(tmp_path / "t.parquet", keep=["key"]).frame["key"].tolist()
    assert cells == ["9007199254740993", None, "5"]


def test_only_empty_cells_of_labels_depend_on_untagged(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,sea\n1,1\n2,?\n3,NA\n4,\n5,0\n", encoding="utf-8")
    none, unknown = (
        split_table(read_table(path), LabelSpec(labels=("sea",), untagged=word)).Y[:, 0]
        for word in ("none", "unknown")
    )
    np.testing.assert_array_equal(none, [1, np.nan, np.nan, 0, 0])
    np.testing.assert_array_equal(unknown, [1, np.nan, np.nan, np.nan, 0])


def test_one_word_among_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{i};{i if i % 8 else f'{i},5'}\n" for i in range(39))
    path.write_text(f"n;x\n{rows}40;unknown\n", encoding="utf-8")
    cells = read_table(path).frame["x"]
    assert cells.tolist()[7:9] == ["7", "8.5"]
    assert cells.tolist()[-1] == "unknown"
    assert inspect_column("x", cells).gaps == ("unknown",)


def test_a_comma_in_few_new_rows_is_not_taken_for_a_gap(tmp_path):
    train = tmp_path / "t.csv"
    train.write_text("n;x\n" + "".join(f"{i};{i % 9},5\n" for i in range(40)), encoding="utf-8")
    encoder = TableEncoder().fit(read_table(train).frame)
    new = tmp_path / "n.csv"
    new.write_text("n;x\n1;4\n2;30,5\n3;unknown\n4;6\n5;7\n", encoding="utf-8")
    with pytest.raises(LemllError, match="'x' holds the number '30,5'.*`decimal=','` or"):
        encoder.transform(read_table(new).frame)
    table = read_table(new, decimal=",")
    assert table.frame["x"].tolist() == ["4", "30.5", "unknown", "6", "7"]
    new.write_text("n,x\n1,4\n2,30.5\n3,unknown\n4,6\n5,7\n", encoding="utf-8")
    expected = encoder.transform(read_table(new).frame)
    np.testing.assert_array_equal(encoder.transform(table.frame), expected)


def test_lists_of_parquet_are_the_lists_of_text(tmp_path):
    columns = {"tags": [["sea", None, "été"], [], None], "x": [1, 2, 3]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", keep=["tags"])
    for sep in (None, ";"):
        found = split_table(table, LabelSpec(tags="tags", sep=sep, untagged="unknown"))
        assert found.label_names == ("sea", "été")
        np.testing.assert_array_equal(found.Y, [[1, 1], [0, 0], [np.nan, np.nan]])


def test_dates_reach_the_end_of_the_calendar(tmp_path):
    days = [datetime.date(2024, 1, 1), datetime.date(9999, 12, 31), None]
    pyarrow.parquet.write_table(
        pyarrow.table({"when": days, "x": [1, 2, 4]}), tmp_path / "t.parquet"
    )
    write_excel(tmp_path / "t.xlsx", [["when", "x"], *zip(days, [1, 2, 4], strict=True)])
    (tmp_path / "t.csv").write_text("when,x\n2024-01-01,1\n9999-12-31,2\n,4\n", encoding="utf-8")
    encoded = []
    for suffix in ("csv", "xlsx", "parquet"):
        encoder = TableEncoder().fit(read_table(tmp_path / f"t.{suffix}").frame)
        assert [column.kind for column in encoder.columns_] == ["date", "number"]
        encoded.append(encoder.transform(read_table(tmp_path / f"t.{suffix}").frame))
    np.testing.assert_array_equal(encoded[0], encoded[1])
    np.testing.assert_array_equal(encoded[0], encoded[2])
