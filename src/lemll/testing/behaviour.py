"""Checks of the behaviour of multi-label classifiers."""

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
    """Check that predictions are 0/1 and scores are finite, both with the shape of Y."""
    X, Y = make_data()
    estimator.fit(X, Y)
    predicted, scores = estimator.predict(X), scores_of(estimator, X)
    assert predicted.shape == scores.shape == Y.shape
    assert predicted.dtype.kind in "iu"
    assert set(np.unique(predicted)) <= {0, 1}
    assert scores.dtype.kind == "f"
    assert np.isfinite(scores).all()


def check_learns_something(estimator: Estimator) -> None:
    """Check that predictions are better than the more frequent value of each label."""
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
    """Check that labels are predicted correctly if all of them are constant."""
    X, _ = make_data()
    Y = np.tile([0, 1], (len(X), 1))
    assert_array_equal(estimator.fit(X, Y).predict(X), Y)


def check_rows_without_and_with_all_labels(estimator: Estimator) -> None:
    """Check that rows with no relevant label, or with all labels relevant, give finite scores."""
    X, Y = make_data()
    Y[::5], Y[1::5] = 0, 1
    assert np.isfinite(scores_of(estimator.fit(X, Y), X)).all()


def check_one_label(estimator: Estimator) -> None:
    """Check that a single label is a matrix with one column, in training and in predictions."""
    X, Y = make_data()
    assert estimator.fit(X, Y[:, :1]).predict(X).shape == (len(X), 1)


def check_more_labels_than_rows(estimator: Estimator) -> None:
    """Check that there may be more labels than rows."""
    X, Y = make_data(n_rows=15, n_labels=40)
    assert estimator.fit(X, Y).predict(X).shape == (15, 40)


def check_label_permutation(estimator: Estimator) -> None:
    """Check that permuted labels give permuted scores."""
    X, Y = make_data()
    order = np.array([2, 0, 3, 1])
    straight = scores_of(clone(estimator).fit(X, Y), X)
    permuted = scores_of(estimator.fit(X, Y[:, order]), X)
    assert_allclose(permuted, straight[:, order], rtol=CLOSE, atol=CLOSE)


def check_not_fitted(estimator: Estimator) -> None:
    """Check that predictions before `fit` raise NotFittedError."""
    X, _ = make_data()
    for method in (estimator.predict, estimator.decision_function):
        try:
            method(X)
        except NotFittedError:
            continue
        raise AssertionError(f"{method.__name__} answered before fit")


def check_refit_forgets(estimator: Estimator) -> None:
    """Check that a second `fit` does not depend on the first, also with other shapes."""
    X, Y = make_data()
    other_X, other_Y = make_data(40, 3, seed=1)
    fresh = scores_of(clone(estimator).fit(other_X[:, :4], other_Y), other_X[:, :4])
    refitted = estimator.fit(X, Y).fit(other_X[:, :4], other_Y)
    assert_array_equal(scores_of(refitted, other_X[:, :4]), fresh)


def check_failed_refit_keeps_the_model(estimator: Estimator) -> None:
    """Check that a second `fit` that fails does not change the model of the first."""
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
    """Check that the same data give exactly the same model."""
    X, Y = make_data()
    first, second = (scores_of(clone(estimator).fit(X, Y), X) for _ in range(2))
    assert_array_equal(first, second)


def check_threads(estimator: Estimator) -> None:
    """Check that one thread and two threads give the same predictions."""
    X, Y = make_data(200)
    predictions = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            predictions.append(clone(estimator).fit(X, Y).predict(X))
    assert_array_equal(*predictions)


def check_duplicated_rows(estimator: Estimator) -> None:
    """Check that equal rows (90 %), a constant feature and rows of zeros give finite scores."""
    X, Y = make_data(100)
    X[:90] = X[0]
    X[:, 1] = 1.0
    X[95:] = 0.0
    assert np.isfinite(scores_of(estimator.fit(X, Y), X)).all()


def check_rows_are_independent(estimator: Estimator) -> None:
    """Check that the score of a row does not depend on the other rows of the call."""
    X, Y = make_data()
    estimator.fit(X, Y)
    alone = np.vstack([scores_of(estimator, X[[i]]) for i in range(10)])
    assert_allclose(alone, scores_of(estimator, X)[:10], rtol=1e-7, atol=1e-9)


def check_model_selection(estimator: Estimator) -> None:
    """Check that predictions and scores work in a pipeline and in cross-validation."""
    X, Y = make_data()
    pipeline = make_pipeline(MaxAbsScaler(), estimator)
    for method in ("predict", "decision_function"):
        assert cross_val_predict(pipeline, X, Y, cv=2, method=method).shape == Y.shape
    assert 0 <= pipeline.fit(X, Y).score(X, Y) <= 1


def check_no_warnings(estimator: Estimator) -> None:
    """Check that ordinary data give no warnings."""
    X, Y = make_data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.fit(X, Y).predict(X)
