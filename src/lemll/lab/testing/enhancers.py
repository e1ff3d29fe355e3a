"""Checks of label enhancers: their behaviour, and the inputs to accept and to refuse."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from lemll._types import Estimator
from lemll.lab.testing.shared import (
    ROUNDING,
    assert_distribution,
    assert_refused,
    copied,
    fitted,
    make_data,
    outcome,
)

NORMALIZATIONS = ("sigmoid", "softmax", "sum")


def check_distributions(enhancer: Estimator) -> None:
    """Check that all normalisations and scales give distributions, and fit_enhance returns them."""
    X, Y = make_data()
    for normalization in NORMALIZATIONS:
        for scale in (0.25, 1.0, 4.0):
            one = copied(enhancer, normalization=normalization, scale=scale)
            D = one.fit_enhance(X, Y)
            assert_distribution(D, Y.shape)
            assert_array_equal(D, one.label_distribution_)
            assert one.numerical_labels_.shape == Y.shape
            assert one.scale_ == scale


def check_scale_one_is_the_default(enhancer: Estimator) -> None:
    """Check that a larger scale never makes distributions flatter, and the default scale is 1."""
    X, Y = make_data()
    steepness = [
        copied(enhancer, scale=scale).fit_enhance(X, Y).max(axis=1).mean()
        for scale in (0.5, 1.0, 2.0)
    ]
    assert steepness[0] <= steepness[1] + ROUNDING
    assert steepness[1] <= steepness[2] + ROUNDING
    assert enhancer.get_params()["scale"] == 1.0


def check_constant_labels(enhancer: Estimator) -> None:
    """Check that constant labels give distributions."""
    X, Y = make_data()
    for constant in (np.zeros_like(Y), np.ones_like(Y)):
        outcome(fitted(enhancer, X, constant), X)
    with warnings.catch_warnings():
        # Two labels have no relevant row, and some enhancers give them a degree.
        warnings.simplefilter("ignore", UserWarning)
        outcome(fitted(enhancer, X, np.tile([0, 1, 1, 0], (len(X), 1))), X)


def check_few_and_far_rows(enhancer: Estimator) -> None:
    """Check that three rows are enough, and that they may be so far that similarities underflow."""
    X, Y = make_data(n_rows=15, n_labels=40)
    outcome(fitted(enhancer, X[:3], Y[:3]), X)
    X, Y = make_data()
    outcome(fitted(enhancer, 1e4 * X, Y), X)


def check_sparse_labels(enhancer: Estimator) -> None:
    """Check that sparse labels give the same distributions as dense labels."""
    X, Y = make_data()
    dense = outcome(fitted(enhancer, X, Y), X)
    assert_array_equal(outcome(fitted(enhancer, X, sparse.csr_array(Y)), X), dense)


def check_refusals(enhancer: Estimator) -> None:
    """Check that single labels, huge features, wrong scales and normalisations are refused."""
    X, Y = make_data()
    huge = X.copy()
    huge[3, 2] = 1e200
    assert_refused(copied(enhancer), X, Y[:, :1], "a single label")
    assert_refused(copied(enhancer), huge, Y, "1e200 in X")
    assert_refused(copied(enhancer, scale=0.0), X, Y, "scale=0")
    assert_refused(copied(enhancer, normalization="max"), X, Y, "normalization='max'")


def check_new_rows(enhancer: Estimator) -> None:
    """Check that a model enhances new rows, and that calls before `fit` raise an error."""
    X, Y = make_data()
    one = copied(enhancer)
    calls: list[tuple[Callable[..., object], tuple[object, ...]]] = [
        (one.calibrate, ([0], [[1.0, 0, 0, 0]]))
    ]
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
    X.flags.writeable = Y.flags.writeable = False
    wanted = copied(enhancer, scale=1.7).fit_enhance(X, Y)
    one, again = fitted(enhancer, X, Y), fitted(enhancer, X, Y)
    parameters = one.get_params()
    rows = np.arange(2, 32)
    if np.abs(wanted - one.label_distribution_)[rows].max() < ROUNDING:
        message = "nothing was refused"
        try:
            one.calibrate(rows, wanted[rows], method="scale")
        except ValueError as error:
            message = str(error)
        assert "scale changes nothing" in message, message
        return
    assert one.scale_interval_ is None
    assert one.calibrate(rows, wanted[rows], method="scale", random_state=0) is one
    assert_allclose(one.label_distribution_, wanted, atol=1e-3)
    assert one.get_params() == parameters
    low, high = one.scale_interval_ or (1.0, 0.0)
    assert low <= high
    again.calibrate(rows, wanted[rows], method="scale", random_state=0)
    assert again.scale_interval_ == one.scale_interval_
    assert one.fit(X, Y).scale_ == 1.0
    assert one.scale_interval_ is None


def check_rated_rows_are_kept(enhancer: Estimator) -> None:
    """Check that rated rows have their known distributions, and the others sound ones."""
    X, Y = make_data()
    rows = np.arange(3, 15)
    known = np.random.default_rng(0).dirichlet(np.ones(Y.shape[1]), size=len(rows))
    one = fitted(enhancer, X, Y).calibrate(rows, known, method="sources")
    assert_allclose(one.label_distribution_[rows], known, atol=ROUNDING)
    assert_distribution(one.label_distribution_, Y.shape)
    order = np.argsort(-known[:, 0])
    again = fitted(enhancer, X, Y).calibrate(rows[order], known[order], method="sources")
    assert_allclose(again.label_distribution_, one.label_distribution_, atol=1e-9)
