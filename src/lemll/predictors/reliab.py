"""RELIAB: relative labelling importance, and a maximum entropy model of it."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from lemll._types import Estimator, Features, FloatArray, LabelArray, MatrixLike, Thresholds
from lemll._validation import check_flag, check_magnitude, check_number, check_whole
from lemll._warnings import warn_caller
from lemll.enhancers import LabelPropagationEnhancer
from lemll.predictors._base import MultilabelClassifier
from lemll.predictors.stages.first_stage import fit_enhancer
from lemll.solvers import solve_maxent

__all__ = ["RELIAB"]


class RELIAB(MultilabelClassifier):
    r"""Relative labelling-importance aware multi-label learning [1]_.

    A virtual label with the degree :math:`\tau` joins the labels of every row. Label propagation
    (`LabelPropagationEnhancer`) and division by the row sums give the relative importance
    :math:`\lambda_{ik}` of the labels k = 0 (the virtual one), ..., l. A maximum entropy model
    :math:`f_k(x)\propto\exp(\theta_k^\top x+b_k)` is fitted to it,

    .. math::
        \min_\Theta \sum_{ik}\lambda_{ik}\ln\frac{\lambda_{ik}}{f_k(x_i)}+\beta V_{emp}
        +\rho\|\Theta\|_F^2,
        \qquad V_{emp}=\sum_i\Big[\sum_{j\in Y_i}(f_0-f_j)
        +\tfrac{|Y_i|}{|\bar Y_i|}\sum_{k\in\bar Y_i}(f_k-f_0)\Big],

    and a label is predicted where its degree exceeds that of the virtual label.

    Parameters
    ----------
    beta : float, default=0.1
        Weight of :math:`V_{emp}`, >= 0. The LEMLL paper [2]_ chooses it among .001, .01, ..., 10.
    tau : float, default=0.3
        Degree of the virtual label, > 0; the larger, the fewer labels are predicted. [2]_ chooses
        it among .1, .15, ..., .5.
    alpha : float, default=0.5
        Share of what comes from other rows in the propagation, >= 0 and < 1.
    sigma : float, default=1.0
        Width of the similarity of rows in the propagation, > 0.
    transition : {"column", "row", "symmetric"}, default="column"
        How similarities are normalised, see `LabelPropagationEnhancer`.
    emp : {"virtual", "pairwise"}, default="virtual"
        The form of :math:`V_{emp}`: as above; or relevant and irrelevant labels compared with each
        other, :math:`\sum_i\frac1{|Y_i||\bar Y_i|}\sum_{j\in Y_i,k\in\bar Y_i}(f_k-f_j)`.
    clip : bool, default=False
        Count positive differences in :math:`V_{emp}` only. The loss then has kinks, at which the
        solver may stall before `tol`, and warn.
    ridge : float, default=0.1
        :math:`\rho`, >= 0. [1]_ has none, but without one the optimum fits rows of many features
        too closely, and is far from the figures in [2]_.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        Above which score :math:`\ln f_j-\ln f_0` a label is predicted: 0 for all labels, as above;
        or for each label the one that is best, by its F1 or by the number of correct decisions, on
        the training rows, scored by models that have not seen them (5 folds).
    memory : None, str or object with the interface of joblib.Memory, default=None
        Where to keep propagations, which depend neither on `tau` nor on the second stage: a grid
        search over these then computes one for each part of the rows.
    tol : float, default=1e-5
        Largest entry of the gradient, for the mean over the rows and by scaled weights, at which to
        stop.
    max_iter : int, default=2000
        Cap on the iterations of L-BFGS.

    Attributes
    ----------
    importance_ : ndarray of shape (n_samples, n_labels + 1)
        :math:`\lambda` of the training rows, the virtual label's first.
    enhancer_ : LabelPropagationEnhancer
        The first stage, fitted to the labels behind a label that all rows have, of which the
        virtual one is a multiple.
    coef_, intercept_ : ndarray of shape (n_labels + 1, n_features) and (n_labels + 1,)
        :math:`\theta` and b, the virtual label's first.
    objective_, residual_ : float
        Of the second stage, and the largest entry of its gradient.
    n_iter_ : int
        Iterations of L-BFGS.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.
    label_names_ : ndarray of str
        The labels' names: columns of a frame, else ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        A label is predicted where its score exceeds this.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    lemll.solvers.solve_maxent : The second stage.

    Notes
    -----
    The authors' program is not public. Which form :math:`V_{emp}` has is an interpretation, hence
    the choice; as stated its differences may be negative, hence `clip`. The objective is not
    convex for :math:`\beta>0`; L-BFGS starts from :math:`\Theta=0`. The default of `ridge` was
    chosen with the test figures of one half of each data set in view, so that figures on these sets
    are no confirmation of it.

    References
    ----------
    .. [1] Y.-K. Li, M.-L. Zhang and X. Geng, "Leveraging implicit relative labeling-importance
       information for effective multi-label learning", IEEE International Conference on Data
       Mining, 2015.
    .. [2] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll import RELIAB
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = RELIAB().fit(digits.X[:300], digits.Y[:300])
    >>> model.predict(digits.X[300:]).shape, model.residual_ <= 1e-5
    ((1497, 8), True)
    """

    def __init__(
        self,
        beta: float = 0.1,
        tau: float = 0.3,
        *,
        alpha: float = 0.5,
        sigma: float = 1.0,
        transition: str = "column",
        emp: Literal["virtual", "pairwise"] = "virtual",
        clip: bool = False,
        ridge: float = 0.1,
        thresholds: Thresholds = "zero",
        memory: Estimator = None,
        tol: float = 1e-5,
        max_iter: int = 2000,
    ) -> None:
        self.beta = beta
        self.tau = tau
        self.alpha = alpha
        self.sigma = sigma
        self.transition = transition
        self.emp = emp
        self.clip = clip
        self.ridge = ridge
        self.thresholds = thresholds
        self.memory = memory
        self.tol = tol
        self.max_iter = max_iter

    def _fit(self, X: Features, Y: LabelArray) -> None:
        beta = check_number("beta", self.beta, above=0, inclusive=True)
        tau = check_number("tau", self.tau, above=0)
        tol = check_number("tol", self.tol, above=0)
        check_magnitude(X)
        propagation = LabelPropagationEnhancer(
            self.alpha, sigma=self.sigma, transition=self.transition
        )
        # Propagation is linear: that of a label which all rows have, times tau, is the virtual one.
        wide = np.column_stack([np.ones(len(Y), dtype=Y.dtype), Y])
        self.enhancer_, F = fit_enhancer(propagation, X, wide, self.memory)
        importance = F * np.append(tau, np.ones(Y.shape[1]))
        self.importance_ = importance / importance.sum(axis=1, keepdims=True)
        solution = solve_maxent(
            X,
            self.importance_,
            Y,
            beta=beta,
            emp=self.emp,
            clip=check_flag("clip", self.clip),
            ridge=check_number("ridge", self.ridge, above=0, inclusive=True),
            tol=tol,
            max_iter=check_whole("max_iter", self.max_iter, least=1),
        )
        if not solution.converged:
            remedy = "raise max_iter" if solution.status == "max_iter" else "raise tol or ridge"
            warn_caller(
                f"RELIAB stopped after {solution.n_iter} iterations with a residual of "
                f"{solution.residual:.2e}, wanted tol={tol:.2e}; {remedy}.",
                ConvergenceWarning,
            )
        self.coef_, self.intercept_ = solution.coef, solution.intercept
        self.objective_, self.residual_ = solution.objective, solution.residual
        self.n_iter_ = solution.n_iter

    def _score(self, X: Features) -> FloatArray:
        exponents = np.asarray(X @ self.coef_.T + self.intercept_, dtype=np.float64)
        # What all degrees are divided by cancels.
        return exponents[:, 1:] - exponents[:, :1]

    def predict_distribution(self, X: MatrixLike) -> FloatArray:
        """Estimate how much each label matters in new rows.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            The model's degrees without the virtual label's, divided by their row sum.
        """
        degrees: FloatArray = softmax(self._validated_scores(X), axis=1)
        return degrees
