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
    template = template_environment().get_template("page.html")
    write_html(path, template.render(title=title, sections=sections, verdict=verdict))


def write_scripted(path: Path, name: str, **content: object) -> None:
    """Write the page of a template that has a script; the page allows no other script.

    Parameters
    ----------
    path : Path
        File to write.
    name : str
        Name of the template and of its script, without suffixes.
    **content : object
        What the template shows.
    """
    script = resources.files("lemll.report").joinpath(f"templates/{name}.js").read_text("utf-8")
    content["script_hash"] = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = template_environment().get_template(f"{name}.html")
    write_html(path, template.render(script=script, **content))


def write_html(path: Path, text: str) -> None:
    """Write a page completely or not at all; its folder is created if it does not exist.

    Parameters
    ----------
    path : Path
        File to write.
    text : str
        Text of the page.

    Raises
    ------
    OSError
        If the file cannot be written; the message says what to do.
    """
    try:
        write_output(path, text)
    except OSError as error:
        raise OSError(
            f"the page cannot be written to {path}: {error.strerror}; "
            "give the name of a file in a folder that can be written to."
        ) from error


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
