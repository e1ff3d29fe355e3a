"""Multi-output support vector regression, and a multi-label classifier based on it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from lemll._labels import check_same_rows
from lemll._types import Estimator, Features, FloatArray, LabelArray, MatrixLike
from lemll._validation import all_or_nothing, check_number, check_whole
from lemll.fitting.equation9 import check_fits, choose_kernel, model_outputs, store_solution
from lemll.predictors.base import ScalesColumns, WeighsRows
from lemll.predictors.calibrated import DegreeClassifier
from lemll.solvers import solve_msvr


@dataclass(eq=False, repr=False)
class MSVR(ScalesColumns, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Multi-output support vector regression, solved to a certified global optimum.

    MSVR learns one linear model for all outputs together, on the features or on the features of a
    kernel. It minimises Eq. (10) of [1]_,

    .. math::
        \sum_i w_i L_\varepsilon(\|y_i-\Theta x_i-b\|)+\alpha\|\Theta\|_F^2,
        \qquad L_\varepsilon(r)=\max(0,r-\varepsilon)^2,

    with the sample weights w. All outputs share one tube: a row costs nothing if the length of its
    residual vector is at most :math:`\varepsilon`. The intercept b is not penalised.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of :math:`\|\Theta\|_F^2`, > 0. In [2]_ the objective is
        :math:`\tfrac12\|\Theta\|_F^2` plus C times the losses; this is the same with
        :math:`C=1/(2\alpha)`.
    epsilon : float, default=0.1
        Radius of the tube, >= 0. With 0, MSVR is (kernel) ridge regression.
    kernel, scale
        As in :class:`LEMLL`.
    kernel_params : dict, optional
        Any of ``gamma``, ``degree`` and ``coef0``, as in :class:`LEMLL`.
    tol : float, default=1e-10
        The solver stops when the certified relative duality gap is at most this.
    max_iter : int, default=1000
        Largest number of Newton steps of the solver.

    Attributes
    ----------
    coef_ : ndarray of shape (n_outputs, n_features)
        :math:`\Theta`. It has one row for a 1-D target.
    intercept_ : ndarray of shape (n_outputs,)
        b.
    dual_coef_ : ndarray of shape (n_outputs, n_samples)
        Replaces `coef_` if a kernel is used: the coefficients a of the outputs
        :math:`\sum_j a_j k(x_j, x)+b`. Each row sums to zero.
    X_fit_ : ndarray or csr_array
        A copy of the training rows. Set only for a kernel that is not precomputed.
    kernel_ : object
        The name of the kernel and the parameters used. Set only if a kernel is used. For dense
        rows, "poly" and "cosine" are computed relative to the mean of the training rows, so that
        features far from the origin do not lose digits. This changes only `intercept_`.
    objective_ : float
        Eq. (10) at the solution.
    objective_trace_ : ndarray
        Eq. (10) at the start and after each iteration.
    optimality_ : float
        Certified relative duality gap of the solution. With a kernel, it includes an estimate of
        the error caused by the rounding of the kernel values.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if X has names.

    See Also
    --------
    MSVRClassifier : The same model, used to predict labels.

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

    alpha: float = 1.0
    epsilon: float = 0.1
    _: KW_ONLY
    tol: float = 1e-10

    @all_or_nothing
    def fit(self, X: MatrixLike, y: MatrixLike, sample_weight: MatrixLike = None) -> Self:
        """Learn to predict the targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features. Sparse features are never converted to one dense array.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Real targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, >= 0. A weight of 2 has the same effect as repeating the row.

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
        _fit_equation10(self, X, y.reshape(len(y), -1), sample_weight=sample_weight)
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
            The predictions, with the same number of dimensions as the training targets.
        """
        check_is_fitted(self)
        rows = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        outputs = model_outputs(self, self._scaled(rows))
        return outputs[:, 0] if self._one_output else outputs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


@dataclass(eq=False, repr=False)
class MSVRClassifier(ScalesColumns, WeighsRows, DegreeClassifier):
    r"""Multi-label classification by support vector regression: LEMLL without label enhancement.

    The model is linear in the features, or in the features of a kernel. It is fitted to the labels
    Y, coded -1/+1. It minimises Eq. (10) of [1]_,

    .. math::
        \sum_i L_\varepsilon(\|y_i-\Theta x_i-b\|)+\alpha\|\Theta\|_F^2,
        \qquad L_\varepsilon(r)=\max(0,r-\varepsilon)^2,

    which is the limit of Eq. (9) for a very large :math:`\beta`: then the numerical labels are
    equal to the logical labels. With unknown cells or confidences, the length of a residual is
    :math:`(\sum_jc_{ij}r_{ij}^2)^{1/2}` with the weights c of the cells, so an unknown cell costs
    nothing.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of :math:`\|\Theta\|_F^2`, > 0. The C of other formulations is
        :math:`C=1/(2\alpha)`.
    epsilon : float, default=0.1
        Radius of the tube, >= 0. Residuals inside the tube cost nothing.
    kernel, scale
        As in :class:`LEMLL`.
    kernel_params : dict, optional
        Any of ``gamma``, ``degree`` and ``coef0``, as in :class:`LEMLL`.
    thresholds, probability
        As in :class:`LEMLL`.
    tol : float, default=1e-10
        The solver stops when the certified relative duality gap is at most this.
    max_iter : int, default=1000
        Largest number of Newton steps of the solver.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        :math:`\Theta`.
    intercept_ : ndarray of shape (n_labels,)
        b.
    dual_coef_ : ndarray of shape (n_labels, n_samples)
        Replaces `coef_` if a kernel is used: the coefficients a of the outputs
        :math:`\sum_j a_j k(x_j, x)+b`. Each row sums to zero.
    X_fit_ : ndarray or csr_array
        A copy of the training rows. Set only for a kernel that is not precomputed.
    kernel_ : object
        The name of the kernel and the parameters used. Set only if a kernel is used. For dense
        rows, "poly" and "cosine" are computed relative to the mean of the training rows, so that
        features far from the origin do not lose digits. This changes only `intercept_`.
    objective_ : float
        Eq. (10) at the solution.
    objective_trace_ : ndarray
        Eq. (10) at the start and after each iteration.
    optimality_ : float
        Certified relative duality gap of the solution. With a kernel, it includes an estimate of
        the error caused by the rounding of the kernel values.
    n_iter_ : int
        Number of iterations.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels: the columns of a frame, or ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        One threshold per label. A label is predicted if its score is above it.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if X has names.

    See Also
    --------
    MSVR : The regressor.
    LEMLL : The classifier that also learns numerical labels.

    Notes
    -----
    A label that has the same value in all training rows in which it was observed is always
    predicted with that value: its optimal coefficients are zero, its residual is zero, and it does
    not influence other labels.

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

    alpha: float = 1.0
    epsilon: float = 0.1
    _: KW_ONLY
    tol: float = 1e-10

    def _fit(self, X: Features, Y: LabelArray, weight: FloatArray | None = None) -> None:
        _fit_equation10(self, X, 2.0 * Y - 1.0, cell_weight=weight)

    _fit_partial = _fit

    def _fit_weighted(
        self, X: Features, Y: LabelArray, weight: FloatArray | None, of_rows: FloatArray | None
    ) -> None:
        # A row counts by its weight, but the residuals in its tube do not.
        _fit_equation10(self, X, 2.0 * Y - 1.0, sample_weight=of_rows, cell_weight=weight)

    def _fit_degrees(self, X: Features, D: FloatArray, weight: FloatArray | None) -> None:
        _fit_equation10(self, X, 2.0 * D - 1.0, cell_weight=weight)

    def _score(self, X: Features) -> FloatArray:
        return model_outputs(self, self._scaled(X))


def _fit_equation10(
    estimator: Estimator,
    X: Features,
    targets: MatrixLike,
    sample_weight: MatrixLike = None,
    cell_weight: FloatArray | None = None,
) -> None:
    """Minimise Eq. (10) with the parameters of an estimator and store the solution in it."""
    tol = check_number("tol", estimator.tol, above=0)
    X = estimator._learn_scaling(X)
    # Rows without an observed cell have no influence, also not on the width of the kernel. The
    # largest weight of a row bounds what an error of its outputs costs.
    row_weight = seen = sample_weight
    if cell_weight is not None:
        largest = cell_weight.max(axis=1)
        factor = 1.0 if sample_weight is None else sample_weight
        row_weight, seen = factor * largest, factor * np.sign(largest)
    kernel = choose_kernel(estimator.kernel, estimator.kernel_params, X, seen)
    check_fits(X, targets.shape[1], kernel)
    solution = solve_msvr(
        X if kernel is None else kernel.of_training(X, targets.shape[1]),
        targets,
        alpha=check_number("alpha", estimator.alpha, above=0),
        epsilon=check_number("epsilon", estimator.epsilon, above=0, inclusive=True),
        sample_weight=sample_weight,
        cell_weight=cell_weight,
        tol=tol,
        max_iter=check_whole("max_iter", estimator.max_iter, least=1),
    )
    scale = "alpha and the features"
    store_solution(estimator, kernel, X, solution, tol=tol, scale=scale, weights=row_weight)
    estimator.objective_trace_ = solution.objective_trace
