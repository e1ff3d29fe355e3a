"""Parameters that hold several settings, and the templates of searches."""

import copy

import numpy as np
import pytest
from sklearn.base import clone

from lemll import LEMLL, LEMLLCV, MSVR, MSVRCV, MSVRClassifier
from lemll.enhancers import LEMLLEnhancer
from lemll.rivals import ML2, ML2Enhancer
from lemll.topology import reconstruction_weights

ONE = {"alphas": (1.0,), "cv": 2}


@pytest.fixture(name="data", scope="module")
def _data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    return X, (X[:, :3] + rng.standard_normal((60, 3)) > 0.2).astype(int)


@pytest.mark.parametrize("parameter", ["kernel_params", "graph", "solver_params"])
@pytest.mark.parametrize("kind", [LEMLL, LEMLLEnhancer])
def test_unknown_settings_are_refused_with_those_that_are_known(kind, parameter, data):
    known = {
        "kernel_params": "gamma.*degree.*coef0.*approximation.*n_components.*random_state",
        "graph": "neighbors.*reg_policy",
        "solver_params": "label_block.*precision",
    }[parameter]
    with pytest.raises(ValueError, match=f"{parameter} has the key 'widht'.*{known}"):
        kind(**{parameter: {"widht": 1}}).fit(*data)
    if parameter != "graph":
        with pytest.raises(ValueError, match=f"{parameter} must be None or a dict.*{known}.*'x'"):
            kind(**{parameter: "x"}).fit(*data)


@pytest.mark.parametrize("estimator", [MSVR(), MSVRClassifier(), ML2()])
def test_learners_without_approximations_refuse_them(estimator, data):
    estimator = clone(estimator).set_params(kernel="rbf", kernel_params={"approximation": None})
    with pytest.raises(ValueError, match="kernel_params has the key 'approximation'.*coef0'"):
        estimator.fit(*data)


def test_settings_of_the_graph_are_those_of_the_weights(data):
    X, Y = data
    for neighbors in ("exact", "auto"):
        settings = {"neighbors": neighbors, "reg_policy": "auto"}
        W = reconstruction_weights(X, 7, reg_policy="auto")
        for kind in (LEMLL, LEMLLEnhancer):
            expected = kind(graph=W).fit(X, Y).numerical_labels_
            found = kind(graph=settings, n_neighbors=7).fit(X, Y).numerical_labels_
            np.testing.assert_array_equal(found, expected)
    W = reconstruction_weights(X, 4, reg=1e-3, reg_policy="always")
    found = ML2Enhancer(graph={"reg": 1e-3, "reg_policy": "always"}).fit(X, Y).numerical_labels_
    np.testing.assert_array_equal(found, ML2Enhancer(graph=W).fit(X, Y).numerical_labels_)


def test_settings_of_the_caller_are_not_touched(data):
    settings = {"gamma": 0.5}
    estimator = LEMLL(kernel="rbf", kernel_params=settings, graph={"reg_policy": "auto"})
    estimator.fit(*data)
    assert settings == {"gamma": 0.5}
    assert estimator.graph == {"reg_policy": "auto"}
    assert estimator.kernel_.gamma == 0.5


@pytest.mark.parametrize(
    ("search", "template"),
    [
        (LEMLLCV, LEMLL(5.0, kernel="poly", thresholds="f1", probability=True, n_neighbors=4)),
        (MSVRCV, MSVRClassifier(5.0, kernel="poly", thresholds="f1", probability=True)),
    ],
)
def test_a_template_gives_what_is_not_searched_and_stays_as_it_is(search, template, data):
    X, Y = data
    template.set_params(kernel_params={"degree": 2}, scale="standard", epsilon=0.3, tol=1e-5)
    before = copy.deepcopy(template.get_params())
    model = search(**ONE, estimator=template).fit(X, Y)
    assert model.estimator is template
    assert template.get_params() == before
    assert not hasattr(template, "classes_")
    final = model.best_estimator_
    assert final.kernel_.name == "poly"
    assert final.kernel_.degree == 2
    assert final.alpha == 1.0
    assert final.epsilon == 0.3
    assert model.optimality_ <= 1e-5
    alone = clone(template).set_params(alpha=1.0)
    if search is LEMLLCV:
        alone.set_params(**{name: model.best_params_[name] for name in ("beta", "gamma")})
    np.testing.assert_allclose(model.predict_proba(X), alone.fit(X, Y).predict_proba(X), atol=0.02)


@pytest.mark.parametrize("search", [LEMLLCV, MSVRCV])
@pytest.mark.parametrize("given", [False, True])
def test_parameters_of_the_template_are_set_as_in_scikit_learn(search, given, data):
    model = search(**ONE, estimator=search._kind(tol=1e-3) if given else None)
    same = model.set_params(kernel="rbf", estimator__thresholds="f1", estimator__probability=True)
    assert same is model
    assert model.get_params()["estimator__thresholds"] == "f1"
    assert model.estimator.tol == (1e-3 if given else search._tol)
    assert hasattr(model, "predict_proba")
    assert clone(model).fit(*data).thresholds_.any()
    with pytest.raises(ValueError, match="Invalid parameter 'width' for estimator"):
        model.set_params(estimator__width=1)


def test_the_search_takes_the_kernel_of_the_template_unless_it_is_told_another(data):
    template = LEMLL(kernel="rbf")
    few = {**ONE, "betas": (1.0,), "gammas": (1.0,), "estimator": template}
    assert LEMLLCV(**few).fit(*data).best_params_["kernel"] == "rbf"
    assert LEMLLCV(**few, kernel="linear").fit(*data).best_params_["kernel"] == "linear"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"graph": np.eye(60)}, "the given graph of estimator cannot be used in a search"),
        ({"kernel_params": {"approximation": "nystroem"}}, "approximation in kernel_params of"),
        ({"solver_params": {"label_block": 2}}, "label_block in solver_params of estimator"),
        ({"kernel_params": {"widht": 1}}, "kernel_params has the key 'widht'"),
        ({"graph": {"reg": 1}}, "graph has the key 'reg'"),
    ],
)
def test_templates_that_cannot_be_searched_are_refused(settings, message, data):
    with pytest.raises(ValueError, match=message):
        LEMLLCV(**ONE, estimator=LEMLL(**settings)).fit(*data)


def test_a_template_of_another_kind_is_refused(data):
    with pytest.raises(TypeError, match=r"None or an unfitted LEMLL, got MSVRClassifier\(\)"):
        LEMLLCV(**ONE, estimator=MSVRClassifier()).fit(*data)
