"""Text files as people have them: encodings, delimiters, decimal marks, and what is refused."""

import pytest

from lemll.exceptions import DatasetFormatError
from lemll.tables import read_table

TEXT = "name,width,città\nblu,1.5,Forlì\nrosso,2.5,Nîmes\n"


def write(tmp_path, text, name="t.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_is_recognised(tmp_path, encoding):
    table = read_table(write(tmp_path, TEXT, encoding=encoding))
    assert list(table.frame.columns) == ["name", "width", "città"]
    assert table.frame["città"].tolist() == ["Forlì", "Nîmes"]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_latin_is_recognised_and_named(tmp_path, encoding):
    table = read_table(write(tmp_path, TEXT, encoding=encoding))
    assert table.frame["città"].tolist() == ["Forlì", "Nîmes"]
    assert "read as latin-1" in table.notes


def test_the_encoding_may_be_given(tmp_path):
    path = write(tmp_path, "a,b\nж,1\n", encoding="cp1251")
    assert read_table(path, encoding="cp1251").frame["a"].tolist() == ["ж"]


@pytest.mark.parametrize(
    ("sign", "name"),
    [(",", "t.csv"), (";", "t.csv"), ("\t", "t.csv"), ("|", "t.csv"), ("\t", "t.tsv")],
)
def test_delimiters(tmp_path, sign, name):
    text = f'a{sign}b{sign}c\n1{sign}"x{sign}y"{sign}\n2{sign}z{sign}3\n'
    frame = read_table(write(tmp_path, text, name)).frame
    assert frame["b"].tolist() == [f"x{sign}y", "z"]
    assert frame["c"].tolist() == [None, "3"]


def test_tags_do_not_hide_the_delimiter(tmp_path):
    frame = read_table(write(tmp_path, "id,tags\n1,sea;sky\n2,sky;people\n")).frame
    assert frame["tags"].tolist() == ["sea;sky", "sky;people"]


def test_decimal_commas(tmp_path):
    text = "id;width;tags;note\n1;1,5;1,2;a, b\n2;-3;2,3;c\n3;;1,5;d\n4;1,25e3;1;e\n"
    table = read_table(write(tmp_path, text), keep=["tags"])
    assert table.frame["width"].tolist() == ["1.5", "-3", None, "1.25e3"]
    assert table.frame["tags"].tolist() == ["1,2", "2,3", "1,5", "1"]
    assert table.frame["note"].tolist()[0] == "a, b"
    assert table.notes == ("semicolon between the cells", "decimal commas")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,234,567", "1"], ["1234567", "1"]),
        (["1,234.5", "2"], ["1234.5", "2"]),
    ],
)
def test_commas_between_thousands(tmp_path, cells, expected):
    text = "id;sum\n" + "".join(f"r{i};{cell}\n" for i, cell in enumerate(cells))
    assert read_table(write(tmp_path, text)).frame["sum"].tolist() == expected


def test_the_other_columns_show_what_a_comma_is(tmp_path):
    text = "sum;{}\n1,234;{}\n"
    comma = read_table(write(tmp_path, text.format("w", "0,5")))
    assert comma.frame["sum"].tolist() == ["1.234"]
    point = read_table(write(tmp_path, text.format("w", "0.5")))
    assert point.frame["sum"].tolist() == ["1234"]


@pytest.mark.parametrize("text", ["sum;a\n1,234;x\n", "sum;a;b\n1,234;0,5;1.5\n"])
def test_doubt_about_commas_is_an_error(tmp_path, text):
    path = write(tmp_path, text)
    with pytest.raises(DatasetFormatError, match="a comma may be a decimal .*`decimal=','` or"):
        read_table(path)
    assert read_table(path, decimal=",").frame["sum"].tolist() == ["1.234"]
    assert read_table(path, decimal=".").frame["sum"].tolist() == ["1234"]


def test_words_for_missing(tmp_path):
    path = write(tmp_path, "id,a\nNA,NA\nb,?\nc,n/a\n")
    frame = read_table(path, keep=["id"]).frame
    assert frame["a"].tolist() == [None] * 3
    assert frame["id"].tolist() == ["NA", "b", "c"]


def test_a_column_without_a_name_is_the_index_of_a_frame(tmp_path):
    assert list(read_table(write(tmp_path, ",a\n0,1\n")).frame.columns) == ["column 1", "a"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "the file is empty; expected a header line"),
        ("a,b\n", {}, "the table has no rows below its header"),
        ("a,a\n1,2\n", {}, r"two columns have the same name; rename one of them \(got 'a'\)"),
        ("1,2\n3,4\n", {}, r"the first line must name the columns, but it holds numbers"),
        ("a,b\n1,2,3\n", {}, "line 2: the header has 2 cells, but this line has 3; pass `delim"),
        ('a,b\n"1,2\n', {}, "line 2: the line cannot be read .*; check its quotes"),
        ("a;b,c\n1;2,3\n", {}, "may be separated by comma and semicolon; pass `delimiter"),
        ("a,b\nж,1\n", {"encoding": "ascii"}, "the file is not ascii .*pass another `encoding"),
    ],
)
def test_refused_files(tmp_path, text, options, message):
    with pytest.raises(DatasetFormatError, match=message):
        read_table(write(tmp_path, text), **options)


def test_a_broken_mark_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xff\xfea\0,\0b\0\n\0\x00")
    with pytest.raises(DatasetFormatError, match="looks like utf-16 but is not .*`encoding`"):
        read_table(path)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("t.csv", {"encoding": "klingon"}, "`encoding` 'klingon' is not known; use utf-8"),
        ("t.csv", {"delimiter": "::"}, "`delimiter` must be one character, got '::'"),
        ("t.csv", {"decimal": "'"}, "`decimal` must be '.' or ','"),
        ("t.csv", {"sheet": "a"}, "`sheet` has no meaning for a .csv file; leave it out"),
        ("t.parquet", {"delimiter": ","}, "`delimiter` has no meaning for a .parquet file"),
        ("t.json", {}, "a table must be one of .csv, .tsv"),
    ],
)
def test_refused_options(tmp_path, name, options, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path, TEXT, name), **options)


def test_a_folder_is_not_a_file(tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(OSError, match="it is a directory, not a plain file"):
        read_table(tmp_path / "t.csv")
