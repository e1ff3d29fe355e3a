"""Checks of the inputs that multi-label classifiers should accept or refuse."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits

from lemll._types import Estimator
from lemll._validation import is_sparse
from lemll.exceptions import MissingExtraError, import_extra
from lemll.lab.testing.shared import assert_close, fitted, make_data, outcome


def check_shapes_and_types(estimator: Estimator) -> None:
    """Check that predictions are 0/1 and scores are finite, both with the shape of Y."""
    X, Y = make_data()
    estimator.fit(X, Y)
    predicted, scores = estimator.predict(X), outcome(estimator, X)
    assert predicted.shape == scores.shape == Y.shape
    assert predicted.dtype.kind in "iu"
    assert set(np.unique(predicted)) <= {0, 1}
    assert scores.dtype.kind == "f"


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


def check_one_label(estimator: Estimator) -> None:
    """Check that a single label is a matrix with one column, in training and in predictions."""
    X, Y = make_data()
    assert estimator.fit(X, Y[:, :1]).predict(X).shape == (len(X), 1)


def check_not_fitted(estimator: Estimator) -> None:
    """Check that predictions before `fit` raise NotFittedError."""
    X, _ = make_data()
    for method in (estimator.predict, estimator.decision_function):
        try:
            method(X)
        except NotFittedError:
            continue
        raise AssertionError(f"{method.__name__} answered before fit")


def check_threads(estimator: Estimator) -> None:
    """Check that one thread and two threads give the same predictions."""
    X, Y = make_data(200)
    predictions = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            predictions.append(clone(estimator).fit(X, Y).predict(X))
    assert_array_equal(*predictions)


def check_rows_are_independent(estimator: Estimator) -> None:
    """Check that the score of a row does not depend on the other rows of the call."""
    X, Y = make_data()
    estimator.fit(X, Y)
    alone = np.vstack([outcome(estimator, X[[i]]) for i in range(10)])
    assert_allclose(alone, outcome(estimator, X)[:10], rtol=1e-7, atol=1e-9)


def check_model_selection(estimator: Estimator) -> None:
    """Check that predictions and scores work in a pipeline and in cross-validation."""
    X, Y = make_data()
    pipeline = make_pipeline(MaxAbsScaler(), estimator)
    for method in ("predict", "decision_function"):
        assert cross_val_predict(pipeline, X, Y, cv=2, method=method).shape == Y.shape
    assert 0 <= pipeline.fit(X, Y).score(X, Y) <= 1


def check_unsorted_sparse_features(estimator: Estimator) -> None:
    """Check that unsorted CSR indices are accepted and are not changed."""
    X, Y = make_data()
    backwards = sparse.csr_array(X)
    for i in range(len(X)):
        part = slice(backwards.indptr[i], backwards.indptr[i + 1])
        backwards.indices[part] = backwards.indices[part][::-1].copy()
        backwards.data[part] = backwards.data[part][::-1].copy()
    backwards.has_sorted_indices = False
    before = backwards.indices.copy()
    dense = outcome(fitted(estimator, X, Y), X)
    assert_close(estimator, outcome(estimator.fit(backwards, Y), X), dense)
    assert_array_equal(backwards.indices, before)


def check_sparse_labels(estimator: Estimator) -> None:
    """Check that sparse labels give the same predictions as dense labels, in sparse form."""
    X, Y = make_data()
    dense = clone(estimator).fit(X, Y).predict(X)
    labels = sparse.csr_array(np.ones_like(Y))
    labels.data = Y.ravel().copy()
    predicted = estimator.fit(X, labels).predict(X)
    assert is_sparse(predicted), "dense predictions for sparse labels"
    assert_array_equal(predicted.toarray(), dense)


def check_label_types(estimator: Estimator) -> None:
    """Check that labels 0/1 as booleans, floats or nested lists give the same scores."""
    X, Y = make_data()
    expected = outcome(fitted(estimator, X, Y), X)
    for labels in (Y.astype(bool), Y.astype(float), Y.astype(np.uint8), Y.tolist()):
        assert_array_equal(outcome(fitted(estimator, X, labels), X), expected)


def check_wrong_number_of_features_is_refused(estimator: Estimator) -> None:
    """Check that rows with another number of features than in training are refused."""
    X, Y = make_data()
    estimator.fit(X, Y)
    try:
        estimator.predict(X[:, :-1])
    except ValueError:
        return
    raise AssertionError("rows with a feature less were accepted")


def check_memory_layout(estimator: Estimator) -> None:
    """Check that Fortran order and strides do not change the scores."""
    X, Y = make_data()
    expected = outcome(fitted(estimator, X, Y), X)
    spread = np.repeat(X, 2, axis=1)[:, ::2]
    for features in (np.asfortranarray(X), spread):
        labels = np.asfortranarray(Y)
        assert_close(estimator, outcome(fitted(estimator, features, labels), X), expected)


def check_frames(estimator: Estimator) -> None:
    """Check that labels from pandas give frames, with their names and the index of X."""
    try:
        pd = import_extra("pandas", "test", "This check")
    except MissingExtraError:
        return
    X, Y = make_data()
    names, index = ["sky", "sea", "sun", "it's"], [f"row {i}" for i in range(len(X))]
    features = pd.DataFrame(X, index=index, columns=list("abcdef"))
    labels = pd.DataFrame(Y, index=index, columns=names)
    plain = clone(estimator).fit(X, Y).predict(X)
    predicted = estimator.fit(features, labels).predict(features.iloc[10:20])
    assert list(predicted.columns) == names
    assert list(predicted.index) == index[10:20]
    assert_array_equal(predicted.to_numpy(), plain[10:20])
