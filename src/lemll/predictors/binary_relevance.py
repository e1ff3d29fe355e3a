"""Binary relevance: a model for each label, whatever the others are."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed

from lemll._types import Estimator, Features, FloatArray, LabelArray, Thresholds
from lemll.predictors.logistic.members import built_in, fit_member, member_log_odds
from lemll.predictors.logistic.probability import SURE, ProbabilityClassifier
from lemll.solvers import solve_logistic

__all__ = ["BinaryRelevance"]


class BinaryRelevance(ProbabilityClassifier):
    r"""One logistic regression for each label: the baseline to beat.

    For each label, with y its column of Y coded -1/+1, minimises

    .. math:: \sum_i\log\bigl(1+e^{-y_i(\theta^\top x_i+b)}\bigr)+\frac1{2C}\|\theta\|^2,

    all labels at once. A label is predicted where its probability is at least 1/2.

    Parameters
    ----------
    estimator : None, "weka" or classifier, default=None
        What learns a label: the logistic regression above; the same without a penalty to speak
        of, as Weka has it and the paper's CLR and ECC use it (features are divided by their
        standard deviations and ``C = 5e7``, that is 1e-8 times the squared coefficients); or any
        binary classifier of scikit-learn.
    C : float, default=1.0
        Inverse strength of the penalty, > 0. As in scikit-learn's ``LogisticRegression``.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        At which log-odds a label is predicted: 0 for all labels; or for each label those that are
        best, by its F1 or by the number of correct decisions, on the training rows, scored by
        models that have not seen them (5 folds).
    tol : float, default=1e-4
        Relative length of the gradient at which to stop.
    max_iter : int, default=100
        Cap on Newton steps.
    n_jobs : int, optional
        Threads, or processes for an estimator of the user's, as joblib counts them.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        :math:`\theta` of each label, of the built-in models.
    intercept_ : ndarray of shape (n_labels,)
        b of each label; about 37 or -37 for a label that all or no rows have.
    gradient_norm_ : ndarray of shape (n_labels,)
        Relative length of each gradient at the solution.
    n_iter_ : int
        Newton steps of the slowest model; 1 with an estimator of the user's.
    estimators_ : list
        The fitted copies of `estimator`, instead; a number for a constant label.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.
    label_names_ : ndarray of str
        The labels' names: columns of a frame, else ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        A label is predicted where its log-odds exceed this: just below 0, as ties are relevant.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    ECC : Labels one after the other, each with those before as features.
    CLR : A model for each pair of labels.

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
        own = built_in(self, X)
        self._built_in = own is not None
        self.n_iter_ = 1
        if own is None:
            self.estimators_ = Parallel(n_jobs=self.n_jobs)(
                delayed(fit_member)(self.estimator, X, y) for y in Y.T
            )
            return
        solution = solve_logistic(own.scaled(X), Y, **own.options)
        own.warn(type(self).__name__, solution.gradient_norm)
        self.coef_ = own.unscaled(solution.coef)
        self.intercept_ = np.nan_to_num(solution.intercept, posinf=SURE, neginf=-SURE)
        self.gradient_norm_ = solution.gradient_norm
        self.n_iter_ = max(1, int(solution.n_iter.max()))

    def _score(self, X: Features) -> FloatArray:
        if not self._built_in:
            return np.column_stack([member_log_odds(member, X) for member in self.estimators_])
        return np.asarray(X @ self.coef_.T + self.intercept_)
