"""A self-contained HTML page of text, tables and pictures: one file, no network, no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from lemll._files import write_output
from lemll.exceptions import import_extra
from lemll.report.diagrams import DotPlot, RankDiagram
from lemll.tables import is_missing

# A page shows whole texts, unless all texts together have more characters than this.
_MOST_CHARACTERS, _FEWEST_CHARACTERS = 4_000_000, 60


class TableData(NamedTuple):
    """A small table: names, then columns of figures; `words` lists the columns of words."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Collection[int] = ()


class Picture(NamedTuple):
    """A PNG picture for wide windows, one for narrow windows, and a description."""

    wide: bytes
    narrow: bytes
    text: str

    @property
    def wide_address(self) -> str:
        """The wide picture as a data address, which needs no other file."""
        return _png_address(self.wide)

    @property
    def narrow_address(self) -> str:
        """The narrow picture as a data address."""
        return _png_address(self.narrow)


class Link(NamedTuple):
    """A link to another page; the address is relative to this page."""

    address: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with paragraphs, and optionally a picture, diagrams, tables and a link."""

    heading: str
    paragraphs: Sequence[str]
    picture: Picture | None = None
    tables: Sequence[TableData] = ()
    ranks: RankDiagram | None = None
    dots: DotPlot | None = None
    link: Link | None = None


def write_page(path: Path, title: str, sections: Sequence[Section], *, verdict: str = "") -> None:
    """Write a page that can be opened from disk and sent to others.

    Parameters
    ----------
    path : Path
        File to write.
    title : str
        Title of the page; it is escaped, like all text.
    sections : sequence of Section
        Content of the page.
    verdict : str, default=""
        One or two sentences at the top: what the page says.
    """
    write_html(path, "page", title=title, sections=sections, verdict=verdict)


def write_html(path: str | Path, name: str, **values: object) -> Path:
    """Write a page completely or not at all; its folder is created if it does not exist.

    Parameters
    ----------
    path : str or Path
        File to write.
    name : str
        Name of the template, and of its script if it has one; no other script may run in the page.
    **values : object
        What the template shows.

    Returns
    -------
    Path
        The page: one file that needs no other file and no network. All names are shown as text.

    Raises
    ------
    OSError
        If the file cannot be written; the message says what to do.
    """
    path = Path(path)
    script = resources.files("lemll.report").joinpath(f"templates/{name}.js")
    if script.is_file():
        text = script.read_text("utf-8")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        values |= {"script": text, "script_hash": digest}
    try:
        write_output(path, template_environment().get_template(f"{name}.html").render(**values))
    except OSError as error:
        raise OSError(
            f"the page cannot be written to {path}: {error.strerror}; "
            "give the name of a file in a folder that can be written to."
        ) from error
    return path


def shown_cells(rows: Sequence[Sequence[object]]) -> list[list[str]]:
    """Return the cells of a table as text; if there are many, long texts are cut.

    Parameters
    ----------
    rows : sequence of sequence
        The cells of each row.

    Returns
    -------
    list of list of str
        The texts. One that was cut ends with an ellipsis.
    """
    n_cells = sum(map(len, rows))
    longest = max(_FEWEST_CHARACTERS, _MOST_CHARACTERS // max(1, n_cells))
    texts = [[_text(value) for value in row] for row in rows]
    return [[t if len(t) <= longest else f"{t[:longest]}…" for t in row] for row in texts]


def _text(value: object) -> str:
    if is_missing(value):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def template_environment() -> Any:
    """Return the jinja2 environment of all pages; it escapes names, so they remain text.

    Returns
    -------
    jinja2.Environment
        An environment with autoescape.
    """
    jinja2 = import_extra("jinja2", "report", "Writing a page")
    return jinja2.Environment(
        loader=jinja2.PackageLoader("lemll.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _png_address(picture: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture).decode('ascii')}"
