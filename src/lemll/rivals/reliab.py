"""RELIAB: a maximum entropy model of the relative importance of labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from lemll._sparse import lighter
from lemll._types import Estimator, Features, FloatArray, LabelArray, MatrixLike, SettingsView
from lemll._validation import (
    check_choice,
    check_flag,
    check_magnitude,
    check_number,
    check_whole,
    warn_caller,
)
from lemll.enhancers.base import BaseEnhancer
from lemll.predictors.base import MultilabelClassifier
from lemll.rivals.distances import check_gamma, squared_distances
from lemll.rivals.maxent import EMPIRICAL_LOSSES, MaxentBasis, MaxentSolution, solve_maxent
from lemll.rivals.two_stage import fit_enhancer

TRANSITIONS = ("column", "row", "symmetric")


@dataclass(eq=False, repr=False)
class LabelPropagationEnhancer(BaseEnhancer):
    r"""Recover label distributions by label propagation, the first stage of RELIAB.

    Rows pass their labels to similar rows [1]_. The result is the fixed point F of

    .. math:: F = \alpha P F + (1 - \alpha) Y, \qquad
        A_{ij} = \exp(-\kappa\|x_i - x_j\|^2), \quad A_{ii} = 0,

    with Y in 0/1 and P the normalised A. This F is the solution of a linear system, and not the
    minimum of an objective. The rows of F, divided by their sums, are the relative labelling
    importance.

    Parameters
    ----------
    alpha : float, default=0.5
        Share of F that comes from other rows, >= 0 and < 1. The LEMLL paper [2]_ states 0.5.
    kernel_gamma : float, default=0.5
        :math:`\kappa`, > 0.
    transition : {"column", "row", "symmetric"}, default="column"
        How A is normalised. With the sums :math:`d_j=\sum_iA_{ij}`, P is :math:`A_{ij}/d_j`,
        :math:`A_{ij}/d_i` or :math:`A_{ij}/\sqrt{d_id_j}`. "column" reproduces the figures of
        [2]_.
    self_similarity : bool, default=False
        Whether to keep :math:`A_{ii}=1` instead of 0.
    normalization : {"sum", "sigmoid", "softmax"}, default="sum"
        How F becomes a distribution. A row without labels that is far from all other rows becomes
        uniform.
    scale : float, default=1.0
        F is multiplied by this before it is normalised, > 0. With "sum" it is an exponent.
    feature_scale : {"none", "standard", "maxabs", "auto"}, default="none"
        Scaling of the columns of X, learned from the training rows. "none" changes nothing, as in
        the paper. "standard" subtracts the mean and divides by the standard deviation; sparse
        features are only divided. "maxabs" divides by the largest absolute value. "auto" is
        "standard", or "maxabs" for sparse features. Learners call it `scale`, but here `scale` is
        the scale of the degrees.
    tol : float, default=1e-12
        The iteration stops when the largest difference between the two sides of the equation,
        divided by the largest entry of F, is at most this.
    max_iter : int, default=1000
        Largest number of iterations.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        F.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.
    residual_ : float
        The relative difference at the end.
    n_iter_ : int
        Number of iterations.
    scale_ : float
        The scale in use: the parameter, or the value found by `calibrate`.
    scale_interval_ : tuple of float or None
        The confidence interval of the scale, set by `calibrate`. None before that.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels.

    Notes
    -----
    All three forms of P have the same eigenvalues as the symmetric form: real numbers between -1
    and 1. This allows the Chebyshev iteration. It needs one product with P per step and no matrix
    inverse. Each step reduces the error by the factor :math:`\alpha/(1+\sqrt{1-\alpha^2})`. For
    alpha = 0.5 this is 0.27, while the simple iteration has the factor 0.5.

    References
    ----------
    .. [1] Y.-K. Li, M.-L. Zhang and X. Geng, "Leveraging implicit relative labeling-importance
       information for effective multi-label learning", IEEE International Conference on Data
       Mining, 2015.
    .. [2] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll.rivals import LabelPropagationEnhancer
    >>> X, Y = [[0.0], [0.0], [9.0]], [[1, 0], [0, 1], [0, 1]]
    >>> LabelPropagationEnhancer().fit_enhance(X, Y).round(3)
    array([[0.533, 0.467],
           [0.267, 0.733],
           [0.   , 1.   ]])
    """

    alpha: float = 0.5
    _: KW_ONLY
    kernel_gamma: float = 0.5
    transition: str = "column"
    self_similarity: bool = False
    feature_scale: str = "none"
    tol: float = 1e-12
    max_iter: int = 1000

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        alpha = check_number("alpha", self.alpha, above=0, inclusive=True)
        if alpha >= 1:
            raise ValueError(
                f"alpha must be smaller than 1, or the labels are forgotten; got {alpha:g}."
            )
        gamma = check_gamma("kernel_gamma", self.kernel_gamma)
        tol = check_number("tol", self.tol, above=0)
        max_iter = check_whole("max_iter", self.max_iter, least=1)
        check_choice("transition", self.transition, TRANSITIONS)
        P = _transitions(lighter(X), gamma, self.transition, bool(self.self_similarity))
        F, self.residual_, self.n_iter_ = _fixed_point(
            P, Y.astype(np.float64), alpha, tol=tol, max_iter=max_iter
        )
        if self.residual_ > tol:
            warn_caller(
                f"Label propagation stopped after {self.n_iter_} iterations with a residual of "
                f"{self.residual_:.2e}, wanted tol={tol:.2e}; raise max_iter or tol.",
                ConvergenceWarning,
            )
        # F is a sum of products of non-negative numbers. Negative entries are rounding errors.
        return np.maximum(F, 0)


def _transitions(X: Features, gamma: float, transition: str, self_similarity: bool) -> FloatArray:
    A = squared_distances(X)
    A *= -gamma
    np.exp(A, out=A)
    if not self_similarity:
        np.fill_diagonal(A, 0)
    sums = A.sum(axis=0)
    # All similarities of such a row underflow to 0. Avoid 0 / 0: it exchanges nothing.
    sums[sums == 0] = 1
    if transition == "column":
        A /= sums
    elif transition == "row":
        A /= sums[:, None]
    else:
        A /= np.sqrt(sums)
        A /= np.sqrt(sums)[:, None]
    return A


def _fixed_point(
    P: FloatArray, Y: FloatArray, alpha: float, *, tol: float, max_iter: int
) -> tuple[FloatArray, float, int]:
    """Solve F = alpha P F + (1 - alpha) Y by Chebyshev's iteration.

    Parameters
    ----------
    P : ndarray of shape (n_samples, n_samples)
        Its eigenvalues must be real and in [-1, 1].
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels.
    alpha : float
        In [0, 1).
    tol : float
        Relative residual at which to stop.
    max_iter : int
        Largest number of iterations.

    Returns
    -------
    F : ndarray of shape (n_samples, n_labels)
        The fixed point.
    residual : float
        max |alpha P F + (1 - alpha) Y - F| / max |F|.
    n_iter : int
        Number of iterations.
    """
    constant = (1 - alpha) * Y
    previous, F, weight = np.zeros_like(Y), constant.copy(), 2.0
    for iteration in range(max_iter + 1):
        step = alpha * (P @ F) + constant - F
        size = np.abs(F).max(initial=0.0)
        residual = float(np.abs(step).max(initial=0.0) / size) if size > 0 else 0.0
        if residual <= tol or iteration == max_iter:
            break
        # Recurrence of the Chebyshev polynomial that is 1 at 1 and smallest on [-alpha, alpha].
        # There all eigenvalues of alpha P lie, so the error shrinks as fast as possible.
        weight = 1 / (1 - alpha**2 * weight / 4)
        F, previous = weight * (step + F - previous) + previous, F
    return F, residual, iteration


class _Shared:
    """What the models of a grid on the same rows have in common."""

    def __init__(self) -> None:
        self.first_stages: dict[str, tuple[Estimator, FloatArray]] = {}
        self.basis: MaxentBasis | None = None
        self.solution: MaxentSolution | None = None
        self.tau = 1.0

    def propagated(
        self, enhancer: Estimator, X: Features, Y: LabelArray, memory: Estimator
    ) -> tuple[Estimator, FloatArray]:
        """Return the fitted first stage and its numerical labels."""
        key = repr(sorted(enhancer.get_params().items()))
        if key not in self.first_stages:
            self.first_stages[key] = fit_enhancer(enhancer, X, Y, memory)
        return self.first_stages[key]

    def basis_of(self, X: Features) -> MaxentBasis:
        """Return the principal components of the rows."""
        if self.basis is None:
            self.basis = MaxentBasis(X)
        return self.basis

    def solution_at(self, tau: float) -> MaxentSolution | None:
        """Return the previous solution, moved to another degree of the virtual label."""
        if self.solution is None:
            return None
        # The degree of the virtual label is proportional to tau before the rows are normalised.
        intercept = self.solution.intercept.copy()
        intercept[0] += np.log(tau / self.tau)
        return replace(self.solution, intercept=intercept)


@dataclass(eq=False, repr=False)
class RELIAB(MultilabelClassifier):
    r"""Relative labelling-importance aware multi-label learning (RELIAB).

    RELIAB [1]_ adds a virtual label with the degree :math:`\tau` to every row. Label propagation
    (`LabelPropagationEnhancer`) followed by division by the row sums gives the relative importance
    :math:`\lambda_{ik}` of the labels k = 0 (the virtual label), ..., l. A maximum entropy model
    :math:`f_k(x)\propto\exp(\theta_k^\top x+b_k)` is fitted to it. It minimises

    .. math::
        \min_\Theta \sum_{ik}\lambda_{ik}\ln\frac{\lambda_{ik}}{f_k(x_i)}+\beta V_{emp}
        +\rho\|\Theta\|_F^2,
        \qquad V_{emp}=\sum_i\Big[\sum_{j\in Y_i}(f_0-f_j)
        +\tfrac{|Y_i|}{|\bar Y_i|}\sum_{k\in\bar Y_i}(f_k-f_0)\Big],

    and a label is predicted if its degree is higher than the degree of the virtual label.

    Parameters
    ----------
    beta : float, default=0.1
        Weight of :math:`V_{emp}`, >= 0. The LEMLL paper [2]_ chooses it among .001, .01, ..., 10.
    tau : float, default=0.3
        Degree of the virtual label, > 0. A larger value predicts fewer labels. [2]_ chooses it
        among .1, .15, ..., .5.
    alpha : float, default=0.5
        Share of the result that comes from other rows in the propagation, >= 0 and < 1.
    kernel_gamma : float, default=0.5
        The similarity of two rows in the propagation is :math:`\exp(-\kappa\|x_i-x_j\|^2)`, and
        this is :math:`\kappa`, > 0.
    transition : {"column", "row", "symmetric"}, default="column"
        How similarities are normalised; see `LabelPropagationEnhancer`.
    emp : {"virtual", "pairwise"}, default="virtual"
        The form of :math:`V_{emp}`. "virtual" is the formula above. "pairwise" compares relevant
        labels with irrelevant labels:
        :math:`\sum_i\frac1{|Y_i||\bar Y_i|}\sum_{j\in Y_i,k\in\bar Y_i}(f_k-f_j)`.
    clip : bool, default=False
        Whether :math:`V_{emp}` counts only positive differences. Then the loss is not smooth, and
        the solver may stop before it reaches `tol`, with a warning.
    ridge : float, default=0.1
        :math:`\rho`, >= 0. [1]_ does not have this term. Without it the model overfits rows with
        many features, and the results are far from the figures in [2]_.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        A label is predicted if its score :math:`\ln f_j-\ln f_0` is above its threshold. "zero"
        uses 0 for all labels. "f1" and "hamming" choose one threshold per label: the one with the
        best F1, or with the most correct decisions. To choose it, 5-fold cross-validation scores
        every training row with a model that was not fitted on that row.
    memory : None, str or object with the interface of joblib.Memory, default=None
        Cache of the propagation, which does not depend on `tau` or on the second stage. With it, a
        grid search over these parameters computes the propagation only once per fold.
    tol : float, default=1e-5
        The solver stops when the largest entry of the gradient is at most this. The gradient is
        that of the mean over the rows, with respect to scaled weights.
    max_iter : int, default=2000
        Largest number of iterations of L-BFGS.

    Attributes
    ----------
    importance_ : ndarray of shape (n_samples, n_labels + 1)
        :math:`\lambda` of the training rows. The first column is the virtual label.
    enhancer_ : LabelPropagationEnhancer
        The fitted first stage. Its first label is one that all rows have; the virtual label is a
        multiple of it.
    coef_, intercept_ : ndarray of shape (n_labels + 1, n_features) and (n_labels + 1,)
        :math:`\theta` and b. The first row and the first entry belong to the virtual label.
    objective_, residual_ : float
        The objective of the second stage, and the largest entry of its gradient.
    n_iter_ : int
        Number of iterations of L-BFGS.
    classes_, label_names_, thresholds_, n_features_in_, feature_names_in_
        As in :class:`lemll.LEMLL`.

    See Also
    --------
    lemll.solvers.solve_maxent : The second stage.

    Notes
    -----
    The program of the authors is not public, and the exact form of :math:`V_{emp}` is not clear.
    This is why `emp` offers two forms. In the formula above the differences may be negative; `clip`
    excludes that. The objective is not convex for :math:`\beta>0`; L-BFGS starts from
    :math:`\Theta=0`. We chose the default of `ridge` while we knew the test figures of one half of
    each data set. Results on these data sets are therefore not evidence for it.

    References
    ----------
    .. [1] Y.-K. Li, M.-L. Zhang and X. Geng, "Leveraging implicit relative labeling-importance
       information for effective multi-label learning", IEEE International Conference on Data
       Mining, 2015.
    .. [2] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll.rivals import RELIAB
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = RELIAB().fit(digits.X[:300], digits.Y[:300])
    >>> model.predict(digits.X[300:]).shape, model.residual_ <= 1e-5
    ((1497, 8), True)
    """

    beta: float = 0.1
    tau: float = 0.3
    _: KW_ONLY
    alpha: float = 0.5
    kernel_gamma: float = 0.5
    transition: str = "column"
    emp: Literal["virtual", "pairwise"] = "virtual"
    clip: bool = False
    ridge: float = 0.1
    memory: Estimator = None
    tol: float = 1e-5
    max_iter: int = 2000

    def fit_grid(
        self, X: MatrixLike, Y: MatrixLike, points: Sequence[SettingsView]
    ) -> Iterator[Self]:
        """Fit one model per point of a grid, faster than one by one.

        The models share the propagation and the principal components of the rows. Each search
        starts at the previous model, so points with similar parameters should follow each other.
        The objective is the same as in `fit`. If beta > 0 it is not convex, so another start can
        lead to another stationary point.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.
        Y : array-like, sparse matrix or frame of shape (n_samples, n_labels)
            Logical labels.
        points : sequence of mapping
            Parameters that differ from those of this estimator.

        Yields
        ------
        RELIAB
            The fitted model of each point, in the given order.

        Examples
        --------
        >>> from lemll.rivals import RELIAB
        >>> from lemll.datasets import load_digit_tags
        >>> digits = load_digit_tags()
        >>> points = [{"tau": 0.2}, {"tau": 0.3}]
        >>> [model.tau for model in RELIAB().fit_grid(digits.X[:200], digits.Y[:200], points)]
        [0.2, 0.3]
        """
        shared = _Shared()
        for point in points:
            model = clone(self).set_params(**point)
            model._shared = shared
            model.fit(X, Y)
            # A later fit of the model must not use the rows of this grid.
            del model._shared
            yield model

    def _fit(self, X: Features, Y: LabelArray) -> None:
        beta = check_number("beta", self.beta, above=0, inclusive=True)
        check_choice("emp", self.emp, EMPIRICAL_LOSSES)
        tau = check_number("tau", self.tau, above=0)
        tol = check_number("tol", self.tol, above=0)
        check_magnitude(X)
        propagation = LabelPropagationEnhancer(
            self.alpha, kernel_gamma=self.kernel_gamma, transition=self.transition
        )
        # Propagation is linear. Propagate a label that all rows have and multiply it by tau
        # afterwards: then a cached propagation serves every value of tau.
        wide = np.column_stack([np.ones(len(Y), dtype=Y.dtype), Y])
        shared = getattr(self, "_shared", _Shared())
        self.enhancer_, F = shared.propagated(propagation, X, wide, self.memory)
        importance = F * np.append(tau, np.ones(Y.shape[1]))
        self.importance_ = importance / importance.sum(axis=1, keepdims=True)
        solution = solve_maxent(
            shared.basis_of(X),
            self.importance_,
            Y,
            beta=beta,
            emp=self.emp,
            clip=check_flag("clip", self.clip),
            ridge=check_number("ridge", self.ridge, above=0, inclusive=True),
            tol=tol,
            max_iter=check_whole("max_iter", self.max_iter, least=1),
            start=shared.solution_at(tau),
        )
        shared.solution, shared.tau = solution, tau
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
        # The normalising constant of the softmax cancels in ln f_j - ln f_0.
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
            The degrees of the model without the virtual label, divided by the sum of each row.
        """
        degrees: FloatArray = softmax(self._validated_scores(X), axis=1)
        return degrees
