"""The page of an audit: doubtful tags with their evidence, to accept or reject, in one file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lemll._types import Frame, LabelArray, Settings
from lemll._validation import UNOBSERVED
from lemll.audit import TagAudit
from lemll.audit.scores import EVEN_ODDS
from lemll.report.page import shown_cells, write_html

# The page holds the features of the rows that it shows, up to this number of cells.
_MOST_CELLS = 600_000
_MOST_COLUMNS = 30
# Neighbours that the page shows; the CSV file names all of them.
_SHOWN_NEIGHBOURS = 5


@dataclass(frozen=True, slots=True)
class AuditRows:
    """The rows of the user, as the page shows them.

    Attributes
    ----------
    ids : sequence of str
        The names of the rows.
    columns : sequence of str
        The names of the features.
    values : sequence of sequence
        The features of each row, as the user knows them.
    fingerprints : sequence of str
        A text per row that tells whether the row has changed since; exported with the decisions.
    """

    ids: Sequence[str]
    columns: Sequence[str] = ()
    values: Sequence[Sequence[object]] = ()
    fingerprints: Sequence[str] = ()


def write_audit(
    path: str | Path,
    audit: TagAudit,
    issues: Frame,
    rows: AuditRows,
    *,
    title: str,
    notes: Sequence[str] = (),
) -> Path:
    """Write the page of an audit.

    Parameters
    ----------
    path : str or Path
        File to write; its folder is created if it does not exist.
    audit : TagAudit
        The audit.
    issues : pandas.DataFrame
        The cells to show, from `lemll.audit.issue_frame`.
    rows : AuditRows
        The rows that were audited.
    title : str
        Title of the page.
    notes : sequence of str, default=()
        Sentences above the list, for example about the noise.

    Returns
    -------
    Path
        The page: one file that needs no other file and no network. All names are shown as text.
    """
    return write_html(
        path,
        "audit",
        title=title,
        notes=list(notes),
        labels=list(audit.tags.names),
        calibrated=audit.rates is not None,
        n_likely=_likely(audit, issues),
        content=_content(audit, issues, rows),
    )


def _content(audit: TagAudit, issues: Frame, rows: AuditRows) -> Settings:
    """Return everything that the script shows, as plain data."""
    place = {name: j for j, name in enumerate(audit.tags.names)}
    near = [list(found)[:_SHOWN_NEIGHBOURS] for found in issues["neighbours"]]
    listed = issues["row"].tolist()
    needed = sorted({*listed, *(row for found in near for row in found)})
    kept = min(_MOST_COLUMNS, len(rows.columns), _MOST_CELLS // max(1, len(needed)))
    values = [rows.values[row][:kept] if kept else [] for row in needed]
    return {
        "labels": list(audit.tags.names),
        "calibrated": audit.rates is not None,
        "likely": _likely(audit, issues),
        "columns": [str(name) for name in rows.columns[:kept]],
        "hidden_columns": len(rows.columns) - kept,
        "issues": {
            "row": listed,
            "label": [place[name] for name in issues["label"]],
            "given": issues["given"].tolist(),
            "score": _rounded(issues["score"]),
            "probability": _rounded(issues["probability"]),
            "out_of_fold": _rounded(issues["out_of_fold"]),
            "numerical_label": _rounded(issues["numerical_label"]),
            "neighbour_share": _rounded(issues["neighbour_share"]),
        },
        "near": dict(zip(map(str, listed), near, strict=True)),
        "rows": {
            str(row): {
                "id": str(rows.ids[row]),
                "fingerprint": rows.fingerprints[row] if rows.fingerprints else "",
                "tags": np.flatnonzero(audit.tags.Y[row] == 1).tolist(),
                "unknown": _unknown(audit.tags.Y, row),
                "values": texts,
            }
            for row, texts in zip(needed, shown_cells(values), strict=True)
        },
    }


def _likely(audit: TagAudit, issues: Frame) -> int:
    """Return how many of the listed tags are more likely wrong than right; they come first."""
    return 0 if audit.rates is None else int((issues["score"] > EVEN_ODDS).sum())


def _unknown(Y: LabelArray, row: int) -> list[int]:
    found: list[int] = np.flatnonzero(Y[row] == UNOBSERVED).tolist()
    return found


def _rounded(values: Iterable[float]) -> list[float | None]:
    """Return numbers with four digits; NaN, which JSON does not know, becomes None."""
    return [None if np.isnan(value) else round(float(value), 4) for value in values]
