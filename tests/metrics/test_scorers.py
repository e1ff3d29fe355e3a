"""The table of metrics, and the scorers in scikit-learn's model selection."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lemll import metrics
from lemll.metrics import (
    METRICS,
    average_precision,
    get_scorer,
    hamming_loss,
    kl_divergence,
    ranking_loss,
    scorer_names,
)

MULTILABEL = [name for name, metric in METRICS.items() if metric.kind == "multilabel"]
DISTRIBUTION = [name for name, metric in METRICS.items() if metric.kind == "distribution"]


@pytest.fixture(scope="module")
def problem():
    return make_multilabel_classification(n_samples=90, n_classes=4, random_state=0)


@pytest.fixture(scope="module")
def distributions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    D = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    return X, D


class Constant(ClassifierMixin, BaseEstimator):
    """Answers what it is given, by whatever method it is given for."""

    def __init__(self, **answers):
        for method, answer in answers.items():
            setattr(self, method, lambda X, answer=answer: answer)


# --- The table --------------------------------------------------------------------------------


def test_the_table_names_every_metric():
    assert scorer_names() == sorted(METRICS)
    functions = {name for name in metrics.__all__ if name in METRICS}
    assert {*METRICS} - functions == {"kl_divergence_pred_true", "precision_at_1", "precision_at_3"}
    assert {*DISTRIBUTION} | {*MULTILABEL} == {*METRICS}
    in_paper = {name for name in DISTRIBUTION if METRICS[name].in_paper}
    assert in_paper == {"chebyshev", "kl_divergence_pred_true", "cosine"}


@pytest.mark.parametrize("name", METRICS)
def test_the_direction_is_the_true_one(name):
    metric = METRICS[name]
    if metric.kind == "distribution":
        truth, good, bad = [[0.7, 0.2, 0.1]], [[0.7, 0.2, 0.1]], [[0.1, 0.2, 0.7]]
    else:
        truth = good = np.array([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]])
        bad = 1 - truth
    assert (metric(truth, good) > metric(truth, bad)) == metric.greater_is_better
    assert metric.arrow == ("↑" if metric.greater_is_better else "↓")


def test_the_papers_divergence_is_that_of_the_prediction_from_the_truth():
    true, pred = [[0.7, 0.3]], [[0.2, 0.8]]
    paper = METRICS["kl_divergence_pred_true"](true, pred)
    assert paper == kl_divergence(true, pred, direction="pred_true")
    assert METRICS["kl_divergence"](true, pred) == kl_divergence(true, pred)


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError, match="does not support item assignment"):
        METRICS["mine"] = METRICS["coverage"]
    with pytest.raises(AttributeError, match="cannot assign to field"):
        METRICS["coverage"].greater_is_better = True


# --- In model selection -----------------------------------------------------------------------


@pytest.mark.parametrize("name", MULTILABEL)
def test_every_multilabel_scorer_scores(name, problem):
    X, Y = problem
    model = OneVsRestClassifier(LogisticRegression(max_iter=1000)).fit(X, Y)
    method = {"labels": "predict", "scores": "decision_function", "probabilities": "predict_proba"}
    prediction = getattr(model, method[METRICS[name].prediction])(X)
    value = METRICS[name](Y, prediction)
    sign = 1 if METRICS[name].greater_is_better else -1
    assert get_scorer(name)(model, X, Y) == sign * value
    assert get_scorer(name)(model, X, sparse.csr_array(Y)) == sign * value


def test_grid_search_picks_the_better_model_by_a_loss(problem):
    X, Y = problem
    search = GridSearchCV(
        KNeighborsClassifier(),
        {"n_neighbors": [1, 15]},
        scoring=get_scorer("ranking_loss"),
        cv=3,
        error_score="raise",
    )
    clone(search).fit(X, Y)
    search.fit(X, Y)
    losses = []
    for k in (1, 15):
        model = KNeighborsClassifier(k)
        losses.append(
            -cross_val_score(model, X, Y, scoring=get_scorer("ranking_loss"), cv=3).mean()
        )
    assert search.best_params_["n_neighbors"] == (1, 15)[int(np.argmin(losses))]
    assert search.best_score_ == pytest.approx(-min(losses))


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(
            MultiOutputClassifier(LogisticRegression(max_iter=1000)), marks=pytest.mark.nightly
        ),
        RandomForestClassifier(n_estimators=5, random_state=0),
        pytest.param(
            make_pipeline(StandardScaler(), KNeighborsClassifier()), marks=pytest.mark.nightly
        ),
        OneVsRestClassifier(KNeighborsClassifier()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_probabilities_as_list_and_as_array(model, problem):
    X, Y = problem
    scoring = {name: get_scorer(name) for name in MULTILABEL}
    result = cross_validate(clone(model), X, Y, scoring=scoring, cv=3, error_score="raise")
    for name in MULTILABEL:
        assert np.isfinite(result[f"test_{name}"]).all()
    assert result["test_average_precision"].mean() > 0.6
    fitted = clone(model).fit(X, Y)
    tables = fitted.predict_proba(X)
    if isinstance(tables, list):
        tables = np.column_stack([table[:, 1] for table in tables])
    assert get_scorer("average_precision")(fitted, X, Y) == average_precision(Y, tables)


@pytest.mark.parametrize("constant", [0, 1])
def test_a_label_that_never_varied_in_training(constant, problem):
    X, Y = problem
    Y_train = Y.copy()
    Y_train[:, 2] = constant
    model = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, Y_train)
    tables = model.predict_proba(X)
    assert tables[2].shape == (len(X), 1)
    columns = [
        table[:, 1] if table.shape[1] == 2 else np.full(len(X), constant) for table in tables
    ]
    expected = -ranking_loss(Y, np.column_stack(columns))
    assert get_scorer("ranking_loss")(model, X, Y) == expected


def test_decision_function_goes_before_probabilities():
    Y = [[1, 0, 0]]
    model = Constant(decision_function=np.array(Y), predict_proba=-np.array(Y))
    assert get_scorer("one_error")(model, None, Y) == 0


def test_a_list_of_probabilities_without_classes():
    tables = [np.array([[0.2, 0.8]]), np.array([[0.9, 0.1]])]
    model = Constant(predict_proba=tables)
    assert get_scorer("average_precision")(model, None, [[1, 0]]) == 1
    model = Constant(predict_proba=[tables[0], np.array([[1.0]])])
    with pytest.raises(ValueError, match="1 columns for label 1, but there are 2 classes"):
        get_scorer("average_precision")(model, None, [[1, 0]])


@pytest.mark.parametrize("name", DISTRIBUTION)
def test_distribution_scorers(name, distributions):
    X, D = distributions
    uniform = np.full_like(D, 1 / 3)
    sign = 1 if METRICS[name].greater_is_better else -1
    scorer = get_scorer(name)
    model = Constant(predict_distribution=uniform)
    assert scorer(model, X, D) == sign * METRICS[name](D, uniform)
    scores = cross_val_score(KNeighborsRegressor(), X, D, scoring=scorer, error_score="raise")
    assert scores.mean() > scorer(model, X, D)


def test_options_reach_the_metric(problem, distributions):
    X, Y = problem
    model = KNeighborsClassifier().fit(X, Y)
    scores = np.column_stack([table[:, 1] for table in model.predict_proba(X)])
    scorer = get_scorer("ranking_loss", convention="mulan", empty="skip")
    expected = ranking_loss(Y, scores, convention="mulan", empty="skip")
    assert scorer(model, X, Y) == -expected
    assert expected != ranking_loss(Y, scores)
    assert repr(scorer) == "get_scorer('ranking_loss', convention='mulan', empty='skip')"


@pytest.mark.slow
def test_a_scorer_travels_to_other_processes(problem, distributions):
    X, Y = problem
    model = KNeighborsClassifier().fit(X, Y)
    for name in MULTILABEL:
        scorer = get_scorer(name)
        assert pickle.loads(pickle.dumps(scorer))(model, X, Y) == scorer(model, X, Y)  # noqa: S301
    X, D = distributions
    model = KNeighborsRegressor().fit(X, D)
    for name in DISTRIBUTION:
        scorer = get_scorer(name)
        assert pickle.loads(pickle.dumps(scorer))(model, X, D) == scorer(model, X, D)  # noqa: S301
    scores = cross_val_score(model, X, D, scoring=get_scorer("chebyshev"), cv=2, n_jobs=2)
    assert_allclose(scores, cross_val_score(model, X, D, scoring=get_scorer("chebyshev"), cv=2))


# --- Refusals ---------------------------------------------------------------------------------


def test_wrong_names_and_options_fail_at_once():
    with pytest.raises(ValueError, match="unknown metric 'accuracy'; known are average_precision,"):
        get_scorer("accuracy")
    with pytest.raises(ValueError, match=r"convention must be one of .* got 'weka'"):
        get_scorer("coverage", convention="weka")
    with pytest.raises(TypeError, match="unexpected keyword argument 'convention'"):
        get_scorer("hamming_loss", convention="paper")
    with pytest.raises(ValueError, match="a scorer needs one number; leave out average=False"):
        get_scorer("coverage", average=False)


def test_estimators_without_the_needed_method():
    model = Constant(predict=np.array([[1, 0]]))
    with pytest.raises(TypeError, match="Constant has neither decision_function nor predict_proba"):
        get_scorer("coverage")(model, None, [[1, 0]])
    with pytest.raises(TypeError, match="Constant has no predict_distribution and is not a regre"):
        get_scorer("clark")(model, None, [[1.0, 0.0]])
    assert get_scorer("hamming_loss")(model, None, [[1, 1]]) == -hamming_loss([[1, 1]], [[1, 0]])


def test_a_regressor_that_predicts_no_distribution_is_refused(distributions):
    X, D = distributions
    model = Ridge().fit(X, D + 1)
    with pytest.raises(ValueError, match="every row of pred must sum to 1, got 4 in row 0"):
        get_scorer("chebyshev")(model, X, D)
