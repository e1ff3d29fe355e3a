"""Rates and intervals of the noise, and the scores, against sums by hand and against truth."""

import numpy as np
import pytest
from scipy.stats import binom

from lemll.audit.scores import (
    NoiseRates,
    error_probability,
    label_noise,
    noise_rates,
    prior_odds,
    row_quality,
    strangeness,
)


def noisy_problem(missing, added, n=4000, seed=0):
    """Tags that the features separate perfectly, with noise of known rates."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((n, 3)) < 0.3).astype(np.int8)
    Y = truth.copy()
    Y[(truth == 1) & (rng.random(truth.shape) < missing)] = 0
    Y[(truth == 0) & (rng.random(truth.shape) < added * 0.3 / 0.7)] = 1
    rate = added * 0.3 / 0.7
    q = np.where(truth == 1, 1 - missing, rate) * (1 + 0.01 * rng.random(truth.shape))
    return truth, Y, np.clip(q, 0, 1)


@pytest.mark.parametrize(("missing", "added"), [(0.3, 0.1), (0.05, 0.02), (0.0, 0.0)])
def test_label_noise_covers_the_rates_of_separable_tags(missing, added):
    truth, Y, q = noisy_problem(missing, added)
    found = label_noise(q, Y, 0.9)
    wrong = ((truth == 0) & (Y == 1)).sum(axis=0) / (Y == 1).sum(axis=0)
    lost = ((truth == 1) & (Y == 0)).sum(axis=0) / truth.sum(axis=0)
    assert (wrong <= found.wrong_high).all()
    assert (lost <= found.missing_high).all()
    assert (found.wrong_high - wrong < 0.12).all()
    assert (found.missing_high - lost < 0.12).all()
    np.testing.assert_allclose(found.missing, lost, atol=0.06)


def test_bound_is_that_of_clopper_and_pearson():
    """The upper end is the share at which so few counts are as unlikely as the error."""
    Y = np.zeros((40, 1), dtype=np.int8)
    Y[:20] = 1
    Y[3] = 0
    q = np.linspace(1, 0, 40)[:, None]
    high = label_noise(q, Y, 0.9).missing_high[0]
    sizes = np.unique(np.geomspace(10, 19, 6).astype(int))
    counts = [1 if size > 3 else 0 for size in sizes]
    tails = [binom.cdf(c, s, high) for c, s in zip(counts, sizes, strict=True)]
    assert min(tails) == pytest.approx(0.1 / len(sizes), rel=1e-6)


def test_labels_that_are_always_or_never_given_cannot_be_told():
    Y = np.array([[0, 1]] * 30, dtype=np.int8)
    found = label_noise(np.full((30, 2), 0.5), Y, 0.9)
    assert (found.wrong_high == 1).all()
    assert (found.missing_high == 1).all()


def test_rates_are_cautious_and_positive():
    _, Y, q = noisy_problem(0.3, 0.1)
    rates = noise_rates(q, Y)
    assert rates.missing == pytest.approx(0.4 * 0.3, abs=0.03)
    assert rates.added == pytest.approx(0.4 * 0.1, abs=0.02)
    _, Y, q = noisy_problem(0.0, 0.0)
    assert noise_rates(q, Y) == NoiseRates(0.001, 0.001)


def test_error_is_bayes_rule():
    Y = np.array([[1], [0]] + [[1], [0], [0], [0]] * 10, dtype=np.int8)
    odds = prior_odds(Y)[0]
    rates = NoiseRates(missing=0.2, added=0.1)
    q = np.full(Y.shape, 0.3)
    found = error_probability(q, Y, rates)
    rho = 0.1 * odds
    p = (len(Y) * (0.3 - rho) / (1 - rho - 0.2) + odds) / (len(Y) + odds + 1)
    wrong = rho * (1 - p) / (rho * (1 - p) + 0.8 * p)
    lost = 0.2 * p / (0.2 * p + (1 - rho) * (1 - p))
    assert found[0, 0] == pytest.approx(wrong, abs=2e-3)
    assert found[1, 0] == pytest.approx(lost, abs=2e-3)


def test_score_falls_with_the_probability_of_given_tags_and_rises_for_others():
    Y = np.array([[1]] * 50 + [[0]] * 150, dtype=np.int8)
    q = np.concatenate([np.linspace(0, 1, 50), np.linspace(0, 1, 150)])[:, None]
    error = error_probability(q, Y, NoiseRates(0.3, 0.3))
    assert (np.diff(error[:50, 0]) < 0).all()
    assert (np.diff(error[50:, 0]) > 0).all()
    assert ((error >= 0) & (error <= 1)).all()
    assert ((strangeness(q, Y) >= 0) & (strangeness(q, Y) <= 1)).all()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_few_rows_never_make_sure_but_many_rows_do(share):
    sure = {}
    for n in (10, 30, 3000):
        Y = (np.arange(n) < share * n).astype(np.int8)[:, None]
        # The models are sure of the opposite of every cell.
        sure[n] = error_probability(1.0 - Y, Y, NoiseRates(0.2, 0.2)).max()
    assert sure[10] < 0.9
    assert sure[10] < sure[30] < sure[3000]
    assert sure[3000] > 0.99


def test_unknown_cells_are_not_judged():
    Y = np.array([[1, 0], [-1, 1], [0, -1], [1, 1]], dtype=np.int8)
    q = np.full(Y.shape, 0.4)
    error = error_probability(q, Y, NoiseRates(0.1, 0.1))
    np.testing.assert_array_equal(np.isnan(error), Y == -1)
    rows = row_quality(1 - error)
    assert rows[0] == pytest.approx((1 - error[0, 0]) * (1 - error[0, 1]))
    assert rows[1] == pytest.approx(1 - error[1, 1])
    assert np.isnan(row_quality(np.full((1, 2), np.nan))[0])


def test_a_few_sure_cells_without_mistakes_do_not_hide_the_others():
    # Of the fifty cells that look most like the tag none lacks it, of the next thousand 4 %.
    rng = np.random.default_rng(0)
    probability = np.concatenate([np.linspace(1, 0.99, 1050), np.full(5000, 0.01)])[:, None]
    Y = np.concatenate([np.ones(1050), np.zeros(5000)]).astype(np.int8)[:, None]
    Y[50 + rng.choice(1000, 40, replace=False)] = 0
    rates = noise_rates(probability, Y)
    assert 0.4 * 0.02 < rates.missing < 0.4 * 0.06
