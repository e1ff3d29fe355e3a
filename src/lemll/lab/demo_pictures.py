"""Pictures of label enhancement on embedded data, for the documentation."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lemll._types import Array, FloatArray, Settings
from lemll.datasets.describe import binarize_distribution
from lemll.datasets.generators import make_artificial_surface
from lemll.enhancers.baselines import LogicalEnhancer, UniformEnhancer
from lemll.enhancers.lemll import LEMLLEnhancer
from lemll.exceptions import import_extra
from lemll.lab.methods import list_methods
from lemll.metrics.table import METRICS
from lemll.report.page import Picture, Section, TableData

__all__ = ["draw_demo_pictures", "draw_surfaces"]

_LEAST_LARGEST = 0.5


def draw_surfaces(
    X: npt.NDArray[np.float64],
    paints: Mapping[str, Array],
    *,
    columns: int = 5,
    shared_colours: bool = False,
    size: float = 4.2,
    dpi: int = 130,
) -> bytes:
    """Draw one surface per paint, side by side.

    Parameters
    ----------
    X : ndarray of shape (k * k, 3)
        Points on a surface over a square grid. The second coordinate changes faster, as in
        `lemll.datasets.make_artificial_surface`.
    paints : mapping of str to ndarray of shape (k * k, 3)
        Title and degrees in [0, 1]; the three labels are red, green and blue.
    columns : int, default=5
        Largest number of surfaces in a line.
    shared_colours : bool, default=False
        Whether the same degree has the same colour in all surfaces. Otherwise the degrees of each
        surface are divided by the largest one, which shows more detail.
    size : float, default=4.2
        Size of a surface in inches; a smaller size makes the text relatively larger.
    dpi : int, default=130
        Resolution.

    Returns
    -------
    bytes
        A PNG picture.
    """
    figure_module = import_extra("matplotlib.figure", "report", "Drawing pictures")
    side = round(len(X) ** 0.5)
    if side * side != len(X) or X.shape[1] != 3:
        raise ValueError(
            f"expected the points of a square grid with 3 coordinates, got shape {X.shape}"
        )
    x1, x2, x3 = (X[:, j].reshape(side, side) for j in range(3))
    width = min(columns, len(paints))
    height = -(-len(paints) // width)
    # Degrees rarely exceed .8. Divided by the largest one, the colours are easier to distinguish.
    # The divisor has a lower limit, so that a point whose labels are all equal is grey, not white.
    largest = {title: max(float(np.max(paint)), _LEAST_LARGEST) for title, paint in paints.items()}
    if shared_colours:
        largest = dict.fromkeys(paints, max(largest.values()))
    # The Figure class, not pyplot: no global state, no window, safe in threads and servers.
    figure = figure_module.Figure(
        figsize=(size * width, 0.95 * size * height), dpi=dpi, layout="constrained"
    )
    for place, (title, paint) in enumerate(paints.items(), start=1):
        axes = figure.add_subplot(height, width, place, projection="3d")
        colours = np.asarray(paint, dtype=np.float64).reshape(side, side, 3)
        colours = np.clip(colours / largest[title], 0, 1)
        axes.plot_surface(
            x1, x2, x3, facecolors=colours[:-1, :-1], rstride=1, cstride=1, shade=False,
            antialiased=False,
        )  # fmt: skip
        axes.set(title=title, xlabel="$x_1$", ylabel="$x_2$", zlabel="$x_3$")
        axes.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], zticks=[-1, 0, 1])
        axes.view_init(elev=42, azim=-60)
        axes.set_box_aspect(None, zoom=0.88)  # leaves space for the label of the third axis
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


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
