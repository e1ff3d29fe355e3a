"""Label distributions over three labels, painted as colours on a surface."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lemll._types import Array
from lemll.exceptions import import_extra

__all__ = ["draw_surfaces"]

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
