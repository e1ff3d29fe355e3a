"""The first part of the demonstration: the commands of the product on a table of photos."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lemll._files import csv_text, write_output
from lemll._types import FloatArray
from lemll.exceptions import import_extra
from lemll.lab.photos import PhotoTable, make_photos
from lemll.models.assess import plain_figures
from lemll.models.files import read_metadata
from lemll.report.page import Link, Picture, Section, TableData

__all__ = ["Jobs", "do_jobs", "first_tags"]

_OPTIONS = ("--tags", "tags", "--id", "file")
_LISTED, _SHOWN = 100, 10
_RATED = 10
_DRAWN = 8


class Jobs(NamedTuple):
    """What the commands found, beside the truth.

    Attributes
    ----------
    sections : list of Section
        One section per job.
    verdict : str
        Their figures in a few sentences.
    """

    sections: list[Section]
    verdict: str


def do_jobs(output: Path, *, say: Callable[[str], None] | None = None) -> Jobs:
    """Write the table, run the commands that a user would type, and compare with the truth.

    Parameters
    ----------
    output : Path
        An existing folder for the table, the model and the pages.
    say : callable, optional
        Called with each command before it runs.

    Returns
    -------
    Jobs
        The sections for the page.
    """
    photos = make_photos()
    table, model = output / "photos.csv", output / "photos.lemll"
    write_output(table, photos.frame.to_csv(index=False))
    rated = output / "ratings.csv"
    rows = np.random.default_rng(0).permutation(len(photos.degrees))[:_RATED].tolist()
    write_output(rated, csv_text(_ratings(photos, rows)))
    degrees = {name: output / f"degrees{name}.csv" for name in ("", "-rated", "-LEMLL")}
    enhance = ("enhance", table, *_OPTIONS, "-o")
    for words in (
        ("info", table),
        # So much time that the machine does not decide which members there are.
        ("fit", table, *_OPTIONS, "--seconds", 300, "-m", model),
        ("explain", model, table, "-o", output / "explain.html"),
        ("audit", table, *_OPTIONS, "--limit", _LISTED, "-o", output / "audit.csv"),
        (*enhance, degrees[""]),
        (*enhance, degrees["-rated"], "--rated", rated),
        (*enhance, degrees["-LEMLL"], "--method", "LEMLL"),
    ):
        _run([str(word) for word in words], say)
    sections = [
        _predict_section(photos, model),
        _audit_section(photos, output / "audit.csv"),
        _degrees_section(photos, degrees, rows),
    ]
    found = sum(row[-1] == "yes" for row in _audited(photos, output / "audit.csv"))
    planted = int((photos.truth != photos.given).sum())
    report = read_metadata(model)["table"]["report"]
    verdict = (
        f"{len(photos.frame)} photos with captions and tags, of which {planted} were made wrong on "
        f"purpose. {plain_figures(report['labels'])} {found} of the {planted} mistakes are among "
        f"the {_LISTED} tags that the audit lists, of {photos.given.size:,}."
    )
    return Jobs(sections, verdict)


def _run(words: Sequence[str], say: Callable[[str], None] | None) -> None:
    from lemll.cli.app import app

    if say is not None:
        say(f"$ lemll {shlex.join(words)}")
    app(list(words), standalone_mode=False)


def _ratings(photos: PhotoTable, rows: Sequence[int]) -> list[list[object]]:
    head: list[object] = ["file", *photos.label_names]
    files = photos.frame["file"].tolist()
    return [head, *([files[i], *(round(d, 6) for d in photos.degrees[i])] for i in rows)]


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    header, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig")))
    return header, rows


def _predict_section(photos: PhotoTable, model: Path) -> Section:
    report = read_metadata(model)["table"]["report"]
    rows = [
        [
            score["measure"].replace("_", " "),
            f"{score['value']:.3f}",
            "{:.3f} to {:.3f}".format(*score["interval"]),
            f"{score['baseline']:.3f}",
        ]
        for score in report["scores"]
        if score["measure"] in ("average_precision", "micro_f1", "macro_auc", "hamming_loss")
    ]
    return Section(
        heading="1. Predict the tags of new photos",
        paragraphs=[
            f"lemll fit learned from {len(photos.frame)} photos: caption, four numbers, camera. "
            f"On {report['rows']} rows that no choice has seen: {plain_figures(report['labels'])} "
            "Some tags of these rows are wrong too, so no model can agree with all of them.",
        ],
        tables=[
            TableData(
                f"{report['rows']} rows held out",
                ["measure", "model", "95 % interval", "labels by frequency"],
                rows,
            )
        ],
        link=Link("explain.html", "The page of lemll explain: each photo, its tags and why"),
    )


def _audited(photos: PhotoTable, path: Path) -> list[list[str]]:
    """Return the list of the audit: file, tag, what looks wrong, score, and whether it is."""
    header, rows = _read(path)
    files = {name: i for i, name in enumerate(photos.frame["file"])}
    found = []
    for row in rows:
        cell = dict(zip(header, row, strict=True))
        i, j = files[cell["id"]], photos.label_names.index(cell["label"])
        planted = photos.truth[i, j] != photos.given[i, j]
        kind = "given, looks wrong" if cell["kind"] == "wrong" else "not given, looks missing"
        found.append([cell["id"], cell["label"], kind, photos.frame["caption"][i],
                      f"{float(cell['score']):.2f}", "yes" if planted else "no"])  # fmt: skip
    return found


def _audit_section(photos: PhotoTable, path: Path) -> Section:
    rows = _audited(photos, path)
    planted = int((photos.truth != photos.given).sum())
    hits = [row[-1] == "yes" for row in rows]
    return Section(
        heading="2. Find wrong and missing tags",
        paragraphs=[
            f"{planted} tags were made wrong: half of them added, half of them left out. lemll "
            f"audit does not know which. Of the first {planted} cells of its list, "
            f"{sum(hits[:planted])} are such mistakes, and of the first {len(rows)}, {sum(hits)}; "
            f"by chance it would be {planted * len(rows) / photos.given.size:.1f}. On its page you "
            "accept or reject each suggestion, and lemll audit --apply writes the corrected table.",
        ],
        tables=[
            TableData(
                f"The {_SHOWN} most doubtful tags",
                ["photo", "tag", "the tag is", "caption", "score", "planted mistake"],
                rows[:_SHOWN],
                words=(2, 3),
            )
        ],
        link=Link("audit.html", "The page of lemll audit: accept or reject"),
    )


def first_tags(photos: PhotoTable, values: FloatArray, rows: Sequence[int]) -> tuple[float, float]:
    """Measure the order of the given tags of each photo, against the true degrees.

    Parameters
    ----------
    photos : PhotoTable
        The truth. Only tags that are given and right are compared, two or more per photo.
    values : ndarray of shape (n_rows, n_tags)
        Any degrees.
    rows : sequence of int
        The photos.

    Returns
    -------
    first, pairs : float
        The share of photos whose most important tag comes first, and of pairs in the right order.
    """
    first, pairs = [], []
    for i in rows:
        tags = np.flatnonzero((photos.given[i] == 1) & (photos.truth[i] == 1))
        if len(tags) < 2:
            continue
        value, degree = values[i, tags], photos.degrees[i, tags]
        best = value == value.max()
        first.append(best[np.argmax(degree)] / best.sum())
        upper = np.triu_indices(len(tags), 1)
        signs = np.sign(np.subtract.outer(value, value) * np.subtract.outer(degree, degree))[upper]
        pairs.append(float(np.mean((signs + 1) / 2)))
    return float(np.mean(first)), float(np.mean(pairs))


def _degrees_section(photos: PhotoTable, files: dict[str, Path], rated: Sequence[int]) -> Section:
    titles = {
        "": "lemll enhance",
        "-rated": f"lemll enhance with {_RATED} rated photos",
        "-LEMLL": "LEMLL (the paper's method)",
    }
    found = {}
    for key, title in titles.items():
        header, rows = _read(files[key])
        order = [header.index(name) for name in photos.label_names]
        found[title] = np.array([[float(row[j]) for j in order] for row in rows])
    shape = photos.given.shape
    found["labels by frequency"] = np.broadcast_to(photos.given.mean(axis=0), shape)
    found["chance"] = np.ones(shape)
    others = [i for i in range(len(photos.degrees)) if i not in set(rated)]
    shares = {title: first_tags(photos, values, others) for title, values in found.items()}
    table = [[title, *(f"{share:.2f}" for share in both)] for title, both in shares.items()]
    own, paper = (shares[titles[key]][1] for key in ("", "-LEMLL"))
    beaten = (
        [
            "LEMLL orders the tags of these photos better than the default method, because their "
            "degrees follow the features closely. On the data sets with known degrees the default "
            "is better on average; docs/explanation/findings.md has the figures."
        ]
        if paper > own
        else []
    )
    return Section(
        heading="3. See how much each tag matters",
        paragraphs=[
            "A table of tags says only whether a tag applies. Here we know how much of each photo "
            "shows what a tag says, because the photos are made up. lemll has not seen it, and "
            "recovers it from the tags and the features. This is label enhancement.",
            "The first column: in how many photos with at least two right tags the most important "
            "tag comes first. The second: in how many pairs of tags the more important one does.",
            *beaten,
        ],
        picture=_picture(photos, found),
        tables=[
            TableData(
                f"{len(others)} photos without ratings",
                ["degrees by", "most important tag first", "pairs in the right order"],
                table,
            )
        ],
    )


def _picture(photos: PhotoTable, found: dict[str, FloatArray]) -> Picture:
    recovered = max(
        (title for title in found if "lemll" in title.lower()),
        key=lambda title: title.startswith("LEMLL"),
    )
    panels = {
        "tags in the table": photos.given,
        f"recovered by {recovered}": found[recovered],
        "the truth": photos.degrees,
    }
    # Only the given tags: how much is left for others is a matter of scale.
    shares = {title: values * photos.given for title, values in panels.items()}
    shares = {title: part / part.sum(axis=1, keepdims=True) for title, part in shares.items()}
    return Picture(
        _bars(photos, shares, wide=True),
        _bars(photos, shares, wide=False),
        f"Bars of {_DRAWN} photos, divided among their given tags: equal shares, recovered, true",
    )


def _bars(photos: PhotoTable, panels: dict[str, FloatArray], *, wide: bool) -> bytes:
    figure_module = import_extra("matplotlib.figure", "report", "Drawing pictures")
    shape = (1, len(panels)) if wide else (len(panels), 1)
    size = (11.0, 3.4) if wide else (4.2, 7.5)
    figure = figure_module.Figure(figsize=size, dpi=150, layout="constrained")
    axes: Any = figure.subplots(*shape, sharex=True, squeeze=False)
    for ax, (title, values) in zip(axes.ravel(), panels.items(), strict=True):
        left = np.zeros(_DRAWN)
        for j, name in enumerate(photos.label_names):
            part = values[:_DRAWN, j]
            ax.barh(range(_DRAWN), part, left=left, label=name, color=_colour(j))
            left = left + part
        ax.set(title=title, xlim=(0, 1), xticks=[0, 0.5, 1])
        ax.set_yticks(range(_DRAWN), photos.frame["file"][:_DRAWN].str.removesuffix(".jpg"))
        ax.invert_yaxis()
    handles, labels = axes.ravel()[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=6 if wide else 3, frameon=False
    )
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _colour(place: int) -> tuple[float, float, float]:
    from matplotlib import colormaps

    red, green, blue, _ = colormaps["tab20"](place % 20)
    return red, green, blue
