"""Pictures of a search: the scores, and how far the labels move, over the parameters."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lemll._types import FloatArray, SettingsView
from lemll.exceptions import import_extra

__all__ = ["ScoreSurface", "draw_label_movement", "draw_scores", "score_surface"]


class ScoreSurface(NamedTuple):
    """Mean scores over beta and gamma, at the alpha and the kernel of the best point.

    Attributes
    ----------
    betas, gammas : ndarray
        Values that were tried, in ascending order.
    scores : ndarray of shape (n_betas, n_gammas)
        Greater is better; NaN means that the point was not tried.
    best : tuple of float
        alpha, beta and gamma of the best point.
    measure : str
        Name of the measure.
    """

    betas: FloatArray
    gammas: FloatArray
    scores: FloatArray
    best: tuple[float, float, float]
    measure: str


def score_surface(results: SettingsView, best_index: int, measure: str) -> ScoreSurface:
    """Select the scores at the best alpha from the results of a search.

    Parameters
    ----------
    results : mapping of str to ndarray
        ``cv_results_`` of `lemll.LEMLLCV`.
    best_index : int
        ``best_index_`` of the same search.
    measure : str
        Name of a measure of the search.

    Returns
    -------
    ScoreSurface
        The scores that `draw_scores` draws.
    """
    if f"mean_test_{measure}" not in results:
        known = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
        raise ValueError(f"measure={measure!r} was not measured; there are {', '.join(known)}.")
    same = np.ones(len(results["param_alpha"]), dtype=bool)
    for name in ("alpha", "kernel", "kernel_gamma", "normalize_rows"):
        column = results[f"param_{name}"]
        same &= np.array([value == column[best_index] for value in column])
    beta, gamma = (np.asarray(results[f"param_{name}"], float)[same] for name in ("beta", "gamma"))
    betas, rows = np.unique(beta, return_inverse=True)
    gammas, columns = np.unique(gamma, return_inverse=True)
    scores = np.full((len(betas), len(gammas)), np.nan)
    scores[rows, columns] = results[f"mean_test_{measure}"][same]
    alpha, beta_best, gamma_best = (
        float(results[f"param_{name}"][best_index]) for name in ("alpha", "beta", "gamma")
    )
    return ScoreSurface(betas, gammas, scores, (alpha, beta_best, gamma_best), measure)


def draw_scores(surface: ScoreSurface, *, dpi: int = 130) -> bytes:
    """Draw mean scores over beta and gamma; points that were not tried stay empty.

    Parameters
    ----------
    surface : ScoreSurface
        From `score_surface`.
    dpi : int, default=130
        Resolution.

    Returns
    -------
    bytes
        A PNG picture.
    """
    return _png(_scores_figure(surface, dpi))


def draw_label_movement(
    points: Sequence[tuple[float, float]], distances: Sequence[float], *, dpi: int = 130
) -> bytes:
    """Draw how far the numerical labels are from the logical labels, one line per beta.

    Parameters
    ----------
    points : sequence of (beta, gamma)
        The points at which the distances were measured.
    distances : sequence of float
        Mean of ``|u_ij - y_ij|`` at each point.
    dpi : int, default=130
        Resolution.

    Returns
    -------
    bytes
        A PNG picture.
    """
    if len(points) != len(distances) or not points:
        raise ValueError(
            f"expected one distance for each of at least one point, got {len(points)} points and "
            f"{len(distances)} distances."
        )
    return _png(_movement_figure(points, distances, dpi))


def _scores_figure(surface: ScoreSurface, dpi: int) -> Any:
    figure_module = import_extra("matplotlib.figure", "report", "Drawing pictures")
    # The Figure class, not pyplot: no global state, no window, safe in threads and servers.
    figure = figure_module.Figure(figsize=(5.4, 4.4), dpi=dpi, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(surface.scores, origin="lower", aspect="auto", cmap="viridis")
    alpha, beta, gamma = surface.best
    at = (
        int(np.flatnonzero(surface.gammas == gamma)[0]),
        int(np.flatnonzero(surface.betas == beta)[0]),
    )
    axes.plot(*at, marker="*", markersize=16, color="white", markeredgecolor="black")
    axes.set(
        title=f"{surface.measure}, alpha = {alpha:g}",
        xlabel="gamma",
        ylabel="beta",
        xticks=range(len(surface.gammas)),
        yticks=range(len(surface.betas)),
        xticklabels=[f"{value:g}" for value in surface.gammas],
        yticklabels=[f"{value:g}" for value in surface.betas],
    )
    figure.colorbar(image, ax=axes)
    return figure


def _movement_figure(
    points: Sequence[tuple[float, float]], distances: Sequence[float], dpi: int
) -> Any:
    figure_module = import_extra("matplotlib.figure", "report", "Drawing pictures")
    figure = figure_module.Figure(figsize=(5.4, 4.4), dpi=dpi, layout="constrained")
    axes = figure.add_subplot()
    for beta in sorted({beta for beta, _ in points}):
        line = sorted((p[1], d) for p, d in zip(points, distances, strict=True) if p[0] == beta)
        axes.plot(*zip(*line, strict=True), marker="o", markersize=3, label=f"beta = {beta:g}")
    # Gamma may be 0, which a logarithmic scale cannot show.
    smallest = min((gamma for _, gamma in points if gamma > 0), default=1.0)
    axes.set_xscale("symlog", base=4, linthresh=smallest)
    axes.set(title="How far U is from Y", xlabel="gamma", ylabel="mean |u - y|", ylim=(0, None))
    axes.legend(fontsize="small")
    return figure


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()
