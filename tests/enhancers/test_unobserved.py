"""Enhancement of labels with unknown cells and confidences: who can, and who cannot."""

import numpy as np
import pandas as pd
import pytest

from lemll import LEMLL
from lemll.datasets import load_digit_tags
from lemll.enhancers import ENHANCERS, LEMLLEnhancer
from lemll.enhancers.base import PARTIAL_ENHANCERS
from lemll.rivals import RIVAL_ENHANCERS


@pytest.fixture(name="data", scope="module")
def _data():
    digits = load_digit_tags()
    X, Y = digits.X[:100], digits.Y[:100]
    return X, Y, np.random.default_rng(0).random(Y.shape) < 0.5


def partial(Y, hidden):
    return np.where(hidden, np.nan, Y)


@pytest.mark.parametrize("kind", [*ENHANCERS, *RIVAL_ENHANCERS], ids=lambda kind: kind.__name__)
def test_an_enhancer_can_or_names_those_that_can(kind, data):
    X, Y, hidden = data
    if kind.__name__ in PARTIAL_ENHANCERS:
        assert np.isfinite(kind().fit_enhance(X, partial(Y, hidden))).all()
        return
    message = (
        f"{kind.__name__} needs all labels, but {hidden.sum()} cells of y are unknown or not "
        r"certain; use an enhancer that can learn from such labels \(LEMLLEnhancer, "
        r"LabelGraphEnhancer, BlendEnhancer\), or fill"
    )
    with pytest.raises(ValueError, match=message):
        kind().fit(X, partial(Y, hidden))
    with pytest.raises(ValueError, match="needs all labels, but 800 cells"):
        kind().fit(X, Y, label_weight=np.full(Y.shape, 0.5))
    # Weights of 1 are the ordinary fit.
    np.testing.assert_array_equal(
        kind().fit(X, Y, label_weight=np.ones(Y.shape)).label_distribution_.shape, Y.shape
    )


def test_it_is_the_optimum_that_the_classifier_finds(data):
    X, Y, hidden = data
    weight = np.where(hidden, 0.25, 1.0)
    weight[:20] = 0
    enhancer = LEMLLEnhancer(4.0).fit(X, Y, label_weight=weight)
    model = LEMLL(4.0).fit(X, Y, label_weight=weight)
    assert enhancer.optimality_ <= 1e-4
    np.testing.assert_array_equal(enhancer.numerical_labels_, model.numerical_labels_)


def test_a_label_that_nobody_observed_is_named(data):
    X, Y, hidden = data
    hidden = hidden.copy()
    hidden[:, 1] = True
    frame = pd.DataFrame(partial(Y, hidden), columns=list("abcdefgh"))
    with pytest.warns(UserWarning, match="without an observed cell have degrees that no .*: b "):
        enhancer = LEMLLEnhancer().fit(X, frame)
    assert not enhancer.numerical_labels_[:, 1].any()


def test_weights_belong_to_the_rows(data):
    X, Y, hidden = data
    rows = pd.DataFrame(X).rename(columns=str)
    weight = pd.DataFrame((~hidden).astype(float))[::-1]
    with pytest.raises(ValueError, match="the index of label_weight must be that of X"):
        LEMLLEnhancer().fit(rows, Y, label_weight=weight)
