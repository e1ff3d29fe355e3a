"""Labels that depend on the features, from nothing but a seed."""

import numpy as np
import pytest


def make_labelled(seed=0, *, n=60, d=4, n_labels=3):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, d)
    score = X @ rng.randn(d, n_labels) + np.sin(3 * X[:, :1])
    return X, (score + 0.7 * rng.randn(n, n_labels) > 0).astype(int)


@pytest.fixture(name="make_labelled")
def _make_labelled():
    return make_labelled


@pytest.fixture(name="labelled")
def _labelled():
    return make_labelled()
