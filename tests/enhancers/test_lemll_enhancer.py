"""LEMLL as an enhancer, on data whose true distribution is known."""

import numpy as np
import pytest

from lemll import LEMLL
from lemll.datasets import binarize_distribution, make_artificial
from lemll.enhancers import LEMLLEnhancer
from lemll.fitting.scaling import normalize
from lemll.metrics import chebyshev


@pytest.fixture(scope="module")
def artificial():
    data = make_artificial(300, random_state=0)
    return data, binarize_distribution(data.D, 0.5)


def test_it_is_the_same_optimum_as_the_predictors(artificial):
    data, Y = artificial
    enhancer = LEMLLEnhancer(tol=1e-8).fit(data.X, Y)
    model = LEMLL(tol=1e-8).fit(data.X, Y)
    np.testing.assert_array_equal(enhancer.numerical_labels_, model.numerical_labels_)
    np.testing.assert_array_equal(enhancer.label_distribution_, model.label_distribution_)
    assert enhancer.optimality_ <= 1e-8


def test_it_recovers_more_than_the_logical_labels_tell(artificial):
    data, Y = artificial
    recovered = LEMLLEnhancer().fit_enhance(data.X, Y)
    as_given = Y / Y.sum(axis=1, keepdims=True)
    assert chebyshev(data.D, recovered) < 0.6 * chebyshev(data.D, as_given)


def test_normalize_by_hand_and_its_errors():
    np.testing.assert_allclose(
        normalize([[3.0, 1.0], [-1.0, 0.0]], "sum"), [[0.75, 0.25], [0.5, 0.5]]
    )
    np.testing.assert_allclose(normalize([[np.log(3), 0.0]], "softmax"), [[0.75, 0.25]])
    np.testing.assert_allclose(
        normalize([[1.0, 0.0]], scale=2.0), [[0.6378903, 0.3621097]], rtol=1e-6
    )
    with pytest.raises(ValueError, match="normalization='max' must be one of sigmoid, softmax"):
        normalize([[1.0]], "max")


def test_a_one_dimensional_target_is_one_label_a_class(artificial):
    data, Y = artificial
    D = LEMLLEnhancer().fit_enhance(data.X, Y[:, 0])
    assert D.shape == (300, 2)
    assert (D[:, 1] > D[:, 0]).mean() == pytest.approx(Y[:, 0].mean(), abs=0.1)


def test_one_label_has_no_distribution(artificial):
    data, Y = artificial
    with pytest.raises(ValueError, match="over 1 class or label says nothing; give at least 2"):
        LEMLLEnhancer().fit(data.X, Y[:, :1])
