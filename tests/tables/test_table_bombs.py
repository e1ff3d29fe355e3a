"""Small tables that ask for much are refused before they get it, with the way out."""

import io
import zipfile

import numpy as np
import openpyxl
import pyarrow
import pyarrow.parquet
import pytest
from support import Peak

from lemll.exceptions import DatasetFormatError, LemllError
from lemll.tables import LabelSpec, read_table, split_table

SHEET = "xl/worksheets/sheet1.xml"


def refused(path, message):
    """Read a file that is refused, and check that it takes little memory."""
    with Peak() as peak, pytest.raises(DatasetFormatError, match=message):
        read_table(path)
    assert peak.bytes < 2**26


def repeated(path, value, rows):
    """Write one value many times, which takes a few bytes."""
    column = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(np.zeros(rows, dtype=np.int32)), pyarrow.array([value])
    )
    pyarrow.parquet.write_table(pyarrow.table({"x": column}), path, row_group_size=rows)
    return path


def workbook(path, change):
    """Write a workbook, and change its parts."""
    book = openpyxl.Workbook()
    book.active.append(["x", "y"])
    book.active.append([1, "sea"])
    buffer = io.BytesIO()
    book.save(buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return path


def in_sheet(text):
    """Put XML at the end of the rows."""
    return lambda name, part: (
        part.replace(b"</sheetData>", text + b"</sheetData>") if name == SHEET else part
    )


def test_repeated_numbers_of_parquet(tmp_path):
    path = repeated(tmp_path / "t.parquet", 1.5, 5_000_000)
    assert path.stat().st_size < 2**17
    refused(path, "would take 320000000 bytes, .*; if the file is correct, save the table as CSV")


def test_repeated_texts_of_parquet(tmp_path):
    path = repeated(tmp_path / "t.parquet", "a" * 10_000, 50_000)
    refused(path, "its arrays would take 503200")


def test_a_long_list_of_parquet(tmp_path):
    elements = pyarrow.array(np.ones(5_000_000, dtype=np.int8))
    column = pyarrow.ListArray.from_arrays(pyarrow.array([0, 5_000_000]), elements)
    pyarrow.parquet.write_table(pyarrow.table({"tags": column}), tmp_path / "t.parquet")
    refused(tmp_path / "t.parquet", "its arrays would take 320000000")


def test_texts_of_parquet_that_repeat_beginnings(tmp_path):
    pyarrow.parquet.write_table(
        pyarrow.table({"x": ["a" * 1000] * 1000}),
        tmp_path / "t.parquet",
        use_dictionary=False,
        column_encoding={"x": "DELTA_BYTE_ARRAY"},
    )
    refused(tmp_path / "t.parquet", "DELTA_BYTE_ARRAY; use PLAIN or a dictionary")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("XFD3", "the sheet has '1' in cell XFD3, but its header names 2 columns; name"),
        ("A20000", "a cell in row 20000, below 19997 empty rows; delete what is not part of the"),
        pytest.param("A1048576", "a cell in row 1048576", marks=pytest.mark.slow),
    ],
)
def test_a_lone_cell_of_excel(tmp_path, cell, message):
    row = cell.lstrip("AFDX")
    xml = f'<row r="{row}"><c r="{cell}"><v>1</v></c></row>'.encode()
    refused(workbook(tmp_path / "t.xlsx", in_sheet(xml)), message)


def test_a_wrong_size_of_a_sheet(tmp_path):
    def grow(name, part):
        return part.replace(b'ref="A1:B2"', b'ref="A1:XFD1048576"') if name == SHEET else part

    path = workbook(tmp_path / "t.xlsx", grow)
    with zipfile.ZipFile(path) as archive:
        assert b"XFD1048576" in archive.read(SHEET)
    assert read_table(path).frame.shape == (1, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (in_sheet(b" " * 2**22), "expands to more than 1048576 bytes.*save the sheet as CSV"),
        (in_sheet(b"<row><c/></row>" * 2**18), "expands to more than 1048576 bytes"),
        (
            lambda name, part: b"<!DOCTYPE a [<!ENTITY e 'e'>]>" + part if name == SHEET else part,
            "the file has a document type or XML in UTF-16; save it again",
        ),
        (
            lambda name, part: part.decode().encode("utf-16") if name == SHEET else part,
            "the file has a document type or XML in UTF-16; save it again",
        ),
        (in_sheet(b"<sheet />" * 1001), "the file has more than 1000 sheets; save one of them"),
    ],
)
def test_parts_of_excel(tmp_path, change, message):
    refused(workbook(tmp_path / "t.xlsx", change), message)


def test_unusual_packing_of_excel(tmp_path):
    path = workbook(tmp_path / "t.xlsx", in_sheet(b""))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("xl/more.xml", b"<a/>")
    refused(path, "the file packs 'xl/more.xml' in an unusual way; save it again")


def test_a_table_of_too_many_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"c{j}" for j in range(20_001)) + "\n", encoding="utf-8")
    refused(path, "the table has 20001 columns, and at most 20000 can be read; leave columns out")


def test_nested_brackets_in_tags(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('x,tags\n1,["sea"]\n2,' + "[" * 20_000 + "\n", encoding="utf-8")
    with pytest.raises(LemllError, match="row 2 of column 'tags' must be a list of tags.*mend the"):
        split_table(read_table(path, keep=["tags"]), LabelSpec(tags="tags"))
