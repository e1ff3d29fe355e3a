"""The functions with cleanlab's names: its calls and its label formats."""

import numpy as np
import pytest

from lemll.audit import (
    find_label_issues,
    get_label_quality_scores,
    get_label_quality_scores_per_class,
    tag_quality,
)
from lemll.audit.scores import EVEN_ODDS


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    truth = (rng.random((300, 4)) < 0.4).astype(int)
    p = np.clip(0.9 * truth + 0.05 + 0.03 * rng.normal(size=truth.shape), 0.001, 0.999)
    noisy = truth.copy()
    rows = np.arange(0, 300, 15)
    noisy[rows, rows % 4] = 1 - noisy[rows, rows % 4]
    return [np.flatnonzero(row).tolist() for row in noisy], noisy, p, rows


def test_lists_of_classes_give_the_rows_with_mistakes(problem):
    lists, noisy, p, rows = problem
    mask = find_label_issues(lists, p)
    assert mask.dtype == bool
    assert set(np.flatnonzero(mask)) <= set(rows)
    cells = get_label_quality_scores_per_class(lists, p)
    # A row is an issue if one of its cells is more likely wrong than right.
    np.testing.assert_array_equal(mask, (cells < 1 - EVEN_ODDS).any(axis=1))
    assert mask.any()
    ranked = find_label_issues(lists, p, return_indices_ranked_by="self_confidence")
    assert set(ranked) == set(np.flatnonzero(mask))
    quality = get_label_quality_scores(lists, p)
    assert quality.shape == (300,)
    assert (np.diff(quality[ranked]) >= 0).all()
    assert quality[rows].max() < np.delete(quality, rows).min()
    np.testing.assert_array_equal(cells, tag_quality(None, noisy, pred_probs=p))
    assert ((cells >= 0) & (cells <= 1)).all()


def test_unknown_orders_are_refused(problem):
    lists, _, p, _ = problem
    with pytest.raises(ValueError, match="must be None or one of self_confidence, normalized"):
        find_label_issues(lists, p, return_indices_ranked_by="random")
