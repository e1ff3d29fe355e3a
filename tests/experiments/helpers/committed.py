"""Folders of committed cells for tests of reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from support import invoke

from lemll.lab.studies.prediction import (
    CellKey,
    MeasuredCell,
    planned_cells,
    read_cells,
    read_protocols,
    write_cells,
)

# Data sets of the registry that no test loads.
SETS = ("cal500", "emotions", "enron", "bibtex", "slashdot", "medical", "scene", "yeast")


def measured(key: CellKey, metrics: Mapping[str, float | None]) -> MeasuredCell:
    """Make a finished cell."""
    return MeasuredCell(
        key=key, status="done", chosen="", metrics=metrics, seconds=1.0, code="c", finished="2026"
    )


def write_plan(folder: Path, plan: str, *names: str) -> list[CellKey]:
    """Write a protocol for some data sets; return its cells."""
    text = plan.replace("{datasets}", ", ".join(f'"{name}"' for name in names))
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    return planned_cells(read_protocols(folder))


def keep(folder: Path, wanted: Callable[[CellKey], bool]) -> None:
    """Remove all other cells of the table."""
    write_cells(folder, [cell for cell in read_cells(folder) if wanted(cell.key)])


def change(folder: Path, where: Callable[[CellKey], bool], **fields: Any) -> None:
    """Give some cells other fields; `metrics` are added to those of the cell."""
    cells = []
    for cell in read_cells(folder):
        new = dict(fields)
        if new.get("metrics"):
            new["metrics"] = {**cell.metrics, **new["metrics"]}
        cells.append(dataclasses.replace(cell, **new) if where(cell.key) else cell)
    write_cells(folder, cells)


def reproduce(*words: object, code: int = 0) -> str:
    """Call `lemll reproduce`; return what it prints."""
    return invoke("reproduce", *words, code=code).output
