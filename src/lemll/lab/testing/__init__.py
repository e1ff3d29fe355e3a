"""Checks that every multi-label classifier and every label enhancer should pass.

Estimators should also pass the checks of scikit-learn.

`check_multilabel_estimator` runs all checks on any estimator with ``fit(X, Y)``, ``predict(X)`` and
``decision_function(X)``, for label matrices of 0/1. `check_enhancer` does the same for label
enhancers with the interface of `lemll.enhancers.BaseEnhancer`. `MULTILABEL_CHECKS` and
`ENHANCER_CHECKS` are lists of the checks, so that a test framework can run them one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from lemll._types import Estimator
from lemll.lab.testing import enhancers, learners

__all__ = [
    "ENHANCER_CHECKS",
    "MULTILABEL_CHECKS",
    "check_enhancer",
    "check_multilabel_estimator",
]

Check = Callable[[Any], None]

MULTILABEL_CHECKS: tuple[Check, ...] = (
    learners.check_shapes_and_types,
    learners.check_learns_something,
    learners.check_constant_labels,
    learners.check_all_labels_constant,
    learners.check_rows_without_and_with_all_labels,
    learners.check_one_label,
    learners.check_more_labels_than_rows,
    learners.check_label_permutation,
    learners.check_sparse_features,
    learners.check_unsorted_sparse_features,
    learners.check_sparse_labels,
    learners.check_label_types,
    learners.check_minus_plus_one_is_refused,
    learners.check_missing_and_infinite_are_refused,
    learners.check_unknown_cells,
    learners.check_unequal_lengths_are_refused,
    learners.check_wrong_number_of_features_is_refused,
    learners.check_not_fitted,
    learners.check_refit_forgets,
    learners.check_failed_refit_keeps_the_model,
    learners.check_deterministic,
    learners.check_threads,
    learners.check_inputs_and_parameters_stay,
    learners.check_memory_layout,
    learners.check_float32,
    learners.check_duplicated_rows,
    learners.check_rows_are_independent,
    learners.check_frames,
    learners.check_model_selection,
    learners.check_no_warnings,
)

ENHANCER_CHECKS: tuple[Check, ...] = (
    enhancers.check_distributions,
    enhancers.check_scale_one_is_the_default,
    enhancers.check_rows_without_and_with_all_labels,
    enhancers.check_few_rows_and_many_labels,
    enhancers.check_duplicated_rows,
    enhancers.check_far_rows,
    enhancers.check_label_permutation,
    enhancers.check_sparse,
    enhancers.check_float32,
    enhancers.check_deterministic,
    enhancers.check_inputs_and_parameters_stay,
    enhancers.check_failed_refit_keeps_the_result,
    enhancers.check_refusals,
    enhancers.check_unknown_cells,
    enhancers.check_new_rows,
    enhancers.check_calibration,
    enhancers.check_rated_rows_are_kept,
    enhancers.check_no_warnings,
)


def check_multilabel_estimator(estimator: Estimator) -> None:
    """Run all checks on clones of an estimator, until one fails.

    Parameters
    ----------
    estimator : estimator
        A multi-label classifier that is not fitted.

    Raises
    ------
    AssertionError
        If a check fails. The message names the check, and the cause is the original exception.

    Examples
    --------
    >>> from lemll import LEMLL
    >>> from lemll.lab.testing import check_multilabel_estimator
    >>> check_multilabel_estimator(LEMLL())
    """
    _run(MULTILABEL_CHECKS, estimator)


def check_enhancer(enhancer: Estimator) -> None:
    """Run all checks on clones of a label enhancer, until one fails.

    Parameters
    ----------
    enhancer : BaseEnhancer
        A label enhancer that is not fitted.

    Raises
    ------
    AssertionError
        If a check fails. The message names the check, and the cause is the original exception.

    Examples
    --------
    >>> from lemll.rivals import KMEnhancer
    >>> from lemll.lab.testing import check_enhancer
    >>> check_enhancer(KMEnhancer())
    """
    _run(ENHANCER_CHECKS, enhancer)


def _run(checks: tuple[Check, ...], estimator: Estimator) -> None:
    for check in checks:
        try:
            check(clone(estimator))
        except Exception as error:
            raise AssertionError(
                f"{type(estimator).__name__} fails {check.__name__}: {error}"
            ) from error
