"""The parameter `feature_scale`: the columns of X are scaled before distances are measured."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from lemll.enhancers import ENHANCERS, LEMLLEnhancer
from lemll.rivals import (
    RIVAL_ENHANCERS,
    FCMEnhancer,
    GLLEEnhancer,
    KMEnhancer,
    LabelPropagationEnhancer,
    ML2Enhancer,
    MLFEEnhancer,
)

SCALED = [
    LEMLLEnhancer(tol=1e-8),
    LEMLLEnhancer(kernel="rbf", tol=1e-8),
    GLLEEnhancer(),
    GLLEEnhancer(standardize=False),
    KMEnhancer(),
    KMEnhancer(kernel="rbf"),
    LabelPropagationEnhancer(),
    FCMEnhancer(random_state=0),
    ML2Enhancer(),
    MLFEEnhancer(),
    MLFEEnhancer(coding="lasso"),
]
every = pytest.mark.parametrize("enhancer", SCALED, ids=str)


def scaled(enhancer, how="standard"):
    return clone(enhancer).set_params(feature_scale=how)


@pytest.fixture(name="data")
def _data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5)) * [1, 30, 0.02, 5, 1] + [0, 100, 0, 3, 1]
    Y = (rng.random((40, 3)) < 0.5).astype(int)
    return X, Y


@every
def test_it_equals_a_scaler_outside(enhancer, data):
    X, Y = data
    for how, scaler in (("standard", StandardScaler()), ("maxabs", MaxAbsScaler())):
        outside = clone(enhancer).fit(scaler.fit_transform(X[:30]), Y[:30])
        inside = scaled(enhancer, how).fit(X[:30], Y[:30])
        np.testing.assert_array_equal(inside.numerical_labels_, outside.numerical_labels_)
        if hasattr(enhancer, "enhance"):
            np.testing.assert_array_equal(
                inside.enhance(X[30:]), outside.enhance(scaler.transform(X[30:]))
            )


@every
def test_the_default_changes_nothing(enhancer, data):
    assert inspect.signature(type(enhancer)).parameters["feature_scale"].default == "none"
    fitted = clone(enhancer).fit(*data)
    assert fitted._scaling is None


@pytest.mark.parametrize("enhancer", [LEMLLEnhancer(), GLLEEnhancer(), LEMLLEnhancer(kernel="rbf")])
def test_sparse_features_stay_sparse(enhancer, data):
    X, Y = data
    X = sparse.csr_array(np.where(X > X.mean(axis=0), X, 0))
    seen = []
    compute = type(enhancer)._numerical_labels

    class Watched(type(enhancer)):
        def _numerical_labels(self, X, Y):
            seen.append(X)
            return compute(self, X, Y)

    params = enhancer.get_params() | {"feature_scale": "auto"}
    watched = Watched.__new__(Watched)
    for name, value in params.items():
        setattr(watched, name, value)
    watched.fit(X, Y)
    assert sparse.issparse(seen[0])
    np.testing.assert_allclose(seen[0].toarray(), MaxAbsScaler().fit_transform(X).toarray())
    np.testing.assert_array_equal(
        watched.numerical_labels_, scaled(enhancer, "maxabs").fit(X, Y).numerical_labels_
    )


@pytest.mark.parametrize("enhancer", [LEMLLEnhancer(tol=1e-8), ML2Enhancer(), MLFEEnhancer()])
def test_a_graph_is_made_of_scaled_rows(enhancer, data):
    X, Y = data
    enhancer = scaled(enhancer)
    graph = enhancer.make_graph(X, Y.shape[1])
    again = clone(enhancer).set_params(graph=graph).fit(X, Y)
    np.testing.assert_allclose(
        again.numerical_labels_, clone(enhancer).fit(X, Y).numerical_labels_, atol=1e-12
    )


def test_every_enhancer_that_looks_at_features_has_it():
    without = {
        kind.__name__
        for kind in (*ENHANCERS, *RIVAL_ENHANCERS)
        if kind.needs_features and "feature_scale" not in inspect.signature(kind).parameters
    }
    # They always standardise.
    assert without == {"LESCEnhancer", "BlendEnhancer"}


@every
@pytest.mark.parametrize("wrong", ["minmax", 1.0, None])
def test_unknown_scalings_are_refused(enhancer, wrong, data):
    text = rf"feature_scale={wrong!r} must be one of 'auto', 'standard', 'maxabs', 'none'\."
    with pytest.raises(ValueError, match=text):
        scaled(enhancer, wrong).fit(*data)


def test_kernel_values_are_not_scaled(data):
    X, Y = data
    enhancer = LEMLLEnhancer(kernel="precomputed", feature_scale="standard")
    text = "feature_scale='standard' must be 'none' with a precomputed kernel, whose columns are no"
    with pytest.raises(ValueError, match=text):
        enhancer.fit(X @ X.T, Y)
