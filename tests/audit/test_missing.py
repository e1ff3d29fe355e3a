"""The order of tags that are not given: judged by the tags that are given."""

import numpy as np
import pytest

from lemll._validation import UNOBSERVED
from lemll.audit.scores import missing_log_odds


@pytest.fixture(name="cells")
def _cells():
    """Return labels, log-odds that are no guide at the top, and log-odds that are."""
    rng = np.random.default_rng(0)
    Y = (rng.random((400, 3)) < 0.3).astype(np.int8)
    good = np.where(Y == 1, 2.0, -2.0) + rng.normal(size=Y.shape)
    # The surest cells of this model have no tag.
    poor = np.where((Y == 0) & (rng.random(Y.shape) < 0.1), 6.0, good)
    return Y, poor, good


def hidden_precision(Y, log_odds):
    """Return the average precision of given tags of weight 0.05 among the others, by a loop."""
    order = np.argsort(-log_odds.ravel(), kind="stable")
    weight = np.where(Y.ravel()[order] == 1, 0.05, 1.0)
    given = Y.ravel()[order] == 1
    precision = np.cumsum(weight * given) / np.cumsum(weight)
    return (precision * weight * given).sum() / (weight * given).sum()


def test_a_second_model_counts_if_it_finds_more(cells):
    Y, poor, good = cells
    assert hidden_precision(Y, (poor + good) / 2) > 1.05 * hidden_precision(Y, poor)
    np.testing.assert_array_equal(missing_log_odds(poor, good, Y), (poor + good) / 2)


def test_it_does_not_count_otherwise(cells):
    Y, poor, good = cells
    assert missing_log_odds(good, poor, Y) is good
    # Less than 5 % more is not enough.
    assert missing_log_odds(good, good + 1e-3 * np.where(Y == 1, 1, -1), Y) is good


def test_unknown_cells_have_no_say(cells):
    Y, poor, good = cells
    hidden = Y.copy()
    hidden[:20] = UNOBSERVED
    spoiled = good.copy()
    spoiled[:20] = -100.0
    expected = missing_log_odds(poor[20:], good[20:], Y[20:])
    np.testing.assert_array_equal(missing_log_odds(poor, spoiled, hidden)[20:], expected)


@pytest.mark.parametrize("value", [0, 1])
def test_without_a_tag_or_a_gap_nothing_can_be_judged(value, cells):
    _, poor, good = cells
    Y = np.full(poor.shape, value, dtype=np.int8)
    assert missing_log_odds(poor, good, Y) is poor
