"""Multi-output support vector regression, and the classifier made of it."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from lemll._labels import check_same_rows
from lemll._types import (
    Estimator,
    Features,
    FloatArray,
    KernelLike,
    LabelArray,
    MatrixLike,
    Thresholds,
)
from lemll._validation import all_or_nothing, check_number, check_whole
from lemll.fitting import check_fits, choose_kernel, model_outputs, settle_optimality, store_model
from lemll.predictors._base import MultilabelClassifier
from lemll.solvers import solve_msvr

__all__ = ["MSVR", "MSVRClassifier"]


class MSVR(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Multi-output support vector regression, solved to a certified global optimum.

    Learns a model of all outputs together, linear in the features or in those of a kernel. It
    minimises Eq. (10) of [1]_,

    .. math::
        \sum_i w_i L_\varepsilon(\|y_i-\Theta x_i-b\|)+\alpha\|\Theta\|_F^2,
        \qquad L_\varepsilon(r)=\max(0,r-\varepsilon)^2,

    with the sample weights w. The outputs share one tube: a row costs nothing as long as the
    residuals of all its outputs, taken as a vector, are no longer than :math:`\varepsilon`. The
    intercept b is not penalised.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of :math:`\|\Theta\|_F^2`, > 0. The usual C of [2]_, which multiplies the losses
        beside :math:`\tfrac12\|\Theta\|_F^2`, is :math:`C=1/(2\alpha)`.
    epsilon : float, default=0.1
        Radius of the tube, >= 0. With 0 this is (kernel) ridge regression.
    kernel : str or callable, default="linear"
        Inner product of two rows, in the feature space that the model is linear in: "linear",
        "rbf", "poly", "sigmoid", "cosine" or "precomputed". In this order it is :math:`x^\top x'`,
        :math:`\exp(-g\|x-x'\|^2)`, :math:`(g\,x^\top x'+c)^{degree}`,
        :math:`\tanh(g\,x^\top x'+c)`, that of rows of length 1, or X itself holds the values. Or a
        function of two arrays of rows. It must be positive semi-definite.
    kernel_gamma : "variance" or float, default="variance"
        g of the kernel, > 0; by default one over the sum of the features' variances, so that the
        mean squared distance of two rows has the exponent -2.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=1.0
        c of the polynomial and the sigmoid kernel.
    tol : float, default=1e-10
        Certified relative duality gap at which to stop.
    max_iter : int, default=1000
        Cap on the solver's Newton steps.

    Attributes
    ----------
    coef_ : ndarray of shape (n_outputs, n_features)
        :math:`\Theta`; with one row for a 1-D target.
    intercept_ : ndarray of shape (n_outputs,)
        b.
    dual_coef_ : ndarray of shape (n_outputs, n_samples)
        With a kernel, instead of `coef_`: the coefficients a of the outputs
        :math:`\sum_j a_j k(x_j, x)+b`; their rows sum to zero.
    X_fit_ : ndarray or csr_array
        With a kernel that is not precomputed: a copy of the training rows.
    kernel_ : object
        With a kernel: its name and the parameters it was used with. Of dense rows "poly" and
        "cosine" are taken about the mean of the training rows, so that features far from the
        origin lose no digits; this changes `intercept_` and nothing else.
    objective_ : float
        Eq. (10) at the solution.
    objective_trace_ : ndarray
        Eq. (10) at the start and after each iteration.
    optimality_ : float
        Certified relative duality gap of the solution; with a kernel, what the rounding of its
        values adds is estimated and included.
    n_iter_ : int
        Iterations done.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    MSVRClassifier : The same model, of labels.

    References
    ----------
    .. [1] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.
    .. [2] M. Sanchez-Fernandez, M. de-Prado-Cumplido, J. Arenas-Garcia and F. Perez-Cruz, "SVM
       multiregression for nonlinear channel estimation in multiple-input multiple-output
       systems", IEEE Transactions on Signal Processing 52(8), 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll import MSVR
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> model = MSVR(alpha=0.01).fit(X, np.column_stack([X, 1 - 2 * X]))
    >>> model.predict([[2.5]]).round(3)
    array([[ 2.5, -4. ]])
    >>> bool(model.optimality_ <= 1e-10)
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        epsilon: float = 0.1,
        *,
        kernel: KernelLike = "linear",
        kernel_gamma: str | float = "variance",
        degree: int = 3,
        coef0: float = 1.0,
        tol: float = 1e-10,
        max_iter: int = 1000,
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.kernel = kernel
        self.kernel_gamma = kernel_gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter

    @all_or_nothing
    def fit(self, X: MatrixLike, y: MatrixLike, sample_weight: MatrixLike = None) -> Self:
        """Learn to predict the targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features; sparse ones are never made dense as a whole.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Real targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, >= 0; a weight of 2 is the row twice.

        Returns
        -------
        self
            The fitted regressor.
        """
        check_same_rows(X, y)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            multi_output=True,
            y_numeric=True,
        )
        _fit_equation10(self, X, y.reshape(len(y), -1), sample_weight)
        self._one_output = y.ndim == 1
        return self

    def predict(self, X: MatrixLike) -> FloatArray:
        """Predict the targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            As the training targets were.
        """
        check_is_fitted(self)
        rows = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        outputs = model_outputs(self, rows)
        return outputs[:, 0] if self._one_output else outputs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


class MSVRClassifier(MultilabelClassifier):
    r"""Multi-label classification by support vector regression: LEMLL without label enhancement.

    Learns a model of the labels Y, coded -1/+1, linear in the features or in those of a kernel. It
    minimises Eq. (10) of [1]_,

    .. math::
        \sum_i L_\varepsilon(\|y_i-\Theta x_i-b\|)+\alpha\|\Theta\|_F^2,
        \qquad L_\varepsilon(r)=\max(0,r-\varepsilon)^2,

    which is what becomes of Eq. (9) where :math:`\beta` is so large that the numerical labels are
    the logical ones.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of :math:`\|\Theta\|_F^2`, > 0; :math:`C=1/(2\alpha)`.
    epsilon : float, default=0.1
        Radius of the tube inside which residuals cost nothing, >= 0.
    kernel : str or callable, default="linear"
        Inner product of two rows, in the feature space that the model is linear in: "linear",
        "rbf", "poly", "sigmoid", "cosine" or "precomputed". In this order it is :math:`x^\top x'`,
        :math:`\exp(-g\|x-x'\|^2)`, :math:`(g\,x^\top x'+c)^{degree}`,
        :math:`\tanh(g\,x^\top x'+c)`, that of rows of length 1, or X itself holds the values. Or a
        function of two arrays of rows. It must be positive semi-definite.
    kernel_gamma : "variance" or float, default="variance"
        g of the kernel, > 0; by default one over the sum of the features' variances, so that the
        mean squared distance of two rows has the exponent -2.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=1.0
        c of the polynomial and the sigmoid kernel.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        Above which score a label is predicted: 0 for all labels, as in the paper; or for each
        label the one that is best, by its F1 or by the number of correct decisions, on the
        training rows, scored by models that have not seen them (5 folds).
    tol : float, default=1e-10
        Certified relative duality gap at which to stop.
    max_iter : int, default=1000
        Cap on the solver's Newton steps.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        :math:`\Theta`.
    intercept_ : ndarray of shape (n_labels,)
        b.
    dual_coef_ : ndarray of shape (n_labels, n_samples)
        With a kernel, instead of `coef_`: the coefficients a of the outputs
        :math:`\sum_j a_j k(x_j, x)+b`; their rows sum to zero.
    X_fit_ : ndarray or csr_array
        With a kernel that is not precomputed: a copy of the training rows.
    kernel_ : object
        With a kernel: its name and the parameters it was used with. Of dense rows "poly" and
        "cosine" are taken about the mean of the training rows, so that features far from the
        origin lose no digits; this changes `intercept_` and nothing else.
    objective_ : float
        Eq. (10) at the solution.
    objective_trace_ : ndarray
        Eq. (10) at the start and after each iteration.
    optimality_ : float
        Certified relative duality gap of the solution; with a kernel, what the rounding of its
        values adds is estimated and included.
    n_iter_ : int
        Iterations done.
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
    MSVR : The regression.
    LEMLL : Learns numerical labels together with the model.

    Notes
    -----
    Labels that are the same in all training rows are always predicted so: they cost nothing with
    weights of zero, and are no part of the others' residuals.

    References
    ----------
    .. [1] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll import MSVRClassifier
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = MSVRClassifier().fit(digits.X[:900], digits.Y[:900])
    >>> model.predict(digits.X[900:]).shape
    (897, 8)
    """

    def __init__(
        self,
        alpha: float = 1.0,
        epsilon: float = 0.1,
        *,
        kernel: KernelLike = "linear",
        kernel_gamma: str | float = "variance",
        degree: int = 3,
        coef0: float = 1.0,
        thresholds: Thresholds = "zero",
        tol: float = 1e-10,
        max_iter: int = 1000,
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.kernel = kernel
        self.kernel_gamma = kernel_gamma
        self.degree = degree
        self.coef0 = coef0
        self.thresholds = thresholds
        self.tol = tol
        self.max_iter = max_iter

    def _fit(self, X: Features, Y: LabelArray) -> None:
        _fit_equation10(self, X, 2.0 * Y - 1.0, None)

    def _score(self, X: Features) -> FloatArray:
        return model_outputs(self, X)


def _fit_equation10(
    estimator: Estimator, X: Features, targets: MatrixLike, sample_weight: MatrixLike
) -> None:
    """Minimise Eq. (10) with an estimator's parameters and store what was found in it."""
    tol = check_number("tol", estimator.tol, above=0)
    kernel = choose_kernel(estimator, X, sample_weight)
    check_fits(X, targets.shape[1], kernel)
    solution = solve_msvr(
        X if kernel is None else kernel.of_training(X, targets.shape[1]),
        targets,
        alpha=check_number("alpha", estimator.alpha, above=0),
        epsilon=check_number("epsilon", estimator.epsilon, above=0, inclusive=True),
        sample_weight=sample_weight,
        tol=tol,
        max_iter=check_whole("max_iter", estimator.max_iter, least=1),
    )
    estimator.optimality_ = settle_optimality(
        type(estimator).__name__,
        kernel,
        X,
        solution,
        tol=tol,
        scale="alpha and the features",
        weights=sample_weight,
    )
    store_model(estimator, kernel, X, solution.coef, solution.intercept)
    estimator.objective_ = solution.objective
    estimator.objective_trace_ = solution.objective_trace
    estimator.n_iter_ = solution.n_iter
