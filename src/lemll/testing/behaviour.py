"""How a multi-label classifier should behave."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits

from lemll._types import Estimator
from lemll.testing.data import CLOSE, assert_refused, make_data, scores_of

__all__ = []


def check_shapes_and_types(estimator: Estimator) -> None:
    """Predictions are 0/1 integers, scores finite floats, both (n, l)."""
    X, Y = make_data()
    estimator.fit(X, Y)
    predicted, scores = estimator.predict(X), scores_of(estimator, X)
    assert predicted.shape == scores.shape == Y.shape
    assert predicted.dtype.kind in "iu"
    assert set(np.unique(predicted)) <= {0, 1}
    assert scores.dtype.kind == "f"
    assert np.isfinite(scores).all()


def check_learns_something(estimator: Estimator) -> None:
    """Training rows are predicted better than by each label's commoner value."""
    X, Y = make_data(200)
    wrong = (estimator.fit(X, Y).predict(X) != Y).mean()
    commoner = np.minimum(Y.mean(axis=0), 1 - Y.mean(axis=0)).mean()
    assert wrong < commoner, f"{wrong:.3f} wrong, by guessing {commoner:.3f}"


def check_constant_labels(estimator: Estimator) -> None:
    """Check that a label that never or always occurs in training is predicted in the same way."""
    X, Y = make_data()
    wide = np.column_stack([np.zeros(len(Y)), Y, np.ones(len(Y))]).astype(int)
    predicted = estimator.fit(X, wide).predict(X)
    assert not predicted[:, 0].any()
    assert predicted[:, -1].all()


def check_all_labels_constant(estimator: Estimator) -> None:
    """Even when no label varies."""
    X, _ = make_data()
    Y = np.tile([0, 1], (len(X), 1))
    assert_array_equal(estimator.fit(X, Y).predict(X), Y)


def check_rows_without_and_with_all_labels(estimator: Estimator) -> None:
    """Rows with no label, or all of them, are rows like others."""
    X, Y = make_data()
    Y[::5], Y[1::5] = 0, 1
    assert np.isfinite(scores_of(estimator.fit(X, Y), X)).all()


def check_one_label(estimator: Estimator) -> None:
    """One label is a matrix of one column, going in and coming out."""
    X, Y = make_data()
    assert estimator.fit(X, Y[:, :1]).predict(X).shape == (len(X), 1)


def check_more_labels_than_rows(estimator: Estimator) -> None:
    """There may be more labels than rows."""
    X, Y = make_data(n_rows=15, n_labels=40)
    assert estimator.fit(X, Y).predict(X).shape == (15, 40)


def check_label_permutation(estimator: Estimator) -> None:
    """Permuted labels give permuted scores."""
    X, Y = make_data()
    order = np.array([2, 0, 3, 1])
    straight = scores_of(clone(estimator).fit(X, Y), X)
    permuted = scores_of(estimator.fit(X, Y[:, order]), X)
    assert_allclose(permuted, straight[:, order], rtol=CLOSE, atol=CLOSE)


def check_not_fitted(estimator: Estimator) -> None:
    """Before `fit` there is a NotFittedError."""
    X, _ = make_data()
    for method in (estimator.predict, estimator.decision_function):
        try:
            method(X)
        except NotFittedError:
            continue
        raise AssertionError(f"{method.__name__} answered before fit")


def check_refit_forgets(estimator: Estimator) -> None:
    """Forget the first `fit` in the second, also with other sizes."""
    X, Y = make_data()
    other_X, other_Y = make_data(40, 3, seed=1)
    fresh = scores_of(clone(estimator).fit(other_X[:, :4], other_Y), other_X[:, :4])
    refitted = estimator.fit(X, Y).fit(other_X[:, :4], other_Y)
    assert_array_equal(scores_of(refitted, other_X[:, :4]), fresh)


def check_failed_refit_keeps_the_model(estimator: Estimator) -> None:
    """Keep the model of the first `fit` where the second fails, also with another width."""
    X, Y = make_data()
    before = scores_of(estimator.fit(X, Y), X)
    attributes = sorted(vars(estimator))
    others = {
        "a label matrix of halves": (X[:, :4], Y + 0.5),
        "Y with a row less than X": (X[:, :4], Y[:-1]),
        "a label matrix of sevens": (X, np.full(Y.shape, 7)),
    }
    for what, (other_X, other_Y) in others.items():
        assert_refused(estimator, other_X, other_Y, what)
        assert_array_equal(scores_of(estimator, X), before)
        assert sorted(vars(estimator)) == attributes


def check_deterministic(estimator: Estimator) -> None:
    """Give the same model for the same data, to the last bit."""
    X, Y = make_data()
    first, second = (scores_of(clone(estimator).fit(X, Y), X) for _ in range(2))
    assert_array_equal(first, second)


def check_threads(estimator: Estimator) -> None:
    """One and two threads predict the same."""
    X, Y = make_data(200)
    predictions = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            predictions.append(clone(estimator).fit(X, Y).predict(X))
    assert_array_equal(*predictions)


def check_duplicated_rows(estimator: Estimator) -> None:
    """Nine equal rows in ten, a constant feature and all-zero rows give finite scores."""
    X, Y = make_data(100)
    X[:90] = X[0]
    X[:, 1] = 1.0
    X[95:] = 0.0
    assert np.isfinite(scores_of(estimator.fit(X, Y), X)).all()


def check_rows_are_independent(estimator: Estimator) -> None:
    """Score a row the same whatever rows are scored with it."""
    X, Y = make_data()
    estimator.fit(X, Y)
    alone = np.vstack([scores_of(estimator, X[[i]]) for i in range(10)])
    assert_allclose(alone, scores_of(estimator, X)[:10], rtol=1e-7, atol=1e-9)


def check_model_selection(estimator: Estimator) -> None:
    """Works in a pipeline and in cross-validation, by its scores too."""
    X, Y = make_data()
    pipeline = make_pipeline(MaxAbsScaler(), estimator)
    for method in ("predict", "decision_function"):
        assert cross_val_predict(pipeline, X, Y, cv=2, method=method).shape == Y.shape
    assert 0 <= pipeline.fit(X, Y).score(X, Y) <= 1


def check_no_warnings(estimator: Estimator) -> None:
    """Ordinary data raise no warning."""
    X, Y = make_data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.fit(X, Y).predict(X)
