"""Round trips and hostile text, as hypothesis invents them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from lemll.datasets import Dataset, read_arff, write_arff
from lemll.datasets._columns import read_label_xml
from lemll.exceptions import DatasetFormatError

pytestmark = pytest.mark.slow

EXAMPLES = settings(
    # `make nightly` runs more, and `python -m benchmarks fuzz` many more.
    max_examples=max(300, settings().max_examples),
    deadline=10_000,  # milliseconds for one tiny file: only a hang takes that long
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
NAMES = st.text(max_size=8) | st.sampled_from(
    ["it's", '"', "\\", "\\'", "a b", "{0,1}", "%", "?", "é", "\n", "\r\n", "\t", ",", "-C 3", ""]
)
OPTIONS = re.compile(r"(:\s*|\s|^)-[cC]\s+-?[0-9]{1,9}(?![0-9]).*", re.DOTALL)
RELATIONS = NAMES | st.lists(
    st.sampled_from(
        ["plain", "it's", "Größe", ":", " ", "\t", "-C", "-c", "3", "-2", " -C 3", ": -C 3"]
    )
).map("".join)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9).map(float)


@st.composite
def datasets(draw):
    n_rows, n_features, n_labels = (draw(st.integers(1, 4)) for _ in range(3))
    cells = draw(st.lists(NUMBERS | st.just(0.0), min_size=n_rows * n_features,
                          max_size=n_rows * n_features))  # fmt: skip
    X = np.array(cells).reshape(n_rows, n_features)
    bits = draw(st.lists(st.booleans(), min_size=n_rows * n_labels, max_size=n_rows * n_labels))
    names = draw(
        st.lists(NAMES, min_size=n_features + n_labels, max_size=n_features + n_labels, unique=True)
    )
    return Dataset(
        X=sparse.csr_array(X) if draw(st.booleans()) else X,
        Y=np.array(bits).reshape(n_rows, n_labels),
        feature_names=names[:n_features],
        label_names=names[n_features:],
        name=draw(RELATIONS),
    )


@EXAMPLES
@given(dataset=datasets(), suffix=st.sampled_from(["", ".gz"]))
def test_what_was_written_is_read_back(tmp_path_factory, dataset, suffix):
    path = tmp_path_factory.getbasetemp() / f"fuzz.arff{suffix}"
    write_arff(dataset, path)
    back = read_arff(path)
    assert back.name == OPTIONS.sub("", dataset.name, count=1)
    assert back.feature_names == dataset.feature_names
    assert back.label_names == dataset.label_names
    np.testing.assert_array_equal(back.Y, dataset.Y)
    assert sparse.issparse(back.X) == sparse.issparse(dataset.X)
    mine, other = (X.toarray() if sparse.issparse(X) else X for X in (dataset.X, back.X))
    np.testing.assert_array_equal(mine, other)


FRAGMENTS = st.sampled_from(
    [b"@relation", b"@attribute", b"@data", b"\n", b"\r\n", b" ", b"\t", b"{", b"}", b",", b"'",
     b'"', b"\\", b"%", b"?", b"-C 1", b"'r: -C 2'", b"{0,1}", b"{a,b}", b"numeric", b"string",
     b"0", b"1", b"-1", b"2.5", b"1e400", b"nan", b"x", b"{0 1}", b"{0 1,1 1}", b"\xff", b"\x00",
     b"\xc3\xa9", b"@", b"9999999999", b"1,0\n", b"@attribute a {0,1}\n", b"@attribute b real\n"]
)  # fmt: skip
TEXTS = st.lists(FRAGMENTS | st.binary(max_size=3), max_size=40).map(b"".join)
HEADER = b"@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute x numeric\n@attribute c {a,'b c'}\n"


@EXAMPLES
@given(text=TEXTS, with_header=st.booleans())
def test_hostile_text_is_read_or_refused_with_our_exception(text, with_header):
    try:
        data = read_arff(HEADER + b"@data\n" + text if with_header else text)
    except DatasetFormatError:
        return
    assert np.isin(data.Y, (0, 1)).all()
    assert data.X.shape == (len(data), len(data.feature_names))


def xml_of(tree) -> str:
    name, children = tree
    inner = "".join(map(xml_of, children))
    quoted = "".join(f"&#{ord(character)};" for character in name)
    return f'<label name="{quoted}">{inner}</label>'


def names_of(tree) -> list[str]:
    name, children = tree
    return [name, *(inner for child in children for inner in names_of(child))]


XML_NAMES = st.text(
    st.characters(min_codepoint=0x20, exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"),
    max_size=6,
)
TREES = st.recursive(
    st.tuples(XML_NAMES, st.just([])),
    lambda inner: st.tuples(XML_NAMES, st.lists(inner, max_size=3)),
    max_leaves=5,
)


@EXAMPLES
@given(trees=st.lists(TREES, min_size=1, max_size=4), namespace=st.booleans())
def test_xml_names_are_read_back_in_document_order(trees, namespace):
    names = [name for tree in trees for name in names_of(tree)]
    attribute = ' xmlns="http://mulan.sourceforge.net/labels"' if namespace else ""
    text = f"<labels{attribute}>{''.join(map(xml_of, trees))}</labels>".encode()
    if len(set(names)) == len(names):
        assert read_label_xml(text) == tuple(names)
    else:
        with pytest.raises(DatasetFormatError, match="a label is listed twice"):
            read_label_xml(text)


XML_FRAGMENTS = st.sampled_from(
    [b"<labels>", b"</labels>", b"<label name='a'>", b"<label name='b'/>", b"</label>", b"<label/>",
     b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"&a;", b"&lt;", b"<?xml version='1.0' encoding='utf-7'?>",
     b"<?xml version='1.0' encoding='x'?>", b"<!--", b"-->", b"<![CDATA[", b"\xff\xfe", b"\x00",
     b"<", b">", b"'", b"\xc3\xa9", b" ", b"<labels xmlns='u'>"]
)  # fmt: skip


@EXAMPLES
@given(text=st.lists(XML_FRAGMENTS | st.binary(max_size=3), max_size=20).map(b"".join))
def test_hostile_xml_is_read_or_refused_with_our_exception(text):
    try:
        names = read_label_xml(text)
    except DatasetFormatError:
        return
    assert len(names) == len(set(names)) > 0
