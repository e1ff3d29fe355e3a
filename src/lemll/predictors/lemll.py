"""The LEMLL classifier, which minimises Eq. (9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lemll._types import Features, FloatArray, LabelArray, Settings
from lemll.fitting.equation9 import Equation9, fit_equation9, graph_is_given
from lemll.fitting.kernels import model_outputs
from lemll.fitting.scaling import normalize
from lemll.predictors.base import ScalesColumns
from lemll.predictors.calibrated import DegreeClassifier


@dataclass(eq=False, repr=False)
class LEMLL(Equation9, ScalesColumns, DegreeClassifier):
    r"""Multi-label learning with label enhancement, solved to a certified global optimum.

    LEMLL learns two things together. The first is a linear model of the features, or of the
    features of a kernel. The second is the numerical labels U, which say how much each label
    matters in each training row. The model and U jointly minimise Eq. (9) of [1]_,

    .. math::
        \sum_i L_\varepsilon(\|u_i-\Theta x_i-b\|)+\alpha\|\Theta\|_F^2
        +\beta\|U-Y\|_F^2+\gamma\,\mathrm{tr}(U^\top MU),

    with the logical labels Y in -1/+1, :math:`L_\varepsilon(r)=\max(0,r-\varepsilon)^2` and
    :math:`M=(I-W)^\top(I-W)` from the LLE weights W (Eq. 6-8). The problem is convex. The solver
    stops when the duality gap is small. Therefore `optimality_` is a proven bound on the distance
    between `objective_` and the minimum. With unknown cells or confidences, the third term is
    :math:`\beta\sum_{ij}c_{ij}(U_{ij}-Y_{ij})^2` with the weights c of the cells, 0 for an unknown
    cell. Rows without any known cell still take part in the other terms.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of :math:`\|\Theta\|_F^2`, > 0.
    beta : float, default=1.0
        Weight of :math:`\|U-Y\|_F^2`, > 0. A large value keeps U near the logical labels.
    gamma : float, default=1.0
        Weight of :math:`\mathrm{tr}(U^\top MU)`, >= 0. A large value makes U follow the local
        linear structure of the rows.
    epsilon : float, default=0.1
        Radius of the tube, >= 0. Residuals inside the tube cost nothing.
    kernel : str or callable, default="linear"
        Inner product of two rows in the feature space of the model. The kernel must be positive
        semi-definite.

        - "linear": :math:`x^\top x'`.
        - "rbf": :math:`\exp(-g\|x-x'\|^2)`.
        - "poly": :math:`(g\,x^\top x'+c)^{degree}`.
        - "sigmoid": :math:`\tanh(g\,x^\top x'+c)`.
        - "cosine": the inner product of the rows after scaling them to length 1.
        - "precomputed": X itself holds the kernel values.
        - A callable: a function of two arrays of rows.

        Neighbours are searched in X, or in the feature space of a precomputed kernel.
    kernel_params : dict, optional
        Settings of the kernel, any of

        - ``gamma``, "variance" (default) or a number > 0: factor g of the kernel. "variance" means
          one divided by the sum of the variances of the features. With it, two rows at the mean
          squared distance have the exponent -2.
        - ``degree``, a whole number, 3 by default: degree of the polynomial kernel.
        - ``coef0``, 1.0 by default: constant c of the polynomial and the sigmoid kernel.
        - ``approximation``, None (default) or "nystroem": replace the kernel by explicit features,
          so that time and memory grow with the number of rows and not with its square. "nystroem"
          compares rows with landmarks, which are randomly chosen training rows. For the "rbf"
          kernel, at most 2 ``n_components`` columns and fewer landmarks than rows, the landmarks
          are means of clusters of rows, and the first-order part of the kernel about the mean row
          is kept exactly, with one feature per column. With an approximation, the certificate
          `optimality_` holds for the approximate kernel, and `kernel_gap_` for the exact one.
        - ``n_components``, "auto" (default) or a whole number: number of landmarks, at most the
          number of rows. "auto" is three quarters of the number of rows, but at most 4,000; above
          125,000 rows it is 5e8 divided by the number of rows, but at least 1,000.
        - ``random_state``, a whole number, 0 by default: seed of the approximation.
    scale : {"none", "standard", "maxabs", "auto"}, default="none"
        Scaling of the columns of X, learned from the training rows. "none" changes nothing, as in
        the paper. "standard" subtracts the mean and divides by the standard deviation; sparse
        features are only divided. "maxabs" divides by the largest absolute value. "auto" is
        "standard", or "maxabs" for sparse features. Use it if columns have different units.
    n_neighbors : int, default=10
        Number of neighbours that rebuild a row. If there are fewer rows, all other rows are used.
    graph : dict, csr_array of shape (n_samples, n_samples), NeighborGraph, str or Path, optional
        Either settings of the graph, any of

        - ``neighbors``, "auto" (default), "exact" or "approximate": how neighbours are searched.
          "exact" compares all pairs of rows. "approximate" needs pynndescent
          (``pip install 'lemll[ann]'``). "auto" is exact up to 100,000 rows. `neighbor_search_`
          says which search was used and how good it was.
        - ``reg_policy``, "always" (default) or "auto": when to regularise the local Gram matrices
          of LLE: always, or only if they are singular. The published figures were computed with
          "auto". It makes the solver about twenty times slower on data whose neighbours almost
          coincide, and it does not predict better.

        Or the graph itself, the LLE weights W of the training rows: from
        `lemll.topology.reconstruction_weights` or `lemll.topology.neighbor_graph`, or the file
        that `lemll.topology.save_graph` wrote. Then `n_neighbors` is not used. The graph is valid
        only for these rows, so it cannot be used in cross-validation.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        A label is predicted if its score is above its threshold. "zero" uses 0 for all labels, as
        in the paper. "f1" and "hamming" choose one threshold per label: the one with the best F1,
        or with the most correct decisions. To choose it, 5-fold cross-validation scores every
        training row with a model that was not fitted on that row.
    probability : bool, default=False
        Whether `predict_proba` exists. It needs five more fits, of parts of the rows, which give
        scores of rows that a model has not seen; the lines that turn scores into log-odds are
        fitted to these.
    tol : float, default=1e-4
        The solver stops when the certified relative duality gap is at most this.
    max_iter : int, default=1000
        Largest number of iterations of the solver.
    solver_params : dict, optional
        Settings of the solver, any of

        - ``label_block``, None (default) or a whole number: solve this many labels at a time,
          which needs less memory. Then the tube loss of a row is a sum over the blocks of labels,
          :math:`\sum_g L_{\varepsilon_g}(\|u_{ig}-\Theta_g x_i-b_g\|)` with
          :math:`\varepsilon_g=\varepsilon\sqrt{l_g/l}` for :math:`l_g` of l labels. With
          ``epsilon=0`` this is the same problem. By default all labels are solved together.
        - ``precision``, "float64" (default) or "float32": floating-point precision of the iterates
          and of `numerical_labels_`. The certificate is always computed in float64.
    verbose : int, default=0
        If positive, print a progress line to standard error.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        :math:`\Theta`, for the scaled columns.
    intercept_ : ndarray of shape (n_labels,)
        b.
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U of the training rows.
    completed_labels_ : ndarray of shape (n_samples, n_labels), int8
        The labels of the training rows. In cells that nobody observed: whether the label is
        probably relevant, that is, whether its numerical label is positive. For degrees: whether
        they are above 1/2.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The logistic function of U, divided by the sum of each row. Computed when it is read.
    dual_coef_ : ndarray of shape (n_labels, n_samples)
        Replaces `coef_` if a kernel is used: the coefficients a of the outputs
        :math:`\sum_j a_j k(x_j, x)+b`. Each row sums to zero. With an approximation: the
        coefficients of the first-order features and of the landmarks; then rows do not sum to
        zero.
    X_fit_ : ndarray or csr_array
        A copy of the training rows; of the landmarks for Nystroem features. Set only for a kernel
        that is not precomputed.
    kernel_ : object
        The name of the kernel and the parameters used. Set only if a kernel is used. For dense
        rows, "poly" and "cosine" are computed relative to the mean of the training rows, so that
        features far from the origin do not lose digits. This changes only `intercept_`.
    neighbor_search_ : dict
        How the neighbours were found: "search" ("exact", "approximate", or "given" for a matrix
        passed as `graph`), "recall" (the share of the true neighbours, measured on a sample)
        and "checked_rows" (the size of the sample).
    kernel_gap_ : float
        Only for Nystroem features without ``label_block`` and without unknown cells: certified
        relative gap of the solution to the minimum of Eq. (9) with the exact kernel. Up to 20,000
        rows it is computed from all kernel values; for more rows it is a coarser upper bound.
    objective_ : float
        Eq. (9) at the solution.
    objective_trace_ : ndarray
        Eq. (9) at the start and after each iteration.
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
    lemll.enhancers.LEMLLEnhancer : The same optimum, used only to get the label distribution.

    Notes
    -----
    The paper adds a virtual label with logical value 0. It predicts the labels whose scores are
    higher than the score of the virtual label. That score is always exactly 0. Therefore a label
    is predicted if its score is positive. A label that has the same value in all training rows is
    always predicted with that value.

    There is no ``sample_weight``. In other estimators, a weight of 2 means the same as a repeated
    row. In LEMLL a repeated row would also change the neighbourhoods, so the two would differ.

    References
    ----------
    .. [1] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll import LEMLL
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = LEMLL().fit(digits.X[:900], digits.Y[:900])
    >>> model.predict(digits.X[900:]).shape
    (897, 8)
    >>> bool(model.optimality_ <= 1e-4)
    True
    >>> model = LEMLL(probability=True).fit(digits.X[:900], digits.Y[:900])
    >>> model.predict_proba(digits.X[900:]).shape
    (897, 8)
    """

    _NO_ROW_WEIGHTS = (
        "a row is also a node of the graph of neighbours, so a weight of 2 would not mean a second "
        "row (label_weight says how sure the cells of a row are)"
    )

    @property
    def label_distribution_(self) -> FloatArray:
        """Label distribution of the training rows, computed from `numerical_labels_`."""
        return normalize(self.numerical_labels_)

    def _fit(self, X: Features, Y: LabelArray, weight: FloatArray | None = None) -> None:
        U = fit_equation9(self, self._learn_scaling(X), Y, weight)
        self.completed_labels_ = np.where(Y < 0, U > 0, Y).astype(np.int8)

    _fit_partial = _fit

    def _fit_degrees(self, X: Features, D: FloatArray, weight: FloatArray | None) -> None:
        U = fit_equation9(self, self._learn_scaling(X), D, weight)
        relevant = D > 0.5 if weight is None else np.where(weight > 0, D > 0.5, U > 0)
        self.completed_labels_ = relevant.astype(np.int8)

    def _uses_untagged_rows(self) -> bool:
        return True

    def _score(self, X: Features) -> FloatArray:
        return model_outputs(self, self._scaled(X))

    def _fold_parameters(self) -> Settings:
        if graph_is_given(self.graph):
            raise ValueError(
                f"{self._why_folds()} needs fits of parts of the rows, for which the given graph "
                "does not hold; leave out graph, or the other."
            )
        return super()._fold_parameters()
