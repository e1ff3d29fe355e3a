"""The demonstration: label enhancement and a comparison of learners, on embedded data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lemll.demo.comparison import comparison_sections, demo_protocol
from lemll.demo.pictures import digits_section, draw_demo_pictures
from lemll.experiments import Protocol, Store, run
from lemll.report import TableData, template_environment, write_comparison, write_page

__all__ = ["DemoResult", "make_demo"]

N_SPLITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The two pages of the demonstration, and the tables that it also prints."""

    page: Path
    comparison: Path
    tables: tuple[TableData, ...]


def make_demo(
    output: Path,
    *,
    n_splits: int = N_SPLITS,
    execute: Callable[[Protocol, Store], Any] = run,
) -> DemoResult:
    """Make the pictures, run the comparison, and write the pages of the demonstration.

    Parameters
    ----------
    output : Path
        Folder to write into; it is created if it does not exist. It keeps the results of the
        comparison, so a second call computes only the missing cells.
    n_splits : int, default=5
        Number of random halves in the comparison, at least 2.
    execute : callable, default=lemll.experiments.run
        Called with the comparison's protocol and store, to run the missing cells.

    Returns
    -------
    DemoResult
        The pages, and the tables for the terminal.
    """
    if n_splits < 2:
        raise ValueError(f"the comparison's tests need at least 2 splits, got {n_splits}.")
    template_environment()  # report a missing library now, not after all the work
    output.mkdir(parents=True, exist_ok=True)
    pictured = [*draw_demo_pictures(output), digits_section()]
    protocol = demo_protocol(output / "data", n_splits)
    store = Store(output / "store")
    execute(protocol, store)
    comparison = write_comparison(output / "comparison.html", protocol, store)
    sections = [*pictured, *comparison_sections(protocol, store, comparison.name)]
    page = output / "index.html"
    write_page(page, "What is label enhancement?", sections)
    tables = tuple(table for section in sections for table in section.tables)
    return DemoResult(page=page, comparison=comparison, tables=tables)
