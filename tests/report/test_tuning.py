"""Pictures of a search: what is drawn is what was found."""

from __future__ import annotations

import numpy as np
import pytest

from lemll.report.tuning import (
    _movement_figure,
    _scores_figure,
    draw_label_movement,
    draw_scores,
    score_surface,
)

PNG = b"\x89PNG"


@pytest.fixture(name="results")
def _results():
    """Two alphas; at the best one three of four points; and another kernel."""
    rows = [
        (1.0, 1.0, 0.0, "linear", 0.5),
        (4.0, 1.0, 0.0, "linear", 0.6),
        (4.0, 4.0, 0.0, "linear", 0.9),
        (4.0, 4.0, 2.0, "linear", 0.7),
        (4.0, 4.0, 2.0, "rbf", 0.8),
    ]
    names = ("param_alpha", "param_beta", "param_gamma", "param_kernel", "mean_test_one_error")
    table = {
        name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    same = np.array(["variance"] * 5, dtype=object)
    return table | {"param_kernel_gamma": same, "param_normalize_rows": np.zeros(5, dtype=bool)}


def test_the_surface_is_the_plane_of_the_best_alpha_and_kernel(results):
    surface = score_surface(results, 2, "one_error")
    assert surface.best == (4.0, 4.0, 0.0)
    np.testing.assert_array_equal(surface.betas, [1, 4])
    np.testing.assert_array_equal(surface.gammas, [0, 2])
    np.testing.assert_array_equal(surface.scores, [[0.6, np.nan], [0.9, 0.7]])
    with pytest.raises(
        ValueError, match="measure='coverage' was not measured; there are one_error"
    ):
        score_surface(results, 2, "coverage")


def test_the_scores_are_drawn_with_a_star_at_the_best(results):
    surface = score_surface(results, 2, "one_error")
    axes = _scores_figure(surface, 50).axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array().filled(np.nan), surface.scores)
    assert [list(data) for data in axes.lines[0].get_data()] == [[0], [1]]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["1", "4"]
    assert axes.get_title() == "one_error, alpha = 4"
    assert draw_scores(surface, dpi=50).startswith(PNG)


def test_the_movement_of_the_labels_is_a_line_for_each_beta():
    points = [(4.0, 1.0), (1.0, 4.0), (1.0, 0.0), (4.0, 0.0)]
    distances = [0.2, 0.6, 0.5, 0.1]
    lines = {
        line.get_label(): np.column_stack(line.get_data()).tolist()
        for line in _movement_figure(points, distances, 50).axes[0].lines
    }
    assert lines == {"beta = 1": [[0, 0.5], [4, 0.6]], "beta = 4": [[0, 0.1], [1, 0.2]]}
    assert draw_label_movement(points, distances, dpi=50).startswith(PNG)


@pytest.mark.parametrize(("points", "distances"), [([], []), ([(1.0, 1.0)], [])])
def test_a_distance_for_each_point(points, distances):
    with pytest.raises(ValueError, match="expected one distance for each of at least one point"):
        draw_label_movement(points, distances)
