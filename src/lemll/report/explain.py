"""The page that explains a table and its model, in one file with its data and its script."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from lemll._types import FloatArray, Settings
from lemll.metrics import METRICS
from lemll.models import Explanation
from lemll.models.assess import THRESHOLDS, plain_figures
from lemll.report.page import shown_cells, write_html

# At most this number of labels, columns and characters are shown per row.
_LABELS_OF_A_ROW, _COLUMNS_OF_A_ROW = 12, 8
_NEIGHBORS_OF_A_ROW = 5
# With more labels, the tables of pairs show the most frequent ones.
_LABELS_OF_A_MATRIX = 30
_SHADES = 8


class _Shaded(NamedTuple):
    """A cell of a table with a background: its text and its shade, 0 for none."""

    text: str
    shade: int


def write_explanation(path: str | Path, found: Explanation) -> Path:
    """Write the page of an explanation.

    Parameters
    ----------
    path : str or Path
        File to write.
    found : Explanation
        What `explain_table` found.

    Returns
    -------
    Path
        The page: one file that needs no other file and no network.
    """
    by_frequency = np.argsort(-np.diag(found.together), kind="stable").tolist()
    frequent = by_frequency[:_LABELS_OF_A_MATRIX]
    return write_html(
        path,
        "explain",
        title=f"What {found.learner} learned from {Path(found.source).name}",
        verdict=_verdict(found),
        n_rows=len(found.ids),
        learner=found.learner,
        labels=[(j, found.label_names[j]) for j in by_frequency],
        figures=_figures(found, by_frequency),
        n_held_out=found.report["rows"],
        calibration=_calibration_picture(found.report["calibration"]),
        calibration_error=found.report["calibration_error"],
        matrix_names=[found.label_names[j] for j in frequent],
        n_left_out=len(found.label_names) - len(frequent),
        together=_together(found, frequent),
        columns=[
            (name, _shaded(found.sensitivity[i, frequent], found.sensitivity.max()))
            for i, name in enumerate(found.columns)
        ],
        are_probabilities=found.are_probabilities,
        data=_data(found),
        order=_about_order(found),
    )


def _about_order(found: Explanation) -> str:
    """Say how well the order of the given labels is known."""
    expected = found.order.expected
    if np.isnan(expected):
        return "No row has two labels, so there is no order to find."
    return (
        f"About {expected:.0%} of the pairs of given labels are in the right order by its own "
        f"estimate; {found.order.sure:.0%} of the pairs are sure, the others are marked as a "
        "toss-up (chance is 50%). A few comparisons, as lemll enhance asks for them, may help."
    )


def _verdict(found: Explanation) -> str:
    report = found.report
    sentence = f"{plain_figures(report['labels'])} {report['verdict']}"
    scores = {score["measure"]: score for score in report["scores"]}
    for name in ("average_precision", "macro_auc"):
        if name in scores:
            score = scores[name]
            return (
                f"{sentence} {METRICS[name].title} is {score['value']:.3f}, by frequency alone "
                f"{score['baseline']:.3f}, on {report['rows']} rows that no choice has seen."
            )
    return sentence


def _figures(found: Explanation, labels: list[int]) -> list[Settings]:
    """Return the figures of the labels on held-out rows, as text."""
    rows = []
    for j in labels:
        figure = found.report["labels"][j]
        shares = {
            key: "–" if figure[key] is None else f"{figure[key]:.3f}"
            for key in ("precision", "recall", "f1", "auc")
        }
        counts = {key: figure[key] for key in ("relevant", "predicted")}
        rows.append({"number": j, "name": found.label_names[j], **counts, **shares})
    return rows


def _shaded(values: FloatArray, largest: float) -> list[_Shaded]:
    top = max(float(largest), 1e-12)
    return [_Shaded(f"{v:.2f}", round(float(v) / top * (_SHADES - 1))) for v in values]


def _together(found: Explanation, labels: list[int]) -> list[tuple[str, list[_Shaded]]]:
    """Return the shares of the rows with one label that also have another."""
    rows = []
    for i in labels:
        own = max(int(found.together[i, i]), 1)
        shares = [found.together[i, j] / own for j in labels]
        cells = [
            _Shaded(str(found.together[i, i]), 0)
            if i == j
            else _Shaded(f"{share:.2f}", round(share * (_SHADES - 1)))
            for j, share in zip(labels, shares, strict=True)
        ]
        rows.append((found.label_names[i], cells))
    return rows


def _calibration_picture(bins: list[Settings]) -> list[Settings]:
    """Return the bins as circles of a picture of 320 x 320, with the origin below on the left."""
    if not bins:
        return []
    most = max(one["cells"] for one in bins)
    return [
        {
            "x": round(40 + 260 * one["probability"], 1),
            "y": round(280 - 260 * one["share"], 1),
            "r": round(3 + 7 * (one["cells"] / most) ** 0.5, 1),
            "text": f"{one['cells']} cells: probability {one['probability']:.2f}, "
            f"relevant {one['share']:.2f}",
        }
        for one in bins
    ]


def _data(found: Explanation) -> Settings:
    """Return what the script shows, as plain data; numbers are shortened to keep the page small."""
    return {
        "labels": list(found.label_names),
        "ids": list(found.ids),
        "rows": [_row(found, i) for i in range(len(found.ids))],
        "surprise": _surprise(found).round(3).tolist(),
        "columns": _shown_columns(found),
        "cells": shown_cells(found.cells[_shown_columns(found)].to_numpy(dtype=object)),
        "neighbors": [
            [
                [int(j), round(float(w), 2)]
                for j, w in zip(neighbors, weights, strict=True)
                if j >= 0
            ]
            for neighbors, weights in zip(
                found.neighbors[:, :_NEIGHBORS_OF_A_ROW],
                found.weights[:, :_NEIGHBORS_OF_A_ROW],
                strict=True,
            )
        ],
        "telling": [
            [[feature.name, round(feature.effect, 4)] for feature in features]
            for features in found.telling
        ],
        "thresholds": list(THRESHOLDS),
        "curves": found.report["curves"],
        "relevant": [figure["relevant"] for figure in found.report["labels"]],
        "areProbabilities": found.are_probabilities,
    }


def _row(found: Explanation, i: int) -> list[list[object]]:
    """Return the labels to show of a row.

    Each has its number, whether it is given (1, 0, -1), importance, probability, whether it is
    predicted, and whether its order to the next given label is a toss-up.
    """
    given, importance = found.Y[i], found.importance[i]
    rank = importance + 10.0 * (given == 1) + 5.0 * found.predicted[i]
    order = np.argsort(-rank, kind="stable")[:_LABELS_OF_A_ROW]
    order = order[np.lexsort((-importance[order], given[order] != 1))]
    return [
        [
            int(j),
            -1 if np.isnan(given[j]) else int(given[j]),
            round(float(importance[j]), 3),
            round(float(found.probabilities[i, j]), 3),
            int(found.predicted[i, j]),
            int(found.tossups[i, j]),
        ]
        for j in order
    ]


def _surprise(found: Explanation) -> FloatArray:
    """Return how much the most surprising given label of each row contradicts the model."""
    if not found.are_probabilities:
        wrong = (found.predicted != (found.Y == 1)) & ~np.isnan(found.Y)
        return np.asarray(wrong.sum(axis=1), dtype=np.float64)
    away = np.abs(found.Y - found.probabilities)
    return np.asarray(np.where(np.isnan(away), 0.0, away).max(axis=1))


def _shown_columns(found: Explanation) -> list[str]:
    return [str(name) for name in found.cells.columns[:_COLUMNS_OF_A_ROW]]
