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
from lemll.testing import behaviour, enhancers, inputs

__all__ = [
    "ENHANCER_CHECKS",
    "MULTILABEL_CHECKS",
    "check_enhancer",
    "check_multilabel_estimator",
]

Check = Callable[[Any], None]

MULTILABEL_CHECKS: tuple[Check, ...] = (
    behaviour.check_shapes_and_types,
    behaviour.check_learns_something,
    behaviour.check_constant_labels,
    behaviour.check_all_labels_constant,
    behaviour.check_rows_without_and_with_all_labels,
    behaviour.check_one_label,
    behaviour.check_more_labels_than_rows,
    behaviour.check_label_permutation,
    inputs.check_sparse_features,
    inputs.check_unsorted_sparse_features,
    inputs.check_sparse_labels,
    inputs.check_label_types,
    inputs.check_minus_plus_one_is_refused,
    inputs.check_missing_and_infinite_are_refused,
    inputs.check_unknown_cells,
    inputs.check_unequal_lengths_are_refused,
    inputs.check_wrong_number_of_features_is_refused,
    behaviour.check_not_fitted,
    behaviour.check_refit_forgets,
    behaviour.check_failed_refit_keeps_the_model,
    behaviour.check_deterministic,
    behaviour.check_threads,
    inputs.check_inputs_and_parameters_stay,
    inputs.check_memory_layout,
    inputs.check_float32,
    behaviour.check_duplicated_rows,
    behaviour.check_rows_are_independent,
    inputs.check_frames,
    behaviour.check_model_selection,
    behaviour.check_no_warnings,
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
    >>> from lemll.testing import check_multilabel_estimator
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
    >>> from lemll.enhancers import KMEnhancer
    >>> from lemll.testing import check_enhancer
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
