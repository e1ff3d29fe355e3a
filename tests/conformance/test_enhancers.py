"""Our own checks, on every enhancer; and on enhancers that must not pass them."""

import numpy as np
import pytest
from sklearn.base import clone

from lemll.enhancers import ENHANCERS, BaseEnhancer
from lemll.lab.testing import ENHANCER_CHECKS, check_enhancer
from lemll.rivals import (
    RIVAL_ENHANCERS,
    FCMEnhancer,
    KMEnhancer,
    LabelPropagationEnhancer,
    MLFEEnhancer,
)

VARIANTS = [
    FCMEnhancer(connection="label", composition="minimum"),
    KMEnhancer(kernel="rbf", radius="all", normalization="softmax"),
    LabelPropagationEnhancer(transition="symmetric", self_similarity=True),
    MLFEEnhancer(coding="lasso"),
]


METHODS = [one() for one in (*ENHANCERS, *RIVAL_ENHANCERS)]
# What these checks look at is done by the base class, whatever the enhancer.
OF_THE_BASE = {
    f"check_{name}"
    for name in (
        "failed_refit_keeps_the_model",
        "inputs_and_parameters_stay",
        "minus_plus_one_is_refused",
        "missing_and_infinite_are_refused",
        "refusals",
        "sparse_labels",
        "unequal_lengths_are_refused",
    )
}


def is_checked_elsewhere(enhancer, check):
    return enhancer is not METHODS[0] and check.__name__ in OF_THE_BASE


@pytest.mark.nightly(when=is_checked_elsewhere)
@pytest.mark.parametrize("check", ENHANCER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "enhancer",
    [
        METHODS[0],
        *(pytest.param(one, marks=pytest.mark.slow) for one in (*METHODS[1:], *VARIANTS)),
    ],
    ids=str,
)
def test_enhancer_check(enhancer, check):
    check(clone(enhancer))


def test_every_check_of_the_base_exists():
    assert {check.__name__ for check in ENHANCER_CHECKS} > OF_THE_BASE


class Newcomer(BaseEnhancer):
    """A method of a few lines: the logical labels themselves."""

    def __init__(self, *, normalization="softmax", scale=1.0):
        self.normalization = normalization
        self.scale = scale

    def _numerical_labels(self, X, Y):
        return Y.astype(float)


def test_a_new_method_needs_one_function_to_pass():
    check_enhancer(Newcomer())


class Unnormalised(Newcomer):
    def distribution(self, numerical_labels):
        return numerical_labels


class Meddling(Newcomer):
    def calibrate(self, rows, distributions, **options):
        super().calibrate(rows, distributions, **options)
        self.scale = self.scale_
        return self


class Restless(Newcomer):
    def _numerical_labels(self, X, Y):
        return Y + np.random.default_rng().normal(size=Y.shape)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Unnormalised, "check_distributions"),
        (Meddling, "check_calibration"),
        (Restless, "check_scale_one_is_the_default|check_sparse_labels"),
    ],
)
def test_a_broken_enhancer_is_named_with_the_check_it_fails(broken, check):
    with pytest.raises(AssertionError, match=f"{broken.__name__} fails ({check})"):
        check_enhancer(broken())
