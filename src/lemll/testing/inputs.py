"""Checks of the inputs that multi-label classifiers should accept or refuse."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from lemll._types import Estimator
from lemll._validation import is_sparse
from lemll.exceptions import MissingExtraError, import_extra
from lemll.testing.data import CLOSE, assert_refused, make_data, scores_of

__all__ = []


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
