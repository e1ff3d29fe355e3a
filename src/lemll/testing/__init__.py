"""Checks that every multi-label classifier, or label enhancer, should pass.

They go beyond scikit-learn's own, which they should pass, too.

`check_multilabel_estimator` runs them all on an estimator, ours or anybody's: one with
``fit(X, Y)``, ``predict(X)`` and ``decision_function(X)``, for label matrices of 0/1.
`check_enhancer` does the same for label enhancers, ``fit_enhance(X, Y)`` and the rest of
`lemll.enhancers.BaseEnhancer`. `MULTILABEL_CHECKS` and `ENHANCER_CHECKS` list them, to be run one
by one by a test framework.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from lemll.testing import _behaviour, _enhancers, _inputs

__all__ = [
    "ENHANCER_CHECKS",
    "MULTILABEL_CHECKS",
    "check_enhancer",
    "check_multilabel_estimator",
]

Check = Callable[[Any], None]

MULTILABEL_CHECKS: tuple[Check, ...] = (
    _behaviour.check_shapes_and_types,
    _behaviour.check_learns_something,
    _behaviour.check_constant_labels,
    _behaviour.check_all_labels_constant,
    _behaviour.check_rows_without_and_with_all_labels,
    _behaviour.check_one_label,
    _behaviour.check_more_labels_than_rows,
    _behaviour.check_label_permutation,
    _inputs.check_sparse_features,
    _inputs.check_unsorted_sparse_features,
    _inputs.check_sparse_labels,
    _inputs.check_label_types,
    _inputs.check_minus_plus_one_is_refused,
    _inputs.check_missing_and_infinite_are_refused,
    _inputs.check_unequal_lengths_are_refused,
    _inputs.check_wrong_number_of_features_is_refused,
    _behaviour.check_not_fitted,
    _behaviour.check_refit_forgets,
    _behaviour.check_failed_refit_keeps_the_model,
    _behaviour.check_deterministic,
    _behaviour.check_threads,
    _inputs.check_inputs_and_parameters_stay,
    _inputs.check_memory_layout,
    _inputs.check_float32,
    _behaviour.check_duplicated_rows,
    _behaviour.check_rows_are_independent,
    _inputs.check_frames,
    _behaviour.check_model_selection,
    _behaviour.check_no_warnings,
)

ENHANCER_CHECKS: tuple[Check, ...] = (
    _enhancers.check_distributions,
    _enhancers.check_scale_one_is_the_default,
    _enhancers.check_rows_without_and_with_all_labels,
    _enhancers.check_few_rows_and_many_labels,
    _enhancers.check_duplicated_rows,
    _enhancers.check_far_rows,
    _enhancers.check_label_permutation,
    _enhancers.check_sparse,
    _enhancers.check_float32,
    _enhancers.check_deterministic,
    _enhancers.check_inputs_and_parameters_stay,
    _enhancers.check_failed_refit_keeps_the_result,
    _enhancers.check_refusals,
    _enhancers.check_new_rows,
    _enhancers.check_calibration,
    _enhancers.check_no_warnings,
)


def check_multilabel_estimator(estimator: Any) -> None:
    """Run every check on clones of an estimator; the first that fails raises.

    Parameters
    ----------
    estimator : estimator
        A multi-label classifier, not fitted.

    Raises
    ------
    AssertionError
        Naming the check that failed; its cause is the failure itself.

    Examples
    --------
    >>> from lemll import LEMLL
    >>> from lemll.testing import check_multilabel_estimator
    >>> check_multilabel_estimator(LEMLL())
    """
    _run(MULTILABEL_CHECKS, estimator)


def check_enhancer(enhancer: Any) -> None:
    """Run every check on clones of a label enhancer; the first that fails raises.

    Parameters
    ----------
    enhancer : BaseEnhancer
        Not fitted.

    Raises
    ------
    AssertionError
        Naming the check that failed; its cause is the failure itself.

    Examples
    --------
    >>> from lemll.enhancers import KMEnhancer
    >>> from lemll.testing import check_enhancer
    >>> check_enhancer(KMEnhancer())
    """
    _run(ENHANCER_CHECKS, enhancer)


def _run(checks: tuple[Check, ...], estimator: Any) -> None:
    for check in checks:
        try:
            check(clone(estimator))
        except Exception as error:
            raise AssertionError(
                f"{type(estimator).__name__} fails {check.__name__}: {error}"
            ) from error
