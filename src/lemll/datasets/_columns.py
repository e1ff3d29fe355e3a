"""Find the label columns, by one rule for all formats with named columns."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args, overload
from xml.parsers import expat

import numpy as np
import numpy.typing as npt

from lemll._files import NAME_BYTES, Budget
from lemll.datasets._streams import plain_suffix, read_capped
from lemll.exceptions import DatasetFormatError

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|[\\'\"%nrt])")
ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def unescape(text: str) -> str:
    """Replace the escapes in a name, quoted or not."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(
        lambda m: chr(int(m[1][1:], 16)) if len(m[1]) > 1 else ESCAPED.get(m[1], m[1]), text
    )


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


_SHOWN = 6


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NumberedNames(Sequence[str]):
    """The names ``x0, x1, ...``. Each name is created when it is used.

    A sparse data set may have millions of columns. One string per column would need more memory
    than the data.

    Parameters
    ----------
    prefix : str
        The text before the number.
    numbers : range
        The numbers.

    Examples
    --------
    >>> NumberedNames("x", range(3))
    ('x0', 'x1', 'x2')
    >>> NumberedNames("x", range(30_000_000))
    ('x0', 'x1', 'x2', ..., 'x29999999')
    """

    prefix: str
    numbers: range

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> NumberedNames: ...
    def __getitem__(self, index: int | slice) -> str | NumberedNames:
        if isinstance(index, slice):
            return NumberedNames(self.prefix, self.numbers[index])
        return f"{self.prefix}{self.numbers[index]}"

    def __iter__(self) -> Iterator[str]:
        return (f"{self.prefix}{number}" for number in self.numbers)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames) and self.prefix == other.prefix:
            return self.numbers == other.numbers
        if isinstance(other, tuple | NumberedNames):
            return len(self) == len(other) and all(
                mine == theirs for mine, theirs in zip(self, other, strict=True)
            )
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))  # equal objects must have equal hashes, and this may equal a tuple

    def __repr__(self) -> str:
        if len(self) <= _SHOWN:
            return repr(tuple(self))
        first = ", ".join(map(repr, self[:3]))
        return f"({first}, ..., {self[-1]!r})"


def has_odd_characters(text: str) -> bool:
    """Tell whether `text` contains characters that float() accepts but data formats do not.

    float() accepts "1_000" and the digits of other scripts. No data format allows them.
    """
    return not text.isascii() or "_" in text


def to_number(text: str) -> float | None:
    """Return `text` as a finite number, or None if it is not one.

    >>> to_number("2.5"), to_number("1_000"), to_number("inf")
    (2.5, None, None)
    """
    if has_odd_characters(text):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


Kind = Literal["auto", "logical", "distribution"]
Missing = Literal["error", "nan"]


def check_kind(kind: str) -> None:
    """Raise an error if `kind` is not a known value."""
    if kind not in get_args(Kind):
        raise ValueError(f"kind={kind!r} must be 'auto', 'logical' or 'distribution'")


def check_missing(missing: str) -> None:
    """Raise an error if `missing` is not a known value."""
    if missing not in get_args(Missing):
        raise ValueError(f"missing={missing!r} must be 'error' or 'nan'")


Labels = str | Path | int | Sequence[str]


def resolve_labels(columns: Sequence[str], labels: Labels, file: str) -> npt.NDArray[np.bool_]:
    """Find the label columns.

    Parameters
    ----------
    columns : sequence of str
        All column names, in the order of the file.
    labels : str, Path, int or sequence of str
        One column name, several column names, the path of a Mulan XML file, or a count `n` (the
        first `n` columns, or the last ``-n`` columns if `n` is negative).
    file : str
        Name of the file in error messages.

    Returns
    -------
    ndarray of shape (n_columns,), bool
        True for labels. At least one column is a label, and at least one is not.
    """
    if isinstance(labels, int | np.integer) and not isinstance(labels, bool):
        mask = _count_mask(int(labels), len(columns), file)
    else:
        mask = _name_mask(columns, _names(columns, labels, file), file)
    if mask.all():
        raise DatasetFormatError(
            f"all {len(columns)} columns are labels, so no feature is left; give fewer labels",
            file=file,
        )
    return mask


def _count_mask(count: int, width: int, file: str) -> npt.NDArray[np.bool_]:
    if count == 0 or abs(count) > width:
        raise DatasetFormatError(
            f"{count} labels were requested, but there are {width} columns; expected between 1 "
            f"and {width - 1} (negative: counted from the end)",
            file=file,
        )
    place = np.arange(width)
    return place < count if count > 0 else place >= width + count


def _names(columns: Sequence[str], labels: object, file: str) -> list[str]:
    if isinstance(labels, Path) or (
        isinstance(labels, str) and labels not in columns and _is_xml(labels)
    ):
        names: Sequence[object] = read_label_xml(labels)
    elif isinstance(labels, str):
        names = [labels]
    elif isinstance(labels, bool | bytes) or not hasattr(labels, "__iter__"):
        raise TypeError(
            f"labels={labels!r} must be column names, an XML file, or a whole number of columns"
        )
    else:
        names = list(labels)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"labels= must name columns by text, got {name!r} among the names")
    if not names:
        raise DatasetFormatError("labels= is empty; expected at least one label", file=file)
    return [str(name) for name in names]


def _is_xml(text: str) -> bool:
    return plain_suffix(Path(text)) == ".xml" or os.path.isfile(text)


def _name_mask(columns: Sequence[str], names: list[str], file: str) -> npt.NDArray[np.bool_]:
    occurrences = Counter(columns)
    # The XML files of Mulan copy the names from the ARFF file together with their escapes.
    found = [name if name in occurrences else unescape(name) for name in names]
    wanted = set(found)
    absent = [name for name in found if name not in occurrences]
    if absent:
        raise DatasetFormatError(
            f"{len(absent)} of the {len(names)} labels are not among the columns; expected column "
            "names, or the label file that belongs to this file",
            file=file,
            token=absent[0],
        )
    twice = next((name for name in columns if name in wanted and occurrences[name] > 1), None)
    if twice is not None:
        raise DatasetFormatError(
            "two columns have the name of one label; rename one of them", file=file, token=twice
        )
    return np.array([column in wanted for column in columns], dtype=bool)
