"""Mulan's label files, and those who would abuse XML."""

import pytest

from lemll.datasets._columns import read_label_xml
from lemll.exceptions import DatasetFormatError

BOMB = b"""<!DOCTYPE labels [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<labels><label name="&b;"/></labels>"""
EXTERNAL = b"""<!DOCTYPE labels SYSTEM "file:///etc/hostname"><labels><label name="x"/></labels>"""


def test_nested_labels_are_flattened_in_document_order(tmp_path):
    text = b"""<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="animal"><label name="dog"></label><label name="cat"/></label><label name="car"/>
</labels>"""
    assert read_label_xml(text) == ("animal", "dog", "cat", "car")
    (tmp_path / "labels.xml").write_bytes(text)
    assert read_label_xml(tmp_path / "labels.xml") == read_label_xml(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "line 1, column .*: a document type declaration is not allowed"),
        (EXTERNAL, "a document type declaration is not allowed"),
        (b"", "not well-formed XML: no element found"),
        (b"<labels>", "not well-formed XML: no element found"),
        (b"<labels><label name='a'></labels>", "not well-formed XML: mismatched tag"),
        (b"<labels/>", "the file has no label"),
        (b"<other/>", "the root element must be <labels>"),
        (b"<labels><label/></labels>", "a <label> has no name attribute"),
        (b"<labels><label name='a'/><label name='a'/></labels>", "a label is listed twice"),
        (b"<?xml version='1.0' encoding='no-such'?><labels/>", "XML"),
        (b"\xff\xfe\x00", "XML"),
    ],
)
def test_each_fault_has_its_message(text, message):
    with pytest.raises(DatasetFormatError, match=message):
        read_label_xml(text)
