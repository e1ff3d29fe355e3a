"""The six distribution metrics against SciPy, a slow oracle, and cases worked by hand."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import distance
from scipy.stats import entropy

from lemll.metrics import canberra, chebyshev, clark, cosine, intersection, kl_divergence

ALL = (chebyshev, clark, canberra, kl_divergence, cosine, intersection)
EPS = 2.0**-52


def slow_chebyshev(t, p):
    return max(abs(a - b) for a, b in zip(t, p, strict=True))


def slow_clark(t, p):
    terms = [((a - b) / (a + b)) ** 2 for a, b in zip(t, p, strict=True) if a + b > 0]
    return math.sqrt(sum(terms))


def slow_canberra(t, p):
    return sum(abs(a - b) / (a + b) for a, b in zip(t, p, strict=True) if a + b > 0)


def slow_kl(t, p):
    pairs = [(max(a, EPS), max(b, EPS)) for a, b in zip(t, p, strict=True)]
    return sum(a * math.log(a / b) for a, b in pairs)


def slow_cosine(t, p):
    return sum(a * b for a, b in zip(t, p, strict=True)) / (math.hypot(*t) * math.hypot(*p))


def slow_intersection(t, p):
    return sum(min(a, b) for a, b in zip(t, p, strict=True))


SLOW = {
    chebyshev: slow_chebyshev,
    clark: slow_clark,
    canberra: slow_canberra,
    kl_divergence: slow_kl,
    cosine: slow_cosine,
    intersection: slow_intersection,
}


@st.composite
def pairs(draw, *, zeros=True):
    """Two distributions of the same shape, with exact zeros unless told otherwise."""
    shape = (draw(st.integers(1, 5)), draw(st.integers(1, 6)))
    degree = st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.5]) if zeros else st.floats(0.01, 1)
    result = []
    for _ in range(2):
        degrees = draw(hnp.arrays(np.float64, shape, elements=degree))
        assume((degrees.sum(axis=1) > 0).all())
        result.append(degrees / degrees.sum(axis=1, keepdims=True))
    return result


@pytest.mark.parametrize("metric", ALL)
@settings(max_examples=60, deadline=None)
@given(pair=pairs())
def test_every_metric_equals_the_oracle(metric, pair):
    true, pred = pair
    rows = [SLOW[metric](t.tolist(), p.tolist()) for t, p in zip(true, pred, strict=True)]
    assert_allclose(metric(true, pred, average=False), rows, rtol=1e-12, atol=1e-14)
    mean = metric(true, pred)
    assert isinstance(mean, float)
    assert mean == pytest.approx(np.mean(rows), rel=1e-12, abs=1e-14)


@settings(max_examples=60, deadline=None)
@given(pair=pairs(zeros=False))
def test_scipy_agrees_where_it_has_the_metric(pair):
    true, pred = pair
    for ours, theirs in (
        (chebyshev, distance.chebyshev),
        (canberra, distance.canberra),
        (cosine, lambda t, p: 1 - distance.cosine(t, p)),
        (kl_divergence, entropy),
    ):
        rows = [theirs(t, p) for t, p in zip(true, pred, strict=True)]
        assert_allclose(ours(true, pred, average=False), rows, rtol=1e-9, atol=1e-13)


def test_worked_by_hand():
    true, pred = [[0.5, 0.25, 0.25, 0.0]], [[0.25, 0.75, 0.0, 0.0]]
    assert chebyshev(true, pred) == 0.5
    assert clark(true, pred) == pytest.approx(math.sqrt(1 / 9 + 1 / 4 + 1))
    assert canberra(true, pred) == pytest.approx(1 / 3 + 1 / 2 + 1)
    assert cosine(true, pred) == pytest.approx(0.3125 / math.sqrt(0.375 * 0.625))
    assert intersection(true, pred) == 0.5
    forward = 0.5 * math.log(2) + 0.25 * math.log(1 / 3) + 0.25 * math.log(0.25 / EPS)
    assert kl_divergence(true, pred) == pytest.approx(forward)
    backward = 0.25 * math.log(0.5) + 0.75 * math.log(3)
    assert kl_divergence(true, pred, direction="pred_true") == pytest.approx(backward)


def test_eps_bounds_the_divergence():
    true, pred = [[1.0, 0.0]], [[0.0, 1.0]]
    assert kl_divergence(true, pred) == pytest.approx(math.log(1 / EPS))
    assert kl_divergence(true, pred, eps=1e-3) == pytest.approx(0.999 * math.log(1e3))


def test_a_row_with_one_label():
    assert [metric([[1.0]], [[1.0]]) for metric in ALL] == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("metric", ALL)
def test_callers_arrays_stay(metric):
    rng = np.random.default_rng(0)
    true, pred = rng.dirichlet(np.ones(4), size=(2, 5))
    true[0], pred[0] = [1, 0, 0, 0], [0, 1, 0, 0]
    before = true.copy(), pred.copy()
    true.flags.writeable = pred.flags.writeable = False
    metric(true, pred)
    metric(true, pred, average=False)
    assert_array_equal((true, pred), before)


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize(
    ("true", "pred", "message"),
    [
        ([[0.5, 0.4]], [[0.5, 0.5]], "every row of true must sum to 1, got 0.9 in row 0"),
        ([[0.5, 0.5]], [[0.7, 0.5]], "every row of pred must sum to 1, got 1.2 in row 0"),
        ([[0.5, 0.5]], [[1.5, -0.5]], "pred must not be negative, got -0.5 in row 0, label 1"),
        ([[np.nan, 0.5]], [[0.5, 0.5]], "true must be finite, got nan in row 0, column 0"),
        ([0.5, 0.5], [[0.5, 0.5]], "true must be 2-D"),
        ([[0.5, 0.5]], [[0.5, 0.25, 0.25]], r"pred must have the shape of true, \(1, 2\), got"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "true must have at least one row and one label"),
    ],
)
def test_bad_distributions(metric, true, pred, message):
    with pytest.raises(ValueError, match=message):
        metric(true, pred)


def test_bad_options_of_the_divergence():
    with pytest.raises(ValueError, match="direction must be 'true_pred' or 'pred_true', got 'kl'"):
        kl_divergence([[1.0]], [[1.0]], direction="kl")
    for eps in (0, 1, -1e-3, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"eps must lie in \(0, 1\), got"):
            kl_divergence([[1.0]], [[1.0]], eps=eps)
