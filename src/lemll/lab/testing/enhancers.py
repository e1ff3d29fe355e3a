"""Checks of label enhancers: their behaviour, and the inputs to accept and to refuse."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lemll._types import Array, Estimator
from lemll.lab.testing.learners import assert_refused, make_data

__all__ = []

# Rows of a distribution sum to one up to rounding; solvers stop at a tolerance.
ROUNDING, CLOSE = 1e-12, 1e-4
NORMALIZATIONS = ("sigmoid", "softmax", "sum")


def assert_distribution(D: Array, shape: tuple[int, int]) -> None:
    """Assert that a matrix is finite, not negative, and its rows sum to one."""
    assert D.shape == shape
    assert D.dtype == np.float64
    assert np.isfinite(D).all()
    assert (D >= 0).all()
    assert_allclose(D.sum(axis=1), 1, rtol=ROUNDING)


def seeded(enhancer: Estimator) -> Any:
    """Return a clone that draws the same numbers every time."""
    fresh = clone(enhancer)
    if "random_state" in fresh.get_params():
        fresh.set_params(random_state=0)
    return fresh


def check_distributions(enhancer: Estimator) -> None:
    """Check that all normalisations and scales give distributions, and fit_enhance returns them."""
    X, Y = make_data()
    for normalization in NORMALIZATIONS:
        for scale in (0.25, 1.0, 4.0):
            one = seeded(enhancer).set_params(normalization=normalization, scale=scale)
            D = one.fit_enhance(X, Y)
            assert_distribution(D, Y.shape)
            assert_array_equal(D, one.label_distribution_)
            assert one.numerical_labels_.shape == Y.shape
            assert one.scale_ == scale


def check_scale_one_is_the_default(enhancer: Estimator) -> None:
    """Check that a larger scale never makes distributions flatter, and the default scale is 1."""
    X, Y = make_data()
    steepness = [
        seeded(enhancer).set_params(scale=scale).fit_enhance(X, Y).max(axis=1).mean()
        for scale in (0.5, 1.0, 2.0)
    ]
    assert steepness[0] <= steepness[1] + ROUNDING
    assert steepness[1] <= steepness[2] + ROUNDING
    assert seeded(enhancer).get_params()["scale"] == 1.0


def check_rows_without_and_with_all_labels(enhancer: Estimator) -> None:
    """Check that rows with no label or all labels, and constant labels, give distributions."""
    X, Y = make_data()
    Y[::5], Y[1::5] = 0, 1
    assert_distribution(seeded(enhancer).fit_enhance(X, Y), Y.shape)
    for constant in (np.zeros_like(Y), np.ones_like(Y)):
        assert_distribution(seeded(enhancer).fit_enhance(X, constant), Y.shape)
    with warnings.catch_warnings():
        # Two labels have no relevant row, and some enhancers give them a degree.
        warnings.simplefilter("ignore", UserWarning)
        found = seeded(enhancer).fit_enhance(X, np.tile([0, 1, 1, 0], (len(X), 1)))
    assert_distribution(found, Y.shape)


def check_few_rows_and_many_labels(enhancer: Estimator) -> None:
    """Check that three rows are enough, and there may be more labels than rows."""
    X, Y = make_data(n_rows=15, n_labels=40)
    assert_distribution(seeded(enhancer).fit_enhance(X, Y), Y.shape)
    assert_distribution(seeded(enhancer).fit_enhance(X[:3], Y[:3]), (3, 40))


def check_duplicated_rows(enhancer: Estimator) -> None:
    """Check that equal rows (90 %), a constant feature and rows of zeros give distributions."""
    X, Y = make_data(100)
    X[:90] = X[0]
    X[:, 1] = 1.0
    X[95:] = 0.0
    assert_distribution(seeded(enhancer).fit_enhance(X, Y), Y.shape)


def check_far_rows(enhancer: Estimator) -> None:
    """Check that rows so far apart that similarities underflow give distributions."""
    X, Y = make_data()
    assert_distribution(seeded(enhancer).fit_enhance(1e4 * X, Y), Y.shape)


def check_label_permutation(enhancer: Estimator) -> None:
    """Check that permuted labels give permuted distributions."""
    X, Y = make_data()
    order = np.array([2, 0, 3, 1])
    straight = seeded(enhancer).fit_enhance(X, Y)
    permuted = seeded(enhancer).fit_enhance(X, Y[:, order])
    assert_allclose(permuted, straight[:, order], rtol=CLOSE, atol=CLOSE)


def check_sparse(enhancer: Estimator) -> None:
    """Check that sparse and dense features, and sparse and dense labels, give the same result."""
    X, Y = make_data()
    dense = seeded(enhancer).fit_enhance(X, Y)
    for features in (sparse.csr_array(X), sparse.csc_matrix(X), sparse.coo_array(X)):
        assert_allclose(seeded(enhancer).fit_enhance(features, Y), dense, rtol=CLOSE, atol=CLOSE)
    assert_array_equal(seeded(enhancer).fit_enhance(X, sparse.csr_array(Y)), dense)


def check_float32(enhancer: Estimator) -> None:
    """Check that features in single precision give nearly the same result, in double precision."""
    X, Y = make_data()
    expected = seeded(enhancer).fit_enhance(X, Y)
    found = seeded(enhancer).fit_enhance(X.astype(np.float32), Y)
    assert_distribution(found, Y.shape)
    assert_allclose(found, expected, rtol=1e-2, atol=1e-2)


def check_deterministic(enhancer: Estimator) -> None:
    """Check that the same data give exactly the same result, also after a fit to other data."""
    X, Y = make_data()
    other_X, other_Y = make_data(40, 3, seed=1)
    first = seeded(enhancer).fit_enhance(X, Y)
    second = seeded(enhancer).fit(other_X[:, :4], other_Y)
    assert_array_equal(second.fit_enhance(X, Y), first)


def check_inputs_and_parameters_stay(enhancer: Estimator) -> None:
    """Check that read-only arrays are accepted, and that arrays and parameters do not change."""
    X, Y = make_data()
    kept_X, kept_Y = X.copy(), Y.copy()
    X.flags.writeable = Y.flags.writeable = False
    one = seeded(enhancer)
    parameters = one.get_params()
    D = one.fit_enhance(X, Y)
    scaled = seeded(enhancer).set_params(scale=2.0).fit_enhance(X, Y)
    if np.abs(scaled[5:15] - D[5:15]).max() > 1e-6:  # else there is no scale to calibrate
        one.calibrate(np.arange(5, 15), D[5:15])
    assert_array_equal(X, kept_X)
    assert_array_equal(Y, kept_Y)
    assert one.get_params() == parameters


def check_failed_refit_keeps_the_result(enhancer: Estimator) -> None:
    """Check that a second `fit` that fails does not change the result of the first."""
    X, Y = make_data()
    fitted = seeded(enhancer).fit(X, Y)
    before = dict(vars(fitted))
    assert_refused(fitted, X[:, :4], Y + 0.5, "a label matrix of halves")
    assert vars(fitted).keys() == before.keys()
    assert fitted.n_features_in_ == X.shape[1]
    assert fitted.label_distribution_ is before["label_distribution_"]


def check_refusals(enhancer: Estimator) -> None:
    """Check that wrong labels, features, lengths, scales and normalisations are refused."""
    X, Y = make_data()
    assert_refused(seeded(enhancer), X, 2 * Y - 1, "a label matrix coded -1/+1")
    assert_refused(seeded(enhancer), X[:-1], Y, "X with a row less than Y")
    assert_refused(seeded(enhancer), X, Y[:, :1], "a single label")
    for value in (np.nan, np.inf, 1e200):
        bad = X.copy()
        bad[3, 2] = value
        assert_refused(seeded(enhancer), bad, Y, f"{value} in X")
    assert_refused(seeded(enhancer).set_params(scale=0.0), X, Y, "scale=0")
    assert_refused(seeded(enhancer).set_params(normalization="max"), X, Y, "normalization='max'")


def check_unknown_cells(enhancer: Estimator) -> None:
    """Check that NaN in Y is refused, or that it means: nobody observed this cell.

    In the second case `fit` takes `label_weight`, and the value of a cell without a weight does not
    change anything.
    """
    X, Y = make_data()
    hidden = np.zeros(Y.shape, dtype=bool)
    hidden[::3, 0] = hidden[1::4, 1] = True
    try:
        expected = seeded(enhancer).fit_enhance(X, np.where(hidden, np.nan, Y))
    except ValueError:
        return
    assert_distribution(expected, Y.shape)
    weight = (~hidden).astype(float)
    for values in (0, 1):
        filled = np.where(hidden, values, Y)
        found = seeded(enhancer).fit_enhance(X, filled, label_weight=weight)
        assert_allclose(found, expected, err_msg="cells without a weight must not matter")


def check_new_rows(enhancer: Estimator) -> None:
    """Check that a model enhances new rows, and that calls before `fit` raise an error."""
    X, Y = make_data()
    one = seeded(enhancer)
    calls: list[tuple[Any, tuple[Any, ...]]] = [(one.calibrate, ([0], [[1.0, 0, 0, 0]]))]
    has_model = hasattr(one, "enhance")
    if has_model:
        calls.append((one.enhance, (X,)))
    for method, arguments in calls:
        try:
            method(*arguments)
        except NotFittedError:
            continue
        raise AssertionError(f"{method.__name__} answered before fit")
    one.fit(X[:40], Y[:40])
    assert hasattr(one, "enhance") == has_model
    if has_model:
        assert_distribution(one.enhance(X[40:]), Y[40:].shape)


def check_calibration(enhancer: Estimator) -> None:
    """Check that calibration with rows of another scale recovers the distribution of that scale."""
    X, Y = make_data()
    wanted = seeded(enhancer).set_params(scale=1.7).fit_enhance(X, Y)
    one = seeded(enhancer).fit(X, Y)
    rows = np.arange(2, 32)
    if np.abs(wanted - one.label_distribution_)[rows].max() < ROUNDING:
        assert_refused_calibration(one, rows, wanted[rows])
        return
    assert one.scale_interval_ is None
    assert one.calibrate(rows, wanted[rows], method="scale", random_state=0) is one
    assert_allclose(one.label_distribution_, wanted, atol=1e-3)
    assert one.scale == 1.0
    low, high = one.scale_interval_ or (1.0, 0.0)
    assert low <= high
    again = seeded(enhancer).fit(X, Y)
    again.calibrate(rows, wanted[rows], method="scale", random_state=0)
    assert again.scale_interval_ == one.scale_interval_
    assert one.fit(X, Y).scale_ == 1.0
    assert one.scale_interval_ is None


def check_rated_rows_are_kept(enhancer: Estimator) -> None:
    """Check that rated rows have their known distributions, and the others sound ones."""
    X, Y = make_data()
    rows = np.arange(3, 15)
    known = np.random.default_rng(0).dirichlet(np.ones(Y.shape[1]), size=len(rows))
    fitted = seeded(enhancer).fit(X, Y).calibrate(rows, known, method="sources")
    assert_allclose(fitted.label_distribution_[rows], known, atol=ROUNDING)
    assert_distribution(fitted.label_distribution_, Y.shape)
    order = np.argsort(-known[:, 0])
    again = seeded(enhancer).fit(X, Y).calibrate(rows[order], known[order], method="sources")
    assert_allclose(again.label_distribution_, fitted.label_distribution_, atol=1e-9)


def assert_refused_calibration(enhancer: Estimator, rows: Array, distributions: Array) -> None:
    """Assert that rows without information about the scale are refused with a message."""
    message = "nothing was refused"
    try:
        enhancer.calibrate(rows, distributions, method="scale")
    except ValueError as error:
        message = str(error)
    assert "scale changes nothing" in message, message


def check_no_warnings(enhancer: Estimator) -> None:
    """Check that ordinary data give no warnings."""
    X, Y = make_data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seeded(enhancer).fit(X, Y)
