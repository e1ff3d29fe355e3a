"""Binary relevance: one independent model per label."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed

from lemll._types import Estimator, Features, FloatArray, LabelArray, Thresholds
from lemll.predictors._base import WeighsRows
from lemll.predictors.logistic.members import built_in, fit_member, member_log_odds
from lemll.predictors.logistic.probability import SURE, ProbabilityClassifier, TiesAreRelevant
from lemll.solvers import solve_logistic

__all__ = ["BinaryRelevance"]


class BinaryRelevance(WeighsRows, TiesAreRelevant, ProbabilityClassifier):
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

    def __init__(
        self,
        estimator: Estimator = None,
        *,
        C: float = 1.0,
        thresholds: Thresholds = "zero",
        tol: float = 1e-4,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.C = C
        self.thresholds = thresholds
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _fit(self, X: Features, Y: LabelArray) -> None:
        self._learn(X, Y, None)

    def _fit_partial(self, X: Features, Y: LabelArray, weight: FloatArray) -> None:
        # Each label has a model of its own, which sees the rows in which the label was observed.
        self._learn(X, Y, weight)

    def _learn(self, X: Features, Y: LabelArray, weight: FloatArray | None) -> None:
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

    def _score(self, X: Features) -> FloatArray:
        if not self._built_in:
            return np.column_stack([member_log_odds(member, X) for member in self.estimators_])
        return np.asarray(X @ self.coef_.T + self.intercept_)
