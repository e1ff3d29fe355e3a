"""The registry: being registered is all a method needs."""

import pytest
from engine_methods import Logged, plan, ran
from sklearn.base import is_classifier

from lemll.lab import Method, get_method, list_methods, methods, register
from lemll.lab.tables import ComparisonTable

PAPER = (1 / 64, 1 / 16, 1 / 4, 1, 4, 16, 64)


@pytest.fixture
def one_more(monkeypatch):
    monkeypatch.setattr(methods, "_METHODS", dict(methods._METHODS))
    return register(Method("One more", "learner", Logged, {"shift": [0.0, 1.0]}, "a line of text"))


def test_every_method_makes_fresh_estimators_that_have_its_parameters():
    for method in list_methods():
        made = method.make()
        assert made is not method.make()
        assert is_classifier(made) == (method.kind == "learner")
        assert hasattr(made, "fit_enhance") == (method.kind == "enhancer")
        assert method.grid.keys() <= made.get_params().keys()
        assert method.summary


def test_lemll_has_the_papers_grid_and_enhances_as_published():
    assert dict(get_method("learner", "LEMLL").grid) == dict.fromkeys(
        ("alpha", "beta", "gamma"), PAPER
    )
    assert get_method("enhancer", "LEMLL").make().graph == {"reg_policy": "auto"}


def test_a_method_registered_runs_and_appears_everywhere(one_more, tmp_path, log):
    assert get_method("learner", "One more") is one_more
    assert one_more in list_methods("learner")
    protocol = plan("LEMLL", "One more", splits=2)
    store = ran(protocol, tmp_path / "store", done=4)
    assert "| LEMLL | One more |" in ComparisonTable.from_store(protocol, store).to_markdown()


def test_a_registered_grid_cannot_be_changed(one_more):
    with pytest.raises(TypeError, match="does not support item assignment"):
        one_more.grid["shift"] = (3,)


def test_what_cannot_be_registered_is_refused(one_more):
    with pytest.raises(ValueError, match="learner 'One more' is registered already"):
        register(one_more)
    with pytest.raises(ValueError, match="kind must be 'learner' or 'enhancer', got 'other'"):
        register(Method("x", "other", Logged))
    with pytest.raises(ValueError, match="grid of 'x' names gama, which the estimator does not"):
        register(Method("x", "learner", Logged, {"gama": (1,)}))


def test_an_unknown_method_is_named_with_the_nearest():
    with pytest.raises(ValueError, match="unknown learner 'lemml'; did you mean 'LEMLL'"):
        get_method("learner", "lemml")
