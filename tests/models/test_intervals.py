"""Intervals of measures: derivatives by hand, rare labels, coverage and memory."""

import numpy as np
import pytest
from support import Peak

from lemll.metrics import METRICS
from lemll.models import assess
from lemll.models.assess import MEASURES, interval, label_shares, row_influences


def as_given(name, p, cut=0.5):
    return (p > cut).astype(np.int8) if METRICS[name].prediction == "labels" else p


@pytest.mark.parametrize("name", MEASURES)
def test_an_influence_is_the_change_by_a_little_more_of_a_row(name):
    rng = np.random.RandomState(0)
    Y = rng.randint(0, 2, (20, 4)).astype(float)
    p = np.clip(0.25 + 0.5 * Y + 0.2 * rng.randn(20, 4), 0.01, 0.99).round(2)
    Y[rng.rand(20, 4) < 0.1] = np.nan
    given, copies = as_given(name, p), 2000
    found = row_influences(name, Y, given)
    for row in (3, 11):
        rows = np.concatenate([np.tile(np.arange(20), copies), [row]])
        change = METRICS[name](Y[rows], given[rows]) - METRICS[name](Y, given)
        assert copies * change == pytest.approx(found[row], rel=2e-3, abs=1e-6)


def test_rare_labels_do_not_push_an_interval_away_from_its_figure():
    """A bootstrap sample loses labels of one row, and their F1 with it."""
    rng = np.random.RandomState(0)
    Y = np.zeros((100, 60))
    Y[np.arange(60), np.arange(60)] = 1
    Y[:, 0] = rng.rand(100) < 0.5
    found = assess(Y, Y, (Y == 1) & (np.arange(60) < 20), label_shares(Y))
    for score in found.scores:
        low, high = score.interval
        assert low <= score.value <= high
    macro = next(score for score in found.scores if score.measure == "macro_f1")
    assert macro.value == pytest.approx(1 / 3)


def test_rows_that_are_all_right_leave_doubt():
    low, high = interval("subset_accuracy", 1.0, np.zeros(50))
    assert high == 1
    # A learner that is right in this share of rows is right in all of 50 with probability 1/40.
    assert low**50 == pytest.approx(0.025)
    assert interval("one_error", 0.0, np.zeros(50)) == pytest.approx((0.0, 1 - low))


def test_copies_of_rows_do_not_make_an_interval_narrower():
    rng = np.random.RandomState(0)
    Y, p = (rng.rand(80, 4) < 0.4).astype(float), rng.rand(80, 4).round(2)
    rows = np.repeat(np.arange(80), 3)
    once = assess(Y, p, p > 0.5, label_shares(Y), probabilities=p)
    thrice = assess(
        Y[rows], p[rows], p[rows] > 0.5, label_shares(Y), probabilities=p[rows], groups=rows
    )
    for one, three in zip(once.scores, thrice.scores, strict=True):
        np.testing.assert_allclose(three.interval, one.interval, rtol=1e-9)
        np.testing.assert_allclose(three.difference, one.difference, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_intervals_cover_the_figure_of_all_rows_in_about_95_of_100_cases(nightly):
    cases = 200 if nightly else 60
    covered = dict.fromkeys(MEASURES, 0)
    for seed in range(cases):
        draw, n_rows = made_world(np.random.default_rng(seed))
        (Y, p), (everything, p_of_all) = draw(n_rows), draw(4000)
        for name in MEASURES:
            given, of_all = as_given(name, p, 0.3), as_given(name, p_of_all, 0.3)
            used = slice(None)
            if name.startswith("macro"):  # the labels are those of the rows
                used = (Y == 1).any(axis=0) & (Y == 0).any(axis=0)
                Y_used, given = Y[:, used], given[:, used]
            else:
                Y_used = Y
            value = METRICS[name](Y_used, given)
            low, high = interval(name, value, row_influences(name, Y_used, given))
            assert low <= value <= high
            covered[name] += low <= METRICS[name](everything[:, used], of_all[:, used]) <= high
    # Four standard deviations of a count of so many cases with the share .95.
    assert min(covered.values()) >= 0.95 * cases - 4 * np.sqrt(0.95 * 0.05 * cases), covered


def made_world(rng):
    """Return a function that draws rows of 5 to 20 labels with their probabilities, and a count."""
    n_labels, n_rows = int(rng.integers(5, 20)), int(rng.integers(80, 400))
    log_odds = np.log(10 ** rng.uniform(-2, -0.3, n_labels))
    quality, together = rng.uniform(0.5, 3), rng.uniform(0, 1)

    def draw(n):
        z = rng.normal(size=(n, n_labels)) + together * rng.normal(size=(n, 1))
        clean = quality * z + log_odds
        noisy = clean + 0.5 * rng.normal(size=clean.shape)
        Y = rng.random(clean.shape) < 1 / (1 + np.exp(-clean))
        return Y.astype(float), 1 / (1 + np.exp(-noisy))

    return draw, n_rows


def test_the_memory_of_the_figures_is_a_few_copies_of_the_cells():
    rng = np.random.RandomState(0)
    Y = (rng.rand(1500, 80) < 0.1).astype(float)
    p = np.clip(0.3 * Y + 0.5 * rng.rand(1500, 80), 0.01, 0.99)
    with Peak() as peak:
        assess(Y, p, p > 0.5, label_shares(Y), probabilities=p)
    assert peak.bytes < 20 * Y.nbytes
