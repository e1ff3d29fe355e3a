"""The ARFF reader on hand-written files: dialects, oddities, and every message."""

import bz2
import gzip
import lzma

import numpy as np
import pytest
from scipy import sparse

from lemll.datasets import read_arff
from lemll.exceptions import DatasetFormatError

HEADER = b"""@relation 'toy: -C 2'
@attribute sky {0,1}
@attribute sea {0,1}
@attribute x numeric
@attribute y REAL
@data
"""
XML = "<labels><label name='{}'><label name='{}'></label></label></labels>"


def toarray(X):
    return X.toarray() if sparse.issparse(X) else X


def test_meka_dense_labels_first():
    data = read_arff(HEADER + b"1,0,2.5,-1e3\n0,1,0,4\n")
    assert data.label_names == ("sky", "sea")
    assert data.feature_names == ("x", "y")
    assert isinstance(data.X, np.ndarray)
    np.testing.assert_array_equal(data.X, [[2.5, -1000], [0, 4]])
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 1]])
    assert data.Y.dtype == np.int8


def test_meka_negative_count_means_labels_at_the_end():
    text = (HEADER + b"5,6,1,0\n").replace(b"-C 2", b"-C -2").replace(b"{0,1}", b"numeric")
    data = read_arff(text)
    assert data.label_names == ("x", "y")
    np.testing.assert_array_equal(data.X, [[5, 6]])


def test_sparse_rows_give_csr_and_the_header_gives_the_shape():
    # The last feature and the last label never occur: a reader that takes the shape from the
    # largest index would shift a feature into the labels.
    data = read_arff(HEADER + b"{0 1, 2 2.5}\n{}\n{ 2  -1 }\n")
    assert isinstance(data.X, sparse.csr_array)
    np.testing.assert_array_equal(data.X.toarray(), [[2.5, 0], [0, 0], [-1, 0]])
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 0], [0, 0]])


def test_dense_and_sparse_rows_mix():
    data = read_arff(HEADER + b"{0 1,3 7}\n0,1,2,3\n{2 4}\n")
    np.testing.assert_array_equal(toarray(data.X), [[0, 7], [2, 3], [4, 0]])
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 1], [0, 0]])


def test_mulan_labels_by_name_in_arff_order(tmp_path):
    (tmp_path / "toy.arff").write_bytes(HEADER + b"1,0,2.5,3\n")
    # The XML lists them in another order, and nested.
    (tmp_path / "toy.xml").write_text(XML.format("sea", "sky"))
    data = read_arff(tmp_path / "toy.arff")
    assert data.label_names == ("sky", "sea")
    np.testing.assert_array_equal(data.Y, [[1, 0]])
    assert data.source == str(tmp_path / "toy.arff")


def test_xml_beside_the_file_wins_over_the_relation_name(tmp_path):
    (tmp_path / "toy.arff").write_bytes(HEADER + b"1,0,1,3\n")
    (tmp_path / "toy.xml").write_text("<labels><label name='x'/></labels>")
    assert read_arff(tmp_path / "toy.arff").label_names == ("x",)
    assert read_arff(tmp_path / "toy.arff", ["sea"]).label_names == ("sea",)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
def test_compressed_files(tmp_path, suffix, compress):
    path = tmp_path / f"toy.arff{suffix}"
    path.write_bytes(compress(HEADER + b"1,0,2.5,3\n"))
    np.testing.assert_array_equal(read_arff(path).X, [[2.5, 3]])


def test_several_files_become_one_set(tmp_path):
    parts = []
    for i, row in enumerate((b"1,0,2.5,3\n", b"{1 1,3 9}\n")):
        parts.append(tmp_path / f"part{i}.arff")
        parts[-1].write_bytes(HEADER + row)
    data = read_arff(parts)
    np.testing.assert_array_equal(toarray(data.X), [[2.5, 3], [0, 9]])
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 1]])


def test_comments_blank_lines_crlf_and_case():
    text = (
        b"% a comment\r\n\r\n@RELATION 'toy: -C 1' %50\r\n@Attribute sky {0,1} % why not\r\n"
        b"@ATTRIBUTE x NUMERIC\r\n@DATA\r\n% more\r\n\r\n1 , 2 % last\r\n\t0,3\r\n"
    )
    data = read_arff(text)
    np.testing.assert_array_equal(data.Y, [[1], [0]])
    np.testing.assert_array_equal(data.X, [[2], [3]])


def test_quoted_and_escaped_names():
    text = rb"""@relation "it's: -C 1"
@attribute 'a \'b\' \\ % {' {0,1}
@attribute "two words" numeric
@attribute m\'usica numeric
@attribute dise\~no numeric
@data
{1 2,3 4}
""".replace(b"\r", b"")
    data = read_arff(text)
    assert data.label_names == (r"a 'b' \ % {",)
    assert data.feature_names == ("two words", "m'usica", r"dise\~no")
    assert data.name == "it's"


def test_latin1_and_utf8_names():
    text = "@relation 'r: -C 1'\n@attribute é {0,1}\n@attribute x numeric\n@data\n1,2\n"
    assert read_arff(text.encode("utf-8")).label_names == ("é",)
    assert read_arff(text.encode("latin-1")).label_names == ("é",)
    assert read_arff(b"\xef\xbb\xbf" + text.encode("utf-8")).label_names == ("é",)


NUMERIC = HEADER.replace(b"-C 2", b"-C -2")
NOMINAL = b"""@relation 'r: -C 1'
@attribute sky {0,1}
@attribute colour {red, 'dark blue', green}
@attribute flag {0, 1}
@data
"""


def test_nominal_features_as_codes_and_one_hot():
    rows = b"1,'dark blue',1\n0,red,0\n1,green,1\n"
    np.testing.assert_array_equal(read_arff(NOMINAL + rows).X, [[1, 1], [0, 0], [2, 1]])
    data = read_arff(NOMINAL + rows, nominal="onehot")
    assert data.feature_names == ("colour=red", "colour=dark blue", "colour=green", "flag")
    np.testing.assert_array_equal(data.X, [[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 1]])


def test_one_hot_of_sparse_rows_counts_the_omitted_first_value():
    data = read_arff(NOMINAL + b"{0 1,1 green}\n{2 1}\n", nominal="onehot")
    np.testing.assert_array_equal(data.X.toarray(), [[0, 0, 1, 0], [1, 0, 0, 1]])


@pytest.mark.parametrize("rows", [b"1,?,1\n0,green,0\n", b"{0 1,1 ?,2 1}\n{1 green}\n"])
def test_one_hot_of_a_missing_value_has_no_indicator(rows):
    data = read_arff(NOMINAL + rows, nominal="onehot", missing="nan")
    np.testing.assert_array_equal(toarray(data.X), [[0, 0, 0, 1], [0, 0, 1, 0]])


@pytest.mark.parametrize(
    ("relation", "name"),
    [
        (b"'toy: -C 2'", "toy"),
        (b"'toy: -C 2 -split-percentage 66'", "toy"),
        (b"'toy:-c 2'", "toy"),
        (b"'toy -C 2'", "toy"),
        (b"'-C 2'", ""),
        (b"'a: b : -C 2'", "a: b "),
    ],
)
def test_the_name_has_no_options(relation, name):
    assert read_arff(HEADER.replace(b"'toy: -C 2'", relation) + b"1,0,1,1\n").name == name


def test_missing_values_are_kept_as_nan_on_request():
    data = read_arff(HEADER + b"1,0,?,3\n", missing="nan")
    np.testing.assert_array_equal(data.X, [[np.nan, 3]])
    data = read_arff(HEADER + b"{0 1,3 ?}\n", missing="nan")
    np.testing.assert_array_equal(data.X.toarray(), [[0, np.nan]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "the file is empty"),
        (b"   \n", "the file is empty"),
        (HEADER.replace(b"@data", b""), "no @data line"),
        (b"@relation r\n@data\n1\n", "no @attribute before @data"),
        (b"hello\n@data\n", "line 1: a header line must begin with @relation"),
        (b"@foo bar\n@data\n", "line 1: unknown keyword"),
        (b"@attribute\n@data\n", "an attribute needs a name and a type"),
        (b"@attribute 'x numeric\n@data\n", "with its quotes closed"),
        (b"@attribute x\n@data\n", "the attribute has no type"),
        (b"@attribute x string\n@data\n", "'x' must be numeric or nominal"),
        (b"@attribute x {a,b\n@data\n", "the list of nominal values is broken"),
        (b"@attribute x {a,,b}\n@data\n", "the list of nominal values is broken"),
        (b"@attribute x {a,a}\n@data\n", "a nominal value is listed twice"),
        (b"@attribute x {a} b\n@data\n", "unexpected text after the nominal values"),
        (b"@relation 'r\n@data\n", "the quote of the relation name is never closed"),
        (b"@relation 'r' s\n@data\n", "unexpected text after the relation name"),
        (HEADER, "no row after @data"),
        (HEADER + b"1,0,2\n", r"line 7, column 6: expected ',' here: 3 values so far"),
        (HEADER + b"1,0,2,3,4\n", "line 7, column 8: unexpected text after the 4 values"),
        (HEADER + b"1,0,x,3\n", r"line 7, column 5: expected a finite .* for 'x' \(got 'x,3'\)"),
        (HEADER + b"1,0,1_0,3\n", "expected a finite number for 'x'"),
        (HEADER + b"1,0,nan,3\n", "expected a finite number for 'x'"),
        (HEADER + b"1,0,1e999,3\n", "expected a finite number for 'x'"),
        (HEADER + b"2,0,1,3\n", r"line 7, column 1: label 'sky' must be 0 or 1 .*\(got '2"),
        (HEADER + b"2,0,1,3\n", "line 7, column 1: label 'sky' must be 0 or 1 in every row"),
        (NOMINAL + b"1,red,2\n", "expected 0 or 1 for 'flag'"),
        (HEADER + b"1,0,?,3\n", "missing value in 'x'; pass `missing='nan'`"),
        (HEADER + b"1,0,,3\n", "expected a value here"),
        (HEADER + b"{4 1}\n", "column index 4 is too large; the header has 4"),
        (HEADER + b"{2 1,2 3}\n", "column 2 occurs twice"),
        (HEADER + b"{2 1,3}\n", "expected a column index, a space and a value"),
        (HEADER + b"{2 1 3 4}\n", "expected ',' or '}' here"),
        (HEADER + b"{2 1\n", "expected ',' or '}' here"),
        (HEADER + b"{2 1} 5\n", "unexpected text after the row"),
        (HEADER + b"{-1 1}\n", "expected a column index"),
        (HEADER + b"{1.0 1}\n", "expected a column index"),
        (NOMINAL + b"1,pink,0\n", "not among the nominal values of 'colour'"),
        (NOMINAL.replace(b"-C 1", b"-C 2") + b"1,red,0\n", "label 'colour' must be declared {0,1}"),
        (HEADER.replace(b"-C 2", b"-C 9"), "9 labels were requested, but there are 4 columns"),
        (HEADER.replace(b"-C 2", b"-C 4"), "all 4 columns are labels, so no feature is left"),
        (HEADER.replace(b"-C 2", b"-C 2 -C 3"), r"several label counts \[2, 3\]"),
        (HEADER.replace(b": -C 2", b""), "cannot tell which attributes are labels"),
        (NUMERIC + b"1,0,1,0\n\n1,0,1,3\n", "line 9, column 7: label 'y' must be 0 or 1"),
        (NUMERIC + b"{}\n{2 1,3 7}\n", "line 8, column 7: label 'y' must be 0 or 1"),
        (NUMERIC + b"1,0,1,-1\n", r"line 7, column 7: label 'y' .*; labels -1/\+1 must be"),
        (HEADER.replace(b"sky {0,1}", b"sky {1,0}") + b"{2 1}\n", r"'sky' is declared \{1,0\}, so"),
    ],
)  # fmt: skip
def test_each_fault_has_its_message(text, message):
    with pytest.raises(DatasetFormatError, match=message):
        read_arff(text)


def test_the_reversed_binary_error_names_the_file(tmp_path):
    (tmp_path / "a.arff").write_bytes(HEADER.replace(b"sky {0,1}", b"sky {1,0}") + b"{2 1}\n")
    with pytest.raises(DatasetFormatError, match="so it would be 1") as caught:
        read_arff(tmp_path / "a.arff")
    assert caught.value.file == str(tmp_path / "a.arff")


def test_label_of_the_xml_that_the_arff_lacks(tmp_path):
    (tmp_path / "toy.arff").write_bytes(HEADER + b"1,0,2.5,3\n")
    (tmp_path / "toy.xml").write_text(XML.format("sea", "sun"))
    with pytest.raises(DatasetFormatError, match=r"1 of the 2 labels are not among .*'sun'"):
        read_arff(tmp_path / "toy.arff")


def test_label_name_that_stands_twice():
    text = HEADER.replace(b"sea", b"sky") + b"1,0,1,1\n"
    with pytest.raises(DatasetFormatError, match="two columns have the name of one label"):
        read_arff(text, ["sky"])


def test_files_with_different_headers_are_refused():
    other = HEADER.replace(b"@attribute y REAL", b"@attribute z REAL")
    longer = HEADER.replace(b"@data", b"@attribute z REAL\n@data")
    with pytest.raises(DatasetFormatError, match="differs from 'y' in the first file"):
        read_arff([HEADER + b"1,0,1,1\n", other + b"1,0,1,1\n"])
    with pytest.raises(DatasetFormatError, match="5 attributes, but the first file has 4"):
        read_arff([HEADER + b"1,0,1,1\n", longer + b"1,0,1,1,1\n"])


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="nominal='dummy' must be 'codes' or 'onehot'"):
        read_arff(HEADER, nominal="dummy")
    with pytest.raises(ValueError, match="missing='drop' must be 'error' or 'nan'"):
        read_arff(HEADER, missing="drop")
    with pytest.raises(ValueError, match="empty sequence"):
        read_arff([])
    with pytest.raises(DatasetFormatError, match="not valid ascii"):
        read_arff(HEADER.replace(b"sky", b"\xe9"), encoding="ascii")


@pytest.mark.parametrize("label_count", [b"2", b"-2"])
def test_the_fast_paths_and_the_obvious_parser_agree(label_count):
    # A comment sends the whole block down the obvious path.
    rng = np.random.RandomState(0)
    header = b"@relation 'r: -C " + label_count + b"'\n"
    header += b"".join(b"@attribute a%d numeric\n" % j for j in range(9)) + b"@data\n"
    table = rng.randint(-99, 99, size=(200, 9)) * rng.choice([1, 0.25, 1e-7], size=(200, 9))
    table *= rng.rand(200, 9) < 0.4
    labels = slice(0, 2) if label_count == b"2" else slice(7, 9)
    table[:, labels] = rng.randint(0, 2, size=(200, 2))
    for integers in (False, True):
        cells = np.abs(np.rint(table)) if integers else table
        dense = b"".join(b",".join(b"%r" % v for v in row) + b"\n" for row in cells.tolist())
        sparse_rows = (
            b"".join(
                b"{" + b", ".join(b"%d %r" % (j, row[j]) for j in np.flatnonzero(row)) + b"}\n"
                for row in cells
            )
            .replace(b"np.float64(", b"")
            .replace(b")", b"")
        )
        if integers:
            sparse_rows = sparse_rows.replace(b".0", b"")
        for rows in (dense, sparse_rows):
            fast = read_arff(header + rows)
            obvious = read_arff(header + b"%\n" + rows)
            np.testing.assert_array_equal(toarray(fast.X), toarray(obvious.X))
            np.testing.assert_array_equal(fast.Y, obvious.Y)
            np.testing.assert_array_equal(fast.Y, cells[:, labels])
