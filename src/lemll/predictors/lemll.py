"""LEMLL as a multi-label classifier, and its search by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType

import numpy as np

from lemll._types import Features, FloatArray, LabelArray, Settings
from lemll._validation import check_settings
from lemll.fitting.equation9 import (
    FEATURE_SETTINGS,
    KERNEL_SETTINGS,
    SOLVER_SETTINGS,
    Equation9,
    fit_equation9,
    graph_is_given,
    graph_settings,
    model_outputs,
)
from lemll.fitting.scaling import normalize
from lemll.predictors.base import ScalesColumns
from lemll.predictors.calibrated import DegreeClassifier
from lemll.predictors.search import PAPER_GRID, PathCV, check_axis


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

    def _findings(self) -> Mapping[str, str]:
        gap = f"{np.max(self.optimality_):.1e} at most, after {np.max(self.n_iter_)} iterations"
        return {"distance to the optimum": gap, "labels": str(len(self.label_distribution_.T))}

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


@dataclass(eq=False, repr=False)
class LEMLLCV(PathCV):
    r"""LEMLL with alpha, beta and gamma, and optionally the kernel, chosen by cross-validation.

    For each fold and each kernel, one path (`lemll.solvers.solve_path`) solves all parameters,
    each to a certified gap of `tol_search`. Then :class:`LEMLL` is fitted to all rows with the
    best parameters. It minimises Eq. (9).

    Parameters
    ----------
    alphas, betas, gammas : sequence of float, default={1/64, 1/16, 1/4, 1, 4, 16, 64}
        Values to try. All combinations are tried. The default is the grid of the paper.
    estimator : LEMLL, optional
        A template: the parameters that are not searched are taken from it, for the search and for
        the final model. It is not changed. Its `alpha`, `beta` and `gamma` are not used, and it
        cannot have a given graph, an approximation of the kernel or blocks of labels. Its `tol` is
        the certified gap of the ten best combinations, from which the winner is chosen, and of the
        final model. With ``scale="auto"``, the search tries "none" and "standard" ("maxabs" for
        sparse features). The scaling is learned on the training rows of each fold. By default
        ``LEMLL(tol=1e-6)``; ``LEMLL(scale="auto", tol=1e-6)`` if `kernel` is "auto".
    kernel : "auto", str or callable, optional
        As in :class:`LEMLL`; by default that of `estimator`. "auto" tries the linear kernel and the
        RBF kernel with three widths.
    normalize_rows : bool or "auto", default=False
        Whether each row is divided by its length, after the scaling. "auto" tries both.
    scoring : str, sequence of str, or callable, default="average_precision"
        One or more names in ``lemll.metrics.METRICS``; the first one decides. Or a function of the
        true labels and the scores; a greater value is better.
    cv : int, splitter or iterable, default=5
        The number of folds, which are then stratified for all labels together. Or a splitter, or
        pairs of training and test rows, as in scikit-learn.
    search : {"auto", "grid", "coarse", "halving"}, default="auto"
        "grid" tries all combinations. "coarse" first tries every third value of each parameter.
        Then it tries the neighbours of the best combination, until no neighbour is better. This
        takes about a quarter of the work. With several measures in `scoring`, it does so for the
        best combination of each of them. "halving" first compares all kernels and scalings on
        two folds of at most 600 rows, with three values of alpha. The best third of them go on to
        three times the rows, and so on; the last ones are compared on all rows and in all folds.
        From the best combination it walks: it multiplies or divides one parameter by 4, the width
        of an RBF kernel included, until the score does not improve. So it can leave the given
        values: alpha from 4**-8 to 4**8, beta and gamma from 4**-4 to 4**4. "auto" is "halving" if
        `kernel` is "auto", otherwise "grid".
    one_standard_error : bool, default=False
        Whether to choose the simplest model that is almost as good as the best. Candidates have
        the same kernel as the best, and a mean score within one standard error of it. Among them
        the largest alpha wins, then the largest beta, then the smallest gamma.
    tol_search : float, default=1e-3
        Certified relative gap of the models of the search.
    max_seconds : float, optional
        Wall time after which no further combinations are tried. At least one space is tried, and
        the final model is always fitted.
    n_jobs : int, optional
        Number of folds that run at the same time, in threads, as in joblib. The result does not
        depend on it.
    refit : bool, default=True
        Whether to fit the final model. Without it, the object cannot predict.
    callback : callable, optional
        Called with a `SearchProgress` (done, expected, best_score, elapsed) after each fold. If it
        returns True, the search ends early, as with `max_seconds`, with the best so far.

    Attributes
    ----------
    best_params_ : dict
        alpha, beta, gamma, kernel, normalize_rows and scale of the final model, and
        kernel_gamma, which is ``gamma`` in its `kernel_params`.
    best_score_ : float
        Mean of the first measure over the folds. Greater is better.
    best_index_ : int
        Index of the best parameters in `cv_results_`.
    cv_results_ : dict of str to ndarray
        One entry per combination tried. It holds the parameters (``param_...``), and per measure
        the scores (``mean_test_...``, ``std_test_...``, ``split0_test_...``) and the rank. Losses
        are negated. ``optimality`` is the largest certified gap over the folds.
    best_estimator_ : LEMLL
        The final model. Its attributes (``coef_``, ``label_distribution_``, ...) are also
        available on this object. It expects rows that are already scaled.
    n_splits_ : int
        Number of folds.

    See Also
    --------
    LEMLL : A single model with given parameters.
    MSVRCV : The same search without label enhancement.

    Examples
    --------
    >>> from lemll import LEMLLCV
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = LEMLLCV(search="coarse", cv=2).fit(digits.X[:300], digits.Y[:300])
    >>> sorted(model.best_params_)
    ['alpha', 'beta', 'gamma', 'kernel', 'kernel_gamma', 'normalize_rows', 'scale']
    >>> model.predict(digits.X[300:]).shape
    (1497, 8)
    """

    _kind = LEMLL
    _tol = 1e-6
    _KERNEL_SETTINGS = MappingProxyType({**KERNEL_SETTINGS, **FEATURE_SETTINGS})

    alphas: Sequence[float] = PAPER_GRID
    betas: Sequence[float] = PAPER_GRID
    gammas: Sequence[float] = PAPER_GRID
    _: KW_ONLY
    search: str = "auto"

    def _axes(self) -> list[list[float]]:
        return [
            check_axis("alphas", self.alphas),
            check_axis("betas", self.betas),
            check_axis("gammas", self.gammas, inclusive=True),
        ]

    def _path_options(self) -> Settings:
        fixed = self._template()
        reason = not_searchable(fixed)
        if reason is not None:
            raise ValueError(f"{reason} of estimator cannot be used in a search; leave it out.")
        solver = check_settings("solver_params", fixed.solver_params, SOLVER_SETTINGS)
        return {
            **super()._path_options(),
            "graph": {"n_neighbors": fixed.n_neighbors, **graph_settings(fixed.graph)},
            "precision": solver["precision"],
        }

    def _check_partial(self, weight: FloatArray) -> None:
        """Accept unknown cells: Eq. (9) has a weight per cell."""


def not_searchable(estimator: LEMLL) -> str | None:
    """Return which parameter of a learner `LEMLLCV` cannot use, None if it can use all.

    Parameters
    ----------
    estimator : LEMLL
        A template.

    Returns
    -------
    str or None
        Its name.
    """
    if graph_is_given(estimator.graph):
        return "the given graph"
    if (estimator.kernel_params or {}).get("approximation") is not None:
        return "approximation in kernel_params"
    if (estimator.solver_params or {}).get("label_block") is not None:
        return "label_block in solver_params"
    return None
