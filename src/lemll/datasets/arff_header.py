"""The header of an ARFF file: @relation, @attribute, up to @data.

Every regular expression here is linear in the length of the line: repeats are possessive and their
alternatives are disjoint. Therefore a malicious header does not take longer than a normal header.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lemll._files import NAME_BYTES
from lemll.datasets._columns import ESCAPED, unescape
from lemll.datasets._streams import LineBlocks
from lemll.exceptions import DatasetFormatError

# A quoted text may contain its quote after a backslash. "++" and "*+" never give back a match.
_QUOTED = r"""'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+\""""
_NAME = re.compile(rf"\s*+(?:({_QUOTED})|([^\s{{'\"][^\s{{]*+))", re.DOTALL)
_NOMINAL_VALUE = re.compile(rf"\s*+(?:({_QUOTED})|([^,{{}}'\"][^,{{}}]*+))\s*+([,}}])", re.DOTALL)
# Only the escapes of Weka. A backslash before any other character means a backslash.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.+/-]++")
_NUMERIC_TYPES = frozenset({"numeric", "real", "integer"})


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column: its name and, if nominal, its values.

    Attributes
    ----------
    is_binary : bool
        Whether it is nominal with the values {0, 1}, which are read as numbers.
    """

    name: str
    values: tuple[str, ...] | None = None
    codes: Mapping[str, int] = field(default_factory=dict)
    is_binary: bool = field(init=False)

    def __post_init__(self) -> None:
        # Compute this once: it is needed for every cell, and there may be many values to check.
        binary = self.values is not None and set(self.values) <= {"0", "1"}
        object.__setattr__(self, "is_binary", binary)


@dataclass(frozen=True, slots=True)
class Header:
    """The part of the file before @data."""

    relation: str
    attributes: tuple[Attribute, ...]
    encoding: str


def unquote(token: str) -> str:
    r"""Remove the quotes of a quoted token and replace its escapes.

    >>> unquote(r"'it\'s'")
    "it's"
    """
    return unescape(token[1:-1])


def quote(name: str) -> str:
    r"""Quote a name so that `unquote` returns it unchanged. Plain names need no quotes.

    >>> quote("sky"), quote("it's blue")
    ('sky', "'it\\'s blue'")
    """
    if _PLAIN_NAME.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    for letter, character in ESCAPED.items():
        escaped = escaped.replace(character, "\\" + letter)
    return f"'{escaped}'"


def parse_header(blocks: LineBlocks, encoding: str | None = None) -> Header:
    """Read the header of an ARFF file. Then `blocks` continues with the first line after @data.

    Parameters
    ----------
    blocks : LineBlocks
        The file.
    encoding : str, optional
        By default UTF-8, or latin-1 if the header is not valid UTF-8.

    Returns
    -------
    Header
        Relation name, attributes in the order of the file, and the encoding.
    """
    lines, first = _header_lines(blocks)
    if encoding is None:
        try:
            b"\n".join(lines).decode("utf-8")
            encoding = "utf-8"
        except UnicodeDecodeError:
            encoding = "latin-1"
    relation: str | None = None
    attributes: list[Attribute] = []
    for number, raw in enumerate(lines, start=first):
        # Some editors put a byte order mark before the first line.
        line = _decode(raw, encoding, blocks.file, number).strip().removeprefix("\ufeff")
        if not line or line.startswith("%"):
            continue
        where = _Where(blocks.file, number)
        keyword, rest = _split_keyword(line, where)
        if keyword == "@attribute":
            attribute = _parse_attribute(rest, where)
            # The approximate memory of the attribute, and of each value with its code.
            blocks.budget.charge(NAME_BYTES * (4 + 2 * len(attribute.values or ())))
            attributes.append(attribute)
        elif keyword == "@relation":
            relation = _parse_relation(rest, where)
        else:
            raise where.error("unknown keyword; expected @relation, @attribute or @data", keyword)
    if not attributes:
        raise DatasetFormatError("no @attribute before @data", file=blocks.file)
    return Header(relation or "", tuple(attributes), encoding)


@dataclass(frozen=True, slots=True)
class _Where:
    file: str
    line: int

    def error(self, problem: str, token: str) -> DatasetFormatError:
        return DatasetFormatError(problem, file=self.file, line=self.line, token=token)


def _header_lines(blocks: LineBlocks) -> tuple[list[bytes], int]:
    """Collect the raw lines before @data, and return the rest of the block to the stream."""
    lines: list[bytes] = []
    first = 1
    for block in blocks:
        start = 0
        number = blocks.line
        while start < len(block):
            end = block.find(b"\n", start)
            end = len(block) if end < 0 else end
            line = block[start:end]
            start = end + 1
            number += 1
            # Keywords are not case-sensitive. A word that only begins with @data is something else.
            if line.lstrip()[:5].lower() == b"@data" and not line.lstrip()[5:6].strip(b" \t\r%"):
                blocks.push_back(block[start:], number)
                return lines, first
            lines.append(line)
    if not any(line.strip() for line in lines):
        raise DatasetFormatError("the file is empty", file=blocks.file)
    raise DatasetFormatError(
        "no @data line: the header is cut short, or this is not an ARFF file", file=blocks.file
    )


def _decode(raw: bytes, encoding: str, file: str, line: int) -> str:
    try:
        return raw.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise DatasetFormatError(
            f"not valid {encoding}: {error}; pass the right encoding, for example 'latin-1'",
            file=file,
            line=line,
        ) from error


def _split_keyword(line: str, where: _Where) -> tuple[str, str]:
    if not line.startswith("@"):
        raise where.error("a header line must begin with @relation, @attribute or @data", line)
    pieces = line.split(maxsplit=1)
    return pieces[0].lower(), pieces[1] if len(pieces) > 1 else ""


def _parse_relation(rest: str, where: _Where) -> str:
    # An unquoted relation name may contain spaces, and MEKA writes its options there.
    if rest[:1] not in ("'", '"'):
        return rest
    match = _NAME.match(rest)
    if match is None or match[1] is None:
        raise where.error("the quote of the relation name is never closed", rest)
    tail = rest[match.end() :].strip()
    if tail and not tail.startswith("%"):
        raise where.error("unexpected text after the relation name", tail)
    return unquote(match[1])


def _parse_attribute(rest: str, where: _Where) -> Attribute:
    match = _NAME.match(rest)
    if match is None:
        raise where.error("an attribute needs a name and a type, with its quotes closed", rest)
    name = unquote(match[1]) if match[1] is not None else unescape(match[2])
    kind = rest[match.end() :].strip()
    if kind.startswith("{"):
        values = _parse_nominal(kind, where)
        return Attribute(name, values, {value: code for code, value in enumerate(values)})
    # A comment may follow the type. Weka reads all three numeric types as floats.
    word = kind.split("%", maxsplit=1)[0].strip().lower()
    if word in _NUMERIC_TYPES:
        return Attribute(name)
    if not word:
        raise where.error("the attribute has no type", rest)
    raise where.error(
        f"attribute {name[:40]!r} must be numeric or nominal; convert or remove text, date and "
        "relational columns first",
        kind,
    )


def _parse_nominal(kind: str, where: _Where) -> tuple[str, ...]:
    values: list[str] = []
    position = 1
    while True:
        match = _NOMINAL_VALUE.match(kind, position)
        if match is None:
            raise where.error(
                "the list of nominal values is broken; expected {value, value, ...}",
                kind[position:],
            )
        values.append(unquote(match[1]) if match[1] is not None else match[2].strip())
        position = match.end()
        if match[3] == "}":
            break
    tail = kind[position:].strip()
    if tail and not tail.startswith("%"):
        raise where.error("unexpected text after the nominal values", tail)
    if len(set(values)) < len(values):
        raise where.error("a nominal value is listed twice", kind)
    return tuple(values)
