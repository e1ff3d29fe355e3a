"""Binary relevance: one independent model per label."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from lemll._types import Estimator, Features, FloatArray, LabelArray, MatrixLike, Settings
from lemll._validation import (
    check_magnitude,
    check_n_jobs,
    check_number,
    check_whole,
    is_sparse,
    warn_caller,
)
from lemll.predictors.base import WeighsRows
from lemll.predictors.calibrated import SURE, ProbabilityClassifier, TiesAreRelevant, log_odds
from lemll.solvers import solve_logistic

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

    def unscaled(self, coef: Features) -> Features:
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


@dataclass(eq=False, repr=False)
class FitsMembers(TiesAreRelevant):
    """Base of learners that fit one model per label, pair of labels or place of a chain."""

    estimator: Estimator = None
    _: KW_ONLY
    C: float = 1.0
    tol: float = 1e-4
    max_iter: int = 100
    n_jobs: int | None = None

    def _of_single_labels(self) -> BinaryRelevance:
        """Return independent models of the labels with the same parameters."""
        return BinaryRelevance(
            self.estimator, C=self.C, tol=self.tol, max_iter=self.max_iter, n_jobs=self.n_jobs
        )


def built_in(classifier: FitsMembers, X: Features) -> BuiltIn | None:
    """Return the settings of the built-in model, or None if the user gave an estimator.

    Parameters
    ----------
    classifier : FitsMembers
        The learner whose parameters count.
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


def member_log_odds(member: Estimator, X: Features) -> FloatArray:
    """Score rows with a fitted member: use its probabilities if possible, else its decisions."""
    if isinstance(member, float):
        return np.full(X.shape[0], member)
    if hasattr(member, "predict_proba"):
        return log_odds(np.asarray(member.predict_proba(X)[:, 1], dtype=np.float64))
    if hasattr(member, "decision_function"):
        return np.asarray(member.decision_function(X), dtype=np.float64)
    return np.where(np.asarray(member.predict(X)) == 1, SURE, -SURE)


@dataclass(eq=False, repr=False)
class BinaryRelevance(WeighsRows, FitsMembers, ProbabilityClassifier):
    r"""One independent logistic regression per label: the basic baseline.

    For each label, let y be its column of Y, coded -1/+1. The model minimises

    .. math:: \sum_i\log\bigl(1+e^{-y_i(\theta^\top x_i+b)}\bigr)+\frac1{2C}\|\theta\|^2,

    and all labels are solved together. A label is predicted if its probability is at least 1/2.

    Parameters
    ----------
    estimator : None, "weka" or classifier, default=None
        The model of one label. None: the logistic regression above. "weka": the same as in Weka,
        which the paper uses in CLR and ECC, with almost no penalty (features divided by their
        standard deviations, ``C = 5e7``, so the penalty is 1e-8 times the squared coefficients).
        Or any binary classifier of scikit-learn.
    C : float, default=1.0
        Inverse strength of the penalty, > 0. As in scikit-learn's ``LogisticRegression``.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        A label is predicted if its log-odds reach its threshold. "zero" uses 0 for all labels.
        "f1" and "hamming" choose one threshold per label: the one with the best F1, or with the
        most correct decisions. To choose it, 5-fold cross-validation scores every training row
        with a model that was not fitted on that row.
    tol : float, default=1e-4
        The solver stops when the relative length of the gradient is at most this.
    max_iter : int, default=100
        Largest number of Newton steps.
    n_jobs : int, optional
        Number of threads, as in joblib. With an estimator of the user: number of processes.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        :math:`\theta` of each label. Set only by the built-in models.
    intercept_ : ndarray of shape (n_labels,)
        b of each label. It is about 37 for a label that all rows have, and about -37 for a label
        that no row has.
    gradient_norm_ : ndarray of shape (n_labels,)
        Relative length of each gradient at the solution.
    n_iter_ : int
        Newton steps of the slowest model. With an estimator of the user, 1.
    estimators_ : list
        The fitted copies of an `estimator` of the user, instead of the attributes above. For a
        constant label, a number.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels: the columns of a frame, or ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        One threshold per label. A label is predicted if its log-odds are above it. A threshold of
        0 is stored as a number slightly below 0, because a tie counts as relevant.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if X has names.

    See Also
    --------
    ECC : Chains of models that use earlier labels as features.
    CLR : One model per pair of labels.

    Examples
    --------
    >>> from lemll import BinaryRelevance
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = BinaryRelevance(C=0.1).fit(digits.X[:900], digits.Y[:900])
    >>> model.predict_proba(digits.X[900:]).shape
    (897, 8)
    """

    def _fit(self, X: Features, Y: LabelArray, weight: FloatArray | None = None) -> None:
        own = built_in(self, X)
        self._built_in = own is not None
        self.n_iter_ = 1
        if own is None:
            weights = [None] * Y.shape[1] if weight is None else weight.T
            self.estimators_ = Parallel(n_jobs=self.n_jobs)(
                delayed(fit_member)(self.estimator, X, y, sample_weight)
                for y, sample_weight in zip(Y.T, weights, strict=True)
            )
            return
        solution = solve_logistic(
            own.scaled(X), np.maximum(Y, 0), sample_weight=weight, **own.options
        )
        own.warn(type(self).__name__, solution.gradient_norm)
        self.coef_ = own.unscaled(solution.coef)
        # The optimum for a constant label is an infinite intercept; keep the scores finite.
        self.intercept_ = np.nan_to_num(solution.intercept, posinf=SURE, neginf=-SURE)
        if weight is not None:
            # A label that nobody observed has probability one half, and a tie would be relevant.
            self.intercept_[~(weight > 0).any(axis=0)] = -SURE
        self.gradient_norm_ = solution.gradient_norm
        self.n_iter_ = max(1, int(solution.n_iter.max()))

    # Each label has a model of its own, which sees the rows in which the label was observed.
    _fit_partial = _fit

    def _score(self, X: Features) -> FloatArray:
        if not self._built_in:
            return np.column_stack([member_log_odds(member, X) for member in self.estimators_])
        return np.asarray(X @ self.coef_.T + self.intercept_)
