"""Fits that either come to their end or leave the estimator as it was."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

__all__ = ["all_or_nothing"]

_Estimator = TypeVar("_Estimator")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def all_or_nothing(
    fit: Callable[Concatenate[_Estimator, _Arguments], _Result],
) -> Callable[Concatenate[_Estimator, _Arguments], _Result]:
    """Let a method that sets fitted attributes keep the earlier ones if it fails.

    scikit-learn's validation stores the number and the names of the features before anything is
    learnt. Without this, a failed second `fit` with another width would leave a model that refuses
    the rows it was fitted on.

    Parameters
    ----------
    fit : callable
        A method that replaces attributes and does not change their values in place.

    Returns
    -------
    callable
        The same method; on any exception, an interruption included, the attributes are those from
        before the call.
    """

    @functools.wraps(fit)
    def guarded(
        self: _Estimator, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Result:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return guarded
