"""Checks of the inputs that multi-label classifiers should accept or refuse."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits

from lemll._types import Array, Estimator, Features, MatrixLike
from lemll._validation import is_sparse
from lemll.exceptions import MissingExtraError, import_extra

__all__ = ["CLOSE", "assert_refused", "make_data", "scores_of"]

# Solvers stop at a tolerance, so scores of equal problems are equal only up to this difference.
CLOSE = 1e-3


def make_data(n_rows: int = 60, n_labels: int = 4, seed: int = 0) -> tuple[Array, Array]:
    """Make rows with six features, some of them 0, and labels that depend on them."""
    rng = np.random.RandomState(seed)
    X = rng.rand(n_rows, 6)
    X[X < 0.3] = 0
    scores = (X - X.mean(axis=0)) @ rng.randn(6, n_labels)
    Y = (scores + 0.05 * rng.randn(n_rows, n_labels) > 0).astype(int)
    Y[0], Y[1] = 0, 1  # so no label is constant, for every seed
    return X, Y


def scores_of(estimator: Estimator, X: Features) -> Array:
    """Return the scores of a fitted estimator as an array."""
    return np.asarray(estimator.decision_function(X))


def assert_refused(estimator: Estimator, X: Features, Y: MatrixLike, what: str) -> None:
    """Assert that `fit` raises a ValueError with a message."""
    try:
        estimator.fit(X, Y)
    except ValueError as error:
        message = str(error)
    else:
        raise AssertionError(f"{what} was accepted")
    if not message:
        raise AssertionError(f"{what} was refused without a message")


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


def check_sparse_features(estimator: Estimator) -> None:
    """Check that dense features and all sparse formats and index types give the same scores."""
    X, Y = make_data()
    dense = scores_of(clone(estimator).fit(X, Y), X)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for features in (sparse.csr_array(X), sparse.csc_matrix(X), sparse.coo_array(X), wide):
        assert_allclose(
            scores_of(clone(estimator).fit(features, Y), features), dense, rtol=CLOSE, atol=CLOSE
        )


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
    dense = scores_of(clone(estimator).fit(X, Y), X)
    assert_allclose(scores_of(estimator.fit(backwards, Y), X), dense, rtol=CLOSE, atol=CLOSE)
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
    expected = scores_of(clone(estimator).fit(X, Y), X)
    for labels in (Y.astype(bool), Y.astype(float), Y.astype(np.uint8), Y.tolist()):
        assert_array_equal(scores_of(clone(estimator).fit(X, labels), X), expected)


def check_minus_plus_one_is_refused(estimator: Estimator) -> None:
    """Check that labels with other codes than 0/1, for example -1/+1, are refused."""
    X, Y = make_data()
    assert_refused(clone(estimator), X, 2 * Y - 1, "a label matrix coded -1/+1")
    assert_refused(clone(estimator), X, 2 * Y, "a label matrix coded 0/2")
    assert_refused(estimator, X, Y + 0.5, "a label matrix of fractions")


def check_missing_and_infinite_are_refused(estimator: Estimator) -> None:
    """Check that NaN and infinity in X, and infinity in Y, are refused."""
    X, Y = make_data()
    for value in (np.nan, np.inf):
        bad = X.copy()
        bad[3, 2] = value
        assert_refused(clone(estimator), bad, Y, f"{value} in X")
    labels = Y.astype(float)
    labels[3, 2] = np.inf
    assert_refused(clone(estimator), X, labels, "inf in Y")


def check_unknown_cells(estimator: Estimator) -> None:
    """Check that NaN in Y is refused, or that it means: nobody observed this cell.

    In the second case `fit` takes `label_weight`, and the value of a cell without a weight does not
    change anything.
    """
    X, Y = make_data()
    hidden = np.zeros(Y.shape, dtype=bool)
    hidden[::3, 0] = hidden[1::4, 1] = True
    labels = np.where(hidden, np.nan, Y)
    try:
        expected = scores_of(clone(estimator).fit(X, labels), X)
    except ValueError:
        return
    assert np.isfinite(expected).all(), "unknown cells must not lead to scores that are not finite"
    weight = (~hidden).astype(float)
    for values in (0, 1):
        filled = np.where(hidden, values, Y)
        found = scores_of(clone(estimator).fit(X, filled, label_weight=weight), X)
        assert_allclose(found, expected, err_msg="cells without a weight must not matter")


def check_unequal_lengths_are_refused(estimator: Estimator) -> None:
    """Check that X and Y with different numbers of rows, and empty arrays, are refused."""
    X, Y = make_data()
    assert_refused(clone(estimator), X[:-1], Y, "X with a row less than Y")
    assert_refused(clone(estimator), X[:0], Y[:0], "an empty X")
    assert_refused(estimator, X, Y[:, :0], "a label matrix without labels")


def check_wrong_number_of_features_is_refused(estimator: Estimator) -> None:
    """Check that rows with another number of features than in training are refused."""
    X, Y = make_data()
    estimator.fit(X, Y)
    try:
        estimator.predict(X[:, :-1])
    except ValueError:
        return
    raise AssertionError("rows with a feature less were accepted")


def check_inputs_and_parameters_stay(estimator: Estimator) -> None:
    """Check that read-only arrays are accepted, and that arrays and parameters do not change."""
    X, Y = make_data()
    kept_X, kept_Y, parameters = X.copy(), Y.copy(), estimator.get_params()
    X.flags.writeable = Y.flags.writeable = False
    estimator.fit(X, Y).predict(X)
    assert_array_equal(X, kept_X)
    assert_array_equal(Y, kept_Y)
    assert estimator.get_params() == parameters


def check_memory_layout(estimator: Estimator) -> None:
    """Check that Fortran order and strides do not change the scores."""
    X, Y = make_data()
    expected = scores_of(clone(estimator).fit(X, Y), X)
    spread = np.repeat(X, 2, axis=1)[:, ::2]
    for features in (np.asfortranarray(X), spread):
        labels = np.asfortranarray(Y)
        assert_allclose(
            scores_of(clone(estimator).fit(features, labels), X), expected, rtol=CLOSE, atol=CLOSE
        )


def check_float32(estimator: Estimator) -> None:
    """Check that features in single precision give nearly the same scores."""
    X, Y = make_data()
    expected = scores_of(clone(estimator).fit(X, Y), X)
    single = X.astype(np.float32)
    assert_allclose(scores_of(estimator.fit(single, Y), single), expected, rtol=1e-2, atol=1e-2)


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
