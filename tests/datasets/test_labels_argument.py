"""What ``labels=`` may be: the same for ARFF and for tables."""

import numpy as np
import pytest

from lemll.datasets import read_arff, read_table
from lemll.exceptions import DatasetFormatError

COLUMNS = ("x", "sky", "y", "sea")


@pytest.fixture(params=["arff", "csv"])
def read(request, tmp_path):
    """Read one small set, from either format, with the labels asked for."""
    path = tmp_path / f"a.{request.param}"
    if request.param == "csv":
        path.write_text(",".join(COLUMNS) + "\n0,1,1,0\n1,0,1,1\n")
        return lambda labels: read_table(path, labels)
    header = "".join(f"@attribute {name} numeric\n" for name in COLUMNS)
    path.write_text(f"@relation r\n{header}@data\n0,1,1,0\n1,0,1,1\n")
    return lambda labels: read_arff(path, labels)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ("sea", ("sea",)),
        (["sea", "sky"], ("sky", "sea")),
        (("sky",), ("sky",)),
        (np.array(["sky", "sea"]), ("sky", "sea")),
        (-1, ("sea",)),
        (np.int64(2), ("x", "sky")),
        (3, ("x", "sky", "y")),
    ],
)
def test_names_and_counts(read, labels, names):
    data = read(labels)
    assert data.label_names == names
    assert data.feature_names == tuple(name for name in COLUMNS if name not in names)


def test_an_xml_file_as_text_or_path(read, tmp_path):
    (tmp_path / "other.xml").write_text("<labels><label name='sea'/></labels>")
    assert read(tmp_path / "other.xml").label_names == ("sea",)
    assert read(str(tmp_path / "other.xml")).label_names == ("sea",)
    (tmp_path / "labels.txt").write_text("<labels><label name='sky'/></labels>")
    assert read(str(tmp_path / "labels.txt")).label_names == ("sky",)
    with pytest.raises(DatasetFormatError, match="no such file"):
        read("nowhere.xml")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "labels= is empty; expected at least one"),
        (COLUMNS, "all 4 columns are labels, so no feature is left"),
        (4, "all 4 columns are labels, so no feature is left"),
        (-4, "all 4 columns are labels, so no feature is left"),
        (0, "0 labels were requested, but there are 4 columns; expected between 1 and 3"),
        (-5, "-5 labels were requested, but there are 4 columns"),
        ("sun", r"1 of the 1 labels are not among the columns.*\(got 'sun'\)"),
        (["sea", "sun", "s" * 500], "2 of the 3 labels are not among the columns"),
        ("\0", "not among the columns"),
        ("s" * 5000, "not among the columns"),
    ],
)
def test_refusals(read, labels, message):
    with pytest.raises(DatasetFormatError, match=message):
        read(labels)


@pytest.mark.parametrize("labels", [True, False, 1.5, b"sea", object()])
def test_what_is_neither_name_nor_count(read, labels):
    with pytest.raises(TypeError, match="must be column names, an XML file, or a whole number"):
        read(labels)


@pytest.mark.parametrize("labels", [[1, 3], ["sea", None], [True] * 4, np.array([0, 1])])
def test_names_must_be_text(read, labels):
    with pytest.raises(TypeError, match="must name columns by text"):
        read(labels)
