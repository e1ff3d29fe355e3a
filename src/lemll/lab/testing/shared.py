"""Checks of classifiers and of enhancers alike, and the functions that all checks use."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from lemll._types import Array, Estimator, Features, MatrixLike

# Rows of a distribution sum to one up to rounding.
ROUNDING = 1e-12


def make_data(n_rows: int = 60, n_labels: int = 4, seed: int = 0) -> tuple[Array, Array]:
    """Make rows with six features, some of them 0, and labels that depend on them."""
    rng = np.random.RandomState(seed)
    X = rng.rand(n_rows, 6)
    X[X < 0.3] = 0
    scores = (X - X.mean(axis=0)) @ rng.randn(6, n_labels)
    Y = (scores + 0.05 * rng.randn(n_rows, n_labels) > 0).astype(int)
    Y[0], Y[1] = 0, 1  # so no label is constant, for every seed
    return X, Y


def assert_close(estimator: Estimator, found: Array, expected: Array) -> None:
    """Assert that equal problems have equal results, up to the tolerance at which solvers stop."""
    most = 1e-4 if hasattr(estimator, "fit_enhance") else 1e-3
    assert_allclose(found, expected, rtol=most, atol=most)


def copied(estimator: Estimator, **parameters: object) -> Estimator:
    """Return a copy with other parameters; an enhancer gets a seed."""
    copy = clone(estimator)
    if hasattr(copy, "fit_enhance") and "random_state" in copy.get_params():
        copy.set_params(random_state=0)
    return copy.set_params(**parameters)


def fitted(estimator: Estimator, X: Features, Y: MatrixLike, **weights: Array) -> Estimator:
    """Fit a copy of an estimator."""
    return copied(estimator).fit(X, Y, **weights)


def outcome(model: Estimator, X: Features) -> Array:
    """Return the scores of a classifier, or the distribution of an enhancer."""
    if hasattr(model, "fit_enhance"):
        assert_distribution(model.label_distribution_, model.numerical_labels_.shape)
        return np.asarray(model.label_distribution_)
    scores = np.asarray(model.decision_function(X))
    assert np.isfinite(scores).all(), "the scores are not finite"
    return scores


def assert_distribution(D: Array, shape: tuple[int, int]) -> None:
    """Assert that the rows of an array are distributions."""
    assert D.shape == shape
    assert D.dtype == np.float64
    assert np.isfinite(D).all()
    assert (D >= 0).all()
    assert_allclose(D.sum(axis=1), 1, rtol=ROUNDING)


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


def check_rows_without_and_with_all_labels(estimator: Estimator) -> None:
    """Check that rows with no relevant label, or with all labels relevant, are accepted."""
    X, Y = make_data()
    Y[::5], Y[1::5] = 0, 1
    outcome(fitted(estimator, X, Y), X)


def check_more_labels_than_rows(estimator: Estimator) -> None:
    """Check that there may be more labels than rows."""
    X, Y = make_data(n_rows=15, n_labels=40)
    assert outcome(fitted(estimator, X, Y), X).shape == (15, 40)


def check_duplicated_rows(estimator: Estimator) -> None:
    """Check that equal rows (90 %), a constant feature and rows of zeros are accepted."""
    X, Y = make_data(100)
    X[:90] = X[0]
    X[:, 1] = 1.0
    X[95:] = 0.0
    outcome(fitted(estimator, X, Y), X)


def check_label_permutation(estimator: Estimator) -> None:
    """Check that permuted labels give permuted results."""
    X, Y = make_data()
    order = np.array([2, 0, 3, 1])
    straight = outcome(fitted(estimator, X, Y), X)
    permuted = outcome(fitted(estimator, X, Y[:, order]), X)
    assert_close(estimator, permuted, straight[:, order])


def check_sparse_features(estimator: Estimator) -> None:
    """Check that dense features and all sparse formats and index types give the same results."""
    X, Y = make_data()
    dense = outcome(fitted(estimator, X, Y), X)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for features in (sparse.csr_array(X), sparse.csc_matrix(X), sparse.coo_array(X), wide):
        found = outcome(fitted(estimator, features, Y), features)
        assert_close(estimator, found, dense)


def check_float32(estimator: Estimator) -> None:
    """Check that features in single precision give nearly the same results."""
    X, Y = make_data()
    single = X.astype(np.float32)
    expected = outcome(fitted(estimator, X, Y), X)
    assert_allclose(outcome(fitted(estimator, single, Y), single), expected, rtol=1e-2, atol=1e-2)


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


def check_unequal_lengths_are_refused(estimator: Estimator) -> None:
    """Check that X and Y with different numbers of rows, and empty arrays, are refused."""
    X, Y = make_data()
    assert_refused(clone(estimator), X[:-1], Y, "X with a row less than Y")
    assert_refused(clone(estimator), X[:0], Y[:0], "an empty X")
    assert_refused(estimator, X, Y[:, :0], "a label matrix without labels")


def check_unknown_cells(estimator: Estimator) -> None:
    """Check that NaN in Y is refused, or that it means: nobody observed this cell.

    In the second case `fit` takes `label_weight`, and the value of a cell without a weight does not
    change anything.
    """
    X, Y = make_data()
    hidden = np.zeros(Y.shape, dtype=bool)
    hidden[::3, 0] = hidden[1::4, 1] = True
    try:
        model = fitted(estimator, X, np.where(hidden, np.nan, Y))
    except ValueError:
        return
    expected, weight = outcome(model, X), (~hidden).astype(float)
    for value in (0, 1):
        filled = np.where(hidden, value, Y)
        found = outcome(fitted(estimator, X, filled, label_weight=weight), X)
        assert_allclose(found, expected, err_msg="cells without a weight must not matter")


def check_refit_forgets(estimator: Estimator) -> None:
    """Check that a second `fit` does not depend on the first, also with other shapes."""
    X, Y = make_data()
    other_X, other_Y = make_data(40, 3, seed=1)
    fresh = outcome(fitted(estimator, X, Y), X)
    refitted = fitted(estimator, other_X[:, :4], other_Y).fit(X, Y)
    assert_array_equal(outcome(refitted, X), fresh)


def check_failed_refit_keeps_the_model(estimator: Estimator) -> None:
    """Check that a second `fit` that fails does not change the model of the first."""
    X, Y = make_data()
    model = fitted(estimator, X, Y)
    before, attributes = outcome(model, X), sorted(vars(model))
    others = {
        "a label matrix of halves": (X[:, :4], Y + 0.5),
        "Y with a row less than X": (X[:, :4], Y[:-1]),
        "a label matrix of sevens": (X, np.full(Y.shape, 7)),
    }
    for what, (other_X, other_Y) in others.items():
        assert_refused(model, other_X, other_Y, what)
        assert_array_equal(outcome(model, X), before)
        assert sorted(vars(model)) == attributes
        assert getattr(model, "n_features_in_", X.shape[1]) == X.shape[1]


def check_deterministic(estimator: Estimator) -> None:
    """Check that the same data give exactly the same model."""
    X, Y = make_data()
    first, second = (outcome(fitted(estimator, X, Y), X) for _ in range(2))
    assert_array_equal(first, second)


def check_inputs_and_parameters_stay(estimator: Estimator) -> None:
    """Check that read-only arrays are accepted, and that arrays and parameters do not change."""
    X, Y = make_data()
    kept_X, kept_Y, parameters = X.copy(), Y.copy(), estimator.get_params()
    X.flags.writeable = Y.flags.writeable = False
    outcome(estimator.fit(X, Y), X)
    assert_array_equal(X, kept_X)
    assert_array_equal(Y, kept_Y)
    assert estimator.get_params() == parameters


def check_no_warnings(estimator: Estimator) -> None:
    """Check that ordinary data give no warnings."""
    X, Y = make_data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(estimator, X, Y)
        if hasattr(model, "predict"):
            model.predict(X)
