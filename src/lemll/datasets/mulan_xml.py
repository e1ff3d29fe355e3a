"""Read the label file of Mulan: an XML list of label names, which may form a hierarchy."""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat

from lemll._budget import NAME_BYTES, Budget
from lemll.datasets._streams import read_capped
from lemll.exceptions import DatasetFormatError

__all__ = ["read_label_xml"]


def read_label_xml(source: str | Path | bytes) -> tuple[str, ...]:
    """Read the label names of a Mulan XML file.

    A document type declaration is refused. The files of Mulan do not contain one, and only such a
    declaration can expand entities or read other files.

    Parameters
    ----------
    source : str, Path or bytes
        The file (plain or compressed), or its content.

    Returns
    -------
    tuple of str
        The names in the order of the document. A parent comes before its nested labels.

    Examples
    --------
    >>> read_label_xml(b"<labels><label name='sky'><label name='cloud'/></label></labels>")
    ('sky', 'cloud')
    """
    file = None if isinstance(source, bytes) else str(source)
    if isinstance(source, bytes):
        content, budget = source, Budget("<bytes>", len(source), None)
    else:
        content, budget = read_capped(Path(source))
    collector = _LabelCollector(file, budget)
    parser = collector.parser
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DatasetFormatError(
            f"not well-formed XML: {expat.errors.messages[error.code]}",
            file=file,
            line=error.lineno,
            column=error.offset + 1,
        ) from error
    except (ValueError, LookupError) as error:
        if isinstance(error, DatasetFormatError):
            raise
        # The declared encoding is unknown to Python, or expat cannot use it.
        raise DatasetFormatError(f"not readable as XML: {error}", file=file) from error
    if not collector.names:
        raise DatasetFormatError("the file has no label; expected <label name='...'>", file=file)
    return tuple(collector.names)


class _LabelCollector:
    def __init__(self, file: str | None, budget: Budget) -> None:
        self.file = file
        self.budget = budget
        self.names: list[str] = []
        self._seen: set[str] = set()
        self._depth = 0
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        # The separator of the parser stands between the namespace and the name of the element.
        element = tag.rpartition(" ")[2]
        if self._depth == 0 and element != "labels":
            raise self._error("the root element must be <labels>", element)
        self._depth += 1
        if element == "label":
            name = attributes.get("name")
            if name is None:
                raise self._error("a <label> has no name attribute", element)
            if name in self._seen:
                raise self._error("a label is listed twice", name)
            self.budget.charge(2 * NAME_BYTES + len(name))
            self._seen.add(name)
            self.names.append(name)

    def _end(self, _tag: str) -> None:
        self._depth -= 1

    def _refuse_doctype(self, name: str, *_: object) -> None:
        raise self._error("a document type declaration is not allowed in a label file", name)

    def _error(self, problem: str, token: str) -> DatasetFormatError:
        return DatasetFormatError(
            problem,
            file=self.file,
            line=self.parser.CurrentLineNumber,
            column=self.parser.CurrentColumnNumber + 1,
            token=token,
        )
