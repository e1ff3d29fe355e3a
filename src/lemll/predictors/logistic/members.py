"""The binary models inside the classifiers: built-in logistic regression, or the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from lemll._types import Estimator, Features, FloatArray, MatrixLike, Settings
from lemll._validation import check_magnitude, check_n_jobs, check_number, check_whole, is_sparse
from lemll._warnings import warn_caller
from lemll.predictors.logistic.probability import SURE, log_odds

__all__ = ["BuiltIn", "built_in", "fit_member", "member_log_odds"]

# Logistic in Weka minimises the loss plus 1e-8 |theta|^2, on standardised features.
WEKA_C = 1 / (2 * 1e-8)


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """Settings of the built-in logistic regression.

    Attributes
    ----------
    scale : ndarray of shape (n_features,) or None
        Factors of the features before the fit.
    options : dict
        Options of `lemll.solvers.solve_logistic` and `solve_logistic_subsets`.
    """

    scale: FloatArray | None
    options: Settings

    def scaled(self, X: Features) -> Features:
        """Return the scaled features, to which the penalty applies."""
        if self.scale is None:
            return X
        return X.multiply(self.scale).tocsr() if is_sparse(X) else X * self.scale

    def unscaled(self, coef: Any) -> Features:
        """Convert coefficients of the scaled features to coefficients of the original ones."""
        return coef if self.scale is None else coef * self.scale

    def warn(self, name: str, gradient_norm: FloatArray) -> None:
        """Warn if some of the problems were not solved."""
        missed = int(np.count_nonzero(gradient_norm > self.options["tol"]))
        if missed:
            warn_caller(
                f"{missed} of the {gradient_norm.size} logistic regressions of {name} stopped "
                f"after max_iter={self.options['max_iter']} steps with gradients up to "
                f"{gradient_norm.max():.2e}, wanted tol={self.options['tol']:.2e}; raise max_iter, "
                "or lower C.",
                ConvergenceWarning,
            )


def built_in(classifier: Any, X: Features) -> BuiltIn | None:
    """Return the settings of the built-in model, or None if the user gave an estimator.

    Parameters
    ----------
    classifier : estimator
        It has the parameters `estimator`, `C`, `tol`, `max_iter` and `n_jobs`.
    X : ndarray or csr_array
        Training features, for their standard deviations.
    """
    n_jobs = check_n_jobs(classifier.n_jobs)
    estimator = classifier.estimator
    own = estimator is None or isinstance(estimator, str)
    if own:
        known = estimator in (None, "weka")
    else:
        # Refuse regressors: their predictions are not classes and not log-odds.
        known = hasattr(estimator, "fit") and not is_regressor(estimator)
    if not known:
        raise ValueError(
            f"estimator={estimator!r} must be a scikit-learn classifier, None or 'weka'."
        )
    if not own:
        return None
    C = check_number("C", classifier.C, above=0)
    options = {
        "C": C if estimator is None else WEKA_C,
        "tol": check_number("tol", classifier.tol, above=0),
        "max_iter": check_whole("max_iter", classifier.max_iter, least=1),
        "n_jobs": n_jobs,
    }
    return BuiltIn(None if estimator is None else _inverse_deviations(X), options)


def _inverse_deviations(X: Features) -> FloatArray:
    """Return one divided by the standard deviation of each feature; 1 for constant features."""
    check_magnitude(X)
    centre = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    if is_sparse(X):
        square = np.asarray(X.astype(np.float64).power(2).mean(axis=0)).ravel() - centre**2
    else:
        square = np.square(X - centre).mean(axis=0)
    n_samples = X.shape[0]
    # Weka divides by n - 1.
    square *= n_samples / max(1, n_samples - 1)
    # A smaller variance is only rounding error, and the feature is constant.
    constant = square <= 1e-14 * (centre**2 + np.finfo(np.float64).tiny)
    return np.asarray(np.where(constant, 1, 1 / np.sqrt(np.where(constant, 1, square))))


def fit_member(
    estimator: Estimator, X: Features, y: MatrixLike, sample_weight: FloatArray | None = None
) -> Features:
    """Fit a copy of the user's estimator; if all labels are equal, return their log-odds.

    Rows with the weight 0 are left out. Other weights than 1 need an estimator that accepts them.
    """
    if sample_weight is not None:
        rows = np.flatnonzero(sample_weight > 0)
        X, y, sample_weight = X[rows], y[rows], sample_weight[rows]
        if (sample_weight == 1).all():
            sample_weight = None
    # `all` of no rows is True, so the length decides for an empty y.
    if y.all() or not y.any():
        return SURE if len(y) and y.all() else -SURE
    if sample_weight is not None:
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"{type(estimator).__name__}.fit does not accept sample_weight, so it cannot use "
                "confidences between 0 and 1; give label_weight 0 (not observed) or 1, or another "
                "estimator."
            )
        return clone(estimator).fit(X, y.astype(np.int64), sample_weight=sample_weight)
    return clone(estimator).fit(X, y.astype(np.int64))


def member_log_odds(member: Any, X: Features) -> FloatArray:
    """Score rows with a fitted member: use its probabilities if possible, else its decisions."""
    if isinstance(member, float):
        return np.full(X.shape[0], member)
    if hasattr(member, "predict_proba"):
        return log_odds(np.asarray(member.predict_proba(X)[:, 1], dtype=np.float64))
    if hasattr(member, "decision_function"):
        return np.asarray(member.decision_function(X), dtype=np.float64)
    return np.where(np.asarray(member.predict(X)) == 1, SURE, -SURE)
