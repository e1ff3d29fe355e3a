"""The first part of the demonstration: label enhancement on embedded data, in pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lemll._types import Array, FloatArray, Settings
from lemll.datasets import (
    binarize_distribution,
    describe,
    load_digit_tags,
    make_artificial_surface,
)
from lemll.enhancers import LEMLLEnhancer, LogicalEnhancer, UniformEnhancer
from lemll.experiments import list_methods
from lemll.metrics import METRICS
from lemll.predictors import LEMLL
from lemll.report.page import Picture, Section, TableData
from lemll.report.surfaces import draw_surfaces

__all__ = ["digits_section", "draw_demo_pictures"]


_THRESHOLD = 0.5
_SMALL_BETA = 1 / 16
_THIN = 2
_EXPONENTS = (0.5, 4.0)
_RATED = 10
_NARROW: Settings = {"columns": 2, "size": 3.1, "dpi": 115}


def draw_demo_pictures(output: Path) -> list[Section]:
    """Recover distributions on embedded data, and draw them.

    Parameters
    ----------
    output : Path
        Folder for the pictures: surface.png, enhancers.png and scale.png.

    Returns
    -------
    list of Section
        What they show.
    """
    return [_artificial_section(output), _enhancers_section(output), _scale_section(output)]


def _draw(
    path: Path,
    text: str,
    X: FloatArray,
    paints: Mapping[str, Array],
    **options: Any,
) -> Picture:
    """Draw surfaces for a wide window, kept as a file as well, and in pairs for a phone."""
    wide = draw_surfaces(X, paints, **options)
    path.write_bytes(wide)
    narrow = draw_surfaces(X, paints, **{**options, **_NARROW})
    return Picture(wide, narrow, text)


def _artificial_section(output: Path) -> Section:
    surface = make_artificial_surface()
    logical = binarize_distribution(surface.D, _THRESHOLD)
    enhancer = LEMLLEnhancer().fit(surface.X, logical)
    freer = LEMLLEnhancer(beta=_SMALL_BETA).fit(surface.X, logical)
    recovered = {
        "recovered by LEMLL": enhancer.label_distribution_,
        f"the same, beta = {_SMALL_BETA:g}": freer.label_distribution_,
    }
    picture = _draw(
        output / "surface.png",
        "Four surfaces: true colours, 0/1 labels as patches, two recoveries",
        surface.X,
        {"true label distribution": surface.D, "what 0/1 labels keep": logical, **recovered},
    )
    return Section(
        heading="Labels matter to different degrees",
        paragraphs=[
            "Each point of this surface has three labels, and each label a degree between 0 and 1; "
            "the degrees of a point sum to one. Taken as red, green and blue they paint the "
            "surface: on the left, the truth.",
            "Data sets rarely hold such degrees. They say only whether a label is relevant. Beside "
            "it, labels were taken by falling degree until together they exceed "
            f"{_THRESHOLD:g}: the smooth change of colours is gone.",
            "Label enhancement recovers the first picture from the second and the points' places. "
            "What LEMLL recovers is the optimum of one convex problem over a predictor and the "
            "degrees; here it is proven to lie within a relative "
            f"{max(enhancer.optimality_, freer.optimality_):.0e} of the minimum. Its parameter "
            "beta says how far the 0/1 labels are to be trusted: the less, the smoother.",
        ],
        picture=picture,
        tables=[
            _recovery_table(
                surface.D,
                {
                    "0/1 labels, shared out": LogicalEnhancer().fit_enhance(surface.X, logical),
                    "uniform: all alike": UniformEnhancer().fit_enhance(surface.X, logical),
                    **recovered,
                },
            )
        ],
    )


def _enhancers_section(output: Path) -> Section:
    surface = make_artificial_surface()
    # Some methods compare all pairs of rows: every second point of each line is enough to see.
    side = round(len(surface.X) ** 0.5)
    kept = np.arange(len(surface.X)).reshape(side, side)[::_THIN, ::_THIN].ravel()
    X, D = surface.X[kept], surface.D[kept]
    logical = binarize_distribution(D, _THRESHOLD)
    recovered = {
        method.name: method.make().fit_enhance(X, logical) for method in list_methods("enhancer")
    }
    picture = _draw(
        output / "enhancers.png",
        "One surface for each method, and the truth",
        X,
        {"truth": D, **recovered},
        columns=4,
    )
    return Section(
        heading="Every method side by side",
        paragraphs=[
            "The same surface, with fewer points, recovered by every method that lemll has, with "
            "the parameters its paper uses. Two of them are no methods but yardsticks: Uniform "
            "gives every label the same degree, Logical shares each point among its relevant "
            "labels. A method that does not beat them recovers nothing.",
        ],
        picture=picture,
        tables=[_recovery_table(D, recovered)],
    )


def _scale_section(output: Path) -> Section:
    surface = make_artificial_surface()
    flat, steep = (_power(surface.D, exponent) for exponent in _EXPONENTS)
    # One label a point: the largest degree, which no power of the degrees changes.
    logical = (surface.D == surface.D.max(axis=1, keepdims=True)).astype(np.int8)
    enhancer = LEMLLEnhancer().fit(surface.X, logical)
    plain = enhancer.label_distribution_
    rated = np.random.RandomState(0).choice(len(surface.X), _RATED, replace=False)
    for_flat = enhancer.calibrate(rated, flat[rated], random_state=0).label_distribution_
    scales = [enhancer.scale_]
    for_steep = enhancer.calibrate(rated, steep[rated], random_state=0).label_distribution_
    scales.append(enhancer.scale_)
    paints = {
        "flat truth": flat,
        "steep truth": steep,
        "LEMLL, for both": plain,
        "calibrated for flat": for_flat,
        "calibrated for steep": for_steep,
    }
    picture = _draw(
        output / "scale.png",
        "Flat and steep truth, what LEMLL recovers for both, and two calibrations",
        surface.X,
        paints,
        shared_colours=True,
    )
    measure = METRICS["chebyshev"]
    rows = [
        [name, f"{measure(flat, D):.3f}", f"{measure(steep, D):.3f}"]
        for name, D in list(paints.items())[2:]
    ]
    return Section(
        heading="How much more? Ten rated points tell",
        paragraphs=[
            "Two truths, one the power of the other: in the first, labels hardly differ in degree, "
            "in the second one label has nearly all. If only the first label of each point is "
            "known, both give exactly the same 0/1 labels, so no method can tell them apart: the "
            "scale of a recovered distribution is a convention.",
            f"But if somebody rates {_RATED} points, the scale is fixed by them: "
            f"{scales[0]:.2f} for the flat truth, {scales[1]:.2f} for the steep one, and the same "
            "numerical labels fit both.",
        ],
        picture=picture,
        tables=[
            TableData(
                f"{measure.title} {measure.arrow} to each truth",
                ["distribution", "flat truth", "steep truth"],
                rows,
            )
        ],
    )


def _power(D: FloatArray, exponent: float) -> FloatArray:
    powers = D**exponent
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _recovery_table(true: FloatArray, recovered: dict[str, FloatArray]) -> TableData:
    measures = [METRICS[name] for name in ("chebyshev", "kl_divergence_pred_true", "cosine")]
    rows = [
        [name, *(f"{measure(true, D):.3f}" for measure in measures)]
        for name, D in recovered.items()
    ]
    header = ["distribution", *(f"{measure.title} {measure.arrow}" for measure in measures)]
    return TableData(f"How far from the truth, mean over {len(true)} points", header, rows)


def digits_section() -> Section:
    """Predict the tags of digits by LEMLL, and without looking at them.

    Returns
    -------
    Section
        With the table.
    """
    digits = load_digit_tags()
    summary = describe(digits)
    half = len(digits) // 2
    order = np.random.RandomState(0).permutation(len(digits))
    train, test = order[:half], order[half:]
    model = LEMLL().fit(digits.X[train], digits.Y[train])
    frequencies = digits.Y[train].mean(axis=0)
    # Scores are compared with 0, so a tag is guessed where more than half of the images have it.
    guess = np.tile(frequencies - 0.5, (len(test), 1))
    answers = {"LEMLL": model.decision_function(digits.X[test]), "frequencies": guess}
    names = ("hamming_loss", "ranking_loss", "one_error", "coverage", "average_precision")
    rows = []
    for method, scores in answers.items():
        row = [method]
        for name in names:
            predicted = (scores > 0).astype(int) if name == "hamming_loss" else scores
            row.append(f"{METRICS[name](digits.Y[test], predicted):.3f}")
        rows.append(row)
    header = ["method", *(f"{METRICS[name].title} {METRICS[name].arrow}" for name in names)]
    return Section(
        heading="Predicting the tags of images never seen",
        paragraphs=[
            f"{summary.examples} handwritten digits of {summary.features} pixels come with "
            f"scikit-learn; here each carries some of {summary.labels} tags "
            f"({', '.join(digits.label_names)}), {summary.cardinality:.2f} on average, in "
            f"{summary.distinct} different sets. LEMLL learns from one half and predicts the "
            "other; beside it, the predictor that looks at no image.",
        ],
        tables=[TableData(f"{len(test)} test images", header, rows)],
    )
