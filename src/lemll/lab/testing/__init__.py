"""Checks that every multi-label classifier and every label enhancer should pass.

Estimators should also pass the checks of scikit-learn.

`check_multilabel_estimator` runs all checks on any estimator with ``fit(X, Y)``, ``predict(X)`` and
``decision_function(X)``, for label matrices of 0/1. `check_enhancer` does the same for label
enhancers with the interface of `lemll.enhancers.BaseEnhancer`. `MULTILABEL_CHECKS` and
`ENHANCER_CHECKS` are lists of the checks, so that a test framework can run them one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from sklearn.base import clone

from lemll._types import Estimator
from lemll.lab.testing import enhancers, learners, shared

__all__ = ["ENHANCER_CHECKS", "MULTILABEL_CHECKS", "check_enhancer", "check_multilabel_estimator"]

Check = Callable[[Estimator], None]


def _checks(*modules: ModuleType) -> tuple[Check, ...]:
    found = [item for module in modules for item in vars(module).items()]
    return tuple(check for name, check in found if name.startswith("check_"))


MULTILABEL_CHECKS = _checks(learners, shared)
ENHANCER_CHECKS = _checks(enhancers, shared)


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
