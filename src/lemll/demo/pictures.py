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
from lemll.report import Picture, Section, TableData, draw_surfaces

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
        The sections that show them.
    """
    return [_artificial_section(output), _enhancers_section(output), _scale_section(output)]


def _draw(
    path: Path,
    text: str,
    X: FloatArray,
    paints: Mapping[str, Array],
    **options: Any,
) -> Picture:
    """Draw surfaces for a wide window, which also go to a file, and in two columns for a phone."""
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
            "Each point of this surface has three labels, and each label has a degree between 0 "
            "and 1. The degrees of a point sum to one. They are the red, green and blue of its "
            "colour. The first surface shows the true degrees.",
            "Data sets rarely contain such degrees. They say only whether a label is relevant. For "
            "the second surface, the labels of each point were taken in order of falling degree, "
            f"until together they exceed {_THRESHOLD:g}. The smooth change of colours is lost.",
            "Label enhancement recovers the first picture from the second one and the positions of "
            "the points. LEMLL solves one convex problem over a predictor and the degrees. Here "
            "its result is proven to lie within a relative "
            f"{max(enhancer.optimality_, freer.optimality_):.0e} of the minimum. The parameter "
            "beta says how much LEMLL trusts the 0/1 labels. A smaller beta gives a smoother "
            "result.",
        ],
        picture=picture,
        tables=[
            _recovery_table(
                surface.D,
                {
                    "0/1 labels, equal shares": LogicalEnhancer().fit_enhance(surface.X, logical),
                    "uniform: all labels equal": UniformEnhancer().fit_enhance(surface.X, logical),
                    **recovered,
                },
            )
        ],
    )


def _enhancers_section(output: Path) -> Section:
    surface = make_artificial_surface()
    # Some methods compare all pairs of rows, so every second point of each line saves time.
    side = round(len(surface.X) ** 0.5)
    kept = np.arange(len(surface.X)).reshape(side, side)[::_THIN, ::_THIN].ravel()
    X, D = surface.X[kept], surface.D[kept]
    logical = binarize_distribution(D, _THRESHOLD)
    recovered = {
        method.name: method.make().fit_enhance(X, logical) for method in list_methods("enhancer")
    }
    picture = _draw(
        output / "enhancers.png",
        "One surface per method, and the truth",
        X,
        {"truth": D, **recovered},
        columns=4,
    )
    return Section(
        heading="Every method side by side",
        paragraphs=[
            "Every method of lemll recovers the same surface, with fewer points and with the "
            "parameters of its paper. Two of them are not methods but baselines: Uniform gives "
            "all labels the same degree, and Logical gives all relevant labels of a point the "
            "same degree. A method that is not better than both recovers nothing.",
        ],
        picture=picture,
        tables=[_recovery_table(D, recovered)],
    )


def _scale_section(output: Path) -> Section:
    surface = make_artificial_surface()
    flat, steep = (_power(surface.D, exponent) for exponent in _EXPONENTS)
    # One label per point: the largest degree, which no power of the degrees changes.
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
        heading="How much more? Ten rated points fix the scale",
        paragraphs=[
            "The first two surfaces are two true distributions, and one is a power of the other. "
            "In the flat one, the labels hardly differ in degree. In the steep one, one label has "
            "nearly the whole degree. If only the largest label of each point is known, both give "
            "exactly the same 0/1 labels, so no method can distinguish them. The scale of a "
            "recovered distribution is a convention.",
            f"If somebody rates {_RATED} points, they fix the scale: {scales[0]:.2f} for the flat "
            f"truth and {scales[1]:.2f} for the steep one. The numerical labels are the same.",
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
    return TableData(f"Distance from the truth, mean over {len(true)} points", header, rows)


def digits_section() -> Section:
    """Predict the tags of digits by LEMLL, and by their frequencies.

    Returns
    -------
    Section
        The section with the table.
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
        heading="Predicting the tags of new images",
        paragraphs=[
            f"{summary.examples} handwritten digits of {summary.features} pixels come with "
            f"scikit-learn. Each image has some of {summary.labels} tags "
            f"({', '.join(digits.label_names)}): {summary.cardinality:.2f} on average, in "
            f"{summary.distinct} different combinations. LEMLL learns from one half of the images "
            "and predicts the other half. The second row shows a predictor that uses only the "
            "frequencies of the tags.",
        ],
        tables=[TableData(f"{len(test)} test images", header, rows)],
    )
