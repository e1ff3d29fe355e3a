"""The demonstration: label enhancement on embedded data, told in pictures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lemll.datasets import (
    Dataset,
    binarize_distribution,
    describe,
    load_digit_tags,
    make_artificial_surface,
)
from lemll.report.page import Section, TableData, write_page
from lemll.report.surfaces import draw_surfaces

__all__ = ["DemoResult", "make_demo"]

_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """What the demonstration made: the page to open, and the tables it also prints."""

    page: Path
    tables: tuple[TableData, ...]


def make_demo(output: Path) -> DemoResult:
    """Make the pictures and the page of the demonstration.

    Parameters
    ----------
    output : Path
        Folder to write into; made if it is not there.

    Returns
    -------
    DemoResult
        The page, and the tables for the terminal.
    """
    output.mkdir(parents=True, exist_ok=True)
    sections = [_artificial_section(output), _digits_section()]
    page = output / "index.html"
    write_page(page, "What is label enhancement?", sections)
    return DemoResult(
        page=page, tables=tuple(section.table for section in sections if section.table)
    )


def _artificial_section(output: Path) -> Section:
    surface = make_artificial_surface()
    logical = binarize_distribution(surface.D, _THRESHOLD)
    picture = draw_surfaces(
        surface.X, {"true label distribution": surface.D, "what 0/1 labels keep": logical}
    )
    (output / "surface.png").write_bytes(picture)
    return Section(
        heading="Labels matter to different degrees",
        paragraphs=[
            "Each point of this surface has three labels, and each label a degree between 0 and 1; "
            "the degrees of a point sum to one. Taken as red, green and blue they paint the "
            "surface: on the left, the truth.",
            "Data sets rarely hold such degrees. They say only whether a label is relevant. On the "
            "right, labels were taken by falling degree until together they exceed "
            f"{_THRESHOLD:g}: the smooth change of colours is gone. Label enhancement is to "
            "recover the left picture from the right one and the points' places.",
        ],
        picture=picture,
        picture_text="The true distribution as smooth colours, the 0/1 labels as patches",
        table=_degrees_table(surface, logical),
    )


def _degrees_table(surface: Dataset, logical: npt.NDArray[np.uint8]) -> TableData:
    rows = []
    for i in np.linspace(0, len(surface) - 1, 6).astype(int):
        place = " ".join(f"{value:+.2f}" for value in surface.X[i])
        degrees = [f"{degree:.3f}" for degree in surface.D[i]]
        relevant = [name for name, bit in zip(surface.label_names, logical[i], strict=True) if bit]
        rows.append([place, *degrees, ", ".join(relevant)])
    header = ["x1 x2 x3", *surface.label_names, "relevant"]
    return TableData(f"Six of the {len(surface)} points: degrees and 0/1 labels", header, rows)


def _digits_section() -> Section:
    digits = load_digit_tags()
    summary = describe(digits)
    rows = [
        [name, str(int(count)), f"{count / summary.examples:.3f}"]
        for name, count in zip(digits.label_names, digits.Y.sum(axis=0), strict=True)
    ]
    return Section(
        heading="A real multi-label set to try things on",
        paragraphs=[
            f"{summary.examples} handwritten digits of {summary.features} pixels come with "
            f"scikit-learn; here each carries some of {summary.labels} tags, "
            f"{summary.cardinality:.2f} on average, in {summary.distinct} different sets."
        ],
        table=TableData("Tags of the digits", ["tag", "images", "share"], rows),
    )
