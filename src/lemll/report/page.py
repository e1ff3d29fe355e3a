"""A self-contained HTML page of text, tables and pictures: one file, no network, no script."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from lemll.exceptions import import_extra

__all__ = ["Section", "TableData", "template_environment", "write_page"]


class TableData(NamedTuple):
    """A small table of texts."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with paragraphs, and below them a picture and a table if there are any."""

    heading: str
    paragraphs: Sequence[str]
    picture: bytes | None = None
    picture_text: str = ""
    table: TableData | None = field(default=None)

    @property
    def picture_address(self) -> str:
        """The PNG picture as an address that needs no other file."""
        encoded = base64.b64encode(self.picture or b"").decode("ascii")
        return f"data:image/png;base64,{encoded}"


def write_page(path: Path, title: str, sections: Sequence[Section]) -> None:
    """Write a page that can be opened from disk and sent around.

    Parameters
    ----------
    path : Path
        Where to.
    title : str
        Its title; like all text, escaped.
    sections : sequence of Section
        Its content.
    """
    text = template_environment().get_template("page.html").render(title=title, sections=sections)
    path.write_text(text, encoding="utf-8")


def template_environment() -> Any:
    """Return the jinja2 environment of all pages: whatever a name holds, it stays text.

    Returns
    -------
    jinja2.Environment
        With autoescape.
    """
    jinja2 = import_extra("jinja2", "report", "Writing a page")
    return jinja2.Environment(
        loader=jinja2.PackageLoader("lemll.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
